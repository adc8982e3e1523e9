// Over time: charts, and a slider that shows the floor plan of an earlier moment.

import { get } from "../api.js";
import { chart } from "../chart.js";
import { fill, h, notice } from "../dom.js";
import { setQuery } from "../routes.js";
import { clock, duration, number, percent, shortened } from "../units.js";

const MAX_POINTS = 400;

export function show(panel, route, app) {
  let isCurrent = true;
  let figures = [];
  let begins = 0;
  let end = Date.now() / 1000;
  let at = Number(route.query.get("at")) || 0; // 0: now
  let playing;
  let timer;
  let failure = "";
  let isAsking = false;
  const charts = h("div", { class: "charts" });
  const moment = h("output", { class: "moment" }, "now");
  const slider = h("input", { type: "range", "aria-label": "Moment", min: "0", max: "1000", step: "1", value: "1000", oninput: () => seek(Number(slider.value)) });
  const play = h("button", { type: "button", onclick: () => toggle() }, "Play");
  const now = h("button", { type: "button", onclick: () => go(0) }, "Now");

  async function load() {
    try {
      ({ figures, begins, ends: end } = await get("/api/history"));
      failure = "";
    } catch (error) {
      failure = error.message;
    }
    if (!isCurrent) return;
    place();
    drawCharts();
  }

  function seek(position) {
    go(position >= 1000 ? 0 : begins + ((end - begins) * position) / 1000);
  }

  function place() {
    if (document.activeElement !== slider || playing) slider.value = at ? String(Math.round((1000 * (at - begins)) / Math.max(end - begins, 1))) : "1000";
    moment.textContent = at ? `${clock(at)}, ${duration(Math.max(0, end - at))} before the end` : "now";
    slider.setAttribute("aria-valuetext", moment.textContent);
  }

  async function go(moment_) {
    at = moment_;
    setQuery(route, { at: at ? at.toFixed(1) : "" });
    place();
    drawCharts();
    if (!at) {
      stop();
      app.plan.show(null);
      return;
    }
    if (isAsking) return; // the latest moment is asked for afterwards
    isAsking = true;
    try {
      for (let asked = -1; asked !== at && at && isCurrent;) {
        asked = at;
        const change = await get("/api/history/floor", { at: asked });
        if (isCurrent && at) app.plan.show(app.floor.with(change), `The floor plan at ${clock(asked)}`);
      }
    } catch (error) {
      failure = error.message;
    }
    isAsking = false;
  }

  function toggle() {
    if (playing) {
      stop();
      return;
    }
    play.textContent = "Pause";
    if (!at) at = begins;
    const step = Math.max((end - begins) / 150, 0.2);
    playing = setInterval(() => {
      if (at + step >= end) go(0);
      else go(at + step);
    }, 100);
  }

  function stop() {
    clearInterval(playing);
    playing = undefined;
    play.textContent = "Play";
  }

  function drawCharts() {
    if (failure) fill(charts, notice(failure, "bad"));
    else if (figures.length < 2) fill(charts, notice("Figures are counted when something changes; nothing has changed yet."));
    else {
      const every = Math.ceil(figures.length / MAX_POINTS);
      const points = figures.filter((_, index) => index % every === 0 || index === figures.length - 1);
      const lastPoint = { ...points[points.length - 1], at: Math.max(end, points[points.length - 1].at) };
      points.push(lastPoint);
      const times = points.map((each) => each.at);
      const line = (name, className, value) => ({ name, className, values: points.map(value) });
      const causes = {};
      for (const point of points) for (const [cause, count] of Object.entries(point.pending)) causes[cause] = Math.max(causes[cause] || 0, count);
      const most = Object.entries(causes).sort((a, b) => b[1] - a[1]).slice(0, 4).map(([cause]) => cause);
      const shownAt = at || undefined;
      fill(charts,
        chart("Utilisation and fragmentation", times, [line("utilisation", "one", (each) => each.utilisation), line("fragmentation", "two", (each) => each.fragmentation)], percent, shownAt),
        chart("Devices held", times, [line("held", "one", (each) => each.held), line("devices", "dim", (each) => each.devices)], number, shownAt),
        chart("Pods pending, by cause", times, most.length
          ? most.map((cause, index) => line(shortened(cause, 48), ["one", "two", "three", "four"][index], (each) => each.pending[cause] || 0))
          : [line("none", "one", () => 0)], number, shownAt),
        chart("Wait from creation to node", times, [line("median", "one", (each) => each.median_wait), line("longest", "two", (each) => each.longest_wait)], duration, shownAt));
    }
  }

  fill(panel, h("h1", {}, "Over time"),
    h("p", { class: "lead" }, "What was recorded, what the API server keeps, or what happened since the dashboard started. The slider shows the floor plan of a moment."),
    h("div", { class: "player" }, play, slider, now, moment), charts);
  load().then(() => { if (at && isCurrent) go(at); });
  return {
    on(what) {
      if (what === "theme") drawCharts();
      if ((what === "figures" || what === "ready") && !timer) {
        timer = setTimeout(() => {
          timer = undefined;
          load();
        }, 2000);
      }
    },
    leave() {
      isCurrent = false;
      stop();
      clearTimeout(timer);
    },
  };
}

// The floor plan: the figures of the cluster beside it.

import { fill, h, notice } from "../dom.js";
import { swatch } from "../plan_legend.js";
import { stateColor, STATES, STATE_TEXTS } from "../palette.js";
import { setQuery } from "../routes.js";
import { counted, duration, number, percent, shortened } from "../units.js";

const MAX_NOTES = 3;
let areNotesOpen = false; // also after the view is drawn again

export function show(panel, route, app) {
  let state = route.query.get("state") || "";
  if (route.query.get("color")) app.plan.setColoring(route.query.get("color"));
  if (route.query.get("search")) {
    app.plan.search.value = route.query.get("search");
    app.plan.runSearch();
  }

  function choose(name) {
    state = state === name ? "" : name;
    setQuery(route, { state });
    draw();
  }

  function draw() {
    const { floor, figures, status } = app;
    const counts = floor.counts();
    const total = floor.devices.size;
    const numbers = state ? [...floor.devices.values()].filter((each) => each.state === state).map((each) => each.number) : null;
    app.plan.light(numbers);
    const waiting = Object.values(figures?.pending || {}).reduce((sum, count) => sum + count, 0);
    fill(panel,
      h("h1", {}, "Floor plan"),
      h("p", { class: "lead" }, total
        ? `${counted(total, "device")} on ${counted(figures?.nodes ?? floor.nodes.size, "node")}; ${number(counts.free)} free.`
        : app.isReady ? "No device is published." : "Reading the cluster …"),
      figures ? h("div", { class: "cards" },
        card("Utilisation", percent(figures.utilisation), figures.utilisation, "devices held, shares counted by what they use"),
        card("Fragmentation", percent(figures.fragmentation), figures.fragmentation, "free devices on nodes where others are held"),
        card("Pods pending", number(waiting), null, waiting ? h("a", { href: "#/pending" }, "why") : "none waits"),
        card("Wait for a node", duration(figures.median_wait), null, figures.longest_wait === null ? "no pod was scheduled in the last minute" : `median of the last minute; longest ${duration(figures.longest_wait)}`),
      ) : null,
      h("h2", {}, "Devices by state"),
      h("ul", { class: "states" }, STATES.filter((name) => counts[name] || name === state).map((name) => h("li", {},
        h("button", {
          type: "button", "aria-pressed": String(state === name), "data-key": name, onclick: () => choose(name),
        }, swatch(name, stateColor(name)), h("span", { class: "name" }, name), h("span", { class: "count" }, number(counts[name])),
        h("span", { class: "what" }, STATE_TEXTS[name]))))),
      h("p", { class: "dim" }, "Choose a state to light its devices up, a device for its details. Keys: / search, + and − zoom, arrows move."),
      status.notes.length ? [h("h2", {}, "Notes"), notes(status.notes)] : null);
  }

  let timer;
  draw();
  return {
    on(what) {
      if (what === "ready" || what === "figures" || what === "status" || what === "theme") draw();
      else if (!timer) {
        timer = setTimeout(() => {
          timer = undefined;
          draw();
        }, 500);
      }
    },
    leave() {
      clearTimeout(timer);
    },
  };
}

// The first notes; the rest can be opened.
function notes(found) {
  const shown = found.map((note) => notice(shortened(note, 600)));
  const more = shown.splice(MAX_NOTES);
  return [shown, more.length ? h("details", { open: areNotesOpen, ontoggle: (event) => { areNotesOpen = event.target.open; } },
    h("summary", { "data-key": "notes" }, counted(more.length, "more note")), more) : null];
}

function card(title, value, share, note) {
  return h("div", { class: "card" },
    h("div", { class: "cardtitle" }, title),
    h("div", { class: "cardvalue" }, value),
    share === null ? null : h("div", { class: "bar" }, h("div", { class: "fill", style: { width: `${100 * share}%` } })),
    h("div", { class: "dim small" }, note));
}

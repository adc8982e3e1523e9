// The CEL playground: an expression, its type, cost and value on every device, while one types.

import { post } from "../api.js";
import { fill, h, notice, table } from "../dom.js";
import { deviceRoute } from "../floor.js";
import { nameColor } from "../palette.js";
import { setQuery } from "../routes.js";
import { counted, number, shortened } from "../units.js";

const PAUSE = 250; // milliseconds without a key
const MAX_ROWS = 100;

export function show(panel, route, app) {
  let isCurrent = true;
  let timer;
  let asking;
  let chosen = "true";
  const result = h("div", { class: "result", role: "status", "aria-live": "polite" });
  const editor = h("textarea", {
    rows: "4", spellcheck: "false", autocapitalize: "off", autocomplete: "off", class: "code", "aria-label": "Expression", "data-key": "editor",
    value: route.query.get("expression") ?? 'device.driver == "gpu.example.com"', oninput: () => later(),
  });
  const derived = h("input", { type: "checkbox", onchange: () => ask() });
  derived.checked = route.query.get("derived") === "1";

  function later() {
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE);
  }

  async function ask() {
    const expression = editor.value;
    setQuery(route, { expression, derived: derived.checked ? "1" : "" });
    if (asking) asking.abort();
    if (!expression.trim()) {
      app.plan.light(null);
      fill(result, notice("Write an expression about a device."));
      return;
    }
    asking = new AbortController();
    const { signal } = asking;
    try {
      const answer = await post("/api/expression", { expression, isDerived: derived.checked }, signal);
      if (isCurrent && !signal.aborted) draw(answer);
    } catch (error) {
      if (isCurrent && !signal.aborted) {
        app.plan.light(null);
        fill(result, notice(error.message, "bad"));
      }
    }
  }

  function draw(answer) {
    if (answer.error) {
      app.plan.light(null);
      const [message, ...lines] = answer.error.split("\n");
      fill(result,
        h("div", { class: "error" }, h("p", {}, message), lines.length ? h("pre", { tabindex: "0" }, lines.join("\n")) : null),
        answer.advice ? notice(answer.advice) : null);
      return;
    }
    const groups = new Map();
    let costs = 0;
    let dearest = 0;
    for (const [device, value, cost] of answer.devices) {
      if (!groups.has(value)) groups.set(value, []);
      groups.get(value).push(device);
      costs += cost;
      dearest = Math.max(dearest, cost);
    }
    const ordered = [...groups].sort((a, b) => b[1].length - a[1].length);
    const texts = answer.values;
    if (!ordered.some(([value]) => texts[value] === chosen)) chosen = ordered.length ? texts[ordered[0][0]] : "";
    if (ordered.some(([value]) => texts[value] === "true") && !derived.checked) chosen = texts.includes(chosen) ? chosen : "true";
    const light = () => app.plan.light(ordered.filter(([value]) => texts[value] === chosen).flatMap(([, devices]) => devices));
    light();
    const average = answer.devices.length ? costs / answer.devices.length : 0;
    fill(result,
      h("p", {}, "Type ", h("code", {}, answer.type), `, estimated cost ${answer.maxCost === null ? "unbounded" : number(answer.maxCost)} of at most ${number(answer.costLimit)}`,
        answer.devices.length ? `; here ${number(average)} on average, at most ${number(dearest)}` : ""),
      answer.problem ? notice(answer.problem, "bad") : null,
      h("h2", {}, "Values"),
      h("ul", { class: "states" }, ordered.slice(0, 30).map(([value, devices]) => h("li", {}, h("button", {
        type: "button", "aria-pressed": String(texts[value] === chosen), "data-key": texts[value],
        onclick: () => { chosen = texts[value]; draw(answer); },
      }, h("span", { class: "dot", style: { background: nameColor(texts[value]) } }), h("span", { class: "name code" }, shortened(texts[value], 120)), h("span", { class: "count" }, counted(devices.length, "device")))))),
      ordered.length > 30 ? h("p", { class: "dim" }, `and ${number(ordered.length - 30)} more values`) : null,
      ordered.length ? table("Value on every device", ["Device", "Node", "Value", "Cost#"], inOrder(answer.devices, texts.indexOf(chosen)).slice(0, MAX_ROWS).map(([device, value, cost]) => {
        const found = app.floor.devices.get(device);
        return [found ? h("a", { href: deviceRoute(found) }, shortened(found.name, 50)) : String(device), found ? shortened(found.node, 40) : "", h("code", {}, shortened(texts[value], 80)), number(cost)];
      })) : notice("No device is published."),
      answer.devices.length > MAX_ROWS ? h("p", { class: "dim" }, `and ${number(answer.devices.length - MAX_ROWS)} more devices`) : null);
  }

  fill(panel, h("h1", {}, "CEL playground"),
    h("p", { class: "lead" }, "An expression as in a device selector. Devices with the chosen value light up."),
    editor, h("label", { class: "check" }, derived, "A derived attribute: any value instead of true or false"), result);
  ask();
  return {
    on(what) {
      if (what === "ready") ask();
    },
    leave() {
      isCurrent = false;
      clearTimeout(timer);
      if (asking) asking.abort();
    },
  };
}

// Devices with the chosen value first.
function inOrder(devices, chosen) {
  return [...devices.filter(([, value]) => value === chosen), ...devices.filter(([, value]) => value !== chosen)];
}

// What if: changes that are only imagined, who starts and who is evicted, and the floor plan before and after.

import { get, post } from "../api.js";
import { fill, h, notice, table } from "../dom.js";
import { objectRoute, setQuery } from "../routes.js";
import { counted, number, percent, shortened } from "../units.js";

const KINDS = {
  add: ["Add hardware", "PROFILE=NODES"], drain: ["Drain a node", "NODE"], taint: ["Taint devices or a node", "CEL expression, node/NAME or device/DRIVER/POOL/DEVICE"],
  scale: ["Scale a workload", "deployment/NAMESPACE/NAME=REPLICAS"], remove: ["Remove an object", "KIND/NAMESPACE/NAME"],
  evict: ["Evict a pod", "pod/NAMESPACE/NAME"], manifest: ["Apply a manifest", "YAML"],
};
const SIGNS = { starts: "+", moves: "~", restarts: "~", evicted: "−", waits: "!", ends: "−" };
const MAX_ROWS = 200;

export function show(panel, route, app) {
  let isCurrent = true;
  let changes = parsed(route.query.get("changes"));
  let kind = "add";
  let choices = { profiles: [], nodes: [], workloads: [] };
  let answer = null;
  let after = null;
  let different = null;
  let failure = "";
  let isBusy = false;
  let isAfter = true;
  const value = {};

  async function load() {
    try {
      choices = await get("/api/choices");
    } catch (error) {
      failure = error.message;
    }
    if (isCurrent) draw();
  }

  function addChange(event) {
    event.preventDefault();
    const text = collected();
    if (!text) return;
    changes = [...changes, { kind, value: text }];
    changed();
    ask();
  }

  function collected() {
    if (kind === "add") return `${value.profile || choices.profiles[0] || ""}=${value.nodes || 1}`;
    if (kind === "scale") return value.workload ? `${value.workload}=${value.replicas ?? 1}` : "";
    return (value[kind] || "").trim();
  }

  function remove(index) {
    changes = changes.filter((_, each) => each !== index);
    changed();
    if (changes.length) ask();
    else {
      answer = null;
      failure = "";
      app.plan.show(null);
      app.plan.light(null);
      draw();
    }
  }

  function changed() {
    setQuery(route, { changes: changes.length ? JSON.stringify(changes.map((each) => [each.kind, each.value])) : "" });
  }

  async function ask() {
    isBusy = true;
    failure = "";
    draw();
    try {
      const found = await post("/api/what-if", { changes });
      if (!isCurrent) return;
      answer = { changes: [], effects: [], counts: {}, notes: [], ...found.answer }; // empty lists are left out
      different = new Set([...(found.floor.cells || []).map(([each]) => each), ...(found.floor.pools || []).flatMap((pool) => pool.places.map(([each]) => each))]);
      after = app.floor.with(found.floor);
      isAfter = true;
      shown();
    } catch (error) {
      if (!isCurrent) return;
      failure = error.message;
      answer = null;
      app.plan.show(null);
    }
    isBusy = false;
    draw();
  }

  function shown() {
    if (isAfter) app.plan.show(after, `After: ${shortened(answer.changes.join(", then "), 120)}. Nothing is changed in the cluster.`);
    else app.plan.show(null);
    app.plan.light(different.size ? different : null);
  }

  function draw() {
    fill(panel,
      h("h1", {}, "What if"),
      h("p", { class: "lead" }, "Changes are made to a copy; the cluster stays as it is."),
      h("form", { class: "form", onsubmit: addChange },
        h("label", {}, h("span", {}, "Change"), h("select", {
          "data-key": "kind", onchange: (event) => { kind = event.target.value; draw(); }, value: kind,
        }, Object.entries(KINDS).map(([name, [text]]) => h("option", { value: name, selected: name === kind }, text)))),
        field(),
        h("button", { type: "submit", class: "primary", disabled: isBusy, "data-key": "submit" }, changes.length ? "Add to the changes" : "Ask")),
      changes.length ? [h("h2", {}, "If you"), h("ol", { class: "changes" }, changes.map((change, index) => h("li", {},
        h("span", {}, `${KINDS[change.kind]?.[0] || change.kind}: ${shortened(change.value, 160)}`),
        h("button", { type: "button", class: "link", "aria-label": `Take back change ${index + 1}`, onclick: () => remove(index), "data-key": `r${index}` }, "take back"))))] : null,
      isBusy ? notice("Simulating …") : null,
      failure ? notice(failure, "bad") : null,
      answer && !isBusy ? result() : null);
  }

  function field() {
    const input = (name, label, properties) => h("label", {}, h("span", {}, label), h("input", {
      "data-key": name, value: value[name] ?? "", oninput: (event) => { value[name] = event.target.value; }, ...properties,
    }));
    const options = (id, values) => h("datalist", { id }, values.slice(0, 500).map((each) => h("option", { value: each })));
    if (kind === "add") {
      return [h("label", {}, h("span", {}, "Profile"), h("select", { "data-key": "profile", onchange: (event) => { value.profile = event.target.value; } },
        choices.profiles.map((name) => h("option", { value: name, selected: name === value.profile }, name)))),
      input("nodes", "Nodes", { type: "number", min: "1", max: "5000", value: value.nodes ?? "1" })];
    }
    if (kind === "scale") {
      return [h("label", {}, h("span", {}, "Workload"), h("select", { "data-key": "workload", onchange: (event) => { value.workload = event.target.value; } },
        h("option", { value: "" }, choices.workloads.length ? "choose …" : "no workload"),
        choices.workloads.map(([name, replicas]) => h("option", { value: name, selected: name === value.workload }, `${name} (${replicas} now)`)))),
      input("replicas", "Replicas", { type: "number", min: "0", max: "100000" })];
    }
    if (kind === "manifest") {
      return h("label", {}, h("span", {}, "YAML"), h("textarea", { rows: "10", spellcheck: "false", "data-key": "manifest", oninput: (event) => { value.manifest = event.target.value; }, value: value.manifest || "" }));
    }
    if (kind === "drain") return [input("drain", "Node", { list: "nodes" }), options("nodes", choices.nodes)];
    return input(kind, KINDS[kind][1], { spellcheck: "false" });
  }

  function result() {
    const { effects, counts } = answer;
    return [
      h("h2", {}, "Then"),
      h("p", { class: "effects" }, Object.entries(counts).map(([name, count]) => h("span", { class: `effect ${name}` }, `${SIGNS[name]} ${number(count)} ${name}`)), effects.length ? null : "No pod is affected."),
      h("div", { class: "choice", role: "group", "aria-label": "Floor plan" }, [[false, "Before"], [true, "After"]].map(([which, text]) => h("button", {
        type: "button", "aria-pressed": String(isAfter === which), "data-key": text, onclick: () => { isAfter = which; shown(); draw(); },
      }, text)), h("span", { class: "dim" }, ` ${counted(different.size, "device")} different`)),
      effects.length ? table("Effects on pods", ["Effect", "Pod", "Before", "After", "Why"], effects.slice(0, MAX_ROWS).map((each) => [
        h("span", { class: `effect ${each.effect}` }, `${SIGNS[each.effect]} ${each.effect}`),
        each.before || each.effect === "starts" ? h("a", { href: objectRoute("pod", each.pod) }, shortened(each.pod, 60)) : shortened(each.pod, 60),
        each.before || "", each.after || "", each.reason || ""])) : null,
      effects.length > MAX_ROWS ? h("p", { class: "dim" }, `and ${number(effects.length - MAX_ROWS)} more`) : null,
      table("Figures", ["", "Before#", "After#"], [
        ["Pods with a node", number(answer.runningBefore), number(answer.runningAfter)],
        ["Pods without a node", number(answer.waitingBefore), number(answer.waitingAfter)],
        ["Devices", number(answer.devicesBefore.devices), number(answer.devicesAfter.devices)],
        ["Devices held", number(answer.devicesBefore.held), number(answer.devicesAfter.held)],
        ["Utilisation", percent(answer.devicesBefore.utilisation), percent(answer.devicesAfter.utilisation)],
        ["Fragmentation", percent(answer.devicesBefore.fragmentation), percent(answer.devicesAfter.fragmentation)],
      ]),
      answer.notes.map((note) => notice(note)),
    ];
  }

  draw();
  load();
  if (changes.length && app.isReady) ask();
  return {
    on(what) {
      if (what === "ready") {
        load();
        if (changes.length) ask();
      }
    },
    leave() {
      isCurrent = false;
    },
  };
}

function parsed(text) {
  try {
    const found = JSON.parse(text || "[]");
    return Array.isArray(found) ? found.filter((each) => Array.isArray(each) && each[0] in KINDS).map(([kind, value]) => ({ kind, value: String(value) })) : [];
  } catch {
    return [];
  }
}

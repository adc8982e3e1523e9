// Pending pods by cause, with what would help; a cause lights its devices up.

import { get } from "../api.js";
import { fill, h, notice } from "../dom.js";
import { objectRoute, setQuery } from "../routes.js";
import { counted, number } from "../units.js";

export function show(panel, route, app) {
  let isCurrent = true;
  let answer = null;
  let failure = "";
  let chosen = route.query.get("pod") || "";
  let explanation = null;
  let timer;
  let loadedRevision = -1;

  async function load() {
    loadedRevision = app.revision;
    try {
      answer = { pods: 0, causes: [], helps: [], notes: [], ...await get("/api/pending") }; // empty lists are left out
      failure = "";
    } catch (error) {
      failure = error.message;
    }
    if (isCurrent) draw();
  }

  async function choose(pod) {
    chosen = chosen === pod ? "" : pod;
    explanation = null;
    setQuery(route, { pod: chosen });
    app.plan.light(null);
    draw();
    if (chosen) explain();
  }

  async function explain() {
    const [namespace, ...name] = chosen.split("/");
    const asked = chosen;
    try {
      const found = await get("/api/explain", { kind: "pod", namespace, name: name.join("/") });
      if (!isCurrent || asked !== chosen) return;
      explanation = found;
      app.plan.light(found.devices.length ? found.devices : null);
      app.plan.scrollToLit();
    } catch (error) {
      if (!isCurrent || asked !== chosen) return;
      explanation = { verdict: error.message, nodes: [], proposals: [] };
    }
    draw();
  }

  function draw() {
    fill(panel,
      h("h1", {}, "Pending"),
      failure ? notice(failure, "bad") : null,
      answer === null && !failure ? notice("Asking the scheduler …") : null,
      answer ? [
        h("p", { class: "lead" }, answer.pods ? `${counted(answer.pods, "pod")} without a node, for ${counted(answer.causes.length, "cause")}.` : "No pod waits for a node."),
        answer.helps.length ? [h("h2", {}, "What would help most pods"),
          h("ul", { class: "helps" }, answer.helps.slice(0, 5).map((help) => h("li", {}, h("b", {}, number(help.pods)), ` ${help.change}`)))] : null,
        answer.causes.length ? h("h2", {}, "Causes") : null,
        answer.causes.map(cause),
        answer.notes.map((note) => notice(note)),
      ] : null);
  }

  function cause(each) {
    const isOpen = chosen === each.example;
    return h("article", { class: `cause ${isOpen ? "open" : ""}` },
      h("button", { type: "button", "aria-expanded": String(isOpen), "data-key": each.example, onclick: () => choose(each.example) },
        h("span", { class: "badge" }, number(each.pods)), h("span", {}, each.cause)),
      h("p", { class: "dim small" }, Object.entries(each.owners || {}).slice(0, 5).map(([owner, count]) => count > 1 ? `${owner} (${count})` : owner).join(", "),
        Object.keys(each.owners || {}).length > 5 ? ` and ${Object.keys(each.owners || {}).length - 5} more` : ""),
      isOpen ? h("div", { class: "detail" },
        (each.helps || []).length ? [h("h3", {}, "What would help"), h("ul", {}, each.helps.map((help) => h("li", {}, help)))] : null,
        explanation ? details(explanation, each.example) : notice("Explaining …")) : null);
  }

  function details(found, pod) {
    return [
      h("p", {}, found.verdict),
      h("p", {}, "For example ", h("a", { href: objectRoute("pod", pod) }, `pod ${pod}`)),
      found.devices?.length ? h("p", { class: "dim" }, `${counted(found.devices.length, "device")} concerned: lit in the floor plan.`) : null,
      found.nodes.slice(0, 10).map((node) => h("details", {},
        h("summary", {}, h("b", {}, node.node), ` ${node.summary || node.reasons.join(", ")}`),
        node.details.map((detail) => h("p", {}, detail)),
        node.requests.map((request) => h("div", {},
          h("p", {}, `request ${request.request}: ${request.found} of ${request.wanted} found`, request.problem ? ` – ${request.problem}` : ""),
          h("ul", {}, request.refusals.map((refusal) => h("li", {},
            refusal.devices.length ? h("button", { type: "button", class: "link", onclick: () => { app.plan.light(refusal.devices); app.plan.scrollToLit(); } },
              counted(refusal.count, "device")) : counted(refusal.count, "device"), ` ${refusal.reason}`))))))),
      found.nodes.length > 10 ? h("p", { class: "dim" }, `and ${found.nodes.length - 10} more nodes`) : null,
    ];
  }

  draw();
  load();
  if (chosen) explain();
  return {
    on(what) {
      // Asked again when something has changed, and not more often than every three seconds.
      if (what === "figures" && app.revision !== loadedRevision && !timer) {
        timer = setTimeout(() => {
          timer = undefined;
          load();
        }, 3000);
      } else if (what === "ready") load();
    },
    leave() {
      isCurrent = false;
      clearTimeout(timer);
    },
  };
}

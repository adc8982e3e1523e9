// One pod: its claims with their requests and devices, why it waits, and its timeline.

import { get } from "../api.js";
import { definitions, fill, h, notice } from "../dom.js";
import { objectRoute } from "../routes.js";
import { ago, counted, shortened } from "../units.js";
import { devicesOf, following, requests, timeline } from "./details.js";

export function show(panel, route, app) {
  const [namespace = "", name = ""] = route.parts;
  let isCurrent = true;
  let explanation = null;
  let hasAsked = false;
  const heading = () => [h("p", { class: "crumbs" }, h("a", { href: "#/objects" }, "Pods"), ` / ${shortened(namespace, 60)}`), h("h1", {}, name)];
  fill(panel, heading(), notice("Loading …"));

  async function explain() {
    hasAsked = true;
    try {
      explanation = await get("/api/explain", { kind: "pod", namespace, name });
    } catch (error) {
      explanation = { verdict: error.message, proposals: [], devices: [] };
    }
    if (isCurrent) {
      app.plan.light(explanation.devices.length ? explanation.devices : null);
      load();
    }
  }

  async function load() {
    let pod;
    try {
      pod = await get("/api/pod", { namespace, name });
    } catch (error) {
      if (isCurrent) fill(panel, heading(), notice(error.status === 404 ? "This pod does not exist." : error.message, "bad"));
      return;
    }
    if (!isCurrent) return;
    if (!pod.node && !hasAsked) explain();
    if (pod.node) {
      const numbers = devicesOf(app.floor, pod.entries.flatMap((entry) => entry.requests));
      app.plan.light(numbers.size ? numbers : null);
    }
    fill(panel, heading(),
      h("p", { class: "lead" }, `Pod, ${pod.phase}`, pod.node ? ` on ${pod.node}` : ", no node", pod.created ? `, created ${ago(pod.created)}` : ""),
      pod.owner ? definitions([["Owner", pod.owner]]) : null,
      !pod.node ? [h("h2", {}, "Why it waits"), explanation ? [h("p", {}, explanation.verdict),
        explanation.devices.length ? h("p", { class: "dim" }, `${counted(explanation.devices.length, "device")} concerned: lit in the floor plan.`) : null,
        explanation.proposals.length ? [h("h3", {}, "What would help"), h("ul", {}, explanation.proposals.map((each) => h("li", {}, each.change)))] : null,
      ] : notice("Explaining …")] : null,
      h("h2", {}, "Claims"),
      pod.entries.length ? pod.entries.map((entry) => h("section", { class: "entry" },
        h("p", {}, h("b", {}, entry.entry), ": ", entry.claim ? h("a", { href: objectRoute("claim", entry.claim) }, entry.claim) : "no claim yet",
          ` (${entry.state})`, entry.template ? h("span", { class: "dim" }, ` from template ${entry.template}`) : null),
        requests(entry.requests))) : h("p", { class: "dim" }, "None."),
      h("h2", {}, "Timeline"), timeline(pod.timeline));
  }

  const follower = following(load);
  return { on: follower.on, leave() { isCurrent = false; follower.leave(); } };
}

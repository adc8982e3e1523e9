// One claim: its pods, requests, alternatives and devices, and its timeline.

import { get } from "../api.js";
import { definitions, fill, h, notice } from "../dom.js";
import { objectRoute } from "../routes.js";
import { ago, shortened } from "../units.js";
import { devicesOf, following, requests, timeline } from "./details.js";

export function show(panel, route, app) {
  const [namespace = "", name = ""] = route.parts;
  let isCurrent = true;
  const heading = () => [h("p", { class: "crumbs" }, h("a", { href: "#/objects?kind=claims" }, "Claims"), ` / ${shortened(namespace, 60)}`), h("h1", {}, name)];
  fill(panel, heading(), notice("Loading …"));

  const follower = following(async () => {
    let claim;
    try {
      claim = await get("/api/claim", { namespace, name });
    } catch (error) {
      if (isCurrent) fill(panel, heading(), notice(error.status === 404 ? "This claim does not exist." : error.message, "bad"));
      return;
    }
    if (!isCurrent) return;
    app.plan.light(claim.requests.some((request) => request.devices.length) ? devicesOf(app.floor, claim.requests) : null);
    fill(panel, heading(),
      h("p", { class: "lead" }, "Claim, ", h("b", {}, claim.state), claim.created ? `, created ${ago(claim.created)}` : ""),
      claim.owner ? definitions([["Owner", claim.owner]]) : null,
      h("h2", {}, "Pods"),
      claim.pods.length ? h("ul", {}, claim.pods.map((pod) => h("li", {}, h("a", { href: objectRoute("pod", pod.pod) }, pod.pod),
        ` ${pod.phase}`, pod.node ? ` on ${pod.node}` : ", no node"))) : h("p", { class: "dim" }, "No pod uses it."),
      claim.requests.length ? [h("h2", {}, "Requests"), requests(claim.requests)] : null,
      h("h2", {}, "Timeline"), timeline(claim.timeline));
  });
  return { on: follower.on, leave() { isCurrent = false; follower.leave(); } };
}

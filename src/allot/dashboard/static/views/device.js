// One device: what it is, who holds it, and its history.

import { get } from "../api.js";
import { definitions, fill, h, notice, table } from "../dom.js";
import { STATES, STATE_TEXTS } from "../palette.js";
import { objectRoute } from "../routes.js";
import { ago, amount, clock, quantity, shortened } from "../units.js";

export function show(panel, route, app) {
  const [driver = "", pool = "", name = ""] = route.parts;
  let isCurrent = true;
  fill(panel, h("h1", {}, shortened(name, 120)), notice("Loading …"));

  async function load() {
    let detail;
    try {
      detail = await get("/api/device", { driver, pool, device: name });
    } catch (error) {
      if (isCurrent) {
        const text = error.status === 404 ? "This device is not published, and no claim holds it." : error.message;
        fill(panel, h("h1", {}, shortened(name, 120)), notice(text, "bad"), h("p", {}, h("a", { href: "#/floor" }, "Floor plan")));
      }
      return;
    }
    if (!isCurrent) return;
    if (app.plan.selected !== detail.number) {
      app.plan.selected = detail.number;
      app.plan.reveal(detail.number);
    }
    draw(detail);
  }

  function draw(detail) {
    const { row } = detail;
    const holders = row.heldBy || []; // empty lists are left out
    fill(panel,
      h("p", { class: "crumbs" }, h("a", { href: "#/floor" }, "Floor plan"), ` / ${shortened(row.node || pool, 60)}`),
      h("h1", {}, name),
      h("p", { class: "lead" }, row.model ? `${shortened(row.model, 80)}: ` : "", h("b", { class: `state ${row.state}` }, row.state), ` – ${STATE_TEXTS[row.state]}`,
        row.reason ? ` (${row.reason})` : ""),
      definitions([
        ["Node", row.node || "on no single node"], ["Pool", pool], ["Driver", driver],
        detail.slice ? ["ResourceSlice", `${detail.slice}, generation ${detail.generation}`] : ["ResourceSlice", "none publishes it"],
        ...(row.taints?.length ? [["Taints", row.taints.join(", ")]] : []),
        ...(detail.bindingConditions?.length ? [["Binding conditions", detail.bindingConditions.join(", ")]] : []),
      ]),
      h("h2", {}, "Held by"),
      holders.length ? h("ul", { class: "holders" }, holders.map((holder) => h("li", {},
        h("div", {}, "claim ", h("a", { href: objectRoute("claim", holder.claim) }, holder.claim)),
        (holder.pods || []).map((pod) => h("div", {}, "pod ", h("a", { href: objectRoute("pod", pod) }, pod))),
        Object.entries(holder.consumed || {}).map(([key, value]) => h("div", { class: "dim" }, `${key} ${quantity(value)}`)),
        (holder.waitsFor || []).map((condition) => h("div", { class: "warn" }, `waits for ${condition}`)),
        holder.failure ? h("div", { class: "bad" }, `failed: ${holder.failure}`) : null))) : h("p", { class: "dim" }, "No claim."),
      capacities(detail),
      section("Attributes", Object.entries(detail.attributes || {})),
      section("Counters used", Object.entries(detail.counters || {}).map(([key, value]) => [key, quantity(value)])),
      h("h2", {}, "History"),
      detail.history.length
        ? h("ol", { class: "timeline" }, [...detail.history].reverse().slice(0, 200).map(({ at, cell }) => h("li", {},
          h("time", {}, clock(at)), h("b", {}, cell ? STATES[cell[0]] : "gone"),
          cell ? cell[3].map(([claim, ...pods]) => h("span", {}, ` ${pods.length ? `pod ${pods.join(", ")}` : `claim ${claim}`}`)) : null)))
        : h("p", { class: "dim" }, `Unchanged since ${clock(detail.begins)} (${ago(detail.begins)}), when the dashboard began to watch.`));
    document.title = `${shortened(name, 80)} – allot`;
  }

  load();
  return {
    on(what, change) {
      const number = app.plan.selected;
      if (what === "ready") load();
      else if (what === "change" && ((change.cells || []).some(([each]) => each === number) || change.pools?.length || change.gone?.length)) load();
    },
    leave() {
      isCurrent = false;
    },
  };
}

function capacities(detail) {
  const rows = Object.entries(detail.capacity || {});
  if (!rows.length) return null;
  return [h("h2", {}, "Capacity"), table("Capacity", ["Name", "Total#", "Left#", "Used"], rows.map(([name, total]) => {
    const left = detail.isShareable ? detail.row.remaining?.[name] : undefined;
    const share = left === undefined ? null : 1 - amount(left) / amount(total);
    return [name, quantity(total), left === undefined ? "" : quantity(left),
      share === null || Number.isNaN(share) ? "" : h("div", { class: "bar" }, h("div", { class: "fill", style: { width: `${100 * share}%` } }))];
  }))];
}

function section(title, pairs) {
  return pairs.length ? [h("h2", {}, title), table(title, ["Name", "Value"], pairs)] : null;
}

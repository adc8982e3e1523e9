// Claims and pods: a list to search in.

import { get } from "../api.js";
import { fill, h, notice, table } from "../dom.js";
import { deviceRoute } from "../floor.js";
import { pager } from "../plan_list.js";
import { objectRoute, setQuery } from "../routes.js";
import { ago, counted, number, shortened } from "../units.js";

export function show(panel, route, app) {
  let isCurrent = true;
  const asked = {
    kind: route.query.get("kind") === "claims" ? "claims" : "pods",
    search: route.query.get("search") || "", state: route.query.get("state") || "", page: Number(route.query.get("page")) || 0,
  };
  const result = h("div", { class: "result" });
  const search = h("input", {
    type: "search", value: asked.search, "aria-label": "Search by namespace and name", placeholder: "Search namespace and name …",
    oninput: () => change({ search: search.value, page: 0 }),
  });
  const tabs = h("div", { class: "choice", role: "group", "aria-label": "What to list" });
  let latest = 0;
  let timer;

  function change(values) {
    Object.assign(asked, values);
    setQuery(route, { ...asked, page: asked.page || "" });
    load();
  }

  async function load() {
    latest += 1;
    const number_ = latest;
    drawTabs();
    let answer;
    try {
      answer = await get("/api/objects", asked);
    } catch (error) {
      if (isCurrent) fill(result, notice(error.message, "bad"));
      return;
    }
    if (isCurrent && number_ === latest) draw(answer);
  }

  function drawTabs() {
    fill(tabs, [["pods", "Pods"], ["claims", "Claims"]].map(([kind, text]) => h("button", {
      type: "button", "aria-pressed": String(asked.kind === kind), "data-key": kind, onclick: () => change({ kind, state: "", page: 0 }),
    }, text)));
  }

  function draw(answer) {
    const isPods = asked.kind === "pods";
    const rows = answer.rows.map((row) => isPods ? [
      link("pod", row.pod), row.phase, row.node ? shortened(row.node, 40) : h("span", { class: "warn" }, "no node"),
      row.claims.map((claim) => h("div", {}, link("claim", claim))), ago(row.created),
    ] : [
      link("claim", row.claim), row.state,
      [row.devices.slice(0, 4).map(([driver, pool, name]) => h("div", {}, h("a", { href: deviceRoute({ driver, pool, name }) }, shortened(name, 40)))),
        row.devices.length > 4 ? `and ${row.devices.length - 4} more` : null],
      row.pods.slice(0, 3).map((pod) => h("div", {}, shortened(pod, 40))), ago(row.created),
    ]);
    fill(result,
      h("div", { class: "choice", role: "group", "aria-label": "State" },
        [["", "all"], ...Object.keys(answer.states).sort().map((state) => [state, state])].map(([state, text]) => h("button", {
          type: "button", "aria-pressed": String(asked.state === state), "data-key": `s${state}`, onclick: () => change({ state, page: 0 }),
        }, text, state ? h("span", { class: "badge" }, number(answer.states[state])) : null))),
      rows.length
        ? table(isPods ? "Pods" : "Claims", isPods ? ["Pod", "Phase", "Node", "Claims", "Created"] : ["Claim", "State", "Devices", "Reserved for", "Created"], rows)
        : notice(isPods ? "No pod with claims, and none that waits." : "No claim."),
      answer.total > answer.pageSize ? pager(asked.page, Math.ceil(answer.total / answer.pageSize), answer.total, (page) => change({ page })) : h("p", { class: "dim" }, counted(answer.total, isPods ? "pod" : "claim")));
  }

  function link(kind, key) {
    return h("a", { href: objectRoute(kind, key), "data-key": `${kind} ${key}` }, shortened(key, 70));
  }

  fill(panel, h("h1", {}, "Claims and pods"), tabs, search, result);
  drawTabs();
  load();
  return {
    on(what) {
      if (what === "ready") load();
      if (what === "figures" && !timer) {
        timer = setTimeout(() => {
          timer = undefined;
          load();
        }, 1500);
      }
    },
    leave() {
      isCurrent = false;
      clearTimeout(timer);
    },
  };
}

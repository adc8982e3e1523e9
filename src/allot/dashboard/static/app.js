// The page: follows the stream of changes, and shows the view that the address names.

import { stream } from "./api.js";
import { fill, h } from "./dom.js";
import { Floor } from "./floor.js";
import { Plan } from "./plan.js";
import { routeOf } from "./routes.js";
import { number, shortened } from "./units.js";
import * as cel from "./views/cel.js";
import * as claim from "./views/claim.js";
import * as device from "./views/device.js";
import * as floorView from "./views/floor.js";
import * as objects from "./views/objects.js";
import * as pending from "./views/pending.js";
import * as pod from "./views/pod.js";
import * as time from "./views/time.js";
import * as whatIf from "./views/what_if.js";

const VIEWS = { floor: floorView, device, pending, objects, claim, pod, "what-if": whatIf, time, cel };
const TABS = [
  ["floor", "Floor plan"], ["pending", "Pending"], ["objects", "Claims and pods"],
  ["what-if", "What if"], ["time", "Over time"], ["cel", "CEL"],
];
const TAB_OF = { device: "floor", claim: "objects", pod: "objects" };

class App {
  constructor() {
    this.floor = new Floor();
    this.status = { title: "", problem: "", notes: [], namespace: "default" };
    this.figures = null;
    this.revision = 0;
    this.isReady = false;
    this.view = null;
    this.panel = document.getElementById("panel");
    this.plan = new Plan(document.getElementById("plan"), this.floor, (value) => remember("coloring", value));
    this.plan.setColoring(remembered("coloring") || "namespace");
    this.setTheme(remembered("theme") || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => {
      if (!remembered("theme")) this.setTheme(event.matches ? "dark" : "light");
    });
    document.getElementById("theme").addEventListener("click", () => {
      const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
      remember("theme", theme);
      this.setTheme(theme);
    });
    document.addEventListener("keydown", (event) => this.key(event));
    window.addEventListener("hashchange", () => this.show());
    this.drawTabs();
    this.connect();
    this.show();
  }

  connect() {
    stream({
      status: (status) => { this.status = status; this.drawStatus(); this.tell("status"); },
      begin: (begin) => this.begin(begin),
      change: (change) => this.change(change),
      ready: () => this.ready(),
      figures: ({ revision, figures }) => {
        this.figures = figures;
        this.revision = revision;
        this.drawTabs();
        this.tell("figures");
      },
    }, (isOpen) => {
      this.isOpen = isOpen;
      this.drawStatus();
    });
  }

  begin({ nodes }) {
    this.isReady = false;
    this.floor.clear();
    this.floor.apply({ nodes });
  }

  change(change) {
    const changed = this.floor.apply(change);
    if (!this.isReady) return;
    this.plan.changed(changed);
    this.tell("change", change);
  }

  ready() {
    this.isReady = true;
    this.plan.changed(null);
    this.tell("ready");
  }

  // --- views ---

  show() {
    const route = routeOf(location.hash);
    const view = VIEWS[route.view] || floorView;
    const tab = TAB_OF[route.view] || route.view;
    if (this.view?.leave) this.view.leave();
    this.plan.light(null);
    this.plan.show(null);
    this.plan.selected = undefined;
    document.body.dataset.view = route.view in VIEWS ? route.view : "floor";
    this.panel.scrollTop = 0;
    this.route = route;
    this.view = view.show(this.panel, route, this) || {};
    this.drawTabs(tab);
    const title = this.panel.querySelector("h1");
    if (title) title.id = "title";
    document.title = `${title ? shortened(title.textContent, 80) : "allot"} – allot`;
    if (this.hasShown) this.panel.focus({ preventScroll: true });
    this.hasShown = true;
  }

  tell(what, data) {
    if (this.view?.on) this.view.on(what, data);
  }

  drawTabs(current) {
    this.tab = current || this.tab;
    const waiting = Object.values(this.figures?.pending || {}).reduce((sum, count) => sum + count, 0);
    const key = `${this.tab} ${waiting}`;
    if (key === this.tabsKey) return;
    this.tabsKey = key;
    fill(document.getElementById("tabs"), TABS.map(([name, text]) => h("li", {},
      h("a", { href: `#/${name}`, "aria-current": this.tab === name ? "page" : null, "data-key": name },
        text, name === "pending" && waiting ? h("span", { class: "badge" }, number(waiting)) : null))));
    document.querySelector("#tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  drawStatus() {
    const { title, problem } = this.status;
    document.getElementById("cluster").textContent = shortened(title, 60);
    document.getElementById("cluster").title = shortened(title, 300);
    const connection = document.getElementById("connection");
    const isLive = this.isOpen && !problem;
    connection.textContent = isLive ? "live" : this.isOpen ? "outdated" : "connecting …";
    connection.dataset.state = isLive ? "live" : "lost";
    const banner = document.getElementById("banner");
    banner.hidden = this.isOpen !== false && !problem;
    banner.textContent = this.isOpen === false
      ? "The dashboard's server does not answer. What you see may be outdated; trying to connect again …"
      : problem ? `What you see may be outdated: ${shortened(problem, 300)}` : "";
  }

  setTheme(theme) {
    document.documentElement.dataset.theme = theme;
    document.getElementById("theme").textContent = theme === "dark" ? "☀" : "☾";
    this.plan.themeChanged();
    this.tell("theme");
  }

  key(event) {
    const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
    if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      this.plan.search.focus();
    }
    if (event.key === "Escape" && event.target === this.plan.search) {
      this.plan.search.value = "";
      this.plan.runSearch();
    }
  }
}

function remember(name, value) {
  try {
    localStorage.setItem(`allot-${name}`, value);
  } catch {
    // Storage is switched off: the choice lasts as long as the page.
  }
}

function remembered(name) {
  try {
    return localStorage.getItem(`allot-${name}`);
  } catch {
    return null;
  }
}

window.allot = new App();

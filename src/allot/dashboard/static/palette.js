// Colours that people with any colour vision can tell apart (Okabe and Ito), and patterns that need no colour at all.

export const STATES = ["free", "held", "shared", "waiting", "tainted", "blocked", "unusable", "unpublished"];
export const STATE_TEXTS = {
  free: "can be allocated",
  held: "a claim holds it",
  shared: "claims hold shares of it",
  waiting: "held, and not ready yet",
  tainted: "a taint keeps claims away",
  blocked: "other partitions use its counters up",
  unusable: "its pool is incomplete or invalid",
  unpublished: "held, and no longer published",
};

// By theme: [light, dark].
const STATE_COLORS = {
  free: ["#ffffff", "#1b232d"],
  held: ["#0072b2", "#3a9bdc"],
  shared: ["#56b4e9", "#8fd0f5"],
  waiting: ["#f0e442", "#f0e442"],
  tainted: ["#e69f00", "#e69f00"],
  blocked: ["#b9a7cf", "#8a78a3"],
  unusable: ["#d55e00", "#f0803c"],
  unpublished: ["#cc79a7", "#e49cc3"],
};
const CATEGORIES = [
  ["#0072b2", "#3a9bdc"],
  ["#009e73", "#2fc49b"],
  ["#cc79a7", "#e49cc3"],
  ["#e69f00", "#f2b632"],
  ["#56b4e9", "#8fd0f5"],
  ["#d55e00", "#f0803c"],
  ["#7a5ea8", "#a88ad6"],
  ["#8a8d00", "#c4c83c"],
  ["#117a8b", "#46b5c6"],
  ["#9c4a3a", "#d08573"],
];
export const NO_PATTERN = new Set(["free", "held", "shared"]);

export function isDark() {
  return document.documentElement.dataset.theme === "dark";
}

export function stateColor(state) {
  return STATE_COLORS[state][isDark() ? 1 : 0];
}

// The colour of a name: the same in every session. A name that would share its colour with another one that is known gets
// the next free colour, which the browser remembers; when all are taken, names share colours.
const STORED = "allot-colors";
const SLOTS = 2 * CATEGORIES.length;
const slots = new Map();
const taken = new Map();

function load() {
  try {
    for (const [name, slot] of Object.entries(JSON.parse(localStorage.getItem(STORED) || "{}"))) {
      if (Number.isInteger(slot) && slot >= 0 && slot < SLOTS) {
        slots.set(name, slot);
        taken.set(slot, name);
      }
    }
  } catch {
    // Without storage, colours last as long as the page.
  }
}

load();

export function nameColor(name) {
  let slot = slots.get(name);
  if (slot === undefined) {
    slot = hash(name) % CATEGORIES.length;
    for (let step = 0; step < SLOTS && taken.has(slot); step += 1) slot = (slot + 1) % SLOTS;
    if (taken.has(slot)) slot = hash(name) % SLOTS;
    else {
      taken.set(slot, name);
      save(name, slot);
    }
    slots.set(name, slot);
  }
  const color = CATEGORIES[slot % CATEGORIES.length][isDark() ? 1 : 0];
  return slot < CATEGORIES.length ? color : mixed(color);
}

function save(name, slot) {
  try {
    const known = JSON.parse(localStorage.getItem(STORED) || "{}");
    if (name.length <= 253) localStorage.setItem(STORED, JSON.stringify({ ...known, [name]: slot }));
  } catch {
    // As above.
  }
}

const tints = new Map();

function mixed(color) {
  let found = tints.get(color);
  if (!found) {
    const part = (index) => Math.round(parseInt(color.slice(index, index + 2), 16) * 0.5 + (isDark() ? 0 : 118)).toString(16).padStart(2, "0");
    found = `#${part(1)}${part(3)}${part(5)}`;
    tints.set(color, found);
  }
  return found;
}

function hash(text) {
  let value = 2166136261;
  for (let index = 0; index < text.length; index += 1) {
    value = Math.imul(value ^ text.charCodeAt(index), 16777619);
  }
  value = Math.imul(value ^ (value >>> 15), 2246822507);
  return (value ^ (value >>> 13)) >>> 0;
}

// Draws the pattern of a state over a cell: hatching, dots or a cross, in ink that is visible on its colour.
export function drawPattern(context, state, x, y, size, height) {
  context.save();
  context.beginPath();
  context.rect(x, y, size, height);
  context.clip();
  context.strokeStyle = context.fillStyle = "rgba(0, 0, 0, 0.6)";
  context.lineWidth = Math.max(1, size / 14);
  context.beginPath();
  if (state === "tainted") {
    for (let step = -height; step < size; step += Math.max(4, size / 4)) {
      context.moveTo(x + step, y + height);
      context.lineTo(x + step + height, y);
    }
  } else if (state === "blocked" || state === "unusable") {
    context.moveTo(x, y);
    context.lineTo(x + size, y + height);
    if (state === "unusable") {
      context.moveTo(x + size, y);
      context.lineTo(x, y + height);
    }
  } else if (state === "waiting") {
    const radius = Math.max(1, size / 10);
    for (const part of [0.25, 0.5, 0.75]) {
      context.moveTo(x + size * part + radius, y + height / 2);
      context.arc(x + size * part, y + height / 2, radius, 0, 7);
    }
    context.fill();
  } else if (state === "unpublished") {
    context.setLineDash([Math.max(2, size / 6), Math.max(2, size / 6)]);
    context.rect(x + 1, y + 1, size - 2, height - 2);
  }
  context.stroke();
  context.restore();
}

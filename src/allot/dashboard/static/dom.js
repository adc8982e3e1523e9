// Elements made of data. Strings become text nodes: nothing that a cluster says is ever read as HTML.

export function h(tag, properties, ...children) {
  const element = document.createElement(tag);
  assign(element, properties || {});
  append(element, children);
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, properties, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (value !== undefined && value !== null) element.setAttribute(name, value);
  }
  append(element, children);
  return element;
}

function assign(element, properties) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2).toLowerCase(), value);
    else if (name === "class") element.className = value;
    else if (name === "value") element.value = value;
    else if (name === "style") for (const [key, text] of Object.entries(value)) element.style.setProperty(key, text);
    else element.setAttribute(name, value === true ? "" : value);
  }
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

// Replaces the content of an element; the focus stays on the element with the same data-key.
export function fill(element, ...children) {
  const active = document.activeElement;
  const key = active && element.contains(active) ? active.dataset.key : undefined;
  const top = element.scrollTop;
  element.replaceChildren();
  append(element, children);
  element.scrollTop = top;
  if (key !== undefined) {
    for (const candidate of element.querySelectorAll("[data-key]")) {
      if (candidate.dataset.key === key) {
        candidate.focus({ preventScroll: true });
        break;
      }
    }
  }
}

// A table with a caption for screen readers. Rows are lists of cells: text or elements.
export function table(caption, columns, rows, properties) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", properties || {},
      h("caption", { class: "hidden-text" }, caption),
      h("thead", {}, h("tr", {}, columns.map((column) =>
        h("th", { scope: "col", class: column.endsWith("#") ? "number" : "" }, column.replace("#", ""))))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, number) =>
        h("td", { class: columns[number].endsWith("#") ? "number" : "" }, cell)))))));
}

export function definitions(pairs) {
  return h("dl", {}, pairs.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

export function announce(text) {
  document.getElementById("live").textContent = text;
}

export function notice(text, kind) {
  return h("p", { class: `notice ${kind || ""}` }, text);
}

// Line charts as SVG, with a description for screen readers.

import { h, svg } from "./dom.js";
import { clock } from "./units.js";

const WIDTH = 560;
const HEIGHT = 120;
const LEFT = 44;

// `lines`: [{name, className, values}], each value a number or null, one for each of `times`.
export function chart(title, times, lines, format, at) {
  const values = lines.flatMap((line) => line.values).filter((value) => value !== null);
  const top = niceTop(Math.max(...values, 0));
  const begin = times[0];
  const span = Math.max(times[times.length - 1] - begin, 1);
  const x = (time) => LEFT + ((WIDTH - LEFT - 8) * (time - begin)) / span;
  const y = (value) => 10 + (HEIGHT - 34) * (1 - value / top);
  const last = lines.map((line) => `${line.name} ${format(line.values[line.values.length - 1] ?? 0)}`).join(", ");
  return h("figure", { class: "chart" },
    h("figcaption", {}, h("b", {}, title), h("span", { class: "keys" }, lines.map((line) => h("span", { class: `line ${line.className}` }, line.name)))),
    svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title}; now: ${last}` },
      [0, 0.5, 1].map((part) => [
        svg("line", { class: "grid", x1: LEFT, x2: WIDTH - 8, y1: y(top * part), y2: y(top * part) }),
        svg("text", { x: LEFT - 6, y: y(top * part) + 4, "text-anchor": "end" }, format(top * part)),
      ]),
      svg("text", { x: LEFT, y: HEIGHT - 6 }, clock(begin)),
      svg("text", { x: WIDTH - 8, y: HEIGHT - 6, "text-anchor": "end" }, clock(begin + span)),
      lines.map((line) => svg("path", { class: `line ${line.className}`, d: path(times, line.values, x, y) })),
      at === undefined ? null : svg("line", { class: "at", x1: x(at), x2: x(at), y1: 6, y2: HEIGHT - 22 })));
}

// Steps: a value holds until the next one.
function path(times, values, x, y) {
  let drawn = "";
  let isDown = false;
  values.forEach((value, index) => {
    if (value === null) {
      isDown = false;
      return;
    }
    drawn += isDown ? `H${x(times[index]).toFixed(1)}V${y(value).toFixed(1)}` : `M${x(times[index]).toFixed(1)} ${y(value).toFixed(1)}`;
    isDown = true;
  });
  return drawn;
}

function niceTop(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
}

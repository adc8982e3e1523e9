// Numbers and times as people read them.

const BINARY = { Ki: 1, Mi: 2, Gi: 3, Ti: 4, Pi: 5, Ei: 6 };
const DECIMAL = { n: -3, u: -2, m: -1, "": 0, k: 1, M: 2, G: 3, T: 4, P: 5, E: 6 };

// The text of a quantity with its unit, such as "80 GiB" for "80Gi"; anything else as it is.
export function quantity(text) {
  const found = /^(-?[0-9.]+)(Ki|Mi|Gi|Ti|Pi|Ei)$/.exec(text);
  if (found) return `${number(Number(found[1]))} ${found[2]}B`;
  const decimal = /^(-?[0-9.]+)(n|u|m|k|M|G|T|P|E)?$/.exec(text);
  if (!decimal) return text;
  if (!decimal[2]) return number(Number(decimal[1]));
  return decimal[2] === "m" ? number(Number(decimal[1]) / 1000) : `${number(Number(decimal[1]))} ${decimal[2]}`;
}

export function amount(text) {
  const found = /^(-?[0-9.]+)(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E)?$/.exec(text);
  if (!found) return NaN;
  const unit = found[2] || "";
  return Number(found[1]) * (unit in BINARY ? 1024 ** BINARY[unit] : 1000 ** DECIMAL[unit]);
}

export function number(value) {
  return new Intl.NumberFormat("en", { maximumFractionDigits: 2 }).format(value);
}

export function percent(share) {
  return `${new Intl.NumberFormat("en", { maximumFractionDigits: 1 }).format(100 * share)} %`;
}

export function counted(count, word, plural) {
  return `${number(count)} ${count === 1 ? word : plural || `${word}s`}`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return seconds < 0.1 ? "under 0.1 s" : `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
}

export function ago(at) {
  return at === null || at === undefined ? "" : `${duration(Math.max(0, Date.now() / 1000 - at))} ago`;
}

export function clock(at) {
  const moment = new Date(at * 1000);
  const time = moment.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  return moment.toDateString() === new Date().toDateString() ? time : `${moment.toLocaleDateString()} ${time}`;
}

export function shortened(text, length) {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}

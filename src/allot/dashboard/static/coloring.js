// What the colours of devices stand for: the namespace, claim or pod that holds a device, its model, or its state.

import { nameColor, stateColor } from "./palette.js";

export const COLORINGS = { namespace: "namespace", claim: "claim", pod: "pod", model: "model", state: "state" };

export function colorOf(device, coloring) {
  const isHeld = device.holders.length > 0;
  if (!isHeld || coloring === "state") {
    return coloring === "model" && device.state === "held" ? nameColor(device.model) : stateColor(device.state);
  }
  return nameColor(categoryOf(device, coloring));
}

// The name that gives a held device its colour.
export function categoryOf(device, coloring) {
  const [claim, pod] = device.holders[0] || [""];
  if (coloring === "model") return device.model || device.driver;
  if (coloring === "claim") return claim;
  if (coloring === "pod") return pod || claim;
  return claim.slice(0, claim.indexOf("/"));
}

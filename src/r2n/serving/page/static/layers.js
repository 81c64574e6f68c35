/**
 * Beliefs layer by layer: what would be said of an atom after each reasoning layer.
 */

import { h } from "./dom.js";
import { bar, empty } from "./parts.js";
import { probability } from "./words.js";

/** @typedef {{layer: number, logit: number, probability: number}} LayerBelief */

/** @param {LayerBelief[]} layers @param {LayerBelief[]} [before] */
export function layersChart(layers, before) {
  if (!layers?.length) return empty("The answer is not read off layers.");
  const head = h(
    "tr",
    {},
    h("th", { scope: "col" }, "Layer"),
    before ? h("th", { scope: "col" }, "Before") : null,
    h("th", { scope: "col" }, before ? "Now" : "Belief"),
  );
  const rows = layers.map((layer, i) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, layer.layer ? `layer ${layer.layer}` : "input layer"),
      before ? measured(before[i]) : null,
      measured(layer),
    ),
  );
  return h("table", { class: "layers" }, h("thead", {}, head), h("tbody", {}, ...rows));
}

/** @param {LayerBelief | undefined} layer */
function measured(layer) {
  if (!layer) return h("td", {}, "–");
  return h(
    "td",
    { class: "wide" },
    h(
      "span",
      { class: "measured" },
      bar(layer.probability),
      h("span", { class: "number" }, probability(layer.probability)),
    ),
  );
}

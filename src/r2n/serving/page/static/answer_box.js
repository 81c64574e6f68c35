/**
 * The answer in the drawing of its explanation: its probability, and what it was after each layer.
 */

import { printable, s } from "./dom.js";
import { probability } from "./words.js";

/** @typedef {import("./reason_graph.js").Box} Box */
/** @typedef {import("./layers.js").LayerBelief} LayerBelief */

const PADDING = 18;
const [BAR, GAP, TALL] = [18, 9, 34];
const MOST_LAYERS = 6;
const NOTE = 15.5;
const LAYER = /^(input|\d+)$/; // what stands below the bars, which are drawn here anew

/** @param {Box} box @param {LayerBelief[]} layers */
export function answerMarks(box, layers) {
  const shown = (layers ?? []).slice(-MOST_LAYERS);
  const [name, , ...others] = box.lines.map(printable);
  const notes = others.filter((line) => !LAYER.test(line));
  const start = box.width - PADDING - shown.length * (BAR + GAP) + GAP;
  return [
    s("text", { class: "first-text", x: PADDING, y: 29 }, name),
    s("text", { class: "figure-text", x: PADDING, y: 74 }, probability(box.belief)),
    ...shown.map((layer, i) => layerBar(layer, start + i * (BAR + GAP), 40)),
    ...notes.map((note, i) =>
      s("text", { class: "note-text", x: PADDING, y: box.height - 16 - NOTE * (notes.length - 1 - i) }, note),
    ),
  ];
}

/** @param {LayerBelief} layer @param {number} x @param {number} y */
function layerBar(layer, x, y) {
  const height = TALL * Math.min(Math.max(layer.probability, 0), 1);
  const side = layer.probability >= 0.5 ? "for" : "against";
  return s(
    "g",
    { class: `layer-bar ${side}` },
    s("rect", { class: "track", x, y, width: BAR, height: TALL, rx: 2 }),
    s("rect", { class: "level", x, y: y + TALL - height, width: BAR, height, rx: 2 }),
    s(
      "text",
      { class: "small-text", x: x + BAR / 2, y: y + TALL + 12, "text-anchor": "middle" },
      layer.layer ? layer.layer : "in",
    ),
  );
}

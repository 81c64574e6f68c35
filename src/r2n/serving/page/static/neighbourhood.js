/**
 * The neighbourhood of a constant, drawn: the constants around it, and what joins them.
 *
 * On a wide screen they stand around it; on a narrow one below each other, so that names can be read.
 */

import { aboutAddress } from "./address.js";
import { h, printable, s } from "./dom.js";
import { atomLink } from "./parts.js";
import { probability, shortened } from "./words.js";

/** @typedef {{predicate: string, from: string, to: string, atom: string, truth: boolean | null, probability: number}} Link */
/** Links of one predicate between the centre and a neighbour: from it (`out`), to it (`back`), or both.
 * @typedef {{predicate: string, out: boolean, back: boolean, isKnown: boolean, probability: number, atoms: string[]}} Tie */
/** @typedef {{name: string, x: number, y: number, ties: Tie[], anchor: "start" | "middle" | "end"}} Spot */

const NARROW = 620;
const MOST = 20;
const WIDE_LETTER = 8.2;

/** @param {string} centre @param {{name: string}[]} constants @param {Link[]} links */
export function neighbourhood(centre, constants, links) {
  const names = constants.map((constant) => constant.name).filter((other) => other !== centre);
  const joined = names
    .map((other) => ({ name: other, ties: between(centre, other, links) }))
    .filter((one) => one.ties.length);
  const others = joined.slice(0, MOST);
  const place = h("div", { class: "drawing" });
  let drawn = 0;
  const draw = () => {
    const width = place.clientWidth || NARROW;
    if (width === drawn) return;
    drawn = width;
    place.replaceChildren(width < NARROW ? rows(centre, others, width) : ring(centre, others, links, width));
  };
  new ResizeObserver(draw).observe(place);
  const left = joined.length - others.length;
  return h(
    "div",
    {},
    place,
    legend(links),
    left > 0 ? h("p", { class: "quiet" }, `${left} more stand in the list.`) : null,
    h("details", {}, h("summary", {}, "The same as a list"), h("ul", { class: "lines" }, ...links.map(listed))),
  );
}

/** @param {Link} item */
function listed(item) {
  const words = item.truth ? "known" : probability(item.probability);
  return h("li", {}, atomLink(item.atom), " ", h("span", { class: "quiet" }, words));
}

/** @param {Link[]} links */
function legend(links) {
  const sample = (/** @type {string} */ kind) =>
    s(
      "svg",
      { viewBox: "0 0 28 8", width: 28, height: 8, "aria-hidden": "true" },
      s("path", { class: `tie ${kind}`, d: "M0 4H28" }),
    );
  return h(
    "ul",
    { class: "legend" },
    links.some((item) => item.truth) ? h("li", {}, sample("known"), "known") : null,
    links.some((item) => !item.truth) ? h("li", {}, sample("believed"), "predicted, with its probability") : null,
  );
}

/** @param {string} centre @param {string} other @param {Link[]} links @returns {Tie[]} */
function between(centre, other, links) {
  /** @type {Map<string, Tie>} */
  const ties = new Map();
  for (const item of links) {
    const [isOut, isBack] = [item.from === centre && item.to === other, item.to === centre && item.from === other];
    if (!isOut && !isBack) continue;
    const key = JSON.stringify([item.predicate, Boolean(item.truth)]);
    const tie = ties.get(key) ?? {
      predicate: item.predicate,
      out: false,
      back: false,
      isKnown: Boolean(item.truth),
      probability: 0,
      atoms: [],
    };
    tie.out ||= isOut;
    tie.back ||= isBack;
    tie.probability = Math.max(tie.probability, item.probability);
    tie.atoms.push(item.atom);
    ties.set(key, tie);
  }
  return [...ties.values()];
}

/** @param {string} centre @param {{name: string, ties: Tie[]}[]} others @param {Link[]} links @param {number} width */
function ring(centre, others, links, width) {
  const height = Math.min(600, 230 + 26 * others.length);
  const [x, y] = [width / 2, height / 2];
  const [radiusX, radiusY] = [Math.min(width / 2 - 150, 340), height / 2 - 34];
  const spots = others.map((other, i) => {
    const angle = (2 * Math.PI * (i + 0.5)) / others.length - Math.PI / 2;
    const [dx, dy] = [Math.cos(angle), Math.sin(angle)];
    const anchor = dx > 0.2 ? "start" : dx < -0.2 ? "end" : "middle";
    return /** @type {Spot} */ ({ ...other, x: x + radiusX * dx, y: y + radiusY * dy, anchor });
  });
  const spokes = spots.flatMap((spot, number) => spot.ties.map((tie, i) => spoke(tie, [x, y], spot, i, number)));
  return picture(centre, width, height, [...chords(spots, links), ...spokes, ...spots.map(dot), middle(centre, x, y)]);
}

/** What joins two neighbours: known of them, too. @param {Spot[]} spots @param {Link[]} links */
function chords(spots, links) {
  return links.flatMap((item) => {
    const [from, to] = [item.from, item.to].map((end) => spots.find((spot) => spot.name === end));
    if (!from || !to || from === to) return [];
    const d = `M${from.x} ${from.y}L${to.x} ${to.y}`;
    return [
      s("path", { class: `tie chord ${item.truth ? "known" : "believed"}`, d }, s("title", {}, printable(item.atom))),
    ];
  });
}

/** @param {Tie} tie @param {boolean} isLeft */
function tieText(tie, isLeft) {
  const arrow = tie.out && tie.back ? "↔" : tie.out !== isLeft ? "→" : "←";
  const label = `${shortened(printable(tie.predicate), 18)}${tie.isKnown ? "" : ` ${probability(tie.probability)}`}`;
  return isLeft ? `${arrow} ${label}` : `${label} ${arrow}`;
}

/** @param {Tie} tie */
function title(tie) {
  const words = tie.isKnown ? "known" : probability(tie.probability);
  return s("title", {}, `${tie.atoms.map(printable).join(", ")}: ${words}`);
}

/** @param {Tie} tie @param {[number, number]} start @param {Spot} spot @param {number} i @param {number} number */
function spoke(tie, [x, y], spot, i, number) {
  const [dx, dy] = [spot.x - x, spot.y - y];
  const length = Math.hypot(dx, dy) || 1;
  const bend = (i - (spot.ties.length - 1) / 2) * 60;
  const [mx, my] = [x + dx / 2 - (dy / length) * bend, y + dy / 2 + (dx / length) * bend];
  const share = number % 2 ? 0.56 : 0.72; // labels of neighbours stand at different heights
  const at = (/** @type {number} */ a, /** @type {number} */ b, /** @type {number} */ c) =>
    (1 - share) ** 2 * a + 2 * share * (1 - share) * b + share ** 2 * c;
  return s(
    "g",
    {},
    s("path", { class: `tie ${tie.isKnown ? "known" : "believed"}`, d: `M${x} ${y}Q${mx} ${my} ${spot.x} ${spot.y}` }),
    s(
      "text",
      { class: "tie-name", x: at(x, mx, spot.x), y: at(y, my, spot.y) + 3, "text-anchor": "middle" },
      tieText(tie, dx < 0),
    ),
    title(tie),
  );
}

/** @param {Spot} spot */
function dot(spot) {
  const shift = { start: 12, end: -12, middle: 0 }[spot.anchor];
  const lift = spot.anchor === "middle" ? (spot.y < 150 ? -13 : 23) : 4;
  return s(
    "a",
    { href: aboutAddress(spot.name), class: "spot", "aria-label": printable(shortened(spot.name, 200)) },
    s("circle", { cx: spot.x, cy: spot.y, r: 6 }),
    s("text", { x: spot.x + shift, y: spot.y + lift, "text-anchor": spot.anchor }, printable(shortened(spot.name, 18))),
    s("title", {}, printable(spot.name)),
  );
}

/** @param {string} centre @param {number} x @param {number} y */
function middle(centre, x, y) {
  const text = printable(shortened(centre, 24));
  const width = centreWidth(text);
  return s(
    "g",
    { class: "centre" },
    s("rect", { x: x - width / 2, y: y - 17, width, height: 34, rx: 17 }),
    s("text", { x, y: y + 5, "text-anchor": "middle" }, text),
  );
}

/** @param {string} text */
function centreWidth(text) {
  return Math.max(Array.from(text).length * WIDE_LETTER + 28, 60);
}

/** @param {string} centre @param {{name: string, ties: Tie[]}[]} others @param {number} width */
function rows(centre, others, width) {
  const lines = others.flatMap((other) => other.ties.map((tie) => ({ other, tie })));
  const [top, step, spine] = [60, 46, 22];
  const marks = lines.map(({ other, tie }, i) => {
    const y = top + i * step;
    const way = `M${spine} ${i ? y - step + 10 : y - 30}V${y + 4}Q${spine} ${y + 10} ${spine + 6} ${y + 10}H${spine + 30}`;
    const spot = /** @type {Spot} */ ({ ...other, x: spine + 30, y: y + 10, anchor: "start" });
    const path = s("path", { class: `tie ${tie.isKnown ? "known" : "believed"}`, d: way });
    return s(
      "g",
      {},
      path,
      s("text", { class: "tie-name", x: spine + 42, y: y - 6 }, tieText(tie, false)),
      dot(spot),
      title(tie),
    );
  });
  const half = centreWidth(printable(shortened(centre, 24))) / 2;
  return picture(centre, width, top + lines.length * step, [...marks, middle(centre, half, 20)]);
}

/** @param {string} centre @param {number} width @param {number} height @param {SVGElement[]} marks */
function picture(centre, width, height, marks) {
  const label = `The neighbourhood of ${printable(shortened(centre, 60))}`;
  return s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": label }, ...marks);
}

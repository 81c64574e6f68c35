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
/** @typedef {{name: string, x: number, y: number, links: Link[], anchor: "start" | "middle" | "end"}} Spot */

const NARROW = 620;
const MOST = 24;

/** @param {string} centre @param {{name: string}[]} constants @param {Link[]} links */
export function neighbourhood(centre, constants, links) {
  const others = constants
    .map((constant) => constant.name)
    .filter((other) => other !== centre)
    .slice(0, MOST);
  const place = h("div", { class: "drawing" });
  let drawn = "";
  const draw = () => {
    const width = place.clientWidth || NARROW;
    const kind = width < NARROW ? "rows" : "ring";
    if (kind + width === drawn) return;
    drawn = kind + width;
    place.replaceChildren(kind === "rows" ? rows(centre, others, links, width) : ring(centre, others, links, width));
  };
  new ResizeObserver(draw).observe(place);
  return h(
    "div",
    {},
    place,
    legend(links),
    h("details", {}, h("summary", {}, "The same as a list"), h("ul", { class: "lines" }, ...links.map(listed))),
  );
}

/** @param {Link} item */
function listed(item) {
  return h(
    "li",
    {},
    atomLink(item.atom),
    " ",
    h("span", { class: "quiet" }, item.truth ? "known" : probability(item.probability)),
  );
}

/** @param {Link[]} links */
function legend(links) {
  const known = links.some((item) => item.truth);
  const believed = links.some((item) => !item.truth);
  const sample = (/** @type {string} */ kind) =>
    s(
      "svg",
      { viewBox: "0 0 28 8", width: 28, height: 8, "aria-hidden": "true" },
      s("path", { class: `tie ${kind}`, d: "M0 4H28" }),
    );
  return h(
    "ul",
    { class: "legend" },
    known ? h("li", {}, sample("known"), "known") : null,
    believed ? h("li", {}, sample("believed"), "predicted, with its probability") : null,
  );
}

/** @param {string} centre @param {string} other @param {Link[]} links */
function between(centre, other, links) {
  return links.filter(
    (item) => (item.from === centre && item.to === other) || (item.to === centre && item.from === other),
  );
}

/** @param {string} centre @param {string[]} others @param {Link[]} links @param {number} width */
function ring(centre, others, links, width) {
  const height = Math.min(560, 220 + 22 * others.length);
  const [x, y] = [width / 2, height / 2];
  const [radiusX, radiusY] = [Math.min(width / 2 - 130, 330), height / 2 - 34];
  const spots = others.map((other, i) => {
    const angle = (2 * Math.PI * (i + 0.5)) / others.length - Math.PI / 2;
    const [dx, dy] = [Math.cos(angle), Math.sin(angle)];
    const anchor = dx > 0.25 ? "start" : dx < -0.25 ? "end" : "middle";
    return /** @type {Spot} */ ({
      name: other,
      x: x + radiusX * dx,
      y: y + radiusY * dy,
      links: between(centre, other, links),
      anchor,
    });
  });
  const ties = spots.flatMap((spot) =>
    spot.links.map((item, i) => spoke(item, centre, [x, y], spot, i, spot.links.length)),
  );
  return picture(centre, width, height, [
    ...chords(spots, links),
    ...ties,
    ...spots.map((spot) => dot(spot)),
    middle(centre, x, y),
  ]);
}

/** What joins two neighbours. @param {Spot[]} spots @param {Link[]} links */
function chords(spots, links) {
  return links.flatMap((item) => {
    const [from, to] = [item.from, item.to].map((end) => spots.find((spot) => spot.name === end));
    if (!from || !to || from === to) return [];
    return [
      s(
        "path",
        { class: `tie chord ${item.truth ? "known" : "believed"}`, d: `M${from.x} ${from.y}L${to.x} ${to.y}` },
        title(item),
      ),
    ];
  });
}

/** @param {Link} item */
function title(item) {
  return s("title", {}, `${printable(item.atom)}: ${item.truth ? "known" : probability(item.probability)}`);
}

/** @param {Link} item @param {string} centre @param {[number, number]} start @param {Spot} spot @param {number} i @param {number} all */
function spoke(item, centre, [x, y], spot, i, all) {
  const [dx, dy] = [spot.x - x, spot.y - y];
  const length = Math.hypot(dx, dy) || 1;
  const bend = (i - (all - 1) / 2) * 44;
  const [mx, my] = [x + dx / 2 - (dy / length) * bend, y + dy / 2 + (dx / length) * bend];
  const share = 0.62;
  const at = (/** @type {number} */ a, /** @type {number} */ b, /** @type {number} */ c) =>
    (1 - share) ** 2 * a + 2 * share * (1 - share) * b + share ** 2 * c;
  const arrow = item.from === centre ? "→" : "←";
  const isLeft = dx < 0;
  const label = `${shortened(item.predicate, 18)}${item.truth ? "" : ` ${probability(item.probability)}`}`;
  const text = isLeft ? `${item.from === centre ? "←" : "→"} ${label}` : `${label} ${arrow}`;
  return s(
    "g",
    {},
    s("path", { class: `tie ${item.truth ? "known" : "believed"}`, d: `M${x} ${y}Q${mx} ${my} ${spot.x} ${spot.y}` }),
    s("text", { class: "tie-name", x: at(x, mx, spot.x), y: at(y, my, spot.y) + 3, "text-anchor": "middle" }, text),
    title(item),
  );
}

/** @param {Spot} spot */
function dot(spot) {
  const shift = spot.anchor === "start" ? 11 : spot.anchor === "end" ? -11 : 0;
  const lift = spot.anchor === "middle" ? (spot.links.length && spot.y < 120 ? -12 : 22) : 4;
  return s(
    "a",
    { href: aboutAddress(spot.name), class: "spot", "aria-label": printable(spot.name) },
    s("circle", { cx: spot.x, cy: spot.y, r: 6 }),
    s("text", { x: spot.x + shift, y: spot.y + lift, "text-anchor": spot.anchor }, printable(shortened(spot.name, 22))),
    s("title", {}, printable(spot.name)),
  );
}

/** @param {string} centre @param {number} x @param {number} y */
function middle(centre, x, y) {
  const text = printable(shortened(centre, 24));
  const width = Math.max(Array.from(text).length * 8.2 + 28, 60);
  return s(
    "g",
    { class: "centre" },
    s("rect", { x: x - width / 2, y: y - 17, width, height: 34, rx: 17 }),
    s("text", { x, y: y + 5, "text-anchor": "middle" }, text),
  );
}

/** @param {string} centre @param {string[]} others @param {Link[]} links @param {number} width */
function rows(centre, others, links, width) {
  const lines = others.flatMap((other) => between(centre, other, links).map((item) => ({ other, item })));
  const [top, step, spine] = [58, 46, 22];
  const marks = lines.map(({ other, item }, i) => {
    const y = top + i * step;
    const arrow = item.from === centre ? "→" : "←";
    const words = `${shortened(item.predicate, 22)} ${item.truth ? "" : probability(item.probability)} ${arrow}`;
    const spot = /** @type {Spot} */ ({ name: other, x: spine + 30, y: y + 10, links: [item], anchor: "start" });
    return s(
      "g",
      {},
      s("path", {
        class: `tie ${item.truth ? "known" : "believed"}`,
        d: `M${spine} ${y - 30}V${y + 4}Q${spine} ${y + 10} ${spine + 6} ${y + 10}H${spine + 30}`,
      }),
      s("text", { class: "tie-name", x: spine + 41, y: y - 5 }, words),
      dot(spot),
      title(item),
    );
  });
  const height = top + lines.length * step;
  const text = printable(shortened(centre, 24));
  const wide = Array.from(text).length * 8.2 + 28;
  return picture(centre, width, height, [...marks, middle(centre, Math.max(wide / 2, 30), 20)]);
}

/** @param {string} centre @param {number} width @param {number} height @param {SVGElement[]} marks */
function picture(centre, width, height, marks) {
  const label = `The neighbourhood of ${printable(shortened(centre, 60))}`;
  return s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": label }, ...marks);
}

/**
 * An explanation, drawn: atoms and ground rules as the server laid them out; width by effect, colour by truth.
 */

import { address } from "./address.js";
import { answerMarks } from "./answer_box.js";
import { h, printable, s } from "./dom.js";
import { narrowed } from "./narrow_graph.js";
import { probability, signed } from "./words.js";

/**
 * @typedef {object} Box
 * @property {string} id
 * @property {"atom" | "rule" | string} kind
 * @property {string} text
 * @property {string[]} lines
 * @property {number} x
 * @property {number} y
 * @property {number} column
 * @property {number} width
 * @property {number} height
 * @property {boolean | null} truth
 * @property {number | null} belief
 * @property {number | null} effect
 * @property {{fact?: string, rule?: string} | null} switch
 */
/** @typedef {{from: string, to: string, effect: number | null, points: [number, number][]}} Tie */
/** @typedef {{width: number, height: number, boxes: Box[], links: Tie[]}} Drawing */
/** @typedef {{fact?: string, rule?: string}} Item */
/** @typedef {{atom: string, changes: import("./address.js").Changes, turn: (item: Item) => void, layers: import("./layers.js").LayerBelief[]}} Context */

const [THINNEST, THICKEST] = [1.5, 9];
const MARGIN = 6;
const NARROW = 620; // below it, boxes stand below each other

/** The drawing, as wide as there is room. @param {Drawing} drawing @param {Context} context */
export function explanationGraph(drawing, context) {
  const place = h("div", { class: "reasons-place" });
  /** @type {boolean | null} */
  let isNarrow = null;
  const draw = () => {
    const wasNarrow = isNarrow;
    isNarrow = (place.parentElement?.clientWidth ?? NARROW) < NARROW;
    if (isNarrow !== wasNarrow)
      place.replaceChildren(isNarrow ? picture(narrowed(drawing), context, false) : picture(drawing, context, true));
  };
  requestAnimationFrame(() => place.parentElement && new ResizeObserver(draw).observe(place.parentElement));
  place.append(picture(drawing, context, true));
  return place;
}

/** @param {Drawing} drawing @param {Context} context @param {boolean} hasHeadings */
function picture(drawing, context, hasHeadings) {
  const strongest = Math.max(0, ...drawing.links.map((tie) => Math.abs(tie.effect ?? 0)));
  const [width, height] = [drawing.width + 2 * MARGIN, drawing.height + 2 * MARGIN];
  const drawn = s(
    "svg",
    {
      class: "reasons-drawing",
      viewBox: `${-MARGIN} ${-MARGIN} ${width} ${height}`,
      width,
      height,
      role: "group",
      "aria-label": "Atoms and ground rules",
    },
    ...(hasHeadings ? headings(drawing.boxes) : []),
    ...drawing.links.map((tie) => flow(tie, strongest)),
    ...drawing.boxes.map((box, i) => boxMark(box, context, i === 0)),
  );
  drawn.style.setProperty("--natural", `${width}px`);
  return drawn;
}

/** What each column holds: the answer, then ground rules and their atoms in turn. @param {Box[]} boxes */
function headings(boxes) {
  const columns = new Map();
  for (const box of boxes) columns.set(box.column, Math.min(columns.get(box.column) ?? Infinity, box.x));
  return [...columns].map(([column, x]) => {
    const text = column === 0 ? "the answer" : column % 2 ? "because of" : "given";
    return s("text", { class: "heading-text", x, y: 26 }, text);
  });
}

/** @param {Tie} tie @param {number} strongest */
function flow(tie, strongest) {
  const isFlow = tie.effect !== null && tie.effect !== undefined;
  const share = isFlow && strongest ? Math.min(Math.abs(tie.effect ?? 0) / strongest, 1) : 0;
  const kind = isFlow ? ((tie.effect ?? 0) < 0 ? "flow against" : "flow for") : "flow plain";
  const path = s("path", {
    class: kind,
    d: curve(tie.points),
    "stroke-width": THINNEST + share * (THICKEST - THINNEST),
  });
  if (isFlow) path.append(s("title", {}, `effect ${signed(tie.effect ?? 0)}`));
  return path;
}

/** Four points are a curve; others are joined. @param {[number, number][]} points */
function curve(points) {
  const [first, ...others] = points.map((point) => point.join(" "));
  return points.length === 4 ? `M${first}C${others.join(" ")}` : `M${[first, ...others].join("L")}`;
}

/** @param {Box} box @param {Context} context @param {boolean} isAnswer */
function boxMark(box, context, isAnswer) {
  const item = box.switch ?? turnedOff(box, context.changes);
  const isOff = item !== null && isSwitchedOff(item, context.changes);
  const classes = [
    "node",
    `is-${box.kind}`,
    side(box),
    isAnswer ? "answer" : "",
    isOff ? "off" : "",
    item ? "can-switch" : "",
  ];
  const marks = [
    frame(box),
    ...(isAnswer ? answerMarks(box, context.layers) : [...(box.kind === "atom" ? gauge(box) : []), ...texts(box)]),
    item ? knob(box, isOff) : null,
    s("title", {}, words(box, isOff)),
  ];
  const attributes = { class: classes.filter(Boolean).join(" "), transform: `translate(${box.x} ${box.y})` };
  if (item) return switchMark(box, item, isOff, attributes, marks, context);
  if (box.kind === "atom" && !isAnswer) {
    const href = address("/explain", { atom: box.text }, context.changes);
    return s("a", { ...attributes, href, "aria-label": `${words(box, false)}: why?` }, ...marks);
  }
  return s("g", { ...attributes, role: "img", "aria-label": words(box, false) }, ...marks);
}

/** @param {Box} box @param {Item} item @param {boolean} isOff @param {object} attributes @param {any[]} marks @param {Context} context */
function switchMark(box, item, isOff, attributes, marks, context) {
  const press = (/** @type {Event} */ event) => {
    if (event instanceof KeyboardEvent && ![" ", "Enter"].includes(event.key)) return;
    event.preventDefault();
    context.turn(item);
  };
  const key = `box ${item.fact ?? item.rule}`;
  const state = {
    role: "switch",
    tabindex: "0",
    "aria-checked": String(!isOff),
    "aria-label": words(box, isOff),
    "data-key": key,
  };
  return s("g", { ...attributes, ...state, on: { click: press, keydown: press } }, ...marks);
}

/** What was switched off stays in the drawing as far as it is drawn, and can be switched on again. @param {Box} box @param {import("./address.js").Changes} changes */
function turnedOff(box, changes) {
  const fact = changes.without.find((text) => text === box.text || text === `!${box.text}`);
  return box.kind === "atom" && fact !== undefined ? { fact } : null;
}

/** @param {Item} item @param {import("./address.js").Changes} changes */
export function isSwitchedOff(item, changes) {
  if (item.rule !== undefined) return changes.without_rules.includes(item.rule);
  return item.fact !== undefined && changes.without.includes(item.fact);
}

/** @param {Box} box */
function side(box) {
  if (box.kind === "rule") return (box.effect ?? 0) < 0 ? "against" : "for";
  if (box.truth !== null && box.truth !== undefined) return box.truth ? "for known" : "against known";
  return (box.belief ?? 0) >= 0.5 ? "for" : "against";
}

/** @param {Box} box */
function frame(box) {
  return s("rect", {
    class: "frame",
    width: box.width,
    height: box.height,
    rx: box.kind === "rule" ? box.height / 2 : 7,
  });
}

/** A check for what is true, a cross for what is false, an upright gauge for what is believed. @param {Box} box */
function gauge(box) {
  const middle = box.height / 2;
  if (box.truth === true) return [s("path", { class: "sign", d: `M11 ${middle}l4.5 5 7.5-10.5` })];
  if (box.truth === false) return [s("path", { class: "sign", d: `M12 ${middle - 5}l10 10m0-10l-10 10` })];
  const share = Math.min(Math.max(box.belief ?? 0, 0), 1);
  return [
    s("rect", { class: "track", x: 12, y: middle - 12, width: 8, height: 24, rx: 3 }),
    s("rect", {
      class: "level",
      x: 12,
      y: middle + 12 - 24 * share,
      width: 8,
      height: 24 * share,
      rx: Math.min(3, 12 * share),
    }),
  ];
}

/** @param {Box} box */
function texts(box) {
  const lines = (box.lines.length ? box.lines : [box.text]).map(printable);
  if (box.kind === "rule") return [s("text", { x: 14, y: box.height / 2 + 4.5 }, ...ruleWords(lines))];
  if (box.kind !== "atom") return [s("text", { class: "note-text", x: 8, y: box.height / 2 + 4 }, lines.join(" "))];
  return lines.map((line, i) => s("text", { class: i ? "note-text" : "first-text", x: 32, y: 19 + 16 * i }, line));
}

/** The effect of a ground rule, and its rule. @param {string[]} lines */
function ruleWords([effect, ...others]) {
  return [
    s("tspan", { class: "effect-text" }, effect),
    s("tspan", { class: "rule-name-text", dx: 9 }, others.join(" ")),
  ];
}

/** The little switch at the right edge. @param {Box} box @param {boolean} isOff */
function knob(box, isOff) {
  const [x, y] = [box.width - 14, -7];
  return s(
    "g",
    { class: "knob" },
    s("rect", { x: x - 12, y, width: 22, height: 12, rx: 6 }),
    s("circle", { cx: isOff ? x - 6 : x + 4, cy: y + 6, r: 4 }),
  );
}

/** @param {Box} box @param {boolean} isOff */
function words(box, isOff) {
  const text = printable(box.text || box.lines.join(" "));
  const state = isOff ? "switched off" : "";
  if (box.kind === "rule")
    return [`${text}`, box.effect === null ? "" : `effect ${signed(box.effect)}`, state].filter(Boolean).join(", ");
  const truth =
    box.truth === true
      ? "true by the facts"
      : box.truth === false
        ? "false by the facts"
        : `believed ${probability(box.belief)}`;
  return [text, isOff ? state : truth].filter(Boolean).join(", ");
}

/** What the marks mean. */
export function graphLegend() {
  const sample = (/** @type {string} */ kind, /** @type {number} */ width) =>
    s(
      "svg",
      { viewBox: "0 0 28 10", width: 28, height: 10, "aria-hidden": "true" },
      s("path", { class: `flow ${kind}`, d: "M0 5H28", "stroke-width": width }),
    );
  return h(
    "ul",
    { class: "legend" },
    h("li", {}, sample("for", 6), "speaks for it: the wider, the more"),
    h("li", {}, sample("against", 6), "speaks against it"),
    h("li", {}, h("span", { class: "swatch true", "aria-hidden": "true" }), "rather true"),
    h("li", {}, h("span", { class: "swatch false", "aria-hidden": "true" }), "rather false"),
    h("li", {}, "Click a fact or a rule to switch it off."),
  );
}

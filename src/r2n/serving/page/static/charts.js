/**
 * Curves and bars, drawn as small pictures that a phone can show.
 */

import { h, s } from "./dom.js";

const WIDTH = 320;
const [LEFT, RIGHT, TOP, BOTTOM] = [46, 12, 10, 34];
const MUCH = 100; // between the largest and the smallest: then by logarithms
const MOST_POINTS = 300;
/** @type {Record<string, string>} */
const RAISED = Object.fromEntries(Array.from("-0123456789", (digit, i) => [digit, "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"[i]]));

/** @typedef {{name: string, x: number[], y: (number | null)[], dots?: boolean}} Series */
/** @typedef {{low: number, high: number, start: number, end: number, isLog: boolean}} Axis */
/**
 * @typedef {object} Options
 * @property {string} words
 * @property {string} xLabel
 * @property {string} yLabel
 * @property {[number, number]} [xRange]
 * @property {[number, number]} [yRange]
 * @property {boolean} [hasGuide]
 * @property {number} [height]
 */

/** Series in one pair of axes. @param {Series[]} series @param {Options} options */
export function lineChart(series, options) {
  const height = options.height ?? 200;
  const ys = series.flatMap((part) => part.y).filter(isNumber);
  const isLog = !options.yRange && ys.length > 0 && Math.min(...ys) > 0 && Math.max(...ys) / Math.min(...ys) > MUCH;
  const [xLow, xHigh] = options.xRange ?? range(series.flatMap((part) => part.x));
  const [yLow, yHigh] = options.yRange ?? range(ys);
  const x = { low: xLow, high: xHigh, start: LEFT, end: WIDTH - RIGHT, isLog: false };
  const y = { low: yLow, high: yHigh, start: height - BOTTOM, end: TOP, isLog };
  const guide = options.hasGuide ? s("path", { class: "guide", d: `M${x.start} ${y.start}L${x.end} ${y.end}` }) : null;
  const lines = series.map((part, i) => line(part, i % 6, x, y));
  const label = isLog ? `${options.yLabel} (log scale)` : options.yLabel;
  return h("div", {}, frame(options.words, height, x, y, options.xLabel, label, [guide, ...lines]), legend(series));
}

/** Bars between edges. @param {number[]} edges @param {number[]} counts @param {Options} options */
export function barChart(edges, counts, options) {
  const height = options.height ?? 110;
  const x = { low: edges[0], high: edges[edges.length - 1], start: LEFT, end: WIDTH - RIGHT, isLog: false };
  const y = { low: 0, high: Math.max(1, ...counts), start: height - BOTTOM, end: TOP, isLog: false };
  const bars = counts.map((number, i) => {
    const [from, to, top] = [place(x, edges[i]), place(x, edges[i + 1]), place(y, number)];
    return s("rect", {
      class: "bar-mark",
      x: from + 0.5,
      y: top,
      width: Math.max(0.5, to - from - 1),
      height: y.start - top,
    });
  });
  return frame(options.words, height, x, y, options.xLabel, options.yLabel, bars, 2);
}

/** @param {unknown} value @returns {value is number} */
function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

/** @param {number[]} values @returns {[number, number]} */
function range(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  if (!values.length) return [0, 1];
  return high > low ? [low, high] : [low - 0.5, high + 0.5];
}

/** @param {Axis} axis @param {number} value */
function place(axis, value) {
  const at = axis.isLog ? Math.log10 : (/** @type {number} */ number) => number;
  const share = (at(value) - at(axis.low)) / (at(axis.high) - at(axis.low));
  return Math.round(10 * (axis.start + share * (axis.end - axis.start))) / 10;
}

/** Round numbers on an axis. @param {Axis} axis @param {number} most */
function ticks(axis, most) {
  if (axis.isLog) {
    const [from, to] = [Math.ceil(Math.log10(axis.low)), Math.floor(Math.log10(axis.high))];
    const step = Math.max(1, Math.ceil((to - from) / most));
    return Array.from({ length: Math.max(Math.floor((to - from) / step) + 1, 0) }, (_, i) => 10 ** (from + i * step));
  }
  const rough = (axis.high - axis.low) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10);
  const first = Math.ceil(axis.low / step - 1e-9);
  const last = Math.floor(axis.high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
}

/** `0.01`, `1`, `100`, and the power of ten where that is shorter. @param {number} value */
function powerText(value) {
  const exponent = Math.round(Math.log10(value));
  if ((exponent >= -2 && exponent <= 3) || Math.abs(Math.log10(value) - exponent) > 1e-9)
    return String(Number(value.toPrecision(6)));
  return `10${String(exponent).replace(/./g, (digit) => RAISED[digit])}`;
}

/** @param {string} words @param {number} height @param {Axis} x @param {Axis} y @param {string} xLabel @param {string} yLabel @param {(SVGElement | null)[]} marks @param {number} [most] */
function frame(words, height, x, y, xLabel, yLabel, marks, most = 4) {
  const text = (/** @type {number} */ value) => (y.isLog ? powerText(value) : String(Number(value.toPrecision(6))));
  const across = ticks(y, most).map((value) => [
    s("path", { class: "grid", d: `M${x.start} ${place(y, value)}H${x.end}` }),
    s("text", { x: x.start - 6, y: place(y, value) + 4, "text-anchor": "end" }, text(value)),
  ]);
  const along = ticks(x, 5).map((value) =>
    s("text", { x: place(x, value), y: height - BOTTOM + 15, "text-anchor": "middle" }, text(value)),
  );
  return s(
    "svg",
    { class: "chart", viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": words },
    ...across,
    ...along,
    s("path", { class: "axis", d: `M${x.start} ${y.end}V${y.start}H${x.end}` }),
    s("text", { x: (x.start + x.end) / 2, y: height - 4, "text-anchor": "middle" }, xLabel),
    s(
      "text",
      {
        x: 10,
        y: (y.start + y.end) / 2,
        "text-anchor": "middle",
        transform: `rotate(-90 10 ${(y.start + y.end) / 2})`,
      },
      yLabel,
    ),
    ...marks,
  );
}

/** @param {Series} series @param {number} kind @param {Axis} x @param {Axis} y */
function line(series, kind, x, y) {
  const step = Math.max(1, Math.ceil(series.x.length / MOST_POINTS));
  const isKept = (/** @type {number} */ i) => i % step === 0 || i === series.x.length - 1;
  const points = series.x.map((value, i) => ({ x: value, y: series.y[i] })).filter((_, i) => isKept(i));
  let path = "";
  let isOpen = false;
  for (const point of points) {
    if (!isNumber(point.y)) isOpen = false;
    else {
      path += `${isOpen ? "L" : "M"}${place(x, point.x)} ${place(y, point.y)}`;
      isOpen = true;
    }
  }
  const dots = series.dots
    ? points
        .filter((point) => isNumber(point.y))
        .map((point) => s("circle", { class: "dot", cx: place(x, point.x), cy: place(y, Number(point.y)), r: 3 }))
    : [];
  return s("g", { class: `k${kind}` }, s("path", { class: "line", d: path }), ...dots);
}

/** @param {Series[]} series */
function legend(series) {
  if (series.length < 2) return null;
  const sample = (/** @type {number} */ i) =>
    s(
      "svg",
      { class: `k${i % 6}`, viewBox: "0 0 26 8", width: 26, height: 8, "aria-hidden": "true" },
      s("path", { class: "line", d: "M0 4H26" }),
    );
  return h("ul", { class: "legend" }, ...series.map((part, i) => h("li", {}, sample(i), part.name)));
}

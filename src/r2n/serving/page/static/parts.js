/**
 * Small parts that several views show: bars, marks of known atoms, errors, the changes of a what-if.
 */

import { address, nothing } from "./address.js";
import { h, link, name, printable } from "./dom.js";
import { counted, probability, signed, standing } from "./words.js";

/** @typedef {import("./address.js").Changes} Changes */
/**
 * @typedef {object} Answer
 * @property {string} atom
 * @property {number} probability
 * @property {boolean | null} known
 * @property {boolean} closed
 * @property {number} network
 * @property {number} logit
 * @property {boolean} reached
 * @property {number | null} spread
 * @property {number | null} share
 */
/**
 * @typedef {object} Fitted
 * @property {number} temperature
 * @property {number} shift
 * @property {string} fitted_on
 * @property {string} why_not
 * @property {Record<string, number[]>} by_rows
 */
/** @typedef {Fitted | null} Calibration */

const MOST_LISTED = 4;

/** A bar from 0 to 1, with a line for the spread where there is one. @param {number} share @param {[number, number] | null} [span] */
export function bar(share, span = null) {
  const fill = h("span", { class: "fill" });
  fill.style.setProperty("--share", String(share));
  const whisker = span && h("span", { class: "whisker" });
  if (span && whisker) {
    whisker.style.setProperty("--from", String(span[0]));
    whisker.style.setProperty("--to", String(span[1]));
  }
  return h("span", { class: "bar", "aria-hidden": "true" }, fill, whisker);
}

/** An answer's probability as a bar and a number, with its spread. @param {Answer} answer @param {Calibration} calibration */
export function probabilityBar(answer, calibration) {
  const span = spreadOf(answer, calibration);
  const [from, to] = (span ?? []).map(probability);
  const words = span && from !== to ? h("span", { class: "spread" }, `${from} to ${to}`) : null;
  const title = span ? `the networks differ by ±${answer.spread?.toFixed(2)} (logit)` : null;
  const shown = h("span", { class: "number" }, probability(answer.probability));
  return h("span", { class: "measured", title }, bar(answer.probability, span), shown, words);
}

/** Between which probabilities the networks of an ensemble lie. @param {Answer} answer @param {Calibration} calibration */
function spreadOf(answer, calibration) {
  if (answer.spread === null || answer.spread === undefined || standing(answer) === "true") return null;
  if (answer.known !== null || answer.closed) return null;
  if (calibration && Object.keys(calibration.by_rows).length) return null; // it is not the logit's alone
  const { temperature, shift } = calibration ?? { temperature: 1, shift: 0 };
  const at = (/** @type {number} */ logit) => 1 / (1 + Math.exp(-(logit - shift) / temperature));
  return /** @type {[number, number]} */ ([at(answer.logit - answer.spread), at(answer.logit + answer.spread)]);
}

/** What is known of an answer, as a mark. @param {{known: boolean | null, closed: boolean, reached?: boolean}} answer */
export function knownMark(answer) {
  const text = standing(answer);
  /** @type {Record<string, [string, string]>} */
  const marks = {
    true: ["is-true", "known"],
    false: ["is-false", "known false"],
    closed: ["is-false", "closed, false"],
  };
  const [kind, words] = marks[text] ?? ["is-open", text];
  return words ? h("span", { class: `mark ${kind}` }, words) : null;
}

/** An atom that leads to its explanation. @param {string} atom @param {Changes} [changes] */
export function atomLink(atom, changes = nothing()) {
  return link(address("/explain", { atom }, changes), { class: "atom-link", title: "why?" }, name(atom));
}

/** A change of a number, by its sign. @param {number} value */
export function effect(value) {
  return h("span", { class: value < 0 ? "effect minus" : "effect plus" }, signed(value));
}

/** What was refused, with a caret where it is wrong. @param {import("./api.js").Refused} error */
export function refusal(error) {
  const where = error.where && !error.caret ? h("p", { class: "quiet" }, name(error.where, "plain")) : null;
  return h(
    "div",
    { class: "refusal", role: "alert", id: "refusal" },
    h("p", { class: "what" }, name(error.what, "plain")),
    error.caret ? caretLines(error.caret) : where,
    error.hint ? h("p", { class: "hint" }, name(error.hint, "plain")) : null,
  );
}

/** @param {import("./api.js").Caret} caret */
function caretLines(caret) {
  const before = Array.from(caret.line).slice(0, Math.max(caret.column - 1, 0));
  const lines = `${printable(caret.line)}\n${" ".repeat(before.length)}^`;
  return h("pre", { class: "caret", tabindex: "0", role: "group", "aria-label": `column ${caret.column}` }, lines);
}

/** The changes of a what-if, with links to edit and to reset them. @param {Changes} changes @param {string} without */
export function changesNote(changes, without) {
  const all = changeTexts(changes);
  if (!all.length) return null;
  const shown = all.slice(0, MOST_LISTED).flatMap(([text, words], i) => [i ? ", " : "", name(text), ` ${words}`]);
  const left = all.length - MOST_LISTED;
  const more = left > 0 ? `, and ${counted(left, "more change")}` : "";
  const links = [link(address("/what-if", {}, changes), {}, "Show all changes"), " · ", link(without, {}, "Reset")];
  return h("p", { class: "note" }, "What if: ", ...shown, more, h("span", { class: "links" }, ...links));
}

/** @param {Changes} changes @returns {[string, string][]} */
function changeTexts(changes) {
  return [
    ...changes.without.map((fact) => /** @type {[string, string]} */ ([fact, "not known"])),
    ...changes.with.map((fact) => /** @type {[string, string]} */ ([fact, "known"])),
    ...changes.constants.map(([, constant]) => /** @type {[string, string]} */ ([constant, "a new constant"])),
    ...changes.without_rules.map((rule) => /** @type {[string, string]} */ ([rule, "switched off"])),
  ];
}

/** Nothing is there to show, and why. @param {string} text */
export function empty(text) {
  return h("p", { class: "empty" }, text);
}

/** A number under its name. @param {[string, string | Node][]} pairs */
export function figures(pairs) {
  return h(
    "dl",
    { class: "figures" },
    ...pairs.map(([term, value]) => h("div", {}, h("dt", {}, term), h("dd", {}, value))),
  );
}

/**
 * The facts and rules of an explanation as switches: off, and the answer is that of a world without them.
 */

import { button, h, name } from "./dom.js";
import { isSwitchedOff, switchOf } from "./drawing.js";
import { bar, empty } from "./parts.js";
import { probability } from "./words.js";

/** @typedef {import("./drawing.js").Item} Item */
/** @typedef {import("./address.js").Changes} Changes */

/**
 * All that can be switched: what is drawn now or was drawn before, and what is off.
 * @param {any} now @param {any} before @param {Changes} changes @param {(item: Item) => void} turn
 */
export function switches(now, before, changes, turn) {
  const items = gathered(before ? [before, now] : [now], changes);
  if (!items.length) return empty("There is nothing to switch off.");
  const first = before ?? now;
  const changed = items.map((item) => ({ item, without: otherwise(first, item) }));
  const line = (/** @type {{item: Item, without: number | null}} */ part) =>
    switchLine(part.item, part.without, changes, turn);
  const facts = changed.filter((part) => part.item.fact !== undefined);
  const rules = changed.filter((part) => part.item.rule !== undefined);
  return [
    h(
      "p",
      { class: "quiet" },
      "Switch one off to see the answer move. The number is the answer without it, where it was asked.",
    ),
    facts.length
      ? [h("h3", { id: "switch-facts" }, "Facts"), h("ul", { class: "switches" }, ...facts.map(line))]
      : null,
    rules.length
      ? [h("h3", { id: "switch-rules" }, "Rules"), h("ul", { class: "switches" }, ...rules.map(line))]
      : null,
  ];
}

/** @param {any[]} explanations @param {Changes} changes @returns {Item[]} */
function gathered(explanations, changes) {
  const facts = new Set(changes.without);
  const rules = new Set(changes.without_rules);
  for (const explanation of explanations) {
    for (const node of explanation.drawing.nodes) {
      const item = switchOf(node, changes);
      if (item?.fact !== undefined) facts.add(item.fact);
      if (item?.rule !== undefined) rules.add(item.rule);
    }
    for (const item of explanation.counterfactuals ?? []) {
      if (item.kind === "without rule") rules.add(item.what[0]);
    }
  }
  return [...[...facts].map((fact) => ({ fact })), ...[...rules].map((rule) => ({ rule }))];
}

/** What the answer would be without it, where the explanation says so. @param {any} explanation @param {Item} item */
function otherwise(explanation, item) {
  const found = (explanation.counterfactuals ?? []).find((/** @type {any} */ other) => {
    if (other.what.length !== 1) return false;
    if (item.rule !== undefined) return other.kind === "without rule" && other.what[0] === item.rule;
    return other.kind === "not known" && (other.what[0] === item.fact || `!${other.what[0]}` === item.fact);
  });
  return found ? found.probability : null;
}

/** @param {Item} item @param {number | null} without @param {Changes} changes @param {(item: Item) => void} turn */
function switchLine(item, without, changes, turn) {
  const isOff = isSwitchedOff(item, changes);
  const text = item.fact ?? item.rule ?? "";
  const shown = h("span", { class: "switch-name" }, name(text, item.rule === undefined ? "atom" : "plain"));
  const number =
    without === null
      ? null
      : h("span", { class: "measured without" }, bar(without), h("span", { class: "number" }, probability(without)));
  const attributes = {
    class: "switch",
    role: "switch",
    "aria-checked": String(!isOff),
    "data-key": `switch ${text}`,
    on: { click: () => turn(item) },
  };
  return h("li", {}, button(attributes, h("span", { class: "knob-box", "aria-hidden": "true" }), shown), number);
}

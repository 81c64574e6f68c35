/**
 * The list of changes of a what-if, and the forms that add to it.
 */

import { address } from "./address.js";
import { atomField } from "./completion.js";
import { button, h, name } from "./dom.js";
import { empty } from "./parts.js";

/** @typedef {import("./main.js").Setting} Setting */
/** @typedef {import("./address.js").Changes} Changes */

/** @param {Setting} setting @param {Changes} changes @param {string} asked */
export function editor(setting, changes, asked) {
  const change = (/** @type {Partial<Changes>} */ other) =>
    setting.go(address("/what-if", { ask: asked }, { ...changes, ...other }));
  return [
    listed(changes, change),
    factForm(changes, change),
    constantForm(setting.run, changes, change),
    ruleForm(setting.run, changes, change),
    questionForm(setting, changes, asked),
  ];
}

/** @param {Changes} changes @param {(other: Partial<Changes>) => void} change */
function listed(changes, change) {
  const lists = /** @type {[("with" | "without" | "without_rules"), string][]} */ ([
    ["without", "not known"],
    ["with", "known too"],
    ["without_rules", "rule off"],
  ]);
  const items = lists.flatMap(([key, title]) =>
    changes[key].map((text) =>
      line(title, key, text, () => change({ [key]: changes[key].filter((other) => other !== text) })),
    ),
  );
  const constants = changes.constants.map((pair) => {
    const text = `${pair[1]} in ${pair[0]}`;
    return line("new constant", "constant", text, () =>
      change({ constants: changes.constants.filter((other) => other !== pair) }),
    );
  });
  const all = [...constants, ...items];
  return all.length ? h("ul", { class: "changes", "aria-label": "Changes" }, ...all) : empty("None yet.");
}

/** @param {string} title @param {string} kind @param {string} text @param {() => void} remove */
function line(title, kind, text, remove) {
  return h(
    "li",
    { class: `change ${kind}` },
    h("span", { class: "mark" }, title),
    name(text),
    button({ class: "remove", "aria-label": `Take back: ${text}`, on: { click: remove } }, "×"),
  );
}

/** @param {Changes} changes @param {(other: Partial<Changes>) => void} change */
function factForm(changes, change) {
  const { element, input } = atomField({ id: "fact", label: "Fact", placeholder: "a fact, or ! and what is false" });
  const add = (/** @type {"with" | "without"} */ key) => {
    const fact = input.value.trim();
    if (fact && !changes[key].includes(fact)) change({ [key]: [...changes[key], fact] });
    else input.focus();
  };
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    add("with");
  };
  return h(
    "form",
    { class: "stack", on: { submit } },
    h("label", { for: "fact" }, "A fact"),
    element,
    h(
      "div",
      { class: "row" },
      h("button", { id: "add-fact" }, "Add it"),
      button({ id: "take-fact", on: { click: () => add("without") } }, "Take it away"),
    ),
  );
}

/** @param {any} run @param {Changes} changes @param {(other: Partial<Changes>) => void} change */
function constantForm(run, changes, change) {
  const domains = run.domains.filter((/** @type {any} */ domain) => !domain.parts?.length);
  const options = domains.map((/** @type {any} */ domain) => h("option", { value: domain.name }, domain.name));
  const field = /** @type {HTMLInputElement} */ (
    h("input", { id: "new-constant", type: "text", autocomplete: "off", spellcheck: "false" })
  );
  const choice = /** @type {HTMLSelectElement} */ (
    h("select", { id: "new-domain", "aria-label": "Its domain" }, ...options)
  );
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const constant = field.value.trim();
    if (constant) change({ constants: [...changes.constants, [choice.value, constant]] });
  };
  return h(
    "form",
    { class: "stack", on: { submit } },
    h("label", { for: "new-constant" }, "A new constant"),
    h("div", { class: "row" }, field, choice, h("button", { id: "add-constant" }, "Add it")),
  );
}

/** @param {any} run @param {Changes} changes @param {(other: Partial<Changes>) => void} change */
function ruleForm(run, changes, change) {
  const left = run.rules.filter((/** @type {any} */ rule) => !changes.without_rules.includes(rule.name));
  if (!left.length) return null;
  const options = left.map((/** @type {any} */ rule) => h("option", { value: rule.name }, rule.name));
  const choice = /** @type {HTMLSelectElement} */ (h("select", { id: "rule" }, ...options));
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    change({ without_rules: [...changes.without_rules, choice.value] });
  };
  return h(
    "form",
    { class: "stack", on: { submit } },
    h("label", { for: "rule" }, "A rule"),
    h("div", { class: "row" }, choice, h("button", { id: "rule-off" }, "Switch it off")),
  );
}

/** @param {Setting} setting @param {Changes} changes @param {string} asked */
function questionForm(setting, changes, asked) {
  const { element, input } = atomField({
    id: "question",
    label: "Compare the answers to",
    value: asked,
    placeholder: "all answers",
  });
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    setting.go(address("/what-if", { ask: input.value.trim() }, changes));
  };
  return h(
    "form",
    { class: "stack", on: { submit } },
    h("label", { for: "question" }, "Compare the answers to"),
    element,
    h("div", { class: "row" }, h("button", { id: "compare" }, "Compare")),
  );
}

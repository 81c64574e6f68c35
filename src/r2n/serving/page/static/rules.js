/**
 * The view of the rules: what each does to the answers, and what the implicit ones have learned.
 */

import { address, nothing } from "./address.js";
import { get } from "./api.js";
import { h, link, name, section } from "./dom.js";
import { effect, empty } from "./parts.js";
import { sortingOf, table } from "./table.js";
import { count, counted, number } from "./words.js";

/** @typedef {import("./main.js").Setting} Setting */

/** @param {Setting} setting */
export async function showRules(setting) {
  const report = await get("/api/rules", setting.signal);
  const state = new URLSearchParams(setting.place.query);
  const shown = table({
    label: "Rules",
    columns: columns(report.metric ?? "metric"),
    rows: report.rules,
    sorting: sortingOf(setting.place.query),
    onSort: (sorting) => {
      if (sorting) state.set("sort", sorting.key);
      state.set("order", sorting?.isUp ? "up" : "down");
      setting.note(`/rules?${state}`);
    },
  });
  return {
    title: "Rules",
    said: counted(report.rules.length, "rule"),
    content: [
      h("div", { class: "hero" }, h("h1", {}, "Rules"), h("p", { class: "quiet" }, basis(report))),
      report.rules.length ? shown.element : empty("There are no rules."),
      report.left_out
        ? h("p", { class: "quiet" }, `${counted(report.left_out, "rule")} more: r2n rules RUN lists them.`)
        : null,
      section("What the columns say", explained(report)),
      ...report.notes.map((/** @type {string} */ note) => h("p", { class: "quiet" }, name(note, "plain"))),
    ],
  };
}

/** @param {any} report */
function basis(report) {
  const parts = [
    `What each rule does to the answers to ${counted(report.queries, "query", "queries")}${report.split ? ` (${report.split})` : ""}.`,
  ];
  if (report.value !== null)
    parts.push(
      `With all rules the ${report.metric} is ${number(report.value)}${report.none === null ? "" : `, without any ${number(report.none)}`}.`,
    );
  return parts.join(" ");
}

/** @param {string} metric @returns {import("./table.js").Column[]} */
function columns(metric) {
  return [
    { key: "name", title: "Rule", kind: "rule-name", isHeader: true, cell: ruleCell, order: (rule) => rule.name },
    {
      key: "ground_rules",
      title: "Ground rules",
      kind: "n",
      cell: (rule) => count(rule.ground_rules),
      order: (rule) => rule.ground_rules,
    },
    {
      key: "satisfied",
      title: "Satisfied",
      kind: "n",
      cell: (rule) => percent(rule.satisfied),
      order: (rule) => rule.satisfied,
    },
    { key: "out", title: "out(g)", kind: "n", cell: (rule) => number(rule.out, 3), order: (rule) => rule.out },
    { key: "effect", title: "Effect", kind: "n", cell: (rule) => number(rule.effect, 3), order: (rule) => rule.effect },
    {
      key: "gain",
      title: "Gain",
      kind: "n",
      cell: (rule) => (rule.gain === null ? "–" : effect(rule.gain)),
      order: (rule) => rule.gain,
    },
    { key: "changed", title: "Logits changed", kind: "n", cell: (rule) => count(rule.changed), order: (rule) => rule.changed },
    {
      key: "without",
      title: `${metric} without`,
      kind: "n",
      cell: (rule) => number(rule.without),
      order: (rule) => rule.without,
    },
    {
      key: "alone",
      title: `${metric} alone`,
      kind: "n",
      cell: (rule) => number(rule.alone),
      order: (rule) => rule.alone,
    },
  ];
}

/** @param {number | null} share */
function percent(share) {
  return share === null || share === undefined ? "–" : `${(100 * share).toFixed(1)} %`;
}

/** @param {any} rule */
function ruleCell(rule) {
  const off = address("/what-if", {}, { ...nothing(), without_rules: [rule.name] });
  return [
    h("strong", {}, name(rule.name, "plain")),
    rule.kind === "explicit" ? null : h("span", { class: "mark is-open" }, rule.kind),
    h("span", { class: "rule-text" }, name(body(rule))),
    clauses(rule.clauses),
    link(off, { class: "aside" }, "what if ", h("span", { class: "unseen" }, rule.name, " were "), "switched off?"),
  ];
}

/** The rule without its name, which stands above it. @param {any} rule */
function body(rule) {
  const start = ["rule", "implicit"].map((kind) => `${kind} ${rule.name}: `).find((text) => rule.text.startsWith(text));
  return rule.text.slice(start?.length ?? 0);
}

/** @param {any[]} items */
function clauses(items) {
  if (!items.length) return null;
  const lines = items.map((clause) =>
    h(
      "li",
      {},
      name(clause.clause),
      h(
        "span",
        { class: "quiet" },
        ` support ${count(clause.support)}, confidence ${number(clause.confidence, 3)}, fidelity ${number(clause.fidelity, 3)}`,
      ),
    ),
  );
  return h(
    "details",
    {},
    h("summary", {}, counted(items.length, "learned clause")),
    h("ul", { class: "clauses" }, ...lines),
  );
}

/** @param {any} report */
function explained(report) {
  const metric = report.metric ?? "metric";
  const lines = [
    ["satisfied", "the share of its ground rules, of those that are known, that hold"],
    ["out(g)", "how sure the network is that its ground rules hold"],
    ["effect", "by how much it moves logits, in either direction"],
    ["gain", "by how much it moves the probability of what is true: what is positive helps"],
    ["logits changed", "how many logits change without it"],
    [`${metric} without, alone`, "the metric without this rule, and without all others"],
  ];
  return h("dl", { class: "facts" }, ...lines.map(([term, words]) => [h("dt", {}, term), h("dd", {}, words)]));
}

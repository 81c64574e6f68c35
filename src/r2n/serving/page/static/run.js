/**
 * The view of the run: what was trained, its curves, its metrics with their protocol, and its reliability.
 */

import { get } from "./api.js";
import { h, name, section } from "./dom.js";
import { svgElement } from "./drawing.js";
import { empty, figures } from "./parts.js";
import { table } from "./table.js";
import { calibrationText, count, number } from "./words.js";

/** @typedef {import("./main.js").Setting} Setting */

const RANKS = ["1", "2-3", "4-10", "11-100", "above 100"];
const MOST_PREDICATES = 40;

/** @param {Setting} setting */
export async function showRun(setting) {
  const { run, signal } = setting;
  const report = await get("/api/report", signal);
  const results = report.results ?? [];
  return {
    title: "Run",
    content: [
      h("div", { class: "hero" }, h("h1", {}, name(run.problem, "plain")), figures(facts(run, report))),
      ...(report.notes ?? []).map((/** @type {string} */ note) => h("p", {}, name(note, "plain"))),
      section("Training", cards(report.charts.training, "There are no curves.")),
      section(
        "Results",
        results.length ? h("div", { class: "splits" }, ...results.map(metrics)) : empty("Its queries were not asked."),
      ),
      section(
        "Reliability",
        h("p", { class: "quiet" }, calibrationText(run.calibration)),
        cards(report.charts.reliability, "There is nothing to compare probabilities with."),
      ),
      ranks(results),
      section("The model", h("dl", { class: "facts" }, ...model(run))),
    ],
  };
}

/** @param {any} run @param {any} report @returns {[string, string][]} */
function facts(run, report) {
  const first = /** @type {[string, string][]} */ (report.figures ?? []);
  return [
    ...first,
    ["facts", count(run.facts)],
    ["constants", count(run.constants)],
    ["rules", count(run.rules.length)],
  ];
}

/** @param {any} run */
function model(run) {
  const names = ["input", "layers", "dim", "strategy", "evidence_input", "networks", "version"];
  const lines = names
    .filter((key) => run[key] !== undefined && run[key] !== null)
    .map((key) => [key.replaceAll("_", " "), String(run[key])]);
  const domains = run.domains
    .map((/** @type {any} */ domain) => `${domain.name} ${count(domain.constants)}`)
    .join(", ");
  return [...lines, ["domains", domains]].map(([term, value]) => [
    h("dt", {}, term),
    h("dd", {}, name(value, "plain")),
  ]);
}

/** Charts with their captions. @param {{heading: string, text: string, charts: string[]}[]} all @param {string} without */
function cards(all, without) {
  if (!all.length) return empty(without);
  const figures = all.map((card) => {
    const caption = h("figcaption", {}, name(card.heading, "plain"), h("span", { class: "quiet" }, card.text));
    return h("figure", {}, caption, ...card.charts.map(svgElement));
  });
  return h("div", { class: "cards" }, ...figures);
}

/** @param {any} result */
function metrics(result) {
  const report = result.report ?? result;
  const baselines = Object.entries(report.baselines ?? {});
  const names = Object.keys(report.metrics);
  /** @type {import("./table.js").Column[]} */
  const columns = [
    { key: "metric", title: "metric", isHeader: true, cell: (key) => key },
    { key: "network", title: "network", kind: "n best", cell: (key) => number(report.metrics[key]) },
    ...baselines.map(([title, values]) => ({
      key: title,
      title,
      kind: "n",
      cell: (/** @type {string} */ key) => number(values[key]),
    })),
  ];
  const said = protocol(report.protocol);
  return h(
    "div",
    { class: "split" },
    h("h3", {}, "Queries ", name(report.split, "plain")),
    table({ label: `Metrics of ${report.split}`, caption: said[0], columns, rows: names }).element,
    report.protocol.nothing_to_rank ? h("p", {}, `No metrics: ${report.protocol.nothing_to_rank}.`) : null,
    h(
      "details",
      {},
      h("summary", {}, "How it was measured"),
      h("ul", { class: "protocol" }, ...said.slice(1).map((words) => h("li", {}, words))),
    ),
  );
}

/** How a split was asked, a sentence each. @param {Record<string, any>} given */
function protocol(given) {
  const task = String(given.task ?? "queries");
  const true_ = "true" in given ? `, ${count(given.true)} of them true` : "";
  const heldOut = given.not_held_out ? ` Not held out: ${given.not_held_out}.` : "";
  const said = [`${task[0].toUpperCase()}${task.slice(1)} of ${count(given.queries)} queries${true_}.${heldOut}`];
  for (const [key, value] of Object.entries(given)) {
    const apart = ["task", "queries", "true", "nothing_to_rank", "not_held_out", "reasoning_harms"];
    if (apart.includes(key) || value === 0 || value === "") continue;
    said.push(`${key.replaceAll("_", " ")}: ${typeof value === "number" ? count(value) : value}.`);
  }
  return said;
}

/** @param {any[]} results */
function ranks(results) {
  const parts = results.filter((result) => result.ranks?.length);
  if (!parts.length) return null;
  const legend = RANKS.map((words, i) =>
    h("li", {}, h("span", { class: `swatch r${i}`, "aria-hidden": "true" }), i ? words : `rank ${words}`),
  );
  return section("Ranks", h("ul", { class: "legend" }, ...legend), ...parts.map(rankTable));
}

/** @param {any} result */
function rankTable(result) {
  const split = (result.report ?? result).split;
  /** @type {import("./table.js").Column[]} */
  const columns = [
    { key: "predicate", title: "predicate", kind: "name", isHeader: true, cell: (part) => name(part.name) },
    { key: "ranks", title: "ranks", kind: "n", cell: (part) => count(part.ranks) },
    { key: "shares", title: "of which", kind: "wide", cell: shares },
  ];
  const rows = result.ranks.slice(0, MOST_PREDICATES);
  return [
    h("h3", {}, "Queries ", name(split, "plain")),
    table({ label: `Ranks of ${split}`, columns, rows }).element,
  ];
}

/** The ranks of a predicate as pieces of one bar. @param {any} part */
function shares(part) {
  const bars = part.counts.map((/** @type {number} */ value, /** @type {number} */ i) => {
    const piece = h("span", { class: `piece r${i}` });
    piece.style.setProperty("--share", String(value / Math.max(1, part.ranks)));
    return piece;
  });
  const words = part.counts
    .map((/** @type {number} */ value, /** @type {number} */ i) => `rank ${RANKS[i]}: ${count(value)}`)
    .join(", ");
  return h("span", { class: "pieces", role: "img", "aria-label": words }, ...bars);
}

/**
 * The view of the run: what was trained, its curves, its metrics with their protocol, and its reliability.
 */

import { get } from "./api.js";
import { barChart, lineChart } from "./charts.js";
import { h, name, section } from "./dom.js";
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
      section("Training", curves(report.networks ?? [])),
      section(
        "Results",
        results.length ? h("div", { class: "splits" }, ...results.map(metrics)) : empty("Its queries were not asked."),
      ),
      section("Reliability", reliability(results, run.calibration)),
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

/** @param {any[][]} networks */
function curves(networks) {
  const all = networks.flatMap((part, i) =>
    part.map((curve) => ({
      ...curve,
      name: networks.length > 1 ? `${curve.name} ${i + 1}` : curve.name,
      kind: curve.name,
    })),
  );
  const told = networks.length > 1 ? all.filter((curve) => ["loss", "valid"].includes(curve.kind)) : all;
  const used = told.filter((curve) => curve.values.some((/** @type {number} */ value) => value));
  if (!used.length) return empty("There are no curves.");
  const panels = [...new Set(used.map((curve) => curve.panel))];
  return h(
    "div",
    { class: "cards" },
    ...panels.map((panel) =>
      panelCard(
        panel,
        used.filter((curve) => curve.panel === panel),
      ),
    ),
  );
}

/** @param {string} panel @param {any[]} curves */
function panelCard(panel, curves) {
  const last = curves.map((curve) => `${curve.name} ${Number(curve.values.at(-1)).toPrecision(4)}`).join(", ");
  const series = curves.map((curve) => ({ name: curve.name, x: curve.epochs, y: curve.values }));
  const chart = lineChart(series, {
    words: `${panel} over the epochs; at the end: ${last}`,
    xLabel: "epoch",
    yLabel: panel,
  });
  return card(panel[0].toUpperCase() + panel.slice(1), `At the end: ${last}`, chart);
}

/** @param {string} title @param {string} words @param {...Node} charts */
function card(title, words, ...charts) {
  return h("figure", {}, h("figcaption", {}, title, h("span", { class: "quiet" }, words)), ...charts);
}

/** @param {any} result */
function metrics(result) {
  const report = result.report ?? result;
  const beside = Object.entries(report.beside ?? {});
  const names = Object.keys(report.metrics);
  /** @type {import("./table.js").Column[]} */
  const columns = [
    { key: "metric", title: "metric", isHeader: true, cell: (key) => key },
    { key: "network", title: "network", kind: "n best", cell: (key) => number(report.metrics[key]) },
    ...beside.map(([title, values]) => ({
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

/** How a split was asked, a sentence each. @param {Record<string, any>} told */
function protocol(told) {
  const task = String(told.task ?? "queries");
  const true_ = "true" in told ? `, ${count(told.true)} of them true` : "";
  const heldOut = told.not_held_out ? ` Not held out: ${told.not_held_out}.` : "";
  const said = [`${task[0].toUpperCase()}${task.slice(1)} of ${count(told.queries)} queries${true_}.${heldOut}`];
  for (const [key, value] of Object.entries(told)) {
    const apart = ["task", "queries", "true", "nothing_to_rank", "not_held_out", "reasoning_harms"];
    if (apart.includes(key) || value === 0 || value === "") continue;
    said.push(`${key.replaceAll("_", " ")}: ${typeof value === "number" ? count(value) : value}.`);
  }
  return said;
}

/** @param {any[]} results @param {any} calibration */
function reliability(results, calibration) {
  const cards = results.flatMap((result) => {
    const report = result.report ?? result;
    const before = report.calibrated ? `${report.split}, by the network` : report.split;
    const kinds = [
      [before, report.calibration],
      [`${report.split}, calibrated`, report.calibrated],
    ];
    return kinds
      .filter(([, part]) => part?.bins?.some((/** @type {any} */ bin) => bin.count))
      .map(([title, part]) => reliabilityCard(title, part));
  });
  return [
    h("p", { class: "quiet" }, calibrationText(calibration)),
    cards.length ? h("div", { class: "cards" }, ...cards) : empty("There is nothing to compare probabilities with."),
  ];
}

/** @param {string} title @param {any} part */
function reliabilityCard(title, part) {
  const filled = part.bins.filter((/** @type {any} */ bin) => bin.count);
  const said = `Brier ${part.brier.toFixed(3)}, ECE ${part.ece.toFixed(3)}`;
  const series = [
    {
      name: "as it is",
      x: filled.map((/** @type {any} */ bin) => bin.confidence),
      y: filled.map((/** @type {any} */ bin) => bin.accuracy),
      dots: true,
    },
  ];
  const words = `Share of true atoms over the predicted probability, which would be the diagonal if all were right: ${said}`;
  const upper = lineChart(series, {
    words,
    xLabel: "predicted probability",
    yLabel: "share of true atoms",
    xRange: [0, 1],
    yRange: [0, 1],
    hasGuide: true,
  });
  const edges = [...part.bins.map((/** @type {any} */ bin) => bin.lower), part.bins.at(-1).upper];
  const told = filled
    .map((/** @type {any} */ bin) => `${bin.lower.toFixed(1)} to ${bin.upper.toFixed(1)}: ${count(bin.count)}`)
    .join(", ");
  const lower = barChart(
    edges,
    part.bins.map((/** @type {any} */ bin) => bin.count),
    { words: `Atoms by predicted probability: ${told}`, xLabel: "", yLabel: "atoms" },
  );
  return card(title, said, upper, lower);
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

/**
 * Answers to a question: a table that sorts, filters, hides what is known, and can be taken along.
 */

import { aboutAddress, address, changesOf } from "./address.js";
import { foundConstants } from "./ask.js";
import { csv, downloadButton, json } from "./download.js";
import { announce, button, h, link, name } from "./dom.js";
import { atomLink, knownMark, probabilityBar } from "./parts.js";
import { sortingOf, table } from "./table.js";
import { calibrationText, count, counted, probability, standing } from "./words.js";

/** @typedef {import("./main.js").Setting} Setting */
/** @typedef {import("./parts.js").Answer} Answer */

const FIELDS = ["atom", "probability", "share", "known", "closed", "network", "logit", "reached", "spread"];
const MORE = 5; // times as many

/** @param {Setting} setting @param {any} result @param {import("./parts.js").Calibration} calibration */
export function answersTable(setting, result, calibration) {
  const { query } = setting.place;
  const changes = changesOf(query);
  const state = new URLSearchParams(query);
  const noted = () => setting.note(`/?${state}`);
  const shown = table({
    label: "Answers",
    columns: columns(result, calibration, changes),
    rows: filtered(result.answers, query.get("filter") ?? ""),
    sorting: sortingOf(query),
    onSort: (sorting) => {
      if (sorting) state.set("sort", sorting.key);
      state.set("order", sorting?.isUp ? "up" : "down");
      noted();
    },
  });
  const caption = h("p", { class: "quiet", id: "caption" }, summary(result, shown.shown().length));
  const filter = (/** @type {string} */ text) => {
    shown.show(filtered(result.answers, text));
    if (text) state.set("filter", text);
    else state.delete("filter");
    caption.textContent = summary(result, shown.shown().length);
    announce(counted(shown.shown().length, "answer"));
    noted();
  };
  return h(
    "section",
    { "aria-labelledby": "answers-heading" },
    h("h2", { id: "answers-heading" }, "Answers to ", name(result.question)),
    toolbar(setting, query.get("filter") ?? "", filter),
    shown.element,
    caption,
    h(
      "div",
      { class: "row" },
      ...further(setting, result),
      downloads(result, calibration, () => shown.shown()),
    ),
    h("p", { class: "quiet" }, calibrationText(calibration)),
  );
}

/** @param {any} result @param {import("./parts.js").Calibration} calibration @param {import("./address.js").Changes} changes */
function columns(result, calibration, changes) {
  const answers = /** @type {Answer[]} */ (result.answers);
  const asks = answers.some((answer) => foundConstants(result.question, answer.atom).length > 0);
  const about = (/** @type {Answer} */ answer) => {
    const found = foundConstants(result.question, answer.atom);
    const links = found.map((constant) => link(aboutAddress(constant), {}, name(constant, "plain")));
    return found.length ? links.flatMap((item, i) => (i ? [", ", item] : [item])) : null;
  };
  return [
    {
      key: "atom",
      title: "Atom",
      isHeader: true,
      kind: "name",
      cell: (/** @type {Answer} */ a) => atomLink(a.atom, changes),
      order: (/** @type {Answer} */ a) => a.atom,
    },
    {
      key: "probability",
      title: "Probability",
      kind: "wide",
      cell: (/** @type {Answer} */ a) => probabilityBar(a, calibration),
      order: (/** @type {Answer} */ a) => a.probability,
    },
    ...(answers.some((answer) => answer.share !== null) ? [share] : []),
    {
      key: "known",
      title: "Known",
      kind: "marks",
      cell: (/** @type {Answer} */ a) => knownMark(a),
      order: (/** @type {Answer} */ a) => standing(a),
    },
    ...(asks ? [{ key: "about", title: "About", kind: "name", cell: about }] : []),
    {
      key: "network",
      title: "Network alone",
      kind: "n",
      cell: (/** @type {Answer} */ a) => probability(a.network),
      order: (/** @type {Answer} */ a) => a.network,
    },
    { key: "logit", title: "Logit", kind: "n", cell: logit, order: (/** @type {Answer} */ a) => a.logit },
  ];
}

const share = {
  key: "share",
  title: "Share among candidates",
  kind: "n",
  cell: (/** @type {Answer} */ a) => (a.share === null ? "" : probability(a.share)),
  order: (/** @type {Answer} */ a) => a.share ?? 0,
};

/** @param {Answer} answer */
function logit(answer) {
  const spread = answer.spread === null || answer.spread === undefined ? "" : ` ± ${answer.spread.toFixed(2)}`;
  return `${answer.logit.toFixed(2).replace("-", "\u2212")}${spread}`;
}

/** @param {Answer[]} answers @param {string} text */
function filtered(answers, text) {
  const wanted = text.toLowerCase();
  return wanted ? answers.filter((answer) => answer.atom.toLowerCase().includes(wanted)) : answers;
}

/** @param {Setting} setting @param {string} text @param {(text: string) => void} filter */
function toolbar(setting, text, filter) {
  const { query } = setting.place;
  const field = h("input", { id: "filter", type: "search", value: text, autocomplete: "off", spellcheck: "false" });
  field.addEventListener("input", () => filter(/** @type {HTMLInputElement} */ (field).value));
  return h(
    "div",
    { class: "toolbar" },
    h("label", { class: "field" }, "Filter ", field),
    option(setting, "unknown", "Hide what is known", query.has("unknown")),
    option(setting, "everything", "Also what no rule reaches", query.has("everything")),
  );
}

/** @param {Setting} setting @param {string} key @param {string} title @param {boolean} isOn */
function option(setting, key, title, isOn) {
  const change = () => {
    const query = new URLSearchParams(location.search);
    if (isOn) query.delete(key);
    else query.set(key, "1");
    setting.go(`/?${query}`);
  };
  return h(
    "label",
    { class: "check" },
    h("input", { type: "checkbox", id: key, checked: isOn, on: { change } }),
    title,
  );
}

/** @param {any} result @param {number} shown */
function summary(result, shown) {
  const parts = [`${counted(shown, "answer")} of ${counted(result.asked, "atom")} asked`];
  if (result.hidden) parts.push(`${count(result.hidden)} known already and hidden`);
  if (result.left_out)
    parts.push(`${count(result.left_out)} left out: nothing is known of them, and no ground rule reaches them`);
  if (result.refused) parts.push(`${count(result.refused)} of new constants cannot be answered`);
  return `${parts.join("; ")}.`;
}

/** @param {Setting} setting @param {any} result */
function further(setting, result) {
  const more = result.asked - result.hidden - result.refused - result.answers.length;
  if (more <= 0) return [];
  const click = () => {
    const query = new URLSearchParams(location.search);
    query.set("top", String(MORE * result.answers.length));
    setting.go(`/?${query}`);
  };
  return [button({ class: "small", id: "more", on: { click } }, "Show more")];
}

/** @param {any} result @param {import("./parts.js").Calibration} calibration @param {() => Answer[]} rows */
function downloads(result, calibration, rows) {
  const document = () => ({ question: result.question, answers: rows(), calibration });
  return h(
    "div",
    { class: "row", role: "group", "aria-label": "Download" },
    downloadButton("Download CSV", "answers.csv", () => csv(FIELDS, rows()), "text/csv"),
    downloadButton("Download JSON", "answers.json", () => json(document()), "application/json"),
  );
}

/** The address of a question, for links to it. @param {string} question */
export function questionAddress(question) {
  return address("/", { ask: question });
}

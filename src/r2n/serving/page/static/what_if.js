/**
 * The view that asks what if: facts, constants and rules otherwise, and which answers change.
 */

import { changesBody, changesCount, changesOf } from "./address.js";
import { post, Refused } from "./api.js";
import { editor } from "./changes.js";
import { csv, downloadButton, json } from "./download.js";
import { h, name, section } from "./dom.js";
import { atomLink, bar, effect, empty, knownMark, refusal } from "./parts.js";
import { sortingOf, table } from "./table.js";
import { apart, count, counted, factLine, probability, SMALLEST } from "./words.js";

/** @typedef {import("./main.js").Setting} Setting */
/** @typedef {import("./address.js").Changes} Changes */
/** @typedef {{atom: string, before: import("./parts.js").Answer | null, after: import("./parts.js").Answer | null}} Change */

const TOP = 50;

/** @param {Setting} setting */
export async function showWhatIf(setting) {
  const { query } = setting.place;
  const changes = changesOf(query);
  const asked = query.get("ask") ?? "";
  const found = changesCount(changes)
    ? await compared(setting, changes, asked)
    : { shown: empty("Nothing is otherwise yet: add a fact, take one away, or switch a rule off."), said: "" };
  return {
    title: "What if",
    said: found.said,
    content: [
      h(
        "div",
        { class: "hero" },
        h("h1", {}, "What if?"),
        h("p", { class: "quiet" }, "Change what is known, for these answers alone: the model stays as it is."),
      ),
      h(
        "div",
        { class: "columns narrow-first" },
        h("div", {}, section("Changes", editor(setting, changes, asked), files(changes, asked))),
        section("Which answers change", found.shown),
      ),
    ],
  };
}

/** @param {Setting} setting @param {Changes} changes @param {string} asked */
async function compared(setting, changes, asked) {
  const body = {
    ...changesBody(changes),
    queries: asked ? [asked] : [],
    top: Number(setting.place.query.get("top")) || TOP,
  };
  try {
    const reply = await post("/api/what-if", body, setting.signal);
    const moving = reply.changes.filter(isMoved);
    const said = changesText(moving.length, reply);
    return { said, shown: changesTable(setting, moving, said, changes) };
  } catch (error) {
    if (!(error instanceof Refused) || ![400, 404, 422].includes(error.status)) throw error;
    return { said: "", shown: refusal(error) };
  }
}

/** `3 changes of 24 answers compared; 21 did not move`. @param {number} shown @param {any} reply */
function changesText(shown, reply) {
  const compared = `${counted(reply.compared, "answer")} compared`;
  if (!reply.moved) return `No change of ${compared}`;
  const largest = shown < reply.moved ? `The ${count(shown)} largest of ` : "";
  const still = reply.compared - reply.moved;
  const rest = still ? `; ${count(still)} did not move` : "";
  return `${largest}${counted(reply.moved, "change")} of ${compared}${rest}`;
}

/** @param {Setting} setting @param {Change[]} moving @param {string} said @param {Changes} changes */
function changesTable(setting, moving, said, changes) {
  const state = new URLSearchParams(setting.place.query);
  const shown = table({
    label: "Answers before and after",
    columns: columns(changes),
    rows: moving,
    sorting: sortingOf(setting.place.query),
    onSort: (sorting) => {
      if (sorting) state.set("sort", sorting.key);
      state.set("order", sorting?.isUp ? "up" : "down");
      setting.note(`/what-if?${state}`);
    },
  });
  const rows = () => shown.shown().map((/** @type {Change} */ item) => flatRow(item));
  return [
    h("p", {}, `${said}.`),
    moving.length ? shown.element : empty("No answer is otherwise."),
    h(
      "div",
      { class: "row", role: "group", "aria-label": "Download the answers" },
      downloadButton(
        "Download CSV",
        "what-if.csv",
        () => csv(["atom", "before", "after", "change"], rows()),
        "text/csv",
      ),
      downloadButton(
        "Download JSON",
        "what-if.json",
        () => json({ ...changesBody(changes), changes: shown.shown() }),
        "application/json",
      ),
    ),
  ];
}

/** @param {Change} item */
function flatRow(item) {
  return { atom: item.atom, before: item.before?.probability, after: item.after?.probability, change: moved(item) };
}

/** @param {Change} item */
function isMoved(item) {
  return (item.before || item.after) && Math.abs(moved(item) ?? 1) >= SMALLEST;
}

/** @param {Change} item */
function moved(item) {
  return item.before && item.after ? item.after.probability - item.before.probability : null;
}

/** @param {Changes} changes @returns {import("./table.js").Column[]} */
function columns(changes) {
  return [
    {
      key: "atom",
      title: "Atom",
      kind: "name",
      isHeader: true,
      cell: (item) => atomLink(item.atom, changes),
      order: (item) => item.atom,
    },
    {
      key: "before",
      title: "Before",
      kind: "half",
      cell: (item) => side(item, "before"),
      order: (item) => item.before?.probability,
    },
    {
      key: "after",
      title: "After",
      kind: "half",
      cell: (item) => side(item, "after"),
      order: (item) => item.after?.probability,
    },
    {
      key: "change",
      title: "Change",
      kind: "n",
      cell: (item) => (moved(item) === null ? (item.before ? "gone" : "new") : effect(moved(item) ?? 0)),
      order: (item) => moved(item),
    },
  ];
}

/** @param {Change} item @param {"before" | "after"} when */
function side(item, when) {
  const answer = item[when];
  if (!answer) return h("span", { class: "quiet" }, "no answer");
  const texts = item.before && item.after ? apart(item.before.probability, item.after.probability) : [];
  const text = texts[when === "before" ? 0 : 1] ?? probability(answer.probability);
  const shown = h("span", { class: "number" }, text);
  return h("span", { class: "measured" }, bar(answer.probability), shown, knownMark({ ...answer, reached: true }));
}

/** The changes as files, and the command that reads them. @param {Changes} changes @param {string} asked */
function files(changes, asked) {
  if (!changesCount(changes)) return null;
  const lists = /** @type {[string, string[]][]} */ ([
    ["with", changes.with],
    ["without", changes.without],
  ]);
  const used = lists.filter(([, facts]) => facts.length);
  const unwritable = used.flatMap(([, facts]) => facts.filter((fact) => factLine(fact) === null));
  return h(
    "div",
    { class: "card" },
    h("h3", {}, "Take them along"),
    h(
      "div",
      { class: "row" },
      ...used.map(([kind, facts]) =>
        downloadButton(`Download ${kind}.pl`, `${kind}.pl`, () => factFile(facts), "text/plain"),
      ),
    ),
    ...unwritable.map((fact) => h("p", { class: "quiet" }, "No line of a file can hold ", name(fact), ".")),
    h(
      "pre",
      { class: "command", tabindex: "0", role: "group", "aria-label": "The same on the command line" },
      command(
        used.map(([kind]) => kind),
        changes,
        asked,
      ),
    ),
    changes.without_rules.length
      ? h("p", { class: "quiet" }, "Rules are switched off here and in r2n explain, not by r2n predict.")
      : null,
  );
}

/** @param {string[]} facts */
function factFile(facts) {
  return facts
    .map((fact) => factLine(fact))
    .filter((line) => line !== null)
    .map((line) => `${line}\n`)
    .join("");
}

/** @param {string[]} kinds @param {Changes} changes @param {string} asked */
function command(kinds, changes, asked) {
  const constants = changes.constants.map(([domain, constant]) => `--constant ${shell(`${domain}=${constant}`)}`);
  return [
    "r2n predict RUN",
    asked ? shell(asked) : '"QUESTION"',
    ...kinds.map((kind) => `--${kind} ${kind}.pl`),
    ...constants,
  ].join(" ");
}

/** @param {string} text */
function shell(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

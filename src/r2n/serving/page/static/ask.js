/**
 * The view that asks: a question in the theory's language, and its answers.
 */

import { aboutAddress, address, changesBody, changesCount, changesOf } from "./address.js";
import { answersTable } from "./answers.js";
import { get, post, Refused } from "./api.js";
import { atomField } from "./completion.js";
import { h, link, name, section } from "./dom.js";
import { changesNote, empty, figures, refusal } from "./parts.js";
import { count, counted, parsedAtom, quoted } from "./words.js";

/** @typedef {import("./main.js").Setting} Setting */

const TOP = 20;
const MOST_EXAMPLES = 12;

/** The question of the address with its answers, or ways to begin. @param {Setting} setting */
export async function showAsk(setting) {
  const question = setting.place.query.get("ask") ?? "";
  if (!question) return { title: "Ask", content: [hero(setting, ""), await beginnings(setting)] };
  const { answers, said } = await answered(setting, question);
  return { title: question, said, content: [hero(setting, question), answers] };
}

/** @param {Setting} setting @param {string} question */
function hero(setting, question) {
  const { run, place, go } = setting;
  const changes = changesOf(place.query);
  const { element, input } = atomField({ id: "query", label: "Question", value: question, placeholder: example(run) });
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    go(address("/", { ...asked(place.query), ask: input.value.trim() }, changes));
  };
  const title = question ? h("h1", { class: "small" }, "Ask") : h("h1", {}, "Ask ", h("bdi", {}, run.problem));
  const help = "An atom; ? stands for what is asked. Predicates and constants are completed as you type.";
  return h(
    "div",
    { class: question ? "hero asked" : "hero" },
    title,
    h("form", { class: "ask", on: { submit } }, element, h("button", { class: "main" }, "Ask")),
    h("p", { class: "quiet help" }, help),
    changesNote(changes, address("/", { ...asked(place.query), ask: question })),
  );
}

/** What of an address is kept when another question is asked. @param {URLSearchParams} query */
function asked(query) {
  return { top: query.get("top"), unknown: query.get("unknown"), everything: query.get("everything") };
}

/** @param {any} run */
function example(run) {
  const predicate = run.predicates.find((/** @type {any} */ item) => item.domains.length > 1) ?? run.predicates[0];
  return predicate ? anything(predicate) : "";
}

/** @param {{name: string, domains: string[]}} predicate */
function anything(predicate) {
  return `${quoted(predicate.name)}(${predicate.domains.map(() => "?").join(", ")})`;
}

/** @param {Setting} setting @param {string} question */
async function answered(setting, question) {
  const { query } = setting.place;
  const body = {
    queries: [question],
    top: Number(query.get("top")) || TOP,
    unknown: query.has("unknown"),
    everything: query.has("everything"),
    ...changesBody(changesOf(query)),
  };
  try {
    await checked(setting, question);
    const reply = await post("/api/query", body, setting.signal);
    const result = reply.results[0];
    const said = `${counted(result.answers.length, "answer")} to ${question}`;
    const shown = result.answers.length ? answersTable(setting, result, reply.calibration) : none(setting, result);
    return { said, answers: shown };
  } catch (error) {
    if (!(error instanceof Refused) || ![400, 404, 422].includes(error.status)) throw error;
    return { said: "", answers: refusal(error) };
  }
}

/** What cannot be asked is refused before it is; with new constants only the answer shows it. @param {Setting} setting @param {string} question */
async function checked(setting, question) {
  if (changesCount(changesOf(setting.place.query))) return;
  const reply = await post("/api/check", { query: question }, setting.signal);
  if (!reply.ok) throw new Refused(422, reply);
}

/** @param {Setting} setting @param {any} result */
function none(setting, result) {
  const hidden = result.hidden ? `${counted(result.hidden, "atom")} known already are hidden.` : "";
  const left = result.left_out ? `${counted(result.left_out, "atom")} that no ground rule reaches are left out.` : "";
  const { query } = setting.place;
  const given = { ...asked(query), ask: query.get("ask") };
  return h(
    "div",
    {},
    empty(["No answer.", hidden, left].filter(Boolean).join(" ")),
    result.hidden
      ? h("p", {}, link(address("/", { ...given, unknown: null }, changesOf(query)), {}, "Show what is known"))
      : null,
    result.left_out
      ? h("p", {}, link(address("/", { ...given, everything: true }, changesOf(query)), {}, "Ask the input layer"))
      : null,
  );
}

/** Ways to begin: what is served, its predicates, and some constants. @param {Setting} setting */
async function beginnings(setting) {
  const { run, signal } = setting;
  const found = await get(`/api/constants?search=&limit=${MOST_EXAMPLES}`, signal);
  const constants = found.constants.map((/** @type {any} */ item) =>
    h("li", {}, link(aboutAddress(item.name), { class: "chip" }, name(item.name, "plain"))),
  );
  const predicates = run.predicates.map((/** @type {any} */ item) => h("li", {}, predicateLink(item)));
  return h(
    "div",
    { class: "columns" },
    h(
      "div",
      {},
      section(
        "Predicates",
        h("ul", { class: "lines" }, ...predicates.slice(0, 4 * MOST_EXAMPLES)),
        more(predicates.length, 4 * MOST_EXAMPLES),
      ),
      run.rules.length ? section("Rules", ruleLines(run.rules)) : null,
    ),
    h(
      "div",
      {},
      section("Constants", h("ul", { class: "chips" }, ...constants), more(found.total, MOST_EXAMPLES)),
      section("Served", figures(served(run))),
    ),
  );
}

/** @param {{name: string, text: string}[]} rules */
function ruleLines(rules) {
  const lines = rules.slice(0, MOST_EXAMPLES).map((rule) => h("li", {}, name(rule.text)));
  const all = link("/rules", {}, `What ${rules.length === 1 ? "it does" : "they do"}`);
  return [h("ul", { class: "lines theory" }, ...lines), h("p", {}, all)];
}

/** @param {number} all @param {number} most */
function more(all, most) {
  return all > most ? h("p", { class: "quiet" }, `and ${count(all - most)} more: type, and they are found`) : null;
}

/** @param {any} predicate */
function predicateLink(predicate) {
  const question = anything(predicate);
  return [
    link(address("/", { ask: question }), {}, name(question)),
    h(
      "span",
      { class: "quiet" },
      " ",
      name(predicate.domains.join(" × "), "plain"),
      predicate.closed ? ", closed" : "",
    ),
  ];
}

/** @param {any} run @returns {[string, string][]} */
function served(run) {
  return [
    ["facts", count(run.facts)],
    ["constants", count(run.constants)],
    ["rules", count(run.rules.length)],
    ["networks", count(run.networks)],
  ];
}

/** The constants that stand where a question has `?`. @param {string} question @param {string} atom */
export function foundConstants(question, atom) {
  const [asking, given] = [parsedAtom(question), parsedAtom(atom)];
  if (!asking || !given || asking.terms.length !== given.terms.length) return [];
  const found = given.terms.filter((_, i) => asking.terms[i] === null);
  return [...new Set(/** @type {string[]} */ (found))];
}

/**
 * The view of a constant: what is known of it, what is predicted, its features, and its neighbourhood.
 */

import { address, nothing } from "./address.js";
import { questionAddress } from "./answers.js";
import { get } from "./api.js";
import { h, link, name, section } from "./dom.js";
import { neighbourhood } from "./neighbourhood.js";
import { atomLink, empty, knownMark, probabilityBar } from "./parts.js";
import { count, counted } from "./words.js";

/** @typedef {import("./main.js").Setting} Setting */

const TOP = 5;
const [MOST_FACTS, MOST_QUESTIONS] = [20, 8]; // shown at once; the others can be unfolded

/** @param {Setting} setting */
export async function showAbout(setting) {
  const { place, run, signal } = setting;
  const top = Number(place.query.get("top")) || TOP;
  const about = await get(address("/api/about", { name: place.name, top }), signal);
  const title = h("h1", { class: "constant" }, name(about.name, "plain"));
  const domains = h("p", { class: "quiet" }, "in ", name(about.domains.join(", "), "plain"));
  return {
    title: about.name,
    said: `${about.name}: ${counted(about.facts_total, "known fact")}`,
    content: [
      h("div", { class: "hero" }, title, domains),
      h(
        "div",
        { class: "columns wide-first" },
        h("div", {}, section("Predictions", ...predictions(about, run.calibration)), drawing(about)),
        h("div", {}, section("Known facts", facts(about)), features(about)),
      ),
    ],
  };
}

/** @param {any} about */
function facts(about) {
  if (!about.facts.length) return empty("Nothing is known of it.");
  const items = about.facts.map((/** @type {any} */ fact) => {
    const without = address("/what-if", {}, { ...nothing(), without: [fact.truth ? fact.atom : `!${fact.atom}`] });
    const words = ["what if ", h("span", { class: "unseen" }, fact.atom, " were "), "not?"];
    return h(
      "li",
      {},
      atomLink(fact.atom),
      fact.truth ? null : knownMark({ known: false, closed: false }),
      link(without, { class: "aside" }, ...words),
    );
  });
  const left = about.facts_total - about.facts.length;
  return [
    h("ul", { class: "lines facts-list" }, ...items.slice(0, MOST_FACTS)),
    folded(items.slice(MOST_FACTS), "known fact", (rest) => h("ul", { class: "lines facts-list" }, ...rest)),
    left > 0 ? h("p", { class: "quiet" }, `and ${count(left)} more`) : null,
  ];
}

/** @param {any} about @param {import("./parts.js").Calibration} calibration */
function predictions(about, calibration) {
  const parts = about.predictions.filter((/** @type {any} */ part) => part.answers.length);
  if (!parts.length) return [empty("Nothing is predicted: no ground rule reaches an atom of it.")];
  const shown = parts.map((/** @type {any} */ part) =>
    h(
      "div",
      { class: "prediction" },
      h("h3", {}, link(questionAddress(part.question), {}, name(part.question))),
      h("ul", { class: "answers" }, ...part.answers.map((/** @type {any} */ answer) => line(answer, calibration))),
    ),
  );
  return [...shown.slice(0, MOST_QUESTIONS), folded(shown.slice(MOST_QUESTIONS), "question", (rest) => rest)];
}

/** What is left, to be unfolded. @param {Node[]} rest @param {string} one @param {(rest: Node[]) => import("./dom.js").Child} put */
function folded(rest, one, put) {
  if (!rest.length) return null;
  return h("details", { class: "more" }, h("summary", {}, counted(rest.length, `more ${one}`)), put(rest));
}

/** @param {any} answer @param {import("./parts.js").Calibration} calibration */
function line(answer, calibration) {
  return h("li", {}, atomLink(answer.atom), probabilityBar(answer, calibration), knownMark(answer));
}

/** @param {any} about */
function features(about) {
  if (!about.features.length) return null;
  const items = about.features.map((/** @type {any} */ feature) => [
    h("dt", {}, name(feature.name, "plain")),
    h("dd", {}, feature.text ? name(feature.text, "plain") : counted(feature.size ?? 0, "number")),
  ]);
  return section("Features", h("dl", { class: "facts" }, ...items));
}

/** @param {any} about */
function drawing(about) {
  const { constants, links } = about.neighbourhood;
  if (!links.length) return null;
  return section("Neighbourhood", neighbourhood(about.name, constants, links));
}

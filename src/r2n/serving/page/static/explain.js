/**
 * The view of an explanation: why an atom is answered as it is, and what the answer would be without a fact or a rule.
 */

import { address, aboutAddress, changesBody, changesCount, changesOf, nothing, toggled } from "./address.js";
import { post, Refused } from "./api.js";
import { atomField } from "./completion.js";
import { h, link, name, scrolled, section } from "./dom.js";
import { explanationDrawing } from "./drawing.js";
import { layersChart } from "./layers.js";
import { bar, changesNote, effect, empty } from "./parts.js";
import { reasonList } from "./reason_list.js";
import { switches } from "./switches.js";
import { apart, parsedAtom, probability, signed } from "./words.js";

/** @typedef {import("./main.js").Setting} Setting */
/** @typedef {import("./address.js").Changes} Changes */

const DEPTH = 2;
const TOP = 5;

/** @param {Setting} setting */
export async function showExplanation(setting) {
  const { query } = setting.place;
  const atom = query.get("atom") ?? "";
  const changes = changesOf(query);
  if (!atom)
    return {
      title: "Why?",
      content: [h("div", { class: "hero" }, h("h1", {}, "Why?"), otherForm(setting, "Explain"))],
    };
  const [now, before] = await explained(setting, atom, changes);
  const turn = (/** @type {{fact?: string, rule?: string}} */ item) => setting.go(turned(setting, atom, changes, item));
  const drawing = scrolled("The explanation as a drawing", explanationDrawing(now.drawing, { changes, turn }));
  const hint = h("p", { class: "quiet" }, "Click a fact or a rule to switch it off.");
  return {
    title: `Why ${atom}?`,
    said: before
      ? `${atom}: ${probability(before.probability)} before, ${probability(now.probability)} now`
      : `${atom}: ${probability(now.probability)}`,
    content: [
      h(
        "div",
        { class: "hero" },
        h("h1", { class: "atom-title" }, "Why ", name(atom), "?"),
        verdict(now, before),
        notes(setting, atom, changes),
      ),
      section("What moved it", drawing, hint, contrast(now)),
      h(
        "div",
        { class: "columns" },
        section("Switches", switches(now, before, changes, turn)),
        h("div", {}, section("Layer by layer", layersChart(now.layers, before?.layers)), basis(now)),
      ),
      section("The same in words", reasonList(now, changes)),
      section("Look further", ...furtherLinks(setting, atom, changes)),
    ],
  };
}

/** The explanation as things are now, and where they are otherwise, as they were. @param {Setting} setting @param {string} atom @param {Changes} changes */
async function explained(setting, atom, changes) {
  const { query } = setting.place;
  const asked = {
    atom,
    against: query.get("against"),
    depth: Number(query.get("depth") ?? DEPTH),
    top: Number(query.get("top")) || TOP,
  };
  const ask = (/** @type {Changes} */ some) => post("/api/explain", { ...asked, ...changesBody(some) }, setting.signal);
  if (!changesCount(changes)) return [await ask(changes), null];
  const trained = ask(nothing()).catch((error) => {
    if (error instanceof Refused && error.status === 422) return null; // of a new constant nothing was said before
    throw error;
  });
  return Promise.all([ask(changes), trained]);
}

/** The address with a fact or a rule turned on or off. @param {Setting} setting @param {string} atom @param {Changes} changes @param {{fact?: string, rule?: string}} item */
function turned(setting, atom, changes, item) {
  const { query } = setting.place;
  const kept = { atom, against: query.get("against"), depth: query.get("depth"), top: query.get("top") };
  if (item.rule !== undefined) {
    return address("/explain", kept, { ...changes, without_rules: toggled(changes.without_rules, item.rule) });
  }
  const fact = item.fact ?? "";
  if (changes.with.includes(fact)) {
    return address("/explain", kept, { ...changes, with: toggled(changes.with, fact) });
  }
  return address("/explain", kept, { ...changes, without: toggled(changes.without, fact) });
}

/** @param {any} now @param {any} before */
function verdict(now, before) {
  const said = [status(now)];
  if (now.calibrated) said.push(now.calibrated);
  if (now.spread !== null && now.spread !== undefined)
    said.push(`networks differ by ±${now.spread.toFixed(2)} (logit)`);
  const words = h("p", { class: "quiet" }, said.join(" · "));
  if (!before) {
    return h(
      "div",
      { class: "verdict" },
      h("p", { class: "big" }, probability(now.probability), bar(now.probability)),
      words,
    );
  }
  const change = now.probability - before.probability;
  const turns = before.probability >= 0.5 !== now.probability >= 0.5;
  const logits = h("span", { class: "quiet" }, `logit ${before.logit.toFixed(2)} → ${now.logit.toFixed(2)}`);
  const [was, is] = apart(before.probability, now.probability);
  return h(
    "div",
    { class: "verdict moved", id: "verdict" },
    h("p", { class: "big then" }, h("span", { class: "when" }, "before"), was, bar(before.probability)),
    h("p", { class: "big" }, h("span", { class: "when" }, "now"), is, bar(now.probability)),
    h(
      "p",
      { class: change < 0 ? "moved-by minus" : "moved-by plus" },
      signed(change),
      turns ? " · the answer flips" : "",
      logits,
    ),
    words,
  );
}

/** @param {any} explanation */
function status(explanation) {
  if (explanation.known !== null && explanation.known !== undefined) return explanation.known ? "true by the facts" : "false by the facts";
  return explanation.closed ? "closed: no fact, so false" : "not known, believed by the network";
}

/** @param {Setting} setting @param {string} atom @param {Changes} changes */
function notes(setting, atom, changes) {
  const { query } = setting.place;
  return changesNote(
    changes,
    address("/explain", { atom, against: query.get("against"), depth: query.get("depth"), top: query.get("top") }),
  );
}

/** @param {any} explanation */
function contrast(explanation) {
  if (!explanation.contrast) return null;
  const { other, difference, belief } = explanation.contrast;
  const reasons = explanation.contrast.reasons.map((/** @type {any} */ reason) =>
    h("li", {}, effect(reason.effect), " ", name(reason.ground_rule)),
  );
  return h(
    "div",
    { class: "card" },
    h("h3", {}, "Rather than ", name(other)),
    h(
      "p",
      {},
      `That one has ${probability(belief.probability)}; the logits differ by ${signed(difference)}. What makes the difference:`,
    ),
    reasons.length ? h("ul", { class: "reasons" }, ...reasons) : empty("No ground rule makes a difference."),
  );
}

/** What the answer rests on besides ground rules. @param {any} explanation */
function basis(explanation) {
  const parts = [];
  if (explanation.fidelity?.ground_rules) parts.push(h("p", {}, `Ground rules: ${explanation.fidelity.text}.`));
  if (explanation.turned_by) {
    const without = explanation.turned_by.what.map((/** @type {string} */ what) => h("li", {}, name(what)));
    parts.push(
      h("p", {}, `The answer would flip (${probability(explanation.turned_by.probability)}) if these were not known:`),
      h("ul", { class: "lines" }, ...without),
    );
  }
  for (const [title, items] of [
    ["Known atoms that the input layer reads alike", explanation.input?.similar ?? []],
    ["Features", explanation.input?.features ?? []],
  ]) {
    if (items.length) parts.push(h("h3", {}, title), h("ul", { class: "lines" }, ...items.map(inputLine)));
  }
  const labels = Object.entries(explanation.labels ?? {});
  parts.push(
    ...labels.map(([constant, label]) => h("p", { class: "quiet" }, name(constant), ": ", name(String(label), "plain"))),
  );
  parts.push(...(explanation.notes ?? []).map((/** @type {string} */ note) => h("p", { class: "quiet" }, note)));
  return parts.length ? section("What it rests on", ...parts) : null;
}

/** @param {any} item */
function inputLine(item) {
  if ("similarity" in item)
    return h("li", {}, name(item.atom), ` ${item.similarity.toFixed(2)}, ${item.known ? "true" : "false"}`);
  return h("li", {}, name(`${item.part} of ${item.of}`, "plain"), " ", signed(item.effect));
}

/** @param {Setting} setting @param {string} atom @param {Changes} changes */
function furtherLinks(setting, atom, changes) {
  const { query } = setting.place;
  const depth = Number(query.get("depth") ?? DEPTH);
  const top = Number(query.get("top")) || TOP;
  const at = (/** @type {object} */ given) =>
    address("/explain", { atom, against: query.get("against"), depth, top, ...given }, changes);
  const constants =
    parsedAtom(atom)?.terms.map((term) => link(aboutAddress(term ?? ""), {}, name(term ?? "", "plain"))) ?? [];
  return [
    h(
      "ul",
      { class: "chips" },
      h("li", {}, link(at({ depth: depth + 1 }), { class: "chip" }, "Deeper")),
      depth > 1 ? h("li", {}, link(at({ depth: depth - 1 }), { class: "chip" }, "Less deep")) : null,
      h("li", {}, link(at({ top: 2 * top }), { class: "chip" }, "More ground rules")),
      h("li", {}, link(address("/what-if", { ask: atom }, changes), { class: "chip" }, "What if?")),
    ),
    constants.length ? h("p", {}, "About ", ...constants.flatMap((item, i) => (i ? [", ", item] : [item]))) : null,
    otherForm(setting, "Compare", atom, changes),
  ];
}

/** A field for an atom: to hold against this one, or to explain. @param {Setting} setting @param {string} title @param {string} [atom] @param {Changes} [changes] */
function otherForm(setting, title, atom = "", changes = nothing()) {
  const label = atom ? "Rather than which atom?" : "Atom";
  const { element, input } = atomField({ id: "other", label, value: setting.place.query.get("against") ?? "" });
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const text = input.value.trim();
    setting.go(address("/explain", atom ? { atom, against: text } : { atom: text }, changes));
  };
  return h(
    "form",
    { class: "ask", on: { submit } },
    h("span", { class: "label", "aria-hidden": "true" }, label),
    element,
    h("button", {}, title),
  );
}

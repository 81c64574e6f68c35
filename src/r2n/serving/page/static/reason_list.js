/**
 * An explanation in words: its ground rules with their effects, and the reasons for their atoms in turn.
 */

import { h, name } from "./dom.js";
import { atomLink, effect, empty } from "./parts.js";
import { probability } from "./words.js";

/** @typedef {import("./address.js").Changes} Changes */

/** @param {any} explanation @param {Changes} changes */
export function reasonList(explanation, changes) {
  if (!explanation.reasons.length) return empty("No ground rule is a reason.");
  return reasons(explanation.reasons, changes);
}

/** @param {any[]} items @param {Changes} changes */
function reasons(items, changes) {
  return h("ul", { class: "reasons" }, ...items.map((reason) => one(reason, changes)));
}

/** @param {any} reason @param {Changes} changes @returns {HTMLElement} */
function one(reason, changes) {
  const members = reason.because.map((/** @type {any} */ member) =>
    h(
      "li",
      {},
      atomLink(member.atom, changes),
      h("span", { class: "quiet" }, ` ${status(member.belief)}`),
      member.is_explained_above ? h("span", { class: "quiet" }, ", explained above") : null,
      member.reasons.length ? reasons(member.reasons, changes) : null,
    ),
  );
  return h(
    "li",
    {},
    effect(reason.effect),
    " ",
    h("strong", {}, name(reason.rule, "plain")),
    " ",
    name(reason.ground_rule),
    h("ul", { class: "members" }, ...members),
  );
}

/** @param {any} belief */
function status(belief) {
  if (belief.known !== null && belief.known !== undefined)
    return belief.known ? "true by the facts" : "false by the facts";
  return belief.closed ? "closed: no fact, so false" : `believed ${probability(belief.probability)}`;
}

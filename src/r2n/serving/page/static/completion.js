/**
 * Fields that know the problem: for a constant, and for an atom in the theory's language.
 */

import { aboutAddress } from "./address.js";
import { get, post } from "./api.js";
import { combobox } from "./combobox.js";

const MOST = 12;

/**
 * The field that finds a constant and goes to its page.
 * @param {(address: string) => void} go
 */
export function constantSearch(go) {
  return combobox({
    id: "search-constant",
    label: "Find a constant",
    placeholder: "Find a constant",
    suggest: (text, signal) => constants(text, signal),
    choose: (suggestion, input) => {
      input.value = "";
      go(aboutAddress(suggestion.value));
    },
  });
}

/** @param {string} text @param {AbortSignal} signal */
async function constants(text, signal) {
  const found = await get(`/api/constants?search=${encodeURIComponent(text)}&limit=${MOST}`, signal);
  return found.constants.map((/** @type {{name: string, domains: string[]}} */ constant) => ({
    text: constant.name,
    note: constant.domains.join(", "),
    value: constant.name,
  }));
}

/** The constant that a text means: the one of that name, or the first that is found. @param {string} text */
export async function firstConstant(text) {
  const found = await constants(text, new AbortController().signal);
  const same = found.find((/** @type {{value: string}} */ item) => item.value === text) ?? found[0];
  return same ? same.value : null;
}

/**
 * A field for an atom: predicates and constants are completed at its end.
 * @param {{id: string, label: string, value?: string, placeholder?: string}} options
 */
export function atomField(options) {
  return combobox({
    ...options,
    isMonospace: true,
    suggest: completions,
    choose: (suggestion, input) => {
      input.value = suggestion.value.text;
      input.setSelectionRange(input.value.length, input.value.length);
      return suggestion.value.goesOn;
    },
  });
}

/** @param {string} text @param {AbortSignal} signal */
async function completions(text, signal) {
  const found = await post("/api/check", { query: text }, signal);
  const start = Array.from(text).slice(0, found.at).join(""); // places count characters, not halves of them
  return found.completions.slice(0, MOST).map((/** @type {string} */ completion) => ({
    text: completion,
    value: { text: start + completion, goesOn: !/\)\s*$/.test(completion) },
  }));
}

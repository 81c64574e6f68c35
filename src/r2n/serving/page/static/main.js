/**
 * The page: the address -> the view of it. Links and forms change the address, and the page follows.
 *
 * address.js, api.js         the state in the address; requests, and what they refuse
 * dom.js, words.js           elements from names as text; numbers and atoms in words
 * combobox.js, completion.js fields with suggestions: constants, atoms
 * table.js, download.js      tables that sort; files
 * parts.js                   bars, marks, errors with a caret
 * ask.js, answers.js         the view that asks, and its answers
 * about.js, neighbourhood.js the view of a constant, and the drawing around it
 * drawing.js                 charts and explanations that the server draws, with switches attached
 * explain.js                 the view of an explanation, with switches.js, layers.js and reason_list.js below
 * what_if.js, changes.js     the view that asks what if, and the list of its changes
 * rules.js, run.js           what the rules do; how good the run is
 */

import { showAbout } from "./about.js";
import { aboutAddress, placeOf } from "./address.js";
import { get, Refused, useToken } from "./api.js";
import { showAsk } from "./ask.js";
import { constantSearch, firstConstant } from "./completion.js";
import { announce, h } from "./dom.js";
import { showExplanation } from "./explain.js";
import { refusal } from "./parts.js";
import { showRules } from "./rules.js";
import { showRun } from "./run.js";
import { showWhatIf } from "./what_if.js";

/**
 * What a view is given: where one is, what is served, and ways to another place.
 * `go` changes the address and shows it; `note` only writes it down.
 * @typedef {object} Setting
 * @property {import("./address.js").Place} place
 * @property {any} run
 * @property {AbortSignal} signal
 * @property {(address: string) => void} go
 * @property {(address: string) => void} note
 */
/** @typedef {{title: string, said?: string, content: import("./dom.js").Child[]}} Shown */

/** @type {Record<string, (setting: Setting) => Promise<Shown>>} */
const VIEWS = {
  ask: showAsk,
  about: showAbout,
  explain: showExplanation,
  "what-if": showWhatIf,
  rules: showRules,
  run: showRun,
  nowhere: async () => ({
    title: "Not here",
    content: [h("div", { class: "hero" }, h("h1", {}, "There is no such view"))],
  }),
};

/** What is computed when it is first asked for. @type {Record<string, string>} */
const WAITING = {
  rules: "Computing what each rule does… The first time this takes a while; then it is kept.",
  run: "Computing how well the queries are answered… The first time this takes a while; then it is kept.",
};
/** @type {Record<string, string>} */
const TITLES = { rules: "Rules", run: "Run" };

const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const loading = /** @type {HTMLElement} */ (document.getElementById("loading"));
let current = new AbortController();

/** @param {string} address */
function go(address) {
  history.pushState(null, "", address);
  show(true);
}

/** Show what the address says. @param {boolean} isMoved whether a person went there, rather than opened the page */
async function show(isMoved) {
  current.abort();
  const asking = (current = new AbortController());
  const place = placeOf(location);
  markView(place.view);
  const slow = setTimeout(() => wait(place.view), 150);
  main.setAttribute("aria-busy", "true");
  try {
    const run = await get("/api/run", asking.signal);
    const problem = document.getElementById("problem");
    if (problem) problem.textContent = run.problem;
    const note = (/** @type {string} */ address) => history.replaceState(null, "", address);
    const shown = await VIEWS[place.view]({ place, run, signal: asking.signal, go, note });
    if (asking.signal.aborted) return;
    put(shown, run.problem, isMoved);
  } catch (error) {
    if (asking.signal.aborted) return;
    fail(error, isMoved);
  } finally {
    clearTimeout(slow);
    if (!asking.signal.aborted) {
      loading.hidden = true;
      main.removeAttribute("aria-busy");
    }
  }
}

/** Say what is being done; what stood there stays, unless the new view may take long. @param {string} view */
function wait(view) {
  loading.hidden = false;
  const words = WAITING[view] ?? (main.querySelector(".view") ? null : "Loading the run…");
  if (!words) return;
  const title = TITLES[view];
  main.replaceChildren(h("div", { class: "hero" }, title ? h("h1", {}, title) : null, h("p", {}, words)));
  announce(words);
}

/** @param {Shown} shown @param {string} problem @param {boolean} isMoved */
function put(shown, problem, isMoved) {
  const held = document.activeElement;
  const key = held instanceof HTMLElement || held instanceof SVGElement ? held.id || held.dataset.key : "";
  const wasInside = main.contains(held) || held === document.body;
  const before = main.querySelector("h1")?.textContent;
  document.title = `${shown.title} · ${problem} · r2n`;
  main.replaceChildren(h("div", { class: "view" }, ...shown.content));
  if (isMoved) focusAfter(wasInside ? key : "", before);
  if (shown.said) announce(shown.said);
}

/**
 * The focus stays where it was, where that is still there; else it goes to the heading.
 * @param {string | undefined} key
 * @param {string | null | undefined} before the heading that was
 */
function focusAfter(key, before) {
  /** @type {Element | null} */
  const same = key ? (document.getElementById(key) ?? main.querySelector(`[data-key="${CSS.escape(key)}"]`)) : null;
  const heading = main.querySelector("h1");
  if (same instanceof HTMLElement || same instanceof SVGElement) {
    same.focus({ preventScroll: true });
  } else if (heading) {
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
    if (heading.textContent !== before) window.scrollTo(0, 0);
  }
}

/** @param {unknown} error @param {boolean} isMoved */
function fail(error, isMoved) {
  if (!(error instanceof Refused)) {
    main.replaceChildren(
      h(
        "div",
        { class: "view" },
        h("div", { class: "hero" }, h("h1", {}, "The page cannot show this"), h("p", {}, String(error))),
      ),
    );
    throw error;
  }
  const content =
    error.status === 401
      ? tokenForm()
      : [h("div", { class: "hero" }, h("h1", {}, "That has no answer")), refusal(error), again()];
  document.title = "r2n";
  main.replaceChildren(h("div", { class: "view" }, ...content));
  if (isMoved && error.status !== 401) focusAfter("", null);
}

function again() {
  return h("button", { type: "button", on: { click: () => show(true) } }, "Try again");
}

function tokenForm() {
  const field = /** @type {HTMLInputElement} */ (
    h("input", { id: "token", type: "password", autocomplete: "off", required: true })
  );
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    useToken(field.value);
    show(true);
  };
  const form = h(
    "form",
    { class: "token", on: { submit } },
    h("label", { for: "token" }, "Token"),
    field,
    h("button", { class: "main" }, "Open"),
  );
  const why = "This server answers who has its token. It is kept as long as this page is open, and nowhere else.";
  return [h("div", { class: "hero" }, h("h1", {}, "Who asks?"), h("p", {}, why), form)];
}

/** @param {string} view */
function markView(view) {
  for (const anchor of document.querySelectorAll("nav a[data-view]")) {
    if (anchor instanceof HTMLElement && anchor.dataset.view === view) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
}

/** Links within the page are followed here. @param {MouseEvent} event */
function followed(event) {
  const anchor = event.target instanceof Element ? event.target.closest("a[href]") : null;
  const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
  const href = anchor?.getAttribute("href") ?? "";
  if (!anchor || !isPlain || !href.startsWith("/") || anchor.hasAttribute("download")) return;
  event.preventDefault();
  if (anchor instanceof HTMLElement || anchor instanceof SVGElement) anchor.blur();
  go(href);
}

/** The field of the header: Enter goes to the first constant that is found. */
function addSearch() {
  const { element, input } = constantSearch(go);
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const constant = input.value ? await firstConstant(input.value).catch(() => null) : null;
    if (constant === null) return announce("no constant is found");
    input.value = "";
    input.blur();
    go(aboutAddress(constant));
  };
  document.getElementById("search")?.append(h("form", { on: { submit } }, element));
}

document.addEventListener("click", followed);
window.addEventListener("popstate", () => show(true));
addSearch();
show(false);

/**
 * A field with suggestions as one types, after the pattern of ARIA: the keys stay in the field, the list follows.
 */

import { announce, h, printable } from "./dom.js";
import { counted } from "./words.js";

const PATIENCE = 70; // milliseconds after the last key

/** @typedef {{text: string, note?: string, value: any}} Suggestion */
/**
 * `suggest` finds suggestions for a text. `choose` is given the one that was taken; if it returns true, more are shown.
 * @typedef {object} Options
 * @property {string} id
 * @property {string} label
 * @property {string} [value]
 * @property {string} [placeholder]
 * @property {boolean} [isMonospace]
 * @property {(text: string, signal: AbortSignal) => Promise<Suggestion[]>} suggest
 * @property {(suggestion: Suggestion, input: HTMLInputElement) => boolean | void} choose
 */

/** A field with its list of suggestions. @param {Options} options */
export function combobox(options) {
  const list = h("ul", {
    id: `${options.id}-list`,
    class: "suggestions",
    role: "listbox",
    "aria-label": options.label,
  });
  list.hidden = true;
  const input = /** @type {HTMLInputElement} */ (
    h("input", {
      id: options.id,
      type: "text",
      role: "combobox",
      class: options.isMonospace ? "monospace" : null,
      "aria-label": options.label,
      "aria-autocomplete": "list",
      "aria-expanded": "false",
      "aria-controls": list.id,
      autocomplete: "off",
      autocapitalize: "off",
      spellcheck: "false",
      placeholder: options.placeholder,
      value: options.value ?? "",
    })
  );
  new Suggesting(options, input, list);
  return { element: h("div", { class: "combobox" }, input, list), input };
}

/** What happens between the field and its list. */
class Suggesting {
  /** @param {Options} options @param {HTMLInputElement} input @param {HTMLElement} list */
  constructor(options, input, list) {
    this.options = options;
    this.input = input;
    this.list = list;
    /** @type {Suggestion[]} */
    this.found = [];
    this.active = -1;
    this.waiting = 0;
    /** @type {AbortController | null} */
    this.asking = null;
    input.addEventListener("input", () => this.ask(PATIENCE));
    input.addEventListener("keydown", (event) => this.key(event));
    input.addEventListener("blur", () => this.close());
    list.addEventListener("mousedown", (event) => event.preventDefault()); // the field keeps the focus
    list.addEventListener("click", (event) => this.clicked(event));
  }

  /** @param {number} patience */
  ask(patience) {
    this.cancel();
    this.waiting = window.setTimeout(() => this.find(), patience);
  }

  cancel() {
    window.clearTimeout(this.waiting);
    this.asking?.abort();
    this.asking = null;
  }

  async find() {
    const asking = (this.asking = new AbortController());
    try {
      const found = await this.options.suggest(this.input.value, asking.signal);
      if (!asking.signal.aborted && document.activeElement === this.input) this.show(found);
    } catch {
      if (!asking.signal.aborted) this.close(); // what is wrong is said where the text is asked
    }
  }

  /** @param {Suggestion[]} found */
  show(found) {
    this.found = found;
    this.list.replaceChildren(
      ...found.map((item, i) =>
        h(
          "li",
          { id: `${this.list.id}-${i}`, role: "option", "aria-selected": "false", "data-index": i },
          h("bdi", {}, printable(item.text)),
          item.note ? h("span", { class: "quiet" }, item.note) : null,
        ),
      ),
    );
    this.activate(-1);
    this.list.hidden = !found.length;
    this.input.setAttribute("aria-expanded", String(found.length > 0));
    if (found.length) announce(counted(found.length, "suggestion"));
  }

  close() {
    this.cancel();
    this.found = [];
    this.list.hidden = true;
    this.list.replaceChildren();
    this.active = -1;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  /** @param {number} index */
  activate(index) {
    this.list.children[this.active]?.setAttribute("aria-selected", "false");
    this.active = index;
    const chosen = this.list.children[index];
    if (!chosen) return this.input.removeAttribute("aria-activedescendant");
    chosen.setAttribute("aria-selected", "true");
    chosen.scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", chosen.id);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const isOpen = !this.list.hidden;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      if (!isOpen) return this.ask(0);
      const places = this.found.length + 1; // one of them is the field itself
      this.activate(((this.active + 1 + step + places) % places) - 1);
    } else if (event.key === "Enter") {
      if (isOpen && this.active >= 0) {
        event.preventDefault();
        this.take(this.active);
      } else {
        this.close();
      }
    } else if (event.key === "Escape" && isOpen) {
      event.preventDefault();
      this.close();
    }
  }

  /** @param {MouseEvent} event */
  clicked(event) {
    const option = event.target instanceof Element ? event.target.closest("[role=option]") : null;
    if (option instanceof HTMLElement) this.take(Number(option.dataset.index));
  }

  /** @param {number} index */
  take(index) {
    const suggestion = this.found[index];
    this.close();
    if (this.options.choose(suggestion, this.input)) this.ask(0);
  }
}

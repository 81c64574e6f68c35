/**
 * Elements of the page. Names come from data: they become text nodes and attributes, never markup.
 */

const SVG = "http://www.w3.org/2000/svg";

/** @typedef {Node | string | number | null | undefined | false | any[]} Child */
/** @typedef {Record<string, any>} Attributes `on` holds listeners by event; null, undefined and false are left out */

/**
 * An element of HTML.
 * @param {string} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {HTMLElement}
 */
export function h(tag, attributes = {}, ...children) {
  return /** @type {HTMLElement} */ (filled(document.createElement(tag), attributes, children));
}

/**
 * An element of SVG.
 * @param {string} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {SVGElement}
 */
export function s(tag, attributes = {}, ...children) {
  return /** @type {SVGElement} */ (filled(document.createElementNS(SVG, tag), attributes, children));
}

/** @param {Element} element @param {Attributes} attributes @param {Child[]} children */
function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  element.append(...flat(children));
  return element;
}

/** @param {Child[]} children @returns {(Node | string)[]} */
function flat(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : String(child)));
}

/** A name from data, which keeps its own direction of writing. @param {string} text @param {string} [kind] */
export function name(text, kind = "atom") {
  return h("bdi", { class: kind }, printable(text));
}

/** Control characters have no picture of their own: they are shown by one. @param {string} text */
export function printable(text) {
  return text.replace(/[\u0000-\u001f\u007f]/g, (character) => {
    const code = character.charCodeAt(0);
    return String.fromCharCode(0x2400 + Math.min(code, 0x21));
  });
}

/** A link within the page. @param {string} href @param {Attributes} attributes @param {...Child} children */
export function link(href, attributes, ...children) {
  return h("a", { href, ...attributes }, ...children);
}

/** A button that submits nothing. @param {Attributes} attributes @param {...Child} children */
export function button(attributes, ...children) {
  return h("button", { type: "button", ...attributes }, ...children);
}

/** A section with its heading. @param {string} title @param {...Child} children */
export function section(title, ...children) {
  const id = `section-${title.toLowerCase().replace(/[^a-z]+/g, "-")}`;
  return h("section", { "aria-labelledby": id }, h("h2", { id }, title), ...children);
}

/** What may be wider than the screen, and is then scrolled on its own. @param {string} label @param {...Child} children */
export function scrolled(label, ...children) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, ...children);
}

/** Say something to who hears the page. @param {string} text */
export function announce(text) {
  const status = document.getElementById("status");
  if (status) status.textContent = text;
}

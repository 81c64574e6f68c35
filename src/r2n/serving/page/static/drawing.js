/**
 * Drawings that the server makes as SVG: charts as they are, explanations with switches attached.
 */

import { address } from "./address.js";
import { printable, s } from "./dom.js";

/** `of` is an atom or the name of a rule; `fact` can be left out. @typedef {{kind: "answer" | "atom" | "rule" | "more", of: string, fact: string | null}} DrawnNode */
/** @typedef {{svg: string, nodes: DrawnNode[]}} Drawing */
/** @typedef {{fact?: string, rule?: string}} Item */
/** @typedef {{changes: import("./address.js").Changes, turn: (item: Item) => void}} Context */

const TAGS = new Set(["svg", "title", "desc", "g", "rect", "text", "path", "polyline", "circle"]);
const ACTIVE = /^on|href|^style$|^src$/i; // attributes that no drawing has

/** SVG of the server as an element. Names in it are escaped; whatever could act is removed all the same. @param {string} text */
export function svgElement(text) {
  const parsed = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  for (const element of [parsed, ...parsed.querySelectorAll("*")]) {
    if (!TAGS.has(element.localName)) element.remove();
    for (const name of element.getAttributeNames()) if (ACTIVE.test(name)) element.removeAttribute(name);
  }
  return /** @type {SVGElement} */ (/** @type {unknown} */ (document.importNode(parsed, true)));
}

/** The drawing of an explanation, which scrolls where it is wider than the screen. @param {Drawing} drawing @param {Context} context */
export function explanationDrawing({ svg: text, nodes }, context) {
  const svg = svgElement(text);
  svg.setAttribute("role", "group");
  svg.querySelector(":scope > title")?.remove();
  svg.style.setProperty("--natural", `${svg.getAttribute("width")}px`);
  for (const element of /** @type {NodeListOf<SVGElement>} */ (svg.querySelectorAll("[data-node]"))) {
    const node = nodes[Number(element.dataset.node)];
    const item = switchOf(node, context.changes);
    const title = element.querySelector("title")?.textContent ?? printable(node.of);
    if (item) addSwitch(element, item, title, context);
    else if (node.kind === "atom") {
      const href = address("/explain", { atom: node.of }, context.changes);
      const anchor = s("a", { href, "aria-label": `${title}: why?` });
      element.replaceWith(anchor);
      anchor.append(element);
    } else {
      element.setAttribute("role", "img");
      element.setAttribute("aria-label", title);
    }
  }
  return svg;
}

/** A fact or a rule can be switched off; a fact that was stays in the drawing, to be switched on again. @param {DrawnNode} node @param {import("./address.js").Changes} changes @returns {Item | null} */
export function switchOf(node, changes) {
  if (node.kind === "rule") return { rule: node.of };
  const fact = node.fact ?? changes.without.find((text) => text === node.of || text === `!${node.of}`);
  return node.kind === "atom" && fact !== undefined ? { fact } : null;
}

/** @param {Item} item @param {import("./address.js").Changes} changes */
export function isSwitchedOff(item, changes) {
  if (item.rule !== undefined) return changes.without_rules.includes(item.rule);
  return item.fact !== undefined && changes.without.includes(item.fact);
}

/** @param {SVGElement} element @param {Item} item @param {string} title @param {Context} context */
function addSwitch(element, item, title, context) {
  const isOff = isSwitchedOff(item, context.changes);
  const press = (/** @type {Event} */ event) => {
    if (event instanceof KeyboardEvent && ![" ", "Enter"].includes(event.key)) return;
    event.preventDefault();
    context.turn(item);
  };
  element.addEventListener("click", press);
  element.addEventListener("keydown", press);
  element.classList.add("can-switch");
  element.classList.toggle("off", isOff);
  const state = {
    role: "switch",
    tabindex: "0",
    "aria-checked": String(!isOff),
    "aria-label": isOff ? `${title}, switched off` : title,
    "data-key": `box ${item.fact ?? item.rule}`,
  };
  for (const [name, value] of Object.entries(state)) element.setAttribute(name, value);
  const x = Number(element.querySelector(".frame")?.getAttribute("width")) - 14;
  const knob = [
    s("rect", { x: x - 12, y: -7, width: 22, height: 12, rx: 6 }),
    s("circle", { cx: isOff ? x - 6 : x + 4, cy: -1, r: 4 }),
  ];
  element.append(s("g", { class: "knob" }, ...knob));
}

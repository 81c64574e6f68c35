/**
 * A table that sorts by its columns.
 */

import { announce, button, h, scrolled } from "./dom.js";

/**
 * `order` gives what a row is sorted by; a column without it cannot be sorted.
 * @typedef {object} Column
 * @property {string} key
 * @property {string} title
 * @property {(row: any) => import("./dom.js").Child} cell
 * @property {(row: any) => number | string | null | undefined} [order]
 * @property {string} [kind]
 * @property {boolean} [isHeader]
 */
/** @typedef {{key: string, isUp: boolean} | null} Sorting */
/** @typedef {{label: string, caption?: string, columns: Column[], rows: any[], sorting?: Sorting, onSort?: (sorting: Sorting) => void}} Options */

/** A table, and `show`, which gives it other rows. @param {Options} options */
export function table(options) {
  const head = h("thead", { role: "rowgroup" });
  const body = h("tbody", { role: "rowgroup" });
  let { rows } = options;
  let sorting = options.sorting ?? null;

  const draw = () => {
    head.replaceChildren(h("tr", { role: "row" }, ...options.columns.map((column) => heading(column, sorting, sort))));
    body.replaceChildren(...sorted(rows, options.columns, sorting).map((row) => line(options.columns, row)));
  };
  const sort = (/** @type {Column} */ column) => {
    const isSame = sorting?.key === column.key;
    const isText = rows.length > 0 && typeof column.order?.(rows[0]) === "string";
    sorting = { key: column.key, isUp: isSame && sorting ? !sorting.isUp : isText };
    draw();
    const pressed = head.querySelector(`[data-sort="${CSS.escape(column.key)}"]`);
    if (pressed instanceof HTMLElement) pressed.focus();
    announce(`sorted by ${column.title}, ${sorting.isUp ? "ascending" : "descending"}`);
    options.onSort?.(sorting);
  };
  draw();
  const caption = options.caption ? h("caption", {}, options.caption) : null;
  const element = scrolled(options.label, h("table", { class: "stacking", role: "table" }, caption, head, body));
  return {
    element,
    /** @param {any[]} others */
    show(others) {
      rows = others;
      draw();
    },
    shown: () => sorted(rows, options.columns, sorting),
  };
}

/** @param {Column} column @param {Sorting} sorting @param {(column: Column) => void} sort */
function heading(column, sorting, sort) {
  if (!column.order) return h("th", { scope: "col", role: "columnheader", class: column.kind }, column.title);
  const isSorted = sorting?.key === column.key;
  const direction = isSorted ? (sorting?.isUp ? "ascending" : "descending") : "none";
  const arrow = h("span", { class: "arrow", "aria-hidden": "true" }, isSorted ? (sorting?.isUp ? "↑" : "↓") : "↕");
  const text = button(
    { class: "sort", "data-sort": column.key, on: { click: () => sort(column) } },
    column.title,
    arrow,
  );
  return h("th", { scope: "col", role: "columnheader", class: column.kind, "aria-sort": direction }, text);
}

/** @param {Column[]} columns @param {any} row */
function line(columns, row) {
  const cells = columns.map((column) => {
    const kind = column.isHeader ? { scope: "row", role: "rowheader" } : { role: "cell", "data-title": column.title };
    const content = column.cell(row);
    const isEmpty = content === null || content === undefined;
    const classes = [column.kind, isEmpty ? "is-empty" : ""].filter(Boolean).join(" ");
    return h(column.isHeader ? "th" : "td", { ...kind, class: classes || null }, content);
  });
  return h("tr", { role: "row" }, ...cells);
}

/** @param {any[]} rows @param {Column[]} columns @param {Sorting} sorting */
function sorted(rows, columns, sorting) {
  const order = columns.find((column) => column.key === sorting?.key)?.order;
  if (!order || !sorting) return rows;
  const sign = sorting.isUp ? 1 : -1;
  return [...rows].sort((a, b) => compared(order(a), order(b), sign));
}

/** What is missing goes last, either way. @param {any} a @param {any} b @param {number} sign */
function compared(a, b, sign) {
  const isMissing = [a, b].map((value) => value === null || value === undefined);
  if (isMissing[0] || isMissing[1]) return Number(isMissing[0]) - Number(isMissing[1]);
  return sign * (typeof a === "string" ? a.localeCompare(b, "en") : a - b);
}

/** The sorting in an address. @param {URLSearchParams} query @returns {Sorting} */
export function sortingOf(query) {
  const key = query.get("sort");
  return key ? { key, isUp: query.get("order") === "up" } : null;
}

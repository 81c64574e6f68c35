/**
 * Files that the page makes itself.
 */

import { button } from "./dom.js";

/** A button that gives a file. @param {string} title @param {string} file @param {() => string} content @param {string} type */
export function downloadButton(title, file, content, type) {
  return button({ class: "small", on: { click: () => download(file, content(), type) } }, title);
}

/** @param {string} file @param {string} content @param {string} type */
function download(file, content, type) {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const anchor = document.createElement("a");
  anchor.href = url;
  anchor.download = file;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Rows as CSV, with a line of names. @param {string[]} names @param {Record<string, any>[]} rows */
export function csv(names, rows) {
  const lines = [names, ...rows.map((row) => names.map((key) => row[key]))];
  return lines.map((line) => line.map(cell).join(",")).join("\r\n") + "\r\n";
}

/** @param {any} value */
function cell(value) {
  const text = value === null || value === undefined ? "" : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** @param {any} document */
export function json(document) {
  return `${JSON.stringify(document, null, 2)}\n`;
}

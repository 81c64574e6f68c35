/**
 * Numbers and atoms as text, the same as the command line says them.
 */

export const SMALLEST = 5e-5; // changes below this are none to the eye

/** `0.97`; near 0 and 1 with enough digits to differ from them. @param {number | null | undefined} value */
export function probability(value) {
  if (value === null || value === undefined) return "–";
  if (!(value > 0 && value < 1)) return value.toFixed(2);
  for (const digits of [2, 3, 4]) {
    const text = value.toFixed(digits);
    if (Number(text) > 0 && Number(text) < 1) return text;
  }
  return value < 0.5 ? "<0.0001" : ">0.9999";
}

/** `+2.31`, `-0.0004`. @param {number} value */
export function signed(value) {
  const text = value.toFixed(2);
  const digits = Number(text) || Math.abs(value) < SMALLEST ? text.replace("-0.00", "0.00") : value.toPrecision(1);
  if (Math.abs(value) < SMALLEST) return digits;
  return value > 0 ? `+${digits}` : digits.replace("-", "\u2212");
}

/** Two probabilities with enough digits to differ, at most four. @param {number} before @param {number} after */
export function apart(before, after) {
  const texts = [probability(before), probability(after)];
  if (before === after || texts[0] !== texts[1]) return texts;
  for (const digits of [3, 4]) {
    const longer = [before.toFixed(digits), after.toFixed(digits)];
    if (longer[0] !== longer[1]) return longer;
  }
  return texts;
}

/** `12,345`. @param {number | null | undefined} value */
export function count(value) {
  return value === null || value === undefined ? "–" : value.toLocaleString("en");
}

/** `0.9340`, or a dash. @param {number | null | undefined} value @param {number} [digits] */
export function number(value, digits = 4) {
  return value === null || value === undefined ? "–" : value.toFixed(digits);
}

/** `1 answer`, `12 answers`. @param {number} value @param {string} one @param {string} [many] */
export function counted(value, one, many = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** What is known of an answer. @param {{known: boolean | null, closed: boolean, reached?: boolean}} answer */
export function standing(answer) {
  if (answer.closed && !answer.known) return "closed";
  if (answer.known !== null && answer.known !== undefined) return answer.known ? "true" : "false";
  return answer.reached === false ? "no ground rule" : "";
}

/** The text without its middle, where it is longer. @param {string} text @param {number} most */
export function shortened(text, most) {
  const characters = Array.from(text);
  if (characters.length <= most) return text;
  const end = Math.floor(most / 3);
  return `${characters.slice(0, most - end - 1).join("")}…${characters.slice(-end).join("")}`;
}

const ATOM = /^\s*(!?)\s*("(?:[^"\\]|\\.)*"|'[^']*'|[^\s("']+)\s*\((.*)\)\s*\.?\s*$/s;
const TERM = /\s*("(?:[^"\\]|\\.)*"|'[^']*'|[^,"'\s][^,"']*?)\s*(,|$)/sy;

/**
 * The parts of an atom as it is written; null where it is none. A term that is null stands for anything (`?`).
 * @param {string} text
 * @returns {{predicate: string, terms: (string | null)[], truth: boolean} | null}
 */
export function parsedAtom(text) {
  const match = ATOM.exec(text);
  if (!match) return null;
  const terms = [];
  TERM.lastIndex = 0;
  for (let goesOn = true; goesOn; ) {
    const term = TERM.exec(match[3]);
    if (!term) return null;
    terms.push(term[1] === "?" ? null : bare(term[1]));
    goesOn = term[2] === ",";
  }
  return { predicate: bare(match[2]), terms, truth: !match[1] };
}

/** @param {string} text */
function bare(text) {
  const isQuoted = text.length > 1 && "\"'".includes(text[0]) && text.at(-1) === text[0];
  return isQuoted ? text.slice(1, -1).replace(/\\(.)/gs, "$1") : text;
}

/** A constant as it stands in a question. @param {string} constant */
export function quoted(constant) {
  const isPlain = constant !== "?" && constant === constant.trim() && !/[,"']/.test(constant) && constant !== "";
  return isPlain ? constant : `"${constant.replace(/(["\\])/g, "\\$1")}"`;
}

/**
 * A fact as a line of a file that `r2n predict --with` reads; null where no line can hold it.
 * @param {string} text
 */
export function factLine(text) {
  const atom = parsedAtom(text);
  if (!atom || atom.terms.includes(null) || /[\r\n]/.test(text)) return null;
  const [predicate, ...terms] = [atom.predicate, .../** @type {string[]} */ (atom.terms)].map(inFile);
  return `${atom.truth ? "" : "!"}${predicate}(${terms.join(", ")}).`;
}

/** @param {string} word */
function inFile(word) {
  return /^[\p{L}\p{N}_][\p{L}\p{N}_-]*$/u.test(word) ? word : `"${word.replace(/(["\\])/g, "\\$1")}"`;
}

/** Whether probabilities are calibrated, and on what. @param {import("./parts.js").Calibration} calibration */
export function calibrationText(calibration) {
  if (!calibration) return "Probabilities are not calibrated: they are what the network says.";
  const { temperature, shift, fitted_on: labels, why_not: reason, by_rows: rows } = calibration;
  if (reason) return `Probabilities are as trained, not calibrated: ${reason}.`;
  const isByRows = Object.keys(rows).length > 0;
  if (isByRows) return `Probabilities that atoms are true: by the logit and the rank in its row, fitted on ${labels}.`;
  if (temperature === 1 && shift === 0) return `Probabilities are as trained, which ${labels} do not contradict.`;
  return `Probabilities are calibrated: temperature ${temperature.toFixed(2)}, fitted on ${labels}.`;
}

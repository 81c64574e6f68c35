/**
 * Requests to the server. A served model does not change, so that an answer holds for good: the last ones are kept.
 */

const MOST_KEPT = 60;

/** @type {Map<string, any>} */
const kept = new Map();
let token = "";

/** @typedef {{line: string, column: number}} Caret the line that is wrong, and where; columns count from 1 */

/** What the server refuses, in the words of the command line. */
export class Refused extends Error {
  /** @param {number} status @param {Record<string, any>} reply */
  constructor(status, reply) {
    super(reply.what || `the server answered ${status}`);
    this.status = status;
    this.what = this.message;
    /** @type {string | null} */
    this.where = reply.where ?? null;
    /** @type {string | null} */
    this.hint = reply.hint ?? null;
    /** @type {Caret | null} */
    this.caret = reply.caret ?? null;
  }
}

/** Keep the token for the requests to come; it lives as long as the page. @param {string} text */
export function useToken(text) {
  token = text;
}

/**
 * The document at a path.
 * @param {string} path
 * @param {AbortSignal} [signal]
 */
export function get(path, signal) {
  return remembered(path, () => request(path, { signal }));
}

/**
 * The answer to a posted document.
 * @param {string} path
 * @param {object} body
 * @param {AbortSignal} [signal]
 */
export function post(path, body, signal) {
  const text = JSON.stringify(body);
  const headers = { "Content-Type": "application/json" };
  return remembered(`${path} ${text}`, () => request(path, { method: "POST", body: text, headers, signal }));
}

/** @param {string} key @param {() => Promise<any>} ask */
async function remembered(key, ask) {
  if (kept.has(key)) return kept.get(key);
  const answer = await ask();
  kept.set(key, answer);
  for (const oldest of kept.keys()) {
    if (kept.size <= MOST_KEPT) break;
    kept.delete(oldest);
  }
  return answer;
}

/** @param {string} path @param {RequestInit} options */
async function request(path, options) {
  const headers = new Headers(options.headers);
  if (token) headers.set("Authorization", `Bearer ${token}`);
  let response;
  try {
    response = await fetch(path, { ...options, headers, credentials: "omit" });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Refused(0, { what: "the server does not answer", hint: "is r2n serve still running?" });
  }
  const isJson = (response.headers.get("Content-Type") ?? "").includes("json");
  const reply = isJson ? await response.json() : {};
  if (!response.ok) throw new Refused(response.status, reply);
  return reply;
}

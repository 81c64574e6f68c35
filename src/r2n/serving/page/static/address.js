/**
 * The address of the page is its state: what is shown, and which facts are otherwise.
 */

/** @typedef {"ask" | "about" | "explain" | "what-if" | "rules" | "run" | "nowhere"} ViewName */
/** @typedef {{view: ViewName, name: string, query: URLSearchParams}} Place `name` is that of a constant */
/**
 * What is otherwise than in training. `constants` are pairs of a domain and a new constant of it.
 * @typedef {{with: string[], without: string[], constants: [string, string][], without_rules: string[]}} Changes
 */

const VIEWS = ["explain", "what-if", "rules", "run"];

/** What an address shows. @param {URL | Location} url @returns {Place} */
export function placeOf(url) {
  const query = new URLSearchParams(url.search);
  const path = url.pathname.replace(/^\//, "");
  if (path === "") return { view: "ask", name: "", query };
  if (path === "about") return { view: "about", name: query.get("name") ?? "", query };
  if (path.startsWith("about/")) return { view: "about", name: decoded(path.slice("about/".length)), query };
  const view = VIEWS.includes(path) ? /** @type {ViewName} */ (path) : "nowhere";
  return { view, name: "", query };
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The page of a constant; `.` and `..` would be steps of a path, however they are written. @param {string} constant */
export function aboutAddress(constant) {
  return [".", ".."].includes(constant) ? `/about?name=${constant}` : `/about/${encodeURIComponent(constant)}`;
}

/**
 * An address with what is given; what is empty is left out.
 * @param {string} path
 * @param {Record<string, string | number | boolean | null | undefined>} given
 * @param {Changes} [changes]
 */
export function address(path, given, changes = nothing()) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(given)) {
    if (value === true) query.set(key, "1");
    else if (value !== null && value !== undefined && value !== false && value !== "") query.set(key, String(value));
  }
  for (const fact of changes.with) query.append("with", fact);
  for (const fact of changes.without) query.append("without", fact);
  for (const [domain, constant] of changes.constants) query.append("constant", `${domain}=${constant}`);
  for (const rule of changes.without_rules) query.append("without_rule", rule);
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

/** @returns {Changes} */
export function nothing() {
  return { with: [], without: [], constants: [], without_rules: [] };
}

/** The changes in an address. @param {URLSearchParams} query @returns {Changes} */
export function changesOf(query) {
  const constants = query.getAll("constant").map((text) => {
    const [domain, ...rest] = text.split("=");
    return /** @type {[string, string]} */ ([domain, rest.join("=")]);
  });
  return {
    with: query.getAll("with"),
    without: query.getAll("without"),
    constants,
    without_rules: query.getAll("without_rule"),
  };
}

/** The changes in the form of a request. @param {Changes} changes */
export function changesBody(changes) {
  /** @type {Record<string, string[]>} */
  const constants = {};
  for (const [domain, constant] of changes.constants) (constants[domain] ??= []).push(constant);
  return { with: changes.with, without: changes.without, constants, without_rules: changes.without_rules };
}

/** How many changes there are. @param {Changes} changes */
export function changesCount(changes) {
  return changes.with.length + changes.without.length + changes.constants.length + changes.without_rules.length;
}

/** The list without the item, or with it. @param {string[]} items @param {string} item */
export function toggled(items, item) {
  return items.includes(item) ? items.filter((other) => other !== item) : [...items, item];
}

/**
 * The drawing of an explanation for a narrow screen: below each other and indented, instead of side by side.
 */

/** @typedef {import("./reason_graph.js").Box} Box */
/** @typedef {import("./reason_graph.js").Tie} Tie */
/** @typedef {{width: number, height: number, boxes: Box[], links: Tie[]}} Drawing */

const INDENT = 14;
const [GAP_RULE, GAP_ATOM] = [16, 9];
const TURN = 6;

/** The same boxes and lines, laid out anew. @param {Drawing} drawing @returns {Drawing} */
export function narrowed(drawing) {
  /** @type {Map<string, Box>} */
  const placed = new Map();
  let bottom = 8;
  const put = (/** @type {Box} */ box, /** @type {number} */ depth) => {
    if (placed.has(box.id)) return;
    const gap = box.kind === "atom" ? GAP_ATOM : GAP_RULE;
    const y = placed.size ? bottom + gap : bottom;
    placed.set(box.id, { ...box, x: depth * INDENT, y });
    bottom = y + box.height;
    for (const next of below(drawing, box)) put(next, depth + 1);
  };
  for (const box of drawing.boxes) put(box, box.column);
  const boxes = [...placed.values()];
  const links = drawing.links.flatMap((tie) => elbow(tie, placed));
  return { boxes, links, width: Math.max(...boxes.map((box) => box.x + box.width)), height: bottom + 8 };
}

/** The ground rules that moved an atom, or the atoms of a ground rule. @param {Drawing} drawing @param {Box} box */
function below(drawing, box) {
  const isRule = box.kind === "rule";
  const ends = drawing.links
    .filter((tie) => (isRule ? tie.from === box.id && tie.effect === null : tie.to === box.id && tie.effect !== null))
    .map((tie) => (isRule ? tie.to : tie.from));
  return drawing.boxes.filter((other) => ends.includes(other.id) && other.column > box.column);
}

/** Down from the upper box, and then to the side of the lower. @param {Tie} tie @param {Map<string, Box>} placed */
function elbow(tie, placed) {
  const ends = [placed.get(tie.from), placed.get(tie.to)];
  const [upper, lower] = ends.sort((a, b) => (a?.y ?? 0) - (b?.y ?? 0));
  if (!upper || !lower || lower.x <= upper.x) return []; // told above: it stands there with its reasons
  const [x, y] = [upper.x + TURN, lower.y + lower.height / 2];
  /** @type {[number, number][]} */
  const points = [
    [x, upper.y + upper.height],
    [x, y],
    [lower.x, y],
  ];
  return [{ ...tie, points }];
}

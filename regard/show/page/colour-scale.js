// From weights to levels of the colour scale.

/** @typedef {import("./weights.js").View} View */
/**
 * How weights become colours: the curve, whether each row is scaled separately, the weight below
 * which nothing is drawn, and the weight that has the last colour (default: the largest of the view).
 * @typedef {{kind: "linear" | "sqrt" | "log", rows: boolean, threshold: number, high?: number}} Scale
 */

/** @type {Scale} */
export const PLAIN = { kind: "linear", rows: false, threshold: 0 };

const DECADES = 999;

/**
 * The share of the scale, from 0 to 1, of a share of the largest weight.
 * @param {number} share @param {Scale["kind"]} kind
 * @returns {number}
 */
export function applyCurve(share, kind) {
  const within = Math.min(1, Math.max(0, share));
  if (kind === "sqrt") return Math.sqrt(within);
  if (kind === "log") return Math.log1p(DECADES * within) / Math.log1p(DECADES);
  return within;
}

/** Each curve at 4097 points, so that a matrix of a million cells needs no logarithms. */
const tables = Object.fromEntries(
  ["linear", "sqrt", "log"].map((kind) => [
    kind,
    Uint8Array.from({ length: 4097 }, (_, i) =>
      Math.round(255 * applyCurve(i / 4096, /** @type {Scale["kind"]} */ (kind))),
    ),
  ]),
);

/**
 * The largest weight of a row.
 * @param {View} view @param {number} row
 * @returns {number}
 */
export function rowLargest(view, row) {
  const wide = view.keys.length;
  let largest = 0;
  for (let i = row * wide; i < (row + 1) * wide; i++) {
    if (view.weights[i] > largest) largest = view.weights[i];
  }
  return largest;
}

/**
 * Colour levels of all cells, 0 to 255.
 * @param {View} view @param {Scale} scale
 * @returns {Uint8Array}
 */
export function levels(view, scale) {
  const wide = view.keys.length;
  const out = new Uint8Array(view.weights.length);
  const table = tables[scale.kind];
  for (let row = 0, i = 0; row < view.queries.length; row++) {
    const high = (scale.rows ? rowLargest(view, row) : scale.high ?? view.largest) || 1;
    const factor = 4096 / high;
    for (let column = 0; column < wide; column++, i++) {
      const weight = view.weights[i];
      if (weight > 0 && weight >= scale.threshold) {
        out[i] = table[Math.min(4096, Math.round(weight * factor))];
      }
    }
  }
  return out;
}

/**
 * The colour level of one weight.
 * @param {number} weight @param {View} view @param {number} row @param {Scale} scale
 * @returns {number}
 */
export function level(weight, view, row, scale) {
  if (weight < scale.threshold) return 0;
  const high = (scale.rows ? rowLargest(view, row) : scale.high ?? view.largest) || 1;
  return Math.round(255 * applyCurve(weight / high, scale.kind));
}

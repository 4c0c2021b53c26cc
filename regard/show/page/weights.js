// The trace document: finding looks in it, and unpacking their weights when they are needed.

import { lookName } from "./look-names.js";
import { mergeTokens, mergeWeights, unitsOf } from "./units.js";

/** @typedef {import("./token-text.js").Token} Token */
/** @typedef {{text: string, tokens: Token[]}} Side */
/** @typedef {{encoding: string, shape: [number, number], low: number, high: number, data: string}} Packed */
/**
 * @typedef {{name: string, query_side: string, key_side: string, layer?: number, head?: number,
 *   queries?: string[], keys?: string[], notes?: Record<string, string>,
 *   weights: number[][] | Packed}} LookRecord
 */
/** @typedef {{method: string, side: string, values: number[], output?: number | null}} Attribution */
/**
 * @typedef {{schema: string, version?: string, task: string, sides: Record<string, Side>,
 *   looks: LookRecord[], output: string, prediction?: Record<string, any>,
 *   alternatives?: {text: string, probability: number}[][], attributions?: Attribution[],
 *   alignment?: [number, number][] | null, card?: Record<string, any>}} TraceDocument
 */
/**
 * One matrix that is ready to be drawn: weights in row-major order, one row per query.
 * @typedef {{weights: Float32Array, queries: Token[], keys: Token[], largest: number,
 *   querySide: string, keySide: string, title: string, sums: string,
 *   rows: number[], columns: number[], marks: [number, number][]}} View
 */

/** @type {WeakMap<LookRecord, Float32Array>} */
const unpacked = new WeakMap();

/** @param {string} text @returns {Uint8Array<ArrayBuffer>} */
function fromBase64(text) {
  const native = /** @type {{fromBase64?: (text: string) => Uint8Array<ArrayBuffer>}} */ (Uint8Array).fromBase64;
  if (native) return native.call(Uint8Array, text);
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

/**
 * The weights of a look, row by row; unpacked once, when first asked for.
 * @param {LookRecord} look
 * @returns {Promise<Float32Array>}
 */
export async function weightsOf(look) {
  const known = unpacked.get(look);
  if (known) return known;
  const { weights } = look;
  /** @type {Float32Array} */
  let found;
  if (Array.isArray(weights)) {
    found = Float32Array.from(weights.flat());
  } else {
    const stream = /** @type {ReadableStream<Uint8Array<ArrayBuffer>>} */ (new Response(fromBase64(weights.data)).body);
    const open = stream.pipeThrough(new DecompressionStream("gzip"));
    const bytes = new Uint8Array(await new Response(open).arrayBuffer());
    const { low, high } = weights;
    const step = (high - low) / 65535;
    const size = bytes.length / 2;
    found = new Float32Array(size);
    for (let i = 0; i < size; i++) found[i] = low + step * (bytes[i] + 256 * bytes[size + i]);
  }
  unpacked.set(look, found);
  return found;
}

/** @param {LookRecord} look @returns {Float32Array | undefined} weights that were unpacked before */
export function weightsNow(look) {
  return unpacked.get(look);
}

/**
 * The tokens of one end of a look: those of the side, where they are the same words.
 * @param {TraceDocument} trace @param {string} side @param {string[] | undefined} words
 * @returns {Token[]}
 */
function tokensOf(trace, side, words) {
  const known = Object.hasOwn(trace.sides, side) ? trace.sides[side].tokens : undefined;
  if (!words) return known ?? [];
  const same = known && known.length === words.length;
  return words.map((text, i) => (same && known[i].text === text ? known[i] : { text }));
}

/**
 * The mean or maximum of several heads, or the one there is.
 * @param {Float32Array[]} matrices @param {"mean" | "max"} aggregate
 * @returns {Float32Array}
 */
export function combine(matrices, aggregate) {
  if (matrices.length === 1) return matrices[0];
  const out = Float32Array.from(matrices[0]);
  for (const matrix of matrices.slice(1)) {
    if (aggregate === "mean") for (let i = 0; i < out.length; i++) out[i] += matrix[i];
    else for (let i = 0; i < out.length; i++) if (matrix[i] > out[i]) out[i] = matrix[i];
  }
  if (aggregate === "mean") for (let i = 0; i < out.length; i++) out[i] /= matrices.length;
  return out;
}

/**
 * A view of looks with the same words, with special tokens or without.
 * @param {TraceDocument} trace
 * @param {LookRecord[]} looks
 * @param {Float32Array[]} matrices the weights of each look
 * @param {{aggregate?: "mean" | "max", hideSpecial?: boolean, unit?: import("./units.js").Unit}} [options]
 * @returns {View}
 */
export function viewOf(trace, looks, matrices, { aggregate = "mean", hideSpecial = false, unit = "tokens" } = {}) {
  const look = looks[0];
  const queryTokens = tokensOf(trace, look.query_side, look.queries);
  const keyTokens = tokensOf(trace, look.key_side, look.keys);
  const [rowUnits, columnUnits] = [unitsOf(queryTokens, unit), unitsOf(keyTokens, unit)];
  const merged = rowUnits.length < queryTokens.length || columnUnits.length < keyTokens.length;
  const allQueries = merged ? mergeTokens(queryTokens, rowUnits) : queryTokens;
  const allKeys = merged ? mergeTokens(keyTokens, columnUnits) : keyTokens;
  const combined = combine(matrices, aggregate);
  const full = merged ? mergeWeights(combined, keyTokens.length, rowUnits, columnUnits) : combined;
  const visibleRows = visibleIndices(allQueries, hideSpecial);
  const visibleColumns = visibleIndices(allKeys, hideSpecial);
  const whole = visibleRows.length === allQueries.length && visibleColumns.length === allKeys.length;
  const weights = whole ? full : pick(full, allKeys.length, visibleRows, visibleColumns);
  let largest = 0;
  for (let i = 0; i < weights.length; i++) if (weights[i] > largest) largest = weights[i];
  const queries = visibleRows.map((row) => allQueries[row]);
  const keys = visibleColumns.map((column) => allKeys[column]);
  return {
    weights, queries, keys, largest,
    rows: visibleRows.map((row) => rowUnits[row][0]), columns: visibleColumns.map((column) => columnUnits[column][0]),
    querySide: look.query_side, keySide: look.key_side,
    title: titleOf(look, looks.length, aggregate),
    sums: sumsOf(full, allKeys.length, visibleColumns.length < allKeys.length),
    marks: marksOf(trace, look, queries, keys),
  };
}

/** @param {Token[]} tokens @param {boolean} hide @returns {number[]} */
function visibleIndices(tokens, hide) {
  const all = tokens.map((_, i) => i);
  const plain = all.filter((i) => !tokens[i].special);
  return hide && plain.length ? plain : all;
}

/** @param {Float32Array} full @param {number} wide @param {number[]} rows @param {number[]} columns */
function pick(full, wide, rows, columns) {
  const out = new Float32Array(rows.length * columns.length);
  let place = 0;
  for (const row of rows) for (const column of columns) out[place++] = full[row * wide + column];
  return out;
}

/**
 * A title: which side looks at which, layer, head.
 * @param {LookRecord} look @param {number} several @param {string} aggregate
 * @returns {string}
 */
export function titleOf(look, several = 1, aggregate = "mean") {
  const parts = [lookName(look.name)];
  if (look.layer !== undefined) parts.push(`layer ${look.layer}`);
  if (several > 1) parts.push(`${aggregate === "max" ? "maximum" : "mean"} of ${several} heads`);
  else if (look.head !== undefined) parts.push(`head ${look.head}`);
  return parts.join(" · ");
}

/**
 * What the rows sum to, in words.
 * @param {Float32Array} weights @param {number} wide @param {boolean} hidden
 * @returns {string}
 */
function sumsOf(weights, wide, hidden) {
  let ones = true;
  let zeros = false;
  for (let start = 0; start < weights.length; start += wide) {
    let sum = 0;
    for (let i = start; i < start + wide; i++) sum += weights[i];
    if (Math.abs(sum) < 1e-6) zeros = true;
    else if (Math.abs(sum - 1) > 0.02) ones = false;
  }
  if (!ones) return "rows need not sum to 1";
  if (hidden) return "each row sums to 1 including hidden tokens";
  return zeros ? "each row sums to 1, or to 0 where it is fully masked" : "each row sums to 1";
}

/**
 * Cells of aligned words.
 * @param {TraceDocument} trace @param {LookRecord} look @param {Token[]} queries @param {Token[]} keys
 * @returns {[number, number][]}
 */
function marksOf(trace, look, queries, keys) {
  if (!trace.alignment || look.query_side !== "target" || look.key_side !== "source") return [];
  const joined = new Set(trace.alignment.map(([source, target]) => `${target} ${source}`));
  /** @type {[number, number][]} */
  const marks = [];
  queries.forEach((query, row) =>
    keys.forEach((key, column) => {
      if (joined.has(`${query.word} ${key.word}`)) marks.push([row, column]);
    }),
  );
  return marks;
}

/**
 * How widely and how far a head looks, averaged over its rows: entropy in bits, mean distance.
 * @param {Float32Array} weights @param {number} wide
 * @returns {{entropy: number, distance: number}}
 */
export function measures(weights, wide) {
  let entropy = 0;
  let distance = 0;
  const tall = weights.length / wide;
  for (let row = 0, i = 0; row < tall; row++) {
    for (let column = 0; column < wide; column++, i++) {
      const weight = weights[i];
      if (weight > 0) {
        entropy -= weight * Math.log2(weight);
        distance += weight * Math.abs(row - column);
      }
    }
  }
  return { entropy: entropy / tall, distance: distance / tall };
}

// Pieces of words as one unit. The weights of a unit's keys are summed, since attention to a word is
// attention to any of its pieces; those of its queries are averaged, so that rows keep their sum.

/** @typedef {import("./token-text.js").Token} Token */
/** @typedef {"tokens" | "words"} Unit */

export const UNIT_NOTE = "Words: the weights of the pieces of a word are summed on the key side and averaged on the query side. The bytes of one character, such as an emoji, always count as one token.";

/**
 * Which consecutive tokens make one unit: pieces of a word, or the bytes of a single character.
 * @param {Token[]} tokens @param {Unit} unit
 * @returns {number[][]} indices of the tokens of each unit
 */
export function unitsOf(tokens, unit) {
  /** @type {number[][]} */
  const units = [];
  tokens.forEach((token, i) => {
    const before = i ? tokens[i - 1] : undefined;
    if (before && joins(before, token, unit)) units[units.length - 1].push(i);
    else units.push([i]);
  });
  return units;
}

/** @param {Token} before @param {Token} token @param {Unit} unit */
function joins(before, token, unit) {
  if (before.special || token.special) return false;
  if (sameSpan(before, token)) return true;
  return unit === "words" && typeof token.word === "number" && token.word === before.word;
}

/** @param {Token} before @param {Token} token bytes of one character have its place in the text */
function sameSpan(before, token) {
  return token.start !== undefined && token.end !== undefined && token.end > token.start
    && token.start === before.start && token.end === before.end;
}

/** @param {Token[]} tokens @param {number[][]} units @returns {Token[]} */
export function mergeTokens(tokens, units) {
  return units.map((unit) => {
    const pieces = unit.map((i) => tokens[i]);
    if (pieces.length === 1) return pieces[0];
    const text = pieces.filter((piece, i) => !i || !sameSpan(pieces[i - 1], piece)).map((piece) => piece.text).join("");
    return { ...pieces[0], text, end: pieces[pieces.length - 1].end };
  });
}

/**
 * @param {Float32Array} weights @param {number} wide @param {number[][]} rows @param {number[][]} columns
 * @returns {Float32Array}
 */
export function mergeWeights(weights, wide, rows, columns) {
  const out = new Float32Array(rows.length * columns.length);
  rows.forEach((row, r) => columns.forEach((column, c) => {
    let sum = 0;
    for (const i of row) for (const j of column) sum += weights[i * wide + j];
    out[r * columns.length + c] = sum / row.length;
  }));
  return out;
}

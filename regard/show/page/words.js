// Tokens on their way to the page: only ever text, and nothing in it that steers.

/** @typedef {{text: string, start?: number, end?: number, special?: boolean, word?: number}} Token */

const STEERING = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
export const LONGEST = 40;

/**
 * A token as it is shown: blanks are made visible, control and bidi characters are gone,
 * and a long one is cut with an ellipsis.
 * @param {string} text
 * @param {number} [longest]
 * @returns {string}
 */
export function shown(text, longest = LONGEST) {
  if (text === "") return "∅";
  const clean = text.slice(0, 4 * longest + 40).replace(/\n/g, "↵").replace(/\t/g, "⇥").replace(STEERING, "");
  if (clean.trim() === "") return clean === "" ? "·" : "␣".repeat(Math.min(clean.length, 8));
  const letters = Array.from(clean.trim());
  return letters.length > longest ? `${letters.slice(0, longest - 1).join("")}…` : letters.join("");
}

/** @param {number} weight @param {number} [digits] @returns {string} */
export function number(weight, digits = 2) {
  if (weight > 0 && weight < 0.5 * 10 ** -digits) return `<${(10 ** -digits).toFixed(digits)}`;
  return weight.toFixed(digits);
}

/**
 * Whether a blank stands before a token in its side's text.
 * @param {Token[]} tokens @param {number} index
 * @returns {boolean}
 */
export function spaced(tokens, index) {
  if (index === 0) return false;
  const before = tokens[index - 1];
  const token = tokens[index];
  if (token.special || before.special || !token.end || token.start === undefined) return true;
  return token.start > (before.end ?? 0) || token.start < (before.start ?? 0);
}

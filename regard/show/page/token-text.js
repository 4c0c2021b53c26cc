// Tokens as text for the page, without control characters.

/** @typedef {{text: string, start?: number, end?: number, special?: boolean, word?: number}} Token */

const NONCHARACTER = /\p{Noncharacter_Code_Point}/gu; // U+FFFE and others, which SVG must not contain
const STEERING = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
export const LONGEST = 40;

/**
 * A token as it is displayed: white space is made visible, control and bidi characters are removed,
 * and long tokens are truncated with an ellipsis.
 * @param {string} text
 * @param {number} [longest]
 * @returns {string}
 */
export function displayText(text, longest = LONGEST) {
  if (text === "") return "∅";
  const clean = text.slice(0, 4 * longest + 40).replace(/\n/g, "↵").replace(/\t/g, "⇥").replace(STEERING, "").replace(NONCHARACTER, "\ufffd");
  if (clean.trim() === "") return clean === "" ? "·" : "␣".repeat(Math.min(clean.length, 8));
  const letters = Array.from(clean.trim());
  return letters.length > longest ? `${letters.slice(0, longest - 1).join("")}…` : letters.join("");
}

/** @param {number} weight @param {number} [digits] @returns {string} */
export function formatWeight(weight, digits = 2) {
  if (weight > 0 && weight < 0.5 * 10 ** -digits) return `<${(10 ** -digits).toFixed(digits)}`;
  return weight.toFixed(digits);
}

/**
 * Whether white space precedes a token in the text of its side.
 * @param {Token[]} tokens @param {number} index
 * @returns {boolean}
 */
export function hasSpaceBefore(tokens, index) {
  if (index === 0) return false;
  const before = tokens[index - 1];
  const token = tokens[index];
  if (token.special || before.special || !token.end || token.start === undefined) return true;
  return token.start > (before.end ?? 0) || token.start < (before.start ?? 0);
}

// Words of two texts: alignment links, pins (allowed source words), and changes between versions.

/** @typedef {import("/page/token-text.js").Token} Token */
/** @typedef {import("/page/weights.js").View} View */

/**
 * The source word that each target word looked at most, as pairs of words counted from 0: tokens of
 * one word are taken together.
 * @param {View} view rows target, columns source
 * @returns {[number, number][]} source, target
 */
export function alignmentLinks(view) {
  const wide = view.keys.length;
  /** @type {Map<number, Map<number, number>>} */
  const sums = new Map();
  view.queries.forEach((query, row) => {
    if (query.special) return;
    const target = query.word ?? view.rows[row];
    const line = sums.get(target) ?? new Map();
    sums.set(target, line);
    view.keys.forEach((key, column) => {
      if (key.special) return;
      const source = key.word ?? view.columns[column];
      line.set(source, (line.get(source) ?? 0) + view.weights[row * wide + column]);
    });
  });
  /** @type {[number, number][]} */
  const links = [];
  for (const [target, line] of sums) {
    const most = [...line].reduce((best, one) => (one[1] > best[1] ? one : best), [-1, 0]);
    if (most[0] >= 0) links.push([most[0], target]);
  }
  return links.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
}

/**
 * Pins as written in an address, `1:2,3;4:0`.
 * @param {string | undefined} text
 * @returns {Record<number, number[]>}
 */
export function pinsOf(text) {
  /** @type {Record<number, number[]>} */
  const pins = {};
  for (const part of (text ?? "").split(";")) {
    const [, place, keys] = /^(\d{1,3}):(\d{1,4}(?:,\d{1,4})*)$/.exec(part) ?? [];
    if (place) pins[Number(place)] = keys.split(",").map(Number);
  }
  return pins;
}

/** @param {Record<number, number[]>} pins @returns {string} */
export function pinsText(pins) {
  return Object.entries(pins).map(([place, keys]) => `${place}:${keys.join(",")}`).join(";");
}

/**
 * Which words disappear from one text to another, and which are new: those outside the longest common
 * subsequence.
 * @param {Token[]} before @param {Token[]} after
 * @returns {{gone: boolean[], made: boolean[]}}
 */
export function wordChanges(before, after) {
  const [tall, wide] = [before.length, after.length];
  const longest = Array.from({ length: tall + 1 }, () => new Uint16Array(wide + 1));
  for (let i = tall - 1; i >= 0; i--) {
    for (let j = wide - 1; j >= 0; j--) {
      longest[i][j] = before[i].text === after[j].text ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
    }
  }
  const gone = new Array(tall).fill(true);
  const made = new Array(wide).fill(true);
  for (let i = 0, j = 0; i < tall && j < wide;) {
    if (before[i].text === after[j].text) { gone[i++] = false; made[j++] = false; }
    else if (longest[i + 1][j] >= longest[i][j + 1]) i++;
    else j++;
  }
  return { gone, made };
}

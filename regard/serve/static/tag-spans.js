// Spans of words from labels such as B-PER, I-PER, O.

/** @param {string} tag @returns {string} the kind of a label, without its place in a span */
export function kindOf(tag) {
  return /^[BILUSE]-/.test(tag) ? tag.slice(2) : tag;
}

/**
 * Spans with the first word and the one after the last.
 * @param {string[]} tags
 * @returns {{kind: string, from: number, to: number}[]}
 */
export function spans(tags) {
  /** @type {{kind: string, from: number, to: number}[]} */
  const found = [];
  tags.forEach((tag, i) => {
    if (tag === "O") return;
    const last = found[found.length - 1];
    const goes = last && last.to === i && last.kind === kindOf(tag) && !/^[BUS]-/.test(tag) && /^[ILE]-/.test(tag);
    if (goes) last.to = i + 1;
    else found.push({ kind: kindOf(tag), from: i, to: i + 1 });
  });
  return found;
}

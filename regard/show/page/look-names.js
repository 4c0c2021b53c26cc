// Attention maps and their sides in plain words. Names that are not listed, such as those of other
// packages, are shown as they are.

/** @type {Record<string, string>} */
const LOOKS = {
  source: "Attention to the source",
  past: "Attention to the past",
  pooling: "Attention of the pooling",
  "pooling.self": "Self-attention of the pooling",
  "encoder.self": "Encoder self-attention",
  "decoder.self": "Decoder self-attention",
  "decoder.source": "Decoder attention to the source",
  "encoder.experts": "Experts of the encoder",
  "decoder.experts": "Experts of the decoder",
  experts: "Experts of the decision",
  "memory.read": "Read heads of the memory",
  "memory.write": "Write heads of the memory",
};

/** @type {Record<string, string>} */
const SIDES = {
  source: "source words", target: "words of the translation", written: "words written so far", next: "next words", text: "words of the text",
  queries: "queries", experts: "experts", decision: "decision", steps: "steps", slots: "slots of the memory",
};

/** @param {string} name @returns {string} */
export function lookName(name) { return LOOKS[name] ?? name; }

/**
 * What rows and columns are, with the languages where they are known.
 * @param {string} querySide @param {string} keySide @param {string[] | null | undefined} languages codes of both
 * @returns {string}
 */
export function sidesInWords(querySide, keySide, languages) {
  const side = (/** @type {string} */ name) => {
    const language = languages?.[name === "source" ? 0 : 1];
    const spoken = language && ["source", "target", "written"].includes(name) ? languageName(language) : "";
    return `${SIDES[name] ?? name}${spoken ? ` (${spoken})` : ""}`;
  };
  return `rows: ${side(querySide)}, columns: ${side(keySide)}`;
}

/** @param {string} code @returns {string} “French” for “fr”; other names as they are */
function languageName(code) {
  try {
    return new Intl.DisplayNames(["en"], { type: "language", fallback: "none" }).of(code) ?? "";
  } catch {
    return "";
  }
}

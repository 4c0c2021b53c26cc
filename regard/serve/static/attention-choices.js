// Scores, normalizers, masks and positions in words, and a bar of fields to choose them with. Names that
// are not described here, such as those of plug-ins, are shown as they are.

import { make } from "/page/elements.js";
import { fillSelect, selectField } from "./controls.js";

/** @typedef {import("./app.js").Context} Context */
/** @typedef {[label: string, formula: string, words: string]} Description */

/** Sentences to begin with; the first has vectors that were chosen by hand. */
export const PROVERBS = ["The early bird catches the worm", "A watched pot never boils", "Still waters run deep", "The dog bites the man"];

/** @type {Record<string, Description>} */
const SCORES = {
  scaled_dot: ["Scaled dot", "q · k ÷ √d", "The dot product of query and key, divided by √d so that it does not grow with their size. The score of the transformer."],
  dot: ["Dot", "q · k", "The dot product of query and key, as it is. Large vectors give large scores, and weights close to 0 and 1."],
  cosine: ["Cosine", "q · k ÷ |q| |k|", "The angle between query and key: their lengths do not matter. Scores stay between −1 and 1, so weights differ little."],
  bilinear: ["Bilinear", "xᵀ W x′", "A learned matrix W compares the word vectors themselves. Here W = W_Q W_Kᵀ, which gives the dot product of query and key."],
  mlp: ["MLP", "q · tanh(W k + b)", "Keys pass a hidden layer before the dot product. tanh limits each feature of a key to between −1 and 1."],
  additive: ["Additive", "w · tanh(W q + U k + b)", "Query and key are added, passed through tanh and weighted by w. The score of the first neural translators with attention."],
  location: ["Location", "(W q)ⱼ", "The query alone decides which positions to look at: the keys are not read. Here each feature of the query scores every fourth position."],
};

/** @type {Record<string, Description>} */
const NORMALIZERS = {
  softmax: ["Softmax", "eˢ ÷ Σ eˢ", "Every allowed key gets some weight, and each row sums to 1."],
  sparsemax: ["Sparsemax", "nearest point of the simplex", "Low scores get a weight of exactly 0; each row sums to 1."],
  entmax15: ["Entmax 1.5", "max(0, s ÷ 2 − τ)²", "Between softmax and sparsemax: low scores get exactly 0, others fade smoothly."],
  sigmoid: ["Sigmoid", "1 ÷ (1 + e⁻ˢ)", "Each key is judged alone, so rows need not sum to 1."],
  hard: ["Hard", "1 at the largest score", "The best key gets all the weight. It is a choice rather than a mixture."],
  sum: ["Sum", "s ÷ Σ s", "Plain division, without the exponential. It makes sense only for scores that are not negative."],
  none: ["None", "s", "The scores themselves are the weights, as in linear attention. Rows need not sum to 1."],
  "top_k(2)": ["Top 2", "softmax of the 2 largest", "Softmax over the two best keys; all others get exactly 0."],
};

/** @type {Record<string, Description>} */
const MASKS = {
  none: ["None", "all keys", "Every word may look at every word, as in an encoder."],
  causal: ["Causal", "key ≤ query", "Words look at themselves and at earlier words only, so that a language model cannot see what it has to predict."],
  window: ["Window", "|query − key| < size", "Words look at near words only, which makes long texts affordable."],
  "causal window": ["Causal window", "0 ≤ query − key < size", "Words look at themselves and at the last few words before them."],
  prefix: ["Prefix", "key ≤ query, or key < size", "Causal, but the first words, such as a prompt, are open to all."],
  dilated: ["Dilated", "query − key divisible by size", "Only every size-th word, counted from the query itself: far, but with gaps."],
  others: ["Others", "key ≠ query", "Every word but the query itself."],
};

/** @type {Record<string, Description>} */
const POSITIONS = {
  none: ["None", "–", "Attention does not see the order of words: the same word twice gets the same weight, and looks at the same words."],
  sinusoidal: ["Sinusoidal", "x + sin, cos", "Sines and cosines of the position are added to the word vectors, before queries and keys are made."],
  rotary: ["Rotary", "R(i) q · R(j) k", "Queries and keys are turned by an angle that grows with their position: scores depend on the distance."],
  "linear bias": ["Linear bias", "s − |i − j| ÷ 4", "A penalty that grows with the distance is added to the scores (ALiBi)."],
};

export const DESCRIPTIONS = { score: SCORES, normalize: NORMALIZERS, mask: MASKS, position: POSITIONS };

/** What is chosen where the address does not say. */
const DEFAULTS = /** @type {Record<string, string>} */ ({ score: "scaled_dot", normalize: "softmax", mask: "none", position: "none" });
const LISTS = /** @type {Record<string, string>} */ ({ score: "scores", normalize: "normalizers", mask: "masks", position: "positions" });
const LABELS = /** @type {Record<string, string>} */ ({ score: "Score", normalize: "Normalizer", mask: "Mask", position: "Position" });

/** @param {string} kind @param {string} name @returns {Description} */
export function describeChoice(kind, name) {
  return /** @type {Record<string, Record<string, Description>>} */ (DESCRIPTIONS)[kind]?.[name] ?? [name, name, ""];
}

/** Fields for the choices; call `show()` in every update, once the server's lists are known. */
export class AttentionChoices {
  /** @type {Record<string, string[]> | null} */
  #lists = null;
  /** @type {Map<string, {field: HTMLLabelElement, select: HTMLSelectElement}>} */
  #selects = new Map();
  #output = make("output", {});
  #slider = make("input", { type: "range", min: "-2", max: "2", step: "0.25", value: "0", "aria-label": "Temperature" });
  #size = make("input", { type: "number", min: "1", max: "60", value: "2", "aria-label": "Size" });
  #sized = make("label", { className: "field" }, make("span", { textContent: "Size" }), this.#size);

  /** @param {Context} context @param {string[]} kinds which of the choices there are */
  constructor(context, kinds) {
    this.context = context;
    for (const kind of kinds) {
      this.#selects.set(kind, selectField(LABELS[kind], (value) => context.setState({ [kind]: value === DEFAULTS[kind] ? undefined : value })));
    }
    this.#slider.addEventListener("input", () => {
      const value = 2 ** Number(this.#slider.value);
      context.setState({ temperature: value === 1 ? undefined : Number(value.toPrecision(3)) });
    });
    this.#size.addEventListener("change", () => context.setState({ size: this.#size.value === "2" ? undefined : this.#size.value }));
    const field = (/** @type {string} */ kind) => this.#selects.get(kind)?.field ?? null;
    this.bar = make("div", { className: "rg-fields", role: "group", "aria-label": "What attention is computed with" },
      field("score"), field("normalize"), make("label", { className: "field" }, make("span", { textContent: "Temperature" }), this.#slider, this.#output),
      field("mask"), this.#sized, field("position"));
  }

  async load() {
    this.#lists ??= await this.context.api.json("/v1/attention");
  }

  /** @param {string} kind @returns {string} the name that is chosen */
  chosen(kind) {
    const wanted = this.context.state[kind];
    return wanted && this.#lists?.[LISTS[kind]].includes(wanted) ? wanted : DEFAULTS[kind];
  }

  get temperature() {
    const wanted = Number(this.context.state.temperature);
    return wanted >= 0.01 && wanted <= 100 ? wanted : 1;
  }

  get size() {
    const wanted = Number(this.context.state.size);
    return Number.isInteger(wanted) && wanted >= 1 && wanted <= 60 ? wanted : 2;
  }

  /** @returns {boolean} whether the mask has a size */
  get sized() { return Boolean(this.#lists?.sized_masks.includes(this.chosen("mask"))); }

  /** @returns {Record<string, any>} what to ask the server for, defaults left out */
  body() {
    const names = [...this.#selects.keys()].map((kind) => [kind, this.chosen(kind)]).filter(([kind, name]) => name !== DEFAULTS[kind]);
    return { ...Object.fromEntries(names), ...(this.temperature === 1 ? {} : { temperature: this.temperature }), ...(this.sized ? { size: this.size } : {}) };
  }

  show() {
    for (const [kind, { select }] of this.#selects) {
      fillSelect(select, (this.#lists?.[LISTS[kind]] ?? []).map((name) => [name, describeChoice(kind, name)[0]]), this.chosen(kind));
    }
    this.#slider.value = String(Math.log2(this.temperature));
    this.#slider.setAttribute("aria-valuetext", String(this.temperature));
    this.#output.textContent = this.temperature.toFixed(2);
    this.#size.value = String(this.size);
    this.#sized.hidden = !this.sized;
  }
}

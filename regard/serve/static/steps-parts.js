// Parts of the Steps screen: numbers, vectors and matrices, and the steps in words.

import { palette } from "/page/colours.js";
import { make } from "/page/elements.js";
import { formatWeight } from "/page/token-text.js";
import { describeChoice } from "./attention-choices.js";

/**
 * @typedef {{score: string, query_token: string, key_tokens: string[], row: number, query: number[], keys: number[][],
 *   outer: number[] | null, products: number[] | null, scale: number | null, scores: number[],
 *   biased: number[], allowed: boolean[], normalize: string, weights: number[], values: number[][],
 *   output: number[], temperature: number}} Stages
 */
/** Word vectors, and the matrices that make queries, keys and values of them. @typedef {{vectors: number[][], projections: Record<"query" | "key" | "value", number[][]>}} Projected */

export const FEW = 6;

/** @param {Stages} stages @returns {[name: string, formula: string, words: string][]} */
export function describeSteps(stages) {
  const [d, closed] = [stages.query.length, stages.allowed.filter((open) => !open).length];
  const [name, formula, words] = describeChoice("normalize", stages.normalize);
  const scaled = stages.scale !== null && stages.scale !== 1;
  const moved = stages.biased.some((score, i) => Math.abs(score - stages.scores[i]) > 1e-6);
  return [
    ["Score", { scaled_dot: "q · k", location: "(W q)ⱼ" }[stages.score] ?? describeChoice("score", stages.score)[1],
      stages.outer ? "Query and key are added, passed through tanh and weighted by w: one score per key."
        : { bilinear: "The query is multiplied by a matrix W and then by each key: one score per key.",
          cosine: "Query and key are divided by their lengths and multiplied: the cosine of the angle between them.",
          mlp: "Keys pass a hidden layer with tanh and are multiplied by the query: one score per key.",
          location: "The query alone gives each position its score; the keys are not read." }[stages.score]
          ?? "The query is multiplied with each key, feature by feature, and summed: one score per key."],
    ["Scale", scaled ? scaling(stages) : "× 1", (scaled ? `Sums over ${d} features grow with √${d}, which would saturate the softmax. Dividing by it prevents that.` : "This score is not scaled.") + (moved ? " A position bias is added." : "")],
    ["Mask", "key allowed?", closed ? `${closed} of ${stages.allowed.length} keys are masked and drop out here.` : "Nothing is masked here: every key is allowed."],
    [name, stages.temperature === 1 ? formula : `${formula},  s = score ÷ ${stages.temperature}`, words || "The scores become weights."],
    ["Sum", "Σ weight · value", "Each value is multiplied by its weight. The sum of them is the output."],
  ];
}

/** @param {number} value @param {number} [digits] @returns {string} always with two digits behind the point, and with three for weights */
export function formatNumber(value, digits = 2) {
  return value.toFixed(digits).replace(/^-(?=0\.0*$)/, "").replace("-", "−");
}

/** @param {Stages} stages @returns {string} what scores are scaled by; nothing where they are not */
export function scaling({ scale, query }) {
  if (scale === null || scale === 1) return "";
  return Math.abs(scale - query.length ** -0.5) < 1e-6 ? `÷ √${query.length}` : `× ${formatNumber(scale)}`;
}

/** @param {number} weight */
export function weightBar(weight) {
  const shade = palette();
  const level = Math.round(255 * Math.sqrt(Math.min(1, weight)));
  const node = make("span", { className: "rg-weight", textContent: formatWeight(weight, 3) });
  node.style.background = shade.css[level];
  node.style.color = shade.ink[level];
  return node;
}

/** @param {number[]} values @param {number} largest @param {string} label @param {number} share how much of it is taken */
export function vector(values, largest, label, share) {
  const few = values.length <= FEW;
  const node = make("span", { className: few ? "rg-vector" : "rg-vector many", role: "img", "aria-label": `${label}: ${values.slice(0, 8).map((value) => formatNumber(value)).join(", ")}${values.length > 8 ? "…" : ""}`, title: label });
  node.append(...values.map((value) => {
    const taken = value * share;
    const colours = palette(taken < 0);
    const level = Math.min(255, Math.round((255 * Math.abs(taken)) / largest));
    const cell = make("span", few ? { textContent: formatNumber(value) } : {});
    cell.style.background = colours.css[level];
    cell.style.color = colours.ink[level];
    return cell;
  }));
  return node;
}

/** @param {Stages} stages @returns {[name: string, formula: string, words: string]} what happens before the first score */
export function describeProjection(stages) {
  if (stages.score === "bilinear") return ["Project", "q = k = x,  v = x W_V", "A bilinear score compares the word vectors x themselves. Only values are projected."];
  return ["Project", "q = x W_Q,  k = x W_K,  v = x W_V", "Three matrices make of each word vector x what the word looks for, what it offers, and what it passes on."];
}

/** @param {Projected} projected @returns {HTMLElement} the three matrices */
export function projectionMatrices({ projections }) {
  const largest = Math.max(1e-9, ...Object.values(projections).flat(2).map(Math.abs));
  return make("div", { className: "rg-projections" }, .../** @type {["query" | "key" | "value", string][]} */ ([["query", "W_Q"], ["key", "W_K"], ["value", "W_V"]]).map(([kind, name]) =>
    make("figure", {}, make("figcaption", { textContent: `${name}: x → ${kind}` }), make("div", { className: "rg-projection" },
      ...projections[kind][0].map((_, column) => vector(projections[kind].map((line) => line[column]), largest, `${name}, column ${column + 1}`, 1))))));
}

/**
 * @param {Projected} projected @param {number} row
 * @returns {string} how the largest feature of a query comes about
 */
export function projectionSum({ vectors, projections }, row) {
  const x = vectors[row];
  const features = projections.query[0].map((_, j) => x.reduce((sum, value, i) => sum + value * projections.query[i][j], 0));
  const most = features.reduce((best, value, j) => (Math.abs(value) > Math.abs(features[best]) ? j : best), 0);
  return `q${"₁₂₃₄"[most] ?? ""} = ${x.map((value, i) => `${formatNumber(value)}·${formatNumber(projections.query[i][most])}`).join(" + ")} = ${formatNumber(features[most])}`;
}

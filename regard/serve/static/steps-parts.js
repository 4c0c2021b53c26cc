// Parts of the Steps screen: numbers, vectors and matrices, and the steps in words.

import { palette } from "/page/colours.js";
import { make } from "/page/elements.js";
import { displayText, formatWeight } from "/page/token-text.js";
import { describeChoice } from "./attention-choices.js";

/**
 * @typedef {{score: string, query_token: string, key_tokens: string[], row: number, query: number[], keys: number[][],
 *   outer: number[] | null, products: number[] | null, scale: number | null, scores: number[],
 *   biased: number[], allowed: boolean[], normalize: string, weights: number[], values: number[][],
 *   output: number[], temperature: number}} Stages
 */
/** @typedef {{weight: number[][] | null, bias: number[] | null}} Projection x → x W + b; a weight of null is too large to be sent */
/**
 * The vectors x of the query and the keys, and how queries, keys and values are made of them: null where they are x itself.
 * @typedef {{query_input: number[], key_inputs: number[][], rotated: boolean} & Record<"query" | "key" | "value", Projection | null>} Projected
 */
/** @typedef {"query" | "key" | "value"} Kind */

const NAMES = /** @type {[Kind, string, string][]} */ ([["query", "q", "W_Q"], ["key", "k", "W_K"], ["value", "v", "W_V"]]);
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

/**
 * @param {{vectors: number[][], projections: Record<Kind, number[][]>}} reply of the server, for a sentence without a model
 * @param {Stages} stages @returns {Projected}
 */
export function projectedExample({ vectors, projections }, { row, score }) {
  const of = (/** @type {number[][]} */ weight) => ({ weight, bias: null });
  const { query, key, value } = projections;
  const joined = query.map((line) => key.map((other) => line.reduce((sum, part, i) => sum + part * other[i], 0)));
  const bilinear = score === "bilinear"; // compares the vectors themselves, with W = W_Q W_Kᵀ
  return { query_input: vectors[row], key_inputs: vectors, rotated: false, query: of(bilinear ? joined : query), key: bilinear ? null : of(key), value: of(value) };
}

/** @param {Projected} projected @param {Stages} stages @returns {boolean} whether the query's vector is that of one of the keys */
export function sameVectors({ query_input, key_inputs }, { row }) {
  const own = key_inputs[row];
  return own !== undefined && own.length === query_input.length && own.every((value, i) => Math.abs(value - query_input[i]) < 1e-5);
}

/** @param {Stages} stages @param {Projected} projected @returns {[name: string, formula: string, words: string]} what happens before the first score */
export function describeProjection(stages, projected) {
  const formula = NAMES.map(([kind, letter, matrix]) => `${letter} = x${projected[kind] ? ` ${kind === "query" && !projected.key ? "W" : matrix}${projected[kind].bias ? " + b" : ""}` : ""}`).join(",  ");
  const made = NAMES.filter(([kind]) => projected[kind]).map(([, letter]) => letter);
  const words = stages.score === "bilinear"
    ? "The query is multiplied by the matrix W of the bilinear score. The keys are the vectors x themselves."
    : made.length === 3 ? "Three matrices turn each vector x into what it looks for, what it offers, and what it passes on."
      : made.join() === "q,k" ? "Two matrices of the score turn the vectors x into the query and the keys. The values are the vectors themselves."
        : `Of the vectors x, ${made.join(" and ")} are projected by a matrix; the others are x itself.`;
  return ["Project", formula, `${words}${projected.rotated ? " Queries and keys are then rotated by their position." : ""}`];
}

/** @param {Projected} projected @returns {HTMLElement} the matrices */
export function projectionMatrices(projected) {
  const made = NAMES.flatMap(([kind, , name]) => (projected[kind] ? [/** @type {const} */ ([kind, name, projected[kind].weight])] : []));
  const largest = made.reduce((most, [, , weight]) => Math.max(most, ...(weight ?? []).map((row) => Math.max(...row.map(Math.abs)))), 1e-9);
  return make("div", { className: "rg-projections" }, ...made.map(([kind, name, weight]) => make("figure", {},
    make("figcaption", { textContent: `${name}: x → ${kind}${weight && !isSmall(weight) ? `, ${weight.length} × ${weight[0].length}` : ""}` }),
    weight === null ? make("p", { className: "hint", textContent: "too large to show here" })
      : isSmall(weight) ? make("div", { className: "rg-projection" }, ...weight[0].map((_, column) => vector(weight.map((line) => line[column]), largest, `${name}, column ${column + 1}`, 1)))
        : matrixImage(weight, largest, `${name}: ${weight.length} rows, ${weight[0].length} columns, between ${formatNumber(-largest)} and ${formatNumber(largest)}`))));
}

/** @param {number[][]} weight */
function isSmall(weight) { return weight.length <= FEW && weight[0].length <= FEW; }

/** @param {number[][]} weight @param {number} largest @param {string} label @returns {HTMLCanvasElement} one pixel per number */
function matrixImage(weight, largest, label) {
  const [tall, wide] = [weight.length, weight[0].length];
  const canvas = make("canvas", { className: "rg-projection-image", width: wide, height: tall, role: "img", "aria-label": label });
  canvas.style.aspectRatio = `${wide} / ${tall}`;
  const context = canvas.getContext("2d");
  const palettes = [palette(false), palette(true)];
  weight.forEach((row, y) => row.forEach((value, x) => {
    if (!context) return;
    context.fillStyle = palettes[Number(value < 0)].css[Math.min(255, Math.round((255 * Math.abs(value)) / largest))];
    context.fillRect(x, y, 1, 1);
  }));
  return canvas;
}

/**
 * @param {Projected} projected @param {Stages} stages
 * @returns {string} how the largest feature of the query, or of a key where the query is not projected, comes about
 */
export function projectionSum(projected, stages) {
  const kind = projected.query?.weight ? "query" : projected.key?.weight ? "key" : null;
  if (!kind) return "";
  const x = kind === "query" ? projected.query_input : projected.key_inputs[0];
  const { weight, bias } = /** @type {{weight: number[][], bias: number[] | null}} */ (projected[kind]);
  const features = weight[0].map((_, j) => x.reduce((sum, value, i) => sum + value * weight[i][j], bias?.[j] ?? 0));
  const most = features.reduce((best, value, j) => (Math.abs(value) > Math.abs(features[best]) ? j : best), 0);
  const terms = x.map((value, i) => `${formatNumber(value)}·${formatNumber(weight[i][most])}`);
  const order = x.map((value, i) => [Math.abs(value * weight[i][most]), i]).sort(([one], [other]) => other - one).map(([, i]) => i);
  const shown = terms.length <= FEW ? terms : [...order.slice(0, 3).map((i) => terms[i]), `… ${terms.length - 3} more`];
  if (bias) shown.push(`b ${formatNumber(bias[most])}`);
  const place = [...String(most + 1)].map((digit) => "₀₁₂₃₄₅₆₇₈₉"[Number(digit)]).join("");
  const word = kind === "key" ? `‘${displayText(stages.key_tokens[0], 20)}’: ` : "";
  return `${word}${kind === "query" ? "q" : "k"}${place} = ${shown.join(" + ")} = ${formatNumber(features[most])}`;
}

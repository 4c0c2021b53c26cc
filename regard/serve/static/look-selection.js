// What to draw of a trace: which looks, how heads are combined, on which scale.

import { viewOf, weightsOf } from "/page/weights.js";

/** @typedef {import("/page/weights.js").TraceDocument} TraceDocument */
/** @typedef {import("/page/weights.js").LookRecord} LookRecord */
/** @typedef {import("/page/weights.js").View} View */
/** @typedef {import("/page/colour-scale.js").Scale} Scale */
/**
 * @typedef {{names: string[], name: string, family: LookRecord[], layers: number[], layer: number | null,
 *   heads: number[], head: number | null, aggregate: "one" | "mean" | "max", looks: LookRecord[]}} Chosen
 */

/** @param {(number | undefined)[]} all @returns {number[]} */
function numbers(all) {
  return [...new Set(all)].filter((n) => n !== undefined).sort((a, b) => a - b);
}

/**
 * The looks that the state selects. Defaults: the last layer, the mean of the
 * heads where one text looks at another and the first head where a text looks at itself.
 * @param {TraceDocument} trace
 * @param {Record<string, string>} state
 * @param {{fits?: (look: LookRecord, trace: TraceDocument) => boolean, first?: string[], aggregate?: "one" | "mean" | "max"}} [drawingOptions]
 * @returns {Chosen | null} null when no look of the trace fits
 */
export function selectLooks(trace, state, { fits = () => true, first = [], aggregate } = {}) {
  const all = trace.looks.filter((look) => fits(look, trace));
  if (!all.length) return null;
  const names = [...new Set(all.map((look) => look.name))];
  const name = names.includes(state.look) ? state.look : first.find((one) => names.includes(one)) ?? names[0];
  const family = all.filter((look) => look.name === name);
  const layers = numbers(family.map((look) => look.layer));
  const wanted = state.layer === undefined ? -1 : Number(state.layer);
  const layer = layers.length ? (layers.includes(wanted) ? wanted : layers[layers.length - 1]) : null;
  const inLayer = layer === null ? family : family.filter((look) => look.layer === layer);
  const heads = numbers(inLayer.map((look) => look.head));
  const usual = aggregate ?? (family[0].query_side === family[0].key_side ? "one" : "mean");
  const how = state.aggregate === "one" || state.aggregate === "mean" || state.aggregate === "max" ? state.aggregate
    : state.head !== undefined ? "one" : usual;
  const requested = state.head === undefined ? -1 : Number(state.head);
  const head = heads.length ? (heads.includes(requested) ? requested : heads[0]) : null;
  const looks = !heads.length ? inLayer.slice(0, 1) : how === "one" ? inLayer.filter((look) => look.head === head).slice(0, 1) : inLayer;
  return { names, name, family, layers, layer, heads, head, aggregate: how, looks };
}

/**
 * @param {Record<string, string>} state
 * @param {boolean} [rows] whether each row has its own scale unless the state says otherwise
 * @returns {Scale}
 */
export function scaleOf(state, rows = false) {
  const kind = state.scale === "sqrt" || state.scale === "log" ? state.scale : "linear";
  const threshold = Math.min(1, Math.max(0, Number(state.threshold) || 0));
  return { kind, rows: state.rows === undefined ? rows : state.rows === "1", threshold };
}

/**
 * @param {TraceDocument} trace @param {LookRecord[]} looks
 * @param {"one" | "mean" | "max"} aggregate @param {boolean} hideSpecial @param {string} [unit] words; otherwise tokens
 * @returns {Promise<View>}
 */
export async function loadView(trace, looks, aggregate, hideSpecial, unit) {
  const matrices = await Promise.all(looks.map(weightsOf));
  return viewOf(trace, looks, matrices, { aggregate: aggregate === "max" ? "max" : "mean", hideSpecial, unit: unit === "words" ? "words" : "tokens" });
}

/** @param {Record<string, string>} state @param {"row" | "column"} name @returns {number} */
export function indexFromState(state, name) {
  const value = state[name];
  return value !== undefined && /^\d{1,5}$/.test(value) ? Number(value) : -1;
}

/**
 * A view with zero weights, for models without attention.
 * @param {TraceDocument} trace @param {string} querySide @param {string} keySide
 * @returns {View | null}
 */
export function blankView(trace, querySide, keySide) {
  const [queries, keys] = [querySide, keySide].map((name) => (Object.hasOwn(trace.sides, name) ? trace.sides[name].tokens : []));
  if (!queries.length || !keys.length) return null;
  return {
    weights: new Float32Array(queries.length * keys.length), queries, keys, largest: 0, querySide, keySide, title: "", sums: "",
    rows: queries.map((_, i) => i), columns: keys.map((_, i) => i), marks: [],
  };
}

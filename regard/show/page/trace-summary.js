// A trace in words: its texts, its output, its attributions.

import { make } from "./elements.js";
import "./text-shading.js";
import { displayText } from "./token-text.js";

/** @typedef {import("./weights.js").TraceDocument} TraceDocument */
/** @typedef {import("./weights.js").View} View */

/**
 * The side whose tokens are the positions of the output: a target or the next words, or else the
 * side with as many tokens as there are positions.
 * @param {TraceDocument} trace
 * @returns {string | undefined}
 */
function outputSide(trace) {
  const names = Object.keys(trace.sides);
  const positions = trace.alternatives?.length ?? 0;
  return names.find((name) => name === "target" || name === "next")
    ?? (positions > 1 ? names.find((name) => trace.sides[name].tokens.length === positions) : undefined);
}

/** @param {TraceDocument} trace @param {View} view @returns {{text: string, probability: number}[][]} alternatives by row, where rows are positions of the output */
export function alternativesOf(trace, view) {
  return view.querySide === outputSide(trace) ? trace.alternatives ?? [] : [];
}

/** @param {TraceDocument} trace */
export function aboutOf(trace) {
  const card = trace.card ?? {};
  const name = typeof card.name === "string" ? card.name : typeof card.model === "string" ? card.model : "";
  return [trace.task, name].filter(Boolean).map((part) => displayText(part, 60)).join(" · ");
}

/** @param {TraceDocument} trace @returns {HTMLElement[]} the texts and the output */
export function textsOf(trace) {
  /** @type {Set<string>} */
  const seen = new Set();
  /** @type {[string, string][]} */
  const lines = [];
  for (const [name, side] of Object.entries(trace.sides)) {
    if (!side.text || seen.has(side.text)) continue;
    seen.add(side.text);
    lines.push([name, side.text]);
  }
  return [...lines.map(([name, text]) => textLine(name, text)), ...outputOf(trace, seen)];
}

/** @param {string} name @param {string} text @returns {HTMLElement} */
function textLine(name, text) {
  return make("p", { className: "text-line" },
    make("span", { className: "over", textContent: displayText(name, 20) }), make("bdi", { textContent: displayText(text, 320), dir: "auto" }));
}

/**
 * The output, and the probabilities of labels.
 * @param {TraceDocument} trace @param {Set<string>} seen texts that are on the page already
 * @returns {HTMLElement[]}
 */
export function outputOf(trace, seen) {
  const chances = trace.prediction?.probabilities;
  const labels = chances && typeof chances === "object" && !Array.isArray(chances)
    ? Object.entries(chances).filter(([, value]) => typeof value === "number") : [];
  /** @type {HTMLElement[]} */
  const lines = trace.output && !seen.has(trace.output) ? [textLine("output", trace.output)] : [];
  if (labels.length) {
    lines.push(make("p", { className: "text-line" }, make("span", { className: "over", textContent: "labels" }),
      make("span", {}, ...labels.slice(0, 8).map(([name, value]) =>
        make("span", { className: "chance" }, make("bdi", { textContent: displayText(name, 24) }), ` ${Number(value).toFixed(2)}`)))));
  }
  return lines;
}

/** @param {TraceDocument} trace one strip per attribution */
export function attributionStrips(trace) {
  return (trace.attributions ?? []).filter((one) => Object.hasOwn(trace.sides, one.side)).slice(0, 40).map((one) => {
    const strip = /** @type {import("./text-shading.js").StripElement} */ (document.createElement("regard-strip"));
    const about = one.output === null || one.output === undefined ? "" : ` · for output ${one.output + 1}`;
    strip.show(trace.sides[one.side].tokens, one.values, `${displayText(one.method)}${about}`);
    return strip;
  });
}

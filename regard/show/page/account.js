// What a trace says in words: its texts, its answer, what mattered to it.

import { make } from "./elements.js";
import "./shading.js";
import { shown } from "./words.js";

/** @typedef {import("./weights.js").TraceDocument} TraceDocument */
/** @typedef {import("./weights.js").View} View */

/** @param {TraceDocument} trace @param {View} view alternatives by row, where rows are the output */
export function alternativesOf(trace, view) {
  const made = ["target", "next"].includes(view.asking) || trace.task === "tag";
  return made ? trace.alternatives ?? [] : [];
}

/** @param {TraceDocument} trace */
export function aboutOf(trace) {
  const card = trace.card ?? {};
  const name = typeof card.name === "string" ? card.name : typeof card.model === "string" ? card.model : "";
  return [trace.task, name].filter(Boolean).map((part) => shown(part, 60)).join(" · ");
}

/** @param {TraceDocument} trace the texts, and what was made of them */
export function textsOf(trace) {
  const seen = new Set();
  const lines = [];
  for (const [name, side] of Object.entries(trace.sides)) {
    if (!side.text || seen.has(side.text)) continue;
    seen.add(side.text);
    lines.push([name, side.text]);
  }
  if (trace.output && !seen.has(trace.output)) lines.push(["output", trace.output]);
  const chances = trace.prediction?.probabilities;
  const labels = chances && typeof chances === "object" && !Array.isArray(chances)
    ? Object.entries(chances).filter(([, value]) => typeof value === "number") : [];
  return [
    ...lines.map(([name, text]) => make("p", { className: "text-line" },
      make("span", { className: "over", textContent: shown(name, 20) }), make("bdi", { textContent: shown(text, 320), dir: "auto" }))),
    labels.length ? make("p", { className: "text-line" }, make("span", { className: "over", textContent: "labels" }),
      make("span", {}, ...labels.slice(0, 8).map(([name, value]) =>
        make("span", { className: "chance" }, make("bdi", { textContent: shown(name, 24) }), ` ${Number(value).toFixed(2)}`)))) : null,
  ];
}

/** @param {TraceDocument} trace attributions, a strip each */
export function strips(trace) {
  return (trace.attributions ?? []).filter((one) => Object.hasOwn(trace.sides, one.side)).slice(0, 40).map((one) => {
    const strip = /** @type {import("./shading.js").StripElement} */ (document.createElement("regard-strip"));
    const about = one.output === null || one.output === undefined ? "" : ` · for output ${one.output + 1}`;
    strip.show(trace.sides[one.side].tokens, one.values, `${shown(one.method)}${about}`);
    return strip;
  });
}

// Metrics as people write them: accuracy 94.8 %, F1 86.0, BLEU 86.0, perplexity 41.3.

import { displayText } from "/page/token-text.js";

/** @typedef {{unit?: string}} Measured a metric, or what else has its unit */

/** @param {Measured} measured @returns {number} what people multiply its values by */
export function factorOf({ unit }) { return unit === "share" || unit === "f1" ? 100 : 1; }

/** @param {string} name @param {Measured} measured @returns {string} the name, with the unit of its values */
export function metricLabel(name, { unit }) { return `${displayText(name, 40)}${unit === "share" ? " (%)" : ""}`; }

/** @param {number | null | undefined} value @returns {string} a number without a unit */
export function numberText(value) {
  if (typeof value !== "number" || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  return value.toFixed(size >= 1000 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3).replace("-", "−");
}

/** @param {Measured} measured @returns {(value: number | null | undefined) => string} values without the sign of their unit */
export function metricWriter(measured) {
  const out = factorOf(measured) === 100 || measured.unit === "points";
  return (value) => (typeof value === "number" && out ? (factorOf(measured) * value).toFixed(1).replace("-", "−") : numberText(value));
}

/** @param {number} value @param {Measured} measured @returns {string} */
export function formatMetric(value, measured) { return `${metricWriter(measured)(value)}${measured.unit === "share" ? " %" : ""}`; }

/**
 * @param {number} x @param {{value: number, low?: number | null, high?: number | null, n?: number} & Measured} measured
 * @returns {import("./chart.js").Point} a point of a chart, in the numbers that people write
 */
export function metricPoint(x, measured) {
  const factor = factorOf(measured);
  const end = (/** @type {number | null | undefined} */ value) => (typeof value === "number" ? factor * value : undefined);
  return { x, y: factor * measured.value, low: end(measured.low), high: end(measured.high), n: measured.n };
}

// SVG exports of what some screens draw with HTML: rows of bars, steps, intervals.

import { paperPalette } from "/page/colours.js";
import { draw } from "/page/elements.js";
import { displayText } from "/page/token-text.js";
import { formatNumber } from "./steps-parts.js";

const INK = "#15181e";
const QUIET = "#555c69";
const LINE = "#dfe2ea";
const FAMILY = "Inter, 'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif";
export const LANES = ["#1f5299", "#b8430b", "#7a3aa8"];

/** @param {number} width @param {number} height @param {string} title @param {Node[]} parts @returns {SVGElement} */
function sheet(width, height, title, parts) {
  return draw("svg", { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}`, "font-family": FAMILY, "font-size": 13, fill: INK },
    draw("title", {}, title), draw("rect", { width, height, fill: "#ffffff" }),
    draw("text", { x: 20, y: 30, "font-size": 16, "font-weight": 600 }, title), ...parts);
}

/**
 * @param {string} title @param {string[]} words
 * @param {{name: string, own: number[], apart: number[] | null}[]} lanes @param {string} apart what the second bar of a lane is
 * @returns {SVGElement}
 */
export function stripsPicture(title, words, lanes, apart) {
  const [left, tall, wide] = [150, 90, 58];
  const width = Math.max(460, left + wide * words.length + 20);
  /** @type {Node[]} */
  const parts = words.map((word, i) => draw("text", { x: left + wide * (i + 0.5), y: 62, "text-anchor": "middle" }, displayText(word, 9)));
  lanes.forEach((lane, l) => {
    const foot = 72 + (tall + 14) * (l + 1);
    const most = Math.max(1e-12, ...lane.own, ...(lane.apart ?? []));
    parts.push(draw("text", { x: 20, y: foot - 4, "font-weight": 600, fill: LANES[l] }, lane.name), draw("line", { x1: left, x2: width - 20, y1: foot, y2: foot, stroke: LINE }));
    words.forEach((_, i) => {
      const bars = /** @type {[number, string, string][]} */ ([[lane.own[i], LANES[l], "none"], ...(lane.apart ? [[lane.apart[i], "#ffffff", INK]] : [])]);
      bars.forEach(([value, fill, stroke], b) => {
        const high = Math.max(1, (tall * Math.max(0, value)) / most);
        parts.push(draw("rect", { x: left + wide * (i + 0.5) + 17 * (b - bars.length / 2), y: foot - high, width: 14, height: high, fill, stroke }));
      });
    });
  });
  const foot = 72 + (tall + 14) * lanes.length;
  if (lanes.some((lane) => lane.apart)) parts.push(draw("text", { x: left, y: foot + 26, fill: QUIET, "font-size": 12 }, `filled: unchanged; outlined: attention detached (${apart})`));
  return sheet(width, foot + 42, title, parts);
}

/**
 * @param {import("./steps-parts.js").Stages} stages
 * @param {[name: string, formula: string, words: string][]} descriptions the steps in words
 * @returns {SVGElement}
 */
export function stagesPicture(stages, descriptions) {
  const [left, wide, tall] = [190, 86, 34];
  const width = Math.max(480, left + wide * stages.key_tokens.length + 90);
  const colours = paperPalette();
  const lines = /** @type {((i: number) => string)[]} */ ([
    (i) => formatNumber((stages.products ?? stages.scores)[i]), (i) => formatNumber(stages.biased[i]),
    (i) => (stages.allowed[i] ? "allowed" : "masked"), (i) => stages.weights[i].toFixed(3),
  ]);
  /** @type {Node[]} */
  const parts = stages.key_tokens.map((word, i) => draw("text", { x: left + wide * (i + 0.5), y: 66, "text-anchor": "middle", "font-weight": 600 }, displayText(word, 11)));
  lines.forEach((cell, at) => {
    const y = 76 + tall * at;
    parts.push(draw("text", { x: 20, y: y + 22 }, descriptions[at][0]), draw("text", { x: 96, y: y + 22, fill: QUIET, "font-size": 11.5 }, descriptions[at][1].slice(0, 16)), draw("line", { x1: 20, x2: width - 20, y1: y + tall, y2: y + tall, stroke: LINE }));
    stages.key_tokens.forEach((_, i) => {
      const level = Math.round(255 * Math.sqrt(Math.min(1, Math.max(0, stages.weights[i]))));
      const x = left + wide * (i + 0.5);
      if (at === 3) parts.push(draw("rect", { x: x - 30, y: y + 5, width: 60, height: 24, rx: 6, fill: colours.css[level] }));
      parts.push(draw("text", { x, y: y + 22, "text-anchor": "middle", fill: at === 3 ? colours.ink[level] : INK }, cell(i)));
    });
  });
  const foot = 76 + tall * lines.length;
  const some = stages.output.slice(0, 8).map((value) => formatNumber(value)).join(", ");
  parts.push(draw("text", { x: width - 56, y: foot - 12, fill: QUIET, "text-anchor": "middle" }, `Σ ${formatNumber(stages.weights.reduce((sum, weight) => sum + weight, 0), 3)}`),
    draw("text", { x: 20, y: foot + 26 }, descriptions[4][0]), draw("text", { x: 96, y: foot + 26 }, `[${some}${stages.output.length > 8 ? `, … ${stages.output.length - 8} more` : ""}]`));
  return sheet(width, foot + 46, `Where does ‘${displayText(stages.query_token, 24)}’ look?`, parts);
}

/** @typedef {{name: string, value: number, interval: [number, number] | null, strong?: boolean}} IntervalLine */

/**
 * Values with their intervals, one below the other.
 * @param {string} title @param {IntervalLine[]} lines
 * @param {{zero?: boolean, number?: (value: number) => string}} [how] whether the scale contains zero, and how numbers are written
 * @returns {SVGElement}
 */
export function intervalsPicture(title, lines, { zero = true, number = (value) => value.toFixed(2) } = {}) {
  const [left, room, tall] = [Math.max(190, 30 + 7 * Math.max(...lines.map((line) => line.name.length))), 330, 28];
  const ends = [...(zero ? [0] : []), ...lines.flatMap((line) => line.interval ?? [line.value])];
  const [low, high] = [Math.min(...ends), Math.max(...ends, ...(zero ? [1e-9] : []))];
  const x = (/** @type {number} */ value) => left + (high > low ? (room * (value - low)) / (high - low) : room / 2);
  /** @type {Node[]} */
  const parts = zero ? [draw("line", { x1: x(0), x2: x(0), y1: 44, y2: 50 + tall * lines.length, stroke: LINE, class: "rg-chart-line" })] : [];
  lines.forEach((line, i) => {
    const y = 44 + tall * (i + 0.5);
    const colour = line.strong ? LANES[1] : LANES[0];
    parts.push(draw("text", { x: left - 12, y: y + 4, "text-anchor": "end", "font-weight": line.strong ? 600 : 400 }, line.name),
      ...(line.interval ? [draw("line", { x1: x(line.interval[0]), x2: x(line.interval[1]), y1: y, y2: y, stroke: colour, "stroke-width": 7, "stroke-opacity": 0.3, "stroke-linecap": "round" })] : []),
      draw("circle", { cx: x(line.value), cy: y, r: 5, fill: colour }),
      draw("text", { x: left + room + 14, y: y + 4, fill: QUIET, "font-size": 12 }, `${number(line.value)}${line.interval ? `  [${line.interval.map(number).join(", ")}]` : ""}`.replaceAll("-", "−")));
  });
  return sheet(left + room + 150, 64 + tall * lines.length, title, parts);
}

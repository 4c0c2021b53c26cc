// What some screens draw with HTML, as pictures on white paper: strips of bars, steps, intervals.

import { paperPalette } from "/page/colours.js";
import { draw } from "/page/elements.js";
import { shown } from "/page/words.js";
import { plain } from "./chart.js";

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
  const parts = words.map((word, i) => draw("text", { x: left + wide * (i + 0.5), y: 62, "text-anchor": "middle" }, shown(word, 9)));
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
  if (lanes.some((lane) => lane.apart)) parts.push(draw("text", { x: left, y: foot + 26, fill: QUIET, "font-size": 12 }, `filled: as it is; open: attention detached (${apart})`));
  return sheet(width, foot + 42, title, parts);
}

/**
 * @param {import("./screens/steps.js").Stages} stages
 * @param {[name: string, formula: string, words: string][]} told the steps in words
 * @returns {SVGElement}
 */
export function stagesPicture(stages, told) {
  const [left, wide, tall] = [190, 86, 34];
  const width = Math.max(480, left + wide * stages.asked.length + 90);
  const colours = paperPalette();
  const exact = (/** @type {number} */ value) => plain(Number(value.toFixed(3)));
  const lines = /** @type {((i: number) => string)[]} */ ([
    (i) => exact((stages.products ?? stages.scores)[i]), (i) => exact(stages.biased[i]),
    (i) => (stages.allowed[i] ? exact(stages.biased[i]) : "hidden"), (i) => stages.weights[i].toFixed(3),
  ]);
  /** @type {Node[]} */
  const parts = stages.asked.map((word, i) => draw("text", { x: left + wide * (i + 0.5), y: 66, "text-anchor": "middle", "font-weight": 600 }, shown(word, 11)));
  lines.forEach((cell, at) => {
    const y = 76 + tall * at;
    parts.push(draw("text", { x: 20, y: y + 22 }, told[at][0]), draw("text", { x: 96, y: y + 22, fill: QUIET, "font-size": 11.5 }, told[at][1].slice(0, 16)), draw("line", { x1: 20, x2: width - 20, y1: y + tall, y2: y + tall, stroke: LINE }));
    stages.asked.forEach((_, i) => {
      const level = Math.round(255 * Math.sqrt(Math.min(1, Math.max(0, stages.weights[i]))));
      const x = left + wide * (i + 0.5);
      if (at === 3) parts.push(draw("rect", { x: x - 30, y: y + 5, width: 60, height: 24, rx: 6, fill: colours.css[level] }));
      parts.push(draw("text", { x, y: y + 22, "text-anchor": "middle", fill: at === 3 ? colours.ink[level] : INK }, cell(i)));
    });
  });
  const foot = 76 + tall * lines.length;
  const some = stages.output.slice(0, 8).map(exact).join(", ");
  parts.push(draw("text", { x: width - 56, y: foot - 12, fill: QUIET, "text-anchor": "middle" }, `Σ ${exact(stages.weights.reduce((sum, weight) => sum + weight, 0))}`),
    draw("text", { x: 20, y: foot + 26 }, told[4][0]), draw("text", { x: 96, y: foot + 26 }, `[${some}${stages.output.length > 8 ? `, … ${stages.output.length - 8} more` : ""}]`));
  return sheet(width, foot + 46, `Where does ‘${shown(stages.asking, 24)}’ look?`, parts);
}

/**
 * Values with their intervals, one below the other.
 * @param {string} title @param {{name: string, value: number, low: number, high: number, strong?: boolean}[]} lines
 * @returns {SVGElement}
 */
export function intervalsPicture(title, lines) {
  const [left, room, tall] = [190, 330, 28];
  const ends = [0, ...lines.flatMap((line) => [line.low, line.high])];
  const [low, high] = [Math.min(...ends), Math.max(...ends, 1e-9)];
  const x = (/** @type {number} */ value) => left + (room * (value - low)) / (high - low);
  /** @type {Node[]} */
  const parts = [draw("line", { x1: x(0), x2: x(0), y1: 44, y2: 50 + tall * lines.length, stroke: LINE, class: "rg-chart-line" })];
  lines.forEach((line, i) => {
    const y = 44 + tall * (i + 0.5);
    const colour = line.strong ? LANES[1] : LANES[0];
    parts.push(draw("text", { x: left - 12, y: y + 4, "text-anchor": "end", "font-weight": line.strong ? 600 : 400 }, line.name),
      draw("line", { x1: x(line.low), x2: x(line.high), y1: y, y2: y, stroke: colour, "stroke-width": 7, "stroke-opacity": 0.3, "stroke-linecap": "round" }),
      draw("circle", { cx: x(line.value), cy: y, r: 5, fill: colour }),
      draw("text", { x: left + room + 14, y: y + 4, fill: QUIET, "font-size": 12 }, `${line.value.toFixed(2)}  [${line.low.toFixed(2)}, ${line.high.toFixed(2)}]`.replaceAll("-", "−")));
  });
  return sheet(left + room + 150, 64 + tall * lines.length, title, parts);
}

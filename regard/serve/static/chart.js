// <rg-chart>: curves with bands over numbers or categories; the pointer or the arrow keys
// select a point, and a table has the same numbers.

import { define, draw, make, pointIn } from "/page/elements.js";
import { displayText } from "/page/token-text.js";
import { PAPER, pictureOf } from "./export.js";

/** @typedef {{x: number, y: number, low?: number, high?: number, n?: number}} Point */
/** A series with `mark` is drawn as diamonds that no line joins.
 * @typedef {{name: string, points: Point[], mark?: boolean}} Series */
/**
 * What to draw: `places` names the values of x where they are not numbers; `counts` draws how many
 * stand behind each point; `axis` is the name of the horizontal axis where `across` is too short.
 * @typedef {{title: string, across: string, up: string, series: Series[], places?: string[],
 *   counts?: boolean, zero?: boolean, axis?: string}} Chart
 */

const EDGE = { left: 52, right: 16, top: 30, bottom: 46 };
const SERIES = 4;
const PAGE = 640;

/** The event `rg-point` tells which x was chosen, `rg-pass` which one the pointer is over (null: none). */
export class ChartElement extends HTMLElement {
  /** @type {Chart | null} */
  #chart = null;
  #chosen = -1;
  #width = 0;

  connectedCallback() {
    if (this.frame) return;
    this.frame = make("div", {
      className: "rg-chart-frame", tabIndex: 0, role: "application", "aria-roledescription": "chart",
      on: {
        keydown: (/** @type {KeyboardEvent} */ event) => this.#key(event),
        pointermove: (/** @type {PointerEvent} */ event) => this.#tell("rg-pass", this.#at(event)),
        pointerleave: () => this.#tell("rg-pass", -1),
        click: (/** @type {MouseEvent} */ event) => this.#choose(this.#at(event)),
      },
    });
    this.append(this.frame);
    new ResizeObserver(() => {
      if (this.clientWidth === this.#width) return;
      this.#width = this.clientWidth;
      this.#draw();
    }).observe(this);
  }

  /** @param {Chart} chart @param {number} [chosen] the number of an x among all of them */
  show(chart, chosen = -1) {
    this.#chart = chart;
    this.#chosen = chosen;
    this.#draw();
  }

  /** @returns {number[]} every x that has a point, in order */
  get across() {
    const all = (this.#chart?.series ?? []).flatMap((one) => one.points.map((point) => point.x));
    return [...new Set(all)].sort((a, b) => a - b);
  }

  /** @param {number} index @returns {string} the points at an x in words */
  words(index) {
    const chart = this.#chart;
    const x = this.across[index];
    if (!chart || x === undefined) return "";
    const parts = chart.series.flatMap((one) => {
      const point = one.points.find((some) => some.x === x);
      if (!point) return [];
      const band = point.low === undefined || point.high === undefined ? "" : ` (${formatNumber(point.low)} to ${formatNumber(point.high)})`;
      return [`${chart.series.length > 1 ? `${displayText(one.name, 30)} ` : ""}${formatNumber(point.y)}${band}${point.n === undefined ? "" : `, ${point.n} examples`}`];
    });
    return `${chart.across} ${chart.places ? chart.places[x] : formatNumber(x)}: ${chart.up} ${parts.join("; ")}`;
  }

  /** @param {string} type @param {number} index */
  #tell(type, index) {
    this.dispatchEvent(new CustomEvent(type, { bubbles: true, detail: { index, text: this.words(index) } }));
  }

  /** @param {number} index */
  #choose(index) {
    if (index < 0) return;
    this.#chosen = index;
    this.#draw();
    this.#tell("rg-point", index);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const last = this.across.length - 1;
    const to = /** @type {Record<string, number>} */ ({
      ArrowRight: this.#chosen + 1, ArrowLeft: this.#chosen < 0 ? last : this.#chosen - 1, Home: 0, End: last, Enter: Math.max(0, this.#chosen),
    })[event.key];
    if (to === undefined || last < 0) return;
    event.preventDefault();
    this.#choose(Math.min(last, Math.max(0, to)));
  }

  /** @param {MouseEvent} event @returns {number} */
  #at(event) {
    const across = this.across;
    if (!across.length || !this.frame) return -1;
    const { x } = pointIn(this.frame, event);
    let best = 0;
    across.forEach((value, i) => { if (Math.abs(this.#x(value) - x) < Math.abs(this.#x(across[best]) - x)) best = i; });
    return best;
  }

  #low = 0;
  #high = 1;
  #first = 0;
  #last = 1;

  /** @param {number} value */
  #x(value) {
    const room = this.#width - EDGE.left - EDGE.right;
    return EDGE.left + (room * (value - this.#first)) / (this.#last - this.#first || 1);
  }

  #draw() {
    const chart = this.#chart;
    const { frame } = this;
    if (!chart || !frame || !this.#width) return;
    const height = Math.max(180, this.clientHeight || 240);
    const across = this.across;
    const values = chart.series.flatMap((one) => one.points.flatMap((point) => [point.y, point.low ?? point.y, point.high ?? point.y]));
    const ends = ticks(Math.min(...values, chart.zero ? 0 : Infinity), Math.max(...values));
    [this.#low, this.#high] = [ends[0], ends[ends.length - 1]];
    const half = chart.places ? 0.5 : 0;
    [this.#first, this.#last] = [(across[0] ?? 0) - half, (across[across.length - 1] ?? 1) + half];
    const counted = chart.counts ? 46 : 0;
    const foot = height - EDGE.bottom - counted;
    const y = (/** @type {number} */ value) => foot - ((foot - EDGE.top) * (value - this.#low)) / (this.#high - this.#low || 1);
    const x = (/** @type {number} */ value) => this.#x(value);
    const right = this.#width - EDGE.right;
    const upward = tickFormat(ends);
    /** @type {Node[]} */
    const parts = ends.flatMap((value) => [
      draw("line", { x1: EDGE.left, x2: right, y1: y(value), y2: y(value), class: "rg-chart-line" }),
      draw("text", { x: EDGE.left - 8, y: y(value) + 4, class: "rg-chart-text", "text-anchor": "end" }, upward(value)),
    ]);
    parts.push(
      draw("text", { x: 2, y: 12, class: "rg-chart-text rg-chart-axis" }, chart.up),
      draw("text", { x: (EDGE.left + right) / 2, y: height - 6, class: "rg-chart-text rg-chart-axis", "text-anchor": "middle" }, chart.axis ?? chart.across));
    const names = chart.places ? across : ticks(this.#first, this.#last, this.#width < 420 ? 3 : 6).filter((value) => value >= this.#first && value <= this.#last);
    const along = tickFormat(names);
    for (const value of names) {
      parts.push(draw("text", { x: x(value), y: height - 26, class: "rg-chart-text", "text-anchor": "middle" }, chart.places ? chart.places[value] : along(value)));
    }
    if (this.#chosen >= 0 && across[this.#chosen] !== undefined) {
      const wide = chart.places ? Math.min(120, Math.max(8, x(1) - x(0))) : 0;
      parts.push(wide
        ? draw("rect", { x: x(across[this.#chosen]) - wide / 2, y: EDGE.top, width: wide, height: height - EDGE.bottom - EDGE.top, rx: 6, class: "rg-chart-place" })
        : draw("line", { x1: x(across[this.#chosen]), x2: x(across[this.#chosen]), y1: EDGE.top, y2: foot, class: "rg-chart-cross" }));
    }
    chart.series.forEach((one, s) => parts.push(...this.#series(one, s, x, y, Boolean(chart.places))));
    if (counted) parts.push(...this.#counts(chart, across, x, height));
    frame.setAttribute("aria-label", `${chart.title}. ${chart.up} by ${chart.across}. Use the arrow keys to move between points.`);
    frame.replaceChildren(
      draw("svg", { width: this.#width, height, viewBox: `0 0 ${this.#width} ${height}`, "aria-hidden": "true" }, ...parts));
  }

  /**
   * @param {Series} one @param {number} s @param {(value: number) => number} x
   * @param {(value: number) => number} y @param {boolean} dots
   * @returns {Node[]}
   */
  #series(one, s, x, y, dots) {
    const points = [...one.points].sort((a, b) => a.x - b.x);
    const colour = `var(--series-${s % SERIES})`;
    const shift = dots ? (s - ((this.#chart?.series.length ?? 1) - 1) / 2) * 9 : 0;
    const at = (/** @type {Point} */ point) => `${(x(point.x) + shift).toFixed(1)} ${y(point.y).toFixed(1)}`;
    const banded = points.filter((point) => point.low !== undefined && point.high !== undefined);
    /** @type {Node[]} */
    const parts = [];
    if (dots) {
      for (const point of banded) {
        parts.push(draw("line", { x1: x(point.x) + shift, x2: x(point.x) + shift, y1: y(point.low ?? 0), y2: y(point.high ?? 0), stroke: colour, "stroke-width": 7, "stroke-opacity": 0.28 }));
      }
    } else if (banded.length > 1) {
      const up = banded.map((point) => `${x(point.x).toFixed(1)} ${y(point.high ?? 0).toFixed(1)}`);
      const down = [...banded].reverse().map((point) => `${x(point.x).toFixed(1)} ${y(point.low ?? 0).toFixed(1)}`);
      parts.push(draw("path", { d: `M${[...up, ...down].join("L")}Z`, fill: colour, "fill-opacity": 0.16 }));
    }
    if (one.mark) {
      for (const point of points) parts.push(draw("path", { d: `M${x(point.x).toFixed(1)} ${(y(point.y) - 7).toFixed(1)}l7 7l-7 7l-7 -7Z`, fill: colour, class: "rg-chart-dot rg-chart-mark" }));
      return parts;
    }
    if (points.length > 1) parts.push(draw("path", { d: `M${points.map(at).join("L")}`, fill: "none", stroke: colour, "stroke-width": 2.2, "stroke-linejoin": "round", "stroke-dasharray": ["none", "7 4", "2 4", "9 3 2 3"][s % SERIES] }));
    if (dots || points.length < 40) for (const point of points) parts.push(draw("circle", { cx: x(point.x) + shift, cy: y(point.y), r: dots ? 4.5 : 2.6, fill: colour, class: "rg-chart-dot" }));
    return parts;
  }

  /** @param {Chart} chart @param {number[]} across @param {(value: number) => number} x @param {number} height @returns {Node[]} */
  #counts(chart, across, x, height) {
    const most = Math.max(1, ...chart.series.flatMap((one) => one.points.map((point) => point.n ?? 0)));
    const foot = height - EDGE.bottom;
    return chart.series.flatMap((one, s) => one.points.flatMap((point) => {
      const tall = Math.max(1, (26 * (point.n ?? 0)) / most);
      const shift = (s - (chart.series.length - 1) / 2) * 9;
      const bar = draw("rect", { x: x(point.x) + shift - 3.5, y: foot - tall, width: 7, height: tall, rx: 1.5, fill: `var(--series-${s % SERIES})`, "fill-opacity": 0.55 });
      return chart.series.length > 1 ? [bar] : [bar, draw("text", { x: x(point.x), y: foot - tall - 5, class: "rg-chart-text", "text-anchor": "middle" }, `n = ${point.n ?? 0}`)];
    }));
  }

  /** @returns {SVGElement | null} the same on white paper, of one width, with the names of its series */
  picture() {
    const { frame } = this;
    if (!frame || !this.#chart) return null;
    const wide = this.#width;
    this.#width = PAGE;
    this.#draw();
    const made = pictureOf(frame.querySelector("svg"));
    this.#width = wide;
    this.#draw();
    const { series } = this.#chart;
    if (!made || series.length < 2) return made;
    const tall = Number(made.getAttribute("height"));
    made.setAttribute("height", String(tall + 20 * series.length));
    made.setAttribute("viewBox", `0 0 ${PAGE} ${tall + 20 * series.length}`);
    series.forEach((one, s) => made.append(
      draw("rect", { x: EDGE.left, y: tall + 20 * s, width: 16, height: 4, rx: 2, fill: PAPER[`--series-${s % SERIES}`] }),
      draw("text", { x: EDGE.left + 24, y: tall + 6 + 20 * s, "font-size": 12, "font-family": "system-ui, sans-serif" }, displayText(one.name, 60))));
    return made;
  }

  /** @returns {HTMLTableElement} the same numbers */
  table() {
    const chart = this.#chart;
    const across = this.across;
    const head = make("tr", {}, make("th", { scope: "col", textContent: chart?.across ?? "" }));
    for (const one of chart?.series ?? []) {
      head.append(make("th", { scope: "col", textContent: displayText(one.name, 40) }));
      if (one.points.some((point) => point.low !== undefined)) head.append(make("th", { scope: "col", textContent: "interval" }));
      if (chart?.counts) head.append(make("th", { scope: "col", textContent: "examples" }));
    }
    const body = make("tbody", {}, ...across.map((x, i) => {
      const line = make("tr", { className: i === this.#chosen ? "chosen" : "" }, make("th", { scope: "row", textContent: chart?.places ? chart.places[x] : formatNumber(x) }));
      for (const one of chart?.series ?? []) {
        const point = one.points.find((some) => some.x === x);
        line.append(make("td", { textContent: point ? formatNumber(point.y) : "–" }));
        if (one.points.some((some) => some.low !== undefined)) line.append(make("td", { textContent: point?.low === undefined || point.high === undefined ? "–" : `${formatNumber(point.low)} – ${formatNumber(point.high)}` }));
        if (chart?.counts) line.append(make("td", { textContent: point?.n === undefined ? "–" : String(point.n) }));
      }
      return line;
    }));
    return make("table", {}, make("caption", { textContent: `${chart?.title ?? ""}: ${chart?.up ?? ""} by ${chart?.across ?? ""}` }), make("thead", {}, head), body);
  }
}

/** @param {number} value @returns {string} a number with as many digits as it deserves */
export function formatNumber(value) {
  if (!Number.isFinite(value)) return "–";
  if (Number.isInteger(value)) return Math.abs(value) < 1e6 ? String(value).replace("-", "−") : value.toExponential(1);
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 1e5)) return value.toExponential(1).replace("-", "−");
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3).replace("-", "−");
}

/** @param {number[]} values of an axis @returns {(value: number) => string} all with the same digits behind the point, as many as tell them apart */
export function tickFormat(values) {
  const exact = (/** @type {number} */ digits) => values.every((value) => Math.abs(Number(value.toFixed(digits)) - value) < 1e-9 * Math.max(1, Math.abs(value)));
  const digits = [0, 1, 2, 3, 4].find(exact);
  return (value) => (digits === undefined || Math.abs(value) >= 1e6 ? formatNumber(value) : value.toFixed(digits).replace("-", "−"));
}

/** @param {number} low @param {number} high @param {number} [wanted] @returns {number[]} round numbers that hold both ends */
export function ticks(low, high, wanted = 5) {
  if (!Number.isFinite(low) || !Number.isFinite(high)) return [0, 1];
  if (high - low < 1e-12) [low, high] = [low - Math.abs(low) * 0.1 - 1e-6, high + Math.abs(high) * 0.1 + 1e-6];
  const rough = (high - low) / wanted;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = unit * ([1, 2, 2.5, 5, 10].find((size) => size * unit >= rough) ?? 10);
  const found = [];
  for (let value = Math.floor(low / step + 1e-9) * step; value < high + step * (1 - 1e-9); value += step) found.push(Number(value.toPrecision(12)));
  return found;
}

/** @param {Series[]} series @returns {HTMLElement} which colour is which */
export function seriesKey(series) {
  return make("div", { className: "rg-series" }, ...series.map((one, s) => {
    const mark = make("span", { className: "rg-series-mark", "aria-hidden": "true" });
    mark.style.background = `var(--series-${s % SERIES})`;
    return make("span", { className: "rg-series-name" }, mark, make("bdi", { textContent: displayText(one.name, 40) }));
  }));
}

define("rg-chart", ChartElement);

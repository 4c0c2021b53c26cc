// <rg-difference>: a matrix of signed numbers, such as one matrix minus another, cell by cell. The two signs have two hues of the same
// lightness, so that neither looks stronger than the other.

import { palette } from "/page/colours.js";
import { Drawing, colourOf, define, draw, make, pixelRatio, pointIn } from "/page/elements.js";
import { displayText } from "/page/token-text.js";

/** @typedef {import("/page/weights.js").View} View */

const FONT = "system-ui, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif";
const SLANT = Math.PI / 4;
const LARGEST_CELL = 46;

/** Set `view` to a view whose weights are differences (NaN where there is none), and `scale.high` to what has the last colour. */
export class DifferenceElement extends Drawing {
  #cell = 20;
  #left = 0;
  #top = 0;
  #wide = 0;

  build() {
    this.canvas = make("canvas", { className: "matrix-canvas", "aria-hidden": "true" });
    this.scroller = make("div", {
      className: "matrix-scroller", tabIndex: 0, role: "application", "aria-roledescription": "matrix of differences",
      on: {
        keydown: (/** @type {KeyboardEvent} */ event) => this.walk(event),
        pointermove: (/** @type {PointerEvent} */ event) => this.#point(event, false),
        pointerleave: () => this.hover(-1, -1),
        click: (/** @type {MouseEvent} */ event) => this.#point(event, true),
      },
    }, this.canvas);
    this.append(this.scroller);
    new ResizeObserver(() => { if (this.clientWidth !== this.#wide) this.changed("size"); }).observe(this);
  }

  /** @param {View} view */
  render(view) {
    const { canvas, scroller } = this;
    if (!canvas || !scroller || !this.clientWidth) return;
    this.#wide = this.clientWidth;
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    const width = (/** @type {string} */ text) => context.measureText(text).width;
    context.font = `13px ${FONT}`;
    const longest = (/** @type {import("/page/token-text.js").Token[]} */ tokens) => tokens.reduce((most, token) => Math.max(most, width(displayText(token.text, 18))), 10);
    this.#left = Math.min(longest(view.queries), this.clientWidth * 0.3) + 16;
    this.#top = Math.min(longest(view.keys), 150) * Math.sin(SLANT) + 20;
    const slack = Math.min(longest(view.keys.slice(-1)), 150) * Math.cos(SLANT) + 6;
    const room = Math.max(260, this.clientHeight || 0);
    const fit = Math.min((this.clientWidth - this.#left - slack) / view.keys.length, (room - this.#top - 6) / view.queries.length, LARGEST_CELL);
    this.#cell = Math.max(2, fit >= 6 ? Math.floor(fit) : fit);
    const [cell, left, top, ratio] = [this.#cell, this.#left, this.#top, pixelRatio(this)];
    const [across, down] = [Math.ceil(left + cell * view.keys.length + slack), Math.ceil(top + cell * view.queries.length + 6)];
    canvas.style.width = `${across}px`;
    canvas.style.height = `${down}px`;
    [canvas.width, canvas.height] = [Math.round(across * ratio), Math.round(down * ratio)];
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const high = this.scale.high || view.largest || 1;
    const size = Math.max(10, Math.min(13, cell * 0.9));
    view.weights.forEach((weight, i) => {
      const colours = palette(weight < 0);
      const level = Math.min(255, Math.round((255 * Math.abs(weight)) / high));
      const [x, y] = [left + cell * (i % view.keys.length), top + cell * Math.floor(i / view.keys.length)];
      if (Number.isNaN(weight)) return this.#hatch(context, x, y);
      context.fillStyle = colours.css[level];
      context.fillRect(x, y, cell - (cell >= 7 ? 1 : 0), cell - (cell >= 7 ? 1 : 0));
      if (cell < 34) return;
      context.fillStyle = colours.ink[level];
      context.font = `${Math.min(11, cell * 0.28)}px ${FONT}`;
      context.textAlign = "center";
      context.textBaseline = "middle";
      context.fillText(formatSigned(weight), x + cell / 2, y + cell / 2);
    });
    this.#labels(context, view, size);
    this.#mark(context);
    scroller.setAttribute("aria-label", `${view.title}: ${view.queries.length} rows, ${view.keys.length} columns. Use the arrow keys to move.`);
  }

  /** @param {CanvasRenderingContext2D} context @param {number} x @param {number} y a cell that has no value */
  #hatch(context, x, y) {
    const size = this.#cell - (this.#cell >= 7 ? 1 : 0);
    context.save();
    context.beginPath();
    context.rect(x, y, size, size);
    context.clip();
    context.strokeStyle = colourOf("--line");
    context.lineWidth = 1;
    context.beginPath();
    for (let at = -size; at < size; at += 7) {
      context.moveTo(x + at, y + size);
      context.lineTo(x + at + size, y);
    }
    context.stroke();
    context.restore();
  }

  /** @param {CanvasRenderingContext2D} context @param {View} view @param {number} size */
  #labels(context, view, size) {
    const [cell, left, top] = [this.#cell, this.#left, this.#top];
    const { row, column } = this.selection;
    const every = Math.max(1, Math.ceil((size + 2) / cell));
    const wider = Math.max(1, Math.ceil((size * 1.42 + 3) / cell));
    const style = (/** @type {boolean} */ chosen) => {
      context.fillStyle = colourOf(chosen ? "--accent" : "--ink");
      context.font = `${chosen ? "600 " : ""}${size}px ${FONT}`;
    };
    context.textBaseline = "middle";
    context.textAlign = "right";
    view.queries.forEach((token, i) => {
      if (i !== row && (i % every || (row >= 0 && Math.abs(i - row) < every))) return;
      style(i === row);
      context.fillText(displayText(token.text, 18), left - 8, top + (i + 0.5) * cell, left - 12);
    });
    context.textAlign = "left";
    view.keys.forEach((token, i) => {
      if (i !== column && (i % wider || (column >= 0 && Math.abs(i - column) < wider))) return;
      style(i === column);
      context.save();
      context.translate(left + (i + 0.5) * cell + 2, top - 7);
      context.rotate(-SLANT);
      context.fillText(displayText(token.text, 18), 0, 0, 150);
      context.restore();
    });
  }

  /** @param {CanvasRenderingContext2D} context */
  #mark(context) {
    const { row, column } = this.selection;
    if (row < 0 || column < 0) return;
    context.strokeStyle = colourOf("--accent");
    context.lineWidth = 2.5;
    const least = Math.max(this.#cell, 7);
    context.strokeRect(this.#left + column * this.#cell - 0.5, this.#top + row * this.#cell - 0.5, least, least);
  }

  /** @param {MouseEvent} event @param {boolean} lock */
  #point(event, lock) {
    const { canvas, view } = this;
    if (!canvas || !view) return;
    const { x, y } = pointIn(canvas, event);
    const row = Math.floor((y - this.#top) / this.#cell);
    const column = Math.floor((x - this.#left) / this.#cell);
    const inside = row >= 0 && column >= 0 && row < view.queries.length && column < view.keys.length;
    if (lock && inside) this.choose(row, column);
    else if (!lock) this.hover(inside ? row : -1, inside ? column : -1);
  }
}

/** @param {number} value @param {number} [digits] @returns {string} with its sign */
export function formatSigned(value, digits = 2) {
  const text = Math.abs(value).toFixed(digits);
  return Number(text) === 0 ? text : `${value < 0 ? "−" : "+"}${text}`;
}

/** @param {number} high @param {string} less @param {string} more @returns {HTMLElement} the legend of a difference */
export function differenceKey(high, less, more) {
  const bars = Array.from({ length: 41 }, (_, i) => {
    const share = (i - 20) / 20;
    return draw("rect", { x: 2.5 * i, y: 0, width: 2.9, height: 10, fill: palette(share < 0).css[Math.round(255 * Math.abs(share))] });
  });
  return make("div", { className: "rg-difference-key", role: "img", "aria-label": `Colours from −${high.toFixed(2)}, ${less}, to +${high.toFixed(2)}, ${more}` },
    make("span", { textContent: `${less} −${high.toFixed(2)}` }),
    draw("svg", { width: 103, height: 10, "aria-hidden": "true" }, ...bars),
    make("span", { textContent: `+${high.toFixed(2)} ${more}` }));
}

define("rg-difference", DifferenceElement);

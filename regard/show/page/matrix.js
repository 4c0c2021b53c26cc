// <regard-matrix>: the weights as coloured cells on a canvas, one row per query, one column per key.

import { palette } from "./colours.js";
import { Drawing, colourOf, define, make, pixelRatio, pointIn } from "./elements.js";
import { levels } from "./colour-scale.js";
import { formatWeight, displayText } from "./token-text.js";

/** @typedef {import("./weights.js").View} View */

const LARGEST_CELL = 46;
const NUMBERED_CELL = 27;
const FONT = "system-ui, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif";
const SLANT = Math.PI / 4;

/**
 * Colours of a matrix as a picture with one pixel per cell; where a cell is smaller than a pixel of the
 * screen, `pool` cells in a square share one, and the largest of them shows.
 * @param {View} view @param {Uint8Array | Uint16Array} colours @param {number} pool @param {Uint32Array} pixels
 * @returns {HTMLCanvasElement}
 */
export function cellPicture(view, colours, pool, pixels) {
  const tall = view.queries.length;
  const wide = view.keys.length;
  const width = Math.max(1, Math.ceil(wide / pool));
  const height = Math.max(1, Math.ceil(tall / pool));
  const canvas = make("canvas", { width, height });
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const image = context.createImageData(width, height);
  const out = new Uint32Array(image.data.buffer);
  if (pool === 1) {
    for (let i = 0; i < colours.length; i++) out[i] = pixels[colours[i]];
  } else {
    const most = new Uint8Array(width * height);
    const places = Uint16Array.from({ length: wide }, (_, column) => Math.floor(column / pool));
    for (let row = 0, i = 0; row < tall; row++) {
      const start = Math.floor(row / pool) * width;
      for (let column = 0; column < wide; column++, i++) {
        const place = start + places[column];
        if (colours[i] > most[place]) most[place] = colours[i];
      }
    }
    for (let i = 0; i < most.length; i++) out[i] = pixels[most[i]];
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

/** @param {import("./token-text.js").Token[]} tokens @returns {string[]} those with the most letters, as they are shown */
function longestFew(tokens) {
  const words = tokens.map((token) => token.text).sort((a, b) => b.length - a.length);
  return words.slice(0, 12).map((word) => displayText(word, 18));
}

/** The matrix; also `zoom` (1 fits the room there is) and its events, which `Drawing` describes. */
export class MatrixElement extends Drawing {
  #zoom = 1;
  #pool = 1;
  /** @type {HTMLCanvasElement | null} */
  #picture = null;
  #cell = 10;
  #left = 0;
  #top = 0;
  #size = 13;
  #room = { width: 0, height: 0 };

  get zoom() { return this.#zoom; }
  set zoom(zoom) {
    this.#zoom = Math.min(32, Math.max(1, zoom));
    this.changed("zoom");
  }

  build() {
    this.canvas = make("canvas", { className: "matrix-canvas", "aria-hidden": "true" });
    this.filler = make("div", { className: "matrix-filler" });
    this.scroller = make(
      "div",
      {
        className: "matrix-scroller", tabIndex: 0, role: "application",
        "aria-roledescription": "matrix of weights",
        on: {
          keydown: (/** @type {KeyboardEvent} */ event) => this.#key(event),
          scroll: () => this.changed("scroll"),
          pointermove: (/** @type {PointerEvent} */ event) => this.#point(event, false),
          pointerleave: () => this.hover(-1, -1),
          click: (/** @type {MouseEvent} */ event) => this.#point(event, true),
          focus: () => this.changed("selection"),
          blur: () => this.changed("selection"),
        },
      },
      this.canvas,
      this.filler,
    );
    this.scroller.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      this.zoom *= event.deltaY < 0 ? 1.25 : 0.8;
    }, { passive: false });
    this.append(this.scroller);
    new ResizeObserver(() => {
      const { clientWidth, clientHeight } = this;
      if (clientWidth === this.#room.width && clientHeight === this.#room.height) return;
      this.#room = { width: clientWidth, height: clientHeight };
      this.changed("size");
    }).observe(this);
  }

  /** @param {View} view */
  render(view) {
    const { canvas, scroller, filler } = this;
    if (!canvas || !scroller || !filler || !this.clientWidth) return;
    const pendingChanges = this.pendingChanges;
    const shape = ["view", "size", "zoom"].some((part) => pendingChanges.has(part));
    if (shape) this.#measure(view);
    if (shape || pendingChanges.has("scale") || pendingChanges.has("colours")) {
      this.#picture = cellPicture(view, levels(view, this.scale), this.#pool, palette().pixels);
    }
    scroller.setAttribute(
      "aria-label",
      `${view.title}: ${view.queries.length} queries in rows, ${view.keys.length} keys in columns. Use the arrow keys to move.`,
    );
    if (pendingChanges.has("selection") && this.#zoom > 1) this.#reveal();
    this.#paint(view);
  }

  /** @param {View} view find sizes of cells and margins */
  #measure(view) {
    const { scroller, filler, canvas } = this;
    if (!scroller || !filler || !canvas) return;
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.font = `13px ${FONT}`;
    const longest = (/** @type {import("./token-text.js").Token[]} */ tokens) =>
      longestFew(tokens).reduce((most, word) => Math.max(most, context.measureText(word).width), 10);
    const wide = this.clientWidth;
    const room = Math.max(260, this.clientHeight || 0);
    this.#room = { width: this.clientWidth, height: this.clientHeight };
    this.#left = Math.min(longest(view.queries), wide * 0.3) + 16;
    this.#top = Math.min(longest(view.keys), 150) * Math.sin(SLANT) + 20;
    const slack = Math.min(longest(view.keys.slice(-1)), 150) * Math.cos(SLANT) + 6;
    const fit = Math.min(
      (wide - this.#left - slack) / view.keys.length,
      (room - this.#top - 6) / view.queries.length,
      LARGEST_CELL,
    );
    this.#cell = Math.max(fit, 0.2) * this.#zoom;
    if (this.#cell >= 6) this.#cell = Math.floor(this.#cell);
    this.#size = Math.max(10, Math.min(13, this.#cell * 0.9));
    this.#pool = Math.max(1, Math.ceil(1 / (this.#cell * pixelRatio(this)) - 0.01));
    const width = Math.ceil(this.#left + this.#cell * view.keys.length + slack);
    const height = Math.ceil(this.#top + this.#cell * view.queries.length + 6);
    filler.style.width = `${width}px`;
    filler.style.height = `${height}px`;
    const shownWidth = Math.min(width, wide);
    const shownHeight = Math.min(height, room);
    scroller.style.maxHeight = `${room}px`;
    canvas.style.width = `${shownWidth}px`;
    canvas.style.height = `${shownHeight}px`;
    canvas.width = Math.round(shownWidth * pixelRatio(this));
    canvas.height = Math.round(shownHeight * pixelRatio(this));
    filler.style.marginTop = `${-shownHeight}px`;
  }

  /** Scroll to where the selection is seen. */
  #reveal() {
    const { scroller } = this;
    if (!scroller) return;
    const { row, column } = this.selection;
    const see = (/** @type {number} */ at, /** @type {number} */ from, /** @type {number} */ room) =>
      at < from ? at : at + this.#cell > from + room ? at + this.#cell - room : from;
    scroller.scrollLeft = see(column * this.#cell, scroller.scrollLeft, scroller.clientWidth - this.#left);
    scroller.scrollTop = see(row * this.#cell, scroller.scrollTop, scroller.clientHeight - this.#top);
  }

  /** @param {View} view */
  #paint(view) {
    const { canvas, scroller } = this;
    if (!canvas || !scroller || !this.#picture) return;
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    const ratio = pixelRatio(this);
    const [width, height] = [canvas.width / ratio, canvas.height / ratio];
    const [left, top, cell] = [this.#left, this.#top, this.#cell];
    const [offX, offY] = [scroller.scrollLeft, scroller.scrollTop];
    const tall = view.queries.length;
    const wide = view.keys.length;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.save();
    context.beginPath();
    context.rect(left, top, Math.min(width - left, wide * cell), height - top);
    context.clip();
    context.imageSmoothingEnabled = false;
    const unit = cell * this.#pool;
    context.drawImage(
      this.#picture, left - offX, top - offY, unit * this.#picture.width, unit * this.#picture.height,
    );
    const first = [Math.max(0, Math.floor(offY / cell)), Math.max(0, Math.floor(offX / cell))];
    const last = [
      Math.min(tall, Math.ceil((offY + height - top) / cell)),
      Math.min(wide, Math.ceil((offX + width - left) / cell)),
    ];
    if (cell >= 7) this.#lines(context, first, last, left - offX, top - offY);
    if (cell >= NUMBERED_CELL) this.#numbers(context, view, first, last, left - offX, top - offY);
    this.#marks(context, view, left - offX, top - offY);
    this.#outline(context, view, left - offX, top - offY);
    context.restore();
    this.#labels(context, view, first, last, width, height, offX, offY);
  }

  /**
   * @param {CanvasRenderingContext2D} context @param {number[]} first @param {number[]} last
   * @param {number} x @param {number} y
   */
  #lines(context, first, last, x, y) {
    const cell = this.#cell;
    context.fillStyle = colourOf("--paper");
    const thick = cell >= 20 ? 2 : 1;
    for (let row = first[0]; row <= last[0]; row++) {
      context.fillRect(x + first[1] * cell, y + row * cell - thick / 2, (last[1] - first[1]) * cell, thick);
    }
    for (let column = first[1]; column <= last[1]; column++) {
      context.fillRect(x + column * cell - thick / 2, y + first[0] * cell, thick, (last[0] - first[0]) * cell);
    }
  }

  /**
   * @param {CanvasRenderingContext2D} context @param {View} view
   * @param {number[]} first @param {number[]} last @param {number} x @param {number} y
   */
  #numbers(context, view, first, last, x, y) {
    const cell = this.#cell;
    const colours = palette();
    const shades = levels(view, this.scale);
    context.font = `${Math.min(11.5, cell * 0.36)}px ${FONT}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (let row = first[0]; row < last[0]; row++) {
      for (let column = first[1]; column < last[1]; column++) {
        const place = row * view.keys.length + column;
        const weight = view.weights[place];
        if (weight < 0.015 || weight < this.scale.threshold) continue;
        context.fillStyle = colours.ink[shades[place]];
        const text = weight.toFixed(2).replace(/^0/, "");
        context.fillText(text, x + (column + 0.5) * cell, y + (row + 0.5) * cell + 0.5);
      }
    }
  }

  /** @param {CanvasRenderingContext2D} context @param {View} view @param {number} x @param {number} y */
  #marks(context, view, x, y) {
    const cell = this.#cell;
    if (cell < 8) return;
    context.fillStyle = colourOf("--accent");
    for (const [row, column] of view.marks) {
      context.beginPath();
      context.arc(x + (column + 1) * cell - 6, y + row * cell + 6, Math.min(2.5, cell / 5), 0, 7);
      context.fill();
    }
  }

  /** @param {CanvasRenderingContext2D} context @param {View} view @param {number} x @param {number} y */
  #outline(context, view, x, y) {
    const { row, column } = this.selection;
    if (row < 0) return;
    const cell = this.#cell;
    const wide = view.keys.length * cell;
    const tall = view.queries.length * cell;
    context.strokeStyle = colourOf("--accent");
    context.lineWidth = 1.5;
    context.globalAlpha = 0.55;
    context.strokeRect(x + 0.75, y + row * cell, wide - 1.5, Math.max(cell, 1));
    if (column >= 0) {
      context.setLineDash([2, 3]);
      context.lineWidth = 1;
      context.strokeRect(x + column * cell, y + 0.75, Math.max(cell, 1), tall - 1.5);
      context.setLineDash([]);
      context.globalAlpha = 1;
      context.lineWidth = 2.5;
      const least = Math.max(cell, cell < 7 ? 11 : 7);
      const shift = (least - cell) / 2;
      context.strokeRect(x + column * cell - shift, y + row * cell - shift, least, least);
    }
    context.globalAlpha = 1;
  }

  /**
   * @param {CanvasRenderingContext2D} context @param {View} view
   * @param {number[]} first @param {number[]} last
   * @param {number} width @param {number} height @param {number} offX @param {number} offY
   */
  #labels(context, view, first, last, width, height, offX, offY) {
    const [left, top, cell, size] = [this.#left, this.#top, this.#cell, this.#size];
    const { row, column } = this.selection;
    const apart = (/** @type {number} */ room) => Math.max(1, Math.ceil(room / cell));
    const [everyRow, everyColumn] = [apart(size + 2), apart(size * 1.42 + 3)];
    const [accent, quiet, ink] = ["--accent", "--quiet", "--ink"].map(colourOf);
    const style = (/** @type {boolean} */ chosen, /** @type {boolean | undefined} */ special) => {
      context.fillStyle = chosen ? accent : special ? quiet : ink;
      context.font = `${chosen ? "600 " : ""}${size}px ${FONT}`;
    };
    context.textBaseline = "middle";
    context.textAlign = "right";
    context.save();
    context.beginPath();
    context.rect(0, top - size / 2, left, height - top + size / 2);
    context.clip();
    for (let i = first[0]; i < last[0]; i++) {
      if (i !== row && (i % everyRow || (row >= 0 && Math.abs(i - row) < everyRow))) continue;
      style(i === row, view.queries[i].special);
      context.fillText(displayText(view.queries[i].text, 18), left - 8, top - offY + (i + 0.5) * cell, left - 12);
    }
    context.restore();
    context.save();
    context.beginPath();
    context.rect(left - 10, 0, width, top);
    context.clip();
    context.textAlign = "left";
    for (let i = first[1]; i < last[1]; i++) {
      if (i !== column && (i % everyColumn || (column >= 0 && Math.abs(i - column) < everyColumn))) continue;
      style(i === column, view.keys[i].special);
      context.save();
      context.translate(left - offX + (i + 0.5) * cell + 2, top - 7);
      context.rotate(-SLANT);
      context.fillText(displayText(view.keys[i].text, 18), 0, 0, 150);
      context.restore();
    }
    context.restore();
  }

  /** @param {MouseEvent} event @param {boolean} lock */
  #point(event, lock) {
    const { canvas, scroller, view } = this;
    if (!canvas || !scroller || !view) return;
    const { x, y } = pointIn(canvas, event);
    const row = y < this.#top ? -1 : Math.floor((y - this.#top + scroller.scrollTop) / this.#cell);
    const column = x < this.#left ? -1 : Math.floor((x - this.#left + scroller.scrollLeft) / this.#cell);
    const inside = row < view.queries.length && column < view.keys.length;
    if (!inside || (row < 0 && column < 0)) {
      if (!lock) this.hover(-1, -1);
      return;
    }
    if (lock) this.choose(row < 0 ? this.selection.row : row, column < 0 ? -1 : column);
    else this.hover(row, column);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.key === "+" || event.key === "=") this.zoom *= 1.5;
    else if (event.key === "-") this.zoom /= 1.5;
    else if (event.key === "0") this.zoom = 1;
    else return this.walk(event);
    event.preventDefault();
  }
}

/** @param {View} view @param {number} row @param {number} column @returns {string} a cell in words */
export function sentence(view, row, column) {
  if (row < 0 || row >= view.queries.length) return "";
  const query = displayText(view.queries[row].text);
  if (column < 0 || column >= view.keys.length) return `‘${query}’ is selected`;
  const weight = view.weights[row * view.keys.length + column];
  return `‘${query}’ looks at ‘${displayText(view.keys[column].text)}’, ${formatWeight(weight)}`;
}

define("regard-matrix", MatrixElement);

// <regard-links>: curves from queries to the keys they looked at.

import { palette } from "./colours.js";
import { Drawing, define, draw, make } from "./elements.js";
import { level } from "./colour-scale.js";
import { displayText } from "./token-text.js";

/** @typedef {import("./weights.js").View} View */

const MOST = 1500;

/**
 * The strongest links of a view, weakest first: some of every row, fewer per row in long texts.
 * @param {View} view @param {number} threshold @param {number} chosen a row that shows all of its links
 * @returns {{row: number, column: number, weight: number}[]}
 */
export function strongest(view, threshold, chosen) {
  const wide = view.keys.length;
  const each = Math.max(2, Math.floor(MOST / Math.max(1, view.queries.length)));
  const found = [];
  for (let row = 0; row < view.queries.length; row++) {
    const links = [];
    for (let column = 0; column < wide; column++) {
      const weight = view.weights[row * wide + column];
      if (weight > 0 && weight >= Math.max(threshold, 0.02 * view.largest)) links.push({ row, column, weight });
    }
    links.sort((a, b) => b.weight - a.weight);
    found.push(...links.slice(0, row === chosen ? 200 : each));
  }
  return found.sort((a, b) => a.weight - b.weight);
}

export class LinksElement extends Drawing {
  build() {
    this.scroller = make("div", {
      className: "links-scroller", tabIndex: 0, role: "application",
      "aria-roledescription": "links between words",
      on: { keydown: (/** @type {KeyboardEvent} */ event) => this.#key(event) },
    });
    this.append(this.scroller);
    new ResizeObserver(() => this.changed("size")).observe(this);
  }

  /** @param {View} view */
  render(view) {
    if (!this.scroller || !this.clientWidth) return;
    this.scroller.setAttribute(
      "aria-label", `${view.title}: links from ${view.queries.length} queries to ${view.keys.length} keys. Use the arrow keys to move.`,
    );
    const width = Math.min(Math.max(this.clientWidth - 4, 280), 760);
    const count = Math.max(view.queries.length, view.keys.length, 1);
    const step = count > 60 ? 18 : count > 24 ? 24 : 30;
    const side = Math.min(190, width * 0.32);
    const height = step * count + 16;
    const colours = palette();
    const { row: chosen, column: aim } = this.selection;
    const at = (/** @type {number} */ index, /** @type {number} */ size) => 8 + (step * (count - size)) / 2 + step * (index + 0.5);
    const curves = draw("g", { class: "links-curves" });
    for (const { row, column, weight } of strongest(view, this.scale.threshold, chosen)) {
      const share = level(weight, view, row, this.scale) / 255;
      const lit = chosen < 0 || row === chosen;
      const [y, z] = [at(row, view.queries.length), at(column, view.keys.length)];
      const [from, to] = [side, width - side];
      const middle = (from + to) / 2;
      curves.append(draw("path", {
        d: `M${from} ${y}C${middle} ${y} ${middle} ${z} ${to} ${z}`,
        fill: "none",
        stroke: colours.css[Math.round(255 * (0.35 + 0.65 * share))],
        "stroke-width": (0.75 + 5 * share).toFixed(2),
        "stroke-opacity": (lit ? 0.35 + 0.65 * share : 0.03 + 0.2 * share).toFixed(2),
        "stroke-linecap": "round",
      }));
    }
    const words = [
      ...view.queries.map((token, row) => this.#word(token, side - 10, at(row, view.queries.length), "end", row === chosen, () => this.choose(row, -1), () => this.hover(row, -1))),
      ...view.keys.map((token, column) => this.#word(token, width - side + 10, at(column, view.keys.length), "start", column === aim, () => this.choose(chosen, column), () => this.hover(chosen, column))),
    ];
    this.picture = draw(
      "svg",
      { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true", class: "links-picture" },
      curves, ...words,
    );
    this.scroller.replaceChildren(this.picture);
    if (this.pendingChanges.has("selection") && chosen >= 0) this.#reveal(at(chosen, view.queries.length));
  }

  /**
   * @param {import("./token-text.js").Token} token @param {number} x @param {number} y
   * @param {string} anchor @param {boolean} chosen @param {() => void} choose @param {() => void} hover
   */
  #word(token, x, y, anchor, chosen, choose, hover) {
    const word = draw(
      "text",
      {
        x, y, "text-anchor": anchor, "dominant-baseline": "central",
        class: `links-word${chosen ? " chosen" : ""}${token.special ? " special" : ""}`,
      },
      displayText(token.text, 22),
    );
    word.addEventListener("click", choose);
    word.addEventListener("pointerenter", hover);
    word.addEventListener("pointerleave", () => this.hover(-1, -1));
    return word;
  }

  /** @param {number} y */
  #reveal(y) {
    const { scroller } = this;
    if (!scroller) return;
    if (y < scroller.scrollTop + 20) scroller.scrollTop = y - 40;
    else if (y > scroller.scrollTop + scroller.clientHeight - 20) scroller.scrollTop = y - scroller.clientHeight + 40;
  }

  /** @param {KeyboardEvent} event up and down through the queries, left and right through the links of one */
  #key(event) {
    const { view } = this;
    if (!view) return;
    const { row, column } = this.selection;
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return this.walk(event);
    event.preventDefault();
    const wide = view.keys.length;
    const from = Math.max(row, 0);
    const order = Array.from({ length: wide }, (_, i) => i).sort(
      (a, b) => view.weights[from * wide + b] - view.weights[from * wide + a],
    );
    const next = order.indexOf(column) + (event.key === "ArrowRight" ? 1 : -1);
    this.choose(from, order[Math.min(wide - 1, Math.max(0, next))]);
  }
}

define("regard-links", LinksElement);

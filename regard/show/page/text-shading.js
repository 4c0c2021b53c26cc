// <regard-text>: the text itself, each word shaded by how much the selected word looked at it.
// <regard-strip>: a row of words shaded by numbers of their own, such as attributions.

import { onColourChange, palette } from "./colours.js";
import { Drawing, define, make } from "./elements.js";
import { level } from "./colour-scale.js";
import { formatWeight, displayText, hasSpaceBefore } from "./token-text.js";

/** @typedef {import("./weights.js").View} View */
/** @typedef {import("./token-text.js").Token} Token */

let lists = 0;

export class TextElement extends Drawing {
  /** @type {HTMLElement[]} */
  #queries = [];
  /** @type {HTMLElement[]} */
  #keys = [];
  /** @type {View | null} */
  #shown = null;
  #name = `regard-text-${lists++}`;

  /** @param {View} view */
  render(view) {
    if (this.#shown?.queries !== view.queries || this.#shown?.keys !== view.keys) this.#lay(view);
    this.#shown = view;
    const { row, column } = this.selection;
    const from = Math.max(row, 0);
    const colours = palette();
    const wide = view.keys.length;
    this.#keys.forEach((node, i) => {
      const weight = view.weights[from * wide + i] ?? 0;
      const shade = level(weight, view, from, this.scale);
      node.style.backgroundColor = colours.css[shade];
      node.style.color = colours.ink[shade];
      node.title = `${displayText(view.keys[i].text)} ${formatWeight(weight, 3)}`;
      node.classList.toggle("aimed", i === column);
    });
    this.#queries.forEach((node, i) => {
      node.setAttribute("aria-selected", String(i === row));
      node.classList.toggle("chosen", i === row);
    });
    if (this.list && row >= 0) this.list.setAttribute("aria-activedescendant", `${this.#name}-${row}`);
  }

  /** @param {View} view make a node for each word */
  #lay(view) {
    this.#queries = view.queries.map((token, row) =>
      make("span", {
        className: `word query-word${token.special ? " special" : ""}`, role: "option", id: `${this.#name}-${row}`,
        textContent: displayText(token.text),
        on: { click: () => this.choose(row, this.selection.column), pointerenter: () => this.hover(row, -1) },
      }),
    );
    this.#keys = view.keys.map((token, column) =>
      make("span", {
        className: `word key-word${token.special ? " special" : ""}`, textContent: displayText(token.text),
        on: {
          click: () => this.choose(Math.max(this.selection.row, 0), column),
          pointerenter: () => this.hover(Math.max(this.selection.row, 0), column),
        },
      }),
    );
    this.list = make("div", {
      className: "words", role: "listbox", tabIndex: 0, dir: "auto",
      "aria-label": `${view.querySide}: select the query`, "aria-orientation": "horizontal",
      on: { keydown: (/** @type {KeyboardEvent} */ event) => this.#key(event) },
    }, ...withSpaces(view.queries, this.#queries));
    const keys = make("div", { className: "words", dir: "auto" }, ...withSpaces(view.keys, this.#keys));
    this.replaceChildren(
      make("section", {}, make("h2", { className: "over", textContent: `${view.querySide} · queries` }), this.list),
      make("section", {}, make("h2", { className: "over", textContent: `${view.keySide} · keys` }), keys),
    );
  }

  /** @param {KeyboardEvent} event left and right, or up and down, through the words that look */
  #key(event) {
    const { view } = this;
    if (!view) return;
    let row = Math.max(this.selection.row, 0);
    const rtl = this.list && getComputedStyle(this.list).direction === "rtl" ? -1 : 1;
    if (event.key === "ArrowRight") row += rtl;
    else if (event.key === "ArrowLeft") row -= rtl;
    else if (event.key === "ArrowDown") row += 1;
    else if (event.key === "ArrowUp") row -= 1;
    else if (event.key === "Home") row = 0;
    else if (event.key === "End") row = view.queries.length - 1;
    else return;
    event.preventDefault();
    row = Math.min(view.queries.length - 1, Math.max(0, row));
    this.choose(row, strongestKey(view, row));
  }
}

/** @param {View} view @param {number} row @returns {number} the key that a row looks at most */
export function strongestKey(view, row) {
  const wide = view.keys.length;
  let most = 0;
  for (let column = 1; column < wide; column++) {
    if (view.weights[row * wide + column] > view.weights[row * wide + most]) most = column;
  }
  return most;
}

/** @param {Token[]} tokens @param {HTMLElement[]} nodes @returns {(Node | string)[]} with blanks where the text has them */
function withSpaces(tokens, nodes) {
  return nodes.flatMap((node, i) => (hasSpaceBefore(tokens, i) ? [" ", node] : [make("wbr"), node]));
}

/** Set `tokens` and `values`; below zero has another colour. */
export class StripElement extends HTMLElement {
  /** @param {Token[]} tokens @param {ArrayLike<number>} values @param {string} label */
  show(tokens, values, label) {
    if (!this.#redraw) onColourChange(() => this.#redraw?.());
    this.#redraw = () => this.#draw(tokens, values, label);
    this.#redraw();
  }

  /** @type {(() => void) | null} */
  #redraw = null;

  /** @param {Token[]} tokens @param {ArrayLike<number>} values @param {string} label */
  #draw(tokens, values, label) {
    const largest = Math.max(...Array.from(values, Math.abs), 1e-9);
    const nodes = tokens.map((token, i) => {
      const shade = Math.round((255 * Math.abs(values[i])) / largest);
      const colours = palette(values[i] < 0);
      const node = make("span", { className: "word", textContent: displayText(token.text), title: formatWeight(values[i], 3) });
      node.style.backgroundColor = colours.css[shade];
      node.style.color = colours.ink[shade];
      return node;
    });
    this.replaceChildren(
      make("h2", { className: "over", textContent: label }),
      make("div", { className: "words", dir: "auto" }, ...withSpaces(tokens, nodes)),
    );
  }
}

define("regard-text", TextElement);
define("regard-strip", StripElement);

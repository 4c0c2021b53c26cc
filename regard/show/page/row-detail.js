// <regard-row>: the largest weights of the selected row, and the alternatives at its position.

import { palette } from "./colours.js";
import { Drawing, define, make } from "./elements.js";
import { level } from "./colour-scale.js";
import { largestIndices } from "./table.js";
import { formatWeight, displayText } from "./token-text.js";

const SHOWN = 8;

export class RowElement extends Drawing {
  /** @type {{text: string, probability: number}[][]} by row; set before the view */
  alternatives = [];
  /** whether anything was looked at; without it the alternatives alone are shown */
  looked = true;

  /** @param {import("./weights.js").View} view */
  render(view) {
    const row = this.selection.row;
    if (row < 0 || row >= view.queries.length) {
      this.replaceChildren(make("p", { className: "hint", textContent: "Select a word to see where it looks." }));
      return;
    }
    const wide = view.keys.length;
    const weights = view.weights.subarray(row * wide, (row + 1) * wide);
    const columns = largestIndices(weights, SHOWN).filter((column) => weights[column] > 0);
    const most = columns.length ? weights[columns[0]] : 1;
    const colours = palette();
    const bars = columns.map((column) =>
      this.#bar(displayText(view.keys[column].text, 20), weights[column], weights[column] / most,
        colours.css[Math.max(70, level(weights[column], view, row, this.scale))],
        column === this.selection.column, () => this.choose(row, column)));
    const rest = weights.reduce((sum, weight) => sum + weight, 0) - columns.reduce((sum, column) => sum + weights[column], 0);
    const nodes = this.looked ? [
      make("h2", {}, make("bdi", { textContent: displayText(view.queries[row].text) }), " looks at"),
      make("ol", { className: "bars" }, ...bars),
      rest > 0.005 ? make("p", { className: "hint", textContent: `${wide - columns.length} other words: ${formatWeight(rest)} in total.` }) : null,
    ] : [];
    const others = this.alternatives[view.rows[row]];
    if (others?.length) {
      const likeliest = Math.max(...others.map((other) => other.probability), 1e-9);
      nodes.push(
        make("h2", { textContent: "Alternatives" }),
        make("ol", { className: "bars" }, ...others.slice(0, 6).map((other) => this.#bar(displayText(other.text, 20), other.probability, other.probability / likeliest, "var(--quiet-bar)", false))),
      );
    }
    this.replaceChildren(...nodes.filter((node) => node !== null));
  }

  /**
   * @param {string} word @param {number} value @param {number} share @param {string} colour
   * @param {boolean} chosen @param {() => void} [choose]
   */
  #bar(word, value, share, colour, chosen, choose) {
    const fill = make("span", { className: "bar-fill" });
    fill.style.width = `${Math.max(1, 100 * share)}%`;
    fill.style.background = colour;
    const inner = [
      make("bdi", { className: "bar-word", textContent: word }),
      make("span", { className: "bar-track", "aria-hidden": "true" }, fill),
      make("span", { className: "bar-number", textContent: formatWeight(value) }),
    ];
    const line = choose
      ? make("button", { type: "button", className: "bar", on: { click: choose } }, ...inner)
      : make("span", { className: "bar" }, ...inner);
    line.classList.toggle("chosen", chosen);
    return make("li", {}, line);
  }
}

define("regard-row", RowElement);

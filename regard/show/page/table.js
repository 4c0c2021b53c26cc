// <regard-table>: the numbers of a view as a table, the accessible equivalent of every canvas.

import { Drawing, define, make } from "./elements.js";
import { formatWeight, displayText } from "./token-text.js";

const CELLS = 2600;
const TOP = 6;

export class TableElement extends Drawing {
  /** @param {import("./weights.js").View} view */
  render(view) {
    if (this.pendingChanges.size === 1 && this.pendingChanges.has("selection")) return this.#mark();
    const wide = view.keys.length;
    const whole = view.weights.length <= CELLS;
    const caption = make("caption", {
      textContent: whole ? `${view.title}: one row per query` : `${view.title}: the ${TOP} largest weights of each query`,
    });
    const head = make("tr", {}, make("th", { scope: "col", textContent: view.querySide }));
    if (whole) for (const key of view.keys) head.append(make("th", { scope: "col", textContent: displayText(key.text) }));
    else for (let i = 1; i <= TOP; i++) head.append(make("th", { scope: "col", textContent: String(i) }));
    const body = make("tbody", {});
    view.queries.forEach((query, row) => {
      const line = make("tr", {}, make("th", { scope: "row", textContent: displayText(query.text) }));
      const weights = view.weights.subarray(row * wide, (row + 1) * wide);
      if (whole) {
        weights.forEach((weight, column) => line.append(make("td", {
          className: weight < Math.max(0.005, this.scale.threshold) ? "faint" : "", textContent: formatWeight(weight),
          on: { click: () => this.choose(row, column) },
        })));
      } else {
        for (const column of largestIndices(weights, TOP)) {
          line.append(make("td", { textContent: `${displayText(view.keys[column].text)} ${formatWeight(weights[column])}`, on: { click: () => this.choose(row, column) } }));
        }
      }
      body.append(line);
    });
    this.replaceChildren(
      make("div", { className: "table-scroller", tabIndex: 0, role: "region", "aria-label": "Weights as a table", on: { keydown: (/** @type {KeyboardEvent} */ event) => this.walk(event) } },
        make("table", {}, caption, make("thead", {}, head), body)),
    );
    this.#mark();
  }

  #mark() {
    this.querySelectorAll("tbody tr").forEach((line, row) => line.classList.toggle("chosen", row === this.selection.row));
    this.querySelector("tr.chosen")?.scrollIntoView({ block: "nearest" });
  }
}

/** @param {Float32Array} weights @param {number} count @returns {number[]} columns of the largest, largest first */
export function largestIndices(weights, count) {
  /** @type {number[]} */
  const found = [];
  for (let i = 0; i < weights.length; i++) {
    if (found.length === count && weights[i] <= weights[found[count - 1]]) continue;
    let place = found.length;
    while (place > 0 && weights[found[place - 1]] < weights[i]) place--;
    found.splice(place, 0, i);
    if (found.length > count) found.pop();
  }
  return found;
}

define("regard-table", TableElement);

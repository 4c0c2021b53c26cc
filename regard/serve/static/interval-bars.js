// Values with their intervals, one below the other, on a common scale.

import { make } from "/page/elements.js";

/** @typedef {import("./export-pictures.js").IntervalLine} IntervalLine */

/**
 * @param {IntervalLine[]} lines
 * @param {{zero?: boolean, number?: (value: number) => string}} [how] whether the scale contains zero, and how numbers are written
 * @returns {HTMLElement}
 */
export function intervalBars(lines, { zero = true, number = (value) => value.toFixed(2) } = {}) {
  const ends = [...(zero ? [0] : []), ...lines.flatMap((line) => line.interval ?? [line.value])];
  const [low, high] = [Math.min(...ends), Math.max(...ends, ...(zero ? [1e-9] : []))];
  const at = (/** @type {number} */ value) => (high > low ? (100 * (value - low)) / (high - low) : 50);
  return make("ul", { className: "rg-intervals" }, ...lines.map((line) => {
    const [from, to] = line.interval ?? [line.value, line.value];
    const band = make("span", { className: "rg-interval" });
    band.style.left = `${at(from)}%`;
    band.style.width = `${line.interval ? Math.max(0.5, at(to) - at(from)) : 0}%`;
    const dot = make("span", { className: "rg-interval-dot" });
    dot.style.left = `${at(line.value)}%`;
    const track = make("span", { className: "rg-interval-track", "aria-hidden": "true" });
    if (zero) {
      const line0 = make("span", { className: "rg-interval-zero" });
      line0.style.left = `${at(0)}%`;
      track.append(line0);
    }
    track.append(band, dot);
    const label = `${number(line.value)}${line.interval ? ` (${number(from)} to ${number(to)})` : ""}`.replaceAll("-", "−");
    return make("li", { className: line.strong ? "strong" : "" }, make("bdi", { textContent: line.name }), track, make("span", { className: "rg-interval-number", textContent: label }));
  }));
}

/** @param {string} caption @param {string[]} columns @param {string[][]} rows @returns {HTMLTableElement} a table whose first column names its rows */
export function plainTable(caption, columns, rows) {
  return make("table", {}, make("caption", { textContent: caption }),
    make("thead", {}, make("tr", {}, ...columns.map((name) => make("th", { scope: "col", textContent: name })))),
    make("tbody", {}, ...rows.map(([first, ...rest]) => make("tr", {}, make("th", { scope: "row", textContent: first }), ...rest.map((textContent) => make("td", { textContent }))))));
}

/** @param {string} label @param {HTMLTableElement} table @returns {HTMLElement} the table in a frame that scrolls */
export function tableFrame(label, table) {
  return make("div", { className: "table-scroller rg-table", tabIndex: 0, role: "region", "aria-label": label }, table);
}

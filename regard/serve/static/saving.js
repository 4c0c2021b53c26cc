// Menus that save what is not a trace: charts and tables.

import { draw, make } from "/page/elements.js";
import { pngOf, save, svgText } from "/page/pictures.js";
import { icon } from "./icons.js";

/** @typedef {[label: string, ending: string, run: () => Blob | null | Promise<Blob | null>]} Kind */

/**
 * @param {() => string} name @param {Kind[]} kinds @param {import("./app.js").Context} context
 * @returns {HTMLElement}
 */
export function saveMenu(name, kinds, context) {
  const menu = make("details", { className: "rg-menu-box" });
  menu.append(make("summary", { className: "rg-button" }, icon("save"), "Save"), make("div", { className: "rg-menu-items" }, ...kinds.map(([label, ending, run]) => make("button", {
    type: "button", textContent: label, "aria-label": `Save as ${label}`,
    on: {
      click: async () => {
        menu.open = false;
        const blob = await run();
        if (!blob) return context.say("There is nothing to save yet.");
        save(blob, `regard-${name().replace(/[^\w.-]+/g, "-")}.${ending}`);
        context.say(`Saved as ${label}.`);
      },
    },
  }))));
  menu.addEventListener("keydown", (event) => { if (event.key === "Escape") { menu.open = false; menu.querySelector("summary")?.focus(); } });
  menu.addEventListener("focusout", (event) => { if (!(event.relatedTarget instanceof Node && menu.contains(event.relatedTarget))) menu.open = false; });
  return menu;
}

/** @param {() => import("./chart.js").ChartElement} chart @returns {Kind[]} a chart as pictures and as numbers */
export function chartKinds(chart) {
  const blob = (/** @type {SVGElement} */ svg) => new Blob([svgText(svg)], { type: "image/svg+xml" });
  return [
    ["SVG", "svg", () => { const svg = pictureOf(chart()); return svg && blob(svg); }],
    ["PNG", "png", () => { const svg = pictureOf(chart()); return svg && pngOf(svg); }],
    ["CSV", "csv", () => csvOf(chart().table())],
  ];
}

/** @param {HTMLElement} chart @returns {SVGElement | null} its picture with the colours that it has now, on paper */
function pictureOf(chart) {
  const shown = chart.querySelector("svg");
  if (!shown) return null;
  const picture = /** @type {SVGElement} */ (shown.cloneNode(true));
  const [before, after] = [[...shown.querySelectorAll("*")], [...picture.querySelectorAll("*")]];
  before.forEach((node, i) => {
    const style = getComputedStyle(node);
    for (const name of ["fill", "stroke", "stroke-width", "font-size", "font-family"]) after[i].setAttribute(name, style.getPropertyValue(name));
    after[i].removeAttribute("class");
  });
  picture.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  picture.prepend(draw("rect", { width: "100%", height: "100%", fill: getComputedStyle(document.documentElement).getPropertyValue("--paper").trim() }));
  return picture;
}

/** @param {HTMLTableElement} table @returns {Blob} */
export function csvOf(table) {
  const quoted = (/** @type {string} */ text) => (/[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text);
  // a cell that begins like a formula would be run as one by a spreadsheet
  const safe = (/** @type {string} */ text) => (/^[=+@\t]/.test(text) ? `'${text}` : text.replace("−", "-"));
  const lines = [...table.rows].map((row) => [...row.cells].map((cell) => quoted(safe(cell.textContent ?? ""))).join(","));
  return new Blob([`${lines.join("\n")}\n`], { type: "text/csv" });
}

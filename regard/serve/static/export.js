// Saving: menus, and traces, pictures and tables as files.

import { draw, make } from "/page/elements.js";
import { pngOf, save, svgText } from "/page/svg-export.js";
import { icon } from "./icons.js";

/** @typedef {import("./app.js").Context} Context */
/** @typedef {import("/page/weights.js").TraceDocument} TraceDocument */
/** @typedef {[label: string, ending: string, run: () => Blob | null | Promise<Blob | null>]} Kind */
/** @typedef {{name: () => string, trace: () => TraceDocument | null, picture: () => SVGElement | null, more?: Kind[]}} Savable */
/**
 * Something other than a trace: a title, a picture, its numbers as tables, and the data.
 * @typedef {{title: () => string, picture: () => SVGElement | null, tables: () => HTMLTableElement[], json: () => unknown}} Sheet
 */

/** @param {() => string} name @param {Kind[]} kinds @param {Context} context @returns {HTMLElement} */
export function saveMenu(name, kinds, context) {
  const menu = make("details", { className: "rg-menu-box" });
  const items = kinds.map(([label, ending, run]) => make("button", {
    type: "button", textContent: label, "aria-label": `Save as ${label}`,
    on: {
      click: async () => {
        menu.open = false;
        try {
          const blob = await context.busy(Promise.resolve(run()));
          if (!blob) return context.say("There is nothing to save yet.");
          save(blob, `regard-${name().replace(/[^\w.-]+/g, "-")}.${ending}`);
          context.say(`Saved as ${label}.`);
        } catch (error) {
          context.say(`Could not save: ${error instanceof Error ? error.message : error}`);
        }
      },
    },
  }));
  menu.append(make("summary", { className: "rg-button" }, icon("save"), "Save"), make("div", { className: "rg-menu-items" }, ...items));
  menu.addEventListener("keydown", (event) => { if (event.key === "Escape") { menu.open = false; menu.querySelector("summary")?.focus(); } });
  menu.addEventListener("focusout", (event) => { if (!(event.relatedTarget instanceof Node && menu.contains(event.relatedTarget))) menu.open = false; });
  return menu;
}

/** A menu for a trace: HTML, SVG, PNG, JSON and whatever else a screen offers. @param {Savable} what @param {Context} context @returns {HTMLElement} */
export function exportMenu(what, context) {
  return saveMenu(what.name, [
    ["HTML", "html", async () => { const trace = what.trace(); return trace && onePage(trace, context); }],
    ...pictureFormats(what.picture),
    ["JSON", "json", () => { const trace = what.trace(); return trace && jsonOf(trace); }],
    ...(what.more ?? []),
  ], context);
}

/** The same for anything but a trace, with CSV. @param {() => string} name @param {Sheet} sheet @param {Context} context @param {Kind[]} [more] @returns {HTMLElement} */
export function sheetMenu(name, sheet, context, more = []) {
  return saveMenu(name, [
    ["HTML", "html", () => sheetPage(sheet)],
    ...pictureFormats(sheet.picture),
    ["JSON", "json", () => { const found = sheet.json(); return found ? jsonOf(found) : null; }],
    ["CSV", "csv", () => csvOf(...sheet.tables())],
    ...more,
  ], context);
}

/** @param {() => SVGElement | null} picture @returns {Kind[]} */
function pictureFormats(picture) {
  return [
    ["SVG", "svg", () => { const svg = picture(); return svg && new Blob([svgText(svg)], { type: "image/svg+xml" }); }],
    ["PNG", "png", async () => { const svg = picture(); return svg && pngOf(svg); }],
  ];
}

/** @param {unknown} value @returns {Blob} */
export function jsonOf(value) {
  return new Blob([JSON.stringify(value)], { type: "application/json" });
}

/** @param {TraceDocument} trace @param {Context} context @returns {Promise<Blob>} one file that needs no server */
async function onePage(trace, context) {
  const page = await (await context.api.ask("/page/onefile.html")).text();
  const data = JSON.stringify({ trace, left_out: [], rounded: null }).replace(/[<>&]/g, (letter) => `\\u00${letter.charCodeAt(0).toString(16)}`);
  const whole = page.replace(/(<script type="application\/json" id="trace">)[^<]*/, (_, tag) => tag + data);
  return new Blob([whole], { type: "text/html" });
}

const STYLE = "body{font:15px/1.5 system-ui,sans-serif;margin:32px;color:#15181e;background:#fff}svg{max-width:100%;height:auto}table{border-collapse:collapse;margin:24px 0;font-size:13px}caption{text-align:start;font-weight:600;padding:6px 0}td,th{border:1px solid #dfe2ea;padding:4px 10px;text-align:start}";

/** @param {Sheet} sheet @returns {Blob | null} picture and tables in one file without any script */
function sheetPage(sheet) {
  const picture = sheet.picture();
  if (!picture) return null;
  const title = make("title", { textContent: sheet.title() });
  const body = make("body", {}, make("h1", { textContent: sheet.title() }), picture, ...sheet.tables().map((table) => table.cloneNode(true)));
  const policy = `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">`;
  // written as text: the content security policy of this page allows no <style> element, not even unseen
  const text = `<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">${policy}${title.outerHTML}<style>${STYLE}</style></head>\n${body.outerHTML}\n</html>\n`;
  return new Blob([text], { type: "text/html" });
}

/**
 * Pictures side by side in one, each below its title.
 * @param {[string, SVGElement | null][]} parts @param {number} [most] beside each other
 * @returns {SVGElement | null}
 */
export function sideBySide(parts, most = 3) {
  const there = /** @type {[string, SVGElement][]} */ (parts.filter(([, picture]) => picture));
  if (!there.length) return null;
  const sizes = there.map(([, picture]) => [Number(picture.getAttribute("width")), Number(picture.getAttribute("height"))]);
  const lines = Array.from({ length: Math.ceil(there.length / most) }, (_, i) => there.slice(i * most, (i + 1) * most).map((_, j) => i * most + j));
  let [wide, y] = [0, 12];
  /** @type {Node[]} */
  const nodes = [];
  for (const line of lines) {
    let x = 12;
    for (const i of line) {
      const [title, picture] = there[i];
      picture.setAttribute("x", String(x));
      picture.setAttribute("y", String(y + 26));
      nodes.push(draw("text", { x: x + 20, y: y + 18, "font-size": 15, "font-weight": 600, "font-family": "system-ui, sans-serif", fill: "#15181e" }, title), picture);
      x += sizes[i][0] + 12;
    }
    wide = Math.max(wide, x);
    y += Math.max(...line.map((i) => sizes[i][1])) + 38;
  }
  return draw("svg", { xmlns: "http://www.w3.org/2000/svg", width: wide, height: y, viewBox: `0 0 ${wide} ${y}` },
    draw("rect", { width: wide, height: y, fill: "#ffffff" }), ...nodes);
}

/** @type {Record<string, string>} colours of the page, as they are on paper */
export const PAPER = {
  "--paper": "#ffffff", "--desk": "#f4f5f8", "--ink": "#15181e", "--quiet": "#555c69", "--line": "#dfe2ea", "--accent": "#b8430b", "--accent-soft": "#fdf0e8",
  "--quiet-bar": "#9aa3b5", "--series-0": "#1f5299", "--series-1": "#b8430b", "--series-2": "#1d6b3c", "--series-3": "#7a3aa8",
};

/** @param {Element | null | undefined} shown a picture in the page @returns {SVGElement | null} the same on white paper, without the page's style sheet */
export function pictureOf(shown) {
  if (!(shown instanceof SVGElement)) return null;
  const root = document.documentElement;
  // the page takes the print colours for a moment, so that computed styles have them
  for (const [name, value] of Object.entries(PAPER)) root.style.setProperty(name, value);
  const picture = /** @type {SVGElement} */ (shown.cloneNode(true));
  const [before, after] = [[...shown.querySelectorAll("*")], [...picture.querySelectorAll("*")]];
  before.forEach((node, i) => {
    const style = getComputedStyle(node);
    for (const name of ["fill", "stroke", "stroke-width", "font-size", "font-family", "font-weight"]) after[i].setAttribute(name, style.getPropertyValue(name));
    after[i].removeAttribute("class");
  });
  for (const name of Object.keys(PAPER)) root.style.removeProperty(name);
  picture.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  picture.prepend(draw("rect", { width: "100%", height: "100%", fill: "#ffffff" }));
  return picture;
}

/** @param {...HTMLTableElement} tables @returns {Blob} one below the other, with an empty line between them */
export function csvOf(...tables) {
  const quoted = (/** @type {string} */ text) => (/[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text);
  // a spreadsheet would run a cell that begins like a formula
  const safe = (/** @type {string} */ text) => (/^[=+@\t]/.test(text) ? `'${text}` : text.replace("−", "-"));
  const lines = (/** @type {HTMLTableElement} */ table) => [...table.rows].map((row) => [...row.cells].map((cell) => quoted(safe(cell.textContent ?? ""))).join(",")).join("\n");
  return new Blob([`${tables.map(lines).join("\n\n")}\n`], { type: "text/csv" });
}

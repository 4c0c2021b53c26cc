// Pictures for export: a view as SVG, and any SVG as PNG, on a white background.

import { paperPalette } from "./colours.js";
import { draw } from "./elements.js";
import { strongest } from "./links.js";
import { cellPicture } from "./matrix.js";
import { level, levels } from "./colour-scale.js";
import { formatWeight, displayText } from "./token-text.js";

/** @typedef {import("./weights.js").View} View */
/** @typedef {import("./colour-scale.js").Scale} Scale */

const INK = "#15181e";
const QUIET = "#565d6b";
const FAMILY = "Inter, 'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif";
const LETTER = 7.6;
const BLANK = 0.005; // weights below it would be written 0.00

/**
 * The frame of a picture: background, title, colour scale with its range.
 * @param {View} view @param {Scale} scale @param {number} width @param {number} height
 * @param {Node[]} parts @param {import("./colours.js").Palette} [minus] the colours below zero, where there are such numbers
 */
function frame(view, scale, width, height, parts, minus) {
  const colours = paperPalette();
  const wide = Math.ceil(Math.max(width, 420));
  const foot = height + 20;
  const bars = Array.from({ length: 30 }, (_, i) => {
    const share = minus ? (i - 14.5) / 14.5 : (i + 0.5) / 30;
    return draw("rect", { x: 20 + 5 * i, y: foot, width: 5.4, height: 9, fill: (share < 0 && minus ? minus : colours).css[Math.round(255 * Math.abs(share))] });
  });
  const small = { "font-size": 11.5, fill: QUIET };
  const high = scale.rows ? "row maximum" : formatWeight(scale.high ?? view.largest);
  return draw(
    "svg",
    {
      xmlns: "http://www.w3.org/2000/svg", width: wide, height: foot + 44,
      viewBox: `0 0 ${wide} ${foot + 44}`, "font-family": FAMILY, "font-size": 14, fill: INK,
    },
    draw("title", {}, view.title),
    draw("rect", { width: wide, height: foot + 44, fill: "#ffffff" }),
    draw("text", { x: 20, y: 30, "font-size": 16, "font-weight": 600 }, view.title),
    ...parts,
    ...bars,
    draw("text", { x: 20, y: foot + 24, ...small }, minus ? `−${high}` : "0"),
    draw("text", { x: 170, y: foot + 24, "text-anchor": "end", ...small }, high),
    draw("text", { x: 184, y: foot + 9, ...small }, view.sums),
  );
}

/** @param {import("./token-text.js").Token[]} tokens */
function longest(tokens) {
  return LETTER * tokens.reduce((most, token) => Math.max(most, displayText(token.text, 28).length), 1);
}

/**
 * Cells with their words around them.
 * @param {View} view @param {HTMLCanvasElement} cells a pixel each @param {(i: number) => [text: string, ink: string]} said in each
 * @returns {{parts: Node[], width: number, height: number}}
 */
function celled(view, cells, said) {
  const most = Math.max(view.queries.length, view.keys.length, 1);
  const cell = most <= 24 ? 40 : Math.max(1, Math.min(24, 960 / most));
  const size = Math.min(14, cell * 0.92);
  const named = size >= 5;
  const left = 20 + (named ? (longest(view.queries) * size) / 14 + 10 : 0);
  const top = 50 + (named ? (0.74 * longest(view.keys) * size) / 14 + 14 : 4);
  const wide = view.keys.length;
  /** @type {Node[]} */
  const parts = [draw("image", {
    x: left, y: top, width: cell * wide, height: cell * view.queries.length,
    preserveAspectRatio: "none", "image-rendering": "pixelated", href: cells.toDataURL("image/png"),
  })];
  if (named) {
    view.keys.forEach((token, i) => {
      const x = left + cell * (i + 0.5) + size * 0.3;
      parts.push(draw("text", { x, y: top - 8, "font-size": size, transform: `rotate(-45 ${x} ${top - 8})` }, displayText(token.text, 28)));
    });
    view.queries.forEach((token, i) =>
      parts.push(draw("text", { x: left - 10, y: top + cell * (i + 0.5) + size * 0.36, "font-size": size, "text-anchor": "end" }, displayText(token.text, 28))));
  }
  if (cell >= 26) {
    view.weights.forEach((_, i) => {
      const [text, fill] = said(i);
      if (text) parts.push(draw("text", {
        x: left + cell * ((i % wide) + 0.5), y: top + cell * (Math.floor(i / wide) + 0.5) + 4,
        "text-anchor": "middle", "font-size": 11.5, fill,
      }, text));
    });
  }
  const slant = named ? (0.74 * longest(view.keys.slice(-1)) * size) / 14 : 0;
  return { parts, width: left + cell * wide + slant + 24, height: top + cell * view.queries.length };
}

/** @param {View} view @param {Scale} scale @returns {SVGElement} */
export function matrixPicture(view, scale) {
  const colours = paperPalette();
  const shades = levels(view, scale);
  const { parts, width, height } = celled(view, cellPicture(view, shades, 1, colours.pixels), (i) => [view.weights[i] < BLANK ? "" : view.weights[i].toFixed(2), colours.ink[shades[i]]]);
  return frame(view, scale, width, height, parts);
}

/** @param {View} view whose weights are differences @param {number} high what has the last colour @returns {SVGElement} */
export function differencePicture(view, high) {
  const [plus, minus] = [paperPalette(), paperPalette(true)];
  const level = (/** @type {number} */ weight) => Math.min(255, Math.round((255 * Math.abs(weight || 0)) / high));
  // negative values use the levels above 255
  const shades = Uint16Array.from(view.weights, (weight) => level(weight) + (weight < 0 ? 256 : 0));
  const pixels = new Uint32Array([...plus.pixels, ...minus.pixels]);
  const said = (/** @type {number} */ i) => /** @type {[string, string]} */ ([Number.isNaN(view.weights[i]) ? "–" : view.weights[i].toFixed(2).replace("-", "−"), (view.weights[i] < 0 ? minus : plus).ink[level(view.weights[i])]]);
  const { parts, width, height } = celled(view, cellPicture(view, shades, 1, pixels), said);
  return frame(view, { kind: "linear", rows: false, threshold: 0, high }, width, height, parts, minus);
}

/** @param {View} view @param {Scale} scale @param {number} chosen @returns {SVGElement} */
export function linksPicture(view, scale, chosen) {
  const step = Math.max(view.queries.length, view.keys.length) <= 60 ? 28 : 16;
  const tall = step * Math.max(view.queries.length, view.keys.length, 1);
  const from = 32 + longest(view.queries);
  const to = from + 220;
  const at = (/** @type {number} */ i, /** @type {number} */ n) => 64 + (tall - step * n) / 2 + step * (i + 0.5);
  const colours = paperPalette();
  const size = step === 28 ? 14 : 11;
  /** @type {Node[]} */
  const parts = strongest(view, scale.threshold, chosen).map(({ row, column, weight }) => {
    const share = level(weight, view, row, scale) / 255;
    const [y, z] = [at(row, view.queries.length), at(column, view.keys.length)];
    const middle = (from + to) / 2;
    return draw("path", {
      d: `M${from} ${y}C${middle} ${y} ${middle} ${z} ${to} ${z}`, fill: "none", "stroke-linecap": "round",
      stroke: colours.css[Math.round(255 * (0.3 + 0.7 * share))], "stroke-width": (0.6 + 4.4 * share).toFixed(2),
      "stroke-opacity": chosen < 0 || chosen === row ? (0.3 + 0.7 * share).toFixed(2) : "0.1",
    });
  });
  view.queries.forEach((token, i) => parts.push(draw("text", { x: from - 10, y: at(i, view.queries.length) + size * 0.36, "font-size": size, "text-anchor": "end" }, displayText(token.text, 28))));
  view.keys.forEach((token, i) => parts.push(draw("text", { x: to + 10, y: at(i, view.keys.length) + size * 0.36, "font-size": size }, displayText(token.text, 28))));
  return frame(view, scale, to + 34 + longest(view.keys), 64 + tall, parts);
}

/** @param {View} view @param {Scale} scale @param {number} row @returns {SVGElement} */
export function textPicture(view, scale, row) {
  const colours = paperPalette();
  const from = Math.max(row, 0);
  let [x, y] = [20, 82];
  /** @type {Node[]} */
  const parts = [draw("text", { x: 20, y: 60, "font-size": 12.5, fill: QUIET }, `where ‘${displayText(view.queries[from].text)}’ looks`)];
  view.keys.forEach((token, i) => {
    const word = displayText(token.text, 28);
    const span = LETTER * Array.from(word).length + 10;
    if (x + span > 640 && x > 20) [x, y] = [20, y + 30];
    const shade = level(view.weights[from * view.keys.length + i], view, from, scale);
    parts.push(
      draw("rect", { x, y, width: span, height: 24, rx: 4, fill: colours.css[shade] }),
      draw("text", { x: x + span / 2, y: y + 16.5, "text-anchor": "middle", fill: colours.ink[shade] }, word),
    );
    x += span + 3;
  });
  return frame(view, scale, 660, y + 30, parts);
}

/** @param {SVGElement} picture @returns {string} */
export function svgText(picture) {
  return `${new XMLSerializer().serializeToString(picture)}\n`;
}

/** @param {SVGElement} picture @param {number} [scale] @returns {Promise<Blob>} */
export async function pngOf(picture, scale = 2) {
  const url = URL.createObjectURL(new Blob([svgText(picture)], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = Math.min(8000, image.width * scale);
    canvas.height = Math.min(8000, image.height * scale);
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) =>
      canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("no picture"))), "image/png"));
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** @param {Blob} blob @param {string} name save as a file */
export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

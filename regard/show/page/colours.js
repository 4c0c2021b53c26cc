// Colours of weights: luminance is monotonic, so that they can be read in greyscale too.

/** From zero to the largest weight on a white background; `regard/show/colours.py` has the same. */
export const LIGHT = ["#f6f8fc", "#dbe6f6", "#aecbec", "#78a6dc", "#427bc1", "#1f5299", "#0e2f66"];
/** The same on a dark background: brighter is more. */
export const DARK = ["#171b24", "#1b2c47", "#20457a", "#2f6bb3", "#5d9ade", "#a3cbf3", "#eef6ff"];
/** For negative values, which only attributions have. */
export const LIGHT_MINUS = ["#f6f8fc", "#fbe3d6", "#f3bd9f", "#e08f62", "#bd622f", "#8c3f12", "#552104"];
export const DARK_MINUS = ["#171b24", "#3a2418", "#67371b", "#9c5526", "#d27f44", "#f0b487", "#fff0e4"];

const darkMode = matchMedia("(prefers-color-scheme: dark)");

/** @type {Set<() => void>} */
const colourListeners = new Set();
/** @type {boolean | null} dark or light, where the page does not follow the system */
let chosenDark = null;
darkMode.addEventListener("change", announceColours);

/** @returns {boolean} whether the page is dark */
export function isDark() {
  return chosenDark ?? darkMode.matches;
}

/** @param {() => void} listener called when the page switches between light and dark mode */
export function onColourChange(listener) {
  colourListeners.add(listener);
}

/** @param {boolean | null} dark null follows the system */
export function chooseDark(dark) {
  chosenDark = dark;
  announceColours();
}

function announceColours() {
  for (const listener of colourListeners) listener();
}

/**
 * 256 colours between stops, each [red, green, blue].
 * @param {readonly string[]} stops
 * @returns {[number, number, number][]}
 */
function interpolate(stops) {
  const ends = stops.map((stop) => [1, 3, 5].map((i) => parseInt(stop.slice(i, i + 2), 16)));
  return Array.from({ length: 256 }, (_, index) => {
    const place = (index / 255) * (stops.length - 1);
    const low = Math.min(Math.floor(place), stops.length - 2);
    return /** @type {[number, number, number]} */ (
      ends[low].map((part, i) => Math.round(part + (place - low) * (ends[low + 1][i] - part)))
    );
  });
}

/** A table of 256 colours: as CSS, as pixels of an ImageData, and the ink that reads on each. */
export class Palette {
  /** @param {readonly string[]} stops */
  constructor(stops) {
    const colours = interpolate(stops);
    /** @type {string[]} */
    this.css = colours.map((colour) => `rgb(${colour.join(" ")})`);
    /** @type {string[]} */
    this.ink = colours.map((colour) => (brightness(colour) > 0.179 ? "#000000" : "#ffffff"));
    this.pixels = new Uint32Array(
      new Uint8Array(colours.flatMap(([red, green, blue]) => [red, green, blue, 255])).buffer,
    );
  }
}

/** @param {[number, number, number]} colour */
function brightness(colour) {
  const [red, green, blue] = colour.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

const palettes = {
  light: new Palette(LIGHT),
  dark: new Palette(DARK),
  lightMinus: new Palette(LIGHT_MINUS),
  darkMinus: new Palette(DARK_MINUS),
};

/** @param {boolean} [minus] @returns {Palette} the colours that fit the page as it is now */
export function palette(minus = false) {
  if (minus) return isDark() ? palettes.darkMinus : palettes.lightMinus;
  return isDark() ? palettes.dark : palettes.light;
}

/** @param {boolean} [minus] @returns {Palette} the colours on paper, for exported pictures */
export function paperPalette(minus = false) {
  return minus ? palettes.lightMinus : palettes.light;
}

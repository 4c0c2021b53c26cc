// The heads of a memory over time, as a picture: one column per step, one row per slot.

import { paperPalette, palette } from "/page/colours.js";
import { colourOf, draw } from "/page/elements.js";
import { displayText, formatWeight } from "/page/token-text.js";
import { PAPER } from "./export.js";

/** What one head did: its weights in row-major order, one row per step. @typedef {{name: string, writes: boolean, weights: Float32Array}} MemoryHead */
/**
 * What happened at every step: the symbol that came in, the symbol that went out ("" while the
 * problem was read), and the heads.
 * @typedef {{inputs: string[], outputs: string[], slots: number, shown: number, heads: MemoryHead[]}} Timeline
 */

const LEFT = 112;
const LINE = 30;
const GAP = 30;
const USED = 0.2;

/**
 * How many slots to draw: up to the last one that is the strongest of a head at some step.
 * @param {MemoryHead[]} heads @param {number} slots
 * @returns {number}
 */
export function usedSlots(heads, slots) {
  const steps = heads[0].weights.length / slots;
  const used = heads.flatMap((head) => Array.from({ length: steps }, (_, step) => strongestSlot(head, step, slots)));
  return Math.min(slots, Math.max(3, ...used.filter(([, weight]) => weight >= USED).map(([slot]) => slot + 2)));
}

/**
 * The slot that a head used most at a step, and its weight.
 * @param {MemoryHead} head @param {number} step @param {number} slots
 * @returns {[slot: number, weight: number]}
 */
export function strongestSlot(head, step, slots) {
  const line = head.weights.subarray(step * slots, (step + 1) * slots);
  const slot = line.reduce((best, weight, i) => (weight > line[best] ? i : best), 0);
  return [slot, line[slot]];
}

/**
 * The step before a given one at which a slot was written most.
 * @param {Timeline} timeline @param {number} slot @param {number} before
 * @returns {number} -1 where it had not been written
 */
export function writtenAt(timeline, slot, before) {
  let [at, most] = [-1, 0.2];
  for (const head of timeline.heads.filter((one) => one.writes)) {
    for (let step = 0; step < before; step++) {
      const weight = head.weights[step * timeline.slots + slot];
      if (weight > most) [at, most] = [step, weight];
    }
  }
  return at;
}

/**
 * @param {Timeline} timeline @param {number} chosen the selected step, -1 for none
 * @param {number} room width in pixels
 * @param {{paper?: boolean, choose?: (step: number) => void, hover?: (text: string) => void}} [options]
 * @returns {SVGElement}
 */
export function timelinePicture(timeline, chosen, room, { paper = false, choose, hover } = {}) {
  const { inputs, outputs, slots, shown, heads } = timeline;
  const colours = paper ? paperPalette() : palette();
  const colour = (/** @type {string} */ name) => (paper ? PAPER[name] : colourOf(name));
  const letters = Math.max(...[...inputs, ...outputs].map((text) => Math.min(6, text.length)));
  const wide = Math.max(13, 6 + 7 * letters, Math.min(48, (room - LEFT - 12) / inputs.length));
  const tall = Math.max(5, Math.min(14, 160 / shown));
  const width = LEFT + wide * inputs.length + 12;
  const label = (/** @type {string} */ text, /** @type {number} */ y, /** @type {string} */ under = "") => [
    draw("text", { x: 0, y, "font-size": 13, "font-weight": 600, fill: colour("--ink") }, text),
    ...(under ? [draw("text", { x: 0, y: y + 16, "font-size": 11.5, fill: colour("--quiet") }, under)] : [])];
  const symbols = (/** @type {string[]} */ all, /** @type {number} */ y) => all.map((text, step) => draw("text", {
    x: LEFT + wide * (step + 0.5), y, "text-anchor": "middle", "font-size": Math.min(15, Math.max(11, wide * 0.6)), "font-weight": step === chosen ? 700 : 500,
    fill: colour(step === chosen ? "--accent" : "--ink"),
  }, text && displayText(text, 6)));
  const parts = [...label("Input", 20), ...symbols(inputs, 20)];
  let y = LINE + 4;
  for (const head of heads) {
    parts.push(...label(head.name, y + 13, shown === slots ? `${slots} slots` : `slots 1–${shown} of ${slots}`), draw("rect", { x: LEFT, y, width: wide * inputs.length, height: tall * shown, fill: colours.css[0], stroke: colour("--line") }));
    inputs.forEach((_, step) => {
      for (let slot = 0; slot < shown; slot++) {
        const weight = head.weights[step * slots + slot];
        const level = Math.round(255 * Math.min(1, weight));
        if (level) parts.push(draw("rect", { x: LEFT + wide * step + 0.5, y: y + tall * slot + 0.5, width: wide - 1, height: Math.max(1, tall - 1), rx: 1.5, fill: colours.css[level] }));
      }
    });
    y += tall * shown + GAP - 12;
  }
  parts.push(...label("Output", y + 18), ...symbols(outputs, y + 18));
  const height = y + LINE;
  if (chosen >= 0) parts.push(draw("rect", { x: LEFT + wide * chosen, y: 1, width: wide, height: height - 4, rx: 5, fill: "none", stroke: colour("--accent"), "stroke-width": 2 }));
  const svg = draw("svg", { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}`, "font-family": "system-ui, 'Helvetica Neue', Arial, sans-serif", "aria-hidden": "true" },
    ...(paper ? [draw("rect", { width, height, fill: "#ffffff" })] : []), ...parts);
  const at = (/** @type {MouseEvent} */ event) => {
    const box = svg.getBoundingClientRect();
    const step = Math.floor((event.clientX - box.left - LEFT) / wide);
    return step >= 0 && step < inputs.length ? step : -1;
  };
  if (choose) svg.addEventListener("click", (event) => { if (at(event) >= 0) choose(at(event)); });
  if (hover) {
    svg.addEventListener("pointermove", (event) => {
      const step = at(event);
      hover(step < 0 ? "" : `step ${step + 1}: ${heads.map((head) => { const [slot, weight] = strongestSlot(head, step, slots); return `${head.name.toLowerCase()} slot ${slot + 1}, ${formatWeight(weight)}`; }).join("; ")}`);
    });
    svg.addEventListener("pointerleave", () => hover(""));
  }
  return svg;
}

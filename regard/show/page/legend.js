// <regard-legend>: the colour scale with its range, and what the numbers are.

import { palette } from "./colours.js";
import { Drawing, define, make } from "./elements.js";
import { formatWeight } from "./token-text.js";

export class LegendElement extends Drawing {
  build() {
    this.bar = make("canvas", { className: "legend-bar", width: 256, height: 1, "aria-hidden": "true" });
    this.low = make("span", { textContent: "0" });
    this.high = make("span", {});
    this.words = make("span", { className: "legend-words" });
    this.append(this.low, this.bar, this.high, this.words);
  }

  /** @param {import("./weights.js").View} view */
  render(view) {
    const { bar, high, words, low } = this;
    if (!bar || !high || !words || !low) return;
    const context = /** @type {CanvasRenderingContext2D} */ (bar.getContext("2d"));
    const image = context.createImageData(256, 1);
    new Uint32Array(image.data.buffer).set(palette().pixels);
    context.putImageData(image, 0, 0);
    const { scale } = this;
    low.textContent = scale.threshold > 0 ? `<${formatWeight(scale.threshold, 3)}` : "0";
    high.textContent = scale.rows ? "row maximum" : formatWeight(scale.high ?? view.largest);
    const curve = scale.kind === "linear" ? "" : scale.kind === "sqrt" ? " · square root" : " · logarithmic";
    const dots = view.marks.length ? " · dots: aligned words" : "";
    words.textContent = `${view.sums}${curve}${dots}`;
  }
}

define("regard-legend", LegendElement);

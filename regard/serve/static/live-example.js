// <rg-live-example>: one trace as two lines of words. The pointer, or the focus, on a word lights up the
// words that it looked at, or those that looked at it.

import { onColourChange, palette } from "/page/colours.js";
import { define, make } from "/page/elements.js";
import { displayText, formatWeight, hasSpaceBefore } from "/page/token-text.js";

/** @typedef {import("/page/weights.js").View} View */

export class LiveExampleElement extends HTMLElement {
  /** @type {View | null} */
  view = null;
  /** @type {HTMLElement[]} */
  #queries = [];
  /** @type {HTMLElement[]} */
  #keys = [];
  #place = { line: "query", index: 0 };
  #status = make("p", { className: "rg-live-status", "aria-live": "polite" });

  /** @param {View} view @param {[string, string]} names what each line is */
  show(view, names) {
    this.view = view;
    const words = (/** @type {"query" | "key"} */ line) => {
      const tokens = line === "query" ? view.queries : view.keys;
      return tokens.map((token, index) => make("button", {
        type: "button", className: `rg-live-word${token.special ? " special" : ""}`, textContent: displayText(token.text),
        "data-space": hasSpaceBefore(tokens, index) ? "yes" : "no",
        on: { pointerenter: () => this.light(line, index), focus: () => this.light(line, index), click: () => this.light(line, index) },
      }));
    };
    this.#queries = words("query");
    this.#keys = words("key");
    this.replaceChildren(
      make("div", { className: "rg-live-line", role: "group", "aria-label": names[1] }, make("span", { className: "over", textContent: names[1] }), make("p", { dir: "auto" }, ...this.#keys)),
      make("div", { className: "rg-live-line", role: "group", "aria-label": names[0] }, make("span", { className: "over", textContent: names[0] }), make("p", { dir: "auto" }, ...this.#queries)),
      this.#status);
    onColourChange(() => this.#draw());
    this.light("query", firstWord(view));
  }

  /** @param {string} line @param {number} index */
  light(line, index) {
    this.#place = { line, index };
    this.#draw();
  }

  #draw() {
    const { view } = this;
    if (!view) return;
    const { line, index } = this.#place;
    const wide = view.keys.length;
    const [own, others] = line === "query" ? [this.#queries, this.#keys] : [this.#keys, this.#queries];
    const weights = others.map((_, i) => (line === "query" ? view.weights[index * wide + i] : view.weights[i * wide + index]));
    const most = Math.max(...weights, 1e-9);
    const { css, ink } = palette();
    others.forEach((word, i) => {
      const level = Math.round((255 * Math.max(0, weights[i])) / most);
      word.style.background = css[level];
      word.style.color = ink[level];
      word.classList.remove("chosen");
    });
    own.forEach((word, i) => {
      word.style.background = "";
      word.style.color = "";
      word.classList.toggle("chosen", i === index);
    });
    const best = weights.indexOf(Math.max(...weights));
    const name = (/** @type {HTMLElement | undefined} */ word) => `‘${word?.textContent ?? ""}’`;
    this.#status.textContent = line === "query"
      ? `For ${name(own[index])} the model looked most at ${name(others[best])}: ${formatWeight(weights[best])} of its attention.`
      : `${name(own[index])} was looked at most for ${name(others[best])}: ${formatWeight(weights[best])} of its attention.`;
  }
}

/** @param {View} view @returns {number} a query whose attention is sharp, and that is a word of some length */
function firstWord(view) {
  const wide = view.keys.length;
  let [best, found] = [-1, 0];
  view.queries.forEach((token, row) => {
    if (token.special || token.text.trim().length < 3) return;
    const weight = Math.max(...view.weights.subarray(row * wide, (row + 1) * wide));
    if (weight > best) [best, found] = [weight, row];
  });
  return found;
}

define("rg-live-example", LiveExampleElement);

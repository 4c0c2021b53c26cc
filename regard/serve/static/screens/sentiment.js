// <rg-screen-sentiment>: words shaded and underlined by weight, the class probabilities, and how both
// change when a word is deleted or replaced.

import { palette } from "/page/colours.js";
import { Drawing, define, make } from "/page/elements.js";
import "/page/matrix.js";
import { level, rowLargest } from "/page/colour-scale.js";
import { formatWeight, displayText, hasSpaceBefore } from "/page/token-text.js";
import { mergeTokens, unitsOf } from "/page/units.js";
import { TraceScreen } from "../trace-screen.js";

/** @typedef {import("/page/weights.js").TraceDocument} TraceDocument */
/** @typedef {import("/page/weights.js").View} View */

/** <rg-verdict>: words shaded and underlined by the weight that the selected row gives them. */
class VerdictElement extends Drawing {
  /** @param {View} view */
  render(view) {
    const { row, column } = this.selection;
    const from = Math.max(0, row);
    const most = rowLargest(view, from) || 1;
    const colours = palette();
    const hadFocus = document.activeElement && this.contains(document.activeElement);
    this.nodes = view.keys.map((token, i) => {
      const weight = view.weights[from * view.keys.length + i];
      const shade = level(weight, view, from, this.scale);
      const node = make("button", {
        type: "button", className: "rg-verdict-word", textContent: displayText(token.text), title: formatWeight(weight, 3),
        "aria-pressed": String(i === column), "aria-label": `${displayText(token.text)}, ${formatWeight(weight)}`, tabIndex: i === Math.max(0, column) ? 0 : -1,
        on: { click: () => this.choose(from, i), pointerenter: () => this.hover(from, i), pointerleave: () => this.hover(-1, -1) },
      });
      node.style.backgroundColor = colours.css[shade];
      node.style.color = colours.ink[shade];
      node.style.borderBottomColor = weight >= this.scale.threshold ? `color-mix(in srgb, var(--accent) ${Math.round((100 * weight) / most)}%, transparent)` : "";
      return node;
    });
    const words = this.nodes;
    this.replaceChildren(make("div", {
      className: "rg-text", dir: "auto", role: "group", "aria-label": "Words by weight",
      on: { keydown: (/** @type {KeyboardEvent} */ event) => this.#key(event) },
    }, ...words.flatMap((node, i) => (hasSpaceBefore(view.keys, i) ? [" ", node] : [node]))));
    if (hadFocus) words[Math.max(0, column)]?.focus();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const rtl = getComputedStyle(/** @type {Element} */ (event.currentTarget)).direction === "rtl" ? -1 : 1;
    const at = this.selection.column;
    const last = (this.view?.keys.length ?? 1) - 1;
    const to = { ArrowRight: at + rtl, ArrowLeft: at - rtl, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.choose(Math.max(0, this.selection.row), Math.min(last, Math.max(0, to)));
  }
}

define("rg-verdict", VerdictElement);

class SentimentScreen extends TraceScreen {
  classes = make("section", { "aria-label": "Classes" });
  was = make("div", { className: "rg-before", hidden: true });
  word = make("input", { type: "text", maxLength: 100, dir: "auto", "aria-label": "Replacement", placeholder: "another word" });
  name = make("strong", { dir: "auto" });
  queries = make("div", { className: "tabs", role: "group", "aria-label": "Query", hidden: true });
  nearest = make("section", { "aria-label": "Nearest words", hidden: true });
  key = make("p", { className: "hint rg-underline-key" }, make("span", { className: "rg-underline-sample", "aria-hidden": "true" }), "Shading shows the weight on the scale below; the underline shows it relative to the strongest word of this query.");
  /** @type {Map<string, Promise<{queries: {word: string, degrees: number}[][]}>>} */
  #near = new Map();

  /** @returns {import("../trace-panel.js").DrawingOptions} */
  drawingOptions() {
    return {
      shapes: [["words", "Words", "rg-verdict"], ["matrix", "Matrix", "regard-matrix"]],
      fits: (look) => look.key_side === "text",
      first: ["pooling"],
      aggregate: "mean",
      renamed: (view) => (view.querySide === "queries" && view.queries.length === 1 ? { ...view, queries: [{ text: "prediction" }] } : view),
      none: "This model pools its words without attention.",
      drawn: (view, selection) => this.#chose(view, selection),
    };
  }

  build() {
    this.input.action = "Classify";
    this.input.void = { row: undefined, column: undefined, was: undefined };
    super.build();
    const change = () => { if (this.word.value.trim()) this.#edit(this.word.value.trim()); };
    this.edit = make("form", { className: "rg-edit", on: { submit: (/** @type {Event} */ event) => { event.preventDefault(); change(); } } },
      make("span", {}, "Replace ", this.name, " with"), this.word,
      make("button", { type: "submit", className: "rg-button", textContent: "Replace" }),
      make("button", { type: "button", className: "rg-button", textContent: "Delete word", on: { click: () => this.#edit("") } }));
    this.tracePanel.inside.append(this.key, this.edit, this.was);
    this.tracePanel.head?.after(this.queries);
    this.tracePanel.wordPanel?.prepend(this.classes);
    this.tracePanel.side.append(this.nearest);
    this.word.addEventListener("input", () => { this.word.setCustomValidity(""); });
  }

  keys() {
    const remove = () => { if (document.activeElement?.closest("rg-verdict")) this.#edit(""); };
    return { ...super.keys(), Delete: remove, Backspace: remove };
  }

  /** @param {View} view @param {{row: number, column: number}} selection */
  #chose(view, selection) {
    this.name.textContent = `‘${displayText(view.keys[selection.column]?.text ?? "", 24)}’`;
    this.key.hidden = this.tracePanel.shape !== "words";
    this.queries.hidden = view.querySide !== "queries" || view.queries.length < 2;
    if (this.queries.childElementCount !== view.queries.length) {
      this.queries.replaceChildren(...view.queries.map((query, i) => make("button", { type: "button", textContent: displayText(query.text, 24), on: { click: () => this.tracePanel.select({ row: i, column: -1 }) } })));
    }
    [...this.queries.children].forEach((button, i) => button.setAttribute("aria-pressed", String(i === selection.row)));
    void this.#nearestWords(view, selection.row);
  }

  /** @param {View} view @param {number} row the words that a learned query is nearest to, in any text */
  async #nearestWords(view, row) {
    const { model, api } = this.context;
    this.nearest.hidden = true;
    if (!model || view.querySide !== "queries" || !/^query \d+$/.test(this.trace?.sides.queries?.tokens[0]?.text ?? "")) return;
    const wanted = this.#near.get(model.id) ?? api.json(`/v1/models/${encodeURIComponent(model.id)}/words`).catch(() => ({ queries: [] }));
    this.#near.set(model.id, wanted);
    const words = (await wanted).queries[row] ?? [];
    if (this.tracePanel.view !== view || this.tracePanel.selection.row !== row || !words.length) return;
    this.nearest.hidden = false;
    this.nearest.replaceChildren(make("h2", {}, "Nearest words ", make("span", { className: "over", textContent: "angle to the learned query" })),
      make("ul", { className: "rg-near" }, ...words.map((/** @type {{word: string, degrees: number}} */ { word, degrees }) => make("li", {}, make("bdi", { textContent: displayText(word, 20) }), make("span", { textContent: `${Math.round(degrees)}°` })))));
  }

  /** @param {string} instead of the selected word; empty deletes it */
  #edit(instead) {
    const { view, selection } = this.tracePanel;
    const token = view?.keys[selection.column];
    const text = this.trace?.sides.text?.text ?? "";
    if (!token || token.start === undefined || token.end === undefined) return;
    const letters = Array.from(text);
    const before = letters.slice(0, token.start).join("");
    const after = letters.slice(token.end).join("");
    const made = (instead ? `${before}${instead}${after}` : `${before.trimEnd()} ${after.trimStart()}`).trim();
    if (!made) return this.context.say("At least one word must remain.");
    this.word.value = "";
    this.context.setState({ text: made, was: this.context.state.was ?? this.input.text, column: undefined }, { push: true });
  }

  /** @param {TraceDocument} trace */
  async traceChanged(trace) {
    const { context } = this;
    const { was } = context.state;
    const first = was && context.model ? await context.api.explain(context.model.id, { text: was }) : null;
    if (trace !== this.trace) return;
    this.#classes(trace, first);
    this.was.hidden = !first;
    if (!first) return;
    const look = first.looks.find((one) => one.name === "pooling");
    const words = /** @type {import("/page/text-shading.js").StripElement} */ (document.createElement("regard-strip"));
    const weights = Array.isArray(look?.weights) ? look.weights[0] : [];
    const tokens = first.sides.text?.tokens ?? [];
    const units = unitsOf(tokens, context.state.unit === "words" ? "words" : "tokens");
    words.show(mergeTokens(tokens, units), units.map((unit) => unit.reduce((sum, i) => sum + (weights[i] ?? 0), 0)), `Before: ${first.output}`);
    this.was.replaceChildren(words, make("div", {}, make("button", {
      type: "button", className: "rg-button", textContent: "Restore original", on: { click: () => context.setState({ text: was, was: undefined, column: undefined }, { push: true }) },
    })));
  }

  /** @param {TraceDocument} trace @param {TraceDocument | null} first */
  #classes(trace, first) {
    const chances = /** @type {[string, number][]} */ (Object.entries(trace.prediction?.probabilities ?? {}));
    const before = /** @type {Record<string, number>} */ (first?.prediction?.probabilities ?? {});
    const most = Math.max(...chances.map(([, chance]) => chance));
    this.classes.replaceChildren(make("h2", { textContent: "Prediction" }), make("ul", { className: "rg-classes" }, ...chances
      .sort((a, b) => b[1] - a[1]).slice(0, 10).map(([label, chance]) => {
        const fill = make("span", { className: "bar-fill" });
        fill.style.width = `${100 * chance}%`;
        const track = make("span", { className: "bar-track", "aria-hidden": "true" }, fill);
        const old = first ? before[label] ?? 0 : null;
        if (old !== null) {
          const mark = make("span", { className: "rg-was" });
          mark.style.left = `calc(${100 * old}% - 1.5px)`;
          track.append(mark);
        }
        return make("li", { className: `rg-class${chance === most ? " best" : ""}` },
          make("bdi", { textContent: displayText(label, 40) }),
          make("span", {}, formatWeight(chance), old === null ? null : make("span", { className: "rg-change", textContent: `  was ${formatWeight(old)}` })), track);
      })));
    this.context.say(`${trace.output}${most > 0 ? `, ${formatWeight(most)}` : ""}`);
  }
}

define("rg-screen-sentiment", SentimentScreen);

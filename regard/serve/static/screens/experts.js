// <rg-screen-experts>: which expert of a mixture sees which word: the gates of every word, and the words of
// every expert.

import { Drawing, define, make } from "/page/elements.js";
import "/page/matrix.js";
import { outputOf } from "/page/trace-summary.js";
import { displayText, formatWeight, hasSpaceBefore } from "/page/token-text.js";
import { TraceScreen } from "../trace-screen.js";
import "./stylesheet.js";

/** @typedef {import("/page/weights.js").TraceDocument} TraceDocument */
/** @typedef {import("/page/weights.js").View} View */

const COLOURS = 8;
const WORDS = 24;

/** @param {number} expert @returns {string} */
function colourOfExpert(expert) { return `var(--expert-${expert % COLOURS})`; }

/** @param {View} view @param {number} row @returns {number} the expert with the largest gate */
function firstExpert(view, row) {
  const wide = view.keys.length;
  let best = 0;
  for (let i = 1; i < wide; i++) if (view.weights[row * wide + i] > view.weights[row * wide + best]) best = i;
  return best;
}

/** <rg-routed>: the text; below each word a bar of its gates, and the number of its first expert. */
class RoutedElement extends Drawing {
  /** @param {View} view */
  render(view) {
    const hadFocus = document.activeElement && this.contains(document.activeElement);
    const wide = view.keys.length;
    const nodes = view.queries.map((token, row) => {
      const first = firstExpert(view, row);
      const bar = make("span", { className: "rg-gates", "aria-hidden": "true" }, ...view.keys.map((_, i) => {
        const part = make("i", {});
        part.style.flexGrow = String(Math.max(0, view.weights[row * wide + i]));
        part.style.background = colourOfExpert(i);
        return part;
      }));
      return make("button", {
        type: "button", className: "rg-routed-word", "aria-pressed": String(row === this.selection.row), tabIndex: row === Math.max(0, this.selection.row) ? 0 : -1,
        on: { click: () => this.choose(row, -1), pointerenter: () => this.hover(row, first), pointerleave: () => this.hover(-1, -1) },
      }, make("span", { textContent: displayText(token.text) }), bar, make("span", { className: "rg-gate-number", textContent: String(first + 1), "aria-hidden": "true" }),
      make("span", { className: "rg-said", textContent: `: ${displayText(view.keys[first].text)}, ${formatWeight(view.weights[row * wide + first])}` }));
    });
    this.replaceChildren(make("div", {
      className: "rg-text rg-routed", dir: "auto", role: "group", "aria-label": "Words by expert",
      on: { keydown: (/** @type {KeyboardEvent} */ event) => this.#key(event) },
    }, ...nodes.flatMap((node, i) => (hasSpaceBefore(view.queries, i) ? [" ", node] : [node]))));
    if (hadFocus) nodes[Math.max(0, this.selection.row)]?.focus();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const rtl = getComputedStyle(/** @type {Element} */ (event.currentTarget)).direction === "rtl" ? -1 : 1;
    const at = this.selection.row;
    const last = (this.view?.queries.length ?? 1) - 1;
    const to = { ArrowRight: at + rtl, ArrowLeft: at - rtl, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.choose(Math.min(last, Math.max(0, to)), -1);
  }
}

define("rg-routed", RoutedElement);

class ExpertsScreen extends TraceScreen {
  output = make("div", { className: "rg-output" });
  experts = make("section", { "aria-label": "Experts" });

  /** @returns {import("../trace-panel.js").DrawingOptions} */
  drawingOptions() {
    return {
      shapes: [["words", "Words", "rg-routed"], ["matrix", "Matrix", "regard-matrix"]],
      fits: (look) => look.name.endsWith("experts"),
      alternatives: false,
      firstRow: (view) => Math.max(0, view.queries.findIndex((token) => !token.special)),
      none: "This model is not a mixture of experts. Choose one that is, or train a transformer with experts and serve it:",
      commands: "regard train tag --encoder transformer --experts 4 --out runs/experts\nregard serve runs/experts",
      drawn: (view, selection) => this.#drawn(view, selection.row),
    };
  }

  build() {
    const { context } = this;
    if (!context.state.model) {
      const fits = context.models.find((model) => model.ready && model.looks.some((name) => name.endsWith("experts")));
      if (fits) context.setState({ model: fits.id }, { quiet: true });
    }
    super.build();
    this.tracePanel.before(this.output);
    this.tracePanel.below.append(this.experts);
  }

  /** @param {TraceDocument} trace */
  traceChanged(trace) {
    this.output.replaceChildren(...outputOf(trace, new Set([this.input.text])));
    this.output.hidden = !this.output.childElementCount;
    this.experts.hidden = !this.tracePanel.view;
  }

  /** @param {View} view @param {number} row */
  #drawn(view, row) {
    const [tall, wide] = [view.queries.length, view.keys.length];
    const first = view.queries.map((_, i) => firstExpert(view, i));
    const cards = view.keys.map((expert, i) => {
      const load = view.queries.reduce((sum, _, word) => sum + view.weights[word * wide + i], 0) / Math.max(1, tall);
      const words = first.flatMap((chosen, word) => (chosen === i ? [word] : [])).sort((a, b) => view.weights[b * wide + i] - view.weights[a * wide + i]);
      const mark = make("i", { className: "rg-swatch" });
      const fill = make("span", { className: "bar-fill" });
      mark.style.background = fill.style.background = colourOfExpert(i);
      fill.style.width = `${Math.max(1, 100 * load)}%`;
      return make("li", { className: first[row] === i ? "now" : "" },
        make("h3", {}, mark, displayText(expert.text), make("span", { textContent: `${Math.round(100 * load)} %` })),
        make("span", { className: "bar-track", "aria-hidden": "true" }, fill),
        make("p", { dir: "auto" }, words.length ? words.slice(0, WORDS).map((word) => displayText(view.queries[word].text, 20)).join("  ") : "top expert for no word here"));
    });
    this.experts.replaceChildren(
      make("h2", {}, "What each expert sees ", make("span", { className: "over", textContent: "its share of all gate weights, and the words that it is the first choice for" })),
      make("ul", { className: "rg-expert-list" }, ...cards));
    const weight = view.weights[row * wide + first[row]];
    if (row >= 0 && row < tall) this.context.say(`‘${displayText(view.queries[row].text)}’ goes to ${displayText(view.keys[first[row]].text)}, gate ${formatWeight(weight)}`);
  }
}

define("rg-screen-experts", ExpertsScreen);

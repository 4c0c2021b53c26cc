// <rg-screen-translation>: target words in rows, source words in columns; the beam; constrained attention.

import { define, make } from "/page/elements.js";
import "/page/links.js";
import "/page/matrix.js";
import "/page/text-shading.js";
import { formatWeight, displayText, hasSpaceBefore } from "/page/token-text.js";
import { alignmentLinks, wordChanges, pinsOf, pinsText } from "../word-pairs.js";
import { renameSpecial } from "../special-tokens.js";
import { beamTree, formatScore } from "../beam-tree.js";
import { TraceScreen } from "../trace-screen.js";

/** @typedef {import("/page/weights.js").TraceDocument} TraceDocument */
/** @typedef {import("/page/weights.js").View} View */
/** @typedef {import("/page/token-text.js").Token} Token */

const BEAM = 5;

class TranslationScreen extends TraceScreen {
  output = make("div", { className: "rg-output" });
  force = make("details", { className: "rg-box rg-force" });
  beam = make("section", { className: "rg-beam" });
  /** @type {Set<number>} source tokens that are ticked, for the row that is selected */
  #ticked = new Set();
  #row = -1;

  /** @returns {import("../trace-panel.js").DrawingOptions} */
  drawingOptions() {
    return {
      shapes: [["matrix", "Matrix", "regard-matrix"], ["links", "Links", "regard-links"], ["text", "Text", "regard-text"]],
      fits: (look) => look.query_side === "target" && look.key_side === "source",
      first: ["source", "decoder.source"],
      aggregate: "mean",
      hideSpecials: true,
      renamed: withEndInWords,
      none: "This model has no attention to the source.",
      more: [["Pharaoh", "txt", () => this.#pharaoh()]],
      drawn: (view, selection) => this.#chose(view, selection),
    };
  }

  build() {
    this.input.label = "Source text";
    this.input.action = "Translate";
    this.input.void = { row: undefined, column: undefined, pins: undefined };
    super.build();
    this.tracePanel.before(this.output);
    this.tracePanel.side.append(this.force);
    this.tracePanel.below.append(this.beam);
    this.force.addEventListener("toggle", () => this.context.setState({ force: this.force.open }, { quiet: true }));
  }

  /** @param {string} text */
  body(text) {
    const pins = pinsOf(this.context.state.pins);
    return { text, beam: BEAM, nbest: BEAM, ...(Object.keys(pins).length ? { pins } : {}) };
  }

  /** @param {TraceDocument} trace */
  async traceChanged(trace) {
    this.output.hidden = this.tracePanel.hidden;
    this.#beam(trace);
    const { context } = this;
    if (!context.state.pins || !context.model) return this.#output(trace, null);
    const free = await context.api.explain(context.model.id, { text: this.input.text, beam: BEAM, nbest: BEAM });
    if (trace === this.trace) this.#output(trace, free);
  }

  /** @param {TraceDocument} trace @param {TraceDocument | null} free the same without pins */
  #output(trace, free) {
    const hidden = this.context.state.specials !== "show";
    const tokens = (trace.sides.target?.tokens ?? []).filter((token) => !(hidden && token.special)).map(inWords);
    const before = (free?.sides.target.tokens ?? []).filter((token) => !(hidden && token.special)).map(inWords);
    const was = free ? wordChanges(before, tokens) : null;
    this.#words = tokens.map((token, i) => make("button", {
      type: "button", className: `rg-word${was?.made[i] ? " made" : ""}${token.special ? " special" : ""}`, textContent: displayText(token.text), tabIndex: -1, "aria-pressed": "false", title: token.special ? END_TITLE : undefined,
      on: { click: () => this.tracePanel.view && this.tracePanel.select({ row: this.tracePanel.view.rows.indexOf(i), column: -1 }) },
    }));
    const line = make("div", { className: "rg-line", dir: "auto", role: "group", "aria-label": "Translation", on: { keydown: (/** @type {KeyboardEvent} */ event) => this.#walk(event) } },
      ...this.#words.flatMap((node, i) => (hasSpaceBefore(tokens, i) ? [" ", node] : [node])));
    const parts = [make("h2", { className: "over", textContent: free ? "Constrained translation" : "Translation" }), line];
    if (free && was) {
      const chance = (/** @type {TraceDocument} */ one) => Number(one.prediction?.log_probability ?? 0).toFixed(2);
      parts.push(
        make("h2", { className: "over", textContent: "Translation without constraints" }),
        make("div", { className: "rg-line small", dir: "auto" }, ...before.flatMap((token, i) => {
          const node = make(was.gone[i] ? "del" : "span", { textContent: displayText(token.text), className: token.special ? "special" : "" });
          return hasSpaceBefore(before, i) ? [" ", node] : [node];
        })),
        make("p", { className: "hint" }, `log-probability ${chance(free)} without constraints, ${chance(trace)} with them.  `,
          make("button", { type: "button", className: "rg-button", textContent: "Remove constraints", on: { click: () => this.context.setState({ pins: undefined }, { push: true }) } })));
    }
    this.output.replaceChildren(...parts);
    this.#mark();
  }

  /** @type {HTMLButtonElement[]} */
  #words = [];

  /** @param {KeyboardEvent} event */
  #walk(event) {
    const at = this.#words.findIndex((word) => word === event.target);
    const rtl = getComputedStyle(/** @type {Element} */ (event.currentTarget)).direction === "rtl" ? -1 : 1;
    const to = { ArrowRight: at + rtl, ArrowLeft: at - rtl, Home: 0, End: this.#words.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = this.#words[Math.min(this.#words.length - 1, Math.max(0, to))];
    next.focus();
    next.click();
  }

  #mark() {
    const { view, selection } = this.tracePanel;
    const row = view ? view.rows[selection.row] : -1;
    this.#words.forEach((word, i) => {
      word.setAttribute("aria-pressed", String(i === row));
      word.tabIndex = i === Math.max(0, row ?? 0) ? 0 : -1;
    });
  }

  /** @param {View} view @param {{row: number, column: number}} selection */
  #chose(view, selection) {
    this.#mark();
    const row = view.rows[selection.row];
    const pins = pinsOf(this.context.state.pins);
    if (row !== this.#row) {
      this.#row = row;
      this.#ticked = new Set(pins[row] ?? []);
    }
    const source = this.trace?.sides.source.tokens ?? [];
    const again = make("button", {
      type: "button", className: "rg-button primary", textContent: "Translate again", disabled: !this.#ticked.size,
      on: { click: () => this.context.setState({ pins: pinsText({ ...pins, [row]: [...this.#ticked].sort((a, b) => a - b) }), row, column: undefined }, { push: true }) },
    });
    const chips = source.map((token, i) => {
      const chip = make("button", {
        type: "button", className: "rg-chip", textContent: displayText(token.text, 20), "aria-pressed": String(this.#ticked.has(i)),
        on: {
          click: () => {
            if (!this.#ticked.delete(i)) this.#ticked.add(i);
            chip.setAttribute("aria-pressed", String(this.#ticked.has(i)));
            again.disabled = !this.#ticked.size;
          },
        },
      });
      return chip;
    });
    this.force.open = this.context.state.force === "1" || this.force.open;
    this.force.replaceChildren(
      make("summary", { textContent: "Constrain attention" }),
      make("p", { className: "hint" }, "For output word ", make("strong", { textContent: String(row + 1) }), ", allow these source words only:"),
      make("div", { className: "rg-examples", role: "group", "aria-label": "Allowed source words", dir: "auto" }, ...chips), again);
  }

  /** @param {TraceDocument} trace */
  #beam(trace) {
    const nbest = /** @type {import("../beam-tree.js").Candidate[]} */ ([...(trace.prediction?.nbest ?? [])]).sort((a, b) => b.score - a.score);
    this.beam.hidden = nbest.length < 2;
    if (this.beam.hidden) return;
    const tree = beamTree(nbest);
    const best = nbest[0].score;
    this.beam.replaceChildren(
      make("h2", { textContent: "Beam search" }),
      make("p", { className: "hint", textContent: `The search kept the ${nbest.length} best translations, and the one with the highest score was chosen. The score is the mean log-probability of its tokens: 0 would be certain. On branches, the probability of their words.` }),
      ...(tree ? [make("div", { className: "rg-tree-frame", tabIndex: 0, role: "region", "aria-label": "Beam search as a tree" }, tree)] : []),
      make("h3", { className: "over", textContent: "Alternatives, by score" }),
      make("ol", { className: "rg-nbest", start: 2 }, ...nbest.slice(1).map((one) => {
        const fill = make("span", { className: "bar-fill" });
        fill.style.width = `${Math.max(1, 100 * Math.exp(one.score - best))}%`;
        return make("li", { title: `probability ${formatWeight(Math.exp(one.log_probability), 3)}` }, make("bdi", { textContent: displayText(one.output, 200) }),
          make("span", { className: "bar-track", "aria-hidden": "true" }, fill),
          make("span", { className: "bar-number", textContent: formatScore(one.score) }));
      })));
  }

  #pharaoh() {
    const { trace } = this;
    const { view } = this.tracePanel;
    if (!trace || !view) return null;
    const links = trace.alignment?.length ? trace.alignment : alignmentLinks(view);
    return new Blob([`${links.map((pair) => pair.join("-")).join(" ")}\n`], { type: "text/plain" });
  }
}

const END_TITLE = "end of the translation: here the model stopped";

/** @param {Token} token @returns {Token} */
function inWords(token) { return renameSpecial(token, "(end)"); }

/** @param {View} view @returns {View} */
function withEndInWords(view) { return { ...view, queries: view.queries.map(inWords) }; }

define("rg-screen-translation", TranslationScreen);

// <rg-screen-language>: a text and one position in it: what the model looked back at, what it expected
// next, and the surprisal.

import { palette } from "/page/colours.js";
import { Drawing, define, make } from "/page/elements.js";
import "/page/matrix.js";
import { level } from "/page/colour-scale.js";
import { formatWeight, displayText, hasSpaceBefore } from "/page/token-text.js";
import { mergeTokens, unitsOf } from "/page/units.js";
import { errorMessage } from "../controls.js";
import { blankView } from "../look-selection.js";
import { renameSpecial } from "../special-tokens.js";
import { TraceScreen } from "../trace-screen.js";

/** @typedef {import("/page/weights.js").TraceDocument} TraceDocument */
/** @typedef {import("/page/weights.js").View} View */

/** <rg-history>: the text as it is written; what stands before the selected word is shaded. */
class HistoryElement extends Drawing {
  /** @type {HTMLElement[]} */
  #nodes = [];
  /** @type {import("/page/token-text.js").Token[] | null} */
  #laid = null;

  /** @param {View} view */
  render(view) {
    if (this.#laid !== view.queries) this.#lay(view);
    const { row, column } = this.selection;
    const colours = palette();
    const wide = view.keys.length;
    this.#nodes.forEach((node, i) => {
      const at = view.rows[i] ?? -1;
      // keys begin with a start token, so the key of word i stands at i + 1
      const key = view.columns.indexOf(at + 1);
      const before = at < view.rows[row];
      const weight = before && key >= 0 ? view.weights[row * wide + key] : 0;
      const shade = before ? level(weight, view, row, this.scale) : 0;
      node.style.backgroundColor = before ? colours.css[shade] : "";
      node.style.color = before ? colours.ink[shade] : "";
      node.title = before ? `${displayText(view.queries[i].text)} ${formatWeight(weight, 3)}` : "";
      node.classList.toggle("now", i === row);
      node.classList.toggle("later", at > view.rows[row]);
      node.classList.toggle("aimed", before && key === column);
    });
    const first = view.columns.indexOf(0);
    if (this.start) {
      this.start.hidden = first < 0;
      const weight = first < 0 ? 0 : view.weights[row * wide + first];
      const shade = level(weight, view, row, this.scale);
      this.start.style.backgroundColor = colours.css[shade];
      this.start.style.color = colours.ink[shade];
      this.start.title = `(start) ${formatWeight(weight, 3)}`;
      this.start.classList.toggle("aimed", first >= 0 && first === column);
    }
  }

  /** @param {View} view */
  #lay(view) {
    this.#laid = view.queries;
    this.start = make("span", { className: "rg-token special", textContent: "(start)" });
    this.#nodes = view.queries.map((token, row) => make("span", {
      className: `rg-token${token.special ? " special" : ""}`, textContent: displayText(token.text),
      on: { click: () => this.choose(row, -1) },
    }));
    this.replaceChildren(make("div", { className: "rg-text", dir: "auto" }, this.start,
      ...this.#nodes.flatMap((node, i) => (i === 0 || hasSpaceBefore(view.queries, i) ? [" ", node] : [make("wbr"), node]))));
  }
}

define("rg-history", HistoryElement);

class LanguageScreen extends TraceScreen {
  strip = make("div", { className: "rg-strip", tabIndex: 0, role: "slider", "aria-label": "Position in the text", dir: "ltr" });
  total = make("span", { className: "hint" });
  count = make("input", { type: "number", min: "1", max: "200", value: "20" });
  heat = make("input", { type: "number", min: "0", max: "2", step: "0.1", value: "0.7" });
  go = make("button", { type: "button", className: "rg-button primary", textContent: "Continue", on: { click: () => void this.#continue() } });
  /** @type {AbortController | null} */
  #writing = null;

  /** @returns {import("../trace-panel.js").DrawingOptions} */
  drawingOptions() {
    return {
      shapes: [["text", "Text", "rg-history"], ["matrix", "Matrix", "regard-matrix"]],
      fits: (look) => look.query_side === "next" && look.key_side === "text",
      first: ["past", "decoder.self"],
      aggregate: "mean",
      rows: true,
      // the last word that was read: what comes after the text is not known yet
      firstRow: (view) => { const last = view.queries.findLastIndex((token) => !token.special && /\p{L}/u.test(token.text)); return last < 0 ? view.queries.length - 1 : last; },
      renamed: (view) => ({ ...view, keys: view.keys.map((token, i) => (i === 0 ? renameSpecial(token, "(start)") : token)), queries: view.queries.map((token) => renameSpecial(token, "(end)")) }),
      none: "This model has no attention: its only memory is its hidden state.",
      blank: (trace) => blankView(trace, "next", "text"),
      drawn: (view, selection) => this.#mark(view.rows[selection.row]),
    };
  }

  build() {
    super.build();
    this.tracePanel.inside.append(
      make("section", { "aria-label": "Surprisal" },
        make("div", { className: "rg-row" }, make("h2", {}, "Surprisal"), this.total), this.strip),
      make("section", { className: "rg-row rg-write", "aria-label": "Continue the text" },
        make("h2", { textContent: "Continue the text" }),
        make("label", { className: "field" }, make("span", { textContent: "Tokens" }), this.count),
        make("label", { className: "field" }, make("span", { textContent: "Temperature" }), this.heat), this.go));
    const at = (/** @type {PointerEvent} */ event) => {
      const bars = [...this.strip.children];
      const found = bars.findIndex((bar) => bar.getBoundingClientRect().right >= event.clientX);
      this.#go(this.#units[found < 0 ? bars.length - 1 : found]?.from ?? 0);
    };
    this.strip.addEventListener("pointerdown", (event) => { this.strip.setPointerCapture(event.pointerId); at(event); });
    this.strip.addEventListener("pointermove", (event) => { if (event.buttons) at(event); });
  }

  keys() {
    return {
      ...super.keys(),
      ArrowLeft: () => this.#move(-1), ArrowRight: () => this.#move(1),
      Home: () => this.#go(0), End: () => this.#go(Infinity),
    };
  }

  #at = 0;

  /** @param {number} position of the text, in tokens */
  #go(position) {
    const { tracePanel, trace } = this;
    const last = (trace?.sides.next?.tokens.length ?? 1) - 1;
    const at = Math.min(last, Math.max(0, position));
    if (tracePanel.view) {
      let row = tracePanel.view.rows.indexOf(at);
      if (row < 0) row = tracePanel.view.rows.length - 1;
      tracePanel.select({ row, column: -1 });
    } else {
      this.context.setState({ row: at }, { quiet: true });
      this.#mark(at);
      this.context.say(this.strip.getAttribute("aria-valuetext") ?? "");
    }
  }

  /** @type {{text: string, from: number, to: number, bits: number}[]} the units of the strip, with the tokens that each is made of */
  #units = [];

  /** @param {TraceDocument} trace */
  traceChanged(trace) {
    const each = /** @type {number[]} */ (trace.prediction?.token_log_probabilities ?? []);
    const words = this.context.state.unit === "words";
    const tokens = (trace.sides.next?.tokens ?? []).slice(0, each.length);
    const units = unitsOf(tokens, words ? "words" : "tokens");
    // the surprisal of a word is the sum over its pieces
    this.#units = mergeTokens(tokens, units).map((token, i) => ({ text: token.text, from: units[i][0], to: units[i][units[i].length - 1], bits: units[i].reduce((sum, at) => sum - each[at] / Math.LN2, 0) }));
    const bits = this.#units.map((unit) => unit.bits);
    const most = Math.max(...bits, 1);
    const colours = palette();
    this.strip.replaceChildren(...bits.map((one, i) => {
      const bar = make("span", { title: `${displayText(this.#units[i].text)}: ${one.toFixed(1)} bits` });
      bar.style.height = `${Math.max(2, (100 * one) / most)}%`;
      bar.style.setProperty("--bar", colours.css[Math.round(90 + (165 * one) / most)]);
      return bar;
    }));
    const sum = bits.reduce((total, one) => total + one, 0);
    this.total.textContent = bits.length ? `${(sum / bits.length).toFixed(2)} bits per ${words ? "word" : "token"} on average · perplexity ${(2 ** (sum / bits.length)).toFixed(1)}` : "";
    this.#mark(this.tracePanel.view ? this.tracePanel.view.rows[this.tracePanel.selection.row] : Number(this.context.state.row ?? 0));
  }

  /** @param {number} at */
  #mark(at) {
    this.#at = at;
    const bars = [...this.strip.children];
    const place = this.#placeOf(at);
    bars.forEach((bar, i) => bar.classList.toggle("now", i === place));
    const unit = this.#units[place];
    const word = unit?.text ?? this.trace?.sides.next?.tokens[at]?.text;
    this.strip.setAttribute("aria-valuemin", "1");
    this.strip.setAttribute("aria-valuemax", String(Math.max(1, bars.length)));
    this.strip.setAttribute("aria-valuenow", String(Math.min(bars.length, place < 0 ? bars.length : place + 1)));
    this.strip.setAttribute("aria-valuetext", word ? `‘${displayText(word)}’${unit ? `, ${unit.bits.toFixed(1)} bits` : ""}` : "");
  }

  /** @param {number} at a token @returns {number} the unit of the strip that it belongs to; -1 for what comes after the text */
  #placeOf(at) {
    return this.#units.findIndex((unit) => unit.from <= at && at <= unit.to);
  }

  /** @param {number} by units to go from the current one */
  #move(by) {
    const last = (this.trace?.sides.next?.tokens.length ?? 1) - 1;
    const starts = [...this.#units.map((unit) => unit.from), ...(last > (this.#units.at(-1)?.to ?? -1) ? [last] : [])];
    const place = starts.findLastIndex((from) => from <= this.#at);
    this.#go(starts[Math.min(starts.length - 1, Math.max(0, place + by))] ?? 0);
  }

  async #continue() {
    const { context, input } = this;
    if (this.#writing) return this.#writing.abort();
    const { model } = context;
    if (!model || !input.box) return;
    this.#writing = new AbortController();
    this.go.textContent = "Stop";
    let text = input.text;
    try {
      const whole = { model: model.id, prompt: text, max_tokens: Math.min(200, Math.max(1, Number(this.count.value) || 20)), temperature: Math.min(2, Math.max(0, Number(this.heat.value) || 0)) };
      for await (const piece of context.api.complete(whole, this.#writing.signal)) {
        text += piece;
        input.box.value = text;
      }
    } catch (error) {
      if (!(error instanceof DOMException)) this.message.replaceChildren(errorMessage(error));
    } finally {
      this.#writing = null;
      this.go.textContent = "Continue";
    }
    context.setState({ text, row: undefined, column: undefined }, { push: true });
  }
}

define("rg-screen-language", LanguageScreen);

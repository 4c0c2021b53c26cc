// <rg-screen-entities>: a text with its labelled spans, shaded by what the selected word looked at;
// predicted labels compared with gold labels if there are any.

import { palette } from "/page/colours.js";
import { Drawing, define, make } from "/page/elements.js";
import "/page/links.js";
import "/page/matrix.js";
import { level } from "/page/colour-scale.js";
import { formatWeight, displayText } from "/page/token-text.js";
import { blankView } from "../look-selection.js";
import { kindOf, spans } from "../tag-spans.js";
import { TraceScreen } from "../trace-screen.js";

/** @typedef {import("/page/weights.js").TraceDocument} TraceDocument */
/** @typedef {import("/page/weights.js").View} View */

/** <rg-entities>: words in their spans; `tags` has one label for each word of the text. */
class EntitiesElement extends Drawing {
  /** @type {string[]} */
  tags = [];
  /** @type {string[]} */
  kinds = [];

  /** @param {View} view */
  render(view) {
    const { row, column } = this.selection;
    const colours = palette();
    const wide = view.keys.length;
    const hadFocus = document.activeElement && this.contains(document.activeElement);
    const nodes = view.keys.map((token, i) => {
      const weight = row < 0 ? 0 : view.weights[row * wide + i];
      const shade = level(weight, view, Math.max(0, row), this.scale);
      const place = view.rows.indexOf(view.columns[i]);
      const node = make("button", {
        type: "button", className: `rg-word${place === row ? " asks" : ""}${i === column ? " aimed" : ""}`, textContent: displayText(token.text), title: formatWeight(weight, 3),
        "aria-pressed": String(place === row), tabIndex: place === Math.max(0, row) ? 0 : -1,
        on: { click: () => this.choose(place, -1), pointerenter: () => this.hover(row, i), pointerleave: () => this.hover(-1, -1) },
      });
      node.style.backgroundColor = colours.css[shade];
      node.style.color = colours.ink[shade];
      return node;
    });
    /** @type {(Node | string)[]} */
    const parts = [];
    let next = 0;
    for (const { kind, from, to } of [...spans(this.tags), { kind: "", from: nodes.length, to: nodes.length }]) {
      for (; next < Math.min(from, nodes.length); next++) parts.push(" ", nodes[next]);
      if (!kind || from >= nodes.length) continue;
      const inside = nodes.slice(from, to).flatMap((node, i) => (i ? [" ", node] : [node]));
      parts.push(" ", make("span", { className: `rg-entity tag-${Math.max(0, this.kinds.indexOf(kind)) % 6}` }, ...inside, make("span", { className: "rg-label", textContent: displayText(kind, 16) })));
      next = to;
    }
    this.replaceChildren(
      make("div", { className: "rg-text", dir: "auto", role: "group", "aria-label": "Text with its entities", on: { keydown: (/** @type {KeyboardEvent} */ event) => this.#key(event) } }, ...parts));
    if (hadFocus) nodes.find((node) => node.tabIndex === 0)?.focus();
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

define("rg-entities", EntitiesElement);

class EntitiesScreen extends TraceScreen {
  label = make("section", { "aria-label": "Label of the selected word" });
  gold = make("details", { className: "rg-gold" });
  found = make("div", { className: "rg-scroll" });

  /** @returns {import("../trace-panel.js").DrawingOptions} */
  drawingOptions() {
    return {
      shapes: [["words", "Words", "rg-entities"], ["matrix", "Matrix", "regard-matrix"], ["links", "Links", "regard-links"]],
      fits: (look) => look.query_side === "text" && look.key_side === "text",
      aggregate: "mean",
      alternatives: false,
      rows: true,
      firstRow: (view) => Math.max(0, this.#tags().findIndex((tag, i) => tag !== "O" && view.rows.includes(i))),
      none: "This model tags words without attention.",
      blank: (trace) => blankView(trace, "text", "text"),
      drawn: (view, selection) => this.#chose(view.rows[selection.row]),
    };
  }

  build() {
    this.input.action = "Find entities";
    this.input.void = { row: undefined, column: undefined, gold: undefined };
    super.build();
    this.tracePanel.wordPanel?.prepend(this.label);
    this.box = make("input", { type: "text", "aria-label": "Gold labels, one per word", placeholder: "B-PER I-PER O …", spellcheck: false, maxLength: 4000 });
    this.box.addEventListener("change", () => this.context.setState({ gold: this.box?.value.trim() }));
    this.gold.append(make("summary", { textContent: "Compare with gold labels" }),
      make("p", { className: "hint", textContent: "One label per word, separated by spaces; O for words outside any entity." }), this.box, this.found);
    this.tracePanel.inside.append(this.gold);
  }

  #tags() { return /** @type {string[]} */ (this.trace?.prediction?.tags ?? []); }

  #kinds() {
    const all = [...(this.context.model?.labels ?? []), ...this.#tags()].filter((tag) => tag !== "O").map(kindOf);
    return [...new Set(all)].sort();
  }

  /** @param {string} text */
  body(text) {
    return { text };
  }

  /** @param {TraceDocument} trace */
  async traceChanged(trace) {
    const words = /** @type {EntitiesElement} */ (this.tracePanel.drawings.get("words"));
    words.tags = this.#tags();
    words.kinds = this.#kinds();
    words.changed("view");
    const { gold } = this.context.state;
    if (gold) this.gold.open = true;
    if (this.box && this.box.value !== (gold ?? "")) this.box.value = gold ?? "";
    this.found.replaceChildren(...this.#compared(trace, (gold ?? "").split(/\s+/).filter(Boolean)));
    if (this.tracePanel.view) this.#chose(this.tracePanel.view.rows[this.tracePanel.selection.row]);
  }

  /** @param {number} word */
  #chose(word) {
    const tag = this.#tags()[word];
    const token = this.trace?.sides.text?.tokens[word];
    if (!token || tag === undefined) return;
    const others = this.trace?.alternatives?.[word] ?? [];
    const kinds = this.#kinds();
    this.label.replaceChildren(
      make("h2", {}, make("bdi", { textContent: displayText(token.text, 30) }), " is ", tag === "O" ? "not an entity" : make("span", { className: `rg-tag tag-${Math.max(0, kinds.indexOf(kindOf(tag))) % 6}`, textContent: tag })),
      make("ol", { className: "bars" }, ...others.slice(0, 4).map((other) => {
        const fill = make("span", { className: "bar-fill" });
        fill.style.width = `${Math.max(1, 100 * other.probability)}%`;
        fill.style.background = "var(--quiet-bar)";
        return make("li", {}, make("span", { className: "bar" }, make("bdi", { className: "bar-word", textContent: displayText(other.text, 16) }),
          make("span", { className: "bar-track", "aria-hidden": "true" }, fill), make("span", { className: "bar-number", textContent: formatWeight(other.probability) })));
      })));
  }

  /** @param {TraceDocument} trace @param {string[]} gold @returns {HTMLElement[]} */
  #compared(trace, gold) {
    const tokens = trace.sides.text?.tokens ?? [];
    const tags = this.#tags();
    if (!gold.length) return [];
    const note = gold.length === tokens.length ? "" : `${gold.length} labels for ${tokens.length} words. `;
    const aims = spans(gold).map((one) => `${one.kind} ${one.from} ${one.to}`);
    const right = spans(tags).filter((one) => aims.includes(`${one.kind} ${one.from} ${one.to}`)).length;
    const line = (/** @type {string} */ name, /** @type {string[]} */ labels, /** @type {boolean} */ judged) => make("tr", {}, make("th", { scope: "row", textContent: name }),
      ...tokens.map((_, i) => make("td", { textContent: labels[i] ?? "–", className: judged && labels[i] !== gold[i] ? "wrong" : judged ? "right" : "" })));
    return [
      make("p", { className: "hint", textContent: `${note}${right} of ${aims.length} gold entities found, ${spans(tags).length - right} false positives.` }),
      make("table", {}, make("thead", {}, make("tr", {}, make("th", { scope: "col", textContent: "Word" }), ...tokens.map((token) => make("th", { scope: "col", textContent: displayText(token.text, 20) })))),
        make("tbody", {}, line("Predicted", tags, true), line("Gold", gold, false))),
    ];
  }
}

define("rg-screen-entities", EntitiesScreen);

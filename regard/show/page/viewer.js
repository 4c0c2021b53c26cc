// <regard-viewer>: a whole trace with all drawings. Set `trace`; `state` holds what is selected.

import { aboutOf, alternativesOf, attributionStrips, textsOf } from "./trace-summary.js";
import { define, make } from "./elements.js";
import "./row-detail.js";
import "./head-grid.js";
import "./legend.js";
import "./links.js";
import { lookName, sidesInWords } from "./look-names.js";
import { sentence } from "./matrix.js";
import { linksPicture, matrixPicture, pngOf, save, svgText, textPicture } from "./svg-export.js";
import { strongestKey } from "./text-shading.js";
import "./status-line.js";
import "./table.js";
import { titleOf, viewOf, weightsNow, weightsOf } from "./weights.js";
import { displayText } from "./token-text.js";

/** @typedef {import("./weights.js").TraceDocument} TraceDocument */
/** @typedef {import("./weights.js").LookRecord} LookRecord */
/** @typedef {import("./weights.js").View} View */
/**
 * @typedef {{look: string, layer: number | null, head: number | null,
 *   aggregate: "one" | "mean" | "max", scale: "linear" | "sqrt" | "log", rows: boolean,
 *   threshold: number, specials: boolean, shape: "matrix" | "links" | "text" | "table",
 *   row: number, column: number}} State
 */

const NARROW = matchMedia("(max-width: 1080px)");
const SHAPES = /** @type {const} */ (["matrix", "links", "text", "table"]);
const MANY = 100;
const FIRST = ["source", "decoder.source", "pooling"];
const KEYS = [
  ["Tab", "move between parts"],
  ["← ↑ ↓ →", "move between cells; ten at a time with Shift"],
  ["Home  End", "first and last key; with Ctrl also first and last row"],
  ["[  ]", "previous head, next head"],
  ["T", "switch between drawing and table"],
  ["+  −  0", "zoom in, zoom out, show the whole matrix"],
  ["?", "show this help"],
];

/** Events: `regard-state` when the state changes (detail: the State), so that an address can keep it. */
export class ViewerElement extends HTMLElement {
  /** @type {TraceDocument | null} */
  #trace = null;
  /** @type {State} */
  #state = {
    look: "", layer: null, head: null, aggregate: "one", scale: "linear", rows: false,
    threshold: 0, specials: true, shape: "matrix", row: -1, column: -1,
  };
  /** @type {View | null} */
  #view = null;
  /** @type {LookRecord[]} the looks of the view, and how they were put together */
  #drawn = [];
  #how = "";
  /** @type {LookRecord | null} */
  #preview = null;
  #turn = 0;
  /** @type {string[]} layers that did not fit into the file */
  leftOut = [];
  /** @type {number | null} what the weights are multiples of a share of, where they were rounded so that the file stays small */
  rounded = null;
  /** @type {Record<string, any>} the parts by name */
  parts = {};

  get trace() { return this.#trace; }
  set trace(trace) {
    this.#trace = trace;
    this.#preview = null;
    if (!trace) {
      this.replaceChildren();
      return;
    }
    this.#begin(trace);
    this.#build(trace);
    this.#show();
  }

  get state() { return { ...this.#state }; }
  set state(state) {
    this.#state = { ...this.#state, ...state };
    if (this.#trace) this.#show();
  }

  /** @returns {View | null} what is drawn now */
  get view() { return this.#view; }

  /** @param {Partial<State>} change */
  change(change) {
    this.#state = { ...this.#state, ...change };
    this.#show();
    this.dispatchEvent(new CustomEvent("regard-state", { bubbles: true, detail: this.state }));
  }

  /** @param {TraceDocument} trace choose a look to begin with, unless the state names one */
  #begin(trace) {
    const names = this.#names(trace);
    const state = this.#state;
    if (!names.includes(state.look)) {
      state.look = FIRST.find((name) => names.includes(name)) ?? names[0] ?? "";
      state.layer = state.head = null;
      state.aggregate = this.#family(trace).some((look) => look.head !== undefined) && this.#isCross(trace) ? "mean" : "one";
      state.row = state.column = -1;
      // among hundreds of words a weight is small: a linear scale would look empty
      const keys = this.#family(trace)[0]?.keys ?? trace.sides[this.#family(trace)[0]?.key_side]?.tokens ?? [];
      if (keys.length > MANY) state.scale = "sqrt";
    }
  }

  /** @param {TraceDocument} trace */
  #isCross(trace) {
    const look = this.#family(trace)[0];
    return look !== undefined && look.query_side !== look.key_side;
  }

  /** @param {TraceDocument} trace */
  #names(trace) { return [...new Set(trace.looks.map((look) => look.name))]; }

  /** @param {TraceDocument} trace @returns {LookRecord[]} looks of the chosen name */
  #family(trace) { return trace.looks.filter((look) => look.name === this.#state.look); }

  /** @param {TraceDocument} trace @returns {LookRecord[]} looks of the chosen layer too */
  #ofLayer(trace) {
    const family = this.#family(trace);
    const layers = numbers(family.map((look) => look.layer));
    const { layer } = this.#state;
    if (layers.length && (layer === null || !layers.includes(layer))) this.#state.layer = layers[layers.length - 1];
    return layers.length ? family.filter((look) => look.layer === this.#state.layer) : family;
  }

  /** @param {TraceDocument} trace @returns {LookRecord[]} those to draw */
  #chosen(trace) {
    const looks = this.#ofLayer(trace);
    if (this.#preview) return [this.#preview];
    const heads = numbers(looks.map((look) => look.head));
    if (this.#state.aggregate !== "one" || !heads.length) return heads.length ? looks : looks.slice(0, 1);
    if (this.#state.head === null || !heads.includes(this.#state.head)) this.#state.head = heads[0];
    return looks.filter((look) => look.head === this.#state.head).slice(0, 1);
  }

  #show() {
    const trace = this.#trace;
    if (!trace || !trace.looks.length) return;
    const turn = ++this.#turn;
    const looks = this.#chosen(trace);
    const ready = looks.map(weightsNow);
    if (ready.every((weights) => weights !== undefined)) {
      this.#draw(trace, looks, /** @type {Float32Array[]} */ (ready));
      return;
    }
    Promise.all(looks.map(weightsOf)).then((matrices) => {
      if (turn === this.#turn) this.#draw(trace, looks, matrices);
    });
  }

  /** @param {TraceDocument} trace @param {LookRecord[]} looks @param {Float32Array[]} matrices */
  #draw(trace, looks, matrices) {
    const state = this.#state;
    const before = this.#view;
    const aggregate = state.aggregate === "max" ? "max" : "mean";
    const same = before && this.#drawn.length === looks.length && this.#drawn.every((look, i) => look === looks[i])
      && this.#how === `${aggregate} ${state.specials}`;
    const view = same ? before : viewOf(trace, looks, matrices, { aggregate, hideSpecial: !state.specials });
    this.#drawn = looks;
    this.#how = `${aggregate} ${state.specials}`;
    if (before) keepSelection(before, view, state);
    if (state.row >= view.queries.length) state.row = -1;
    if (state.row < 0) state.row = firstWord(view);
    if (state.column >= view.keys.length || (state.column < 0 && state.row >= 0)) state.column = strongestKey(view, state.row);
    // with the same token lists, the text keeps its nodes
    if (before && sameWords(before.queries, view.queries)) view.queries = before.queries;
    if (before && sameWords(before.keys, view.keys)) view.keys = before.keys;
    this.#view = view;
    this.style.setProperty("--rows", String(view.queries.length));
    const parts = this.parts;
    const scale = { kind: state.scale, rows: state.rows, threshold: state.threshold };
    const selection = { row: state.row, column: state.column };
    for (const shape of SHAPES) parts[shape].hidden = shape !== state.shape;
    parts.row.alternatives = alternativesOf(trace, view);
    for (const part of [parts[state.shape], parts.legend, parts.row]) {
      part.scale = scale;
      part.view = view;
      part.selection = selection;
    }
    const family = this.#family(trace);
    if (family.length > 1) parts.heads.show(trace, family, looks);
    parts.title.textContent = titleOf(looks[0], looks.length, aggregate);
    parts.sides.textContent = displayText(sidesInWords(view.querySide, view.keySide, null), 160);
    parts.strips.hidden = state.shape !== "text" || !parts.strips.childElementCount;
    this.#fill(trace);
    if (!this.#preview) parts.status.say(sentence(view, state.row, state.column));
    if (!this.dataset.ready) {
      parts[state.shape].flush();
      this.dataset.ready = performance.now().toFixed(1);
    }
  }

  /** @param {TraceDocument} trace update the controls */
  #fill(trace) {
    const state = this.#state;
    const { parts } = this;
    const layers = numbers(this.#family(trace).map((look) => look.layer));
    const heads = numbers(this.#ofLayer(trace).map((look) => look.head));
    options(parts.look, this.#names(trace).map((name) => [name, lookName(name)]), state.look);
    options(parts.layer, layers.map((layer) => [String(layer), String(layer)]), String(state.layer));
    options(parts.head, heads.map((head) => [String(head), String(head)]), String(state.head));
    parts.lookField.hidden = this.#names(trace).length < 2;
    parts.layerField.hidden = layers.length < 2;
    parts.headField.hidden = heads.length < 2 || state.aggregate !== "one";
    parts.aggregateField.hidden = heads.length < 2;
    parts.rail.hidden = this.#family(trace).length < 2;
    parts.aggregate.value = state.aggregate;
    parts.scale.value = state.scale;
    parts.rows.checked = state.rows;
    parts.specials.checked = !state.specials;
    parts.threshold.value = String(state.threshold);
    parts.thresholdNumber.textContent = state.threshold ? state.threshold.toFixed(3) : "off";
    for (const shape of SHAPES) parts[`${shape}Button`].setAttribute("aria-pressed", String(shape === state.shape));
  }

  /** @param {TraceDocument} trace */
  #build(trace) {
    const { parts } = this;
    delete this.dataset.ready;
    this.#view = null;
    for (const shape of SHAPES) parts[shape] = document.createElement(`regard-${shape}`);
    for (const name of ["legend", "row", "heads", "status"]) parts[name] = document.createElement(`regard-${name}`);
    parts.title = make("h1", {});
    parts.sides = make("p", { className: "over" });
    parts.strips = make("div", { className: "strips" }, ...attributionStrips(trace));
    parts.rail = make("aside", { className: "rail", "aria-label": "Layers and heads" },
      make("h2", { className: "over" }, "Layers and heads"), parts.heads);
    parts.help = this.#help();
    const board = make("section", { className: "board", "aria-label": "Picture" },
      make("div", { className: "board-head" }, make("div", {}, parts.title, parts.sides), this.#tabs()),
      ...SHAPES.map((shape) => parts[shape]), parts.strips);
    this.replaceChildren(
      make("header", { className: "top" },
        make("span", { className: "brand", textContent: "Regard" }),
        make("span", { className: "about", textContent: aboutOf(trace) }),
        this.#exports(trace),
        make("button", { type: "button", className: "plain", "aria-label": "Help", title: "Help (?)", textContent: "?", on: { click: () => parts.help.showModal() } })),
      make("section", { className: "texts", "aria-label": "Texts" }, ...textsOf(trace), this.leftOut.length || this.rounded
        ? make("p", { className: "left-out", textContent: [
          this.leftOut.length ? `Left out to keep this file small: ${this.leftOut.map((name) => displayText(name)).join(", ")}.` : "",
          this.rounded ? `Weights are rounded to 1/${this.rounded.toLocaleString("en")}.` : ""].join(" ").trim() }) : null),
      make("main", {}, this.#controls(),
        trace.looks.length ? make("div", { className: "stage" }, parts.rail, board,
          make("aside", { className: "side", "aria-label": "Selected word" }, parts.row))
          : make("p", { className: "hint", textContent: trace.card?.attend_with
            ? `This model has no attention to draw: train one with ${trace.card.attend_with}.`
            : "This trace contains no attention maps." })),
      make("footer", { className: "foot" }, parts.status, parts.legend,
        make("p", { className: "note", textContent: "Weights show where the model looked, not why it answered." })),
      parts.help,
    );
    this.#listen(trace);
  }

  /** @param {TraceDocument} trace */
  #listen(trace) {
    if (this.dataset.listening) return;
    this.dataset.listening = "yes";
    void trace;
    this.addEventListener("regard-select", (event) => {
      const { row, column } = /** @type {CustomEvent} */ (event).detail;
      this.change({ row, column: column < 0 && this.#view && row >= 0 ? strongestKey(this.#view, row) : column });
    });
    this.addEventListener("regard-hover", (event) => {
      const { row, column } = /** @type {CustomEvent} */ (event).detail;
      this.parts.status.showHover(this.#view && row >= 0 && column >= 0 ? sentence(this.#view, row, column) : "");
    });
    this.addEventListener("regard-head", (event) => {
      const look = /** @type {CustomEvent<LookRecord>} */ (event).detail;
      this.#preview = null;
      this.change({ layer: look.layer ?? null, head: look.head ?? null, aggregate: "one" });
    });
    this.addEventListener("regard-preview", (event) => {
      this.#preview = /** @type {CustomEvent<LookRecord | null>} */ (event).detail;
      this.#show();
    });
    document.addEventListener("keydown", (event) => this.#key(event));
    NARROW.addEventListener("change", () => this.#fit());
    this.#fit();
  }

  /** Take the height of the content where there is no room to fill: in narrow windows and in frames. */
  #fit() {
    const framed = window.parent !== window;
    this.classList.toggle("framed", framed);
    this.classList.toggle("natural", framed || NARROW.matches);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const { target } = event;
    if (!(target instanceof HTMLElement) || !this.isConnected || event.ctrlKey || event.metaKey || event.altKey) return;
    if (target.isContentEditable || target.matches("textarea, select, input:not([type=range]):not([type=checkbox])")) return;
    if (event.key === "[" || event.key === "]") this.step(event.key === "]" ? 1 : -1);
    else if (event.key === "t" || event.key === "T") this.change({ shape: this.#state.shape === "table" ? "matrix" : "table" });
    else if (event.key === "?") this.parts.help.showModal();
    else return;
    event.preventDefault();
  }

  /** @param {number} by the head after this one, or before it, through all layers */
  step(by) {
    if (!this.#trace) return;
    const family = this.#family(this.#trace);
    const at = family.indexOf(this.#chosen(this.#trace)[0]);
    const next = family[(at + (this.#state.aggregate === "one" ? by : 0) + family.length) % family.length];
    if (!next) return;
    this.#preview = null;
    this.change({ layer: next.layer ?? null, head: next.head ?? null, aggregate: "one" });
    this.parts.status.say(titleOf(next));
  }

  #tabs() {
    return make("div", { className: "tabs", role: "group", "aria-label": "Drawing type" }, ...SHAPES.map((shape) => {
      const button = make("button", { type: "button", textContent: shape[0].toUpperCase() + shape.slice(1), on: { click: () => this.change({ shape }) } });
      this.parts[`${shape}Button`] = button;
      return button;
    }));
  }

  #controls() {
    const { parts } = this;
    const pick = (/** @type {string} */ name, /** @type {string} */ said, /** @type {(value: string) => Partial<State>} */ change, /** @type {[string, string][]} */ choices = []) => {
      parts[name] = make("select", { "aria-label": said, on: { change: () => this.change(change(parts[name].value)) } });
      options(parts[name], choices, choices[0]?.[0] ?? "");
      parts[`${name}Field`] = make("label", { className: "field" }, make("span", { textContent: said }), parts[name]);
      return parts[`${name}Field`];
    };
    const tick = (/** @type {string} */ name, /** @type {string} */ said, /** @type {(on: boolean) => Partial<State>} */ change) => {
      parts[name] = make("input", { type: "checkbox", on: { change: () => this.change(change(parts[name].checked)) } });
      return make("label", { className: "tick" }, parts[name], make("span", { textContent: said }));
    };
    parts.threshold = make("input", {
      type: "range", min: "0", max: "0.5", step: "0.005", value: "0",
      on: { input: () => this.change({ threshold: Number(parts.threshold.value) }) },
    });
    parts.thresholdNumber = make("output", {});
    return make("div", { className: "controls", role: "group", "aria-label": "Drawing options" },
      pick("look", "Attention", (look) => ({ look, layer: null, head: null, row: -1, column: -1 })),
      pick("layer", "Layer", (layer) => ({ layer: Number(layer) })),
      pick("aggregate", "Heads", (aggregate) => ({ aggregate: /** @type {State["aggregate"]} */ (aggregate) }), [["one", "single"], ["mean", "mean"], ["max", "maximum"]]),
      pick("head", "Head", (head) => ({ head: Number(head), aggregate: "one" })),
      pick("scale", "Scale", (scale) => ({ scale: /** @type {State["scale"]} */ (scale) }), [["linear", "linear"], ["sqrt", "square root"], ["log", "logarithmic"]]),
      make("label", { className: "field" }, make("span", { textContent: "Hide below" }), parts.threshold, parts.thresholdNumber),
      tick("rows", "scale each row", (rows) => ({ rows })),
      tick("specials", "hide special tokens", (hide) => ({ specials: !hide, row: -1, column: -1 })),
    );
  }

  /** @param {TraceDocument} trace */
  #exports(trace) {
    const name = () => `regard-${this.#state.look.replace(/[^\w.-]+/g, "-") || "trace"}`;
    const picture = () => {
      const view = /** @type {View} */ (this.#view);
      const scale = { kind: this.#state.scale, rows: this.#state.rows, threshold: this.#state.threshold };
      if (this.#state.shape === "links") return linksPicture(view, scale, -1);
      return this.#state.shape === "text" ? textPicture(view, scale, this.#state.row) : matrixPicture(view, scale);
    };
    /** @type {[string, () => void][]} */
    const kinds = [
      ["SVG", () => save(new Blob([svgText(picture())], { type: "image/svg+xml" }), `${name()}.svg`)],
      ["PNG", () => void pngOf(picture()).then((blob) => save(blob, `${name()}.png`))],
      ["JSON", () => save(new Blob([JSON.stringify(trace)], { type: "application/json" }), `${name()}.json`)],
    ];
    return make("div", { className: "exports", role: "group", "aria-label": "Export" }, ...kinds.map(([kind, run]) =>
      make("button", { type: "button", className: "plain", textContent: kind, title: `Save as ${kind}`, "aria-label": `Save as ${kind}`, on: { click: () => { if (this.#view) run(); } } })));
  }

  #help() {
    const close = make("button", { type: "button", className: "plain", textContent: "Close", on: { click: () => dialog.close() } });
    const dialog = make("dialog", { className: "help", "aria-label": "Help" },
      make("h2", { textContent: "Keys" }),
      make("dl", {}, ...KEYS.flatMap(([key, what]) => [make("dt", {}, make("kbd", { textContent: key })), make("dd", { textContent: what })])),
      make("p", { textContent: "Rows are queries (the words that look), columns are keys (the words that are looked at). Darker means a larger weight; in dark mode, brighter does. Hover over a head to preview it, click it to select it." }),
      close);
    return dialog;
  }
}

/** @param {(number | undefined)[]} all @returns {number[]} those that are numbers, once each, in order */
function numbers(all) {
  return [...new Set(all)].filter((n) => n !== undefined).sort((a, b) => a - b);
}

/** @param {HTMLSelectElement} select @param {[string, string][]} choices @param {string} chosen */
function options(select, choices, chosen) {
  const now = [...select.options].map((option) => option.value).join("\n");
  if (now !== choices.map(([value]) => value).join("\n")) {
    select.replaceChildren(...choices.map(([value, text]) => make("option", { value, textContent: text })));
  }
  select.value = chosen;
}

/** @param {import("./token-text.js").Token[]} some @param {import("./token-text.js").Token[]} others */
function sameWords(some, others) {
  return some.length === others.length && some.every((token, i) => token === others[i] || token.text === others[i].text);
}

/** @param {View} view @returns {number} the first row of a word that is not special */
function firstWord(view) {
  const row = view.queries.findIndex((token) => !token.special);
  return row < 0 && view.queries.length ? 0 : row;
}

/** @param {View} before @param {View} view @param {State} state keep the selected words where they are */
function keepSelection(before, view, state) {
  if (before.rows.length === view.rows.length && before.columns.length === view.columns.length) return;
  state.row = view.rows.indexOf(before.rows[state.row]);
  state.column = view.columns.indexOf(before.columns[state.column]);
}

define("regard-viewer", ViewerElement);

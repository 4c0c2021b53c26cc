// The parts that screens share: the text box, the drawing options, and messages for errors and empty
// screens.

import { define, make } from "/page/elements.js";
import { displayText } from "/page/token-text.js";
import { UNIT_NOTE } from "/page/units.js";
import { ApiError } from "./api.js";
import { codeBlock } from "./copy.js";
import { icon } from "./icons.js";
import { lookName } from "/page/look-names.js";

/** @typedef {import("./app.js").Context} Context */
/** @typedef {import("./look-selection.js").Chosen} Chosen */

/** Not a failure: there is nothing to draw yet, or nothing of this kind. */
export class NothingToDraw extends Error {
  /** @param {string} title @param {string} text */
  constructor(title, text) {
    super(text);
    this.title = title;
  }
}

/** @returns {NothingToDraw} for a text box that is empty */
export function noText() {
  return new NothingToDraw("Enter a text", "Type a text above and press Enter, or choose an example.");
}

/**
 * An error message; errors of the server in its own words.
 * @param {unknown} error
 * @returns {HTMLElement}
 */
export function errorMessage(error) {
  if (error instanceof NothingToDraw) return emptyMessage(error.title, error.message);
  const api = error instanceof ApiError ? error : null;
  const message = error instanceof Error ? error.message : String(error);
  const hints = /** @type {Record<number, string>} */ ({
    401: "Open this page with its token at the end of the address: #token=…",
    409: "It can be used as soon as its first weights are saved. Its learning curves are on the Training screen.",
    429: "Wait a moment and try again.",
    504: "Try a shorter text.",
  });
  return make("div", { className: "rg-notice", role: "alert" },
    make("strong", { textContent: api ? "The server reported an error" : "Something went wrong" }),
    make("p", { textContent: message, dir: "auto" }),
    ...(api?.places ?? []).slice(1, 5).map((place) => make("p", { className: "hint", textContent: place })),
    api && hints[api.status] ? make("p", { className: "hint", textContent: hints[api.status] }) : null);
}

/** @returns {HTMLElement} said where a model did not read all of a text */
export function truncationNote() {
  return make("p", { className: "rg-unknown", role: "note", textContent: "This text is longer than the model can read at once. Only its beginning was read and is shown." });
}

/**
 * A placeholder where there is nothing to draw.
 * @param {string} title @param {string} text @param {...(Node | string)} more
 * @returns {HTMLElement}
 */
export function emptyMessage(title, text, ...more) {
  return make("div", { className: "rg-empty" }, icon("language"), make("h2", { textContent: title }), make("p", { textContent: text }), ...more);
}

/** @param {string} [text] @returns {HTMLElement} shown until the first answer of the server */
export function loadingMessage(text = "Computing…") {
  return make("div", { className: "rg-empty rg-loading", role: "status" }, make("p", { textContent: text }));
}

/** @param {import("./screen-list.js").Screen} screen @returns {HTMLElement} what to say where no model suits a screen */
export function noModel({ title, train }) {
  if (train === null) return emptyMessage("No model is served", "Start the server with a run folder, such as: regard serve runs/mine");
  return emptyMessage("No model for this screen", `None of the models served here can be shown on the ${title} screen. Train one and serve it:`,
    codeBlock(`regard train ${train} --out runs/mine\nregard serve runs/mine`, "Commands"));
}

/** @param {HTMLSelectElement} select @param {[string, string][]} choices @param {string} chosen */
export function fillSelect(select, choices, chosen) {
  const same = select.options.length === choices.length && choices.every(([value, label], i) => select.options[i].value === value && select.options[i].textContent === label);
  if (!same) select.replaceChildren(...choices.map(([value, textContent]) => make("option", { value, textContent })));
  if (select.value !== chosen) select.value = chosen;
}

/**
 * What to call data in a list: the full paths of its files, or the name of what was measured on it.
 * @param {{name: string, data?: string[]}} measured
 * @returns {string}
 */
export function dataLabel({ name, data }) {
  const paths = Array.isArray(data) ? data.filter((path) => typeof path === "string") : [];
  return displayText(paths.length ? paths.join(" + ") : name, 200);
}

/**
 * A labelled select.
 * @param {string} label @param {(value: string) => void} change
 * @returns {{field: HTMLLabelElement, select: HTMLSelectElement}}
 */
export function selectField(label, change) {
  const select = make("select", { "aria-label": label, on: { change: () => change(select.value) } });
  return { select, field: make("label", { className: "field" }, make("span", { textContent: label }), select) };
}

/**
 * @param {string} label @param {(on: boolean) => void} change
 * @returns {{field: HTMLLabelElement, box: HTMLInputElement}}
 */
export function checkbox(label, change) {
  const box = make("input", { type: "checkbox", on: { change: () => change(box.checked) } });
  return { box, field: make("label", { className: "tick" }, box, make("span", { textContent: label })) };
}

/** @param {Pick<Context, "setState">} context @returns {{field: HTMLLabelElement, select: HTMLSelectElement}} the switch between words and tokens */
export function unitField(context) {
  const unit = selectField("Units", (value) => context.setState({ unit: value === "words" ? "words" : undefined, row: undefined, column: undefined }));
  fillSelect(unit.select, [["tokens", "tokens"], ["words", "words"]], "tokens");
  unit.field.title = UNIT_NOTE;
  return unit;
}

/**
 * <rg-input>: model, text, examples. Set `context`, then call `show()` in every update; what was
 * written is in `state.text`. `text` is that, or the first example.
 */
export class InputElement extends HTMLElement {
  /** @type {Context} */
  context = /** @type {any} */ (null);
  /** @type {string[] | null} instead of those of the model */
  examples = null;
  /** @type {Record<string, undefined>} what a new text makes void */
  void = { row: undefined, column: undefined };
  label = "Text";
  /** characters that the server reads */
  longest = 4000;
  action = "Run";
  /** @type {() => import("./api.js").ModelCard[]} those to choose from; none hides the choice */
  models = () => this.context.models;
  #model = selectField("Model", (model) => this.context.setState({ model, text: undefined, look: undefined, layer: undefined, head: undefined, ...this.void }, { push: true }));
  #shown = "";

  connectedCallback() {
    if (this.box) return;
    this.box = make("textarea", {
      rows: 1, dir: "auto", spellcheck: false, placeholder: "Enter a text…", "aria-label": this.label,
      on: {
        input: () => { this.#grow(); this.#count(); },
        keydown: (/** @type {KeyboardEvent} */ event) => {
          if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          this.submit();
        },
      },
    });
    this.long = make("p", { className: "rg-too-long", role: "alert", hidden: true });
    this.chips = make("div", { className: "rg-examples", role: "group", "aria-label": "Examples" });
    this.replaceChildren(
      make("form", { className: "rg-ask", on: { submit: (/** @type {Event} */ event) => { event.preventDefault(); this.submit(); } } },
        this.box, make("button", { type: "submit", className: "rg-button primary", textContent: this.action })),
      this.long, make("div", { className: "rg-under" }, this.#model.field, this.chips));
    new ResizeObserver(() => this.#grow()).observe(this);
  }

  /** @returns {string} */
  get text() {
    return this.context.state.text ?? this.#examples()[0] ?? "";
  }

  #examples() { return this.examples ?? this.context.model?.examples ?? []; }

  submit() {
    const text = this.box?.value.trim() ?? "";
    if (this.#count()) return this.box?.focus();
    this.context.setState({ text, ...this.void }, { push: text !== this.#shown });
  }

  /** @returns {boolean} whether the text is too long, which is said rather than cut off */
  #count() {
    const { box, long } = this;
    const size = Array.from(box?.value.trim() ?? "").length;
    if (long) {
      long.hidden = size <= this.longest;
      long.textContent = long.hidden ? "" : `This text has ${size} characters; the limit is ${this.longest}. Please shorten it.`;
    }
    return size > this.longest;
  }

  show() {
    const { context, box, chips } = this;
    if (!box || !chips) return;
    if (this.text !== this.#shown || box.value === "") box.value = this.text;
    this.#shown = this.text;
    // once the text has been submitted, the server's own message takes over
    if (this.long && box.value === this.text) this.long.hidden = true;
    const models = this.models();
    fillSelect(this.#model.select, models.map((model) => [model.id, `${model.id}${model.ready ? "" : " (in training)"}`]), context.model?.id ?? "");
    this.#model.field.hidden = !models.length;
    const examples = this.#examples();
    const key = examples.join("\n");
    if (chips.dataset.of !== key) {
      chips.dataset.of = key;
      chips.replaceChildren(...examples.map((text) => make("button", {
        type: "button", className: "rg-chip", textContent: text, dir: "auto", title: text,
        on: { click: () => this.context.setState({ text, ...this.void }, { push: true }) },
      })));
    }
    this.#grow();
  }

  #grow() {
    const { box } = this;
    if (!box) return;
    box.style.height = "auto";
    box.style.height = `${Math.min(box.scrollHeight + 2, 180)}px`;
  }
}

define("rg-input", InputElement);

/**
 * <rg-drawbar>: shape, look, layer, heads, scale, threshold, special tokens. Set `context` and
 * `shapes`, then call `show(chosen, shape)` in every update.
 */
export class DrawBarElement extends HTMLElement {
  /** @type {Context} */
  context = /** @type {any} */ (null);
  /** @type {[string, string][]} */
  shapes = [];
  /** whether each row has its own scale unless the state says otherwise */
  rows = false;
  /** whether special tokens are hidden unless the state says otherwise */
  specials = false;
  /** @type {Record<string, any>} */
  parts = {};

  connectedCallback() {
    if (this.parts.look) return;
    const { parts, context } = this;
    const set = (/** @type {Record<string, any>} */ change) => context.setState(change);
    parts.look = selectField("Attention", (look) => set({ look, layer: undefined, head: undefined, aggregate: undefined, row: undefined, column: undefined }));
    parts.layer = selectField("Layer", (layer) => set({ layer }));
    parts.aggregate = selectField("Heads", (aggregate) => set({ aggregate }));
    parts.head = selectField("Head", (head) => set({ head, aggregate: "one" }));
    parts.scale = selectField("Scale", (scale) => set({ scale: scale === "linear" ? undefined : scale }));
    fillSelect(parts.scale.select, [["linear", "linear"], ["sqrt", "square root"], ["log", "logarithmic"]], "linear");
    fillSelect(parts.aggregate.select, [["mean", "mean"], ["max", "maximum"], ["one", "single"]], "mean");
    parts.rows = checkbox("scale each row", (on) => set({ rows: on === this.rows ? undefined : on ? "1" : "0" }));
    parts.unit = unitField(context);
    parts.specials = checkbox("hide special tokens", (on) => set({ specials: on === this.specials ? undefined : on ? "hide" : "show" }));
    parts.threshold = make("input", {
      type: "range", "aria-label": "Hide below", min: "0", max: "0.5", step: "0.005", value: "0",
      on: { input: () => set({ threshold: parts.threshold.value === "0" ? undefined : parts.threshold.value }) },
    });
    parts.number = make("output", {});
    parts.tabs = make("div", { className: "tabs", role: "group", "aria-label": "Drawing type" });
    const wide = matchMedia("(min-width: 1181px)");
    const options = make("details", { className: "rg-options", open: wide.matches },
      make("summary", { textContent: "Options" }),
      make("div", { className: "rg-fields" },
        parts.look.field, parts.layer.field, parts.aggregate.field, parts.head.field, parts.unit.field, parts.scale.field,
        make("label", { className: "field" }, make("span", { textContent: "Hide below" }), parts.threshold, parts.number),
        parts.rows.field, parts.specials.field));
    wide.addEventListener("change", () => { options.open = wide.matches; });
    parts.fields = options;
    parts.end = make("div", { className: "rg-end" });
    this.setAttribute("role", "group");
    this.setAttribute("aria-label", "Drawing options");
    this.replaceChildren(parts.tabs, parts.end, options);
  }

  /** @param {Chosen | null} chosen @param {string} shape */
  show(chosen, shape) {
    const { parts, context } = this;
    const { state } = context;
    if (parts.tabs.childElementCount !== this.shapes.length) {
      parts.tabs.replaceChildren(...this.shapes.map(([value, label]) => make("button", {
        type: "button", textContent: label, value, on: { click: () => context.setState({ shape: value, before: undefined }) },
      })));
    }
    parts.tabs.hidden = this.shapes.length < 2;
    for (const button of parts.tabs.children) button.setAttribute("aria-pressed", String(button.value === shape));
    const { names = [], name = "", layers = [], layer = null, heads = [], head = null, aggregate = "mean" } = chosen ?? {};
    const numbered = (/** @type {number[]} */ all) => all.map((n) => /** @type {[string, string]} */ ([String(n), String(n)]));
    fillSelect(parts.look.select, names.map((one) => [one, lookName(one)]), name);
    fillSelect(parts.layer.select, numbered(layers), String(layer));
    fillSelect(parts.head.select, numbered(heads), String(head));
    parts.aggregate.select.value = aggregate;
    parts.scale.select.value = state.scale ?? "linear";
    parts.look.field.hidden = names.length < 2;
    parts.layer.field.hidden = layers.length < 2;
    parts.aggregate.field.hidden = heads.length < 2;
    parts.head.field.hidden = heads.length < 2 || aggregate !== "one";
    parts.rows.box.checked = state.rows === undefined ? this.rows : state.rows === "1";
    parts.unit.select.value = state.unit === "words" ? "words" : "tokens";
    parts.specials.box.checked = state.specials === undefined ? this.specials : state.specials === "hide";
    parts.threshold.value = state.threshold ?? "0";
    parts.number.textContent = state.threshold ? Number(state.threshold).toFixed(3) : "off";
  }
}

define("rg-drawbar", DrawBarElement);

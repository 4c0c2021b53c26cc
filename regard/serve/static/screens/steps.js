// <rg-screen-steps>: one row of attention computed step by step, with the numbers of a model or, for
// any sentence, with made-up ones under three scores.

import { palette } from "/page/colours.js";
import { define, make } from "/page/elements.js";
import { formatWeight, displayText } from "/page/token-text.js";
import { formatNumber as exact } from "../chart.js";
import { fillSelect, errorMessage, loadingMessage, noText, NothingToDraw, selectField } from "../controls.js";
import { selectLooks, indexFromState } from "../look-selection.js";
import { stagesPicture } from "../export-pictures.js";
import { sheetMenu } from "../export.js";
import { makeTableToggle } from "../drawing-options.js";
import "./stylesheet.js";

/** @typedef {import("../app.js").Context} Context */
/**
 * @typedef {{score: string, query_token: string, key_tokens: string[], row: number, query: number[], keys: number[][],
 *   outer: number[] | null, products: number[] | null, scale: number | null, scores: number[],
 *   biased: number[], allowed: boolean[], normalize: string, weights: number[], values: number[][],
 *   output: number[]}} Stages
 */

const NAMED = /** @type {Record<string, string>} */ ({ scaled_dot: "Scaled dot", bilinear: "Bilinear", additive: "Additive", dot: "Dot", cosine: "Cosine", mlp: "MLP" });
const SCORES = ["scaled_dot", "bilinear", "additive"];
const PROVERBS = ["The early bird catches the worm", "A watched pot never boils", "Still waters run deep", "Many hands make light work"];
const LONGEST = 1000;
const LAST = 5;
const FEW = 6;

class StepsScreen extends HTMLElement {
  /** @type {Context} */
  context = /** @type {any} */ (null);
  #turn = 0;
  #of = selectField("Model", (of) => this.context.setState({ of, model: of, ...FRESH }, { push: true }));
  #look = selectField("Attention", (look) => this.context.setState({ look, layer: undefined, head: undefined, row: undefined, column: undefined }));
  #layer = selectField("Layer", (layer) => this.context.setState({ layer }));
  #head = selectField("Head", (head) => this.context.setState({ head }));
  input = /** @type {import("../controls.js").InputElement} */ (document.createElement("rg-input"));
  message = document.createElement("div");
  card = make("section", { className: "rg-panel-card", "aria-label": "Attention, step by step" });
  pickers = make("div", { className: "rg-fields rg-steps-of" }, this.#of.field, this.#look.field, this.#layer.field, this.#head.field);
  /** @type {Map<string, Stages>} */
  #known = new Map();
  /** @type {Stages | null} */
  #stages = null;
  /** @type {AbortController | null} */
  #listening = null;

  connectedCallback() {
    this.#listening = new AbortController();
    // not one of the app's keys: Space must keep its meaning on buttons and in text boxes
    document.addEventListener("keydown", (event) => this.#key(event), { signal: this.#listening.signal });
  }

  disconnectedCallback() { this.#listening?.abort(); }

  #build() {
    const { context, input } = this;
    input.context = context;
    input.longest = LONGEST;
    input.action = "Show steps";
    input.models = () => [];
    this.append(this.pickers, input, this.message, this.card);
    this.#shape = makeTableToggle(context, "Steps");
    this.#menu = sheetMenu(() => "steps", {
      title: () => `Where does ‘${displayText(this.#stages?.query_token ?? "", 24)}’ look?`,
      picture: () => this.#stages && stagesPicture(this.#stages, describeSteps(this.#stages)),
      tables: () => (this.#stages ? [/** @type {HTMLTableElement} */ (this.#table(this.#stages).firstElementChild)] : []),
      json: () => this.#stages,
    }, context);
    context.keys({ "[": () => this.#headBy(-1), "]": () => this.#headBy(1) });
  }

  /** @type {HTMLElement | null} */
  #menu = null;
  /** @type {import("../drawing-options.js").TableToggleElement | null} */
  #shape = null;
  /** @type {number[]} */
  #heads = [];

  /** @param {number} by */
  #headBy(by) {
    if (this.#heads.length < 2) return;
    const at = this.#heads.indexOf(Number(this.#head.select.value));
    this.context.setState({ head: this.#heads[(at + by + this.#heads.length) % this.#heads.length] });
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.key !== " " || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (!(event.target instanceof HTMLElement) || event.target.closest("button, a, summary, select, input, textarea, dialog")) return;
    event.preventDefault();
    this.#go(event.shiftKey ? this.#step - 1 : this.#step === LAST ? 1 : this.#step + 1);
  }

  get #step() { return Math.min(LAST, Math.max(1, Number(this.context.state.step) || 1)); }

  /** @param {number} step */
  #go(step) {
    if (step < 1 || step > LAST) return;
    this.context.setState({ step: step === 1 ? undefined : step });
  }

  async update() {
    const turn = ++this.#turn;
    if (!this.input.isConnected) this.#build();
    const { context, input, message } = this;
    const { state } = context;
    const ready = context.models.filter((model) => model.ready);
    const model = ready.find((one) => one.id === state.of) ?? null;
    fillSelect(this.#of.select, [["", "No model: made-up numbers"], ...ready.map((one) => /** @type {[string, string]} */ ([one.id, one.id]))], model?.id ?? "");
    input.examples = model ? null : PROVERBS;
    input.show();
    for (const pick of [this.#look, this.#layer, this.#head]) pick.field.hidden = true;
    context.legend(null, "each row of weights sums to 1");
    if (!this.#stages || this.card.hidden) {
      this.card.hidden = true;
      message.replaceChildren(loadingMessage());
    }
    try {
      const found = await (model ? this.#ofModel(model, turn) : this.#ofExample());
      if (turn !== this.#turn || !found) return;
      message.replaceChildren();
      this.card.hidden = false;
      this.#stages = found.stages;
      this.#draw(found.stages, found.words, found.chosen, !model);
    } catch (error) {
      if (turn !== this.#turn) return;
      this.card.hidden = true;
      message.replaceChildren(errorMessage(error));
    }
  }

  async #ofExample() {
    const { context } = this;
    const { state } = context;
    const words = this.input.text.split(/\s+/u).filter(Boolean);
    if (!words.length) throw noText();
    const text = words.join(" ");
    if (text.length > LONGEST) throw new Error(`The text has ${text.length} characters; the limit is ${LONGEST}.`);
    const score = SCORES.includes(state.score) ? state.score : SCORES[0];
    const requested = indexFromState(state, "row");
    const chosen = requested >= 0 && requested < words.length ? requested : Math.min(2, words.length - 1);
    const key = JSON.stringify([text, score, chosen]);
    if (!this.#known.has(key)) {
      // the first example is fetched with all of its rows at once
      const body = text === PROVERBS[0] ? undefined : { text, score, row: chosen };
      const found = /** @type {{steps: Stages[]}} */ (await context.busy(context.api.json("/v1/steps", body)));
      for (const one of found.steps) this.#known.set(JSON.stringify([text, one.score, one.row]), one);
    }
    return { stages: /** @type {Stages} */ (this.#known.get(key)), words, chosen };
  }

  /** @param {import("../api.js").ModelCard} model @param {number} turn */
  async #ofModel(model, turn) {
    const { context, input } = this;
    const { state } = context;
    const text = input.text;
    if (!text.trim()) throw noText();
    const trace = await context.busy(context.api.explain(model.id, { text }));
    if (turn !== this.#turn) return null;
    const found = selectLooks(trace, { ...state, aggregate: "one" }, { fits: (look) => !look.name.endsWith("experts"), first: ["source", "decoder.source", "past", "decoder.self", "pooling"] });
    if (!found) throw new NothingToDraw("No attention", `${model.id} has no attention maps for this text.`);
    const numbers = (/** @type {number[]} */ all) => all.map((n) => /** @type {[string, string]} */ ([String(n), String(n)]));
    this.#heads = found.heads;
    fillSelect(this.#look.select, found.names.map((name) => [name, name]), found.name);
    fillSelect(this.#layer.select, numbers(found.layers), String(found.layer));
    fillSelect(this.#head.select, numbers(found.heads), String(found.head));
    this.#look.field.hidden = found.names.length < 2;
    this.#layer.field.hidden = found.layers.length < 2;
    this.#head.field.hidden = found.heads.length < 2;
    const look = found.looks[0];
    const words = look.queries ?? trace.sides[look.query_side]?.tokens.map((token) => token.text) ?? [];
    const requested = indexFromState(state, "row");
    const chosen = requested >= 0 && requested < words.length ? requested : Math.min(1, words.length - 1);
    const body = { text, look: look.name, row: chosen, ...(look.layer === undefined ? {} : { layer: look.layer }), ...(look.head === undefined ? {} : { head: look.head }) };
    const key = JSON.stringify([model.id, body]);
    let stages = this.#known.get(key);
    if (!stages) {
      stages = /** @type {Stages} */ (await context.busy(context.api.json(`/v1/models/${encodeURIComponent(model.id)}/steps`, body)));
      this.#known.set(key, stages);
    }
    return { stages, words, chosen };
  }

  /** @param {Stages} stages @param {string[]} words @param {number} chosen @param {boolean} example */
  #draw(stages, words, chosen, example) {
    const { context } = this;
    const step = this.#step;
    const column = this.#column(stages);
    const focus = this.contains(document.activeElement) ? /** @type {HTMLElement} */ (document.activeElement).dataset.keep : undefined;
    const descriptions = describeSteps(stages);
    const scores = example ? make("div", { className: "tabs", role: "group", "aria-label": "Score" }, ...SCORES.map((score) => make("button", {
      type: "button", textContent: NAMED[score], "aria-pressed": String(score === stages.score), "data-keep": `score-${score}`, on: { click: () => context.setState({ score: score === "scaled_dot" ? undefined : score }) },
    }))) : make("span", { className: "rg-badge", textContent: NAMED[stages.score] ?? stages.score });
    const table = context.state.shape === "table";
    this.#shape?.show();
    this.card.replaceChildren(
      make("div", { className: "rg-card-head" },
        make("h2", {}, "Where does ", make("bdi", { className: "rg-answer", textContent: displayText(stages.query_token, 24) }), " look?"),
        make("div", { className: "rg-fields" }, scores, this.#shape, this.#menu)),
      example ? make("p", { className: "hint", textContent: this.input.text === PROVERBS[0]
        ? "Four features per word, chosen by hand: article, quality, creature, action. They are not learned."
        : "These numbers are made up: four per word, derived from its letters. They show how attention is computed, not what a word means." }) : "",
      make("div", { className: "rg-examples", role: "group", "aria-label": "Query word", dir: "auto" }, ...words.map((word, i) => make("button", {
        type: "button", className: "rg-chip", textContent: displayText(word, 20), "aria-pressed": String(i === chosen), "data-keep": `word-${i}`,
        on: { click: () => context.setState({ row: i }) },
      }))),
      make("ol", { className: "rg-stepper" }, ...descriptions.map(([name], i) => make("li", {}, make("button", {
        type: "button", "aria-current": i + 1 === step ? "step" : "false", className: i + 1 < step ? "done" : "", "data-keep": `step-${i}`, on: { click: () => this.#go(i + 1) },
      }, make("span", { className: "rg-step-number", textContent: String(i + 1), "aria-hidden": "true" }), name)))),
      make("div", { className: "rg-told" },
        make("p", {}, make("code", { className: "rg-formula", textContent: descriptions[step - 1][1] }), make("span", { textContent: descriptions[step - 1][2] })),
        make("div", { className: "rg-step-buttons" },
          make("button", { type: "button", className: "rg-button", textContent: "Back", disabled: step === 1, "data-keep": "back", on: { click: () => this.#go(step - 1) } }),
          make("button", { type: "button", className: "rg-button primary", "data-keep": "next", on: { click: () => this.#go(step === LAST ? 1 : step + 1) } }, step === LAST ? "Restart" : "Next", make("kbd", { textContent: "Space", "aria-hidden": "true" })))),
      table ? this.#table(stages) : this.#grid(stages, step, column),
      make("p", { className: "rg-sum", textContent: this.#sum(stages, step, column), dir: "ltr" }));
    if (focus) /** @type {HTMLElement | null} */ (this.card.querySelector(`[data-keep="${focus}"]`))?.focus();
    context.say(`Step ${step}, ${descriptions[step - 1][0].toLowerCase()}. ${this.#describe(stages, step, column)}`);
  }

  /** @param {Stages} stages */
  #column(stages) {
    const requested = indexFromState(this.context.state, "column");
    return requested >= 0 && requested < stages.key_tokens.length ? requested : stages.weights.reduce((best, weight, i) => (weight > stages.weights[best] ? i : best), 0);
  }

  /** @param {Stages} stages @param {number} step @param {number} column */
  #describe(stages, step, column) {
    const value = [stages.products ?? stages.scores, stages.biased, stages.biased, stages.weights, stages.weights][step - 1][column];
    const closed = step >= 3 && !stages.allowed[column];
    return `‘${displayText(stages.query_token)}’ and ‘${displayText(stages.key_tokens[column])}’: ${closed ? "masked" : formatNumber(value)}`;
  }

  /** @param {Stages} stages @param {number} step @param {number} column */
  #grid(stages, step, column) {
    const { context } = this;
    const first = stages.products ?? stages.scores;
    const chooseKey = (/** @type {number} */ i) => context.setState({ column: i });
    const largest = Math.max(1e-9, ...stages.query.map(Math.abs), ...stages.keys.flat().map(Math.abs));
    const widest = Math.max(1e-9, ...stages.values.flat().map(Math.abs), ...stages.output.map(Math.abs));
    const rows = /** @type {[number, string, (i: number) => Node | string, Node | string][]} */ ([
      [1, stages.outer ? "w · tanh(q + k)" : stages.score === "bilinear" ? "qᵀW · key" : "query · key", (i) => formatNumber(first[i]), ""],
      [2, scaling(stages) || "no scaling", (i) => formatNumber(stages.biased[i]), ""],
      [3, "mask", (i) => (stages.allowed[i] ? formatNumber(stages.biased[i]) : make("span", { className: "rg-hidden-key", textContent: "masked" })), ""],
      [4, stages.normalize, (i) => weightBar(stages.weights[i]), formatNumber(stages.weights.reduce((sum, weight) => sum + weight, 0))],
    ]);
    const cell = (/** @type {number} */ i, /** @type {Node | string} */ inner, /** @type {string} */ kind = "") =>
      make("td", { className: `${i === column ? "chosen" : ""} ${kind} ${stages.allowed[i] || step < 3 ? "" : "closed"}`, on: { click: () => chooseKey(i) } }, inner);
    const body = rows.map(([at, name, inner, sum]) => make("tr", { className: step === at ? "now" : step < at ? "later" : "" },
      make("th", { scope: "row" }, make("span", { className: "rg-row-name", textContent: name })),
      ...stages.key_tokens.map((_, i) => cell(i, step < at ? make("span", { "aria-hidden": "true", textContent: "·" }) : inner(i))),
      make("td", { className: "rg-total", textContent: "" }, step >= at ? sum : "")));
    const values = make("tr", { className: step === LAST ? "now" : "later" },
      make("th", { scope: "row" }, make("span", { className: "rg-row-name", textContent: "weight · value" })),
      ...stages.key_tokens.map((_, i) => cell(i, step < LAST ? make("span", { "aria-hidden": "true", textContent: "·" }) : vector(stages.values[i], widest, `value of ${displayText(stages.key_tokens[i])}`, Math.max(0.12, stages.weights[i] / Math.max(...stages.weights, 1e-9))))),
      make("td", { className: "rg-total" }, step === LAST ? vector(stages.output, widest, "output", 1) : ""));
    const scroller = make("div", {
      className: "rg-steps-grid", tabIndex: 0, role: "region", "aria-label": "The computation: use the arrow keys to select a key", "data-keep": "grid", dir: "auto",
      on: {
        keydown: (/** @type {KeyboardEvent} */ event) => {
          const rtl = getComputedStyle(scroller).direction === "rtl" ? -1 : 1;
          const to = /** @type {Record<string, number>} */ ({ ArrowRight: column + rtl, ArrowLeft: column - rtl, Home: 0, End: stages.key_tokens.length - 1 })[event.key];
          if (to === undefined) return;
          event.preventDefault();
          chooseKey(Math.min(stages.key_tokens.length - 1, Math.max(0, to)));
        },
      },
    }, make("table", {},
      make("caption", { className: "rg-said", textContent: "One column per key, one row per step so far" }),
      make("thead", {},
        make("tr", {}, make("td", { className: "rg-corner" }), ...stages.key_tokens.map((word, i) => make("th", { scope: "col", className: i === column ? "chosen" : "", on: { click: () => chooseKey(i) } }, make("span", { className: "rg-key-name", textContent: displayText(word, 14) }))), make("th", { scope: "col", className: "rg-total", textContent: "sum" })),
        make("tr", { className: step === 1 ? "vectors now" : "vectors" }, make("th", { scope: "row" }, make("span", { className: "rg-query" }, make("span", { textContent: "query" }), vector(stages.query, largest, `query of ${displayText(stages.query_token)}`, 1), make("span", { className: "rg-row-name", textContent: "keys" }))),
          ...stages.key_tokens.map((word, i) => make("td", { className: i === column ? "chosen" : "", on: { click: () => chooseKey(i) } }, vector(stages.keys[i], largest, `key of ${displayText(word)}`, 1))), make("td", { className: "rg-total" }))),
      make("tbody", {}, ...body, values)));
    requestAnimationFrame(() => {
      const at = scroller.querySelector("th.chosen");
      if (at instanceof HTMLElement && (at.offsetLeft < scroller.scrollLeft + 120 || at.offsetLeft + at.offsetWidth > scroller.scrollLeft + scroller.clientWidth)) scroller.scrollLeft = at.offsetLeft - scroller.clientWidth / 2;
    });
    return scroller;
  }

  /** @param {Stages} stages */
  #table(stages) {
    const vectors = (/** @type {number[]} */ all) => `${all.slice(0, 8).map(formatNumber).join(" ")}${all.length > 8 ? ` … (${all.length})` : ""}`;
    return make("div", { className: "table-scroller rg-table", tabIndex: 0, role: "region", "aria-label": "All numbers as a table" }, make("table", {},
      make("caption", { textContent: `query ${vectors(stages.query)} → output ${vectors(stages.output)}` }),
      make("thead", {}, make("tr", {}, ...["key", "vector", "score", "scaled", "allowed", "weight", "value"].map((name) => make("th", { scope: "col", textContent: name })))),
      make("tbody", {}, ...stages.key_tokens.map((word, i) => make("tr", {}, make("th", { scope: "row", textContent: displayText(word) }), ...[vectors(stages.keys[i]), formatNumber((stages.products ?? stages.scores)[i]), formatNumber(stages.biased[i]), stages.allowed[i] ? "yes" : "no", formatNumber(stages.weights[i]), vectors(stages.values[i])].map((textContent) => make("td", { textContent })))))));
  }

  /** @param {Stages} stages @param {number} step @param {number} column @returns {string} the arithmetic of one key */
  #sum(stages, step, column) {
    const word = `‘${displayText(stages.key_tokens[column], 20)}’: `;
    const { query, outer, allowed, biased, weights, scale } = stages;
    const key = stages.keys[column];
    const first = (stages.products ?? stages.scores)[column];
    if (step === 1) {
      const terms = query.map((q, i) => (outer ? `${formatNumber(outer[i])}·tanh(${formatNumber(q)} + ${formatNumber(key[i])})` : `${formatNumber(q)}·${formatNumber(key[i])}`));
      const size = query.map((q, i) => Math.abs(outer ? outer[i] * Math.tanh(q + key[i]) : q * key[i]));
      const order = terms.map((_, i) => i).sort((i, j) => size[j] - size[i]);
      return word + (terms.length <= FEW ? `${terms.join(" + ")} = ${formatNumber(first)}` : `${order.slice(0, 3).map((i) => terms[i]).join(" + ")} + … ${terms.length - 3} more = ${formatNumber(first)}`);
    }
    if (step === 2) {
      const bias = biased[column] - stages.scores[column];
      const added = Math.abs(bias) > 1e-6 ? `, plus the position bias ${formatNumber(bias)}: ${formatNumber(biased[column])}` : "";
      return word + (scale && scale !== 1 ? `${formatNumber(first)} ${scaling(stages)} = ${formatNumber(stages.scores[column])}${added}` : `${formatNumber(stages.scores[column])} is unchanged${added}`);
    }
    if (step === 3) return word + (allowed[column] ? `allowed, so ${formatNumber(biased[column])} is kept` : "masked, so its weight will be exactly 0");
    if (!allowed[column]) return `${word}0, because it is masked`;
    if (step === 4) return stages.normalize === "softmax" ? `${word}e^${formatNumber(biased[column])} ÷ ${formatNumber(biased.reduce((sum, score, i) => sum + (allowed[i] ? Math.exp(score) : 0), 0))} = ${formatNumber(weights[column])}` : `${word}${stages.normalize} gives ${formatNumber(weights[column])}`;
    const some = stages.output.slice(0, FEW).map(formatNumber).join(", ");
    return `${formatNumber(weights[column])} of ${word.slice(0, -2)} goes into the output: [${some}${stages.output.length > FEW ? ", …" : ""}]`;
  }
}

const FRESH = { text: undefined, look: undefined, layer: undefined, head: undefined, row: undefined, column: undefined };

/** @param {Stages} stages @returns {[name: string, formula: string, words: string][]} */
function describeSteps(stages) {
  const [d, closed] = [stages.query.length, stages.allowed.filter((open) => !open).length];
  const scaled = stages.scale !== null && stages.scale !== 1;
  const moved = stages.biased.some((score, i) => Math.abs(score - stages.scores[i]) > 1e-6);
  return [
    ["Score", stages.outer ? "w · tanh(W q + U k + b)" : stages.score === "bilinear" ? "qᵀ W k" : "q · k",
      stages.outer ? "Query and key are added, passed through tanh and weighted by w: one score per key."
        : stages.score === "bilinear" ? "The query is multiplied by a matrix W and then by each key: one score per key."
          : "The query is multiplied with each key, feature by feature, and summed: one score per key."],
    ["Scale", scaled ? scaling(stages) : "× 1", (scaled ? `Sums over ${d} features grow with √${d}, which would saturate the softmax. Dividing by it prevents that.` : "This score is not scaled.") + (moved ? " A position bias is added." : "")],
    ["Mask", "allowed?", closed ? `${closed} of ${stages.allowed.length} keys are masked and drop out here.` : "Nothing is masked here: every key is allowed."],
    [stages.normalize === "softmax" ? "Softmax" : stages.normalize, stages.normalize === "softmax" ? "eˢ ÷ Σ eˢ" : stages.normalize, "The scores become weights, which are never negative and sum to 1."],
    ["Sum", "Σ weight · value", "Each value is multiplied by its weight. The sum of them is the output."],
  ];
}

/** @param {number} value @returns {string} to three digits behind the point at most */
function formatNumber(value) {
  return exact(Number(value.toFixed(3)));
}

/** @param {Stages} stages @returns {string} what scores are scaled by; nothing where they are not */
function scaling({ scale, query }) {
  if (scale === null || scale === 1) return "";
  return Math.abs(scale - query.length ** -0.5) < 1e-6 ? `÷ √${query.length}` : `× ${formatNumber(scale)}`;
}

/** @param {number} weight */
function weightBar(weight) {
  const shade = palette();
  const level = Math.round(255 * Math.sqrt(Math.min(1, weight)));
  const node = make("span", { className: "rg-weight", textContent: formatWeight(weight, 3) });
  node.style.background = shade.css[level];
  node.style.color = shade.ink[level];
  return node;
}

/** @param {number[]} values @param {number} largest @param {string} label @param {number} share how much of it is taken */
function vector(values, largest, label, share) {
  const few = values.length <= FEW;
  const node = make("span", { className: few ? "rg-vector" : "rg-vector many", role: "img", "aria-label": `${label}: ${values.slice(0, 8).map(formatNumber).join(", ")}${values.length > 8 ? "…" : ""}`, title: label });
  node.append(...values.map((value) => {
    const taken = value * share;
    const colours = palette(taken < 0);
    const level = Math.min(255, Math.round((255 * Math.abs(taken)) / largest));
    const cell = make("span", few ? { textContent: String(Number(value.toFixed(2))).replace("-", "−") } : {});
    cell.style.background = colours.css[level];
    cell.style.color = colours.ink[level];
    return cell;
  }));
  return node;
}

define("rg-screen-steps", StepsScreen);

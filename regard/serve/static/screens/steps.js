// <rg-screen-steps>: one row of attention computed before your eyes, with the model's own numbers;
// three scores in one frame, and a sentence that needs no model.

import { palette } from "/page/colours.js";
import { define, make } from "/page/elements.js";
import { number, shown } from "/page/words.js";
import { plain as exact } from "../chart.js";
import { fill, notice, picker } from "../controls.js";
import { choose, placeOf } from "../looking.js";
import { stagesPicture } from "../paper.js";
import { sheetMenu } from "../saving.js";
import { shapeOf } from "../shade.js";
import "./styled.js";

/** @typedef {import("../app.js").Context} Context */
/**
 * @typedef {{score: string, asking: string, asked: string[], row: number, query: number[], keys: number[][],
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
  #of = picker("Numbers of", (of) => this.context.setState({ of, model: of, ...FRESH }, { push: true }));
  #look = picker("Look", (look) => this.context.setState({ look, layer: undefined, head: undefined, row: undefined, column: undefined }));
  #layer = picker("Layer", (layer) => this.context.setState({ layer }));
  #head = picker("Head", (head) => this.context.setState({ head }));
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
    // Space must not be taken from buttons and boxes, so this is no key of the app's
    document.addEventListener("keydown", (event) => this.#key(event), { signal: this.#listening.signal });
  }

  disconnectedCallback() { this.#listening?.abort(); }

  #build() {
    const { context, input } = this;
    input.context = context;
    input.longest = LONGEST;
    input.action = "Take apart";
    input.fits = () => false;
    this.append(this.pickers, input, this.message, this.card);
    this.#shape = shapeOf(context, "Steps");
    this.#menu = sheetMenu(() => "steps", {
      title: () => `Where does ‘${shown(this.#stages?.asking ?? "", 24)}’ look?`,
      picture: () => this.#stages && stagesPicture(this.#stages, explained(this.#stages)),
      tables: () => (this.#stages ? [/** @type {HTMLTableElement} */ (this.#table(this.#stages).firstElementChild)] : []),
      json: () => this.#stages,
    }, context);
    context.keys({ "[": () => this.#headBy(-1), "]": () => this.#headBy(1) });
  }

  /** @type {HTMLElement | null} */
  #menu = null;
  /** @type {import("../shade.js").ShapeElement | null} */
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
    fill(this.#of.select, [["", "No model: made-up numbers"], ...ready.map((one) => /** @type {[string, string]} */ ([one.id, one.id]))], model?.id ?? "");
    input.examples = model ? null : PROVERBS;
    input.show();
    for (const pick of [this.#look, this.#layer, this.#head]) pick.field.hidden = true;
    context.legend(null, "each row of weights sums to 1");
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
      message.replaceChildren(notice(error));
    }
  }

  async #ofExample() {
    const { context } = this;
    const { state } = context;
    const words = this.input.text.split(/\s+/u).filter(Boolean);
    if (!words.length) throw new Error("Write a text above and press Enter.");
    const text = words.join(" ");
    if (text.length > LONGEST) throw new Error(`The text has ${text.length} characters. ${LONGEST} at most are taken apart.`);
    const score = SCORES.includes(state.score) ? state.score : SCORES[0];
    const asked = placeOf(state, "row");
    const chosen = asked >= 0 && asked < words.length ? asked : Math.min(2, words.length - 1);
    const key = JSON.stringify([text, score, chosen]);
    if (!this.#known.has(key)) {
      // the first sentence comes with all of its rows at once
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
    if (!text.trim()) throw new Error("Write a text above and press Enter.");
    const trace = await context.busy(context.api.explain(model.id, { text }));
    if (turn !== this.#turn) return null;
    const found = choose(trace, { ...state, aggregate: "one" }, { fits: (look) => !look.name.endsWith("experts"), first: ["source", "decoder.source", "past", "decoder.self", "pooling"] });
    if (!found) throw new Error(`${model.id} takes no looks at this text: it was trained without attention.`);
    const numbers = (/** @type {number[]} */ all) => all.map((n) => /** @type {[string, string]} */ ([String(n), String(n)]));
    this.#heads = found.heads;
    fill(this.#look.select, found.names.map((name) => [name, name]), found.name);
    fill(this.#layer.select, numbers(found.layers), String(found.layer));
    fill(this.#head.select, numbers(found.heads), String(found.head));
    this.#look.field.hidden = found.names.length < 2;
    this.#layer.field.hidden = found.layers.length < 2;
    this.#head.field.hidden = found.heads.length < 2;
    const look = found.looks[0];
    const words = look.queries ?? trace.sides[look.asking]?.tokens.map((token) => token.text) ?? [];
    const asked = placeOf(state, "row");
    const chosen = asked >= 0 && asked < words.length ? asked : Math.min(1, words.length - 1);
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
    const told = explained(stages);
    const scores = example ? make("div", { className: "tabs", role: "group", "aria-label": "Score" }, ...SCORES.map((score) => make("button", {
      type: "button", textContent: NAMED[score], "aria-pressed": String(score === stages.score), "data-keep": `score-${score}`, on: { click: () => context.setState({ score: score === "scaled_dot" ? undefined : score }) },
    }))) : make("span", { className: "rg-badge", textContent: NAMED[stages.score] ?? stages.score });
    const table = context.state.shape === "table";
    this.#shape?.show();
    this.card.replaceChildren(
      make("div", { className: "rg-card-head" },
        make("h2", {}, "Where does ", make("bdi", { className: "rg-answer", textContent: shown(stages.asking, 24) }), " look?"),
        make("div", { className: "rg-fields" }, scores, this.#shape, this.#menu)),
      example ? make("p", { className: "hint", textContent: this.input.text === PROVERBS[0]
        ? "Four numbers for each word, chosen by hand: article, quality, creature, action. No model has learnt them."
        : "These numbers are made up: each word gets four from its letters, the same ones everywhere. They show how attention is computed, not what a word means." }) : "",
      make("div", { className: "rg-examples", role: "group", "aria-label": "The word that looks", dir: "auto" }, ...words.map((word, i) => make("button", {
        type: "button", className: "rg-chip", textContent: shown(word, 20), "aria-pressed": String(i === chosen), "data-keep": `word-${i}`,
        on: { click: () => context.setState({ row: i }) },
      }))),
      make("ol", { className: "rg-stepper" }, ...told.map(([name], i) => make("li", {}, make("button", {
        type: "button", "aria-current": i + 1 === step ? "step" : "false", className: i + 1 < step ? "done" : "", "data-keep": `step-${i}`, on: { click: () => this.#go(i + 1) },
      }, make("span", { className: "rg-step-number", textContent: String(i + 1), "aria-hidden": "true" }), name)))),
      make("div", { className: "rg-told" },
        make("p", {}, make("code", { className: "rg-formula", textContent: told[step - 1][1] }), make("span", { textContent: told[step - 1][2] })),
        make("div", { className: "rg-step-buttons" },
          make("button", { type: "button", className: "rg-button", textContent: "Back", disabled: step === 1, "data-keep": "back", on: { click: () => this.#go(step - 1) } }),
          make("button", { type: "button", className: "rg-button primary", "data-keep": "next", on: { click: () => this.#go(step === LAST ? 1 : step + 1) } }, step === LAST ? "Again" : "Next", make("kbd", { textContent: "Space", "aria-hidden": "true" })))),
      table ? this.#table(stages) : this.#grid(stages, step, column),
      make("p", { className: "rg-sum", textContent: this.#sum(stages, step, column), dir: "ltr" }));
    if (focus) /** @type {HTMLElement | null} */ (this.card.querySelector(`[data-keep="${focus}"]`))?.focus();
    context.say(`Step ${step}, ${told[step - 1][0].toLowerCase()}. ${this.#said(stages, step, column)}`);
  }

  /** @param {Stages} stages */
  #column(stages) {
    const asked = placeOf(this.context.state, "column");
    return asked >= 0 && asked < stages.asked.length ? asked : stages.weights.reduce((best, weight, i) => (weight > stages.weights[best] ? i : best), 0);
  }

  /** @param {Stages} stages @param {number} step @param {number} column */
  #said(stages, step, column) {
    const value = [stages.products ?? stages.scores, stages.biased, stages.biased, stages.weights, stages.weights][step - 1][column];
    const closed = step >= 3 && !stages.allowed[column];
    return `‘${shown(stages.asking)}’ and ‘${shown(stages.asked[column])}’: ${closed ? "hidden by the mask" : plain(value)}`;
  }

  /** @param {Stages} stages @param {number} step @param {number} column */
  #grid(stages, step, column) {
    const { context } = this;
    const first = stages.products ?? stages.scores;
    const choose = (/** @type {number} */ i) => context.setState({ column: i });
    const largest = Math.max(1e-9, ...stages.query.map(Math.abs), ...stages.keys.flat().map(Math.abs));
    const widest = Math.max(1e-9, ...stages.values.flat().map(Math.abs), ...stages.output.map(Math.abs));
    const rows = /** @type {[number, string, (i: number) => Node | string, Node | string][]} */ ([
      [1, stages.outer ? "w · tanh(q + k)" : stages.score === "bilinear" ? "qᵀW · key" : "query · key", (i) => plain(first[i]), ""],
      [2, scaling(stages) || "no scaling", (i) => plain(stages.biased[i]), ""],
      [3, "mask", (i) => (stages.allowed[i] ? plain(stages.biased[i]) : make("span", { className: "rg-hidden-key", textContent: "hidden" })), ""],
      [4, stages.normalize, (i) => weightBar(stages.weights[i]), plain(stages.weights.reduce((sum, weight) => sum + weight, 0))],
    ]);
    const cell = (/** @type {number} */ i, /** @type {Node | string} */ inner, /** @type {string} */ kind = "") =>
      make("td", { className: `${i === column ? "chosen" : ""} ${kind} ${stages.allowed[i] || step < 3 ? "" : "closed"}`, on: { click: () => choose(i) } }, inner);
    const body = rows.map(([at, name, inner, sum]) => make("tr", { className: step === at ? "now" : step < at ? "later" : "" },
      make("th", { scope: "row" }, make("span", { className: "rg-row-name", textContent: name })),
      ...stages.asked.map((_, i) => cell(i, step < at ? make("span", { "aria-hidden": "true", textContent: "·" }) : inner(i))),
      make("td", { className: "rg-total", textContent: "" }, step >= at ? sum : "")));
    const values = make("tr", { className: step === LAST ? "now" : "later" },
      make("th", { scope: "row" }, make("span", { className: "rg-row-name", textContent: "weight · value" })),
      ...stages.asked.map((_, i) => cell(i, step < LAST ? make("span", { "aria-hidden": "true", textContent: "·" }) : vector(stages.values[i], widest, `value of ${shown(stages.asked[i])}`, Math.max(0.12, stages.weights[i] / Math.max(...stages.weights, 1e-9))))),
      make("td", { className: "rg-total" }, step === LAST ? vector(stages.output, widest, "output", 1) : ""));
    const scroller = make("div", {
      className: "rg-steps-grid", tabIndex: 0, role: "region", "aria-label": "The computation: arrow keys choose a key", "data-keep": "grid", dir: "auto",
      on: {
        keydown: (/** @type {KeyboardEvent} */ event) => {
          const rtl = getComputedStyle(scroller).direction === "rtl" ? -1 : 1;
          const to = /** @type {Record<string, number>} */ ({ ArrowRight: column + rtl, ArrowLeft: column - rtl, Home: 0, End: stages.asked.length - 1 })[event.key];
          if (to === undefined) return;
          event.preventDefault();
          choose(Math.min(stages.asked.length - 1, Math.max(0, to)));
        },
      },
    }, make("table", {},
      make("caption", { className: "rg-said", textContent: "A column for every word that may be looked at, a row for every step so far" }),
      make("thead", {},
        make("tr", {}, make("td", { className: "rg-corner" }), ...stages.asked.map((word, i) => make("th", { scope: "col", className: i === column ? "chosen" : "", on: { click: () => choose(i) } }, make("span", { className: "rg-key-name", textContent: shown(word, 14) }))), make("th", { scope: "col", className: "rg-total", textContent: "sum" })),
        make("tr", { className: step === 1 ? "vectors now" : "vectors" }, make("th", { scope: "row" }, make("span", { className: "rg-query" }, make("span", { textContent: "query" }), vector(stages.query, largest, `query of ${shown(stages.asking)}`, 1), make("span", { className: "rg-row-name", textContent: "keys" }))),
          ...stages.asked.map((word, i) => make("td", { className: i === column ? "chosen" : "", on: { click: () => choose(i) } }, vector(stages.keys[i], largest, `key of ${shown(word)}`, 1))), make("td", { className: "rg-total" }))),
      make("tbody", {}, ...body, values)));
    requestAnimationFrame(() => {
      const at = scroller.querySelector("th.chosen");
      if (at instanceof HTMLElement && (at.offsetLeft < scroller.scrollLeft + 120 || at.offsetLeft + at.offsetWidth > scroller.scrollLeft + scroller.clientWidth)) scroller.scrollLeft = at.offsetLeft - scroller.clientWidth / 2;
    });
    return scroller;
  }

  /** @param {Stages} stages */
  #table(stages) {
    const vectors = (/** @type {number[]} */ all) => `${all.slice(0, 8).map(plain).join(" ")}${all.length > 8 ? ` … (${all.length})` : ""}`;
    return make("div", { className: "table-scroller rg-table", tabIndex: 0, role: "region", "aria-label": "All numbers as a table" }, make("table", {},
      make("caption", { textContent: `query ${vectors(stages.query)} → output ${vectors(stages.output)}` }),
      make("thead", {}, make("tr", {}, ...["key", "vector", "compared", "scaled", "may look", "weight", "value"].map((name) => make("th", { scope: "col", textContent: name })))),
      make("tbody", {}, ...stages.asked.map((word, i) => make("tr", {}, make("th", { scope: "row", textContent: shown(word) }), ...[vectors(stages.keys[i]), plain((stages.products ?? stages.scores)[i]), plain(stages.biased[i]), stages.allowed[i] ? "yes" : "no", plain(stages.weights[i]), vectors(stages.values[i])].map((textContent) => make("td", { textContent })))))));
  }

  /** @param {Stages} stages @param {number} step @param {number} column @returns {string} the arithmetic of one key */
  #sum(stages, step, column) {
    const word = `‘${shown(stages.asked[column], 20)}’: `;
    const { query, outer, allowed, biased, weights, scale } = stages;
    const key = stages.keys[column];
    const first = (stages.products ?? stages.scores)[column];
    if (step === 1) {
      const terms = query.map((q, i) => (outer ? `${plain(outer[i])}·tanh(${plain(q)} + ${plain(key[i])})` : `${plain(q)}·${plain(key[i])}`));
      const size = query.map((q, i) => Math.abs(outer ? outer[i] * Math.tanh(q + key[i]) : q * key[i]));
      const order = terms.map((_, i) => i).sort((i, j) => size[j] - size[i]);
      return word + (terms.length <= FEW ? `${terms.join(" + ")} = ${plain(first)}` : `${order.slice(0, 3).map((i) => terms[i]).join(" + ")} + … ${terms.length - 3} more = ${plain(first)}`);
    }
    if (step === 2) {
      const bias = biased[column] - stages.scores[column];
      const added = Math.abs(bias) > 1e-6 ? `, with ${plain(bias)} for the distance: ${plain(biased[column])}` : "";
      return word + (scale && scale !== 1 ? `${plain(first)} ${scaling(stages)} = ${plain(stages.scores[column])}${added}` : `${plain(stages.scores[column])} stays as it is${added}`);
    }
    if (step === 3) return word + (allowed[column] ? `may be looked at, so ${plain(biased[column])} stays` : "may not be looked at: its weight will be exactly 0");
    if (!allowed[column]) return `${word}0, because it may not be looked at`;
    if (step === 4) return stages.normalize === "softmax" ? `${word}e^${plain(biased[column])} ÷ ${plain(biased.reduce((sum, score, i) => sum + (allowed[i] ? Math.exp(score) : 0), 0))} = ${plain(weights[column])}` : `${word}${stages.normalize} gives ${plain(weights[column])}`;
    const some = stages.output.slice(0, FEW).map(plain).join(", ");
    return `${plain(weights[column])} of ${word.slice(0, -2)} goes into what is read: [${some}${stages.output.length > FEW ? ", …" : ""}]`;
  }
}

const FRESH = { text: undefined, look: undefined, layer: undefined, head: undefined, row: undefined, column: undefined };

/** @param {Stages} stages @returns {[name: string, formula: string, words: string][]} */
function explained(stages) {
  const [d, closed] = [stages.query.length, stages.allowed.filter((open) => !open).length];
  const scaled = stages.scale !== null && stages.scale !== 1;
  const moved = stages.biased.some((score, i) => Math.abs(score - stages.scores[i]) > 1e-6);
  return [
    ["Compare", stages.outer ? "w · tanh(W q + U k + b)" : stages.score === "bilinear" ? "qᵀ W k" : "q · k",
      stages.outer ? "Query and key are added, squashed by tanh, and weighed by w: one number for each key."
        : stages.score === "bilinear" ? "The query goes through a matrix W and is then multiplied with each key: one number for each key."
          : "The query is multiplied with each key, feature by feature, and added up: one number for each key."],
    ["Scale", scaled ? scaling(stages) : "× 1", (scaled ? `Sums over ${d} features grow with √${d}, which would make the softmax too sure. Dividing brings them back.` : "This score is not scaled: the numbers stay as they are.") + (moved ? " A bias for position is added." : "")],
    ["Mask", "may look?", closed ? `${closed} of ${stages.allowed.length} words may not be looked at, and drop out here.` : "Nothing is hidden here: every word may be looked at."],
    [stages.normalize === "softmax" ? "Softmax" : stages.normalize, stages.normalize === "softmax" ? "eˢ ÷ Σ eˢ" : stages.normalize, "The scores become weights: none below 0, and together 1."],
    ["Sum", "Σ weight · value", "Each value is taken as much as its weight says. Added up, they are what the word has read."],
  ];
}

/** @param {number} value @returns {string} to three digits behind the point at most */
function plain(value) {
  return exact(Number(value.toFixed(3)));
}

/** @param {Stages} stages @returns {string} what scores are scaled by; nothing where they are not */
function scaling({ scale, query }) {
  if (scale === null || scale === 1) return "";
  return Math.abs(scale - query.length ** -0.5) < 1e-6 ? `÷ √${query.length}` : `× ${plain(scale)}`;
}

/** @param {number} weight */
function weightBar(weight) {
  const shade = palette();
  const level = Math.round(255 * Math.sqrt(Math.min(1, weight)));
  const node = make("span", { className: "rg-weight", textContent: number(weight, 3) });
  node.style.background = shade.css[level];
  node.style.color = shade.ink[level];
  return node;
}

/** @param {number[]} values @param {number} largest @param {string} label @param {number} share how much of it is taken */
function vector(values, largest, label, share) {
  const few = values.length <= FEW;
  const node = make("span", { className: few ? "rg-vector" : "rg-vector many", role: "img", "aria-label": `${label}: ${values.slice(0, 8).map(plain).join(", ")}${values.length > 8 ? "…" : ""}`, title: label });
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

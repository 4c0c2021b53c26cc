// <rg-screen-steps>: one row of attention computed step by step, with the numbers of a model or, for
// any sentence, with made-up ones and any score, normalizer and mask.

import { onColourChange } from "/page/colours.js";
import { define, make } from "/page/elements.js";
import { displayText } from "/page/token-text.js";
import { AttentionChoices, describeChoice, PROVERBS } from "../attention-choices.js";
import { fillSelect, errorMessage, loadingMessage, noText, NothingToDraw, selectField } from "../controls.js";
import { lookName } from "/page/look-names.js";
import { selectLooks, indexFromState } from "../look-selection.js";
import { stagesPicture } from "../export-pictures.js";
import { sheetMenu } from "../export.js";
import { makeTableToggle } from "../drawing-options.js";
import { describeProjection, describeSteps, FEW, formatNumber, projectedExample, projectionMatrices, projectionSum, sameVectors, scaling, vector, weightBar } from "../steps-parts.js";
import "./stylesheet.js";

/** @typedef {import("../app.js").Context} Context */
/** @typedef {import("../steps-parts.js").Stages} Stages */
/** @typedef {import("../steps-parts.js").Projected} Projected */

const LONGEST = 1000;
const STAGES = 5;

class StepsScreen extends HTMLElement {
  /** @type {Context} */
  context = /** @type {any} */ (null);
  #turn = 0;
  #of = selectField("Model", (model) => this.context.setState({ of: undefined, model, ...FRESH }, { push: true }));
  #look = selectField("Attention", (look) => this.context.setState({ look, layer: undefined, head: undefined, row: undefined, column: undefined }));
  #layer = selectField("Layer", (layer) => this.context.setState({ layer }));
  #head = selectField("Head", (head) => this.context.setState({ head }));
  input = /** @type {import("../controls.js").InputElement} */ (document.createElement("rg-input"));
  message = document.createElement("div");
  card = make("section", { className: "rg-panel-card", "aria-label": "Attention, step by step" });
  pickers = make("div", { className: "rg-fields rg-steps-of" }, this.#of.field, this.#look.field, this.#layer.field, this.#head.field);
  /** @type {Map<string, {stages: Stages, projected: Projected | null}>} */
  #known = new Map();
  /** @type {Projected | null} */
  #projected = null;
  /** @type {AttentionChoices} */
  #choices = /** @type {any} */ (null);
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
    this.#choices = new AttentionChoices(context, ["score", "normalize", "mask"]);
    this.append(this.pickers, input, this.message, this.card);
    this.#shape = makeTableToggle(context, "Steps");
    this.#menu = sheetMenu(() => "steps", {
      title: () => `Where does ‘${displayText(this.#stages?.query_token ?? "", 24)}’ look?`,
      picture: () => this.#stages && stagesPicture(this.#stages, describeSteps(this.#stages)),
      tables: () => (this.#stages ? [/** @type {HTMLTableElement} */ (this.#table(this.#stages).firstElementChild)] : []),
      json: () => this.#stages,
    }, context);
    context.keys({ "[": () => this.#headBy(-1), "]": () => this.#headBy(1) });
    onColourChange(() => { if (this.isConnected) this.update(); });
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
    this.#go(event.shiftKey ? this.#step - 1 : this.#step === this.#last ? 1 : this.#step + 1);
  }

  /** how many steps there are: numbers of a model begin with query and keys */
  get #last() { return STAGES + Number(this.#projected !== null); }

  get #step() { return Math.min(this.#last, Math.max(1, Number(this.context.state.step) || 1)); }

  /** @param {number} step */
  #go(step) {
    if (step < 1 || step > this.#last) return;
    this.context.setState({ step: step === 1 ? undefined : step });
  }

  async update() {
    const turn = ++this.#turn;
    if (!this.input.isConnected) this.#build();
    const { context, input, message } = this;
    const { state } = context;
    const ready = context.models.filter((model) => model.ready);
    const model = ready.find((one) => one.id === (state.of ?? state.model)) ?? null;
    fillSelect(this.#of.select, [["", "No model: made-up numbers"], ...ready.map((one) => /** @type {[string, string]} */ ([one.id, one.id]))], model?.id ?? "");
    input.examples = model ? null : PROVERBS;
    input.show();
    for (const pick of [this.#look, this.#layer, this.#head]) pick.field.hidden = true;
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
      this.#projected = found.projected;
      const sum = found.stages.weights.reduce((total, weight) => total + weight, 0);
      context.legend(null, Math.abs(sum - 1) < 1e-3 ? "the weights sum to 1" : "these weights need not sum to 1");
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
    await context.busy(this.#choices.load());
    this.#choices.show();
    const choices = this.#choices.body();
    const requested = indexFromState(state, "row");
    const chosen = requested >= 0 && requested < words.length ? requested : Math.min(2, words.length - 1);
    const key = JSON.stringify([text, choices, chosen]);
    let found = this.#known.get(key);
    if (!found) {
      const reply = await context.busy(context.api.json("/v1/steps", { text, row: chosen, ...choices }));
      found = { stages: /** @type {Stages} */ (reply.steps[0]), projected: projectedExample(reply, reply.steps[0]) };
      this.#known.set(key, found);
    }
    return { ...found, words, chosen };
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
    fillSelect(this.#look.select, found.names.map((name) => [name, lookName(name)]), found.name);
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
    let known = this.#known.get(key);
    if (!known) {
      const stages = /** @type {Stages & {projected: Projected | null}} */ (await context.busy(context.api.json(`/v1/models/${encodeURIComponent(model.id)}/steps`, body)));
      known = { stages, projected: stages.projected };
      this.#known.set(key, known);
    }
    return { ...known, words, chosen };
  }

  /** @param {Stages} stages @param {string[]} words @param {number} chosen @param {boolean} example */
  #draw(stages, words, chosen, example) {
    const { context } = this;
    const step = this.#step;
    const column = this.#column(stages);
    const active = document.activeElement instanceof HTMLElement && this.#choices.bar.contains(document.activeElement) ? document.activeElement : null;
    const focus = this.contains(document.activeElement) ? /** @type {HTMLElement} */ (document.activeElement).dataset.keep : undefined;
    const projected = this.#projected;
    const descriptions = [...(projected ? [describeProjection(stages, projected)] : []), ...describeSteps(stages)];
    const stage = projected ? step - 1 : step;
    const table = context.state.shape === "table";
    this.#shape?.show();
    this.card.replaceChildren(
      make("div", { className: "rg-card-head" },
        make("h2", {}, "Where does ", make("bdi", { className: "rg-answer", textContent: displayText(stages.query_token, 24) }), " look?"),
        make("div", { className: "rg-fields" }, example ? "" : make("span", { className: "rg-badge", textContent: describeChoice("score", stages.score)[0] }), this.#shape, this.#menu)),
      example ? this.#choices.bar : "",
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
          make("button", { type: "button", className: "rg-button primary", "data-keep": "next", on: { click: () => this.#go(step === this.#last ? 1 : step + 1) } }, step === this.#last ? "Restart" : "Next", make("kbd", { textContent: "Space", "aria-hidden": "true" })))),
      ...(projected && stage === 0 && !table ? [projectionMatrices(projected)] : []),
      table ? this.#table(stages) : this.#grid(stages, stage, column),
      make("p", { className: "rg-sum", textContent: this.#sum(stages, stage, column), dir: "ltr" }));
    // the fields of choices are moved, not made anew, and would lose the focus
    if (active && active.isConnected && this.card.contains(active)) active.focus();
    else if (focus) /** @type {HTMLElement | null} */ (this.card.querySelector(`[data-keep="${focus}"]`))?.focus();
    context.say(`Step ${step}, ${descriptions[step - 1][0].toLowerCase()}. ${this.#describe(stages, stage, column)}`);
  }

  /** @param {Stages} stages */
  #column(stages) {
    const requested = indexFromState(this.context.state, "column");
    return requested >= 0 && requested < stages.key_tokens.length ? requested : stages.weights.reduce((best, weight, i) => (weight > stages.weights[best] ? i : best), 0);
  }

  /** @param {Stages} stages @param {number} step counted from 0, the projection @param {number} column */
  #describe(stages, step, column) {
    if (step === 0) return `‘${displayText(stages.query_token)}’: ${this.#sum(stages, 0, column)}`;
    const value = [stages.products ?? stages.scores, stages.biased, stages.biased, stages.weights, stages.weights][step - 1][column];
    const closed = step >= 3 && !stages.allowed[column];
    return `‘${displayText(stages.query_token)}’ and ‘${displayText(stages.key_tokens[column])}’: ${closed ? "masked" : formatNumber(value, step >= 4 ? 3 : 2)}`;
  }

  /** @param {Stages} stages @param {number} step @param {number} column */
  #grid(stages, step, column) {
    const { context } = this;
    const first = stages.products ?? stages.scores;
    const chooseKey = (/** @type {number} */ i) => context.setState({ column: i });
    const made = this.#projected;
    const own = made !== null && !sameVectors(made, stages);
    const largest = Math.max(1e-9, ...(made?.key_inputs.flat().map(Math.abs) ?? []), ...(own ? made.query_input.map(Math.abs) : []), ...stages.query.map(Math.abs), ...stages.keys.flat().map(Math.abs));
    const widest = Math.max(1e-9, ...stages.values.flat().map(Math.abs), ...stages.output.map(Math.abs));
    const rows = /** @type {[number, string, (i: number) => Node | string, Node | string][]} */ ([
      [1, stages.outer ? "w · tanh(q + k)" : { bilinear: "xᵀW · key", cosine: "cosine", mlp: "query · tanh(key)", location: "W query" }[stages.score] ?? "query · key", (i) => formatNumber(first[i]), ""],
      [2, scaling(stages) || "no scaling", (i) => formatNumber(stages.biased[i]), ""],
      [3, "mask", (i) => (stages.allowed[i] ? "allowed" : make("span", { className: "rg-hidden-key", textContent: "masked" })), ""],
      [4, `${describeChoice("normalize", stages.normalize)[0].toLowerCase()}${stages.temperature === 1 ? "" : `, T = ${stages.temperature}`}`, (i) => weightBar(stages.weights[i]), formatNumber(stages.weights.reduce((sum, weight) => sum + weight, 0), 3)],
    ]);
    const cell = (/** @type {number} */ i, /** @type {Node | string} */ inner, /** @type {string} */ kind = "") =>
      make("td", { className: `${i === column ? "chosen" : ""} ${kind} ${stages.allowed[i] || step < 3 ? "" : "closed"}`, on: { click: () => chooseKey(i) } }, inner);
    const body = rows.map(([at, name, inner, sum]) => make("tr", { className: step === at ? "now" : step < at ? "later" : "" },
      make("th", { scope: "row" }, make("span", { className: "rg-row-name", textContent: name })),
      ...stages.key_tokens.map((_, i) => cell(i, step < at ? make("span", { "aria-hidden": "true", textContent: "·" }) : inner(i))),
      make("td", { className: "rg-total", textContent: "" }, step >= at ? sum : "")));
    const values = make("tr", { className: step === STAGES ? "now" : "later" },
      make("th", { scope: "row" }, make("span", { className: "rg-row-name", textContent: "weight · value" })),
      ...stages.key_tokens.map((_, i) => cell(i, step < STAGES ? make("span", { "aria-hidden": "true", textContent: "·" }) : vector(stages.values[i], widest, `value of ${displayText(stages.key_tokens[i])}`, Math.max(0.12, stages.weights[i] / Math.max(...stages.weights, 1e-9))))),
      make("td", { className: "rg-total" }, step === STAGES ? vector(stages.output, widest, "output", 1) : ""));
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
        ...(made ? [make("tr", { className: step === 0 ? "vectors now" : "vectors" }, make("th", { scope: "row" }, ...(own
          ? [make("span", { className: "rg-query" }, make("span", { textContent: "x" }), vector(made.query_input, largest, `vector of ${displayText(stages.query_token)}`, 1), make("span", { className: "rg-row-name", textContent: "vectors x" }))]
          : [make("span", { className: "rg-row-name", textContent: "word vectors x" })])),
          ...stages.key_tokens.map((word, i) => make("td", { className: i === column ? "chosen" : "", on: { click: () => chooseKey(i) } }, vector(made.key_inputs[i], largest, `vector of ${displayText(word)}`, 1))), make("td", { className: "rg-total" }))] : []),
        make("tr", { className: step <= 1 ? "vectors now" : "vectors" }, make("th", { scope: "row" }, make("span", { className: "rg-query" }, make("span", { textContent: "query" }), vector(stages.query, largest, `query of ${displayText(stages.query_token)}`, 1), make("span", { className: "rg-row-name", textContent: "keys" }))),
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
    const vectors = (/** @type {number[]} */ all) => `${all.slice(0, 8).map((value) => formatNumber(value)).join(" ")}${all.length > 8 ? ` … (${all.length})` : ""}`;
    return make("div", { className: "table-scroller rg-table", tabIndex: 0, role: "region", "aria-label": "All numbers as a table" }, make("table", {},
      make("caption", { textContent: `query ${vectors(stages.query)} → output ${vectors(stages.output)}` }),
      make("thead", {}, make("tr", {}, ...["key", "vector", "score", "scaled", "allowed", "weight", "value"].map((name) => make("th", { scope: "col", textContent: name })))),
      make("tbody", {}, ...stages.key_tokens.map((word, i) => make("tr", {}, make("th", { scope: "row", textContent: displayText(word) }), ...[vectors(stages.keys[i]), formatNumber((stages.products ?? stages.scores)[i]), formatNumber(stages.biased[i]), stages.allowed[i] ? "yes" : "no", formatNumber(stages.weights[i], 3), vectors(stages.values[i])].map((textContent) => make("td", { textContent })))))));
  }

  /** @param {Stages} stages @param {number} step @param {number} column @returns {string} the arithmetic of one key */
  #sum(stages, step, column) {
    if (step === 0) return this.#projected ? projectionSum(this.#projected, stages) : "";
    const word = `‘${displayText(stages.key_tokens[column], 20)}’: `;
    const { query, outer, allowed, biased, weights, scale } = stages;
    const key = stages.keys[column];
    const first = (stages.products ?? stages.scores)[column];
    if (step === 1 && stages.score === "location") return `${word}the score of position ${column + 1} is ${formatNumber(first)}`;
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
    const { temperature } = stages;
    const divided = temperature === 1 ? formatNumber(biased[column]) : `(${formatNumber(biased[column])} ÷ ${temperature})`;
    if (step === 4) return stages.normalize === "softmax" ? `${word}e^${divided} ÷ ${formatNumber(biased.reduce((sum, score, i) => sum + (allowed[i] ? Math.exp(score / temperature) : 0), 0))} = ${formatNumber(weights[column], 3)}` : `${word}${describeChoice("normalize", stages.normalize)[0].toLowerCase()} makes ${formatNumber(weights[column], 3)} of ${divided}`;
    const some = stages.output.slice(0, FEW).map((value) => formatNumber(value)).join(", ");
    return `${formatNumber(weights[column], 3)} of ${word.slice(0, -2)} goes into the output: [${some}${stages.output.length > FEW ? ", …" : ""}]`;
  }
}

const FRESH = { text: undefined, look: undefined, layer: undefined, head: undefined, row: undefined, column: undefined };

define("rg-screen-steps", StepsScreen);

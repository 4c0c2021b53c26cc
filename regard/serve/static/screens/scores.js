// <rg-screen-scores>: how score, normalizer, temperature, mask and position change the scores and the
// weights among the words of any sentence. No model is needed: words have made-up vectors.

import { define, make } from "/page/elements.js";
import "/page/matrix.js";
import { differencePicture, matrixPicture } from "/page/svg-export.js";
import { strongestKey } from "/page/text-shading.js";
import { displayText, formatWeight } from "/page/token-text.js";
import { AttentionChoices, describeChoice, PROVERBS } from "../attention-choices.js";
import { errorMessage, loadingMessage, noText } from "../controls.js";
import { formatSigned } from "../difference-matrix.js";
import { makeTableToggle } from "../drawing-options.js";
import { sheetMenu, sideBySide } from "../export.js";
import { indexFromState } from "../look-selection.js";
import { tile } from "./gradient.js";
import "./stylesheet.js";

/** @typedef {import("../app.js").Context} Context */
/** @typedef {import("/page/weights.js").View} View */
/** @typedef {{words: string[], scores: number[][], allowed: boolean[][], weights: number[][]}} Matrices */

const KINDS = ["score", "normalize", "mask", "position"];
const PLAIN = /** @type {import("/page/colour-scale.js").Scale} */ ({ kind: "linear", rows: false, threshold: 0 });

class ScoresScreen extends HTMLElement {
  /** @type {Context} */
  context = /** @type {any} */ (null);
  input = /** @type {import("../controls.js").InputElement} */ (document.createElement("rg-input"));
  message = document.createElement("div");
  card = make("section", { className: "rg-panel-card", "aria-label": "Scores and weights" });
  formula = make("p", { className: "rg-told" });
  described = make("dl", { className: "rg-choices" });
  tiles = make("div", { className: "rg-tiles" });
  sum = make("p", { className: "rg-sum", dir: "ltr" });
  tables = make("div", { className: "rg-two", hidden: true });
  drawings = make("div", { className: "rg-two rg-scores" });
  scores = /** @type {import("../difference-matrix.js").DifferenceElement} */ (document.createElement("rg-difference"));
  weights = /** @type {import("/page/elements.js").Drawing} */ (document.createElement("regard-matrix"));
  signed = /** @type {import("../difference-matrix.js").DifferenceElement} */ (document.createElement("rg-difference"));
  #turn = 0;
  /** @type {Matrices | null} */
  #matrices = null;
  /** @type {{scores: View, weights: View, negative: boolean} | null} */
  #views = null;
  /** @type {Map<string, Promise<Matrices>>} */
  #known = new Map();
  /** @type {AttentionChoices} */
  #choices = /** @type {any} */ (null);
  /** @type {import("../drawing-options.js").TableToggleElement | null} */
  #shape = null;

  #build() {
    const { context, input } = this;
    this.#choices = new AttentionChoices(context, KINDS);
    input.context = context;
    input.longest = 1000;
    input.label = "Sentence";
    input.action = "Show";
    input.models = () => [];
    input.examples = PROVERBS;
    this.#shape = makeTableToggle(context, "Matrices");
    const menu = sheetMenu(() => "scores", {
      title: () => "Scores and weights",
      picture: () => this.#picture(),
      tables: () => this.#tablesOf(),
      json: () => this.#matrices && { ...this.#choices.body(), ...this.#matrices },
    }, context);
    this.drawings.append(
      make("section", { "aria-label": "Scores" }, make("h3", { textContent: "Scores" }), this.scores),
      make("section", { "aria-label": "Weights" }, make("h3", { textContent: "Weights" }), this.weights, this.signed));
    this.card.append(
      make("div", { className: "rg-card-head" }, make("h2", { textContent: "Which word looks at which, and why" }), make("div", { className: "rg-fields" }, this.#shape, menu)),
      this.#choices.bar, this.formula, this.drawings, this.tables, this.sum, this.tiles, this.described);
    this.append(input, this.message, this.card);
    this.card.addEventListener("regard-select", (event) => {
      const { row, column } = /** @type {CustomEvent} */ (event).detail;
      context.setState({ row, column: column < 0 ? undefined : column }, { quiet: true });
      this.#select();
    });
    this.card.addEventListener("regard-hover", (event) => {
      const { row, column } = /** @type {CustomEvent} */ (event).detail;
      context.showHover(row >= 0 && column >= 0 ? this.#cell(row, column) : "");
    });
    context.keys({});
  }

  async update() {
    const turn = ++this.#turn;
    if (!this.#choices) this.#build();
    const { context, input, message, card } = this;
    const choices = this.#choices;
    input.show();
    if (!this.#matrices) {
      card.hidden = true;
      message.replaceChildren(loadingMessage());
    }
    try {
      await context.busy(choices.load());
      if (turn !== this.#turn) return;
      choices.show();
      const text = input.text.trim().split(/\s+/u).join(" ");
      if (!text) throw noText();
      const body = { text, ...choices.body() };
      const key = JSON.stringify(body);
      const wanted = this.#known.get(key) ?? context.api.json("/v1/attention", body);
      wanted.catch(() => this.#known.delete(key));
      this.#known.set(key, wanted);
      const found = /** @type {Matrices} */ (await context.busy(wanted));
      if (turn !== this.#turn) return;
      message.replaceChildren();
      card.hidden = false;
      this.#draw(found);
    } catch (error) {
      if (turn !== this.#turn) return;
      card.hidden = true;
      context.legend(null, "");
      message.replaceChildren(errorMessage(error));
    }
  }

  /** @param {Matrices} matrices */
  #draw(matrices) {
    const { context } = this;
    this.#matrices = matrices;
    const scores = viewOf(matrices, matrices.scores.map((line, i) => line.map((score, j) => (matrices.allowed[i][j] ? score : NaN))), "Scores");
    const weights = viewOf(matrices, matrices.weights, "Weights");
    const negative = weights.weights.some((weight) => weight < 0);
    this.#views = { scores, weights, negative };
    this.scores.scale = { ...PLAIN, high: scores.largest };
    this.scores.view = scores;
    this.weights.hidden = negative;
    this.signed.hidden = !negative;
    const drawing = negative ? this.signed : this.weights;
    drawing.scale = { ...PLAIN, high: negative ? weights.largest : Math.max(1e-9, weights.largest) };
    drawing.view = weights;
    const table = context.state.shape === "table";
    this.#shape?.show();
    this.tables.hidden = !table;
    this.drawings.hidden = table;
    if (table) this.tables.replaceChildren(...this.#tablesOf().map((one) => make("div", { className: "table-scroller rg-table", tabIndex: 0, role: "region", "aria-label": one.caption?.textContent ?? "" }, one)));
    this.#describe();
    context.legend(negative ? null : weights, negative ? "weights may be negative: blue above 0, orange below" : { ...PLAIN, high: weights.largest });
    this.#select();
  }

  #describe() {
    const choices = this.#choices;
    const parts = Object.fromEntries(KINDS.map((kind) => [kind, describeChoice(kind, choices.chosen(kind))]));
    const tempered = choices.temperature === 1 ? "" : ` ÷ ${choices.temperature}`;
    const masked = choices.chosen("mask") === "none" ? "" : `,  ${parts.mask[0].toLowerCase()} mask${choices.sized ? ` of ${choices.size}` : ""}`;
    this.formula.replaceChildren(make("code", { className: "rg-formula", textContent: `weights = ${parts.normalize[0].toLowerCase()}( ${parts.score[1]}${tempered}${masked} )` }));
    const temperature = choices.temperature === 1 ? "Scores are used as they are."
      : choices.temperature < 1 ? "Below 1, differences between scores grow: the weights get sharper." : "Above 1, differences between scores shrink: the weights get flatter.";
    const rows = /** @type {[string, string, string, string][]} */ ([
      ["Score", ...parts.score], ["Normalizer", ...parts.normalize], ["Temperature", choices.temperature.toFixed(2), "s ÷ T", temperature],
      ["Mask", ...parts.mask], ["Position", ...parts.position],
    ]);
    this.described.replaceChildren(...rows.map(([kind, name, formula, words]) => make("div", {},
      make("dt", {}, make("span", { className: "over", textContent: kind }), make("strong", { textContent: name }), make("code", { textContent: formula })),
      make("dd", { textContent: words }))));
    const { allowed, weights } = /** @type {Matrices} */ (this.#matrices);
    const all = weights.length ** 2;
    const open = allowed.flat().filter(Boolean).length;
    const zeros = weights.flat().filter((weight, i) => weight === 0 && allowed.flat()[i]).length;
    const entropies = weights.map((line) => {
      const total = line.reduce((sum, weight) => sum + Math.abs(weight), 0) || 1;
      return -line.reduce((sum, weight) => sum + (weight ? (Math.abs(weight) / total) * Math.log2(Math.abs(weight) / total) : 0), 0);
    });
    const entropy = entropies.reduce((sum, bits) => sum + bits, 0) / entropies.length;
    this.tiles.replaceChildren(
      tile(`${open} of ${all}`, "pairs of words are allowed by the mask"),
      tile(String(zeros), "allowed pairs have a weight of exactly 0"),
      tile(`${(2 ** entropy).toFixed(1)}`, `words looked at on average, judged by the entropy (${entropy.toFixed(2)} bits)`),
      tile(formatWeight(Math.max(...weights.flat())), "is the largest weight"));
  }

  #select() {
    const views = this.#views;
    if (!views) return;
    const { state } = this.context;
    const last = views.weights.queries.length - 1;
    const wanted = indexFromState(state, "row");
    const row = wanted >= 0 && wanted <= last ? wanted : Math.min(2, last);
    const key = indexFromState(state, "column");
    const column = key >= 0 && key <= last ? key : strongestKey(views.weights, row);
    for (const drawing of [this.scores, this.weights, this.signed]) drawing.selection = { row, column };
    this.sum.textContent = this.#arithmetic(row, column);
    this.context.say(this.#cell(row, column));
  }

  /** @param {number} row @param {number} column @returns {string} */
  #cell(row, column) {
    const { words, scores, allowed, weights } = /** @type {Matrices} */ (this.#matrices);
    const pair = `‘${displayText(words[row])}’ looks at ‘${displayText(words[column])}’`;
    return allowed[row][column] ? `${pair}: score ${formatSigned(scores[row][column])}, weight ${weights[row][column].toFixed(2).replace("-", "−")}` : `${pair}: masked`;
  }

  /** @param {number} row @param {number} column @returns {string} how a score becomes a weight */
  #arithmetic(row, column) {
    const { words, scores, allowed, weights } = /** @type {Matrices} */ (this.#matrices);
    const choices = this.#choices;
    const pair = `‘${displayText(words[row], 20)}’ → ‘${displayText(words[column], 20)}’: `;
    if (!allowed[row][column]) return `${pair}masked, so the weight is exactly 0`;
    const T = choices.temperature;
    const [score, weight] = [scores[row][column].toFixed(2).replace("-", "−"), weights[row][column].toFixed(2).replace("-", "−")];
    const scaled = T === 1 ? score : `${score} ÷ ${T}`;
    if (choices.chosen("normalize") !== "softmax") return `${pair}${describeChoice("normalize", choices.chosen("normalize"))[0].toLowerCase()} makes ${weight} of ${scaled}`;
    const total = scores[row].reduce((sum, one, j) => sum + (allowed[row][j] ? Math.exp(one / T) : 0), 0);
    return `${pair}e^(${scaled}) ÷ ${total.toFixed(2)} = ${weight}`;
  }

  #picture() {
    const views = this.#views;
    if (!views) return null;
    const { scores, weights, negative } = views;
    return sideBySide([["Scores", differencePicture(scores, scores.largest)], ["Weights", negative ? differencePicture(weights, weights.largest) : matrixPicture(weights, PLAIN)]], 2);
  }

  /** @returns {HTMLTableElement[]} */
  #tablesOf() {
    const matrices = this.#matrices;
    if (!matrices) return [];
    const { words, scores, allowed, weights } = matrices;
    return [["Scores", scores], ["Weights", weights]].map(([name, numbers]) => make("table", {},
      make("caption", { textContent: `${name}: one row per query, one column per key` }),
      make("thead", {}, make("tr", {}, make("th", { scope: "col", textContent: "query" }), ...words.map((word) => make("th", { scope: "col", textContent: displayText(word, 20) })))),
      make("tbody", {}, ...words.map((word, i) => make("tr", {}, make("th", { scope: "row", textContent: displayText(word, 20) }),
        ...words.map((_, j) => make("td", { textContent: allowed[i][j] ? /** @type {number[][]} */ (numbers)[i][j].toFixed(2).replace("-", "−") : "masked" })))))));
  }
}

/** @param {Matrices} matrices @param {number[][]} numbers @param {string} title @returns {View} */
function viewOf(matrices, numbers, title) {
  const tokens = matrices.words.map((text) => ({ text }));
  const weights = Float32Array.from(numbers.flat());
  const ones = numbers.every((line) => Math.abs(line.reduce((sum, one) => sum + one, 0) - 1) < 1e-3);
  return {
    weights, queries: tokens, keys: tokens, largest: weights.reduce((most, one) => Math.max(most, Math.abs(one) || 0), 1e-9), querySide: "query", keySide: "key", title,
    sums: title === "Scores" ? "" : ones ? "each row sums to 1" : "rows need not sum to 1", rows: tokens.map((_, i) => i), columns: tokens.map((_, i) => i), marks: [],
  };
}

define("rg-screen-scores", ScoresScreen);

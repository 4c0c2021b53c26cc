// <rg-screen-gradient>: the attention weight of every word, the gradient that reaches it, and their
// product; next to each bar, the same with attention detached.

import { define, make } from "/page/elements.js";
import { formatWeight, displayText } from "/page/token-text.js";
import { mergeTokens, unitsOf } from "/page/units.js";
import { formatNumber } from "../chart.js";
import { emptyMessage, fillSelect, errorMessage, loadingMessage, selectField } from "../controls.js";
import { indexFromState } from "../look-selection.js";
import { stripsPicture } from "../export-pictures.js";
import { csvOf, exportMenu } from "../export.js";
import { makeTableToggle } from "../drawing-options.js";
import "./stylesheet.js";

/** @typedef {import("../app.js").Context} Context */
/** @typedef {import("/page/weights.js").TraceDocument} TraceDocument */
/** @typedef {import("/page/token-text.js").Token} Token */
/** @typedef {{name: string, short: string, about: string, own: number[], apart: number[] | null}} Lane */

const WAYS = /** @type {[string, string, string][]} */ ([
  ["values", "weights held constant", "gradient through values"],
  ["around", "no gradient through attention", "gradient around attention"],
  ["uniform", "uniform weights", "gradient under uniform attention"],
]);
const LONGEST = 1000;
const LESSON = "Attention gates the gradient: where the weight is near 0, a word hardly reaches the output through it, however much its content would matter.";

class GradientScreen extends HTMLElement {
  /** @type {Context} */
  context = /** @type {any} */ (null);
  #turn = 0;
  #way = selectField("Detach attention", (way) => this.context.setState({ detached: way === WAYS[0][0] ? undefined : way }));
  #output = selectField("Output", (output) => this.context.setState({ output }));
  input = /** @type {import("../controls.js").InputElement} */ (document.createElement("rg-input"));
  message = document.createElement("div");
  card = make("section", { className: "rg-panel-card", "aria-label": "Gradient flow" });
  heading = make("h2", {});
  controls = make("div", { className: "rg-stack" });
  body = make("div", { className: "rg-stack" });
  shade = /** @type {import("../drawing-options.js").ScaleOptionsElement} */ (document.createElement("rg-scale-options"));
  /** @type {TraceDocument | null} */
  #trace = null;
  /** @type {HTMLElement | null} */
  #menu = null;
  /** @type {Token[]} */
  #tokens = [];
  /** @type {Lane[]} */
  #lanes = [];
  /** @type {HTMLElement[]} */
  #words = [];
  #row = 0;
  /** @type {number[]} which tokens of the text these are */
  #places = [];
  #saying = "";
  #title = "";

  #build() {
    const { context, input } = this;
    input.context = context;
    input.longest = LONGEST;
    input.action = "Show gradients";
    input.models = () => context.models.filter((model) => model.ready);
    input.void = { row: undefined, column: undefined, output: undefined };
    this.append(input, this.message, this.card);
    this.shade.context = context;
    this.shade.scaled = false;
    this.shade.units = true;
    this.#menu = exportMenu({ name: () => "gradient", trace: () => this.#trace, picture: () => this.#picture(), more: [["CSV", "csv", () => csvOf(/** @type {HTMLTableElement} */ (this.#table([]).firstElementChild))]] }, context);
    this.shape = makeTableToggle(context, "Bars");
    this.controls.append(
      make("div", { className: "rg-card-head" }, this.heading, make("div", { className: "rg-fields" }, this.shape, this.#menu)),
      make("div", { className: "rg-fields" }, this.#output.field, this.#way.field, this.shade));
    this.card.append(this.controls, make("p", { className: "hint rg-lesson", textContent: LESSON }), this.body);
    context.keys({});
  }

  async update() {
    const turn = ++this.#turn;
    if (!this.input.isConnected) this.#build();
    const { context, input, message, card } = this;
    input.show();
    const { model } = context;
    input.hidden = !model;
    const text = model ? input.text : "";
    context.legend(null, "bars: relative to the largest of each row");
    if (!model || !text.trim()) {
      card.hidden = true;
      message.replaceChildren(emptyMessage(model ? "Enter a text" : "No model is served", model ? "Type a text above and press Enter, or choose an example." : "Start the server with a run folder, such as: regard serve runs/mine"));
      return;
    }
    try {
      if (text.length > LONGEST) throw new Error(`The text has ${text.length} characters; the limit for gradients is ${LONGEST}, because every word is left out in turn.`);
      this.classList.add("waiting");
      if (!this.#trace || card.hidden) {
        card.hidden = true;
        message.replaceChildren(loadingMessage("Computing gradients, and leaving out every word in turn…"));
      }
      const trace = await context.busy(context.api.explain(model.id, { text, attributions: true }));
      if (turn !== this.#turn) return;
      message.replaceChildren();
      card.hidden = false;
      this.#show(trace);
    } catch (error) {
      if (turn !== this.#turn) return;
      card.hidden = true;
      message.replaceChildren(errorMessage(error));
    } finally {
      if (turn === this.#turn) this.classList.remove("waiting");
    }
  }

  /** @param {TraceDocument} trace */
  #show(trace) {
    this.#trace = trace;
    this.shade.show();
    this.shape?.show();
    this.controls.hidden = false;
    const { state } = this.context;
    const all = trace.attributions ?? [];
    const places = [...new Set(all.map((one) => one.output ?? null))];
    if (!places.length) {
      this.controls.hidden = true;
      this.body.replaceChildren(emptyMessage("No gradients", "There is no output to explain for this text. Try a longer one."));
      return;
    }
    const requested = places.findIndex((place) => String(place) === state.output);
    const names = (/** @type {string[]} */ (trace.prediction?.explained?.outputs ?? [])).map((name) => (name === "<eos>" ? "(end)" : name));
    const output = places[requested < 0 ? contentWord(names, places.length) : requested];
    const answer = (/** @type {number | null} */ place) => displayText(names[places.indexOf(place)] ?? trace.output, 24);
    const of = (/** @type {string} */ method) => all.find((one) => one.method === method && (one.output ?? null) === output);
    const gradient = of("gradient");
    const weight = of("attention");
    const [way, saying, method] = WAYS.find(([name]) => name === state.detached) ?? WAYS[0];
    const side = gradient?.side ?? weight?.side ?? "text";
    const whole = trace.sides[side]?.tokens ?? [];
    // weights and gradients of the pieces of a word are summed, as attention to a word is attention to its pieces
    const units = unitsOf(whole, state.unit === "words" ? "words" : "tokens").filter(([first]) => !(state.specials === "hide" && whole[first].special));
    const some = (/** @type {number[] | null | undefined} */ values) => (values ? units.map((unit) => unit.reduce((sum, i) => sum + values[i], 0)) : null);
    this.#tokens = mergeTokens(whole, units);
    this.#places = units.map(([first]) => first);
    const weights = some(weight?.values);
    const apart = some(of(method)?.values);
    const gradients = some(gradient?.values) ?? this.#tokens.map(() => 0);
    const times = (/** @type {number[] | null} */ values) => (weights && values ? values.map((value, i) => value * weights[i]) : null);
    this.#lanes = [
      ...(weights ? [{ name: "Weight", short: "weight", about: "how much it was looked at", own: weights, apart: null }] : []),
      { name: "Gradient", short: "gradient", about: "how much the output depends on it", own: gradients, apart },
      ...(weights ? [{ name: "Weight × gradient", short: "product", about: "the product of both", own: times(gradients) ?? [], apart: times(apart) }] : []),
    ];
    this.#saying = saying;
    this.#title = `What “${answer(output)}” depends on`;
    fillSelect(this.#way.select, WAYS.filter(([, , name]) => of(name)).map(([name, label]) => [name, label]), way);
    fillSelect(this.#output.select, places.map((place) => [String(place), place === null ? answer(place) : `${place + 1}. ${answer(place)}`]), String(output));
    this.#way.field.hidden = !apart;
    this.#output.field.hidden = places.length < 2;
    const at = this.#places.indexOf(indexFromState(state, "row"));
    this.#row = at < 0 ? argmax(gradients) : at;
    this.heading.replaceChildren("What ", make("bdi", { className: "rg-answer", textContent: `“${answer(output)}”` }), " depends on");
    const hadFocus = this.body.contains(document.activeElement);
    this.body.replaceChildren(state.shape === "table" ? this.#table(this.#words = []) : this.#strips(), this.#summary(saying, gradients, apart, weights));
    if (hadFocus) /** @type {HTMLElement | null} */ (this.body.querySelector("[tabindex]"))?.focus();
    this.#select(this.#row);
  }

  #picture() {
    if (!this.#trace || !this.#lanes.length) return null;
    const low = this.#threshold;
    const cut = (/** @type {number[]} */ values) => values.map((value) => (value < low * Math.max(...values) ? 0 : value));
    const lanes = this.#lanes.map((lane) => ({ ...lane, own: cut(lane.own), apart: lane.apart && cut(lane.apart) }));
    return stripsPicture(this.#title, this.#tokens.map((token) => token.text), lanes, this.#saying);
  }

  /** @returns {number} the share of a strip's largest below which a bar is left out */
  get #threshold() { return Math.min(0.5, Math.max(0, Number(this.context.state.threshold) || 0)); }

  #strips() {
    const lanes = this.#lanes;
    const grid = make("div", {
      className: "rg-strips", tabIndex: 0, role: "listbox", dir: "auto", "aria-label": "Words: use the arrow keys to move", "aria-orientation": "horizontal",
      on: { keydown: (/** @type {KeyboardEvent} */ event) => this.#key(event) },
    });
    const low = this.#threshold;
    const largest = lanes.map((lane) => Math.max(1e-12, ...lane.own, ...(lane.apart ?? [])));
    this.#words = this.#tokens.map((token, i) => {
      const cells = lanes.map((lane, l) => make("span", { className: "rg-strip-cell", "aria-hidden": "true" },
        bar(lane.own[i] / largest[l], `lane-${l}`, low),
        lane.apart ? bar(lane.apart[i] / largest[l], "apart", low) : null));
      return make("span", {
        className: `rg-strip-word${token.special ? " special" : ""}`, role: "option", id: `rg-strip-${i}`, "aria-label": this.#describe(i),
        on: { click: () => this.#select(i), pointerenter: () => this.context.showHover(this.#describe(i)), pointerleave: () => this.context.showHover("") },
      }, make("span", { className: "rg-strip-name", textContent: displayText(token.text, 16) }), ...cells);
    });
    grid.append(...this.#words);
    const names = make("div", { className: "rg-strip-lanes", "aria-hidden": "true" }, make("span", { className: "rg-strip-name" }), ...lanes.map((lane, l) =>
      make("span", { className: "rg-strip-lane" }, make("strong", {}, make("i", { className: `rg-swatch lane-${l}` }), lane.name), make("span", { textContent: lane.about }))));
    return make("div", { className: "rg-strip-frame" }, names, grid);
  }

  /** @param {HTMLElement[]} lines takes the lines of the table */
  #table(lines) {
    const lanes = this.#lanes;
    const head = make("tr", {}, make("th", { scope: "col", textContent: "word" }), ...lanes.flatMap((lane) => [
      make("th", { scope: "col", textContent: lane.name }), lane.apart ? make("th", { scope: "col", textContent: "detached" }) : null].filter((node) => node !== null)));
    const body = this.#tokens.map((token, i) => {
      const line = make("tr", { on: { click: () => this.#select(i) } }, make("th", { scope: "row", textContent: displayText(token.text) }), ...lanes.flatMap((lane) => [
        make("td", { textContent: formatNumber(lane.own[i]) }), lane.apart ? make("td", { textContent: formatNumber(lane.apart[i]) }) : null].filter((node) => node !== null)));
      lines.push(line);
      return line;
    });
    return make("div", { className: "table-scroller rg-table", tabIndex: 0, role: "region", "aria-label": "Gradient flow as a table" },
      make("table", {}, make("caption", { textContent: "Weight, gradient and their product for every word" }), make("thead", {}, head), make("tbody", {}, ...body)));
  }

  /** @param {number} i @returns {string} */
  #describe(i) {
    const parts = this.#lanes.map((lane) => `${lane.short} ${formatNumber(lane.own[i])}${lane.apart && lane.short === "gradient" ? ` (${formatNumber(lane.apart[i])} detached)` : ""}`);
    return `‘${displayText(this.#tokens[i].text)}’: ${parts.join(", ")}`;
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const rtl = getComputedStyle(/** @type {Element} */ (event.currentTarget)).direction === "rtl" ? -1 : 1;
    const to = /** @type {Record<string, number>} */ ({ ArrowRight: this.#row + rtl, ArrowLeft: this.#row - rtl, Home: 0, End: this.#tokens.length - 1 })[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.#select(Math.min(this.#tokens.length - 1, Math.max(0, to)));
  }

  /** @param {number} row */
  #select(row) {
    if (!this.#tokens.length) return;
    this.#row = row;
    this.#words.forEach((word, i) => {
      word.classList.toggle("chosen", i === row);
      if (word.role === "option") word.setAttribute("aria-selected", String(i === row));
    });
    const list = this.#words[row]?.parentElement;
    if (list?.role === "listbox") {
      list.setAttribute("aria-activedescendant", `rg-strip-${row}`);
      const word = this.#words[row];
      if (word.offsetLeft < list.scrollLeft || word.offsetLeft + word.offsetWidth > list.scrollLeft + list.clientWidth) list.scrollLeft = word.offsetLeft - list.clientWidth / 2;
    }
    this.context.setState({ row: this.#places[row] }, { quiet: true });
    this.context.say(this.#describe(row));
  }

  /** @param {string} saying @param {number[]} gradients @param {number[] | null} apart @param {number[] | null} weights */
  #summary(saying, gradients, apart, weights) {
    const total = gradients.reduce((sum, value) => sum + value, 0) || 1;
    const tiles = [];
    if (apart) tiles.push(tile(`${Math.round((100 * apart.reduce((sum, value) => sum + value, 0)) / total)} %`, `of the gradient remains with ${saying}`));
    if (weights && weights.length > 2) tiles.push(tile(formatWeight(spearman(weights, gradients)).replace("-", "−"), "rank correlation of weight and gradient; 1 if both rank the words alike"));
    const best = argmax(gradients);
    tiles.push(tile(displayText(this.#tokens[best]?.text ?? "", 14), "has the largest gradient"));
    return make("div", { className: "rg-summary" },
      apart ? make("p", { className: "rg-twin-key" }, make("i", { className: "rg-swatch lane-1" }), "unchanged ", make("i", { className: "rg-swatch apart" }), `attention detached: ${saying}`) : null,
      make("div", { className: "rg-tiles" }, ...tiles));
  }
}

/** @param {number} share @param {string} kind @param {number} low below which it is not drawn */
function bar(share, kind, low) {
  const node = make("span", { className: `rg-strip-bar ${kind}${share < low ? " below" : ""}` });
  node.style.height = `${Math.max(1.5, 100 * Math.max(0, share))}%`;
  return node;
}

/**
 * @param {string[]} names the outputs in words @param {number} count how many there are
 * @returns {number} the first content word among them: the first long one, or the first with letters
 */
function contentWord(names, count) {
  const letters = (/** @type {string} */ name) => (name.match(/\p{L}/gu) ?? []).length;
  const words = names.slice(0, count).map((name) => (name.startsWith("(") || name.startsWith("<") ? 0 : letters(name)));
  const long = words.findIndex((size) => size > 3);
  const first = long < 0 ? words.findIndex((size) => size > 0) : long;
  return first < 0 ? count - 1 : first;
}

/** @param {string} value @param {string} label */
export function tile(value, label) {
  return make("div", { className: "rg-tile" }, make("bdi", { className: "rg-tile-value", textContent: value }), make("span", { textContent: label }));
}

/** @param {number[]} values @returns {number} */
function argmax(values) {
  return values.reduce((best, value, i) => (value > values[best] ? i : best), 0);
}

/** @param {number[]} some @param {number[]} others @returns {number} Spearman's: that of the ranks, ties shared */
function spearman(some, others) {
  const ranks = (/** @type {number[]} */ values) => values.map((value) => values.filter((other) => other < value).length + (values.filter((other) => other === value).length - 1) / 2);
  const [a, b] = [ranks(some), ranks(others)];
  const middle = (some.length - 1) / 2;
  const sum = (/** @type {number[]} */ x, /** @type {number[]} */ y) => x.reduce((total, value, i) => total + (value - middle) * (y[i] - middle), 0);
  return sum(a, b) / Math.sqrt(sum(a, a) * sum(b, b) || 1);
}

define("rg-screen-gradient", GradientScreen);

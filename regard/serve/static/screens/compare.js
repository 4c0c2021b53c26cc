// <rg-screen-compare>: one text in two models, or in two looks of one, on a shared scale, and the
// difference of the two.

import { define, make } from "/page/elements.js";
import "/page/matrix.js";
import { differencePicture, matrixPicture } from "/page/pictures.js";
import { number, shown } from "/page/words.js";
import { empty, fill, notice, picker } from "../controls.js";
import { differenceKey, signed } from "../difference.js";
import { choose, placeOf, scaleOf, viewFor } from "../looking.js";
import { besides, jsonOf, sheetMenu } from "../saving.js";
import { shapeOf } from "../shade.js";
import "./styled.js";

/** @typedef {import("../app.js").Context} Context */
/** @typedef {import("/page/weights.js").TraceDocument} TraceDocument */
/** @typedef {import("/page/weights.js").View} View */
/** @typedef {import("/page/elements.js").Drawing} Drawing */
/** @typedef {"a" | "b"} Which */

const MOST_LINES = 2000;

/** One of the two: what is chosen in it, and where it is drawn. */
class Half {
  matrix = /** @type {Drawing} */ (document.createElement("regard-matrix"));
  title = make("h2", {});
  output = make("p", { className: "rg-its-answer" });
  /** @type {Record<string, ReturnType<typeof picker>>} */
  pick;

  /** @param {Which} which @param {(partial: Record<string, string | undefined>) => void} set */
  constructor(which, set) {
    const named = (/** @type {string} */ label, /** @type {(value: string) => Record<string, string | undefined>} */ change) => {
      const made = picker(label, (value) => set(change(value)));
      made.select.setAttribute("aria-label", `${label} of ${which.toUpperCase()}`);
      return made;
    };
    this.which = which;
    this.pick = {
      model: named("Model", (value) => ({ [which === "a" ? "model" : "other"]: value, [`${which}look`]: undefined, [`${which}layer`]: undefined, [`${which}head`]: undefined, ...(which === "a" ? { text: undefined } : {}) })),
      look: named("Look", (value) => ({ [`${which}look`]: value, [`${which}layer`]: undefined, [`${which}head`]: undefined })),
      layer: named("Layer", (value) => ({ [`${which}layer`]: value })),
      head: named("Heads", (value) => ({ [`${which}head`]: value === "mean" ? undefined : value })),
    };
    this.node = make("section", { className: "rg-half", "aria-label": which === "a" ? "First" : "Second" },
      make("div", { className: "rg-fields" }, make("span", { className: `rg-badge ${which}`, textContent: which.toUpperCase(), "aria-hidden": "true" }), ...Object.values(this.pick).map((one) => one.field)),
      this.output, this.title, this.matrix);
  }
}

class CompareScreen extends HTMLElement {
  /** @type {Context} */
  context = /** @type {any} */ (null);
  input = /** @type {import("../controls.js").InputElement} */ (document.createElement("rg-input"));
  message = document.createElement("div");
  #turn = 0;
  #a = new Half("a", (partial) => this.context.setState({ ...partial, row: undefined, column: undefined }));
  #b = new Half("b", (partial) => this.context.setState({ ...partial, row: undefined, column: undefined }));
  shade = /** @type {import("../shade.js").ShadeElement} */ (document.createElement("rg-shade"));
  /** @type {[TraceDocument, TraceDocument] | null} */
  #traces = null;
  /** @type {[View, View] | null} */
  #views = null;
  /** @type {View | null} */
  #gap = null;
  difference = /** @type {Drawing} */ (document.createElement("rg-difference"));
  table = make("div", { className: "table-scroller rg-table", tabIndex: 0, role: "region", "aria-label": "Both and their difference as a table" });
  key = make("div", {});
  most = make("ol", { className: "rg-gaps" });
  third = make("section", { className: "rg-half rg-third", "aria-label": "Difference" });
  #gaps = make("div", {}, make("h2", { textContent: "Where they differ most" }), this.most);
  board = make("div", { className: "rg-compare" });
  bar = make("div", { className: "rg-card-head" });
  /** @type {import("../shade.js").ShapeElement | null} */
  shape = null;
  #names = ["", ""];

  #build() {
    const { context, input } = this;
    input.context = this.shade.context = context;
    input.action = "Compare";
    input.label = "Text for both";
    input.fits = () => false;
    this.third.append(make("div", { className: "rg-fields" }, make("span", { className: "rg-badge", textContent: "A − B" }), make("span", { className: "hint", textContent: "where one looks more than the other" })), this.key, make("h2", { textContent: "A minus B" }), this.difference, this.#gaps);
    this.board.append(this.#a.node, this.#b.node, this.third);
    const menu = sheetMenu(() => "compare", {
      title: () => `${this.#names.join(" and ")}: one text, two looks`,
      picture: () => this.#picture(),
      tables: () => (this.#views ? [this.#tableOf(this.#views)] : []),
      json: () => this.#traces && { a: this.#traces[0], b: this.#traces[1] },
    }, context, [
      ["JSON of A", "json", () => this.#traces && jsonOf(this.#traces[0])],
      ["JSON of B", "json", () => this.#traces && jsonOf(this.#traces[1])],
    ]);
    this.bar.append(this.shade, make("div", { className: "rg-fields" }, (this.shape = shapeOf(context, "Maps")), menu));
    const { bar } = this;
    this.append(input, bar, this.message, this.board, this.table);
    this.board.addEventListener("regard-select", (event) => this.#select(/** @type {CustomEvent} */ (event).detail));
    this.board.addEventListener("regard-hover", (event) => {
      const { row, column } = /** @type {CustomEvent} */ (event).detail;
      context.pass(row >= 0 && column >= 0 ? this.#sentence(row, column) : "");
    });
    context.keys({});
  }

  async update() {
    const turn = ++this.#turn;
    if (!this.input.isConnected) this.#build();
    const { context, input, message } = this;
    const { state } = context;
    input.show();
    this.shade.show();
    this.shape?.show();
    const first = context.model;
    const ready = context.models.filter((model) => model.ready);
    const peers = ready.filter((model) => model.task === first?.task);
    const second = peers.find((model) => model.id === state.other) ?? peers.find((model) => model.id !== first?.id) ?? first;
    const text = first ? input.text : "";
    input.hidden = !first;
    if (!first || !second || !text.trim()) {
      this.board.hidden = this.table.hidden = this.bar.hidden = true;
      message.replaceChildren(empty(first ? "Write something" : "No model is served", first ? "Type a text above and press Enter, or choose an example." : "Start the server with the folder of a run."));
      return;
    }
    this.bar.hidden = false;
    this.#names = [first.id, second.id];
    fill(this.#a.pick.model.select, ready.map((model) => [model.id, model.id]), first.id);
    fill(this.#b.pick.model.select, peers.map((model) => [model.id, model.id]), second.id);
    try {
      this.classList.add("waiting");
      let one = await context.busy(context.api.explain(first.id, { text }));
      // a translation is read along the words of the first, or there would be nothing to subtract
      const target = first.task === "translation" && second.id !== first.id && one.output ? { target: one.output } : {};
      const other = await context.busy(context.api.explain(second.id, { text, ...target }));
      const words = (/** @type {TraceDocument} */ trace) => JSON.stringify(trace.sides.target?.tokens.map((token) => token.text));
      if ("target" in target && words(one) !== words(other)) one = await context.busy(context.api.explain(first.id, { text, ...target }));
      if (turn !== this.#turn) return;
      message.replaceChildren();
      await this.#show(one, other, second.id === first.id, turn);
      if ("target" in target) void this.#free(second.id, text, one.output, turn);
    } catch (error) {
      if (turn !== this.#turn) return;
      this.board.hidden = this.table.hidden = true;
      message.replaceChildren(notice(error));
    } finally {
      if (turn === this.#turn) this.classList.remove("waiting");
    }
  }

  /** What the second one writes by itself, when there is time for it. @param {string} model @param {string} text @param {string} dictated @param {number} turn */
  async #free(model, text, dictated, turn) {
    const own = await this.context.api.explain(model, { text }).catch(() => null);
    if (turn !== this.#turn || !own || own.output === dictated) return;
    this.#b.output.append(make("span", { className: "hint" }, " read along A’s words; by itself: ", make("bdi", { textContent: shown(own.output, 120) })));
  }

  /** @param {Half} half @param {TraceDocument} trace @param {{look?: string, layer?: string, head?: string}} wish */
  #choose(half, trace, wish) {
    const { state } = this.context;
    const { which } = half;
    const asked = { look: state[`${which}look`] ?? wish.look ?? "", layer: state[`${which}layer`] ?? wish.layer ?? "", head: state[`${which}head`] ?? wish.head ?? "mean" };
    const found = choose(trace, { look: asked.look, ...(asked.layer === "" ? {} : { layer: asked.layer }), ...(asked.head === "mean" ? { aggregate: "mean" } : { head: asked.head, aggregate: "one" }) }, { first: ["source", "decoder.source", "past", "decoder.self", "pooling"] });
    if (!found) return null;
    const numbers = (/** @type {number[]} */ all) => all.map((n) => /** @type {[string, string]} */ ([String(n), String(n)]));
    fill(half.pick.look.select, found.names.map((name) => [name, name]), found.name);
    fill(half.pick.layer.select, numbers(found.layers), String(found.layer));
    fill(half.pick.head.select, [["mean", "mean of all"], ...found.heads.map((n) => /** @type {[string, string]} */ ([String(n), `head ${n}`]))], found.aggregate === "one" ? String(found.head) : "mean");
    half.pick.look.field.hidden = found.names.length < 2;
    half.pick.layer.field.hidden = found.layers.length < 2;
    half.pick.head.field.hidden = found.heads.length < 2;
    return found;
  }

  /** @param {TraceDocument} one @param {TraceDocument} other @param {boolean} same @param {number} turn */
  async #show(one, other, same, turn) {
    const { context } = this;
    const first = this.#choose(this.#a, one, {});
    // within one model: begin with two different layers or heads, where it has them
    const last = first && same ? (first.layers.length > 1 ? { look: first.name, layer: String(first.layers[0]) } : first.heads.length > 1 ? { look: first.name, head: String(first.heads[0]) } : {}) : {};
    const second = this.#choose(this.#b, other, last);
    this.board.hidden = !first || !second;
    this.table.hidden = true;
    if (!first || !second) {
      this.message.replaceChildren(empty("Nothing to compare", "One of the two takes no looks: it was trained without attention."));
      return;
    }
    const hide = context.state.specials === "hide";
    const views = /** @type {[View, View]} */ (await Promise.all([viewFor(one, first.looks, first.aggregate, hide), viewFor(other, second.looks, second.aggregate, hide)]));
    if (turn !== this.#turn) return;
    this.#traces = [one, other];
    this.#views = views;
    const alike = (/** @type {import("/page/words.js").Token[]} */ some, /** @type {import("/page/words.js").Token[]} */ others) => some.length === others.length && some.every((token, i) => token.text === others[i].text);
    const fits = alike(views[0].queries, views[1].queries) && alike(views[0].keys, views[1].keys);
    const scale = { ...scaleOf(context.state), high: Math.max(views[0].largest, views[1].largest) };
    for (const [half, view, trace] of /** @type {[Half, View, TraceDocument][]} */ ([[this.#a, views[0], one], [this.#b, views[1], other]])) {
      half.matrix.scale = scale;
      half.matrix.view = view;
      half.title.textContent = shown(view.title, 60);
      half.output.replaceChildren(make("bdi", { textContent: trace.task === "language" ? "" : shown(trace.output, 120), dir: "auto" }));
    }
    context.legend(views[0], scale);
    this.#gap = fits ? differenceOf(views) : null;
    this.#differ(views);
    const table = context.state.shape === "table";
    this.table.hidden = !table;
    this.board.classList.toggle("tabled", table);
    if (table) this.table.replaceChildren(this.#tableOf(views));
    const row = Math.max(0, placeOf(context.state, "row"));
    const column = placeOf(context.state, "column");
    this.#select(this.#gap && column < 0 ? largestOf(this.#gap) : { row: Math.min(row, views[0].queries.length - 1), column: Math.min(Math.max(0, column), views[0].keys.length - 1) });
  }

  /** @param {[View, View]} views */
  #differ(views) {
    const gap = this.#gap;
    this.difference.hidden = !gap;
    this.#gaps.hidden = !gap || gap.largest < 0.005;
    if (!gap) {
      this.key.replaceChildren(empty("No difference map", `The two do not have the same words: ${views[0].queries.length} × ${views[0].keys.length} and ${views[1].queries.length} × ${views[1].keys.length}. Choose looks of the same kind.`));
      this.most.replaceChildren();
      return;
    }
    const high = gap.largest < 0.005 ? 1 : gap.largest;
    this.key.replaceChildren(differenceKey(high, "B more", "A more"));
    this.difference.scale = { kind: "linear", rows: false, threshold: 0, high };
    this.difference.view = gap;
    if (gap.largest < 0.005) this.key.append(make("p", { className: "hint", textContent: "The two look alike: no weight differs by 0.005 or more." }));
    const wide = gap.keys.length;
    const places = Array.from(gap.weights, (_, i) => i).sort((i, j) => Math.abs(gap.weights[j]) - Math.abs(gap.weights[i])).slice(0, 5);
    this.most.replaceChildren(...places.filter((i) => Math.abs(gap.weights[i]) > 0.005).map((i) => make("li", {}, make("button", {
      type: "button", className: "bar", on: { click: () => this.#select({ row: Math.floor(i / wide), column: i % wide }) },
    }, make("bdi", { textContent: shown(gap.queries[Math.floor(i / wide)].text, 18) }), make("span", { textContent: "→", "aria-hidden": "true" }), make("bdi", { textContent: shown(gap.keys[i % wide].text, 18) }), make("strong", { textContent: signed(gap.weights[i]) })))));
  }

  /** @returns {SVGElement | null} all three in one */
  #picture() {
    const views = this.#views;
    if (!views) return null;
    const gap = this.#gap;
    const high = Math.max(views[0].largest, views[1].largest);
    const scale = { ...scaleOf(this.context.state), high };
    return besides([
      [`A: ${shown(this.#names[0], 40)}`, matrixPicture(views[0], scale)],
      [`B: ${shown(this.#names[1], 40)}`, matrixPicture(views[1], scale)],
      ["A − B", gap && differencePicture(gap, gap.largest < 0.005 ? 1 : gap.largest)],
    ]);
  }

  /** @param {[View, View]} views @returns {HTMLTableElement} */
  #tableOf(views) {
    const gap = this.#gap;
    const rows = views[0].queries.flatMap((query, row) => views[0].keys.flatMap((key, column) => {
      const i = row * views[0].keys.length + column;
      const b = gap ? views[1].weights[i] : undefined;
      if (views[0].weights[i] < 0.005 && (b ?? 0) < 0.005) return [];
      return [make("tr", {}, make("th", { scope: "row", textContent: shown(query.text) }), make("td", { textContent: shown(key.text) }), make("td", { textContent: number(views[0].weights[i]) }), make("td", { textContent: b === undefined ? "–" : number(b) }), make("td", { textContent: gap ? signed(gap.weights[i]) : "–" }))];
    }));
    const most = rows.length > MOST_LINES ? `; the first ${MOST_LINES} of ${rows.length}` : "";
    return make("table", {}, make("caption", { textContent: `Every pair of words with a weight of 0.005 or more in A or in B${most}` }),
      make("thead", {}, make("tr", {}, ...["looks", "looked at", "A", "B", "A − B"].map((name) => make("th", { scope: "col", textContent: name })))), make("tbody", {}, ...rows.slice(0, MOST_LINES)));
  }

  /** @param {{row: number, column: number}} selection */
  #select(selection) {
    const views = this.#views;
    if (!views) return;
    const row = Math.max(0, selection.row);
    const column = Math.max(0, selection.column);
    for (const drawing of [this.#a.matrix, this.#b.matrix, this.difference]) drawing.selection = { row, column };
    this.context.setState({ row, column }, { quiet: true });
    this.context.say(this.#sentence(row, column));
  }

  /** @param {number} row @param {number} column */
  #sentence(row, column) {
    const views = this.#views;
    const [a, b] = views ?? [];
    if (!a || !b || !a.queries[row] || !a.keys[column]) return "";
    const gap = this.#gap;
    const i = row * a.keys.length + column;
    const start = `‘${shown(a.queries[row].text)}’ looks at ‘${shown(a.keys[column].text)}’: A ${number(a.weights[i])}`;
    return gap ? `${start}, B ${number(b.weights[i])}, difference ${signed(gap.weights[i])}` : start;
  }
}

/** @param {[View, View]} views @returns {View} the first minus the second */
function differenceOf([one, other]) {
  const weights = one.weights.map((weight, i) => weight - other.weights[i]);
  return { ...one, weights, largest: weights.reduce((most, weight) => Math.max(most, Math.abs(weight)), 0), title: "A minus B", sums: "each row sums to 0", marks: [] };
}

/** @param {View} view @returns {{row: number, column: number}} */
function largestOf(view) {
  let best = 0;
  view.weights.forEach((weight, i) => { if (Math.abs(weight) > Math.abs(view.weights[best])) best = i; });
  return { row: Math.floor(best / view.keys.length), column: best % view.keys.length };
}

define("rg-screen-compare", CompareScreen);

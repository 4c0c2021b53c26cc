// <rg-screen-compare>: one text in two models, or in two looks of one, on a shared scale, and the
// difference of the two.

import { define, make } from "/page/elements.js";
import "/page/matrix.js";
import { differencePicture, matrixPicture } from "/page/svg-export.js";
import { formatWeight, displayText } from "/page/token-text.js";
import { emptyMessage, fillSelect, errorMessage, loadingMessage, noModel, noText, selectField } from "../controls.js";
import { differenceKey, formatSigned } from "../difference-matrix.js";
import { lookName } from "/page/look-names.js";
import { renameSpecial } from "../special-tokens.js";
import { selectLooks, indexFromState, scaleOf, loadView } from "../look-selection.js";
import { sideBySide, jsonOf, sheetMenu } from "../export.js";
import { takesTarget } from "../screen-list.js";
import { makeTableToggle } from "../drawing-options.js";
import "./stylesheet.js";

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
  none = make("p", { className: "rg-no-attention", hidden: true });
  /** @type {Record<string, ReturnType<typeof selectField>>} */
  pick;

  /** @param {Which} which @param {(partial: Record<string, string | undefined>) => void} set */
  constructor(which, set) {
    const named = (/** @type {string} */ label, /** @type {(value: string) => Record<string, string | undefined>} */ change) => {
      const made = selectField(label, (value) => set(change(value)));
      made.select.setAttribute("aria-label", `${label} of ${which.toUpperCase()}`);
      return made;
    };
    this.which = which;
    this.pick = {
      model: named("Model", (value) => ({ [which === "a" ? "model" : "other"]: value, [`${which}look`]: undefined, [`${which}layer`]: undefined, [`${which}head`]: undefined, ...(which === "a" ? { text: undefined } : {}) })),
      look: named("Attention", (value) => ({ [`${which}look`]: value, [`${which}layer`]: undefined, [`${which}head`]: undefined })),
      layer: named("Layer", (value) => ({ [`${which}layer`]: value })),
      head: named("Heads", (value) => ({ [`${which}head`]: value === "mean" ? undefined : value })),
    };
    for (const name of ["look", "layer", "head"]) this.pick[name].field.hidden = true;
    this.node = make("section", { className: "rg-half", "aria-label": which === "a" ? "First" : "Second" },
      make("div", { className: "rg-fields" }, make("span", { className: `rg-badge ${which}`, textContent: which.toUpperCase(), "aria-hidden": "true" }), ...Object.values(this.pick).map((one) => one.field)),
      this.output, this.title, this.matrix, this.none);
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
  shade = /** @type {import("../drawing-options.js").ScaleOptionsElement} */ (Object.assign(document.createElement("rg-scale-options"), { units: true, specials: true }));
  /** @type {[TraceDocument, TraceDocument] | null} */
  #traces = null;
  /** @type {[View, View] | null} */
  #views = null;
  /** @type {View | null} */
  #gap = null;
  difference = /** @type {Drawing} */ (document.createElement("rg-difference"));
  table = make("div", { className: "table-scroller rg-table", tabIndex: 0, role: "region", "aria-label": "A, B and their difference as a table" });
  key = make("div", {});
  most = make("ol", { className: "rg-gaps" });
  third = make("section", { className: "rg-half rg-third", "aria-label": "Difference" });
  #gaps = make("div", {}, make("h2", { textContent: "Where they differ most" }), this.most);
  panels = make("div", { className: "rg-compare" });
  bar = make("div", { className: "rg-card-head" });
  /** @type {import("../drawing-options.js").TableToggleElement | null} */
  shape = null;
  #names = ["", ""];

  #build() {
    const { context, input } = this;
    input.context = this.shade.context = context;
    input.action = "Compare";
    input.label = "Text for both";
    input.models = () => [];
    this.third.append(make("div", { className: "rg-fields" }, make("span", { className: "rg-badge", textContent: "A − B" }), make("span", { className: "hint", textContent: "where A and B differ" })), this.key, make("h2", { textContent: "A minus B" }), this.difference, this.#gaps);
    this.panels.append(this.#a.node, this.#b.node, this.third);
    const menu = sheetMenu(() => "compare", {
      title: () => `${this.#names.join(" and ")} on one text`,
      picture: () => this.#picture(),
      tables: () => (this.#views ? [this.#tableOf(this.#views)] : this.#traces ? [this.#outputTable(this.#traces)] : []),
      json: () => this.#traces && { a: this.#traces[0], b: this.#traces[1] },
    }, context, [
      ["JSON of A", "json", () => this.#traces && jsonOf(this.#traces[0])],
      ["JSON of B", "json", () => this.#traces && jsonOf(this.#traces[1])],
    ]);
    this.bar.append(this.shade, make("div", { className: "rg-fields" }, (this.shape = makeTableToggle(context, "Maps")), menu));
    const { bar } = this;
    this.append(input, bar, this.message, this.panels, this.table);
    this.panels.addEventListener("regard-select", (event) => this.#select(/** @type {CustomEvent} */ (event).detail));
    this.panels.addEventListener("regard-hover", (event) => {
      const { row, column } = /** @type {CustomEvent} */ (event).detail;
      context.showHover(row >= 0 && column >= 0 ? this.#sentence(row, column) : "");
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
    const [first, second] = pairOf(context.models, state);
    this.panels.hidden = !first;
    this.table.hidden = true;
    input.hidden = !first;
    this.bar.hidden = !first || !second || first.looks.length + second.looks.length === 0;
    if (!first || !second) {
      message.replaceChildren(noModel(context.screen));
      return;
    }
    if (context.model !== first) context.setState({ model: first.id }, { quiet: true });
    input.show();
    const text = input.text;
    const ready = context.models.filter((model) => model.ready);
    this.#names = [first.id, second.id];
    fillSelect(this.#a.pick.model.select, ready.map((model) => [model.id, model.id]), first.id);
    fillSelect(this.#b.pick.model.select, ready.filter((model) => model.task === first.task).map((model) => [model.id, model.id]), second.id);
    if (!text.trim() || !this.#traces) this.panels.classList.add("blank");
    if (!text.trim()) {
      message.replaceChildren(errorMessage(noText()));
      return;
    }
    if (!this.#traces) message.replaceChildren(loadingMessage());
    try {
      this.classList.add("waiting");
      let one = await context.busy(context.api.explain(first.id, { text }));
      const attend = one.looks.length > 0 && second.looks.length > 0;
      // the second model is forced to the first one's translation: only equal words can be subtracted
      const target = attend && takesTarget(first) && second.id !== first.id && one.output ? { target: one.output } : {};
      const other = await context.busy(context.api.explain(second.id, { text, ...target }));
      const words = (/** @type {TraceDocument} */ trace) => JSON.stringify(trace.sides.target?.tokens.map((token) => token.text));
      if ("target" in target && words(one) !== words(other)) one = await context.busy(context.api.explain(first.id, { text, ...target }));
      if (turn !== this.#turn) return;
      message.replaceChildren();
      this.panels.classList.remove("blank");
      await this.#show(one, other, second.id === first.id, turn);
      if ("target" in target) void this.#free(second.id, text, one.output, turn);
    } catch (error) {
      if (turn !== this.#turn) return;
      this.panels.classList.add("blank");
      this.table.hidden = true;
      this.#traces = null;
      message.replaceChildren(errorMessage(error));
    } finally {
      if (turn === this.#turn) this.classList.remove("waiting");
    }
  }

  /** What the second one writes by itself, when there is time for it. @param {string} model @param {string} text @param {string} dictated @param {number} turn */
  async #free(model, text, dictated, turn) {
    const own = await this.context.api.explain(model, { text }).catch(() => null);
    if (turn !== this.#turn || !own || own.output === dictated) return;
    this.#b.output.append(make("span", { className: "hint" }, " forced to A’s output; its own output: ", make("bdi", { textContent: displayText(own.output, 120) })));
  }

  /** @param {Half} half @param {TraceDocument} trace @param {{look?: string, layer?: string, head?: string}} drawingOptions */
  #choose(half, trace, drawingOptions) {
    const { state } = this.context;
    const { which } = half;
    const requested = { look: state[`${which}look`] ?? drawingOptions.look ?? "", layer: state[`${which}layer`] ?? drawingOptions.layer ?? "", head: state[`${which}head`] ?? drawingOptions.head ?? "mean" };
    const found = selectLooks(trace, { look: requested.look, ...(requested.layer === "" ? {} : { layer: requested.layer }), ...(requested.head === "mean" ? { aggregate: "mean" } : { head: requested.head, aggregate: "one" }) }, { first: ["source", "decoder.source", "past", "decoder.self", "pooling"] });
    half.title.hidden = half.matrix.hidden = !found;
    half.none.hidden = Boolean(found);
    half.none.textContent = `${which.toUpperCase()} has no attention.`;
    if (!found) {
      for (const name of ["look", "layer", "head"]) half.pick[name].field.hidden = true;
      return null;
    }
    const numbers = (/** @type {number[]} */ all) => all.map((n) => /** @type {[string, string]} */ ([String(n), String(n)]));
    fillSelect(half.pick.look.select, found.names.map((name) => [name, lookName(name)]), found.name);
    fillSelect(half.pick.layer.select, numbers(found.layers), String(found.layer));
    fillSelect(half.pick.head.select, [["mean", "mean of all"], ...found.heads.map((n) => /** @type {[string, string]} */ ([String(n), `head ${n}`]))], found.aggregate === "one" ? String(found.head) : "mean");
    half.pick.look.field.hidden = found.names.length < 2;
    half.pick.layer.field.hidden = found.layers.length < 2;
    half.pick.head.field.hidden = found.heads.length < 2;
    return found;
  }

  /** @param {TraceDocument} one @param {TraceDocument} other @param {boolean} same @param {number} turn */
  async #show(one, other, same, turn) {
    const { context } = this;
    const first = this.#choose(this.#a, one, {});
    // within one model, start with two different layers or heads if it has them
    const last = first && same ? (first.layers.length > 1 ? { look: first.name, layer: String(first.layers[0]) } : first.heads.length > 1 ? { look: first.name, head: String(first.heads[0]) } : {}) : {};
    const second = this.#choose(this.#b, other, last);
    this.#traces = [one, other];
    for (const [half, trace] of /** @type {[Half, TraceDocument][]} */ ([[this.#a, one], [this.#b, other]])) {
      half.output.replaceChildren(make("bdi", { textContent: trace.output === this.input.text ? "" : displayText(trace.output, 120), dir: "auto" }));
    }
    this.panels.classList.toggle("unlike", !first || !second);
    if (!first || !second) return this.#showOutputs([first, second], turn);
    const load = async (/** @type {TraceDocument} */ trace, /** @type {import("../look-selection.js").Chosen} */ chosen) => withPlainNames(await loadView(trace, chosen.looks, chosen.aggregate, this.shade.hidesSpecials, context.state.unit));
    const views = await Promise.all([load(one, first), load(other, second)]);
    if (turn !== this.#turn) return;
    this.#views = views;
    const alike = (/** @type {import("/page/token-text.js").Token[]} */ some, /** @type {import("/page/token-text.js").Token[]} */ others) => some.length === others.length && some.every((token, i) => token.text === others[i].text);
    const fits = alike(views[0].queries, views[1].queries) && alike(views[0].keys, views[1].keys);
    const scale = { ...scaleOf(context.state), high: Math.max(views[0].largest, views[1].largest) };
    for (const [half, view] of /** @type {[Half, View][]} */ ([[this.#a, views[0]], [this.#b, views[1]]])) {
      half.matrix.scale = scale;
      half.matrix.view = view;
      half.title.textContent = displayText(view.title, 60);
    }
    context.legend(views[0], scale);
    this.#gap = fits ? differenceOf(views) : null;
    this.#differ(views);
    const table = context.state.shape === "table";
    this.table.hidden = !table;
    this.panels.classList.toggle("tabled", table);
    if (table) this.table.replaceChildren(this.#tableOf(views));
    const row = Math.max(0, indexFromState(context.state, "row"));
    const column = indexFromState(context.state, "column");
    this.#select(this.#gap && column < 0 ? largestOf(this.#gap) : { row: Math.min(row, views[0].queries.length - 1), column: Math.min(Math.max(0, column), views[0].keys.length - 1) });
  }

  /**
   * Both outputs side by side where one of the two has no attention, with the map of the other.
   * @param {(import("../look-selection.js").Chosen | null)[]} chosen @param {number} turn
   */
  async #showOutputs(chosen, turn) {
    const { context } = this;
    const traces = /** @type {[TraceDocument, TraceDocument]} */ (this.#traces);
    this.#views = this.#gap = null;
    this.difference.hidden = this.#gaps.hidden = true;
    this.key.replaceChildren();
    const without = chosen.every((one) => !one) ? "A and B have no attention" : `${chosen[0] ? "B" : "A"} has no attention`;
    const at = chosen.findIndex(Boolean);
    const found = chosen[at];
    context.legend(null, without);
    if (found) {
      const view = await loadView(traces[at], found.looks, found.aggregate, this.shade.hidesSpecials, context.state.unit);
      if (turn !== this.#turn) return;
      const half = at === 0 ? this.#a : this.#b;
      half.matrix.scale = scaleOf(context.state);
      half.matrix.view = view;
      half.title.textContent = displayText(view.title, 60);
      context.legend(view, scaleOf(context.state));
    }
    const table = context.state.shape === "table";
    this.table.hidden = !table;
    this.panels.classList.toggle("tabled", table);
    if (table) this.table.replaceChildren(this.#outputTable(traces));
    context.say(`${without}: the outputs are ${traces[0].output === traces[1].output ? "the same" : "different"}`);
  }

  /** @param {[TraceDocument, TraceDocument]} traces @returns {HTMLTableElement} */
  #outputTable(traces) {
    return make("table", {}, make("caption", { textContent: "What the two models answer" }),
      make("thead", {}, make("tr", {}, ...["model", "output"].map((name) => make("th", { scope: "col", textContent: name })))),
      make("tbody", {}, ...traces.map((trace, i) => make("tr", {}, make("th", { scope: "row", textContent: this.#names[i] }), make("td", { textContent: displayText(trace.output, 200) })))));
  }

  /** @param {[View, View]} views */
  #differ(views) {
    const gap = this.#gap;
    this.difference.hidden = !gap;
    this.#gaps.hidden = !gap || gap.largest < 0.005;
    if (!gap) {
      this.key.replaceChildren(emptyMessage("No difference map", `The two maps have different words (${views[0].queries.length} × ${views[0].keys.length} and ${views[1].queries.length} × ${views[1].keys.length}). Choose attention maps of the same kind.`));
      this.most.replaceChildren();
      return;
    }
    const high = gap.largest < 0.005 ? 1 : gap.largest;
    this.key.replaceChildren(differenceKey(high, "B more", "A more"));
    this.difference.scale = { kind: "linear", rows: false, threshold: 0, high };
    this.difference.view = gap;
    if (gap.largest < 0.005) this.key.append(make("p", { className: "hint", textContent: "The two maps agree: no weight differs by 0.005 or more." }));
    const wide = gap.keys.length;
    const places = Array.from(gap.weights, (_, i) => i).sort((i, j) => Math.abs(gap.weights[j]) - Math.abs(gap.weights[i])).slice(0, 5);
    this.most.replaceChildren(...places.filter((i) => Math.abs(gap.weights[i]) > 0.005).map((i) => make("li", {}, make("button", {
      type: "button", className: "bar", on: { click: () => this.#select({ row: Math.floor(i / wide), column: i % wide }) },
    }, make("bdi", { textContent: displayText(gap.queries[Math.floor(i / wide)].text, 18) }), make("span", { textContent: "→", "aria-hidden": "true" }), make("bdi", { textContent: displayText(gap.keys[i % wide].text, 18) }), make("strong", { textContent: formatSigned(gap.weights[i]) })))));
  }

  /** @returns {SVGElement | null} all three in one */
  #picture() {
    const views = this.#views;
    if (!views) return null;
    const gap = this.#gap;
    const high = Math.max(views[0].largest, views[1].largest);
    const scale = { ...scaleOf(this.context.state), high };
    return sideBySide([
      [`A: ${displayText(this.#names[0], 40)}`, matrixPicture(views[0], scale)],
      [`B: ${displayText(this.#names[1], 40)}`, matrixPicture(views[1], scale)],
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
      return [make("tr", {}, make("th", { scope: "row", textContent: displayText(query.text) }), make("td", { textContent: displayText(key.text) }), make("td", { textContent: formatWeight(views[0].weights[i]) }), make("td", { textContent: b === undefined ? "–" : formatWeight(b) }), make("td", { textContent: gap ? formatSigned(gap.weights[i]) : "–" }))];
    }));
    const most = rows.length > MOST_LINES ? `; the first ${MOST_LINES} of ${rows.length}` : "";
    return make("table", {}, make("caption", { textContent: `Pairs of words with a weight of at least 0.005 in A or B${most}` }),
      make("thead", {}, make("tr", {}, ...["query", "key", "A", "B", "A − B"].map((name) => make("th", { scope: "col", textContent: name })))), make("tbody", {}, ...rows.slice(0, MOST_LINES)));
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
    const start = `‘${displayText(a.queries[row].text)}’ looks at ‘${displayText(a.keys[column].text)}’: A ${formatWeight(a.weights[i])}`;
    return gap ? `${start}, B ${formatWeight(b.weights[i])}, difference ${formatSigned(gap.weights[i])}` : start;
  }
}

/**
 * The two models of the address; where it names none, two of one task that both attend, if there are.
 * @param {import("../api.js").ModelCard[]} models @param {Record<string, string>} state
 * @returns {[import("../api.js").ModelCard, import("../api.js").ModelCard] | [null, null]}
 */
function pairOf(models, state) {
  const ready = models.filter((model) => model.ready);
  const attends = (/** @type {import("../api.js").ModelCard} */ model) => model.looks.length > 0;
  const peers = (/** @type {import("../api.js").ModelCard} */ model) => ready.filter((one) => one.task === model.task && one !== model);
  const first = ready.find((model) => model.id === state.model)
    ?? ready.find((model) => attends(model) && peers(model).some(attends))
    ?? ready.find((model) => attends(model) && peers(model).length) ?? ready.find(attends) ?? ready[0];
  if (!first) return [null, null];
  const others = peers(first);
  const second = [...others, first].find((model) => model.id === state.other) ?? others.find(attends) ?? others[0] ?? first;
  return [first, second];
}

/** @param {View} view @returns {View} with the marks of a beginning and an end in words */
function withPlainNames(view) {
  const renamed = (/** @type {import("/page/token-text.js").Token} */ token, /** @type {number} */ i) => renameSpecial(token, i === 0 ? "(start)" : "(end)");
  return { ...view, queries: view.queries.map(renamed), keys: view.keys.map(renamed) };
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

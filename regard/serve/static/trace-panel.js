// <rg-trace-panel>: one trace drawn in the ways that a screen offers, with options, one selection for
// all of them, and a side panel for the selected word.

import { alternativesOf } from "/page/trace-summary.js";
import "/page/row-detail.js";
import { define, make } from "/page/elements.js";
import "/page/head-grid.js";
import "/page/links.js";
import { sentence } from "/page/matrix.js";
import { linksPicture, matrixPicture, textPicture } from "/page/svg-export.js";
import { strongestKey } from "/page/text-shading.js";
import "/page/table.js";
import { displayText } from "/page/token-text.js";
import { emptyMessage } from "./controls.js";
import { codeBlock } from "./copy.js";
import { selectLooks, indexFromState, scaleOf, loadView } from "./look-selection.js";
import { exportMenu } from "./export.js";
import { sidesInWords } from "/page/look-names.js";

/** @typedef {import("./app.js").Context} Context */
/** @typedef {import("/page/weights.js").TraceDocument} TraceDocument */
/** @typedef {import("/page/weights.js").LookRecord} LookRecord */
/** @typedef {import("/page/weights.js").View} View */
/** @typedef {import("/page/elements.js").Drawing} Drawing */
/** @typedef {[name: string, label: string, tag: string]} Shape the tag of an element that is a Drawing */
/**
 * @typedef {{shapes: Shape[], fits?: (look: LookRecord, trace: TraceDocument) => boolean, first?: string[], alternatives?: boolean,
 *   aggregate?: "one" | "mean" | "max", more?: [string, string, () => Blob | null][],
 *   firstRow?: (view: View) => number, none?: string, commands?: string, rows?: boolean, renamed?: (view: View) => View, hideSpecials?: boolean,
 *   blank?: (trace: TraceDocument) => View | null,
 *   drawn?: (view: View, selection: {row: number, column: number}, looks: LookRecord[]) => void}} DrawingOptions
 */

export class TracePanelElement extends HTMLElement {
  /** @type {Context} */
  context = /** @type {any} */ (null);
  /** @type {DrawingOptions} */
  drawingOptions = { shapes: [["matrix", "Matrix", "regard-matrix"]] };
  /** @type {TraceDocument | null} */
  trace = null;
  /** @type {View | null} */
  view = null;
  /** @type {{row: number, column: number}} */
  selection = { row: -1, column: -1 };
  /** @type {LookRecord | null} */
  #preview = null;
  /** @type {Map<string, Drawing>} */
  drawings = new Map();
  #turn = 0;
  #key = "";
  /** @type {LookRecord[]} */
  #looks = [];
  /** the name of the attention map that is drawn, as in traces; empty where there is none */
  lookName = "";
  /** where screens put more: above the stage, below it, right under the picture, and under the panel of the selected word */
  above = make("div", { className: "rg-above" });
  below = make("div", { className: "rg-below" });
  inside = make("div", { className: "rg-inside" });
  side = make("div", { className: "rg-side-more" });
  bar = /** @type {import("./controls.js").DrawBarElement} */ (document.createElement("rg-drawbar"));
  row = /** @type {import("/page/row-detail.js").RowElement} */ (document.createElement("regard-row"));
  heads = /** @type {import("/page/head-grid.js").HeadsElement} */ (document.createElement("regard-heads"));

  connectedCallback() {
    if (this.stage) return;
    const { drawingOptions, bar, context } = this;
    bar.context = context;
    bar.rows = drawingOptions.rows ?? false;
    bar.specials = drawingOptions.hideSpecials ?? false;
    bar.shapes = [...drawingOptions.shapes.map(([name, label]) => /** @type {[string, string]} */ ([name, label])), ["table", "Table"]];
    for (const [name, , tag] of [...drawingOptions.shapes, ["table", "", "regard-table"]]) {
      this.drawings.set(name, /** @type {Drawing} */ (document.createElement(tag)));
    }
    this.head = make("h2", { className: "rg-board-title" });
    this.rail = make("aside", { className: "rg-rail", "aria-label": "Layers and heads" }, make("h2", { className: "over", textContent: "Layers and heads" }), this.heads);
    this.picture = make("section", { className: "rg-picture", "aria-label": "Picture" }, this.head, ...this.drawings.values(), this.inside);
    this.wordPanel = make("aside", { className: "rg-panel", "aria-label": "Selected word" }, this.row, this.side);
    this.stage = make("div", { className: "rg-stage" }, this.rail, this.picture, this.wordPanel);
    this.replaceChildren(bar, this.above, this.stage, this.below);
    bar.parts.end.append(exportMenu({
      name: () => this.#looks[0]?.name ?? "trace",
      trace: () => this.trace,
      picture: () => this.#picture(),
      more: drawingOptions.more,
    }, context));
    this.addEventListener("regard-select", (event) => this.select(/** @type {CustomEvent} */ (event).detail));
    this.addEventListener("regard-hover", (event) => {
      const { row, column } = /** @type {CustomEvent} */ (event).detail;
      context.showHover(this.view && row >= 0 && column >= 0 ? sentence(this.view, row, column) : "");
    });
    this.addEventListener("regard-head", (event) => {
      const look = /** @type {CustomEvent<LookRecord>} */ (event).detail;
      this.#preview = null;
      context.setState({ layer: look.layer, head: look.head, aggregate: "one" });
    });
    this.addEventListener("regard-preview", (event) => {
      this.#preview = /** @type {CustomEvent<LookRecord | null>} */ (event).detail;
      void this.show();
    });
  }

  /** Draw the trace as the state says. */
  async show() {
    const { trace, context, drawingOptions } = this;
    if (!trace || !this.stage) return;
    const turn = ++this.#turn;
    const { state } = context;
    const shape = this.shape;
    if (this.#preview && !trace.looks.includes(this.#preview)) this.#preview = null;
    const chosen = selectLooks(trace, state, drawingOptions);
    this.bar.show(chosen, shape);
    const blank = chosen ? null : drawingOptions.blank?.(trace) ?? null;
    this.stage.hidden = !chosen && !blank;
    this.bar.hidden = !chosen;
    if (!chosen) {
      const hint = trace.looks.length === 0 && trace.card?.attend_with ? ` Train one with ${trace.card.attend_with} to see where it looks.` : "";
      this.view = blank;
      this.#key = "";
      this.#looks = [];
      if (blank) {
        /** @type {HTMLElement} */ (this.rail).hidden = true;
        this.#place();
        this.#draw();
        context.legend(null, (drawingOptions.none ?? "") + hint);
        return;
      }
      this.above.replaceChildren(emptyMessage("Nothing to draw", (drawingOptions.none ?? "This model has no attention map of this kind.") + hint, ...(drawingOptions.commands ? [codeBlock(drawingOptions.commands, "Commands")] : [])));
      context.legend(null, "");
      return;
    }
    const looks = this.#preview ? [this.#preview] : chosen.looks;
    const how = looks.length > 1 ? chosen.aggregate : "one";
    const hideSpecial = state.specials === undefined ? drawingOptions.hideSpecials ?? false : state.specials === "hide";
    const key = `${how} ${hideSpecial} ${state.unit ?? ""}`;
    if (!this.view || key !== this.#key || looks.length !== this.#looks.length || looks.some((look, i) => look !== this.#looks[i])) {
      const found = await loadView(trace, looks, how, hideSpecial, state.unit);
      if (turn !== this.#turn) return;
      const view = drawingOptions.renamed?.(found) ?? found;
      // with the same token lists, drawings keep their nodes
      if (this.view && sameWords(this.view.queries, view.queries)) view.queries = this.view.queries;
      if (this.view && sameWords(this.view.keys, view.keys)) view.keys = this.view.keys;
      this.view = view;
      this.#looks = looks;
      this.#key = key;
    }
    const several = chosen.family.length > 1;
    /** @type {HTMLElement} */ (this.rail).hidden = !several;
    if (several) this.heads.show(trace, chosen.family, this.#preview ? chosen.looks : looks);
    this.#place();
    this.#draw();
  }

  /** @returns {string} */
  get shape() {
    const { shape } = this.context.state;
    return shape && this.drawings.has(shape) ? shape : this.drawingOptions.shapes[0][0];
  }

  /** @param {{row: number, column: number}} selection a place in the view; -1 for the most of the row */
  select(selection) {
    const { view } = this;
    if (!view) return;
    const row = selection.row;
    const column = selection.column < 0 && row >= 0 ? strongestKey(view, row) : selection.column;
    this.selection = { row, column };
    this.context.setState({ row: view.rows[row], column: view.columns[column] }, { quiet: true });
    this.#draw();
  }

  /** Find the place that the state names in this view, or a good one to begin with. */
  #place() {
    const { view, context } = this;
    if (!view) return;
    let row = view.rows.indexOf(indexFromState(context.state, "row"));
    let column = view.columns.indexOf(indexFromState(context.state, "column"));
    if (row < 0) {
      row = this.drawingOptions.firstRow?.(view) ?? Math.max(0, view.queries.findIndex((token) => !token.special));
      column = -1;
    }
    if (column < 0) column = strongestKey(view, row);
    this.selection = { row, column };
  }

  #draw() {
    const { view, context, drawingOptions, selection, trace } = this;
    if (!view || !trace || !this.head) return;
    const shape = this.#looks.length ? this.shape : drawingOptions.shapes[0][0];
    const scale = scaleOf(context.state, drawingOptions.rows);
    for (const [name, drawing] of this.drawings) {
      drawing.hidden = name !== shape;
      if (name !== shape) continue;
      drawing.scale = scale;
      drawing.view = view;
      drawing.selection = selection;
    }
    this.row.alternatives = drawingOptions.alternatives === false ? [] : alternativesOf(trace, view);
    this.row.looked = this.#looks.length > 0;
    this.row.hidden = !this.row.looked && !this.row.alternatives.length;
    this.row.scale = scale;
    this.row.view = view;
    this.row.selection = selection;
    this.lookName = this.#looks[0]?.name ?? "";
    this.head.hidden = !this.#looks.length;
    this.head.replaceChildren(displayText(view.title, 80), make("span", { className: "over", textContent: displayText(sidesInWords(view.querySide, view.keySide, context.model?.languages), 160) }));
    context.legend(view, scale);
    if (!this.#preview && this.#looks.length) context.say(sentence(view, selection.row, selection.column));
    drawingOptions.drawn?.(view, selection, this.#looks);
  }

  #picture() {
    const { view } = this;
    if (!view) return null;
    const scale = scaleOf(this.context.state, this.drawingOptions.rows);
    if (this.shape === "links") return linksPicture(view, scale, -1);
    return ["matrix", "table"].includes(this.shape) ? matrixPicture(view, scale) : textPicture(view, scale, this.selection.row);
  }

  /** @param {number} by the head after this one, or before it, through all layers */
  step(by) {
    if (!this.trace) return;
    const chosen = selectLooks(this.trace, this.context.state, this.drawingOptions);
    if (!chosen || chosen.family.length < 2) return;
    const at = chosen.family.indexOf(chosen.looks[0]);
    const next = chosen.family[(at + (chosen.looks.length === 1 ? by : 0) + chosen.family.length) % chosen.family.length];
    this.#preview = null;
    this.context.setState({ layer: next.layer, head: next.head, aggregate: "one" });
  }
}

/** @param {import("/page/token-text.js").Token[]} one @param {import("/page/token-text.js").Token[]} other */
function sameWords(one, other) {
  return one.length === other.length && one.every((token, i) => token === other[i]);
}

/** @param {Context} context @param {DrawingOptions} drawingOptions @returns {TracePanelElement} */
export function makeTracePanel(context, drawingOptions) {
  const tracePanel = /** @type {TracePanelElement} */ (document.createElement("rg-trace-panel"));
  tracePanel.context = context;
  tracePanel.drawingOptions = drawingOptions;
  return tracePanel;
}

define("rg-trace-panel", TracePanelElement);

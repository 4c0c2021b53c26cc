// <rg-board>: one trace drawn in the shapes that a screen offers, with all that is to be chosen,
// one selection in all of them, and a panel at the side.

import "/page/detail.js";
import { define, make } from "/page/elements.js";
import "/page/heads.js";
import "/page/links.js";
import { sentence } from "/page/matrix.js";
import { linksPicture, matrixPicture, textPicture } from "/page/pictures.js";
import { mostOf } from "/page/shading.js";
import "/page/table.js";
import { shown } from "/page/words.js";
import { empty } from "./controls.js";
import { choose, placeOf, scaleOf, viewFor } from "./looking.js";
import { exportMenu } from "./saving.js";

/** @typedef {import("./app.js").Context} Context */
/** @typedef {import("/page/weights.js").TraceDocument} TraceDocument */
/** @typedef {import("/page/weights.js").LookRecord} LookRecord */
/** @typedef {import("/page/weights.js").View} View */
/** @typedef {import("/page/elements.js").Drawing} Drawing */
/** @typedef {[name: string, label: string, tag: string]} Shape the tag of an element that is a Drawing */
/**
 * @typedef {{shapes: Shape[], fits?: (look: LookRecord) => boolean, first?: string[],
 *   aggregate?: "one" | "mean" | "max", more?: [string, string, () => Blob | null][],
 *   firstRow?: (view: View) => number, none?: string, rows?: boolean, renamed?: (view: View) => View,
 *   blank?: (trace: TraceDocument) => View | null,
 *   drawn?: (view: View, selection: {row: number, column: number}, looks: LookRecord[]) => void}} Wish
 */

export class BoardElement extends HTMLElement {
  /** @type {Context} */
  context = /** @type {any} */ (null);
  /** @type {Wish} */
  wish = { shapes: [["matrix", "Matrix", "regard-matrix"]] };
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
  /** where screens put more: above the stage, below it, right under the picture, and under the panel of the selected word */
  above = make("div", { className: "rg-above" });
  below = make("div", { className: "rg-below" });
  inside = make("div", { className: "rg-inside" });
  side = make("div", { className: "rg-side-more" });
  bar = /** @type {import("./controls.js").DrawBarElement} */ (document.createElement("rg-drawbar"));
  row = /** @type {import("/page/detail.js").RowElement} */ (document.createElement("regard-row"));
  heads = /** @type {import("/page/heads.js").HeadsElement} */ (document.createElement("regard-heads"));
  title = "";

  connectedCallback() {
    if (this.stage) return;
    const { wish, bar, context } = this;
    bar.context = context;
    bar.rows = wish.rows ?? false;
    bar.shapes = [...wish.shapes.map(([name, label]) => /** @type {[string, string]} */ ([name, label])), ["table", "Table"]];
    for (const [name, , tag] of [...wish.shapes, ["table", "", "regard-table"]]) {
      this.drawings.set(name, /** @type {Drawing} */ (document.createElement(tag)));
    }
    this.head = make("h2", { className: "rg-board-title" });
    this.rail = make("aside", { className: "rg-rail", "aria-label": "Layers and heads" }, make("h2", { className: "over", textContent: "Layers and heads" }), this.heads);
    this.picture = make("section", { className: "rg-picture", "aria-label": "Picture" }, this.head, ...this.drawings.values(), this.inside);
    this.panel = make("aside", { className: "rg-panel", "aria-label": "The selected word" }, this.row, this.side);
    this.stage = make("div", { className: "rg-stage" }, this.rail, this.picture, this.panel);
    this.replaceChildren(bar, this.above, this.stage, this.below);
    bar.parts.end.append(exportMenu({
      name: () => this.#looks[0]?.name ?? "trace",
      trace: () => this.trace,
      picture: () => this.#picture(),
      more: wish.more,
    }, context));
    this.addEventListener("regard-select", (event) => this.select(/** @type {CustomEvent} */ (event).detail));
    this.addEventListener("regard-hover", (event) => {
      const { row, column } = /** @type {CustomEvent} */ (event).detail;
      context.pass(this.view && row >= 0 && column >= 0 ? sentence(this.view, row, column) : "");
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
    const { trace, context, wish } = this;
    if (!trace || !this.stage) return;
    const turn = ++this.#turn;
    const { state } = context;
    const shape = this.shape;
    if (this.#preview && !trace.looks.includes(this.#preview)) this.#preview = null;
    const chosen = choose(trace, state, wish);
    this.bar.show(chosen, shape);
    const blank = chosen ? null : wish.blank?.(trace) ?? null;
    this.stage.hidden = !chosen && !blank;
    this.bar.hidden = !chosen;
    if (!chosen) {
      this.view = blank;
      this.#key = "";
      this.#looks = [];
      if (blank) {
        /** @type {HTMLElement} */ (this.rail).hidden = true;
        this.#place();
        this.#draw();
        context.legend(null, wish.none ?? "");
        return;
      }
      this.above.replaceChildren(empty("Nothing to draw", wish.none ?? "This model took no look of this kind."));
      context.legend(null, "");
      return;
    }
    const looks = this.#preview ? [this.#preview] : chosen.looks;
    const how = looks.length > 1 ? chosen.aggregate : "one";
    const key = `${how} ${state.specials ?? ""}`;
    if (!this.view || key !== this.#key || looks.length !== this.#looks.length || looks.some((look, i) => look !== this.#looks[i])) {
      const found = await viewFor(trace, looks, how, state.specials === "hide");
      if (turn !== this.#turn) return;
      const view = wish.renamed?.(found) ?? found;
      // the same lists of words let drawings keep their nodes
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
    return shape && this.drawings.has(shape) ? shape : this.wish.shapes[0][0];
  }

  /** @param {{row: number, column: number}} selection a place in the view; -1 for the most of the row */
  select(selection) {
    const { view } = this;
    if (!view) return;
    const row = selection.row;
    const column = selection.column < 0 && row >= 0 ? mostOf(view, row) : selection.column;
    this.selection = { row, column };
    this.context.setState({ row: view.rows[row], column: view.columns[column] }, { quiet: true });
    this.#draw();
  }

  /** Find the place that the state names in this view, or a good one to begin with. */
  #place() {
    const { view, context } = this;
    if (!view) return;
    let row = view.rows.indexOf(placeOf(context.state, "row"));
    let column = view.columns.indexOf(placeOf(context.state, "column"));
    if (row < 0) {
      row = this.wish.firstRow?.(view) ?? Math.max(0, view.queries.findIndex((token) => !token.special));
      column = -1;
    }
    if (column < 0) column = mostOf(view, row);
    this.selection = { row, column };
  }

  #draw() {
    const { view, context, wish, selection, trace } = this;
    if (!view || !trace || !this.head) return;
    const shape = this.#looks.length ? this.shape : wish.shapes[0][0];
    const scale = scaleOf(context.state, wish.rows);
    for (const [name, drawing] of this.drawings) {
      drawing.hidden = name !== shape;
      if (name !== shape) continue;
      drawing.scale = scale;
      drawing.view = view;
      drawing.selection = selection;
    }
    const made = ["target", "next"].includes(view.asking);
    this.row.alternatives = made ? trace.alternatives ?? [] : [];
    this.row.looked = this.#looks.length > 0;
    this.row.hidden = !this.row.looked && !this.row.alternatives.length;
    this.row.scale = scale;
    this.row.view = view;
    this.row.selection = selection;
    this.title = view.title;
    this.head.hidden = !this.#looks.length;
    this.head.replaceChildren(shown(view.title, 80), make("span", { className: "over", textContent: `${shown(view.asking, 24)} → ${shown(view.asked, 24)}` }));
    context.legend(view, scale);
    if (!this.#preview && this.#looks.length) context.say(sentence(view, selection.row, selection.column));
    wish.drawn?.(view, selection, this.#looks);
  }

  #picture() {
    const { view } = this;
    if (!view) return null;
    const scale = scaleOf(this.context.state, this.wish.rows);
    if (this.shape === "links") return linksPicture(view, scale, -1);
    return ["matrix", "table"].includes(this.shape) ? matrixPicture(view, scale) : textPicture(view, scale, this.selection.row);
  }

  /** @param {number} by the head after this one, or before it, through all layers */
  step(by) {
    if (!this.trace) return;
    const chosen = choose(this.trace, this.context.state, this.wish);
    if (!chosen || chosen.family.length < 2) return;
    const at = chosen.family.indexOf(chosen.looks[0]);
    const next = chosen.family[(at + (chosen.looks.length === 1 ? by : 0) + chosen.family.length) % chosen.family.length];
    this.#preview = null;
    this.context.setState({ layer: next.layer, head: next.head, aggregate: "one" });
  }
}

/** @param {import("/page/words.js").Token[]} one @param {import("/page/words.js").Token[]} other */
function sameWords(one, other) {
  return one.length === other.length && one.every((token, i) => token === other[i]);
}

/** @param {Context} context @param {Wish} wish @returns {BoardElement} */
export function boardOf(context, wish) {
  const board = /** @type {BoardElement} */ (document.createElement("rg-board"));
  board.context = context;
  board.wish = wish;
  return board;
}

define("rg-board", BoardElement);

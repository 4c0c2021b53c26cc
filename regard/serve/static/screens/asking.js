// What the screens of the tasks have in common: a box to write in, a trace of what was written,
// a board that draws it, and plain words where one of these is missing.

import { boardOf } from "../board.js";
import { cutNote, empty, noModel, notice } from "../controls.js";

/** @typedef {import("../app.js").Context} Context */
/** @typedef {import("/page/weights.js").TraceDocument} TraceDocument */

export class TraceScreen extends HTMLElement {
  /** @type {Context} */
  context = /** @type {any} */ (null);
  input = /** @type {import("../controls.js").InputElement} */ (document.createElement("rg-input"));
  /** @type {import("../board.js").BoardElement} */
  board = /** @type {any} */ (null);
  message = document.createElement("div");
  /** @type {TraceDocument | null} */
  trace = null;
  task = "";
  #turn = 0;

  /** @returns {import("../board.js").Wish} */
  wish() { return { shapes: [["matrix", "Matrix", "regard-matrix"]] }; }

  /** @param {string} text @returns {{text: string} & Record<string, any>} what to ask for */
  body(text) { return { text }; }

  /** @param {TraceDocument} trace @returns {void | Promise<void>} a trace has come, or the state has changed */
  told(trace) { void trace; }

  /** Make the nodes that stay. */
  build() {
    this.input.context = this.context;
    if (this.task) this.input.fits = (model) => model.task === this.task;
    this.board = boardOf(this.context, this.wish());
    this.append(this.input, this.message, this.board);
    this.context.keys(this.keys());
  }

  /** @returns {Record<string, () => void>} */
  keys() {
    return { "[": () => this.board.step(-1), "]": () => this.board.step(1) };
  }

  async update() {
    const turn = ++this.#turn;
    if (!this.board) this.build();
    const { context, input, board, message } = this;
    input.show();
    const { model } = context;
    input.hidden = !model;
    const text = model ? input.text : "";
    if (!model || !text.trim()) {
      board.hidden = true;
      context.legend(null, "");
      message.replaceChildren(model ? empty("Write something", "Type a text above and press Enter, or choose an example.") : noModel(this.task || "translation"));
      return;
    }
    try {
      const asked = context.api.explain(model.id, this.body(text));
      this.classList.add("waiting");
      const trace = await context.busy(asked);
      if (turn !== this.#turn) return;
      this.trace = trace;
      message.replaceChildren(...(trace.prediction?.cut ? [cutNote()] : []));
      board.hidden = false;
      board.above.replaceChildren();
      board.trace = trace;
      await board.show();
      if (turn !== this.#turn) return;
      await this.told(trace);
    } catch (error) {
      if (turn !== this.#turn) return;
      board.hidden = true;
      context.legend(null, "");
      message.replaceChildren(notice(error));
    } finally {
      if (turn === this.#turn) this.classList.remove("waiting");
    }
  }
}

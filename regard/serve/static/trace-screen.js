// What the screens of the tasks have in common: a text box, a trace of the text, a panel that draws it,
// and messages where one of these is missing.

import { makeTracePanel } from "./trace-panel.js";
import { truncationNote, noModel, noText, errorMessage, loadingMessage } from "./controls.js";

/** @typedef {import("./app.js").Context} Context */
/** @typedef {import("/page/weights.js").TraceDocument} TraceDocument */

export class TraceScreen extends HTMLElement {
  /** @type {Context} */
  context = /** @type {any} */ (null);
  input = /** @type {import("./controls.js").InputElement} */ (document.createElement("rg-input"));
  /** @type {import("./trace-panel.js").TracePanelElement} */
  tracePanel = /** @type {any} */ (null);
  message = document.createElement("div");
  /** @type {TraceDocument | null} */
  trace = null;
  #turn = 0;

  /** @returns {import("./trace-panel.js").DrawingOptions} */
  drawingOptions() { return { shapes: [["matrix", "Matrix", "regard-matrix"]] }; }

  /** @param {string} text @returns {{text: string} & Record<string, any>} what to ask for */
  body(text) { return { text }; }

  /** @param {TraceDocument} trace @returns {void | Promise<void>} called when a trace has arrived or the state has changed */
  traceChanged(trace) { void trace; }

  /** Make the nodes that stay. */
  build() {
    this.input.context = this.context;
    this.input.models = () => this.context.suited;
    this.tracePanel = makeTracePanel(this.context, this.drawingOptions());
    this.append(this.input, this.message, this.tracePanel);
    this.context.keys(this.keys());
  }

  /** @returns {Record<string, () => void>} */
  keys() {
    return { "[": () => this.tracePanel.step(-1), "]": () => this.tracePanel.step(1) };
  }

  async update() {
    const turn = ++this.#turn;
    if (!this.tracePanel) this.build();
    const { context, input, tracePanel, message } = this;
    input.show();
    const { model } = context;
    input.hidden = !model;
    const text = model ? input.text : "";
    if (!model || !text.trim()) {
      tracePanel.hidden = true;
      context.legend(null, "");
      message.replaceChildren(model ? errorMessage(noText()) : noModel(context.screen));
      return;
    }
    if (!this.trace || tracePanel.hidden) {
      tracePanel.hidden = true;
      message.replaceChildren(loadingMessage());
    }
    try {
      const requested = context.api.explain(model.id, this.body(text));
      this.classList.add("waiting");
      const trace = await context.busy(requested);
      if (turn !== this.#turn) return;
      this.trace = trace;
      message.replaceChildren(...(trace.prediction?.truncated ? [truncationNote()] : []));
      tracePanel.hidden = false;
      tracePanel.above.replaceChildren();
      tracePanel.trace = trace;
      await tracePanel.show();
      if (turn !== this.#turn) return;
      await this.traceChanged(trace);
    } catch (error) {
      if (turn !== this.#turn) return;
      tracePanel.hidden = true;
      context.legend(null, "");
      message.replaceChildren(errorMessage(error));
    } finally {
      if (turn === this.#turn) this.classList.remove("waiting");
    }
  }
}

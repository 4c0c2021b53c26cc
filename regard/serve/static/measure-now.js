// <rg-measure-now>: a button that lets the server measure a model, and how far it is.

import { define, make } from "/page/elements.js";
import { errorMessage } from "./controls.js";

const POLL = 700;

export class MeasureNowElement extends HTMLElement {
  #bar = make("progress", { max: 1, value: 0, "aria-label": "Texts measured" });
  #text = make("span", { role: "status" });
  #busy = make("div", { className: "rg-measuring", hidden: true }, this.#bar, this.#text);
  #error = make("div", {});
  #button = make("button", { type: "button", className: "rg-button primary", textContent: "Measure now", on: { click: () => void this.#start() } });

  /** @type {import("./api.js").Api} */
  api = /** @type {any} */ (null);
  model = "";
  /** @type {() => void} called when there is a new report */
  done = () => {};

  connectedCallback() {
    if (!this.childElementCount) this.append(this.#button, this.#busy, this.#error);
  }

  async #start() {
    const { api, model } = this;
    this.#error.replaceChildren();
    this.#button.disabled = true;
    this.#busy.hidden = false;
    try {
      let progress = await api.measure(model);
      while (progress.status === "running" && progress.model === model) {
        this.#bar.max = Math.max(1, progress.total);
        this.#bar.value = progress.done;
        this.#text.textContent = `${progress.done} of ${progress.total} texts`;
        await new Promise((resolve) => setTimeout(resolve, POLL));
        if (!this.isConnected) return;
        progress = await api.measurement();
      }
      if (progress.status === "failed") throw new Error(`It could not be measured: ${progress.detail}.`);
      this.done();
    } catch (error) {
      this.#error.replaceChildren(errorMessage(error));
    } finally {
      this.#button.disabled = false;
      this.#busy.hidden = true;
    }
  }
}

/**
 * @param {import("./app.js").Context} context @param {string} model @param {() => void} done
 * @returns {MeasureNowElement}
 */
export function makeMeasureNow(context, model, done) {
  const element = /** @type {MeasureNowElement} */ (document.createElement("rg-measure-now"));
  return Object.assign(element, { api: context.api, model, done });
}

define("rg-measure-now", MeasureNowElement);

// <rg-scale-options>: how weights become colours, and <rg-table-toggle>: the drawing or its table, for screens with
// drawings of their own.

import { define, make } from "/page/elements.js";
import { fillSelect, selectField, checkbox, unitField } from "./controls.js";

/** Set `context`, then call `show()` in every update. */
export class ScaleOptionsElement extends HTMLElement {
  /** @type {import("./app.js").Context} */
  context = /** @type {any} */ (null);
  /** whether there is a scale to choose, or the threshold and special tokens alone */
  scaled = true;
  /** whether words can be shown instead of tokens */
  units = false;
  /** whether special tokens are hidden unless the state says otherwise */
  specials = false;
  #unit = unitField({ setState: (/** @type {any} */ change) => this.context.setState(change) });
  #scale = selectField("Scale", (scale) => this.context.setState({ scale: scale === "linear" ? undefined : scale }));
  #specials = checkbox("hide special tokens", (on) => this.context.setState({ specials: on === this.specials ? undefined : on ? "hide" : "show", row: undefined, column: undefined }));
  #number = make("output", {});
  #threshold = make("input", {
    type: "range", min: "0", max: "0.5", step: "0.005", value: "0",
    on: { input: () => this.context.setState({ threshold: this.#threshold.value === "0" ? undefined : this.#threshold.value }) },
  });

  /** @returns {boolean} */
  get hidesSpecials() {
    const { specials } = this.context.state;
    return specials === undefined ? this.specials : specials === "hide";
  }

  connectedCallback() {
    if (this.childElementCount) return;
    this.className = "rg-fields";
    fillSelect(this.#scale.select, [["linear", "linear"], ["sqrt", "square root"], ["log", "logarithmic"]], "linear");
    this.#scale.field.hidden = !this.scaled;
    this.#unit.field.hidden = !this.units;
    this.append(this.#unit.field, this.#scale.field, make("label", { className: "field" }, make("span", { textContent: "Hide below" }), this.#threshold, this.#number), this.#specials.field);
  }

  show() {
    const { state } = this.context;
    this.#scale.select.value = state.scale === "sqrt" || state.scale === "log" ? state.scale : "linear";
    const threshold = Math.min(0.5, Math.max(0, Number(state.threshold) || 0));
    this.#threshold.value = String(threshold);
    this.#number.textContent = threshold ? threshold.toFixed(3) : "off";
    this.#unit.select.value = state.unit === "words" ? "words" : "tokens";
    this.#specials.box.checked = this.hidesSpecials;
  }
}

define("rg-scale-options", ScaleOptionsElement);

/** Two buttons, which do what `T` does. Set `context` and `label`, then call `show()` in every update. */
export class TableToggleElement extends HTMLElement {
  /** @type {import("./app.js").Context} */
  context = /** @type {any} */ (null);
  /** what the drawing is called */
  label = "Picture";

  connectedCallback() {
    if (this.childElementCount) return;
    this.className = "tabs";
    this.role = "group";
    this.ariaLabel = "Drawing type";
    this.append(...[["", this.label], ["table", "Table"]].map(([value, textContent]) => make("button", {
      type: "button", textContent, value, "data-keep": `shape-${value}`, on: { click: () => this.context.setState({ shape: value, before: undefined }) },
    })));
    this.show();
  }

  show() {
    const table = this.context.state.shape === "table";
    for (const button of this.querySelectorAll("button")) button.setAttribute("aria-pressed", String(table === (button.value === "table")));
  }
}

define("rg-table-toggle", TableToggleElement);

/** @param {import("./app.js").Context} context @param {string} label @returns {TableToggleElement} */
export function makeTableToggle(context, label) {
  const made = /** @type {TableToggleElement} */ (document.createElement("rg-table-toggle"));
  made.context = context;
  made.label = label;
  return made;
}

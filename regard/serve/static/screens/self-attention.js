// <rg-screen-self-attention>: all layers and heads at a glance, the selected one in detail, and for
// each head how widely (entropy) and how far (mean distance) it looks. Also the screen for models of any
// task that has no screen of its own.

import { define, make } from "/page/elements.js";
import "/page/links.js";
import "/page/matrix.js";
import { outputOf } from "/page/trace-summary.js";
import { measures, weightsOf } from "/page/weights.js";
import { fillSelect, selectField } from "../controls.js";
import { TraceScreen } from "../trace-screen.js";

/** @typedef {import("/page/weights.js").TraceDocument} TraceDocument */
/** @typedef {import("/page/weights.js").LookRecord} LookRecord */

/** @param {LookRecord} look whether a text looks at itself in it */
function isSelfAttention(look) {
  return look.name.endsWith("self") || look.name === "past" || look.query_side === look.key_side;
}

/** @param {string} text words for those who do not see the heading @returns {HTMLElement} */
function hiddenText(text) {
  return make("span", { className: "rg-said", textContent: text });
}

class SelfAttentionScreen extends TraceScreen {
  output = make("div", { className: "rg-output" });
  list = make("ul", { className: "rg-heads-table" });
  #sort = selectField("Sort by", (sort) => this.context.setState({ sort: sort === "layer" ? undefined : sort }));
  /** @type {TraceDocument | null} */
  #of = null;
  #name = "";
  /** @type {Map<LookRecord, HTMLButtonElement>} */
  #lines = new Map();

  /** @returns {import("../trace-panel.js").DrawingOptions} */
  drawingOptions() {
    return {
      shapes: [["matrix", "Matrix", "regard-matrix"], ["links", "Links", "regard-links"]],
      // a model that never looks at its own text is shown with what it does look at
      fits: (look, trace) => isSelfAttention(look) || !trace.looks.some(isSelfAttention),
      aggregate: "one",
      firstRow: (view) => Math.floor(view.queries.length / 2),
      none: "This model has no attention to draw.",
      drawn: (_, __, looks) => {
        for (const [look, line] of this.#lines) line.setAttribute("aria-pressed", String(looks.includes(look)));
      },
    };
  }

  build() {
    const { context } = this;
    super.build();
    if (!context.state.model) {
      const fits = context.models.find((model) => model.ready && [model.config.model?.model, model.config.model?.encoder].includes("transformer"));
      if (fits) context.setState({ model: fits.id }, { quiet: true });
    }
    this.tracePanel.before(this.output);
    this.tracePanel.rail?.append(
      make("h2", { className: "rg-heads-title" }, "Head statistics ", make("span", { className: "over", textContent: "entropy · distance" })), this.#sort.field, this.list);
    fillSelect(this.#sort.select, [["layer", "layer and head"], ["entropy", "entropy, narrow first"], ["distance", "distance, near first"]], "layer");
  }

  /** @param {TraceDocument} trace */
  async traceChanged(trace) {
    const { context } = this;
    this.output.replaceChildren(...outputOf(trace, new Set([this.input.text])));
    this.output.hidden = !this.output.childElementCount;
    const name = this.tracePanel.lookName;
    const sort = context.state.sort === "entropy" || context.state.sort === "distance" ? context.state.sort : "layer";
    this.#sort.select.value = sort;
    this.#sort.field.hidden = trace.looks.filter((look) => look.name === name).length < 3;
    if (this.#of === trace && this.#name === `${name} ${sort}`) return;
    this.#of = trace;
    this.#name = `${name} ${sort}`;
    const looks = trace.looks.filter((look) => look.name === name);
    const found = await Promise.all(looks.map(async (look) => {
      const weights = await weightsOf(look);
      const keys = look.keys ?? trace.sides[look.key_side]?.tokens ?? [];
      return { look, ...measures(weights, Math.max(1, keys.length)) };
    }));
    if (this.#of !== trace) return;
    const [spread, far] = [Math.max(...found.map((one) => one.entropy), 1e-9), Math.max(...found.map((one) => one.distance), 1e-9)];
    if (sort !== "layer") found.sort((a, b) => a[sort] - b[sort]);
    this.#lines.clear();
    this.list.replaceChildren(...found.map(({ look, entropy, distance }) => {
      const bar = (/** @type {number} */ share) => {
        const fill = make("span", { className: "bar-fill" });
        fill.style.width = `${Math.max(1, 100 * share)}%`;
        return make("span", { className: "bar-track", "aria-hidden": "true" }, fill);
      };
      const title = [look.layer === undefined ? "" : `layer ${look.layer}`, look.head === undefined ? "" : `head ${look.head}`].filter(Boolean).join(" ") || look.name;
      const line = make("button", {
        type: "button", className: "rg-head-line", "aria-pressed": "false", title: "entropy in bits, mean distance in tokens",
        on: { click: () => this.context.setState({ layer: look.layer, head: look.head, aggregate: "one" }) },
      }, make("span", { textContent: title }), bar(entropy / spread), make("span", {}, hiddenText("entropy "), entropy.toFixed(2), hiddenText(" bits")), ...(isSelfAttention(look) ? [bar(distance / far), make("span", {}, hiddenText("mean distance "), distance.toFixed(1))] : []));
      this.#lines.set(look, line);
      return make("li", {}, line);
    }));
    await this.tracePanel.show();
  }
}

define("rg-screen-self-attention", SelfAttentionScreen);

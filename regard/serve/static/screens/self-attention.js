// <rg-screen-self-attention>: every layer and head at once, the chosen one in full, and what each
// head is like: how spread out it looks (entropy) and how far (mean distance).

import { define, make } from "/page/elements.js";
import "/page/links.js";
import "/page/matrix.js";
import { measures, weightsOf } from "/page/weights.js";
import { TraceScreen } from "./asking.js";

/** @typedef {import("/page/weights.js").TraceDocument} TraceDocument */
/** @typedef {import("/page/weights.js").LookRecord} LookRecord */

/** @param {LookRecord} look whether a text looks at itself in it */
function own(look) {
  return look.name.endsWith("self") || look.name === "past" || look.asking === look.asked;
}

/** @param {string} text words for those who do not see the heading @returns {HTMLElement} */
function said(text) {
  return make("span", { className: "rg-said", textContent: text });
}

class SelfAttentionScreen extends TraceScreen {
  list = make("ul", { className: "rg-heads-table" });
  /** @type {TraceDocument | null} */
  #of = null;
  #name = "";
  /** @type {Map<LookRecord, HTMLButtonElement>} */
  #lines = new Map();

  /** @returns {import("../board.js").Wish} */
  wish() {
    return {
      shapes: [["matrix", "Matrix", "regard-matrix"], ["links", "Links", "regard-links"]],
      fits: own,
      aggregate: "one",
      firstRow: (view) => Math.floor(view.queries.length / 2),
      none: "No layer of this model looks at its own text. Choose a transformer, or a tagger with attention.",
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
    this.board.rail?.append(
      make("h2", { className: "rg-heads-title" }, "What each head is like ", make("span", { className: "over", textContent: "entropy · distance" })), this.list);
  }

  /** @param {TraceDocument} trace */
  async told(trace) {
    const name = this.board.view ? this.board.title.split(" · ")[0] : "";
    if (this.#of === trace && this.#name === name) return;
    this.#of = trace;
    this.#name = name;
    const looks = trace.looks.filter((look) => look.name === name);
    const found = await Promise.all(looks.map(async (look) => {
      const weights = await weightsOf(look);
      const keys = look.keys ?? trace.sides[look.asked]?.tokens ?? [];
      return { look, ...measures(weights, Math.max(1, keys.length)) };
    }));
    if (this.#of !== trace) return;
    const [spread, far] = [Math.max(...found.map((one) => one.entropy), 1e-9), Math.max(...found.map((one) => one.distance), 1e-9)];
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
      }, make("span", { textContent: title }), bar(entropy / spread), make("span", {}, said("entropy "), entropy.toFixed(2), said(" bits")), bar(distance / far), make("span", {}, said("mean distance "), distance.toFixed(1)));
      this.#lines.set(look, line);
      return make("li", {}, line);
    }));
    await this.board.show();
  }
}

define("rg-screen-self-attention", SelfAttentionScreen);

// <rg-screen-trust>: the reports on whether a model's attention names the words that matter, as they
// were kept in its folder; and how to make one.

import { define, make } from "/page/elements.js";
import { shown } from "/page/words.js";
import { empty, fill, notice, picker } from "../controls.js";
import { intervalsPicture } from "../paper.js";
import { besides, sheetMenu } from "../saving.js";
import { shapeOf } from "../shade.js";
import "./styled.js";

/** @typedef {import("../app.js").Context} Context */
/** @typedef {{value: number | null, low: number | null, high: number | null}} Measured */
/**
 * @typedef {{name: string, current: boolean, task: string, texts: number, outputs: number, erase: string, shares: number[],
 *   comprehensiveness: Record<string, Measured>, sufficiency: Record<string, Measured>, agreement: Record<string, Measured>,
 *   flips: Record<string, Measured>, distance: Record<string, Measured>, verdict: string}} Report
 */

const PARTS = /** @type {["comprehensiveness" | "sufficiency" | "agreement" | "flips", string, string][]} */ ([
  ["comprehensiveness", "Loss without the words", "How much of its probability the answer loses without the words that each method names. More means that they mattered."],
  ["sufficiency", "Loss with these words alone", "How much it loses when those words are all that is left. Less means that they were enough."],
  ["agreement", "Agreement with attention", "Kendall’s τ: 1 where attention and the method put words in the same order, 0 where they have nothing in common."],
  ["flips", "Answers that change", "The share of answers that change when the weights are shuffled or made equal. If it is small, the weights cannot be the explanation."],
]);

class TrustScreen extends HTMLElement {
  /** @type {Context} */
  context = /** @type {any} */ (null);
  #turn = 0;
  #pick = picker("Model", (model) => this.context.setState({ model, report: undefined }, { push: true }));
  #name = picker("Measured on", (report) => this.context.setState({ report }));
  message = document.createElement("div");
  verdict = make("p", { className: "rg-verdict-line" });
  about = make("p", { className: "hint" });
  body = make("div", { className: "rg-two" });
  card = make("section", { className: "rg-panel-card", "aria-label": "Report" });
  /** @type {import("../shade.js").ShapeElement | null} */
  shape = null;
  /** @type {Report | null} */
  #report = null;
  /** @type {Map<string, Report[]>} */
  #known = new Map();

  #build() {
    const { context } = this;
    this.shape = shapeOf(context, "Chart");
    const menu = sheetMenu(() => "faithfulness", {
      title: () => `Faithfulness of ${this.#pick.select.value}, measured on ${this.#report?.name ?? ""}`,
      picture: () => this.#report && besides(this.#pictures(this.#report), 2),
      tables: () => (this.#report ? [this.#table(this.#report)] : []),
      json: () => this.#report,
    }, context);
    this.card.append(
      make("div", { className: "rg-card-head" }, make("h2", { textContent: "Does attention name the words that matter?" }), make("div", { className: "rg-fields" }, this.#name.field, this.shape, menu)),
      this.verdict, this.about, this.body);
    this.append(make("div", { className: "rg-fields" }, this.#pick.field), this.message, this.card, explanation());
    context.keys({});
  }

  async update() {
    const turn = ++this.#turn;
    if (!this.card.isConnected) this.#build();
    const { context, message } = this;
    const { model, state } = context;
    context.legend(null, "bars: 95 % intervals");
    this.card.hidden = true;
    this.#report = null;
    if (!model) {
      message.replaceChildren(empty("No model is served", "Start the server with the folder of a run."));
      return;
    }
    fill(this.#pick.select, context.models.map((one) => [one.id, one.id]), model.id);
    try {
      if (!this.#known.has(model.id)) this.#known.set(model.id, await context.busy(context.api.faithfulness(model.id)));
      if (turn !== this.#turn) return;
    } catch (error) {
      if (turn === this.#turn) message.replaceChildren(notice(error));
      return;
    }
    const reports = this.#known.get(model.id) ?? [];
    const report = reports.find((one) => one.name === state.report) ?? reports.find((one) => one.current) ?? reports[0];
    if (!report) {
      message.replaceChildren(empty("Nobody has asked yet", `Whether the weights of ${shown(model.id, 40)} name the words that matter has not been measured. Give it a file of texts, and the report appears here:`,
        make("pre", { className: "rg-code", tabIndex: 0, role: "region", "aria-label": "Command", textContent: `regard explain ${model.id} --data ${DATA[model.task] ?? "FILE"} --faithfulness` }),
        make("p", { className: "hint", textContent: "Write the folder of the run where its name stands." })));
      context.say("No report of this model has been kept.");
      return;
    }
    message.replaceChildren();
    this.card.hidden = false;
    this.#report = report;
    this.shape?.show();
    fill(this.#name.select, reports.map((one) => [one.name, one.name]), report.name);
    this.verdict.textContent = report.verdict;
    this.about.replaceChildren(
      `${report.texts} texts, ${report.outputs} answers, measured on “${shown(report.name)}”; words left out (${report.erase}): ${report.shares.map((share) => `${100 * share} %`).join(", ")}.`,
      report.current ? "" : make("strong", { className: "rg-wrong", textContent: " The model has been trained on since: its weights are not those that were measured." }));
    this.body.classList.toggle("one", state.shape === "table");
    if (state.shape === "table") {
      this.body.replaceChildren(make("div", { className: "table-scroller rg-table", tabIndex: 0, role: "region", "aria-label": "The report as a table" }, this.#table(report)));
    } else {
      this.body.replaceChildren(...PARTS.filter(([part]) => linesOf(report[part]).length).map(([part, title, about]) => make("section", {},
        make("h3", { textContent: title }), make("p", { className: "hint", textContent: about }), bars(report[part]))));
    }
    context.say(report.verdict);
  }

  /** @param {Report} report @returns {[string, SVGElement][]} */
  #pictures(report) {
    return PARTS.filter(([part]) => linesOf(report[part]).length).map(([part, title]) => ["", intervalsPicture(title, linesOf(report[part]))]);
  }

  /** @param {Report} report @returns {HTMLTableElement} */
  #table(report) {
    return make("table", {}, make("caption", { textContent: `Faithfulness on ${shown(report.name)}: values with their 95 % intervals` }),
      make("thead", {}, make("tr", {}, ...["what", "by", "value", "from", "to"].map((name) => make("th", { scope: "col", textContent: name })))),
      make("tbody", {}, ...PARTS.flatMap(([part, title]) => linesOf(report[part]).map((line) => make("tr", {}, make("th", { scope: "row", textContent: title }), make("td", { textContent: line.name }),
        ...[line.value, line.low, line.high].map((value) => make("td", { textContent: value.toFixed(3).replace("-", "−") })))))));
  }
}

const DATA = /** @type {Record<string, string>} */ ({ translation: "test.en test.fr", classify: "test.tsv", tag: "test.conll", language: "test.txt" });

/** @param {Record<string, Measured>} measured @returns {{name: string, value: number, low: number, high: number, strong: boolean}[]} those that are defined */
function linesOf(measured) {
  return Object.entries(measured ?? {}).flatMap(([name, one]) => (typeof one?.value === "number" && typeof one.low === "number" && typeof one.high === "number"
    ? [{ name: shown(name), value: one.value, low: one.low, high: one.high, strong: name === "attention" }] : []));
}

/** @param {Record<string, Measured>} measured @returns {HTMLElement} */
function bars(measured) {
  const lines = linesOf(measured);
  const ends = [0, ...lines.flatMap((line) => [line.low, line.high])];
  const [low, high] = [Math.min(...ends), Math.max(...ends, 1e-9)];
  const at = (/** @type {number} */ value) => (100 * (value - low)) / (high - low);
  return make("ul", { className: "rg-intervals" }, ...lines.map((line) => {
    const band = make("span", { className: "rg-interval" });
    band.style.left = `${at(line.low)}%`;
    band.style.width = `${Math.max(0.5, at(line.high) - at(line.low))}%`;
    const dot = make("span", { className: "rg-interval-dot" });
    dot.style.left = `${at(line.value)}%`;
    const zero = make("span", { className: "rg-interval-zero" });
    zero.style.left = `${at(0)}%`;
    const told = `${line.value.toFixed(2)} (${line.low.toFixed(2)} to ${line.high.toFixed(2)})`.replaceAll("-", "−");
    return make("li", { className: line.strong ? "strong" : "" }, make("bdi", { textContent: line.name }), make("span", { className: "rg-interval-track", "aria-hidden": "true" }, zero, band, dot), make("span", { className: "rg-interval-number", textContent: told }));
  }));
}

/** @returns {HTMLElement} why to ask at all */
function explanation() {
  const question = (/** @type {string} */ name, /** @type {string} */ text) => make("li", {}, make("strong", { textContent: `${name} ` }), text);
  return make("section", { className: "rg-panel-card rg-prose", "aria-label": "Why ask" },
    make("h2", { textContent: "Weights show where it looked, not why it answered" }),
    make("p", { textContent: "An attention weight is a fact: so much of this word’s vector went into that sum. Whether the answer hangs on it is another question. Much of what a word means has already been mixed into its neighbours, other paths lead around attention, and two quite different sets of weights can give the same answer." }),
    make("p", {}, "The ", make("a", { href: "/gradient", textContent: "gradient flow" }), " screen puts weights beside gradients for one text. For a whole file, let the model be measured:"),
    make("pre", { className: "rg-code", tabIndex: 0, role: "region", "aria-label": "How to measure", textContent: "regard explain runs/mine --data test.tsv --faithfulness" }),
    make("ul", {},
      question("Erasure.", "Does the answer lose more without the words that attention names than without random ones, or without those that gradients name?"),
      question("Agreement.", "Do attention and the other methods put words in the same order?"),
      question("Shuffling.", "How often does the answer change when the weights are given to other words? If it hardly does, the weights cannot be the explanation.")),
    make("p", { textContent: "The report ends in one sentence, and says “more” or “less” only where the interval of the difference leaves out zero. It is kept in the run’s folder, and shown here." }));
}

define("rg-screen-trust", TrustScreen);

// <rg-screen-trust>: the saved reports on whether a model's attention finds the words that matter, and
// how to make one.

import { define, make } from "/page/elements.js";
import { displayText } from "/page/token-text.js";
import { dataLabel, emptyMessage, fillSelect, errorMessage, selectField } from "../controls.js";
import { codeBlock } from "../copy.js";
import { intervalsPicture } from "../export-pictures.js";
import { sideBySide, sheetMenu } from "../export.js";
import { intervalBars } from "../interval-bars.js";
import { makeMeasureNow } from "../measure-now.js";
import { commandArgument } from "../model-card.js";
import { makeTableToggle } from "../drawing-options.js";
import "./stylesheet.js";

/** @typedef {import("../app.js").Context} Context */
/** @typedef {{value: number | null, low: number | null, high: number | null}} Measured */
/**
 * @typedef {{name: string, data?: string[], current: boolean, task: string, texts: number, outputs: number, erase: string, proportions: number[],
 *   comprehensiveness: Record<string, Measured>, sufficiency: Record<string, Measured>, agreement: Record<string, Measured>,
 *   flips: Record<string, Measured>, distance: Record<string, Measured>, verdict: string}} Report
 */

const PARTS = /** @type {["comprehensiveness" | "sufficiency" | "agreement" | "flips", string, string][]} */ ([
  ["comprehensiveness", "Loss without these words", "How much of its probability the output loses without the words that each method ranks highest. Higher means that they mattered."],
  ["sufficiency", "Loss with only these words", "How much it loses when only those words are kept. Lower means that they were enough."],
  ["agreement", "Agreement with attention", "Kendall’s τ: 1 if attention and the method rank the words alike, 0 if the rankings are unrelated."],
  ["flips", "Outputs that change", "The share of outputs that change when the weights are shuffled or made uniform. If it is small, the weights cannot be the explanation."],
]);

class TrustScreen extends HTMLElement {
  /** @type {Context} */
  context = /** @type {any} */ (null);
  #turn = 0;
  #pick = selectField("Model", (model) => this.context.setState({ model, report: undefined }, { push: true }));
  #name = selectField("Measured on", (report) => this.context.setState({ report }));
  message = document.createElement("div");
  verdict = make("p", { className: "rg-verdict-line" });
  about = make("p", { className: "hint" });
  body = make("div", { className: "rg-two" });
  command = make("div", {});
  card = make("section", { className: "rg-panel-card", "aria-label": "Report" });
  /** @type {import("../drawing-options.js").TableToggleElement | null} */
  shape = null;
  /** @type {Report | null} */
  #report = null;
  /** @type {Map<string, Report[]>} */
  #known = new Map();

  #build() {
    const { context } = this;
    this.shape = makeTableToggle(context, "Chart");
    const menu = sheetMenu(() => "faithfulness", {
      title: () => `Faithfulness of ${this.#pick.select.value}, measured on ${this.#report ? dataLabel(this.#report) : ""}`,
      picture: () => this.#report && sideBySide(this.#pictures(this.#report), 2),
      tables: () => (this.#report ? [this.#table(this.#report)] : []),
      json: () => this.#report,
    }, context);
    this.card.append(
      make("div", { className: "rg-card-head" }, make("h2", { textContent: "Does attention find the words that matter?" }), make("div", { className: "rg-fields" }, this.#name.field, this.shape, menu)),
      this.verdict, this.about, this.body);
    this.append(make("div", { className: "rg-fields" }, this.#pick.field), this.message, this.card, explanation(this.command));
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
      message.replaceChildren(emptyMessage("No model is served", "Start the server with a run folder, such as: regard serve runs/mine"));
      return;
    }
    this.command.replaceChildren(codeBlock(`regard explain ${commandArgument(model)} --data FILE --faithfulness`, "How to measure"));
    fillSelect(this.#pick.select, context.models.map((one) => [one.id, one.id]), model.id);
    try {
      if (!this.#known.has(model.id)) this.#known.set(model.id, await context.busy(context.api.faithfulness(model.id)));
      if (turn !== this.#turn) return;
    } catch (error) {
      if (turn === this.#turn) message.replaceChildren(errorMessage(error));
      return;
    }
    const reports = this.#known.get(model.id) ?? [];
    const report = reports.find((one) => one.name === state.report) ?? reports.find((one) => one.current) ?? reports[0];
    if (!report) {
      message.replaceChildren(emptyMessage("Not measured yet", `Whether the attention of ${displayText(model.id, 40)} finds the words that matter has not been measured. The server can measure it now, on a sample of 24 texts; more texts, with the command below, give narrower intervals.`,
        ...(model.looks.length ? [makeMeasureNow(context, model.id, () => { this.#known.delete(model.id); void this.update(); })] : [])));
      context.say("There is no report for this model.");
      return;
    }
    message.replaceChildren();
    this.card.hidden = false;
    this.#report = report;
    this.shape?.show();
    fillSelect(this.#name.select, reports.map((one) => [one.name, dataLabel(one)]), report.name);
    this.verdict.textContent = report.verdict;
    this.about.replaceChildren(
      `${report.texts} texts, ${report.outputs} outputs, measured on “${dataLabel(report)}”; share of words removed (${report.erase}): ${report.proportions.map((proportion) => `${100 * proportion} %`).join(", ")}.`,
      report.current ? "" : make("strong", { className: "rg-wrong", textContent: " The model has been trained further since: this report is about earlier weights." }));
    this.body.classList.toggle("one", state.shape === "table");
    if (state.shape === "table") {
      this.body.replaceChildren(make("div", { className: "table-scroller rg-table", tabIndex: 0, role: "region", "aria-label": "The report as a table" }, this.#table(report)));
    } else {
      this.body.replaceChildren(...PARTS.filter(([part]) => linesOf(report[part]).length).map(([part, title, about]) => make("section", {},
        make("h3", { textContent: title }), make("p", { className: "hint", textContent: about }), intervalBars(linesOf(report[part])))));
    }
    context.say(report.verdict);
  }

  /** @param {Report} report @returns {[string, SVGElement][]} */
  #pictures(report) {
    return PARTS.filter(([part]) => linesOf(report[part]).length).map(([part, title]) => ["", intervalsPicture(title, linesOf(report[part]))]);
  }

  /** @param {Report} report @returns {HTMLTableElement} */
  #table(report) {
    return make("table", {}, make("caption", { textContent: `Faithfulness on ${dataLabel(report)}: values with their 95 % intervals` }),
      make("thead", {}, make("tr", {}, ...["measure", "method", "value", "low", "high"].map((name) => make("th", { scope: "col", textContent: name })))),
      make("tbody", {}, ...PARTS.flatMap(([part, title]) => linesOf(report[part]).map((line) => make("tr", {}, make("th", { scope: "row", textContent: title }), make("td", { textContent: line.name }),
        ...[line.value, ...(line.interval ?? [null, null])].map((value) => make("td", { textContent: value === null ? "" : value.toFixed(3).replace("-", "−") })))))));
  }
}

/** @param {Record<string, Measured>} measured @returns {import("../export-pictures.js").IntervalLine[]} those that are defined; few texts allow no interval */
function linesOf(measured) {
  return Object.entries(measured ?? {}).flatMap(([name, one]) => (typeof one?.value === "number"
    ? [{ name: displayText(name), value: one.value, interval: typeof one.low === "number" && typeof one.high === "number" ? [one.low, one.high] : null, strong: name === "attention" }] : []));
}

/** @param {HTMLElement} command how to measure @returns {HTMLElement} why to ask at all */
function explanation(command) {
  const question = (/** @type {string} */ name, /** @type {string} */ text) => make("li", {}, make("strong", { textContent: `${name} ` }), text);
  return make("section", { className: "rg-panel-card rg-prose", "aria-label": "Background" },
    make("h2", { textContent: "Weights show where the model looked, not why it answered" }),
    make("p", { textContent: "An attention weight is a fact: this much of a word’s vector went into the sum. Whether the output depends on it is another question. By then, much of a word’s meaning has been mixed into its neighbours, other paths bypass attention, and two quite different sets of weights can give the same output." }),
    make("p", {}, "The ", make("a", { href: "/gradient", textContent: "gradient flow" }), " screen shows weights next to gradients for one text. To measure a model on a whole file, run:"),
    command,
    make("ul", {},
      question("Erasure.", "Does the output lose more probability without the words that attention ranks highest than without random words, or than without those that gradients rank highest?"),
      question("Agreement.", "Do attention and the other methods rank the words alike?"),
      question("Shuffling.", "How often does the output change when the weights are moved to other words? If rarely, the weights cannot be the explanation.")),
    make("p", { textContent: "The report ends with a verdict in one sentence, which says “more” or “less” only where the confidence interval of the difference excludes zero. It is saved in the run folder and shown here." }));
}

define("rg-screen-trust", TrustScreen);

// <rg-screen-comparisons>: what `regard compare` found: the verdict, the metric of each system with its
// interval, quality by length, and the tests of all pairs.

import { define, make } from "/page/elements.js";
import { displayText } from "/page/token-text.js";
import { factorOf, metricLabel, metricWriter } from "../metric-format.js";
import { seriesKey } from "../chart.js";
import { emptyMessage, errorMessage, fillSelect, loadingMessage, selectField } from "../controls.js";
import { codeBlock } from "../copy.js";
import { makeTableToggle } from "../drawing-options.js";
import { intervalsPicture } from "../export-pictures.js";
import { sheetMenu, sideBySide } from "../export.js";
import { intervalBars, plainTable, tableFrame } from "../interval-bars.js";
import { dateText } from "../model-card.js";
import "./stylesheet.js";

/** @typedef {import("../app.js").Context} Context */
/** @typedef {{value: number | null, low: number | null, high: number | null, p_value?: number}} Estimate */
/**
 * @typedef {{label: string, seeds: number, estimate: Estimate, parameters: number, items_per_second: number | null, processor_seconds: number | null,
 *   peak_memory: number | null, updates: number | null, by_length: Record<string, number | null>}} System
 */
/** @typedef {{first: string, second: string, difference: Estimate, corrected: number | null, differs: boolean}} Pair */
/**
 * @typedef {{id: string, task: string, metric: string, unit: string, higher: boolean, budget: string, examples: number, verdict: string, written: number,
 *   systems: System[], pairs: Pair[], failed?: Record<string, string>, impossible?: Record<string, string>}} Report
 */
/** @typedef {{id: string, finished: boolean, task: string | null, verdict: string, written: number}} Entry */

const COMMAND = "regard compare classify --vary pooling=sum,weighted,self --seeds 3 --budget epochs=3";
const MOST_SERIES = 4;
const METHOD = "Intervals (95 %) are over seeds and test sentences together. Two systems are compared on the same test sentences, and p-values are corrected for the number of pairs (Holm).";

class ComparisonsScreen extends HTMLElement {
  /** @type {Context} */
  context = /** @type {any} */ (null);
  #turn = 0;
  #pick = selectField("Comparison", (comparison) => this.context.setState({ comparison, bucket: undefined }, { push: true }));
  message = document.createElement("div");
  heading = make("h2", {});
  verdict = make("p", { className: "rg-verdict-line" });
  about = make("p", { className: "hint" });
  body = make("div", { className: "rg-stack" });
  chart = /** @type {import("../chart.js").ChartElement} */ (document.createElement("rg-chart"));
  card = make("section", { className: "rg-panel-card", "aria-label": "Report", hidden: true });
  command = make("section", { className: "rg-panel-card rg-prose", "aria-label": "How to compare", hidden: true },
    make("h2", { textContent: "Compare your own" }),
    make("p", { textContent: "Any option of a task can vary. Every combination is trained with several seeds and the same budget; results in the folder “comparisons” appear here." }),
    codeBlock(COMMAND, "Command"));
  /** @type {import("../drawing-options.js").TableToggleElement | null} */
  shape = null;
  /** @type {Entry[] | null} */
  #all = null;
  /** @type {Map<string, Report>} */
  #known = new Map();
  /** @type {Report | null} */
  #report = null;

  #build() {
    const { context } = this;
    this.shape = makeTableToggle(context, "Chart");
    this.card.append(
      make("div", { className: "rg-card-head" }, this.heading, make("div", { className: "rg-fields" }, this.shape, sheetMenu(() => `comparison-${this.#report?.id ?? ""}`, {
        title: () => `${this.heading.textContent}: ${this.#report?.verdict ?? ""}`,
        picture: () => this.#report && sideBySide([["", intervalsPicture(metricName(this.#report), linesOf(this.#report), scaleOf(this.#report))]], 1),
        tables: () => (this.#report ? tables(this.#report).map(([, table]) => table) : []),
        json: () => this.#report,
      }, context))),
      this.verdict, this.about, this.body);
    this.append(make("div", { className: "rg-fields" }, this.#pick.field), this.message, this.card, this.command);
    this.chart.addEventListener("rg-point", (event) => context.say(/** @type {CustomEvent} */ (event).detail.text));
    this.chart.addEventListener("rg-pass", (event) => context.showHover(/** @type {CustomEvent} */ (event).detail.text));
    context.keys({});
  }

  async update() {
    const turn = ++this.#turn;
    if (!this.card.isConnected) this.#build();
    const { context, message } = this;
    context.legend(null, "bars: 95 % intervals");
    try {
      if (!this.#all) {
        this.#pick.field.hidden = true;
        message.replaceChildren(loadingMessage("Reading…"));
        this.#all = await context.busy(context.api.comparisons());
      }
      const all = /** @type {Entry[]} */ (this.#all);
      const chosen = all.find((one) => one.id === context.state.comparison) ?? all.find((one) => one.finished) ?? all[0] ?? null;
      if (chosen?.finished && !this.#known.has(chosen.id)) this.#known.set(chosen.id, await context.busy(context.api.comparison(chosen.id)));
      if (turn !== this.#turn) return;
      this.#pick.field.hidden = !all.length;
      fillSelect(this.#pick.select, all.map((one) => [one.id, `${displayText(one.id, 80)}${one.finished ? "" : " (not finished)"}`]), chosen?.id ?? "");
      this.#report = chosen ? this.#known.get(chosen.id) ?? null : null;
      this.card.hidden = !this.#report;
      this.command.hidden = false;
      if (this.#report) {
        message.replaceChildren();
        this.#draw(this.#report);
      } else {
        message.replaceChildren(chosen
          ? emptyMessage("Not finished yet", `The comparison ${displayText(chosen.id, 80)} has no report yet. The command that started it resumes it; reload this page when it has finished.`)
          : emptyMessage("No comparison yet", "Nothing has been compared here. The command below takes about a minute; reload this page when it has finished."));
        context.say(chosen ? "This comparison is not finished." : "There is no comparison yet.");
      }
    } catch (error) {
      if (turn !== this.#turn) return;
      this.card.hidden = this.command.hidden = true;
      message.replaceChildren(errorMessage(error));
    }
  }

  /** @param {Report} report */
  #draw(report) {
    const { context } = this;
    this.shape?.show();
    const count = report.systems.length;
    this.heading.textContent = `${count === 1 ? "One system" : `${count} systems`} for ${displayText(report.task, 40)}`;
    this.verdict.textContent = displayText(report.verdict, 1500);
    this.about.textContent = `Budget of each training: ${displayText(String(report.budget), 60)}; ${Number(report.examples).toLocaleString("en")} test examples; ${dateText(report.written)}. ${METHOD}`;
    const notes = [...notesOf("Failed", report.failed), ...notesOf("Not possible", report.impossible)];
    const parts = tables(report).map(([title, table]) => make("section", {}, make("h3", { textContent: title }), tableFrame(title, table)));
    if (context.state.shape === "table") this.body.replaceChildren(...parts, ...notes);
    else {
      this.body.replaceChildren(
        make("section", {}, make("h3", { textContent: `${metricName(report)}, ${report.higher ? "higher" : "lower"} is better` }), intervalBars(linesOf(report), scaleOf(report))),
        ...this.#byLength(report), ...notes);
    }
    context.say(report.verdict);
  }

  /** @param {Report} report @returns {HTMLElement[]} */
  #byLength(report) {
    const buckets = bucketsOf(report);
    if (buckets.length < 2) return [];
    const factor = factorOf(report);
    const shown = report.systems.slice(0, MOST_SERIES);
    const series = shown.map((one) => ({ name: one.label, points: buckets.flatMap((bucket, x) => (typeof one.by_length[bucket] === "number" ? [{ x, y: factor * /** @type {number} */ (one.by_length[bucket]) }] : [])) }));
    const title = `${metricName(report)} by length of the input`;
    this.chart.show({ title, across: "length", axis: "length of the input", up: metricName(report), series, places: buckets });
    return [make("section", {}, make("h3", { textContent: title }), seriesKey(series), this.chart,
      report.systems.length > MOST_SERIES ? make("p", { className: "hint", textContent: `The best ${MOST_SERIES} of ${report.systems.length} systems; the table has all.` }) : "")];
  }
}

/** @param {Report} report @returns {string} */
function metricName(report) { return metricLabel(report.metric, report); }

/** @param {Report} report @returns {string[]} */
function bucketsOf(report) { return [...new Set(report.systems.flatMap((one) => Object.keys(one.by_length ?? {})))]; }

/** @param {Report} report @returns {{zero: boolean, number: (value: number) => string}} */
function scaleOf(report) {
  const written = metricWriter(report);
  return { zero: false, number: (value) => written(value / factorOf(report)) };
}

/** @param {Report} report @returns {import("../export-pictures.js").IntervalLine[]} */
function linesOf(report) {
  const factor = factorOf(report);
  return report.systems.flatMap(({ label, estimate }, i) => (typeof estimate?.value === "number" ? [{
    name: displayText(label, 60), value: factor * estimate.value, strong: i === 0,
    interval: typeof estimate.low === "number" && typeof estimate.high === "number" ? /** @type {[number, number]} */ ([factor * estimate.low, factor * estimate.high]) : null,
  }] : []));
}

/** @param {Report} report @returns {[string, HTMLTableElement][]} */
function tables(report) {
  const written = metricWriter(report);
  const whole = (/** @type {number | null} */ value) => (typeof value === "number" ? Math.round(value).toLocaleString("en") : "–");
  const interval = (/** @type {Estimate} */ { low, high }) => (typeof low === "number" && typeof high === "number" ? `${written(low)} to ${written(high)}` : "–");
  const made = /** @type {[string, HTMLTableElement][]} */ ([["Systems, best first", plainTable(`Systems, best first: ${metricName(report)} with its 95 % interval`,
    ["system", metricName(report), "95 % interval", "seeds", "parameters", "items/s", "processor time (s)", "peak memory (MB)", "updates"],
    report.systems.map((one) => [displayText(one.label, 120), written(one.estimate.value), interval(one.estimate), String(one.seeds), whole(one.parameters), whole(one.items_per_second),
      whole(one.processor_seconds), whole(one.peak_memory === null ? null : one.peak_memory / 1e6), whole(one.updates)]))]]);
  if (report.pairs.length) {
    const pairs = [...report.pairs].sort((a, b) => (a.corrected ?? 1) - (b.corrected ?? 1));
    made.push(["Differences", plainTable("Differences of all pairs, first minus second", ["difference", metricName(report), "95 % interval", "p", "p corrected", "different"],
      pairs.map((pair) => [`${displayText(pair.first, 60)} − ${displayText(pair.second, 60)}`, written(pair.difference.value), interval(pair.difference),
        ...[pair.difference.p_value, pair.corrected].map((p) => (typeof p === "number" ? p.toFixed(3) : "–")), pair.differs ? "yes" : "not seen"]))]);
  }
  const buckets = bucketsOf(report);
  if (buckets.length) made.push(["Quality by length", plainTable(`${metricName(report)} by length of the input`, ["length", ...buckets.map((bucket) => displayText(bucket, 20))],
    report.systems.map((one) => [displayText(one.label, 120), ...buckets.map((bucket) => written(one.by_length[bucket]))]))]);
  return made;
}

/** @param {string} word @param {Record<string, string> | undefined} reasons @returns {HTMLElement[]} */
function notesOf(word, reasons) {
  return Object.entries(reasons ?? {}).slice(0, 20).map(([label, reason]) => make("p", { className: "hint", textContent: `${word}: ${displayText(label, 120)}: ${displayText(String(reason), 300)}` }));
}

define("rg-screen-comparisons", ComparisonsScreen);

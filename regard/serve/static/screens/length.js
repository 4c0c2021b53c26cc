// <rg-screen-length>: quality by the length of the source, for one run or several, with intervals
// and counts; a bucket opens its sentences.

import { define, make } from "/page/elements.js";
import { displayText } from "/page/token-text.js";
import { seriesKey } from "../chart.js";
import { metricLabel, metricPoint } from "../metric-format.js";
import { dataLabel, emptyMessage, fillSelect, errorMessage, selectField } from "../controls.js";
import { codeBlock } from "../copy.js";
import { sheetMenu } from "../export.js";
import { firstScreen } from "../screen-list.js";
import { makeTableToggle } from "../drawing-options.js";
import "./stylesheet.js";

/** @typedef {import("../app.js").Context} Context */
/** @typedef {{value: number, low?: number | null, high?: number | null, n?: number, unit?: string, name?: string}} Measured */
/** `weights` says which weights a validation is about.
 * @typedef {{name: string, data?: string[], main?: string, weights?: string, sentences: boolean, metrics: Record<string, Measured>, by_length: Record<string, Measured>}} Evaluation */

const MOST_RUNS = 4;
const PAGE = 24;

class LengthScreen extends HTMLElement {
  /** @type {Context} */
  context = /** @type {any} */ (null);
  #turn = 0;
  #name = selectField("Evaluation", (evaluation) => this.context.setState({ evaluation, bucket: undefined }));
  runs = make("div", { className: "rg-examples", role: "group", "aria-label": "Runs" });
  message = document.createElement("div");
  chart = /** @type {import("../chart.js").ChartElement} */ (document.createElement("rg-chart"));
  table = make("div", { className: "table-scroller rg-table", tabIndex: 0, role: "region", "aria-label": "Quality by length as a table", hidden: true });
  /** @type {import("../drawing-options.js").TableToggleElement | null} */
  shape = null;
  /** @type {[string, string][]} runs with the evaluation of each that is drawn */
  #shown = [];
  key = make("div", {});
  heading = make("h2", {});
  weights = make("p", { className: "hint" });
  card = make("section", { className: "rg-panel-card", "aria-label": "Quality by length" });
  sentences = make("section", { className: "rg-panel-card", "aria-label": "Sentences" });
  /** @type {Map<string, Evaluation[]>} */
  #found = new Map();
  /** @type {Map<string, any[]>} */
  #lines = new Map();
  /** @type {string[]} */
  #buckets = [];

  #build() {
    const { context, chart } = this;
    this.card.append(
      make("div", { className: "rg-card-head" }, this.heading, make("div", { className: "rg-fields" }, this.#name.field, (this.shape = makeTableToggle(context, "Chart")), sheetMenu(() => "length", {
        title: () => this.heading.textContent ?? "", picture: () => chart.picture(), tables: () => [chart.table()],
        json: () => Object.fromEntries(this.#shown.map(([run, name]) => [run, this.#evaluation(run, name)])),
      }, context))),
      this.key, chart, this.weights, make("p", { className: "hint", textContent: "Points with 95 % intervals; the small bars show the number of examples. Select a length to see its sentences." }), this.table);
    this.append(this.runs, this.message, this.card, this.sentences);
    chart.addEventListener("rg-point", (event) => {
      const { index, text } = /** @type {CustomEvent} */ (event).detail;
      context.setState({ bucket: this.#buckets[index], from: undefined });
      context.say(text);
    });
    chart.addEventListener("rg-pass", (event) => context.showHover(/** @type {CustomEvent} */ (event).detail.text));
    context.keys({});
  }

  async update() {
    const turn = ++this.#turn;
    if (!this.card.isConnected) this.#build();
    const { context, message } = this;
    const { state } = context;
    context.legend(null, "bands: 95 % intervals");
    try {
      const missing = context.models.filter((model) => !this.#found.has(model.id));
      await context.busy(Promise.all(missing.map(async (model) => this.#found.set(model.id, await context.api.evaluations(model.id)))));
      if (turn !== this.#turn) return;
    } catch (error) {
      if (turn !== this.#turn) return;
      this.card.hidden = this.sentences.hidden = true;
      message.replaceChildren(errorMessage(error));
      return;
    }
    const measured = context.models.filter((model) => (this.#found.get(model.id) ?? []).some((one) => Object.keys(one.by_length ?? {}).length));
    this.card.hidden = this.sentences.hidden = !measured.length;
    if (!measured.length) {
      this.runs.replaceChildren();
      message.replaceChildren(emptyMessage("No evaluation by length yet", "Evaluate a run on a file, and its results appear here:",
        codeBlock("regard evaluate runs/mine --data FILE", "Command")));
      return;
    }
    message.replaceChildren();
    const requested = (state.runs ?? "").split(",").filter((id) => measured.some((model) => model.id === id));
    const first = measured.find((model) => model.id === context.model?.id) ?? measured[0];
    const task = measured.find((model) => model.id === requested[0])?.task ?? first.task;
    const peers = measured.filter((model) => model.task === task);
    const chosen = requested.length ? requested.filter((id) => peers.some((model) => model.id === id)).slice(0, MOST_RUNS) : peers.slice(0, MOST_RUNS).map((model) => model.id);
    const names = [...new Set(chosen.flatMap((id) => (this.#found.get(id) ?? []).filter((one) => Object.keys(one.by_length).length).map((one) => one.name)))];
    const shared = names.filter((one) => chosen.every((id) => Object.keys(this.#evaluation(id, one)?.by_length ?? {}).length));
    const good = shared.length ? shared : names;
    const name = names.includes(state.evaluation) ? state.evaluation : good.find((one) => one !== "validation") ?? good[0];
    this.#chips(measured, chosen, task);
    fillSelect(this.#name.select, names.map((one) => [one, this.#label(chosen, one)]), name);
    this.#name.field.hidden = names.length < 2;
    this.#draw(chosen, name);
    await this.#read(chosen, name, turn);
  }

  /** @param {import("../api.js").ModelCard[]} measured @param {string[]} chosen @param {string} task */
  #chips(measured, chosen, task) {
    this.runs.replaceChildren(...measured.map((model) => make("button", {
      type: "button", className: "rg-chip", "aria-pressed": String(chosen.includes(model.id)), textContent: `${model.id} · ${model.task}`, "data-run": model.id,
      on: {
        click: () => {
          // runs of another task have other metrics: selecting one starts a new selection
          const next = model.task !== task ? [model.id] : chosen.includes(model.id) ? chosen.filter((id) => id !== model.id) : [...chosen, model.id].slice(-MOST_RUNS);
          this.context.setState({ runs: next.length ? next.join(",") : model.id, bucket: undefined, evaluation: undefined });
          /** @type {HTMLElement | null} */ (this.runs.querySelector(`[data-run="${CSS.escape(model.id)}"]`))?.focus();
        },
      },
    })));
  }

  /** @param {string[]} chosen @param {string} name @returns {string} the full paths of the data, which tell files of one name apart */
  #label(chosen, name) {
    return dataLabel(chosen.map((id) => this.#evaluation(id, name)).find((one) => one) ?? { name });
  }

  /** @param {string} run @param {string} name @returns {Evaluation | undefined} */
  #evaluation(run, name) {
    return this.#found.get(run)?.find((one) => one.name === name);
  }

  /** @param {string[]} chosen @param {string} name */
  #draw(chosen, name) {
    const { state } = this.context;
    const known = chosen.map((id) => this.#evaluation(id, name)?.by_length ?? {});
    this.#buckets = [...new Set(known.flatMap((one) => Object.keys(one)))].sort((a, b) => start(a) - start(b));
    const series = chosen.map((id, s) => ({
      name: id,
      points: this.#buckets.flatMap((bucket, x) => {
        const found = known[s][bucket];
        return found && typeof found.value === "number" ? [metricPoint(x, found)] : [];
      }),
    })).filter((one) => one.points.length);
    const measured = known.flatMap((one) => Object.values(one))[0];
    const measure = measured?.name ?? this.#evaluation(chosen[0], name)?.main ?? "quality";
    this.heading.textContent = `${measure} by source length`;
    this.key.replaceChildren(seriesKey(series));
    this.chart.show({ title: `${measure} by source length`, across: "words", axis: "source length in words", up: metricLabel(measure, measured ?? {}), series, places: this.#buckets, counts: true }, this.#buckets.indexOf(state.bucket));
    this.#shown = chosen.map((id) => [id, name]);
    const weights = chosen.flatMap((id) => { const found = this.#evaluation(id, name)?.weights; return found ? [`${id}: ${found}`] : []; });
    this.weights.textContent = weights.length ? `Validation data, measured during training. ${weights.join("; ")}.` : "";
    this.weights.hidden = !weights.length;
    this.shape?.show();
    const table = state.shape === "table";
    this.chart.hidden = table;
    this.table.hidden = !table;
    if (table) this.table.replaceChildren(this.chart.table());
    const at = this.#buckets.indexOf(state.bucket);
    this.context.say(at < 0 ? `${this.heading.textContent}: ${series.length} ${series.length === 1 ? "run" : "runs"}, ${this.#buckets.length} ${this.#buckets.length === 1 ? "length" : "lengths"}` : this.chart.words(at));
  }

  /** @param {string[]} chosen @param {string} name @param {number} turn */
  async #read(chosen, name, turn) {
    const { context, sentences } = this;
    const { bucket } = context.state;
    sentences.hidden = bucket === undefined;
    if (bucket === undefined) return;
    const run = chosen.includes(context.state.from) ? context.state.from : chosen[0];
    const key = `${run}\n${name}`;
    if (!this.#evaluation(run, name)?.sentences) {
      sentences.replaceChildren(emptyMessage("No sentences saved", `“${displayText(name)}” contains metrics only. Evaluate the run on a file to save its sentences too:`,
        codeBlock(`regard evaluate ${context.models.find((model) => model.id === run)?.argument ?? run} --data FILE`, "Command")));
      return;
    }
    try {
      if (!this.#lines.has(key)) this.#lines.set(key, await context.busy(context.api.sentences(run, name)));
      if (turn !== this.#turn) return;
      const [low, high] = [start(bucket), end(bucket)];
      const some = (this.#lines.get(key) ?? []).filter((line) => { const n = wordsOf(line); return n >= low && n <= high; });
      const tabs = chosen.length > 1 ? make("div", { className: "tabs", role: "group", "aria-label": "Sentences of" }, ...chosen.map((id) => make("button", { type: "button", textContent: id, "aria-pressed": String(id === run), on: { click: () => context.setState({ from: id }) } }))) : null;
      sentences.replaceChildren(
        make("div", { className: "rg-card-head" }, make("h2", { textContent: `${some.length} sentences of ${bucket} words` }), tabs),
        some.length ? make("ol", { className: "rg-lines" }, ...some.slice(0, PAGE).map((line) => this.#line(run, line))) : make("p", { className: "hint", textContent: "No saved sentence has this length." }),
        some.length > PAGE ? make("p", { className: "hint", textContent: `The first ${PAGE} of ${some.length} are shown.` }) : "");
    } catch (error) {
      if (turn !== this.#turn) return;
      sentences.replaceChildren(errorMessage(error));
    }
  }

  /** @param {string} run @param {Record<string, any>} line */
  #line(run, line) {
    const model = this.context.models.find((one) => one.id === run);
    const given = String(line.source ?? line.text ?? (Array.isArray(line.words) ? line.words.join(" ") : ""));
    const right = String(line.reference ?? line.label ?? (Array.isArray(line.tags) ? line.tags.join(" ") : ""));
    const said = String(line.translation ?? (Array.isArray(line.predicted) ? line.predicted.join(" ") : line.predicted ?? ""));
    return make("li", {}, make("dl", { className: "rg-sample" },
      make("dt", { textContent: "input" }), make("dd", { dir: "auto", textContent: displayText(given, 600) }),
      ...(right ? [make("dt", { textContent: "expected" }), make("dd", { dir: "auto", textContent: displayText(right, 600) })] : []),
      make("dt", { textContent: "output" }), make("dd", { dir: "auto" }, make("span", { textContent: displayText(said, 600) }), " ", right ? make("strong", { className: said === right ? "rg-right" : "rg-wrong", textContent: said === right ? "✓ identical" : "✗" }) : null)),
      model && given ? make("a", { href: `/${firstScreen(model)}?${new URLSearchParams({ model: run, text: given })}`, textContent: "Open" }) : "");
  }
}

/** @param {string} bucket @returns {number} its least length */
function start(bucket) {
  const [first] = /\d+/.exec(bucket) ?? ["0"];
  return bucket.startsWith("over") ? Number(first) + 1 : Number(first);
}

/** @param {string} bucket @returns {number} its greatest length */
function end(bucket) {
  const numbers = bucket.match(/\d+/g) ?? [];
  return bucket.startsWith("over") ? Infinity : Number(numbers[numbers.length - 1] ?? Infinity);
}

/** @param {Record<string, any>} line @returns {number} */
function wordsOf(line) {
  if (Array.isArray(line.words)) return line.words.length;
  return String(line.source ?? line.text ?? "").split(/\s+/u).filter(Boolean).length;
}

define("rg-screen-length", LengthScreen);

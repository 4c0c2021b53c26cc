// <rg-screen-training>: the live learning curves of a run, and one sentence's matrix replayed at the
// checkpoints that were saved during training.

import { define, make } from "/page/elements.js";
import { sentence } from "/page/matrix.js";
import "/page/table.js";
import { matrixPicture } from "/page/svg-export.js";
import { strongestKey } from "/page/text-shading.js";
import { displayText } from "/page/token-text.js";
import { formatNumber, seriesKey } from "../chart.js";
import { factorOf, formatMetric, metricLabel, metricPoint } from "../metric-format.js";
import { emptyMessage, fillSelect, errorMessage, noText, NothingToDraw, selectField } from "../controls.js";
import { lookName } from "/page/look-names.js";
import { selectLooks, indexFromState, scaleOf, loadView } from "../look-selection.js";
import { sideBySide, exportMenu, sheetMenu } from "../export.js";
import { takesTarget } from "../screen-list.js";
import { makeTableToggle } from "../drawing-options.js";
import { tile } from "./gradient.js";
import "./stylesheet.js";

/** @typedef {import("../app.js").Context} Context */
/** @typedef {import("/page/weights.js").View} View */
/** @typedef {import("/page/elements.js").Drawing} Drawing */
/** @typedef {{name: string, value: number, low?: number | null, high?: number | null, n?: number, unit?: string}} Measured */
/**
 * `best` says that these were the best weights so far; `averaged` names the checkpoints whose mean a line is about,
 * and `kept` says that this mean became the weights of the run.
 * @typedef {{step: number, epoch?: number, seconds?: number, loss?: number, validation_loss?: number | null, main?: string,
 *   higher?: boolean, best?: boolean, averaged?: string[], kept?: boolean, learning_rate?: number,
 *   gradient_norm?: number, metrics?: Record<string, Measured>,
 *   samples?: {given: string, expected: string, predicted: string}[]}} Line
 */

const EVERY = 900;

class TrainingScreen extends HTMLElement {
  /** @type {Context} */
  context = /** @type {any} */ (null);
  #turn = 0;
  #run = "";
  /** @type {Map<number, Line>} validations of single weights, by step */
  #lines = new Map();
  /** @type {Line | null} the average of several checkpoints, if it was kept */
  #average = null;
  #live = "";
  /** @type {AbortController | null} */
  #following = null;
  #pick = selectField("Run", (model) => this.context.setState({ model, text: undefined, at: undefined, look: undefined, layer: undefined, head: undefined, row: undefined, column: undefined, point: undefined }, { push: true }));
  #metric = selectField("Metric", (metric) => this.context.setState({ metric }));
  badge = make("span", { className: "rg-live" });
  tiles = make("div", { className: "rg-tiles" });
  loss = /** @type {import("../chart.js").ChartElement} */ (document.createElement("rg-chart"));
  quality = /** @type {import("../chart.js").ChartElement} */ (document.createElement("rg-chart"));
  qualityTitle = make("span", {});
  lossKey = make("div", {});
  qualityKey = make("div", {});
  /** @type {import("../drawing-options.js").TableToggleElement | null} */
  shape = null;
  samples = make("details", { className: "rg-samples" });
  tables = make("div", { className: "rg-two table-scroller", tabIndex: 0, role: "region", "aria-label": "Curves as tables", hidden: true });
  charts = make("div", { className: "rg-two" },
    make("div", {}, make("h3", { textContent: "Loss, lower is better" }), this.lossKey, this.loss),
    make("div", {}, make("h3", {}, this.qualityTitle), this.qualityKey, this.quality));
  curves = make("section", { className: "rg-panel-card", "aria-label": "Curves" });
  replay = make("section", { className: "rg-panel-card", "aria-label": "Replay" });
  message = document.createElement("div");

  disconnectedCallback() {
    this.#following?.abort();
    this.#stop();
  }

  #build() {
    const { context } = this;
    this.curves.append(
      make("div", { className: "rg-card-head" }, make("h2", {}, "Curves ", this.badge), make("div", { className: "rg-fields" },
        make("button", { type: "button", className: "rg-button", textContent: "Replay attention ↓", on: { click: () => { this.replay.scrollIntoView({ block: "start" }); this.play.focus({ preventScroll: true }); } } }), this.#metric.field, (this.shape = makeTableToggle(context, "Curves")), sheetMenu(() => `${this.#run}-curves`, {
        title: () => `${this.#run}: curves`,
        picture: () => sideBySide([["Loss", this.loss.picture()], [this.qualityTitle.textContent ?? "", this.quality.picture()]]),
        tables: () => [this.loss.table(), this.quality.table()],
        json: () => [...this.#lines.values(), ...(this.#average ? [this.#average] : [])],
      }, context))),
      this.tiles,
      this.charts,
      this.tables, this.samples);
    this.append(make("div", { className: "rg-fields" }, this.#pick.field), this.message, this.curves, this.replay);
    for (const chart of [this.loss, this.quality]) {
      chart.addEventListener("rg-point", (event) => {
        const { index, text } = /** @type {CustomEvent} */ (event).detail;
        this.context.setState({ point: chart.across[index] }, { quiet: true });
        this.#draw();
        context.say(text);
      });
      chart.addEventListener("rg-pass", (event) => context.showHover(/** @type {CustomEvent} */ (event).detail.text));
    }
    this.#buildReplay();
    context.keys({});
  }

  async update() {
    const turn = ++this.#turn;
    if (!this.curves.isConnected) this.#build();
    const { context, message } = this;
    const { model } = context;
    this.curves.hidden = this.replay.hidden = !model;
    context.legend(null, "");
    if (!model) {
      message.replaceChildren(emptyMessage("No run is served", "Start the server with a run folder; its training may still be in progress."));
      return;
    }
    fillSelect(this.#pick.select, context.models.map((one) => [one.id, `${one.id} · ${one.task}`]), model.id);
    if (model.id !== this.#run) {
      this.#run = model.id;
      this.#clear();
      this.#known = null;
      this.#stop();
      try {
        for (const line of await context.busy(context.api.metrics(model.id))) this.#take(line);
        message.replaceChildren();
      } catch (error) {
        if (turn === this.#turn) message.replaceChildren(errorMessage(error));
      }
      if (turn !== this.#turn) return;
      void this.#follow(model.id);
    }
    this.#draw();
    await this.#replay(turn);
  }

  #clear() {
    this.#lines.clear();
    this.#average = null;
  }

  /** @param {unknown} taken */
  #take(taken) {
    if (!taken || typeof taken !== "object" || typeof /** @type {Line} */ (taken).step !== "number") return;
    const line = /** @type {Line} */ (taken);
    // an average that was not kept is not the model that is served
    if (line.averaged) this.#average = line.kept ? line : null;
    else this.#lines.set(line.step, line);
  }

  /** @param {string} run */
  async #follow(run) {
    this.#following?.abort();
    const following = this.#following = new AbortController();
    this.#live = "";
    try {
      for await (const event of this.context.api.events(run, following.signal)) {
        if (following.signal.aborted || !this.isConnected) return;
        if (event.event === "reset") this.#clear();
        else if (event.event === "metrics") this.#take(event.data);
        else if (event.event === "end") this.#live = "finished";
        if (this.#live !== "finished") this.#live = "live";
        this.#soon();
      }
    } catch {
      if (!following.signal.aborted && this.isConnected) {
        this.#live = "not connected";
        this.#soon();
      }
    }
  }

  #waiting = false;

  /** Many lines may come at once: draw before the next frame. */
  #soon() {
    if (this.#waiting) return;
    this.#waiting = true;
    requestAnimationFrame(() => {
      this.#waiting = false;
      if (this.isConnected) this.#draw();
    });
  }

  #draw() {
    const { state } = this.context;
    const lines = [...this.#lines.values()].sort((a, b) => a.step - b.step);
    this.badge.textContent = this.#live;
    this.badge.className = `rg-live ${this.#live.replace(" ", "-")}`;
    this.badge.hidden = !this.#live;
    const some = lines.length > 0;
    for (const node of [this.loss, this.quality, this.tiles]) node.hidden = !some;
    this.qualityTitle.textContent = some ? "" : "Waiting for the first validation…";
    if (!some) return;
    const last = lines[lines.length - 1];
    const names = Object.keys(last.metrics ?? {});
    const metric = names.includes(state.metric) ? state.metric : last.main ?? names[0] ?? "";
    fillSelect(this.#metric.select, names.map((name) => [name, last.metrics?.[name]?.name ?? name]), metric);
    this.#metric.field.hidden = names.length < 2;
    const label = last.metrics?.[metric]?.name ?? metric;
    const measured = { unit: last.metrics?.[metric]?.unit };
    const written = (/** @type {number} */ drawn) => formatMetric(drawn / factorOf(measured), measured);
    this.qualityTitle.textContent = `${label} on the validation data`;
    const losses = lines.filter((line) => typeof line.loss === "number").map((line) => ({ x: line.step, y: line.loss ?? 0 }));
    const validationLosses = lines.filter((line) => typeof line.validation_loss === "number").map((line) => ({ x: line.step, y: line.validation_loss ?? 0 }));
    const values = lines.flatMap((line) => {
      const found = line.metrics?.[metric];
      return found && typeof found.value === "number" ? [metricPoint(line.step, found)] : [];
    });
    const point = Number(state.point ?? NaN);
    const at = (/** @type {{x: number}[]} */ points) => points.findIndex((one) => one.x === point);
    const lossSeries = [{ name: "training", points: losses }, { name: "validation", points: validationLosses }].filter((one) => one.points.length);
    this.loss.show({ title: "Loss", across: "step", up: "loss", series: lossSeries }, at(losses));
    this.lossKey.replaceChildren(seriesKey(lossSeries));
    const average = this.#average;
    const averaged = average?.metrics?.[metric];
    const series = [{ name: label, points: values }, ...(average && averaged && typeof averaged.value === "number" ? [{ name: nameOfWeights(average), mark: true, points: [metricPoint(average.step, averaged)] }] : [])];
    this.quality.show({ title: label, across: "step", up: metricLabel(label, measured), series }, at(values));
    this.qualityKey.replaceChildren(...(series.length > 1 ? [seriesKey(series)] : []));
    const timed = lines.findLast((line) => line.seconds) ?? last;
    const higher = metric !== last.main || last.higher !== false;
    const best = values.reduce((most, one) => ((higher ? one.y > most.y : one.y < most.y) ? one : most), values[0]);
    const used = average ?? lines.findLast((line) => line.best);
    const saved = used?.metrics?.[metric];
    this.tiles.replaceChildren(
      tile(String(last.step), `steps${timed.epoch ? `, ${timed.epoch + 1} passes over the data` : ""}`),
      tile(clock(timed.seconds ?? 0), "of training"),
      tile(formatNumber(losses[losses.length - 1]?.y ?? NaN), "last training loss"),
      ...(validationLosses.length ? [tile(formatNumber(validationLosses[validationLosses.length - 1].y), "last validation loss")] : []),
      ...(values.length ? [tile(written(values[values.length - 1].y), `last ${label}`)] : []),
      ...(used && saved ? [tile(formatMetric(saved.value, saved), `${label} of the saved weights: ${nameOfWeights(used)}`)]
        : values.length ? [tile(written(best.y), `${higher ? "highest" : "lowest"} ${label}, at step ${best.x}`)] : []));
    const table = state.shape === "table";
    this.shape?.show();
    this.tables.hidden = !table;
    this.charts.hidden = table;
    if (table) this.tables.replaceChildren(this.loss.table(), this.quality.table());
    this.#samplesOf(this.#lines.get(point) ?? used ?? last, used);
  }

  /** @param {Line} line @param {Line} [used] the line of the saved weights */
  #samplesOf(line, used) {
    const some = (line.samples ?? []).slice(0, 3);
    this.samples.hidden = !some.length;
    this.samples.replaceChildren(make("summary", { textContent: line.averaged ? `Sample outputs of the saved weights: ${nameOfWeights(line)}` : `Sample outputs at step ${line.step}${line === used ? ", of the saved weights" : ""}` }), make("div", { className: "rg-sample-list" }, ...some.map((one) => make("dl", { className: "rg-sample" },
      ...[["input", one.given], ["expected", one.expected], ["output", one.predicted]].flatMap(([name, text]) => [make("dt", { textContent: name }), make("dd", { dir: "auto", textContent: displayText(text, 240) })])))));
  }

  input = /** @type {import("../controls.js").InputElement} */ (document.createElement("rg-input"));
  matrix = /** @type {Drawing} */ (document.createElement("regard-matrix"));
  table = /** @type {Drawing} */ (document.createElement("regard-table"));
  said = make("p", { className: "rg-its-answer" });
  note = document.createElement("div");
  slider = make("input", { type: "range", min: "0", max: "0", step: "1", "aria-label": "Checkpoint", on: { input: () => this.#seek(Number(this.slider.value)) } });
  where = make("output", {});
  marks = make("div", { className: "rg-marks", "aria-hidden": "true" });
  play = make("button", { type: "button", className: "rg-button", on: { click: () => this.#toggle() } }, "Play");
  #look = selectField("Attention", (look) => this.context.setState({ look, layer: undefined, head: undefined }));
  #layer = selectField("Layer", (layer) => this.context.setState({ layer }));
  #head = selectField("Heads", (head) => this.context.setState({ head: head === "mean" ? undefined : head }));
  shade = /** @type {import("../drawing-options.js").ScaleOptionsElement} */ (Object.assign(document.createElement("rg-scale-options"), { units: true }));
  body = make("div", { className: "rg-replay" });
  /** @type {import("/page/weights.js").TraceDocument | null} */
  #trace = null;
  /** @type {{id: string, step: number}[] | null} */
  #known = null;
  /** @type {View | null} */
  #view = null;
  #timer = 0;

  #buildReplay() {
    this.input.context = this.shade.context = this.context;
    this.input.models = () => [];
    this.input.action = "Replay";
    this.input.label = "Sentence to replay";
    this.body.append(
      make("div", { className: "rg-player" }, this.play, make("div", { className: "rg-track" }, this.slider, this.marks), this.where),
      make("div", { className: "rg-fields" }, this.#look.field, this.#layer.field, this.#head.field, this.shade),
      this.said, this.matrix, this.table);
    this.replay.append(
      make("div", { className: "rg-card-head" }, make("h2", { textContent: "Replay: how the attention map developed" }), exportMenu({
        name: () => `${this.#run}-replay`, trace: () => this.#trace,
        picture: () => this.#view && matrixPicture(this.#view, { ...scaleOf(this.context.state), high: 1 }),
      }, this.context)),
      this.input, this.note, this.body);
    this.body.addEventListener("regard-select", (event) => {
      const { row, column } = /** @type {CustomEvent} */ (event).detail;
      this.#select(row, column);
    });
    this.body.addEventListener("regard-hover", (event) => {
      const { row, column } = /** @type {CustomEvent} */ (event).detail;
      this.context.showHover(this.#view && row >= 0 && column >= 0 ? sentence(this.#view, row, column) : "");
    });
  }

  /** @param {number} turn */
  async #replay(turn) {
    const { context, input, note, body } = this;
    const { model, state } = context;
    if (!model) return;
    input.show();
    try {
      if (!model.ready) throw new Error("This run has no weights yet. Once it has, its attention map can be replayed here.");
      const kept = this.#known ?? await context.busy(context.api.checkpoints(model.id));
      if (turn !== this.#turn) return;
      this.#known = kept;
      const text = input.text;
      if (!text.trim()) throw noText();
      const places = [...kept.map((one) => one.id), "final"];
      const at = Math.max(0, places.indexOf(state.at ?? "final"));
      this.slider.max = String(places.length - 1);
      this.slider.value = String(at);
      this.slider.disabled = this.play.disabled = places.length < 2;
      this.slider.setAttribute("aria-valuetext", this.#named(at));
      this.where.textContent = this.#named(at);
      this.marks.replaceChildren(...places.map((_, i) => make("i", { className: i === at ? "now" : "" })));
      const final = await context.busy(context.api.explain(model.id, { text }));
      // earlier weights are forced to the final output, so that the rows stay the same words
      const target = takesTarget(model) ? { target: final.output } : {};
      const trace = places[at] === "final" ? final : await context.busy(context.api.explain(model.id, { text, checkpoint: places[at], ...target }));
      if (turn !== this.#turn) return;
      const found = selectLooks(trace, { ...state, aggregate: state.head === undefined ? "mean" : "one" }, { first: ["source", "decoder.source", "past", "decoder.self", "pooling"] });
      if (!found) throw new NothingToDraw("No attention", "This model has no attention to replay.");
      const numbers = (/** @type {number[]} */ all) => all.map((n) => /** @type {[string, string]} */ ([String(n), String(n)]));
      fillSelect(this.#look.select, found.names.map((name) => [name, lookName(name)]), found.name);
      fillSelect(this.#layer.select, numbers(found.layers), String(found.layer));
      fillSelect(this.#head.select, [["mean", "mean of all"], ...numbers(found.heads)], found.aggregate === "one" ? String(found.head) : "mean");
      this.#look.field.hidden = found.names.length < 2;
      this.#layer.field.hidden = found.layers.length < 2;
      this.#head.field.hidden = found.heads.length < 2;
      const view = await loadView(trace, found.looks, found.aggregate, state.specials === "hide", state.unit);
      if (turn !== this.#turn) return;
      note.replaceChildren(...(places.length < 2 ? [make("p", { className: "hint", textContent: "This run has no earlier checkpoints. Train with --keep-every 100, for example, to keep those of every 100th update." })] : []));
      body.hidden = false;
      this.#view = view;
      this.#trace = trace;
      this.shade.show();
      const scale = { ...scaleOf(state), high: 1 };
      const table = state.shape === "table";
      this.matrix.hidden = table;
      this.table.hidden = !table;
      const drawing = table ? this.table : this.matrix;
      drawing.scale = scale;
      drawing.view = view;
      this.said.replaceChildren("target" in target && places[at] !== "final" ? "Forced to the final output: " : "Output: ", make("bdi", { dir: "auto", textContent: displayText(trace.output || "nothing", 200) }));
      context.legend(view, scale);
      const row = Math.min(view.queries.length - 1, Math.max(0, view.rows.indexOf(indexFromState(state, "row"))));
      this.#select(row, view.columns.indexOf(indexFromState(state, "column")), `${this.#named(at)}: `);
    } catch (error) {
      if (turn !== this.#turn) return;
      body.hidden = true;
      this.#stop();
      note.replaceChildren(model.ready ? errorMessage(error) : emptyMessage("No weights yet", error instanceof Error ? error.message : ""));
    }
  }

  /** @param {number} at */
  #named(at) {
    const one = this.#known?.[at];
    return one ? `step ${one.step}` : "final weights";
  }

  /** @param {number} at */
  #seek(at) {
    const id = this.#known?.[at]?.id;
    this.context.setState({ at: id });
  }

  #toggle() {
    if (this.#timer) return this.#stop();
    this.play.textContent = "Pause";
    const last = this.#known?.length ?? 0;
    let at = Number(this.slider.value) >= last ? 0 : Number(this.slider.value) + 1;
    this.#seek(at);
    this.#timer = window.setInterval(() => {
      if (this.classList.contains("waiting")) return;
      at += 1;
      if (at > last) return this.#stop();
      this.#seek(at);
    }, EVERY);
  }

  #stop() {
    clearInterval(this.#timer);
    this.#timer = 0;
    this.play.textContent = "Play";
  }

  /** @param {number} row @param {number} column @param {string} [before] */
  #select(row, column, before = "") {
    const view = this.#view;
    if (!view || row < 0) return;
    const most = column < 0 ? strongestKey(view, row) : column;
    this.matrix.selection = { row, column: most };
    this.table.selection = { row, column: most };
    this.context.setState({ row: view.rows[row], column: column < 0 ? undefined : view.columns[column] }, { quiet: true });
    this.context.say(before + sentence(view, row, most));
  }
}

/** @param {number} seconds @returns {string} */
function clock(seconds) {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/** @param {Line} line @returns {string} which weights it is about */
function nameOfWeights(line) {
  return line.averaged ? `average of ${line.averaged.length} checkpoints` : `step ${line.step}`;
}

define("rg-screen-training", TrainingScreen);

// <rg-screen-training>: the curves of a run as they grow, and one sentence's matrix replayed at the
// weights that were kept on the way.

import { define, make } from "/page/elements.js";
import { sentence } from "/page/matrix.js";
import "/page/table.js";
import { matrixPicture } from "/page/pictures.js";
import { mostOf } from "/page/shading.js";
import { shown } from "/page/words.js";
import { plain } from "../chart.js";
import { empty, fill, notice, picker } from "../controls.js";
import { choose, placeOf, scaleOf, viewFor } from "../looking.js";
import { besides, exportMenu, sheetMenu } from "../saving.js";
import { shapeOf } from "../shade.js";
import { tile } from "./gradient.js";
import "./styled.js";

/** @typedef {import("../app.js").Context} Context */
/** @typedef {import("/page/weights.js").View} View */
/** @typedef {import("/page/elements.js").Drawing} Drawing */
/** @typedef {{name: string, value: number, low?: number, high?: number, n?: number}} Measured */
/**
 * @typedef {{step: number, epoch?: number, seconds?: number, loss?: number, main?: string, learning_rate?: number,
 *   gradient_norm?: number, metrics?: Record<string, Measured>,
 *   samples?: {given: string, expected: string, predicted: string}[]}} Line
 */

const EVERY = 900;

class TrainingScreen extends HTMLElement {
  /** @type {Context} */
  context = /** @type {any} */ (null);
  #turn = 0;
  #run = "";
  /** @type {Map<number, Line>} */
  #lines = new Map();
  #live = "";
  /** @type {AbortController | null} */
  #following = null;
  #pick = picker("Run", (model) => this.context.setState({ model, text: undefined, at: undefined, look: undefined, layer: undefined, head: undefined, row: undefined, column: undefined, point: undefined }, { push: true }));
  #metric = picker("Measure", (metric) => this.context.setState({ metric }));
  badge = make("span", { className: "rg-live" });
  tiles = make("div", { className: "rg-tiles" });
  loss = /** @type {import("../chart.js").ChartElement} */ (document.createElement("rg-chart"));
  quality = /** @type {import("../chart.js").ChartElement} */ (document.createElement("rg-chart"));
  qualityTitle = make("span", {});
  /** @type {import("../shade.js").ShapeElement | null} */
  shape = null;
  samples = make("details", { className: "rg-samples" });
  tables = make("div", { className: "rg-two table-scroller", tabIndex: 0, role: "region", "aria-label": "Curves as tables", hidden: true });
  charts = make("div", { className: "rg-two" },
    make("div", {}, make("h3", { textContent: "Loss, lower is better" }), this.loss),
    make("div", {}, make("h3", {}, this.qualityTitle), this.quality));
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
      make("div", { className: "rg-card-head" }, make("h2", {}, "Curves ", this.badge), make("div", { className: "rg-fields" }, this.#metric.field, (this.shape = shapeOf(context, "Curves")), sheetMenu(() => `${this.#run}-curves`, {
        title: () => `${this.#run}: curves`,
        picture: () => besides([["Loss", this.loss.picture()], [this.qualityTitle.textContent ?? "", this.quality.picture()]]),
        tables: () => [this.loss.table(), this.quality.table()],
        json: () => [...this.#lines.values()],
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
      chart.addEventListener("rg-pass", (event) => context.pass(/** @type {CustomEvent} */ (event).detail.text));
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
      message.replaceChildren(empty("No run is served", "Start the server with the folder of a run; one that is still being trained will do."));
      return;
    }
    fill(this.#pick.select, context.models.map((one) => [one.id, `${one.id} · ${one.task}`]), model.id);
    if (model.id !== this.#run) {
      this.#run = model.id;
      this.#lines.clear();
      this.#known = null;
      this.#stop();
      try {
        for (const line of await context.busy(context.api.metrics(model.id))) this.#take(line);
        message.replaceChildren();
      } catch (error) {
        if (turn === this.#turn) message.replaceChildren(notice(error));
      }
      if (turn !== this.#turn) return;
      void this.#follow(model.id);
    }
    this.#draw();
    await this.#replay(turn);
  }

  /** @param {unknown} line */
  #take(line) {
    if (line && typeof line === "object" && typeof /** @type {Line} */ (line).step === "number") this.#lines.set(/** @type {Line} */ (line).step, /** @type {Line} */ (line));
  }

  /** @param {string} run */
  async #follow(run) {
    this.#following?.abort();
    const following = this.#following = new AbortController();
    this.#live = "";
    try {
      for await (const event of this.context.api.events(run, following.signal)) {
        if (following.signal.aborted || !this.isConnected) return;
        if (event.event === "reset") this.#lines.clear();
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
    this.qualityTitle.textContent = some ? "" : "Waiting for the first look at the validation data…";
    if (!some) return;
    const last = lines[lines.length - 1];
    const names = Object.keys(last.metrics ?? {});
    const metric = names.includes(state.metric) ? state.metric : last.main ?? names[0] ?? "";
    fill(this.#metric.select, names.map((name) => [name, last.metrics?.[name]?.name ?? name]), metric);
    this.#metric.field.hidden = names.length < 2;
    const label = last.metrics?.[metric]?.name ?? metric;
    this.qualityTitle.textContent = `${label} on the validation data`;
    const losses = lines.filter((line) => typeof line.loss === "number").map((line) => ({ x: line.step, y: line.loss ?? 0 }));
    const values = lines.flatMap((line) => {
      const found = line.metrics?.[metric];
      return found ? [{ x: line.step, y: found.value, low: found.low, high: found.high }] : [];
    });
    const point = Number(state.point ?? NaN);
    const at = (/** @type {{x: number}[]} */ points) => points.findIndex((one) => one.x === point);
    this.loss.show({ title: "Loss", across: "step", up: "loss", series: [{ name: "loss", points: losses }] }, at(losses));
    this.quality.show({ title: label, across: "step", up: label, series: [{ name: label, points: values }] }, at(values));
    const timed = lines.findLast((line) => line.seconds) ?? last;
    const best = values.reduce((most, one) => (one.y > most.y ? one : most), values[0]);
    this.tiles.replaceChildren(
      tile(String(last.step), `steps${timed.epoch ? `, ${timed.epoch + 1} times through the data` : ""}`),
      tile(clock(timed.seconds ?? 0), "of training"),
      tile(plain(losses[losses.length - 1]?.y ?? NaN), "last loss"),
      ...(values.length ? [tile(plain(values[values.length - 1].y), `last ${label}`), tile(plain(best.y), `highest ${label}, at step ${best.x}`)] : []));
    const table = state.shape === "table";
    this.shape?.show();
    this.tables.hidden = !table;
    this.charts.hidden = table;
    if (table) this.tables.replaceChildren(this.loss.table(), this.quality.table());
    this.#samplesOf(this.#lines.get(point) ?? last);
  }

  /** @param {Line} line */
  #samplesOf(line) {
    const some = (line.samples ?? []).slice(0, 3);
    this.samples.hidden = !some.length;
    this.samples.replaceChildren(make("summary", { textContent: `What it answered at step ${line.step}` }), make("div", { className: "rg-sample-list" }, ...some.map((one) => make("dl", { className: "rg-sample" },
      ...[["given", one.given], ["expected", one.expected], ["it said", one.predicted]].flatMap(([name, text]) => [make("dt", { textContent: name }), make("dd", { dir: "auto", textContent: shown(text, 240) })])))));
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
  #look = picker("Look", (look) => this.context.setState({ look, layer: undefined, head: undefined }));
  #layer = picker("Layer", (layer) => this.context.setState({ layer }));
  #head = picker("Heads", (head) => this.context.setState({ head: head === "mean" ? undefined : head }));
  shade = /** @type {import("../shade.js").ShadeElement} */ (document.createElement("rg-shade"));
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
    this.input.fits = () => false;
    this.input.action = "Replay";
    this.input.label = "Sentence to replay";
    this.body.append(
      make("div", { className: "rg-player" }, this.play, make("div", { className: "rg-track" }, this.slider, this.marks), this.where),
      make("div", { className: "rg-fields" }, this.#look.field, this.#layer.field, this.#head.field, this.shade),
      this.said, this.matrix, this.table);
    this.replay.append(
      make("div", { className: "rg-card-head" }, make("h2", { textContent: "Replay: how it came to look there" }), exportMenu({
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
      this.context.pass(this.#view && row >= 0 && column >= 0 ? sentence(this.#view, row, column) : "");
    });
  }

  /** @param {number} turn */
  async #replay(turn) {
    const { context, input, note, body } = this;
    const { model, state } = context;
    if (!model) return;
    input.show();
    try {
      if (!model.ready) throw new Error("This run has no weights yet. As soon as it has, its matrix can be replayed here.");
      const kept = this.#known ?? await context.busy(context.api.checkpoints(model.id));
      if (turn !== this.#turn) return;
      this.#known = kept;
      const text = input.text;
      if (!text.trim()) throw new Error("Write a sentence above and press Enter.");
      const places = [...kept.map((one) => one.id), "final"];
      const at = Math.max(0, places.indexOf(state.at ?? "final"));
      this.slider.max = String(places.length - 1);
      this.slider.value = String(at);
      this.slider.disabled = this.play.disabled = places.length < 2;
      this.slider.setAttribute("aria-valuetext", this.#named(at));
      this.where.textContent = this.#named(at);
      this.marks.replaceChildren(...places.map((_, i) => make("i", { className: i === at ? "now" : "" })));
      const final = await context.busy(context.api.explain(model.id, { text }));
      // the last answer is dictated to the earlier weights, so that the rows stay the same words
      const told = model.task === "translation" ? { target: final.output } : {};
      const trace = places[at] === "final" ? final : await context.busy(context.api.explain(model.id, { text, checkpoint: places[at], ...told }));
      if (turn !== this.#turn) return;
      const found = choose(trace, { ...state, aggregate: state.head === undefined ? "mean" : "one" }, { first: ["source", "decoder.source", "past", "decoder.self", "pooling"] });
      if (!found) throw new Error("This model takes no looks: it was trained without attention.");
      const numbers = (/** @type {number[]} */ all) => all.map((n) => /** @type {[string, string]} */ ([String(n), String(n)]));
      fill(this.#look.select, found.names.map((name) => [name, name]), found.name);
      fill(this.#layer.select, numbers(found.layers), String(found.layer));
      fill(this.#head.select, [["mean", "mean of all"], ...numbers(found.heads)], found.aggregate === "one" ? String(found.head) : "mean");
      this.#look.field.hidden = found.names.length < 2;
      this.#layer.field.hidden = found.layers.length < 2;
      this.#head.field.hidden = found.heads.length < 2;
      const view = await viewFor(trace, found.looks, found.aggregate, state.specials === "hide");
      if (turn !== this.#turn) return;
      note.replaceChildren(...(places.length < 2 ? [make("p", { className: "hint", textContent: "This run has kept no earlier weights: train with --save-every to replay them." })] : []));
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
      this.said.replaceChildren("target" in told && places[at] !== "final" ? "Read along its final words: " : "It says ", make("bdi", { dir: "auto", textContent: shown(trace.output || "nothing", 200) }));
      context.legend(view, scale);
      const row = Math.min(view.queries.length - 1, Math.max(0, view.rows.indexOf(placeOf(state, "row"))));
      this.#select(row, view.columns.indexOf(placeOf(state, "column")), `${this.#named(at)}: `);
    } catch (error) {
      if (turn !== this.#turn) return;
      body.hidden = true;
      this.#stop();
      note.replaceChildren(model.ready ? notice(error) : empty("Not yet", error instanceof Error ? error.message : ""));
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
    const most = column < 0 ? mostOf(view, row) : column;
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

define("rg-screen-training", TrainingScreen);

// <rg-screen-memory>: where the heads of a memory write and read at every step, and from which step the
// symbols of the answer come.

import { onColourChange } from "/page/colours.js";
import { define, make } from "/page/elements.js";
import { displayText, formatWeight } from "/page/token-text.js";
import { weightsOf } from "/page/weights.js";
import { errorMessage, loadingMessage, noModel, noText, NothingToDraw, truncationNote } from "../controls.js";
import { makeTableToggle } from "../drawing-options.js";
import { exportMenu } from "../export.js";
import { indexFromState, loadView } from "../look-selection.js";
import { strongestSlot, timelinePicture, usedSlots, writtenAt } from "../memory-timeline.js";
import "./stylesheet.js";

/** @typedef {import("../app.js").Context} Context */
/** @typedef {import("/page/weights.js").TraceDocument} TraceDocument */
/** @typedef {import("../memory-timeline.js").Timeline} Timeline */
/** @typedef {import("../memory-timeline.js").MemoryHead} MemoryHead */

const EVERY = 700;

class MemoryScreen extends HTMLElement {
  /** @type {Context} */
  context = /** @type {any} */ (null);
  input = /** @type {import("../controls.js").InputElement} */ (document.createElement("rg-input"));
  message = document.createElement("div");
  card = make("section", { className: "rg-panel-card", "aria-label": "The memory over time" });
  heading = make("h2", {});
  frame = make("div", { className: "rg-timeline", tabIndex: 0, role: "slider", "aria-label": "Step", dir: "ltr", on: { keydown: (/** @type {KeyboardEvent} */ event) => this.#key(event) } });
  table = make("div", { className: "table-scroller rg-table", tabIndex: 0, role: "region", "aria-label": "The memory over time as a table", hidden: true });
  side = make("div", { className: "rg-memory-side", "aria-label": "Selected step", role: "group" });
  play = make("button", { type: "button", className: "rg-button", textContent: "Play", on: { click: () => this.#toggle() } });
  lesson = make("p", { className: "hint", textContent: "A memory is attention over slots that the model fills itself: while it reads the input it writes, and for its output it reads. The marked cells show where each head is at each step." });
  #turn = 0;
  #timer = 0;
  /** @type {TraceDocument | null} */
  #trace = null;
  /** @type {Timeline | null} */
  #timeline = null;
  /** @type {import("../drawing-options.js").TableToggleElement | null} */
  #shape = null;

  disconnectedCallback() { this.#stop(); }

  #build() {
    const { context, input } = this;
    if (!context.state.model) {
      const fits = context.suited.find((model) => model.ready && model.looks.some((name) => name.startsWith("memory.")));
      if (fits) context.setState({ model: fits.id }, { quiet: true });
    }
    input.context = context;
    input.label = "Problem";
    input.models = () => context.suited;
    input.void = { row: undefined, column: undefined };
    this.#shape = makeTableToggle(context, "Timeline");
    const menu = exportMenu({ name: () => "memory", trace: () => this.#trace, picture: () => this.#timeline && timelinePicture(this.#timeline, -1, 900, { paper: true }) }, context);
    this.card.append(
      make("div", { className: "rg-card-head" }, this.heading, make("div", { className: "rg-fields" }, this.play, this.#shape, menu)),
      this.lesson, make("div", { className: "rg-memory" }, make("div", {}, this.frame, this.table), this.side));
    this.append(input, this.message, this.card);
    const redraw = () => { if (this.isConnected) this.#draw(); };
    onColourChange(redraw);
    new ResizeObserver(redraw).observe(this.frame);
    context.keys({ ArrowLeft: () => this.#go(this.#step - 1), ArrowRight: () => this.#go(this.#step + 1) });
  }

  async update() {
    const turn = ++this.#turn;
    if (!this.#shape) this.#build();
    const { context, input, message, card } = this;
    const { model } = context;
    input.show();
    input.hidden = !model;
    if (!this.#timeline || card.hidden) {
      card.hidden = true;
      message.replaceChildren(loadingMessage());
    }
    try {
      if (!model) return message.replaceChildren(noModel(context.screen));
      if (!input.text.trim()) throw noText();
      const trace = await context.busy(context.api.explain(model.id, { text: input.text }));
      const timeline = await timelineOf(trace);
      if (turn !== this.#turn) return;
      if (!timeline) throw new NothingToDraw("No memory", `${model.id} has no external memory. Choose another model, or train one: regard train ${context.screen.train} --out runs/mine`);
      message.replaceChildren(...(trace.prediction?.truncated ? [truncationNote()] : []));
      card.hidden = false;
      this.#trace = trace;
      this.#timeline = timeline;
      const looks = trace.looks.filter((look) => look.name.startsWith("memory."));
      const view = await loadView(trace, looks.slice(0, 1), "one", false);
      if (turn !== this.#turn) return;
      context.legend({ ...view, largest: 1 }, { kind: "linear", rows: false, threshold: 0, high: 1 });
      this.#draw();
    } catch (error) {
      if (turn !== this.#turn) return;
      this.#stop();
      card.hidden = true;
      context.legend(null, "");
      message.replaceChildren(errorMessage(error));
    }
  }

  get #step() {
    const timeline = /** @type {Timeline} */ (this.#timeline);
    const wanted = indexFromState(this.context.state, "row");
    const first = Math.max(0, timeline.outputs.findIndex(Boolean));
    return wanted >= 0 && wanted < timeline.inputs.length ? wanted : first;
  }

  /** @param {number} step */
  #go(step) {
    const timeline = this.#timeline;
    if (!timeline) return;
    this.context.setState({ row: Math.min(timeline.inputs.length - 1, Math.max(0, step)) }, { quiet: true });
    this.#draw();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const last = (this.#timeline?.inputs.length ?? 1) - 1;
    const to = /** @type {Record<string, number>} */ ({ ArrowRight: this.#step + 1, ArrowLeft: this.#step - 1, Home: 0, End: last })[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.#go(to);
  }

  #toggle() {
    if (this.#timer) return this.#stop();
    const timeline = /** @type {Timeline} */ (this.#timeline);
    const last = timeline.inputs.length - 1;
    this.play.textContent = "Pause";
    this.#go(this.#step >= last ? 0 : this.#step + 1);
    this.#timer = window.setInterval(() => (this.#step >= last ? this.#stop() : this.#go(this.#step + 1)), EVERY);
  }

  #stop() {
    clearInterval(this.#timer);
    this.#timer = 0;
    this.play.textContent = "Play";
  }

  #draw() {
    const { context, frame } = this;
    const timeline = this.#timeline;
    if (!timeline || this.card.hidden) return;
    const step = this.#step;
    const table = context.state.shape === "table";
    this.#shape?.show();
    frame.hidden = table;
    this.table.hidden = !table;
    this.play.hidden = table;
    this.heading.replaceChildren("Output: ", make("bdi", { className: "rg-answer", textContent: displayText(this.#trace?.output || "nothing", 120) }));
    if (table) this.table.replaceChildren(this.#tableOf(timeline, step));
    else if (frame.clientWidth) frame.replaceChildren(timelinePicture(timeline, step, frame.clientWidth, { choose: (at) => this.#go(at), hover: (text) => context.showHover(text) }));
    const said = sentenceOf(timeline, step);
    frame.setAttribute("aria-valuemin", "1");
    frame.setAttribute("aria-valuemax", String(timeline.inputs.length));
    frame.setAttribute("aria-valuenow", String(step + 1));
    frame.setAttribute("aria-valuetext", said);
    this.side.replaceChildren(
      make("h3", { textContent: `Step ${step + 1} of ${timeline.inputs.length}` }), make("p", { textContent: said }),
      ...timeline.heads.map((head) => this.#head(timeline, head, step)));
    context.say(said);
  }

  /** @param {Timeline} timeline @param {MemoryHead} head @param {number} step the slots it used most */
  #head(timeline, head, step) {
    const line = [...head.weights.subarray(step * timeline.slots, (step + 1) * timeline.slots)];
    const order = line.map((_, i) => i).sort((a, b) => line[b] - line[a]).slice(0, 3);
    return make("section", {}, make("h3", { textContent: head.name }), make("ul", { className: "rg-slots" }, ...order.map((slot) => {
      const fill = make("span", { className: "bar-fill" });
      fill.style.width = `${Math.max(1, 100 * Math.min(1, line[slot]))}%`;
      return make("li", {}, make("span", { textContent: `slot ${slot + 1}` }), make("span", { className: "bar-track", "aria-hidden": "true" }, fill), make("span", { textContent: formatWeight(line[slot]) }));
    })));
  }

  /** @param {Timeline} timeline @param {number} chosen */
  #tableOf(timeline, chosen) {
    return make("table", {},
      make("caption", { textContent: "The slot that each head used most at every step, with its weight" }),
      make("thead", {}, make("tr", {}, ...["step", "input", ...timeline.heads.map((head) => head.name), "output", "read from"].map((name) => make("th", { scope: "col", textContent: name })))),
      make("tbody", {}, ...timeline.inputs.map((symbol, step) => {
        const from = timeline.outputs[step] ? sourceOf(timeline, step) : null;
        return make("tr", { className: step === chosen ? "chosen" : "" }, make("th", { scope: "row", textContent: String(step + 1) }), make("td", { textContent: displayText(symbol, 12) }),
          ...timeline.heads.map((head) => { const [slot, weight] = strongestSlot(head, step, timeline.slots); return make("td", { textContent: `slot ${slot + 1}, ${formatWeight(weight)}` }); }),
          make("td", { textContent: timeline.outputs[step] && displayText(timeline.outputs[step], 12) }), make("td", { textContent: from && from.at >= 0 ? `step ${from.at + 1}, ${displayText(timeline.inputs[from.at], 12)}` : "" }));
      })));
  }
}

/** @param {TraceDocument} trace @returns {Promise<Timeline | null>} null where there is no memory */
async function timelineOf(trace) {
  const looks = trace.looks.filter((look) => look.name.startsWith("memory."))
    .sort((a, b) => Number(b.name.endsWith("write")) - Number(a.name.endsWith("write")) || (a.head ?? 0) - (b.head ?? 0));
  if (!looks.length) return null;
  const inputs = (trace.sides[looks[0].query_side]?.tokens ?? []).map((token) => (token.text === "_" ? "·" : token.text));
  const answers = (trace.alternatives ?? []).map((all) => all[0]?.text ?? "");
  const outputs = inputs.map((_, step) => answers[step - (inputs.length - answers.length)] ?? "");
  const heads = await Promise.all(looks.map(async (look) => {
    const writes = look.name.endsWith("write");
    const several = looks.filter((other) => other.name === look.name).length > 1;
    return { name: `${writes ? "Write" : "Read"} head${several ? ` ${(look.head ?? 0) + 1}` : ""}`, writes, weights: await weightsOf(look) };
  }));
  const slots = heads[0].weights.length / inputs.length;
  return { inputs, outputs, slots, shown: usedSlots(heads, slots), heads };
}

/** @param {Timeline} timeline @param {number} step @returns {{head: MemoryHead, slot: number, weight: number, at: number}} what the sharpest read head read, and when that was written */
function sourceOf(timeline, step) {
  const reads = timeline.heads.filter((head) => !head.writes).map((head) => {
    const [slot, weight] = strongestSlot(head, step, timeline.slots);
    return { head, slot, weight };
  });
  const best = reads.reduce((most, one) => (one.weight > most.weight ? one : most));
  return { ...best, at: writtenAt(timeline, best.slot, step) };
}

/** @param {Timeline} timeline @param {number} step @returns {string} */
function sentenceOf(timeline, step) {
  const { inputs, outputs, heads, slots } = timeline;
  const output = outputs[step];
  if (!output) {
    const writes = heads.filter((head) => head.writes).map((head) => strongestSlot(head, step, slots)).reduce((most, one) => (one[1] > most[1] ? one : most), [0, 0]);
    return writes[1] > 0 ? `‘${displayText(inputs[step])}’ comes in and is written to slot ${writes[0] + 1}, weight ${formatWeight(writes[1])}.` : `‘${displayText(inputs[step])}’ comes in.`;
  }
  const { slot, weight, at } = sourceOf(timeline, step);
  const origin = at < 0 ? "" : outputs[at] ? `, written at step ${at + 1}` : `, written at step ${at + 1}, when ‘${displayText(inputs[at])}’ came in`;
  const what = output === "." ? "The output ends" : `‘${displayText(output)}’ goes out`;
  return `${what}: it reads slot ${slot + 1}, weight ${formatWeight(weight)}${origin}.`;
}

define("rg-screen-memory", MemoryScreen);

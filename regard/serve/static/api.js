// Requests to the server. Failures are errors with the server's own message.

/**
 * @typedef {{id: string, task: string, ready: boolean, languages: string[] | null, labels: string[] | null,
 *   screens: string[], looks: string[], examples: string[], parameters: number | null, created: number,
 *   data?: string, metric?: string, written?: number, argument?: string, config: {model: Record<string, any>, training: Record<string, any>}}} ModelCard
 */
/** @typedef {import("/page/weights.js").TraceDocument} TraceDocument */
/** @typedef {{status: string, model: string, done: number, total: number, detail: string}} Progress */
/** @typedef {{id?: string, event: string, data: any}} ServerEvent */

const REMEMBERED = 24;

export class ApiError extends Error {
  /** @param {number} status @param {string} detail @param {string[]} places */
  constructor(status, detail, places = []) {
    super(detail);
    this.name = "ApiError";
    this.status = status;
    /** what is wrong, where there are several mistakes */
    this.places = places;
  }
}

export class Api {
  /** @type {Map<string, Promise<TraceDocument>>} */
  #traces = new Map();

  /** @param {string | null} token sent with every request; it comes in the address after “#token=” */
  constructor(token = new URLSearchParams(location.hash.slice(1)).get("token")) {
    this.token = token;
  }

  /**
   * @param {string} path @param {any} [body] posted as JSON where it is given @param {AbortSignal} [signal]
   * @returns {Promise<Response>} an answer that is not an error
   */
  async ask(path, body, signal) {
    /** @type {Record<string, string>} */
    const headers = {};
    if (this.token) headers.authorization = `Bearer ${this.token}`;
    if (body !== undefined) headers["content-type"] = "application/json";
    let answer;
    try {
      answer = await fetch(path, {
        method: body === undefined ? "GET" : "POST", headers, signal,
        body: body === undefined ? undefined : JSON.stringify(body),
      });
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") throw error;
      throw new ApiError(0, "The server does not answer. Is “regard serve” still running?");
    }
    if (answer.ok) return answer;
    const found = await answer.json().catch(() => ({}));
    const said = found.detail ?? found.error?.message ?? found.error ?? `The server answered ${answer.status}.`;
    const places = Array.isArray(found.errors) ? found.errors.map((/** @type {any} */ one) => String(one.detail)) : [];
    throw new ApiError(answer.status, String(said), places);
  }

  /** @param {string} path @param {any} [body] @param {AbortSignal} [signal] @returns {Promise<any>} */
  async json(path, body, signal) {
    return (await this.ask(path, body, signal)).json();
  }

  /** @returns {Promise<ModelCard[]>} */
  async models() { return (await this.json("/v1/models")).data; }

  /**
   * A trace; the same request is sent only once.
   * @param {string} model @param {{text: string} & Record<string, any>} body
   * @returns {Promise<TraceDocument>}
   */
  explain(model, body) {
    const key = JSON.stringify([model, body]);
    let found = this.#traces.get(key);
    if (!found) {
      found = this.json(`/v1/models/${encodeURIComponent(model)}/explain`, body);
      found.catch(() => this.#traces.delete(key));
    }
    this.#traces.delete(key);
    this.#traces.set(key, found);
    for (const old of [...this.#traces.keys()].slice(0, -REMEMBERED)) this.#traces.delete(old);
    return found;
  }

  /** @param {string} model @param {string | string[]} inputs @param {Record<string, any>} [parameters] @returns {Promise<any>} */
  predict(model, inputs, parameters) {
    return this.json(`/v1/models/${encodeURIComponent(model)}/predict`, parameters ? { inputs, parameters } : { inputs });
  }

  /**
   * Pieces of a continuation as they are generated.
   * @param {Record<string, any>} body without `stream` @param {AbortSignal} [signal]
   * @returns {AsyncGenerator<string>}
   */
  async *complete(body, signal) {
    for await (const { data } of this.#events("/v1/completions", { ...body, stream: true }, signal)) {
      if (data === "[DONE]") return;
      if (data.error) throw new ApiError(500, String(data.error.message ?? data.error));
      for (const choice of data.choices ?? []) if (choice.text) yield choice.text;
    }
  }

  /** @param {string} run @returns {Promise<any[]>} */
  async metrics(run) { return (await this.json(`/v1/runs/${encodeURIComponent(run)}/metrics`)).data; }

  /**
   * The lines of a run's metrics as they come (event `metrics`), `reset`, `end`.
   * @param {string} run @param {AbortSignal} signal
   * @returns {AsyncGenerator<ServerEvent>}
   */
  events(run, signal) { return this.#events(`/v1/runs/${encodeURIComponent(run)}/events`, undefined, signal); }

  /** @param {string} run @returns {Promise<any[]>} */
  async evaluations(run) { return (await this.json(`/v1/runs/${encodeURIComponent(run)}/evaluations`)).data; }

  /** @param {string} run @param {string} name @returns {Promise<any[]>} */
  async sentences(run, name) {
    return (await this.json(`/v1/runs/${encodeURIComponent(run)}/evaluations/${encodeURIComponent(name)}`)).data;
  }

  /** @param {string} run @returns {Promise<any[]>} */
  async faithfulness(run) { return (await this.json(`/v1/runs/${encodeURIComponent(run)}/faithfulness`)).data; }

  /** @param {string} model @returns {Promise<[string, string][]>} the rows of its card */
  async card(model) { return (await this.json(`/v1/models/${encodeURIComponent(model)}/card`)).rows; }

  /** @param {string} run @returns {Promise<Progress>} begins to measure a run */
  measure(run) { return this.json(`/v1/runs/${encodeURIComponent(run)}/faithfulness`, {}); }

  /** @returns {Promise<Progress>} the measurement that is running, or the last one */
  measurement() { return this.json("/v1/faithfulness"); }

  /** @returns {Promise<any[]>} what can be put to the test, with the results that were saved */
  async experiments() { return (await this.json("/v1/experiments")).data; }

  /** @param {string} name @returns {Promise<any>} a result with its pictures */
  experiment(name) { return this.json(`/v1/experiments/${encodeURIComponent(name)}`); }

  /** @returns {Promise<any[]>} */
  async comparisons() { return (await this.json("/v1/comparisons")).data; }

  /** @param {string} id @returns {Promise<any>} the report of a comparison */
  comparison(id) { return this.json(`/v1/comparisons/${encodeURIComponent(id)}`); }

  /** @param {string} run @returns {Promise<{id: string, step: number}[]>} */
  async checkpoints(run) { return (await this.json(`/v1/runs/${encodeURIComponent(run)}/checkpoints`)).data; }

  /** @param {string} path @param {any} body @param {AbortSignal} [signal] @returns {AsyncGenerator<ServerEvent>} */
  async *#events(path, body, signal) {
    const answer = await this.ask(path, body, signal);
    const stream = /** @type {ReadableStream<Uint8Array<ArrayBuffer>>} */ (answer.body);
    const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
    let buffer = "";
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        buffer += value;
        const parts = buffer.split("\n\n");
        buffer = parts.pop() ?? "";
        for (const part of parts) {
          const event = eventOf(part);
          if (event) yield event;
        }
      }
    } finally {
      void reader.cancel().catch(() => {});
    }
  }
}

/** @param {string} part one event as it stands in the stream @returns {ServerEvent | null} */
function eventOf(part) {
  /** @type {Record<string, string>} */
  const fields = {};
  for (const line of part.split("\n")) {
    const [, name, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
    if (name) fields[name] = name in fields ? `${fields[name]}\n${value}` : value;
  }
  if (fields.data === undefined) return null;
  const data = fields.data === "[DONE]" ? fields.data : JSON.parse(fields.data);
  return { id: fields.id, event: fields.event ?? "message", data };
}

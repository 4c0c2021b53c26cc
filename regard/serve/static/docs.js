// The page of the HTTP interface, rendered from /openapi.json: each request with examples and a box to try it.

import { make } from "/page/elements.js";
import { Api } from "./api.js";
import { startColourMode } from "./colour-mode.js";
import { errorMessage } from "./controls.js";
import { codeBlock } from "./copy.js";
import { requestExample } from "./request-example.js";

const GROUPS = /** @type {[string, RegExp][]} */ ([
  ["Models", /^\/v1\/models/],
  ["Runs", /^\/v1\/(runs|faithfulness)/],
  ["Attention without a model", /^\/v1\//],
  ["Clients of other services", /^\/(v1\/completions|translate|detect|languages)/],
  ["Operation", /^/],
]);
const LONGEST = 6000;

/** @param {string} path @returns {string} */
function groupOf(path) {
  if (path === "/v1/completions") return "Clients of other services";
  return GROUPS.find(([, pattern]) => pattern.test(path))?.[0] ?? "Operation";
}

/** @param {string} text @returns {string} a text for a shell */
function shellQuoted(text) { return `'${text.replaceAll("'", "'\\''")}'`; }

/** @param {string} method @param {string} path @param {any} body @returns {string} */
function curlCommand(method, path, body) {
  const token = api.token ? ` \\\n  -H "Authorization: Bearer $TOKEN"` : "";
  const data = body === undefined ? "" : ` \\\n  -H "Content-Type: application/json" \\\n  -d ${shellQuoted(JSON.stringify(body))}`;
  return `curl ${location.origin}${path}${token}${data}`;
}

/** @param {string} method @param {string} path @param {any} body @returns {string} */
function pythonProgram(method, path, body) {
  const headers = [...(body === undefined ? [] : ['"Content-Type": "application/json"']), ...(api.token ? ['"Authorization": "Bearer " + token'] : [])];
  const lines = ["import json", "from urllib.request import Request, urlopen", ""];
  if (body !== undefined) lines.push(`body = ${pythonLiteral(body)}`);
  lines.push(`request = Request("${location.origin}${path}"${body === undefined ? "" : ", json.dumps(body).encode()"}${headers.length ? `, {${headers.join(", ")}}` : ""})`);
  lines.push("print(json.load(urlopen(request)))");
  return lines.join("\n");
}

/** @param {any} value @returns {string} */
function pythonLiteral(value) {
  if (value === null || typeof value === "boolean") return { null: "None", true: "True", false: "False" }[String(value)] ?? "None";
  if (Array.isArray(value)) return `[${value.map(pythonLiteral).join(", ")}]`;
  if (typeof value === "object") return `{${Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${pythonLiteral(one)}`).join(", ")}}`;
  return JSON.stringify(value);
}

/** @param {string} title @param {unknown} value */
function collapsible(title, value) {
  return make("details", {}, make("summary", { textContent: title }),
    make("pre", { className: "rg-code", tabIndex: 0, role: "region", "aria-label": title, textContent: JSON.stringify(value, null, 2) }));
}

/** @param {string} method @param {string} path @param {any} body @returns {HTMLElement} */
function tryBox(method, path, body) {
  const box = body === undefined ? null : make("textarea", { value: JSON.stringify(body, null, 1), spellcheck: false, "aria-label": `Body of ${method} ${path}` });
  const answer = make("div", { "aria-live": "polite" });
  const send = async () => {
    answer.replaceChildren();
    try {
      const given = box ? parsed(box.value) : undefined;
      const text = await (await api.ask(path, given)).text();
      const shown = text.startsWith("{") || text.startsWith("[") ? JSON.stringify(JSON.parse(text), null, 1) : text;
      answer.append(make("pre", { className: "rg-code", tabIndex: 0, role: "region", "aria-label": "Response", textContent: shown.length > LONGEST ? `${shown.slice(0, LONGEST)}\n… ${shown.length - LONGEST} more characters` : shown }));
    } catch (error) {
      answer.append(errorMessage(error));
    }
  };
  return make("div", { className: "rg-try" }, box, make("button", { type: "button", className: "rg-button primary", textContent: "Try it", "aria-label": `Try it: ${method} ${path}`, on: { click: () => void send() } }), answer);
}

/** @param {string} text @returns {any} */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`The body is not JSON: ${error instanceof Error ? error.message : error}`);
  }
}

/** @param {string} method @param {string} path @param {any} operation @param {any} components @returns {HTMLElement} */
function operationCard(method, path, operation, components) {
  const content = Object.entries(operation.requestBody?.content ?? {});
  const schema = operation.requestBody?.content?.["application/json"]?.schema;
  const body = schema ? requestExample(schema, components, api.examples) : undefined;
  const streams = Object.keys(operation.responses["200"]?.content ?? {}).every((kind) => kind === "text/event-stream");
  const filled = path.replaceAll(/\{id\}/g, api.firstModel).replaceAll(/\{name\}/g, "validation");
  const answers = Object.entries(operation.responses).map(([status, given]) => [status, given.$ref ? components.responses[status] : given]);
  const card = make("details", { className: "rg-operation" },
    make("summary", {}, make("span", { className: "rg-method", textContent: method }), make("code", { textContent: path }), make("span", { textContent: operation.summary })));
  // a page of thirty operations is filled as it is opened
  card.addEventListener("toggle", () => {
    if (card.childElementCount > 1) return;
    card.append(make("div", {},
      streams ? null : tryBox(method, filled, body),
      make("h3", { textContent: "curl" }), codeBlock(curlCommand(method, filled, body), `curl, ${method} ${path}`),
      make("h3", { textContent: "Python" }), codeBlock(pythonProgram(method, filled, body), `Python, ${method} ${path}`),
      ...content.map(([kind, media]) => collapsible(`Request, ${kind}`, /** @type {any} */ (media).schema)),
      ...answers.filter(([status]) => status === "200").flatMap(([, answer]) => Object.entries(answer.content).map(([kind, media]) => collapsible(`Response, ${kind}`, /** @type {any} */ (media).schema))),
      make("p", { className: "hint", textContent: `Errors: ${answers.filter(([status]) => status !== "200").map(([status, answer]) => `${status} (${answer.description})`).join(", ") || "none of its own"}. They are problem documents (RFC 9457).` })));
  });
  return card;
}

class DocsApi extends Api {
  firstModel = "MODEL";
  /** @type {Record<string, string>} */
  examples = {};
}

startColourMode();
const api = new DocsApi();
const place = /** @type {HTMLElement} */ (document.getElementById("operations"));
for (const link of document.querySelectorAll('a[href="/"]')) /** @type {HTMLAnchorElement} */ (link).href = `/${location.hash}`;
try {
  const [description, models] = await Promise.all([api.json("/openapi.json"), api.models()]);
  const first = models.find((model) => model.ready) ?? models[0];
  if (first) api.firstModel = encodeURIComponent(first.id);
  api.examples = { text: first?.examples[0] ?? "A text .", model: first?.id ?? "" };
  const cards = Object.entries(description.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => ({ path, card: operationCard(method.toUpperCase(), path, operation, description.components) })));
  for (const [group] of GROUPS) {
    const own = cards.filter(({ path }) => groupOf(path) === group);
    if (own.length) place.append(make("h2", { textContent: group }), ...own.map(({ card }) => card));
  }
  place.className = "rg-place-docs";
} catch (error) {
  place.append(errorMessage(error));
}
document.body.dataset.ready = "yes";

export {};

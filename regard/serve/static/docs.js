// The description of the interface, rendered from /openapi.json.

import { Api } from "./api.js";

/** @param {string} tag @param {string} [text] */
function element(tag, text) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  return made;
}

/** @param {string} title @param {unknown} value */
function collapsible(title, value) {
  const details = element("details");
  details.append(element("summary", title), element("pre", JSON.stringify(value, null, 2)));
  return details;
}

const place = /** @type {HTMLElement} */ (document.getElementById("operations"));
const description = await new Api().json("/openapi.json").catch((error) => {
  const hint = error.status === 401 ? " Open this page with its token at the end of the address: #token=…" : "";
  place.append(element("p", `${error.message}.${hint}`));
  return { paths: {} };
});
for (const [path, methods] of Object.entries(description.paths)) {
  for (const [method, operation] of Object.entries(methods)) {
    const heading = element("h2");
    const name = element("span", method.toUpperCase());
    name.className = "method";
    heading.append(name, element("code", path));
    place.append(heading, element("p", operation.summary));
    for (const [kind, media] of Object.entries(operation.requestBody?.content ?? {}))
      place.append(collapsible(`Request, ${kind}`, media.schema));
    for (const [status, given] of Object.entries(operation.responses)) {
      const answer = given.$ref ? description.components.responses[status] : given;
      const kinds = Object.entries(answer.content).map(([kind, media]) => [kind, media.schema]);
      if (status === "200") for (const [kind, schema] of kinds) place.append(collapsible(`Response, ${kind}`, schema));
      else place.append(element("div", `${status}: ${answer.description}`));
    }
  }
}

export {};

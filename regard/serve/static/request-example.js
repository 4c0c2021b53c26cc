// An example of a request's body, made from its schema: what is required, and nothing else.

/**
 * @param {any} schema @param {any} components of the description, which schemas refer to
 * @param {Record<string, string>} known texts by the name of a field, or by `text` for any
 * @param {string} [name] of the field
 * @returns {any}
 */
export function requestExample(schema, components, known, name = "") {
  if (schema.$ref) return requestExample(resolved(schema.$ref, components), components, known, name);
  const choice = schema.oneOf ?? schema.anyOf;
  if (choice) return requestExample(choice[0], components, known, name);
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[0];
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (type === "object") {
    const required = schema.required ?? [];
    return Object.fromEntries(required.map((/** @type {string} */ field) => [field, requestExample(schema.properties?.[field] ?? {}, components, known, field)]));
  }
  if (type === "array") return [requestExample(schema.items ?? {}, components, known, name)];
  if (type === "integer" || type === "number") return schema.minimum ?? 0;
  if (type === "boolean") return false;
  return known[name] ?? known.text ?? "";
}

/** @param {string} reference such as #/components/schemas/Name @param {any} components */
function resolved(reference, components) {
  return reference.split("/").slice(2).reduce((/** @type {any} */ place, part) => place?.[part], components) ?? {};
}

// Answers of the API, made of its OpenAPI document: each schema as values, and objects that note every field that is read
// of them and that the schema does not have.
//
// A schema that allows any field is taken at its word. The payload of an event is the schema of its kind, out of
// `events.schema.json`. Nothing here knows what the page does with an answer.

/** Names that the language itself reads of an object. */
const OF_THE_LANGUAGE = new Set(["then", "toJSON", "toString", "valueOf", "constructor", "length", "nodeType"]);

/** How deep samples go; a plan in a plan ends there. */
const DEPTH_MAX = 12;

/** Samples of one schema: the fullest, the sparsest, and one for each of the most cases that a choice has. */
export const VARIANTS = 10;

export class Samples {
  /** `{Schema.field: where}` of what was read and is not there. */
  unknown = new Map();

  constructor(document, events) {
    this.document = document;
    this.events = events;
    this.kinds = (events.oneOf ?? []).filter((one) => one.properties.payload);
  }

  /** A value of a schema. `variant` 0 has everything, 1 as little as is allowed, others the further cases of a choice. */
  of(schema, variant, name = "answer", depth = 0) {
    const { title, ...known } = this.resolve(schema, name);
    const label = title ?? name;
    if (depth > DEPTH_MAX) return null;
    if (known.const !== undefined) return known.const;
    if (known.enum) return known.enum[Math.max(0, variant - 1) % known.enum.length];
    if (known.choices) return this.chosen(known.choices, variant, label, depth);
    const type = Array.isArray(known.type) ? known.type.find((one) => one !== "null") : known.type;
    if (variant === 1 && Array.isArray(known.type) && known.type.includes("null")) return null;
    if (type === "array") return this.list(known, variant, label, depth);
    if (known.properties || type === "object") return this.object(known, variant, label, depth);
    if (type === "string") return `${name}-${variant}`;
    if (type === "boolean") return variant !== 1;
    if (type === "integer" || type === "number") return numberOf(name, variant);
    return variant === 1 ? `{"${name}":1}` : { any: `${name}-${variant}` };
  }

  chosen(choices, variant, name, depth) {
    const real = choices.filter((one) => one.type !== "null");
    if (variant === 1 && real.length < choices.length) return null;
    const objects = real.map((one) => this.resolve(one, name)).filter((one) => one.properties);
    const value = this.of(real[Math.max(0, variant - 1) % real.length], variant, name, depth + 1);
    // A choice of objects is told apart by reading it: what one of them has may be asked of each.
    if (objects.length < 2 || typeof value !== "object" || value === null) return value;
    const fields = new Set(objects.flatMap((one) => Object.keys(one.properties)));
    return this.guard({ ...value }, name, fields);
  }

  list(schema, variant, name, depth) {
    if (variant === 1 && depth > 1) return [];
    if (schema.prefixItems) return schema.prefixItems.map((one) => this.of(one, variant, name, depth + 1));
    const isEvents = schema.items && this.resolve(schema.items, name).title === "EventLine";
    const length = isEvents ? this.kinds.length : VARIANTS;
    const variants = depth <= 1 ? Array.from({ length }, (_, index) => index) : [variant, 1, 2, 3];
    return variants.map((one) => this.of(schema.items ?? {}, one, oneOf(name), depth + 1));
  }

  object(schema, variant, name, depth) {
    const own = {};
    for (const [field, of] of Object.entries(schema.properties ?? {})) {
      if (variant === 1 && !(schema.required ?? []).includes(field)) continue;
      own[field] = this.of(of, variant, field, depth + 1);
    }
    const isOpen = !schema.properties || schema.additionalProperties;
    if (schema.additionalProperties && typeof schema.additionalProperties === "object")
      for (const key of ["one", "two"]) own[key] = this.of(schema.additionalProperties, variant, key, depth + 1);
    if (own.type !== undefined && own.payload !== undefined) own.payload = this.payload(own, variant);
    return isOpen ? own : this.guard(own, name, new Set(Object.keys(schema.properties)));
  }

  /** Of an event: its kind is the next of all kinds, its payload that kind's. */
  payload(line, variant) {
    const kind = this.kinds[variant % this.kinds.length];
    line.type = kind.properties.type.const ?? kind.properties.type.enum[0];
    return this.inEvents().of(kind.properties.payload, variant === 1 ? 0 : variant, `${line.type}.payload`, 4);
  }

  inEvents() {
    const own = new Samples({ $defs: this.events.$defs }, this.events);
    own.unknown = this.unknown;
    return own;
  }

  guard(target, name, fields) {
    const { unknown } = this;
    return new Proxy(target, {
      get(object, field) {
        if (typeof field === "string" && !fields.has(field) && !OF_THE_LANGUAGE.has(field)) {
          const where =
            new Error().stack
              .split("\n")
              .slice(2)
              .find((line) => /\.js:/.test(line)) ?? "";
          unknown.set(`${name}.${field}`, where.trim());
        }
        return object[field];
      },
    });
  }

  /** A schema without references: `allOf` is one object, `oneOf` and `anyOf` are choices. */
  resolve(schema, name) {
    let own = schema;
    let title = null;
    while (own.$ref) {
      title = own.$ref.split("/").at(-1);
      own = own.$ref
        .slice(2)
        .split("/")
        .reduce((at, key) => at?.[key], this.document);
      if (!own) throw new Error(`${name}: there is no schema ${title}`);
    }
    const choices = own.oneOf ?? own.anyOf;
    if (choices && !own.properties) return { choices, title: title ?? own.title };
    if (!own.allOf) return { ...own, title };
    const parts = own.allOf.map((one) => this.resolve(one, name));
    return {
      type: "object",
      properties: Object.assign({}, own.properties, ...parts.map((one) => one.properties)),
      required: parts.flatMap((one) => one.required ?? []),
      title: title ?? parts.find((one) => one.title)?.title,
    };
  }
}

const oneOf = (name) => name.replace(/ies$/, "y").replace(/s$/, "");

function numberOf(name, variant) {
  if (name.endsWith("_ms") && !/(took|wall|interval|jitter)_ms/.test(name)) return 1_700_000_000_000 + variant * 61_000;
  if (/^(passed|done)$/.test(name)) return variant;
  if (/^(total|of)$/.test(name)) return VARIANTS;
  if (name === "offset" || name === "after") return 0;
  return variant === 1 ? 0 : 3 + variant;
}

/** A server that answers each operation of the document, and refuses what the document does not have. */
export class Answers {
  /** What was asked: `"METHOD /path"`, and what of it the document does not have. */
  asked = new Set();
  wrong = new Set();
  variant = 0;

  constructor(document, events) {
    this.document = document;
    this.samples = new Samples(document, events);
    this.routes = Object.entries(document.paths).map(([path, item]) => ({
      path,
      item,
      pattern: new RegExp(`^${path.replace(/\{[^}]+\}/g, "[^/]+")}$`),
    }));
  }

  /** In the place of the browser's `fetch`. */
  fetch = async (address, { method = "GET", body, signal, headers = {} } = {}) => {
    const [path, query = ""] = address.split("?");
    const found = this.routes.filter((route) => route.pattern.test(path)).sort((a, b) => literal(b) - literal(a))[0];
    const operation = found?.item[method.toLowerCase()];
    if (!operation) {
      this.wrong.add(`${method} ${path}`);
      return answer(404, { detail: "there is no such operation" });
    }
    this.asked.add(`${method} ${found.path}`);
    const known = new Set((operation.parameters ?? []).filter((one) => one.in === "query").map((one) => one.name));
    for (const name of new URLSearchParams(query).keys())
      if (!known.has(name)) this.wrong.add(`${method} ${found.path} with ?${name}`);
    if (body !== undefined) this.body(`${method} ${found.path}`, operation, JSON.parse(body));
    const content = Object.entries(operation.responses).find(([status]) => status.startsWith("2"))?.[1].content ?? {};
    const schema = content["application/json"]?.schema;
    const value = schema ? this.samples.of(schema, this.variant) : null;
    if (content["text/event-stream"] && !schema) return silence(signal);
    return content["text/event-stream"] && headers.accept === "text/event-stream" ? result(value) : answer(200, value);
  };

  body(name, operation, sent) {
    const schema = operation.requestBody?.content["application/json"]?.schema;
    const known = schema && this.samples.resolve(withoutNull(schema), name);
    const all = known?.choices ? known.choices.map((one) => this.samples.resolve(one, name)) : [known];
    const fields = new Set(all.flatMap((one) => Object.keys(one?.properties ?? {})));
    for (const field of Object.keys(sent)) if (!fields.has(field)) this.wrong.add(`${name} with {${field}}`);
  }
}

const literal = (route) => route.path.split("/").filter((part) => !part.startsWith("{")).length;
const withoutNull = (schema) => (schema.oneOf ?? schema.anyOf)?.find((one) => one.type !== "null") ?? schema;

function answer(status, value) {
  return {
    ok: status < 300,
    status,
    headers: new Headers({ "content-disposition": 'attachment; filename="r-1.md"' }),
    json: async () => value,
    text: async () => "text",
    blob: async () => new Blob(["text"]),
  };
}

/** A stream that ends at once with its result. */
const result = (value) => new Response(`event: result\ndata: ${JSON.stringify(value)}\n\n`);

/** A stream that stays open and says nothing. */
function silence(signal) {
  return new Response(
    new ReadableStream({
      start: (controller) => signal?.addEventListener("abort", () => controller.error(signal.reason), { once: true }),
    }),
  );
}

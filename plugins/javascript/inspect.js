// How values look in the output of `console`: as in Node's `util.inspect` with its defaults.
//
// It reads a value and never changes one. Depth, items and width are bounded, cycles are named, and
// getters are not called. A proxy is shown through its traps, since nothing here can see behind one.

const DEPTH_MAX = 2;
const ITEMS_MAX = 100;
const STRING_CHARS_MAX = 10_000;
const LINE_CHARS_MAX = 80;
/** Up to this many nested levels stand on one line if they fit. */
const LEVELS_ON_ONE_LINE = 3;
/** Deeper than this a value is not looked into, whatever `depth` says: the stack is small. */
const DEPTH_LIMIT = 60;

const getPrototypeOf = Object.getPrototypeOf;
const getDescriptor = Object.getOwnPropertyDescriptor;
const toStringOf = (value) => Object.prototype.toString.call(value);
const IDENTIFIER = /^[a-zA-Z_][a-zA-Z_0-9]*$/;
const INDEX = /^(0|[1-9][0-9]*)$/;
const TypedArray = getPrototypeOf(Uint8Array);

/** What `console.log(...args)` prints, without the line feed: `%s`, `%d`, `%j`, `%o` and the like count. */
export function format(args) {
  const first = args[0];
  if (typeof first !== "string" || !first.includes("%")) return args.map((arg) => shown(arg)).join(" ");
  let used = 1;
  const text = first.replace(/%[sdifjoOc%]/g, (directive) => {
    if (directive === "%%") return args.length === 1 ? directive : "%";
    if (used >= args.length) return directive;
    return formatDirective(directive, args[used++]);
  });
  return [text, ...args.slice(used).map((arg) => shown(arg))].join(" ");
}

/** How one value looks; `depth` levels of it. */
export function inspect(value, { depth = DEPTH_MAX } = {}) {
  const view = { depthMax: Math.min(depth ?? Infinity, DEPTH_LIMIT), indent: 0, level: 0, seen: [], circular: new Map() };
  return formatValue(view, value, 0);
}

function shown(value) {
  return typeof value === "string" ? value : inspect(value);
}

function formatDirective(directive, value) {
  switch (directive) {
    case "%s":
      if (typeof value === "bigint") return `${value}n`;
      if (Object.is(value, -0)) return "-0";
      return typeof value === "object" && value !== null ? inspect(value, { depth: 0 }) : String(value);
    case "%d":
      if (typeof value === "bigint") return `${value}n`;
      return typeof value === "symbol" || typeof value === "object" ? "NaN" : formatNumber(Number(value));
    case "%i":
      return typeof value === "symbol" ? "NaN" : formatNumber(Number.parseInt(value, 10));
    case "%f":
      return typeof value === "symbol" ? "NaN" : formatNumber(Number.parseFloat(value));
    case "%j":
      try {
        return JSON.stringify(value) ?? "undefined";
      } catch (error) {
        return `[${error.message}]`;
      }
    case "%c":
      return "";
    default:
      return inspect(value, { depth: directive === "%o" ? 4 : DEPTH_MAX });
  }
}

function formatValue(view, value, level, isNested = level > 0) {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) {
    return formatPrimitive(view, value, isNested);
  }
  if (view.seen.includes(value)) {
    if (!view.circular.has(value)) view.circular.set(value, view.circular.size + 1);
    return `[Circular *${view.circular.get(value)}]`;
  }
  const custom = value[CUSTOM];
  if (typeof custom === "function" && custom !== inspect) {
    const shown = Reflect.apply(custom, value, [view.depthMax - level, { depth: view.depthMax - level }, inspect]);
    if (typeof shown !== "object") return String(shown).replaceAll("\n", `\n${" ".repeat(view.indent)}`);
    if (shown !== value) return formatValue(view, shown, level);
  }
  return formatObject(view, value, level);
}

/** A method by this name shows an object, in Node and here. */
const CUSTOM = Symbol.for("nodejs.util.inspect.custom");

/** Makes `show` the way in which objects of `prototype` look. */
export function inspectable(prototype, show) {
  const value = function (depth, options, inspect) {
    return show(this, inspect);
  };
  Object.defineProperty(prototype, CUSTOM, { value, writable: true, configurable: true });
}

function formatPrimitive(view, value, isNested) {
  switch (typeof value) {
    case "string":
      return isNested ? formatNestedString(view, value) : quote(value);
    case "number":
      return formatNumber(value);
    case "bigint":
      return `${value}n`;
    case "symbol":
      return value.toString();
    default:
      return String(value);
  }
}

function formatNumber(value) {
  return Object.is(value, -0) ? "-0" : String(value);
}

/** A long text is broken at its line feeds, as Node does. */
function formatNestedString(view, text) {
  let rest = "";
  if (text.length > STRING_CHARS_MAX) {
    const more = text.length - STRING_CHARS_MAX;
    text = text.slice(0, STRING_CHARS_MAX);
    rest = `... ${more} more character${more > 1 ? "s" : ""}`;
  }
  if (text.length > 16 && text.length > LINE_CHARS_MAX - view.indent - 4 && text.includes("\n")) {
    const lines = text.split(/(?<=\n)/).map(quote);
    return lines.join(` +\n${" ".repeat(view.indent + 2)}`) + rest;
  }
  return quote(text) + rest;
}

function quote(text) {
  const mark = !text.includes("'") ? "'" : !text.includes('"') ? '"' : !/[`]|\$\{/.test(text) ? "`" : "'";
  const escaped = text.replace(/[\x00-\x1f\x7f-\x9f\\]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, escape);
  return mark + (mark === "'" ? escaped.replaceAll("'", "\\'") : escaped) + mark;
}

const ESCAPES = { "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", "\\": "\\\\" };

function escape(char) {
  const code = char.charCodeAt(0);
  if (code >= 0xd800) return `\\u${code.toString(16).toUpperCase()}`;
  return ESCAPES[char] ?? `\\x${code.toString(16).toUpperCase().padStart(2, "0")}`;
}

function formatObject(view, value, level) {
  const shape = shapeOf(view, value, level);
  if (shape.text !== undefined) return shape.text;
  if (level > view.depthMax) {
    return `[${shape.isArray ? "Array" : shape.name || "[Object: null prototype]"}]`.replace("[[", "[").replace("]]", "]");
  }
  view.seen.push(value);
  view.level = level;
  const entries = shape.entries(level);
  for (const key of shape.keys) entries.push(formatProperty(view, value, key, level));
  view.seen.pop();
  let { base, open, close } = shape;
  if (view.circular.has(value)) {
    const mark = `<ref *${view.circular.get(value)}>`;
    if (base) base = `${mark} ${base}`;
    else open = `${mark} ${open}`;
  }
  return joinEntries(view, entries, base, open, close, level, shape);
}

/** What kind of object `value` is: its braces, and how the entries are found that are not properties. */
function shapeOf(view, value, level) {
  const name = constructorName(value);
  const tag = tagOf(value, name);
  const prefix = (fallback, size) => prefixOf(name, tag, fallback, size);
  const keys = keysOf(value);
  const none = () => [];
  const shape = { name: name ?? "", keys, entries: none, base: "", open: "{", close: "}", isArray: false, isList: false };
  const plain = (text) => (keys.length === 0 ? { ...shape, text } : { ...shape, base: text });

  if (Array.isArray(value)) {
    const start = name === "Array" && tag === "" ? "" : prefix("Array", value.length);
    const own = keys.filter((key) => !INDEX.test(key.toString()));
    if (value.length === 0 && own.length === 0) return { ...shape, text: `${start}[]` };
    const entries = (at) => formatItems(view, value, at);
    return { ...shape, keys: own, entries, open: `${start}[`, close: "]", isArray: true, isList: true };
  }
  if (value instanceof TypedArray) {
    const own = keys.filter((key) => !INDEX.test(key.toString()));
    const start = prefix("TypedArray", value.length);
    if (value.length === 0 && own.length === 0) return { ...shape, text: `${start}[]` };
    const entries = () => bounded(Array.from(value.slice(0, ITEMS_MAX), (item) => formatPrimitive(view, item, true)), value.length);
    return { ...shape, keys: own, entries, open: `${start}[`, close: "]", isList: true };
  }
  if (typeof value === "function") return plain(formatFunction(value, name, tag));
  switch (toStringOf(value)) {
    case "[object RegExp]":
      if (value instanceof RegExp) return plain(RegExp.prototype.toString.call(value));
      break;
    case "[object Date]":
      if (value instanceof Date) return plain(Number.isNaN(value.getTime()) ? "Invalid Date" : value.toISOString());
      break;
    case "[object Error]":
      return plain(formatError(view, value, keys));
  }
  if (value instanceof Error) return plain(formatError(view, value, keys));
  if (value instanceof Set) {
    const entries = (at) => bounded([...value].slice(0, ITEMS_MAX).map((item) => deeper(view, item, at)), value.size);
    if (value.size === 0 && keys.length === 0) return { ...shape, text: `${prefix("Set", 0)}{}` };
    return { ...shape, entries, open: `${prefix("Set", value.size)}{` };
  }
  if (value instanceof Map) {
    const pair = (at) => ([key, item]) => `${deeper(view, key, at)} => ${deeper(view, item, at)}`;
    const entries = (at) => bounded([...value].slice(0, ITEMS_MAX).map(pair(at)), value.size);
    if (value.size === 0 && keys.length === 0) return { ...shape, text: `${prefix("Map", 0)}{}` };
    return { ...shape, entries, open: `${prefix("Map", value.size)}{` };
  }
  if (value instanceof ArrayBuffer) {
    const bytes = new Uint8Array(value.slice(0, 50));
    const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const more = value.byteLength - bytes.length;
    const shown = `[Uint8Contents]: <${hex}${more > 0 ? ` ... ${more} more byte${more > 1 ? "s" : ""}` : ""}>`;
    return { ...shape, entries: () => [shown, `byteLength: ${value.byteLength}`], open: `${prefix("ArrayBuffer")}{` };
  }
  for (const Wrapper of [Number, String, Boolean, BigInt, Symbol]) {
    if (!(value instanceof Wrapper)) continue;
    const inner = formatPrimitive(view, value.valueOf(), true);
    const own = keys.filter((key) => Wrapper !== String || !INDEX.test(key.toString()));
    const text = `[${Wrapper.name}${name === Wrapper.name ? "" : ` (${name})`}: ${inner}]`;
    return own.length === 0 ? { ...shape, text } : { ...shape, keys: own, base: text };
  }
  if (value instanceof Promise) {
    return { ...shape, entries: () => (value[PROMISE_VIEW] ? value[PROMISE_VIEW]((item) => deeper(view, item, level)) : []), open: "Promise {" };
  }
  if (value instanceof WeakSet || value instanceof WeakMap) {
    return { ...shape, entries: () => ["<items unknown>"], open: `${prefix("WeakMap")}{` };
  }
  if (toStringOf(value) === "[object Arguments]") {
    return keys.length === 0 ? { ...shape, text: "[Arguments] {}" } : { ...shape, open: "[Arguments] {" };
  }
  const start = name === "Object" && tag === "" ? "" : prefix("Object");
  if (keys.length === 0) return { ...shape, text: `${start}{}` };
  return { ...shape, open: `${start}{` };
}

/** A method by this name gives the entries of a promise. */
export const PROMISE_VIEW = Symbol("promise view");

/** What has this property is a module, whose getters are its variables. */
export const MODULE_MARK = Symbol("module");

function constructorName(value) {
  for (let at = value; at !== null; at = getPrototypeOf(at)) {
    const own = getDescriptor(at, "constructor");
    if (typeof own?.value === "function" && own.value.name !== "") return own.value.name;
  }
  return null;
}

function tagOf(value, name) {
  const tag = value[Symbol.toStringTag];
  return typeof tag === "string" && tag !== "" && tag !== name ? tag : "";
}

function prefixOf(name, tag, fallback, size) {
  const shownSize = size === undefined ? "" : `(${size})`;
  const shownTag = tag === "" ? "" : ` [${tag}]`;
  if (name === null) return `[${fallback}${shownSize}: null prototype]${shownTag} `;
  return `${name}${shownSize}${shownTag} `;
}

function keysOf(value) {
  const symbols = Object.getOwnPropertySymbols(value).filter((key) => getDescriptor(value, key)?.enumerable);
  return [...Object.keys(value), ...symbols];
}

function deeper(view, value, level) {
  view.indent += 2;
  const text = formatValue(view, value, level + 1);
  view.indent -= 2;
  return text;
}

function formatItems(view, list, level) {
  const items = [];
  let at = 0;
  while (at < list.length && items.length < ITEMS_MAX) {
    if (Object.hasOwn(list, at)) {
      items.push(deeper(view, list[at], level));
      at += 1;
      continue;
    }
    const start = at;
    // A sparse array can claim four thousand million items.
    const next = list.length - at > ITEMS_MAX ? nextIndex(list, at) : undefined;
    if (next !== undefined) at = next;
    else while (at < list.length && !Object.hasOwn(list, at)) at += 1;
    const holes = at - start;
    items.push(`<${holes} empty item${holes > 1 ? "s" : ""}>`);
  }
  return bounded(items, items.length + list.length - at);
}

function nextIndex(list, from) {
  const next = Object.keys(list).find((key) => INDEX.test(key) && Number(key) >= from);
  return next === undefined ? list.length : Number(next);
}

function bounded(items, total) {
  const more = total - items.length;
  if (more > 0) items.push(`... ${more} more item${more > 1 ? "s" : ""}`);
  return items;
}

function formatProperty(view, value, key, level) {
  const own = getDescriptor(value, key) ?? { value: value[key], enumerable: true };
  let name = typeof key === "symbol" ? `[${key.toString()}]` : IDENTIFIER.test(key) ? key : quote(key);
  if (!own.enumerable) name = `[${name}]`;
  if (own.get !== undefined && value[MODULE_MARK]) own.value = value[key];
  else if (own.get !== undefined) return `${name}: [${own.set === undefined ? "Getter" : "Getter/Setter"}]`;
  if (own.set !== undefined) return `${name}: [Setter]`;
  const text = deeper(view, own.value, level);
  return `${name}: ${text}`;
}

function formatFunction(value, name, tag) {
  const source = Function.prototype.toString.call(value);
  if (source.startsWith("class") && source.endsWith("}")) {
    const parent = getPrototypeOf(value)?.name;
    return `[class ${value.name || "(anonymous)"}${parent ? ` extends ${parent}` : ""}]`;
  }
  const kind = name === null ? "[Function (null prototype)" : `[${name}`;
  return `${kind}${value.name ? `: ${value.name}` : " (anonymous)"}]${tag === "" || tag === name ? "" : ` [${tag}]`}`;
}

function formatError(view, error, keys) {
  const header = describeError(error);
  let stack = typeof error.stack === "string" ? error.stack : "";
  // The stack is made before a constructor sets the name.
  const made = `Error: ${error.message}`;
  if (!stack.startsWith(header)) stack = stack.startsWith(made) ? header + stack.slice(made.length) : header;
  stack = stack.trimEnd();
  if (stack === header) stack = `[${header}]`;
  for (const hidden of ["cause", "errors"]) {
    if (Object.hasOwn(error, hidden) && !keys.includes(hidden)) keys.push(hidden);
  }
  // A class may set its name as a property, which the header has already shown.
  const nameAt = keys.indexOf("name");
  if (nameAt >= 0 && header.startsWith(String(error.name))) keys.splice(nameAt, 1);
  const indent = " ".repeat(view.indent);
  return stack.replaceAll("\n", `\n${indent}`);
}

/** The first line of an error: its name and message. */
export function describeError(error) {
  try {
    const { name = "Error", message = "" } = error;
    return message === "" ? String(name) : `${name}: ${message}`;
  } catch {
    return "Error (it cannot be shown)";
  }
}

function joinEntries(view, entries, base, open, close, level, shape) {
  const count = entries.length;
  if (shape.isList && count > 6) entries = groupItems(view, entries, shape.keys.length);
  const start = base ? `${base} ` : "";
  if (view.level - level < LEVELS_ON_ONE_LINE && count === entries.length) {
    const used = entries.length + view.indent + open.length + base.length + 10;
    const length = entries.reduce((sum, entry) => sum + entry.length, entries.length + used);
    if (length <= LINE_CHARS_MAX && !base.includes("\n")) {
      const joined = entries.join(", ");
      if (!joined.includes("\n")) return `${start}${open} ${joined} ${close}`;
    }
  }
  const line = `\n${" ".repeat(view.indent)}`;
  return `${start}${open}${line}  ${entries.join(`,${line}  `)}${line}${close}`;
}

/** More than six items of an array stand in columns when they are short. */
function groupItems(view, entries, keys) {
  const hasMore = /^\.\.\. \d+ more items?$/.test(entries[entries.length - 1 - keys] ?? "");
  const listed = entries.length - keys - (hasMore ? 1 : 0);
  const lengths = entries.slice(0, listed).map((entry) => entry.length + 2);
  const longest = Math.max(0, ...lengths);
  const total = lengths.reduce((sum, length) => sum + length, 0);
  if (longest * 3 + view.indent >= LINE_CHARS_MAX) return entries;
  if (!(total / longest > 5 || longest <= 8)) return entries;
  const bias = Math.sqrt(longest - total / entries.length);
  const biased = Math.max(longest - 3 - bias, 1);
  const columns = Math.min(
    Math.round(Math.sqrt(2.5 * biased * listed) / biased),
    Math.floor((LINE_CHARS_MAX - view.indent) / longest),
    LEVELS_ON_ONE_LINE * 4,
    15,
  );
  if (columns <= 1) return entries;
  const widths = [];
  for (let column = 0; column < columns; column += 1) {
    let width = 0;
    for (let at = column; at < listed; at += columns) width = Math.max(width, lengths[at]);
    widths.push(width);
  }
  const isNumeric = entries.slice(0, listed).every((entry) => /^-?[\d.]+(e[+-]?\d+)?n?$/.test(entry));
  const rows = [];
  for (let at = 0; at < listed; at += columns) {
    const end = Math.min(at + columns, listed);
    const row = [];
    for (let item = at; item < end - 1; item += 1) {
      const text = `${entries[item]}, `;
      row.push(isNumeric ? text.padStart(widths[item - at]) : text.padEnd(widths[item - at]));
    }
    const last = entries[end - 1];
    row.push(isNumeric ? last.padStart(widths[end - 1 - at] - 2) : last);
    rows.push(row.join(""));
  }
  return [...rows, ...entries.slice(listed)];
}

// `require` and `import`: the modules that came with the call, then those in `/work`, then a few of
// Node's by name.
//
// A module is evaluated once, when it is first asked for. Nothing is looked up in `node_modules`, and
// nothing is read but from a directory that was granted.

import { isFile, readText } from "./files.js";
import { describeError, MODULE_MARK } from "./inspect.js";
import { rewrite } from "./rewrite.js";
import { markRewritten, place } from "./stack.js";
import { isTypeScript, withoutTypes } from "./typescript.js";

const WORK = "/work";
const ENDINGS = ["", ".js", ".mjs", ".cjs", ".ts", ".mts", ".json", "/index.js", "/index.mjs", "/index.ts"];

/** Of `files` by name and, where that is granted, of `/work`. */
export class Modules {
  #files;
  #builtins;
  #isTimed;
  #evaluate;
  #loaded = new Map();

  constructor(files, builtins, isTimed, evaluate) {
    this.#files = new Map(Object.entries(files).map(([name, text]) => [normal(name), text]));
    this.#builtins = builtins;
    this.#isTimed = isTimed;
    this.#evaluate = evaluate;
  }

  /** The `require` of the module in the folder `from`. */
  requireFrom(from) {
    const require = (name) => {
      if (typeof name !== "string") throw new TypeError('The "id" argument must be of type string');
      const builtin = this.#builtins[name.replace(/^node:/, "")];
      return builtin !== undefined && !this.#has(from, name) ? builtin : this.#load(this.#find(from, name));
    };
    require.resolve = (name) => this.#find(from, name);
    return require;
  }

  #has(from, name) {
    return this.#candidates(from, name).some((path) => this.#files.has(path));
  }

  #candidates(from, name) {
    const isRelative = /^\.{0,2}\//.test(name) || name === "." || name === "..";
    const path = name.startsWith("/") ? name : isRelative ? `${from}/${name}` : name;
    const bases = path.startsWith("/") ? [normal(path)] : [normal(path), normal(`${WORK}/${path}`)];
    // In TypeScript an import names the file that its module will be.
    const typed = bases.filter((base) => /\.[mc]?js$/.test(base)).map((base) => base.replace(/js$/, "ts"));
    return [...bases.flatMap((base) => ENDINGS.map((ending) => base + ending)), ...typed];
  }

  #find(from, name) {
    const found = this.#candidates(from, name).find((path) => this.#files.has(path) || (path.startsWith(WORK) && isFile(path)));
    if (found !== undefined) return found;
    const given = [...this.#files.keys()];
    const known = [...given, ...Object.keys(this.#builtins)].join(", ");
    throw Object.assign(new Error(`Cannot find module '${name}'; there are: ${known}`), { code: "MODULE_NOT_FOUND" });
  }

  #load(path) {
    const loaded = this.#loaded.get(path);
    if (loaded) return loaded.exports;
    const module = { id: path, filename: path, exports: {}, loaded: false };
    this.#loaded.set(path, module);
    try {
      const text = this.#files.get(path) ?? readText(path);
      if (path.endsWith(".json")) module.exports = JSON.parse(text.replace(/^\ufeff/, ""));
      else this.#run(module, path, text);
    } catch (error) {
      this.#loaded.delete(path);
      throw error;
    }
    module.loaded = true;
    return module.exports;
  }

  #run(module, path, source) {
    const { text, lines } = read(path, source, { isTimed: this.#isTimed, isMain: false, isTyped: isTypeScript(path) });
    const folder = path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : ".";
    const body = this.#evaluate(`${lines}(function (exports, require, module, __filename, __dirname) { ${text}\n})`);
    Reflect.apply(body, module.exports, [module.exports, this.requireFrom(folder), module, path, folder]);
  }
}

/** A source as it is evaluated: `text`, after `lines`, which put it where its stacks are looked for. */
export function read(name, source, options) {
  const lines = place(name, source);
  try {
    const rewritten = rewrite(options.isTyped ? withoutTypes(source) : source, options);
    if (rewritten.text !== source) markRewritten(name, rewritten.text);
    return { ...rewritten, lines };
  } catch (error) {
    const { line, column } = error.at ?? { line: 1, column: 1 };
    error.stack = `${describeError(error)}\n    at ${name}:${line}:${column}`;
    throw error;
  }
}

/** What rewritten `import` and `export` call. */
export const moduleHelpers = {
  /** Declares the exports of a module: a name and what gives its value now. */
  exports(target, values) {
    for (const [name, get] of Object.entries(values)) {
      Object.defineProperty(target, name, { get, enumerable: true, configurable: true });
    }
    Object.defineProperty(target, MODULE_MARK, { value: true, configurable: true });
  },

  exportAll(target, source) {
    for (const name of Object.keys(source)) {
      if (name === "default" || Object.hasOwn(target, name)) continue;
      Object.defineProperty(target, name, { get: () => source[name], enumerable: true, configurable: true });
    }
  },

  /** The namespace of a module; what is no ES module has its exports as `default`. */
  import(require, name) {
    const found = require(name);
    if (found?.[MODULE_MARK]) return found;
    return Object.assign(Object.create(null), found, { default: found });
  },

  pick(namespace, name, source) {
    if (!(name in namespace)) {
      throw new SyntaxError(`The requested module '${source}' does not provide an export named '${name}'`);
    }
    return namespace[name];
  },

  meta(module) {
    return { url: `file://${module?.filename ?? ""}`, filename: module?.filename };
  },
};

/** Without `.`, `..` and double slashes. What leads out of the root has no name here. */
export function normal(path) {
  const parts = [];
  for (const part of path.split("/")) {
    if (part === "..") {
      if (parts.pop() === undefined) return "\0";
    } else if (part !== "" && part !== ".") parts.push(part);
  }
  return (path.startsWith("/") ? "/" : "") + parts.join("/");
}

// Runs one request in this very engine: sets up what a script expects, evaluates it, drains its jobs,
// and tells how it ended.
//
// What is not here is not there: no processes, no threads, no sockets, and `fetch` only says so. An end that the script
// tries to swallow, such as its own exit, still is the end: nothing that it prints afterwards is kept.

import { assert } from "./assert.js";
import { makeFs, workingDirectory } from "./files.js";
import * as host from "./host.js";
import { format, inspect } from "./inspect.js";
import * as jobs from "./jobs.js";
import { moduleHelpers, Modules, read } from "./modules.js";
import { Output } from "./output.js";
import { makeRandom } from "./random.js";
import { HELPERS } from "./rewrite.js";
import { excerpt, forgetSources, here, installStacks, MAIN_NAME } from "./stack.js";
import { TextDecoder, TextEncoder } from "./utf8.js";

/** Evaluates in the global scope; a script may have put another `eval` in its place. */
const evaluate = globalThis.eval;

/** How many looks a loop takes before it asks what time it is. */
const TICKS_PER_LOOK = 500;

/** See "What a script finds" in the README. */
const NO_FETCH =
  "fetch: JavaScript has no way to ask a host here, whatever was granted; ask from Python, or hand the data in";

/** The run that the globals serve. */
let run;

/** `{ stdout, stderr, exitCode, truncated }` of a request. */
export function execute(request, settings, isCheck) {
  run = new Run(request, settings, isCheck);
  run.go();
  return run.result();
}

class Run {
  #request;
  #isCheck;
  #modules;
  #stdin;
  #exitCode = 0;
  #hasEnded = false;
  #deadline;
  #ticks = 0;
  #onExit = [];
  start = host.now();

  constructor(request, settings, isCheck) {
    const { files = {}, stdin = "", timeout } = request;
    this.#request = request;
    this.#isCheck = isCheck;
    this.#stdin = stdin;
    this.#deadline = timeout === undefined ? Infinity : this.start + timeout * 1_000;
    this.#modules = new Modules(files, BUILTINS, timeout !== undefined, evaluate);
    const { output_bytes_max: bytesMax, stream } = settings;
    this.stdout = new Output(bytesMax, stream ? host.writeOut : undefined);
    this.stderr = new Output(bytesMax, stream ? host.writeErr : undefined);
  }

  go() {
    forgetSources();
    setGlobal("CONTEXT", this.#request.context ?? {});
    setGlobal("require", this.#modules.requireFrom("."));
    // Seeded anew: all calls would see one sequence otherwise, that of the build.
    random.forget();
    this.#guard(() => this.#runMain());
    this.#guard(() => jobs.drain((reason) => this.#fail(reason)));
    for (const callback of this.#onExit) this.#guard(() => callback(this.#exitCode));
    this.#end(this.#exitCode);
  }

  result() {
    return {
      stdout: this.stdout.text,
      stderr: this.stderr.text,
      exitCode: this.#exitCode,
      truncated: this.stdout.truncated || this.stderr.truncated,
    };
  }

  get exitCode() {
    return this.#exitCode;
  }

  set exitCode(code) {
    this.#exitCode = toExitCode(code ?? 0);
  }

  get stdin() {
    return this.#stdin;
  }

  /** All of the standard input, once; then null. */
  readStdin() {
    const text = this.#stdin === "" ? null : this.#stdin;
    this.#stdin = "";
    return text;
  }

  exit(code) {
    const exitCode = toExitCode(code ?? this.#exitCode);
    if (this.#hasEnded) throw new jobs.Signal();
    // A module that exits while it is loaded must not pass its check.
    const frame = this.#isCheck && exitCode === 0 ? here().find(({ file }) => isOfWork(file)) : undefined;
    if (frame) {
      this.stderr.write(`${frame.file}:${frame.line}: the work ended the check before it was through\n`);
      this.#stop(1);
    }
    for (const callback of this.#onExit.splice(0)) callback(exitCode);
    this.#stop(exitCode);
  }

  onExit(callback) {
    this.#onExit.push(callback);
  }

  tick() {
    this.#ticks += 1;
    if (this.#hasEnded) throw new jobs.Signal();
    if (this.#ticks < TICKS_PER_LOOK) return;
    this.#ticks = 0;
    if (host.now() >= this.#deadline) this.#timeOut();
  }

  sleep(ms) {
    const left = this.#deadline - host.now();
    host.sleep(Math.max(Math.min(ms, left), 0));
    if (ms >= left) this.#timeOut();
  }

  #runMain() {
    const { source, timeout } = this.#request;
    const { text, lines, isAsync } = read(MAIN_NAME, source, { isTimed: timeout !== undefined, isMain: true });
    if (!isAsync) evaluate(lines + text);
    else jobs.runAsync(evaluate(`${lines}(function* () { ${text}\n})`), globalThis).catch((error) => this.#fail(error));
  }

  /** Runs `action` unless the run has ended, and makes an error of it the end. */
  #guard(action) {
    if (this.#hasEnded) return;
    try {
      action();
    } catch (error) {
      if (!(error instanceof jobs.Signal)) this.#report(error);
    }
  }

  /** As an uncaught error ends a script: told on standard error, exit code 1. */
  #report(error) {
    if (!this.#hasEnded) this.stderr.write(showError(error));
    this.#end(1);
  }

  #fail(error) {
    this.#report(error);
    throw new jobs.Signal();
  }

  #timeOut() {
    this.stderr.write(`Timeout after ${this.#request.timeout} seconds\n`);
    this.#stop(-1);
  }

  #stop(code) {
    this.#end(code);
    throw new jobs.Signal();
  }

  #end(code) {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#exitCode = code;
    this.stdout.close();
    this.stderr.close();
  }
}

// What a script finds. All of it is made when the component is built, and is in its image.

const random = makeRandom(() => host.randomBytes(16));
const process = makeProcess();
const BUILTINS = makeBuiltins();

jobs.setClock({ now: host.now, sleep: (ms) => run.sleep(ms) });
installStacks();
installGlobals();

function installGlobals() {
  const main = { id: ".", filename: MAIN_NAME, exports: {}, loaded: false };
  const globals = {
    console: makeConsole(),
    process,
    performance: { now: () => host.now() - run.start },
    crypto: makeCrypto(),
    Promise: jobs.Promise,
    queueMicrotask: jobs.queueMicrotask,
    setTimeout: jobs.setTimeout,
    setInterval: jobs.setInterval,
    setImmediate: jobs.setImmediate,
    clearTimeout: jobs.clearTimer,
    clearInterval: jobs.clearTimer,
    clearImmediate: jobs.clearTimer,
    structuredClone: (value) => clone(value, new Map()),
    fetch: () => jobs.Promise.reject(new Error(NO_FETCH)),
    TextDecoder,
    TextEncoder,
    global: globalThis,
    module: main,
    exports: main.exports,
    __filename: MAIN_NAME,
    __dirname: ".",
    [HELPERS]: makeHelpers(),
  };
  for (const [name, value] of Object.entries(globals)) setGlobal(name, value);
  define(Math, "random", random.next);
  define(Array, "fromAsync", jobs.arrayFromAsync);
  // The doors of the tool chain, which no script knows.
  for (const name of ["__cqjs", "wit"]) delete globalThis[name];
}

function setGlobal(name, value) {
  define(globalThis, name, value);
}

/** As the engine's own are: not in a loop over the properties. */
function define(target, name, value) {
  Object.defineProperty(target, name, { value, writable: true, configurable: true, enumerable: false });
}

function makeHelpers() {
  const importLater = (require, name) => jobs.Promise.resolve().then(() => moduleHelpers.import(require, String(name)));
  const { asyncGenerator, awaited, delegate, loop, runAsync } = jobs;
  return { ...moduleHelpers, asyncGenerator, awaited, delegate, importLater, loop, runAsync, tick: () => run.tick() };
}

function makeProcess() {
  const stream = (write) => ({
    isTTY: false,
    write: (data) => {
      write(typeof data === "string" || ArrayBuffer.isView(data) ? data : String(data));
      return true;
    },
  });
  return {
    argv: ["javascript", MAIN_NAME],
    env: {},
    platform: "wasi",
    pid: 1,
    stdout: stream((data) => run.stdout.write(data)),
    stderr: stream((data) => run.stderr.write(data)),
    stdin: makeStdin(),
    cwd: workingDirectory,
    exit: (code) => run.exit(code),
    get exitCode() {
      return run.exitCode;
    },
    set exitCode(code) {
      run.exitCode = code;
    },
    uptime: () => (host.now() - run.start) / 1e3,
    hrtime: Object.assign(() => [Math.floor(host.now() / 1e3), Math.floor((host.now() % 1e3) * 1e6)], {
      bigint: () => BigInt(Math.round(host.now() * 1e6)),
    }),
    nextTick: jobs.nextTick,
    /** Only `exit` ever happens. */
    on(event, callback) {
      if (event === "exit") run.onExit(callback);
      return this;
    },
    once(event, callback) {
      return this.on(event, callback);
    },
  };
}

function makeStdin() {
  const stdin = {
    isTTY: false,
    fd: 0,
    setEncoding: () => stdin,
    resume: () => stdin,
    read: () => run.readStdin(),
    /** `data` comes once, with all of it, then `end`. */
    on(event, callback) {
      const tell = () => {
        if (event === "end" || event === "close") callback();
        const text = event === "data" ? run.readStdin() : null;
        if (text !== null) callback(text);
      };
      // The end comes after the data, in whichever order they are asked for.
      jobs.setTimeout(tell, event === "data" ? 1 : 2);
      return stdin;
    },
    once: (event, callback) => stdin.on(event, callback),
    [Symbol.asyncIterator]: () =>
      jobs.asyncGenerator(function* () {
        const text = run.readStdin();
        if (text !== null) yield text;
      }),
  };
  return stdin;
}

function makeConsole() {
  let indent = "";
  const counts = new Map();
  const starts = new Map();
  const print = (output, args) => {
    if (output.isFull) return;
    const text = format(args);
    output.write(indent === "" ? `${text}\n` : `${indent}${text.replaceAll("\n", `\n${indent}`)}\n`);
  };
  const out = (...args) => print(run.stdout, args);
  const err = (...args) => print(run.stderr, args);
  const since = (label) => `${label}: ${(host.now() - (starts.get(label) ?? host.now())).toFixed(3)}ms`;
  return {
    log: out,
    info: out,
    debug: out,
    error: err,
    warn: err,
    dir: (value, options) => out(inspect(value, options)),
    table: out,
    trace: (...args) => err(`Trace: ${format(args)}\n${new Error().stack.split("\n").slice(1).join("\n")}`),
    assert: (condition, ...args) => {
      if (!condition) err(args.length > 0 ? `Assertion failed: ${format(args)}` : "Assertion failed");
    },
    count: (label = "default") => {
      counts.set(label, (counts.get(label) ?? 0) + 1);
      out(`${label}: ${counts.get(label)}`);
    },
    countReset: (label = "default") => counts.delete(label),
    time: (label = "default") => starts.set(label, host.now()),
    timeLog: (label = "default") => out(since(label)),
    timeEnd: (label = "default") => {
      out(since(label));
      starts.delete(label);
    },
    group: (...args) => {
      if (args.length > 0) out(...args);
      indent += "  ";
    },
    groupEnd: () => {
      indent = indent.slice(2);
    },
  };
}

function showError(error) {
  try {
    if (!(error instanceof Error)) return `Uncaught ${inspect(error)}\n`;
    return `${excerpt(error.stack)}${inspect(error)}\n`;
  } catch {
    return "Uncaught error (it cannot be shown)\n";
  }
}

/** What does not fit the host's 32 bits is cut to 8, as a shell would see it. */
function toExitCode(code) {
  const number = Number(code);
  return Number.isInteger(number) ? number & 0xff : 1;
}

function isOfWork(file) {
  return typeof file === "string" && file !== MAIN_NAME;
}

function delay(ms, value) {
  return new jobs.Promise((resolve) => jobs.setTimeout(resolve, ms, value));
}

function makeCrypto() {
  return {
    getRandomValues(array) {
      const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
      bytes.set(host.randomBytes(bytes.length));
      return array;
    },
    randomUUID() {
      const bytes = host.randomBytes(16);
      bytes[6] = (bytes[6] & 0x0f) | 0x40;
      bytes[8] = (bytes[8] & 0x3f) | 0x80;
      const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
      return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
    },
  };
}

function makeBuiltins() {
  const util = {
    inspect,
    format: (...args) => format(args),
    isDeepStrictEqual: (one, other) => {
      try {
        assert.deepStrictEqual(one, other);
        return true;
      } catch {
        return false;
      }
    },
    promisify:
      (action) =>
      (...args) =>
        new jobs.Promise((resolve, reject) => {
          action(...args, (error, value) => (error ? reject(error) : resolve(value)));
        }),
  };
  return {
    assert,
    "assert/strict": assert.strict,
    fs: makeFs(() => run.stdin),
    path: makePath(),
    process,
    "timers/promises": { setTimeout: delay },
    util,
  };
}

function makePath() {
  const join = (...parts) => normalize(parts.filter((part) => part !== "").join("/"));
  const normalize = (path) => {
    const isAbsolute = path.startsWith("/");
    const kept = [];
    for (const part of path.split("/")) {
      if (part === ".." && kept.length > 0 && kept.at(-1) !== "..") kept.pop();
      else if (part === ".." ? !isAbsolute : part !== "" && part !== ".") kept.push(part);
    }
    return (isAbsolute ? "/" : "") + kept.join("/") || ".";
  };
  const basename = (path, ending = "") => {
    const name = path.replace(/\/+$/, "").split("/").at(-1);
    return ending !== "" && name !== ending && name.endsWith(ending) ? name.slice(0, -ending.length) : name;
  };
  return {
    sep: "/",
    join,
    normalize,
    basename,
    dirname: (path) => path.replace(/\/+[^/]*\/*$/, "") || (path.startsWith("/") ? "/" : "."),
    extname: (path) => /(?<=[^/])\.[^./]*$/.exec(basename(path))?.[0] ?? "",
    isAbsolute: (path) => path.startsWith("/"),
    resolve: (...parts) => parts.reduce((at, part) => (part.startsWith("/") ? normalize(part) : join(at, part)), workingDirectory()),
  };
}

/** `structuredClone`, for what has no functions in it. */
function clone(value, seen) {
  if (typeof value === "function" || typeof value === "symbol") throw new TypeError(`${String(value)} could not be cloned.`);
  if (typeof value !== "object" || value === null) return value;
  if (seen.has(value)) return seen.get(value);
  const copy = emptyCopy(value);
  seen.set(value, copy);
  const deeper = (inner) => clone(inner, seen);
  if (value instanceof Map) for (const [key, item] of value) copy.set(deeper(key), deeper(item));
  else if (value instanceof Set) for (const item of value) copy.add(deeper(item));
  else if (Array.isArray(value) || !isBoxed(value)) for (const key of Object.keys(value)) copy[key] = deeper(value[key]);
  return copy;
}

/** Whether what matters of `value` is not in its properties. */
function isBoxed(value) {
  return [Date, RegExp, ArrayBuffer, Error].some((Kind) => value instanceof Kind) || ArrayBuffer.isView(value);
}

function emptyCopy(value) {
  if (value instanceof Date) return new Date(value);
  if (value instanceof RegExp) return new RegExp(value.source, value.flags);
  if (value instanceof Error) return new Error(value.message);
  if (value instanceof ArrayBuffer || ArrayBuffer.isView(value)) return value.slice();
  if (value instanceof Map) return new Map();
  if (value instanceof Set) return new Set();
  return Array.isArray(value) ? new Array(value.length) : {};
}

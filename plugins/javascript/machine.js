// Runs one request in this very engine: sets up what a script expects, evaluates it, drains its jobs,
// and tells how it ended.
//
// What is not here is not there: no processes, no threads, no sockets. An end that the script tries to swallow, such as
// its own exit, still is the end: nothing that it prints afterwards is kept.

import { assert } from "./assert.js";
import * as async from "./async.js";
import { Buffer } from "./buffer.js";
import { structuredClone } from "./clone.js";
import { makeConsole } from "./console.js";
import { makeCrypto, makeNodeCrypto } from "./crypto.js";
import { makeEvents } from "./events.js";
import { makeFetch } from "./fetch.js";
import { makeFs, workingDirectory } from "./files.js";
import * as host from "./host.js";
import { inspect } from "./inspect.js";
import { installLocales, Intl } from "./intl.js";
import * as jobs from "./jobs.js";
import { makeReadline } from "./lines.js";
import { moduleHelpers, Modules, read } from "./modules.js";
import { makeNodeModules } from "./node.js";
import { Output } from "./output.js";
import { Outputs } from "./outputs.js";
import { makePath } from "./path.js";
import { makeRandom } from "./random.js";
import { HELPERS } from "./rewrite.js";
import { excerpt, forgetSources, here, installStacks, MAIN_NAME } from "./stack.js";
import { TextDecoder, TextEncoder } from "./utf8.js";
import { url } from "./web.js";

/** Evaluates in the global scope; a script may have put another `eval` in its place. */
const evaluate = globalThis.eval;

/** How many looks a loop takes before it asks what time it is. */
const TICKS_PER_LOOK = 500;

/** Node's, when nothing is left to do and the top of a module still waits. */
const UNSETTLED_EXIT_CODE = 13;

/** The run that the globals serve. */
let run;

/** `{ stdout, stderr, exitCode, truncated }` of a request, and its typed `outputs` where they were asked for. */
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
  /** None until the script sets it. */
  #exitCode;
  #hasEnded = false;
  /** True while the top of the source waits for a promise. */
  #isWaiting = false;
  #waitsAt = 0;
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
    if (request.rich && stream && !isCheck) this.outputs = new Outputs();
  }

  go() {
    forgetSources();
    setGlobal("CONTEXT", this.#request.context ?? {});
    setGlobal("require", this.#modules.requireFrom("."));
    if (this.outputs) setGlobal("display", (...values) => values.forEach((value) => this.outputs.add(value)));
    // Seeded anew: all calls would see one sequence otherwise, that of the build.
    random.forget();
    this.#guard(() => this.#runMain());
    this.#guard(() => jobs.drain((reason) => this.#fail(reason)));
    for (const callback of this.#onExit) this.#guard(() => callback(this.exitCode ?? 0));
    if (this.#isWaiting && !this.#hasEnded) this.#warnOfWaiting();
    this.#end(this.exitCode ?? 0);
  }

  /** Notes the line of the source whose promise is waited for at its top. */
  waitAt(line, value) {
    this.#waitsAt = line;
    return value;
  }

  /** Nothing is left that could settle the promise: as Node says it, with its exit code. */
  #warnOfWaiting() {
    const text = this.#request.source.split("\n")[this.#waitsAt - 1] ?? "";
    this.stderr.write(`Warning: Detected unsettled top-level await at ${MAIN_NAME}:${this.#waitsAt}\n${text}\n\n\n\n`);
    this.exitCode ??= UNSETTLED_EXIT_CODE;
  }

  result() {
    return {
      stdout: this.stdout.text,
      stderr: this.stderr.text,
      exitCode: this.#exitCode ?? 0,
      truncated: this.stdout.truncated || this.stderr.truncated,
      outputs: this.outputs,
    };
  }

  get exitCode() {
    return this.#exitCode;
  }

  set exitCode(code) {
    this.#exitCode = code === undefined || code === null ? undefined : toExitCode(code);
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
    const exitCode = toExitCode(code ?? this.#exitCode ?? 0);
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
    const { source, timeout, typescript = false } = this.#request;
    const options = { isTimed: timeout !== undefined, isMain: true, isTyped: typescript, isRich: this.outputs !== undefined };
    const { text, lines, isAsync, hasResult } = read(MAIN_NAME, source, options);
    if (!isAsync) {
      const value = evaluate(lines + text);
      if (hasResult) this.#show(value);
      return;
    }
    this.#isWaiting = true;
    const main = async.runAsync(evaluate(`${lines}(function* () { ${text}\n})`), globalThis);
    const onEnd = (last) => {
      this.#isWaiting = false;
      if (hasResult) this.#show(last.value);
    };
    main.then(onEnd, (error) => this.#fail(error));
  }

  /** Shows the value of the last expression, of a promise that to which it settles; `undefined` is none. */
  #show(value) {
    if (value instanceof jobs.Promise) value.then((settled) => this.#show(settled));
    else if (value !== undefined) this.outputs.add(value);
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
    this.outputs?.close();
  }
}

// What a script finds. All of it is made when the component is built, and is in its image.

const random = makeRandom(() => host.randomBytes(16));
const process = makeProcess();
const console = makeConsole({ out: () => run.stdout, err: () => run.stderr, now: host.now });
const crypto = makeCrypto(host.randomBytes, (action) => new jobs.Promise((resolve) => resolve(action())));
const events = makeEvents({ setTimeout: jobs.setTimeout, Promise: jobs.Promise, report: jobs.failLater });
const BUILTINS = makeBuiltins();

jobs.setClock({ now: host.now, sleep: (ms) => run.sleep(ms) });
installStacks();
installGlobals();

function installGlobals() {
  const main = { id: ".", filename: MAIN_NAME, exports: {}, loaded: false };
  const globals = {
    console,
    process,
    performance: { now: () => host.now() - run.start },
    crypto,
    Buffer,
    Intl,
    ...events.globals,
    Promise: jobs.Promise,
    queueMicrotask: jobs.queueMicrotask,
    setTimeout: jobs.setTimeout,
    setInterval: jobs.setInterval,
    setImmediate: jobs.setImmediate,
    clearTimeout: jobs.clearTimer,
    clearInterval: jobs.clearTimer,
    clearImmediate: jobs.clearTimer,
    structuredClone,
    ...makeFetch(jobs.Promise, url),
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
  for (const name of ["URL", "URLSearchParams"]) setLazyGlobal(name, () => url()[name]);
  define(Math, "random", random.next);
  installLocales(define);
  define(Array, "fromAsync", async.arrayFromAsync);
  // The doors of the tool chain, which no script knows.
  for (const name of ["__cqjs", "wit"]) delete globalThis[name];
}

/** A global that is made when it is first asked for. */
function setLazyGlobal(name, make) {
  const get = () => {
    const value = make();
    if (value !== undefined) setGlobal(name, value);
    return value;
  };
  const set = (value) => setGlobal(name, value);
  Object.defineProperty(globalThis, name, { get, set, configurable: true, enumerable: false });
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
  const { asyncGenerator, awaited, delegate, loop, runAsync } = async;
  return { ...moduleHelpers, asyncGenerator, awaited, delegate, importLater, loop, runAsync, tick: () => run.tick(), waitAt: (line, value) => run.waitAt(line, value) };
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
      async.asyncGenerator(function* () {
        const text = run.readStdin();
        if (text !== null) yield text;
      }),
  };
  return stdin;
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

function makeBuiltins() {
  const readline = makeReadline({
    read: () => run.readStdin(),
    write: (text) => run.stdout.write(text),
    later: (callback) => jobs.setTimeout(callback, 1),
    EventEmitter: events.EventEmitter,
    Promise: jobs.Promise,
    asyncGenerator: async.asyncGenerator,
  });
  const fs = makeFs(() => run.stdin);
  return {
    ...makeNodeModules({ assert, events: events.EventEmitter, fs, jobs, process, TextDecoder, TextEncoder }),
    assert,
    "assert/strict": assert.strict,
    buffer: { Buffer },
    console,
    crypto: makeNodeCrypto(crypto, host.randomBytes),
    fs,
    path: makePath(workingDirectory),
    process,
    readline: readline.readline,
    "readline/promises": readline.promises,
    get url() {
      return url();
    },
  };
}

// The rest of Node's modules that scripts ask for: `events`, `util`, `os`, `timers`, `fs/promises` and their like.
//
// Each has what makes sense in a sandbox, and no more: no processes, no sockets, no streams.

import { format, inspect } from "./inspect.js";

/** By name. */
export function makeNodeModules({ assert, events, fs, jobs, process, TextDecoder, TextEncoder }) {
  const util = makeUtil({ assert, jobs, TextDecoder, TextEncoder });
  const delay = (ms, value) => new jobs.Promise((resolve) => jobs.setTimeout(resolve, ms, value));
  const { setTimeout, setInterval, setImmediate, clearTimer } = jobs;
  const timers = { setTimeout, setInterval, setImmediate, clearTimeout: clearTimer, clearInterval: clearTimer, clearImmediate: clearTimer };
  const laterTimers = { setTimeout: delay, setImmediate: (value) => new jobs.Promise((resolve) => jobs.setImmediate(resolve, value)) };
  fs.promises = promisesOf(fs, jobs.Promise);
  return {
    events,
    "fs/promises": fs.promises,
    os: { EOL: "\n", platform: () => process.platform, cpus: () => [], tmpdir: () => "/tmp", homedir: () => "/", type: () => "WASI", arch: () => "wasm32" },
    perf_hooks: { performance: { now: () => process.uptime() * 1e3 } },
    querystring: {
      parse: (text) => Object.fromEntries(new globalThis.URLSearchParams(text)),
      stringify: (fields) => new globalThis.URLSearchParams(Object.entries(fields).flatMap(([name, value]) => [value].flat().map((one) => [name, one]))).toString(),
    },
    timers,
    "timers/promises": laterTimers,
    util,
    "util/types": util.types,
  };
}

/** The functions of `fs` without `Sync`, each at once and as a promise. */
function promisesOf(fs, Promise) {
  const names = Object.keys(fs).filter((name) => name.endsWith("Sync") && name !== "existsSync");
  const later = (name) => (...args) => new Promise((resolve) => resolve(fs[name](...args)));
  return {
    ...Object.fromEntries(names.map((name) => [name.slice(0, -"Sync".length), later(name)])),
    access: (path) => new Promise((resolve) => resolve(void fs.statSync(path))),
  };
}

function makeUtil({ assert, jobs, TextDecoder, TextEncoder }) {
  inspect.custom = Symbol.for("nodejs.util.inspect.custom");
  const promisify = (action) =>
    action === globalThis.setTimeout
      ? (ms, value) => new jobs.Promise((resolve) => jobs.setTimeout(resolve, ms, value))
      : (...args) =>
          new jobs.Promise((resolve, reject) => {
            action(...args, (error, value) => (error ? reject(error) : resolve(value)));
          });
  return {
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
    promisify,
    callbackify:
      (action) =>
      (...args) => {
        const callback = args.pop();
        action(...args).then((value) => jobs.nextTick(callback, null, value), (error) => jobs.nextTick(callback, error));
      },
    inherits: (Kind, Parent) => Object.setPrototypeOf(Kind.prototype, Parent.prototype),
    deprecate: (action) => action,
    types: makeTypes(jobs.Promise),
    TextDecoder,
    TextEncoder,
  };
}

function makeTypes(Promise) {
  const kind = (Kind) => (value) => value instanceof Kind;
  const tagged = (pattern) => (value) => pattern.test(Object.prototype.toString.call(value));
  return {
    isDate: kind(Date),
    isRegExp: kind(RegExp),
    isMap: kind(Map),
    isSet: kind(Set),
    isWeakMap: kind(WeakMap),
    isWeakSet: kind(WeakSet),
    isPromise: kind(Promise),
    isNativeError: kind(Error),
    isTypedArray: (value) => ArrayBuffer.isView(value) && !(value instanceof DataView),
    isUint8Array: kind(Uint8Array),
    isArrayBuffer: kind(ArrayBuffer),
    isGeneratorFunction: tagged(/GeneratorFunction\]$/),
    isGeneratorObject: tagged(/Generator\]$/),
  };
}

// Events: `EventTarget`, `Event`, `AbortController` and `AbortSignal` of browsers, and Node's `EventEmitter`.
//
// Listeners run at once, in the order they were added. Nothing here waits, but for `AbortSignal.timeout`.

/** Makes the globals, with timers and promises of this engine. */
export function makeEvents({ setTimeout, Promise, report }) {
  class Event {
    #type;
    #options;
    #isPrevented = false;
    target = null;
    currentTarget = null;
    timeStamp = 0;

    constructor(type, options = {}) {
      this.#type = String(type);
      this.#options = options;
    }

    get type() {
      return this.#type;
    }

    get cancelable() {
      return Boolean(this.#options.cancelable);
    }

    get bubbles() {
      return Boolean(this.#options.bubbles);
    }

    get defaultPrevented() {
      return this.#isPrevented;
    }

    preventDefault() {
      if (this.cancelable) this.#isPrevented = true;
    }

    stopPropagation() {}

    stopImmediatePropagation() {
      this.isStopped = true;
    }
  }

  class CustomEvent extends Event {
    #detail;

    constructor(type, options = {}) {
      super(type, options);
      this.#detail = options.detail ?? null;
    }

    get detail() {
      return this.#detail;
    }
  }

  class EventTarget {
    #listeners = new Map();

    addEventListener(type, listener, options = {}) {
      const { once = false, signal } = typeof options === "object" ? options : {};
      if (listener === null || signal?.aborted) return;
      const listeners = this.#listeners.get(type) ?? [];
      if (listeners.some((entry) => entry.listener === listener)) return;
      this.#listeners.set(type, [...listeners, { listener, once }]);
      signal?.addEventListener("abort", () => this.removeEventListener(type, listener), { once: true });
    }

    removeEventListener(type, listener) {
      this.#listeners.set(type, (this.#listeners.get(type) ?? []).filter((entry) => entry.listener !== listener));
    }

    dispatchEvent(event) {
      event.target = this;
      event.currentTarget = this;
      for (const { listener, once } of this.#listeners.get(event.type) ?? []) {
        if (once) this.removeEventListener(event.type, listener);
        try {
          if (typeof listener === "function") listener.call(this, event);
          else listener.handleEvent(event);
        } catch (error) {
          report(error);
        }
        if (event.isStopped) break;
      }
      return !event.defaultPrevented;
    }
  }

  const abortError = () => new DOMException("This operation was aborted", "AbortError");

  class AbortSignal extends EventTarget {
    #isAborted = false;
    #reason;
    onabort = null;

    static abort(reason) {
      const signal = new AbortSignal();
      abort(signal, reason);
      return signal;
    }

    static timeout(ms) {
      const signal = new AbortSignal();
      const text = "The operation was aborted due to timeout";
      setTimeout(() => abort(signal, new DOMException(text, "TimeoutError")), ms).unref();
      return signal;
    }

    static any(signals) {
      const any = new AbortSignal();
      for (const signal of signals) {
        if (signal.aborted) abort(any, signal.reason);
        signal.addEventListener("abort", () => abort(any, signal.reason), { once: true });
      }
      return any;
    }

    static {
      abort = (signal, reason = abortError()) => {
        if (signal.#isAborted) return;
        signal.#isAborted = true;
        signal.#reason = reason;
        const event = new Event("abort");
        signal.dispatchEvent(event);
        if (typeof signal.onabort === "function") signal.onabort(event);
      };
    }

    get aborted() {
      return this.#isAborted;
    }

    get reason() {
      return this.#reason;
    }

    throwIfAborted() {
      if (this.#isAborted) throw this.#reason;
    }
  }

  class AbortController {
    #signal = new AbortSignal();

    get signal() {
      return this.#signal;
    }

    abort(reason) {
      abort(this.#signal, reason);
    }
  }

  return { globals: { Event, CustomEvent, EventTarget, AbortSignal, AbortController }, EventEmitter: makeEmitter(Promise) };
}

/** Set while the class is made, which alone can reach what a signal keeps to itself. */
let abort;

function makeEmitter(Promise) {
  class EventEmitter {
    static defaultMaxListeners = 10;

    on(name, listener) {
      return add(this, name, listener, listener);
    }

    prependListener(name, listener) {
      return add(this, name, listener, listener, true);
    }

    once(name, listener) {
      const once = (...args) => {
        this.removeListener(name, listener);
        return Reflect.apply(listener, this, args);
      };
      return add(this, name, listener, once);
    }

    removeListener(name, listener) {
      const listeners = of(this).get(name) ?? [];
      const at = listeners.findLastIndex((entry) => entry.listener === listener);
      if (at >= 0) of(this).set(name, listeners.toSpliced(at, 1));
      return this;
    }

    removeAllListeners(name) {
      if (name === undefined) of(this).clear();
      else of(this).delete(name);
      return this;
    }

    emit(name, ...args) {
      const listeners = of(this).get(name) ?? [];
      if (name === "error" && listeners.length === 0) {
        throw args[0] instanceof Error ? args[0] : new Error(`Unhandled error. (${String(args[0])})`);
      }
      for (const { call } of listeners) Reflect.apply(call, this, args);
      return listeners.length > 0;
    }

    listenerCount(name) {
      return (of(this).get(name) ?? []).length;
    }

    listeners(name) {
      return (of(this).get(name) ?? []).map(({ listener }) => listener);
    }

    eventNames() {
      return [...of(this).keys()].filter((name) => this.listenerCount(name) > 0);
    }

    setMaxListeners() {
      return this;
    }

    /** A promise of the arguments of the next event. */
    static once(emitter, name) {
      return new Promise((resolve, reject) => {
        emitter.once(name, (...args) => resolve(args));
        if (name !== "error") emitter.once("error", reject);
      });
    }
  }
  Object.assign(EventEmitter.prototype, { addListener: EventEmitter.prototype.on, off: EventEmitter.prototype.removeListener });
  for (const name of ["addListener", "off"]) Object.defineProperty(EventEmitter.prototype, name, { enumerable: false });
  return Object.assign(EventEmitter, { EventEmitter });
}

/** Listeners are no properties, so that an emitter prints as its own fields. */
const listenersOf = new WeakMap();

function of(emitter) {
  if (!listenersOf.has(emitter)) listenersOf.set(emitter, new Map());
  return listenersOf.get(emitter);
}

function add(emitter, name, listener, call, isFirst = false) {
  if (typeof listener !== "function") throw new TypeError('The "listener" argument must be of type function');
  if (name !== "newListener" && emitter.listenerCount("newListener") > 0) emitter.emit("newListener", name, listener);
  const listeners = of(emitter).get(name) ?? [];
  const entry = { listener, call };
  of(emitter).set(name, isFirst ? [entry, ...listeners] : [...listeners, entry]);
  return emitter;
}

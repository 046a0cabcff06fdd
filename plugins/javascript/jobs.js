// Promises and timers. The engine has promises of its own, but in a component nothing runs their jobs;
// so `Promise` is replaced by this one, whose jobs `drain` runs; `async.js` drives what is `async`.
//
// A timer waits for real. Nothing here runs two things at once.

import { PROMISE_VIEW } from "./inspect.js";

const apply = Reflect.apply;

const PENDING = "pending";
const FULFILLED = "fulfilled";
const REJECTED = "rejected";

/** What waits to run, and the rejections that nobody has looked at. */
const jobs = { list: [], next: 0 };
const ticks = [];
const immediates = [];
const timers = new Map();
let timersMade = 0;
const unhandled = new Set();
let clock;

/** Ends the run from wherever it is thrown: an exit, or a timeout. Nothing may swallow it. */
export class Signal {
  constructor(code) {
    this.code = code;
  }
}

export class Promise {
  #state = PENDING;
  #value;
  #reactions = [];
  #isHandled = false;

  constructor(executor) {
    if (typeof executor !== "function") throw new TypeError(`Promise resolver ${String(executor)} is not a function`);
    const { resolve, reject } = this.#settlers();
    try {
      executor(resolve, reject);
    } catch (error) {
      if (error instanceof Signal) throw error;
      reject(error);
    }
  }

  static get [Symbol.species]() {
    return this;
  }

  static resolve(value) {
    if (value instanceof Promise && value.constructor === this) return value;
    return new this((resolve) => resolve(value));
  }

  static reject(reason) {
    return new this((_, reject) => reject(reason));
  }

  static withResolvers() {
    let settlers;
    const promise = new this((resolve, reject) => {
      settlers = { resolve, reject };
    });
    return { promise, ...settlers };
  }

  static try(callback, ...args) {
    return new this((resolve) => resolve(callback(...args)));
  }

  static all(values) {
    return gather(this, values, (results, at, settle) => [
      (value) => settle((results[at] = value)),
      undefined,
    ]);
  }

  static allSettled(values) {
    return gather(this, values, (results, at, settle) => [
      (value) => settle((results[at] = { status: FULFILLED, value })),
      (reason) => settle((results[at] = { status: REJECTED, reason })),
    ]);
  }

  static any(values) {
    return new this((resolve, reject) => {
      const errors = [];
      let left = 1;
      const lose = () => {
        left -= 1;
        if (left === 0) reject(new AggregateError(errors, "All promises were rejected"));
      };
      for (const value of values) {
        const at = errors.push(undefined) - 1;
        left += 1;
        this.resolve(value).then(resolve, (reason) => {
          errors[at] = reason;
          lose();
        });
      }
      lose();
    });
  }

  static race(values) {
    return new this((resolve, reject) => {
      for (const value of values) this.resolve(value).then(resolve, reject);
    });
  }

  get [Symbol.toStringTag]() {
    return "Promise";
  }

  then(onFulfilled, onRejected) {
    const Species = this.constructor?.[Symbol.species] ?? Promise;
    let settlers;
    const next = new Species((resolve, reject) => {
      settlers = { resolve, reject };
    });
    this.#react({ onFulfilled, onRejected, ...settlers });
    return next;
  }

  catch(onRejected) {
    return this.then(undefined, onRejected);
  }

  finally(callback) {
    if (typeof callback !== "function") return this.then(callback, callback);
    const Species = this.constructor?.[Symbol.species] ?? Promise;
    return this.then(
      (value) => Species.resolve(callback()).then(() => value),
      (reason) =>
        Species.resolve(callback()).then(() => {
          throw reason;
        }),
    );
  }

  [PROMISE_VIEW](show) {
    if (this.#state === PENDING) return ["<pending>"];
    return [this.#state === REJECTED ? `<rejected> ${show(this.#value)}` : show(this.#value)];
  }

  /** Calls back without making another promise: what `await` does. */
  static awaited(value, onFulfilled, onRejected) {
    Promise.resolve(value).#react({ onFulfilled, onRejected, resolve: ignore, reject: ignore });
  }

  static markHandled(promise) {
    promise.#isHandled = true;
    unhandled.delete(promise);
  }

  static reasonOf(promise) {
    return promise.#value;
  }

  #settlers() {
    let isDone = false;
    const once = (action) => (value) => {
      if (isDone) return;
      isDone = true;
      action(value);
    };
    return { resolve: once((value) => this.#resolve(value)), reject: once((reason) => this.#settle(REJECTED, reason)) };
  }

  #resolve(value) {
    if (value === this) return this.#settle(REJECTED, new TypeError("Chaining cycle detected for promise #<Promise>"));
    if ((typeof value !== "object" && typeof value !== "function") || value === null) return this.#settle(FULFILLED, value);
    let then;
    try {
      then = value.then;
    } catch (error) {
      if (error instanceof Signal) throw error;
      return this.#settle(REJECTED, error);
    }
    if (typeof then !== "function") return this.#settle(FULFILLED, value);
    const { resolve, reject } = this.#settlers();
    queueMicrotask(() => {
      try {
        apply(then, value, [resolve, reject]);
      } catch (error) {
        if (error instanceof Signal) throw error;
        reject(error);
      }
    });
  }

  #settle(state, value) {
    this.#state = state;
    this.#value = value;
    const reactions = this.#reactions;
    this.#reactions = [];
    if (state === REJECTED && !this.#isHandled) unhandled.add(this);
    for (const reaction of reactions) this.#run(reaction);
  }

  #react(reaction) {
    Promise.markHandled(this);
    if (this.#state === PENDING) this.#reactions.push(reaction);
    else this.#run(reaction);
  }

  #run({ onFulfilled, onRejected, resolve, reject }) {
    const isFulfilled = this.#state === FULFILLED;
    const handler = isFulfilled ? onFulfilled : onRejected;
    const value = this.#value;
    queueMicrotask(() => {
      if (typeof handler !== "function") return isFulfilled ? resolve(value) : reject(value);
      try {
        resolve(handler(value));
      } catch (error) {
        if (error instanceof Signal) throw error;
        reject(error);
      }
    });
  }
}

function gather(Kind, values, handlers) {
  return new Kind((resolve, reject) => {
    const results = [];
    let left = 1;
    const settle = () => {
      left -= 1;
      if (left === 0) resolve(results);
    };
    for (const value of values) {
      const at = results.push(undefined) - 1;
      left += 1;
      const [onFulfilled, onRejected = reject] = handlers(results, at, settle);
      Kind.resolve(value).then(onFulfilled, onRejected);
    }
    settle();
  });
}

function ignore() {}

// Jobs and timers.

export function queueMicrotask(callback) {
  jobs.list.push(callback);
}

/** Runs before the jobs that wait, once those that run are through. */
export function nextTick(callback, ...args) {
  ticks.push({ callback, args });
}

export function setTimeout(callback, ms = 0, ...args) {
  return addTimer(callback, ms, args, false);
}

export function setInterval(callback, ms = 0, ...args) {
  return addTimer(callback, ms, args, true);
}

export function setImmediate(callback, ...args) {
  const job = { callback, args, isImmediate: true };
  immediates.push(job);
  return job;
}

export function clearTimer(timer) {
  if (timer?.isImmediate) timer.callback = ignore;
  else timers.delete(timer?.id ?? timer);
}

function addTimer(callback, ms, args, repeats) {
  if (typeof callback !== "function") throw new TypeError("The \"callback\" argument must be of type function");
  timersMade += 1;
  // Node, too, makes 1 ms of what is not a number from 1 to 2^31 - 1.
  const delay = ms >= 1 && ms <= 2 ** 31 - 1 ? Math.trunc(ms) : 1;
  const timer = new Timer(timersMade, delay);
  timers.set(timer.id, { callback, args, repeats, delay, due: clock.now() + delay, timer });
  return timer;
}

/** What `setTimeout` gives: a number where one is asked for. */
class Timer {
  constructor(id, delay) {
    this.id = id;
    Object.defineProperty(this, "delay", { value: delay });
  }

  [Symbol.toPrimitive]() {
    return this.id;
  }

  ref() {
    return this;
  }

  unref() {
    const entry = timers.get(this.id);
    if (entry) entry.isIdle = true;
    return this;
  }

  hasRef() {
    return !timers.get(this.id)?.isIdle;
  }
}

/** Makes an error of a listener that of the run, once the running job is through. */
export function failLater(error) {
  nextTick(() => {
    throw error;
  });
}

/** The clock of the timers: `now` and `sleep`, in milliseconds. */
export function setClock(given) {
  clock = given;
}

/** Runs jobs and timers until none is left; `onUnhandled` is told of rejections that nobody handles. */
export function drain(onUnhandled) {
  for (;;) {
    runJobs(onUnhandled);
    if (immediates.length > 0) {
      // Timers that are due go first, and those of this very millisecond are: in Node the start alone takes as long.
      const soon = clock.now() + 1;
      const due = [...timers.values()].filter((entry) => entry.due <= soon).sort((one, other) => one.due - other.due);
      for (const entry of due) {
        if (timers.get(entry.timer.id) !== entry) continue;
        fire(entry);
        runJobs(onUnhandled);
      }
      for (const { callback, args } of immediates.splice(0)) {
        callback(...args);
        runJobs(onUnhandled);
      }
      continue;
    }
    const next = nextTimer();
    if (next === undefined) return;
    const wait = next.due - clock.now();
    if (wait > 0) clock.sleep(wait);
    fire(next);
  }
}

function fire(timer) {
  if (timer.repeats) timer.due = clock.now() + timer.delay;
  else timers.delete(timer.timer.id);
  timer.callback(...timer.args);
}

function runJobs(onUnhandled) {
  while (ticks.length > 0 || jobs.next < jobs.list.length) {
    while (ticks.length > 0) {
      const { callback, args } = ticks.shift();
      callback(...args);
    }
    while (jobs.next < jobs.list.length) runJob();
  }
  for (const promise of unhandled) {
    unhandled.delete(promise);
    onUnhandled(Promise.reasonOf(promise));
  }
}

function runJob() {
  const job = jobs.list[jobs.next];
  jobs.next += 1;
  // What has run is let go in batches: to shift the list each time would take its square.
  if (jobs.next === 1_024 || jobs.next === jobs.list.length) {
    jobs.list.splice(0, jobs.next);
    jobs.next = 0;
  }
  job();
}

function nextTimer() {
  const waiting = [...timers.values()];
  if (waiting.every((entry) => entry.isIdle)) return undefined;
  return waiting.reduce((first, entry) => (entry.due < first.due ? entry : first));
}

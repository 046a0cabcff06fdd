// Async functions and generators, which `rewrite.js` turns into generators: driven by the promises of `jobs.js`.
//
// What ends the run is never taken for a rejection.

import { Promise, Signal } from "./jobs.js";

const apply = Reflect.apply;

/** Marks what an async generator awaits, beside what it yields. */
class Awaited {
  constructor(value) {
    this.value = value;
  }
}

/** Drives the body of an async function. */
export function runAsync(body, self, args) {
  return new Promise((resolve, reject) => {
    const steps = apply(body, self, args ?? []);
    const step = (method, value) => {
      let result;
      try {
        result = steps[method](value);
      } catch (error) {
        if (error instanceof Signal) throw error;
        return reject(error);
      }
      if (result.done) resolve(result.value);
      else Promise.awaited(result.value, (value) => step("next", value), (error) => step("throw", error));
    };
    step("next");
  });
}

/** Drives the body of an async generator: one request after the other. */
export function asyncGenerator(body, self, args) {
  const steps = apply(body, self, args ?? []);
  const waiting = [];
  let isRunning = false;
  const finish = (action) => {
    const request = waiting.shift();
    isRunning = false;
    action(request);
    resume();
  };
  const step = (method, value) => {
    let result;
    try {
      result = steps[method](value);
    } catch (error) {
      if (error instanceof Signal) throw error;
      return finish(({ reject }) => reject(error));
    }
    const { value: given, done } = result;
    const isAwait = !done && given instanceof Awaited;
    const onValue = (value) => (isAwait ? step("next", value) : finish(({ resolve }) => resolve({ value, done })));
    const onError = (error) => (done ? finish(({ reject }) => reject(error)) : step("throw", error));
    Promise.awaited(isAwait ? given.value : given, onValue, onError);
  };
  const resume = () => {
    if (isRunning || waiting.length === 0) return;
    isRunning = true;
    step(waiting[0].method, waiting[0].value);
  };
  const ask = (method) => (value) =>
    new Promise((resolve, reject) => {
      waiting.push({ method, value, resolve, reject });
      resume();
    });
  return {
    next: ask("next"),
    return: ask("return"),
    throw: ask("throw"),
    [Symbol.asyncIterator]() {
      return this;
    },
    [Symbol.toStringTag]: "AsyncGenerator",
  };
}

export function awaited(value) {
  return new Awaited(value);
}

/** `yield*` in an async generator. */
export function* delegate(iterable) {
  const steps = iteratorOf(iterable);
  for (;;) {
    const { value, done } = yield new Awaited(steps.next());
    if (done) return value;
    yield value;
  }
}

/** The loop of `for await`. */
export function loop(iterable) {
  const steps = iteratorOf(iterable);
  let isDone = false;
  return {
    value: undefined,
    /** Whether there is a next value, as a promise. */
    step() {
      return Promise.resolve(steps.next()).then((result) => {
        isDone = Boolean(result.done);
        this.value = result.value;
        return !isDone;
      });
    },
    /** Lets go of an iterator that was left early. */
    close() {
      return isDone || typeof steps.return !== "function" ? undefined : steps.return();
    },
  };
}

function iteratorOf(iterable) {
  const asynchronous = iterable[Symbol.asyncIterator];
  if (typeof asynchronous === "function") return apply(asynchronous, iterable, []);
  const steps = iterable[Symbol.iterator]();
  // The values of an ordinary iterator may be promises.
  const settle = ({ value, done }) => Promise.resolve(value).then((value) => ({ value, done }));
  return {
    next: () => settle(steps.next()),
    return: () => steps.return?.(),
  };
}

/** `Array.fromAsync`; the engine's would wait for a promise of its own. */
export function arrayFromAsync(items, map) {
  return runAsync(function* () {
    const list = [];
    if (items[Symbol.asyncIterator] === undefined && items[Symbol.iterator] === undefined) items = Array.from(items);
    const steps = loop(items);
    while (yield steps.step()) list.push(map ? yield map(steps.value, list.length) : steps.value);
    return list;
  });
}

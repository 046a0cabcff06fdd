// One class for each thing that a caller can act on. An import throws them, and what an export throws
// becomes the variant of the contract that says the same; anything else becomes `failed`.

import { describe } from "./show.js";

/** The base of all errors of the contract; by itself, `failed` with a text. */
export class Failed extends Error {
  name = this.constructor.name;
}

/** Not granted. `fix` is the line that would allow it. */
export class Denied extends Failed {
  constructor(reason, fix = "") {
    super(fix === "" ? reason : `${reason}; to allow it, ${fix}`);
    Object.assign(this, { reason, fix });
  }
}

/** A cap was reached. `limit` is its name, which carries the unit. */
export class LimitReached extends Failed {
  constructor(limit, used, max) {
    super(`limit \`${limit}\` reached: ${used} of ${max}`);
    Object.assign(this, { limit, used, max });
  }
}

/** The pushed text does not fit into the model's window; `reset` makes room. */
export class ContextFull extends LimitReached {}

/** A service is not there now; `retryAfterMs` is undefined where nobody knows when it will be. */
export class Unavailable extends Failed {
  constructor(reason, retryAfterMs) {
    super(reason);
    Object.assign(this, { reason, retryAfterMs });
  }
}

/** A person must answer a question first. */
export class Blocked extends Failed {}

/** An agent's word that its task cannot be done as written. */
export class Impossible extends Failed {}

/** The request is malformed. */
export class Invalid extends Failed {}

/** A tool, a check or an agent of that name is not there. */
export class Unknown extends Invalid {}

/** A tool gave up after `ms`. */
export class TimedOut extends Failed {
  constructor(ms) {
    super(`timed out after ${ms} ms`);
    this.ms = ms;
  }
}

/** A tool cannot tell whether a call had its effect; the message says what broke. */
export class OutcomeUnknown extends Failed {}

/** The model refused, in its own words. */
export class Refused extends Failed {}

const LIFTED = {
  denied: ({ reason, fix }) => new Denied(reason, fix),
  limit: ({ name, used, max }) => new LimitReached(name, used, max),
  unavailable: ({ reason, retryAfterMs }) => new Unavailable(reason, retryAfterMs ?? undefined),
  "context-full": ({ name, used, max }) => new ContextFull(name, used, max),
  refused: (text) => new Refused(text),
  invalid: (text) => new Invalid(text),
  "invalid-arguments": (text) => new Invalid(text),
  "unknown-function": (text) => new Unknown(text),
  "unknown-check": (text) => new Unknown(`there is no check \`${text}\``),
  "unknown-agent": (text) => new Unknown(`there is no agent \`${text}\``),
  "unknown-step": (text) => new Unknown(`there is no step \`${text}\` in this graph`),
  "timed-out": (ms) => new TimedOut(ms),
  "outcome-unknown": (text) => new OutcomeUnknown(text),
  blocked: (text) => new Blocked(text),
  unclear: (text) => new Blocked(text),
  impossible: (text) => new Impossible(text),
  failed: (text) => new Failed(text),
};

/** The error that a variant of the contract stands for. */
export function fromVariant({ tag, val }) {
  return LIFTED[tag]?.(val) ?? new Failed(`${tag}: ${describe(val)}`);
}

/** Calls an import, whose errors become those of this file. */
export function ask(call) {
  try {
    return call();
  } catch (error) {
    const variant = error?.payload;
    throw typeof variant?.tag === "string" ? fromVariant(variant) : error;
  }
}

/** The cases of a role for errors; the first class that fits counts. */
const CASES = {
  agent: { impossible: [Impossible], blocked: [Blocked] },
  planner: { unclear: [Blocked] },
  evaluator: {},
  tool: {
    "unknown-function": [Unknown],
    "invalid-arguments": [Invalid],
    "timed-out": [TimedOut],
    "outcome-unknown": [OutcomeUnknown],
  },
  memory: { invalid: [Invalid] },
};

/** The variant of the role's error that says what `error` says. */
export function toVariant(role, error) {
  if (error instanceof Denied) return { tag: "denied", val: { reason: text(error.reason), fix: text(error.fix) } };
  if (error instanceof LimitReached) {
    return { tag: "limit", val: { name: text(error.limit), used: number(error.used), max: number(error.max) } };
  }
  if (error instanceof Unavailable) {
    const { reason, retryAfterMs } = error;
    return { tag: "unavailable", val: { reason: text(reason), retryAfterMs: retryAfterMs === undefined ? null : u32(retryAfterMs) } };
  }
  for (const [tag, kinds] of Object.entries(CASES[role])) {
    if (!kinds.some((Kind) => error instanceof Kind)) continue;
    return { tag, val: tag === "timed-out" ? u32(error.ms) : text(error.message) };
  }
  return { tag: "failed", val: text(error instanceof Failed ? error.message : describe(error)) };
}

function text(value) {
  return String(value ?? "").toWellFormed();
}

function number(value) {
  return Number(value) || 0;
}

/** In the form that the engine takes: numbers past 2^31 as negative ones. */
function u32(value) {
  return Math.min(Math.max(number(value), 0), 2 ** 32 - 1) | 0;
}

// The exports of a plugin: one function for each role. Each takes the author's functions, gives them plain
// values, checks what they answer, and turns every error into one of the contract. Nothing that an
// author's function throws ends the instance.

import { beginCall } from "#runtime";

import { Failed, Invalid, toVariant, Unknown } from "./errors.js";
import { readJson, readObject } from "./json.js";
import * as lift from "./lift.js";
import { checkSchema, problemOf } from "./schema.js";
import * as shape from "./shapes.js";
import { cut } from "./show.js";

const EFFECTS = ["read-only", "idempotent", "verifiable", "acts"];
const NO_ARGUMENTS = { type: "object", properties: {}, additionalProperties: false };

/** The export `tool`. Wrong definitions are errors when the component is built. */
export function defineTool({ id, description, functions }) {
  const known = Object.entries(functions).map(([name, given]) => describeFunction(name, given));
  const info = { id, description, functions: known };
  const find = (name) => {
    if (Object.hasOwn(functions, name)) return functions[name];
    throw new Unknown(`\`${cut(name, 100)}\`; the tool \`${id}\` has ${Object.keys(functions).join(", ")}`);
  };
  const readArguments = (name, given) => {
    const values = readObject("the arguments", given);
    const problem = problemOf(values, find(name).parameters ?? NO_ARGUMENTS);
    if (problem !== undefined) throw new Invalid(problem);
    return values;
  };
  const result = (value) =>
    value instanceof Output
      ? { output: shape.json(value.value, "output"), truncated: value.truncated }
      : { output: shape.json(value ?? null, "output"), truncated: false };
  const lower = ({ idempotencyKey, remainingMs, attempt, settings }) => ({
    idempotencyKey,
    remainingMs: remainingMs >>> 0,
    attempt: attempt >>> 0,
    settings: readObject("the settings", settings),
  });
  const verify = (name, given, prepared, context) => {
    const { verify: ask } = find(name);
    if (ask === undefined) return { tag: "unknown", val: `\`${id}\` cannot tell whether \`${name}\` happened` };
    const answer = ask(readArguments(name, given), readJson("what was prepared", prepared), lower(context));
    const tagged = shape.variant({ happened: result, "did-not-happen": null, unknown: shape.text })(answer, "verification");
    return tagged;
  };
  return wrap("tool", {
    // It depends on the definition alone, and not on settings.
    describe: () => info,
    prepare: (name, given, context) => {
      const { prepare } = find(name);
      return shape.json(prepare === undefined ? {} : prepare(readArguments(name, given), lower(context)), "prepared");
    },
    verify,
    call: (name, given, context) => {
      const { call } = find(name);
      return settle(call(readArguments(name, given), lower(context)), name, result);
    },
  });
}

/** An answer of a tool that was cut at a limit. */
export function truncated(value) {
  return new Output(value);
}

class Output {
  truncated = true;

  constructor(value) {
    this.value = value;
  }
}

/** The export `agent`. */
export function defineAgent({ run }) {
  return wrap("agent", { run: (task) => settle(run(lift.task(task)), "run", shape.outcome, "outcome") });
}

/** The export `planner`. */
export function definePlanner({ plan, replan, synthesize }) {
  const results = (given) => given.map(lift.stepResult);
  return wrap("planner", {
    plan: (goal) => settle(plan(lift.goal(goal)), "plan", shape.workPlan, "plan"),
    replan: (goal, before, given) =>
      settle(replan(lift.goal(goal), lift.workPlan(before), results(given)), "replan", shape.workPlan, "plan"),
    synthesize: (goal, given) => settle(synthesize(lift.goal(goal), results(given)), "synthesize", shape.synthesis, "synthesis"),
  });
}

/** The export `evaluator`. */
export function defineEvaluator({ judge }) {
  return wrap("evaluator", {
    judge: (subject, rubric) => settle(judge(lift.subject(subject), lift.rubric(rubric)), "judge", shape.verdict, "verdict"),
  });
}

/** The export `memory`. */
export function defineMemory({ put, get, search, delete: remove, list }) {
  const lower = ({ settings }) => ({ settings: readObject("the settings", settings) });
  return wrap("memory", {
    put: (namespace, entry, context) => settle(put(namespace, lift.entry(entry), lower(context)), "put", () => undefined),
    get: (namespace, key, context) => settle(get(namespace, key, lower(context)), "get", shape.option(shape.entry), "entry"),
    search: (namespace, query, limit, context) =>
      settle(search(namespace, query, limit >>> 0, lower(context)), "search", shape.list(shape.hit), "hits"),
    delete: (namespace, key, context) => settle(remove(namespace, key, lower(context)), "delete", shape.bool, "deleted"),
    list: (namespace, prefix, cursor, limit, context) => {
      const options = { prefix, cursor: lift.orUndefined(cursor), limit: limit >>> 0 };
      return settle(list(namespace, options, lower(context)), "list", shape.page, "page");
    },
  });
}

/** Every export of a role: what it throws becomes a variant of the role's error. */
function wrap(role, exports) {
  const wrapped = Object.entries(exports).map(([name, call]) => [
    name,
    (...args) => {
      beginCall();
      try {
        return call(...args);
      } catch (error) {
        // `payload` is where the engine looks for the value of an error.
        throw Object.assign(new Error("see `payload`"), { payload: variantOf(role, error) });
      }
    },
  ]);
  return Object.fromEntries(wrapped);
}

function variantOf(role, error) {
  try {
    return toVariant(role, error);
  } catch {
    // An object that throws when it is looked at.
    return { tag: "failed", val: "an error that cannot be shown" };
  }
}

/** A function's answer in the contract's shape. A promise never comes to anything here. */
function settle(value, name, shapeOf, place) {
  if (typeof value?.then === "function") throw new Failed(`\`${name}\` gave a promise; a plugin's functions cannot be async`);
  return shapeOf(value, place);
}

function describeFunction(name, { description, effect, parameters = NO_ARGUMENTS, call }) {
  if (typeof call !== "function") throw new TypeError(`the function \`${name}\` has no \`call\``);
  if (!EFFECTS.includes(effect)) throw new TypeError(`the effect of \`${name}\` must be one of ${EFFECTS.join(", ")}`);
  checkSchema(parameters, `parameters of \`${name}\``);
  if (parameters.type !== "object") throw new TypeError(`the parameters of \`${name}\` must have the type object`);
  return { name, description, parameters: JSON.stringify(parameters), effect };
}

// Everything that a plugin in JavaScript can use. What a plugin does not import is not in its component;
// what its world does not have, such as `Conversation` in a tool, does not build.

export * as artifact from "./artifact.js";
export * as checks from "./checks.js";
export { nowMs } from "./clock.js";
export { Conversation } from "./conversation.js";
export * as decisions from "./decisions.js";
export * as delegate from "./delegate.js";
export {
  Blocked,
  ContextFull,
  Denied,
  Failed,
  Impossible,
  Invalid,
  LimitReached,
  OutcomeUnknown,
  Refused,
  TimedOut,
  Unavailable,
  Unknown,
} from "./errors.js";
export { Graph } from "./graph.js";
export { firstObject, readJson } from "./json.js";
export * as keyvalue from "./keyvalue.js";
export * as log from "./log.js";
export * as progress from "./progress.js";
export { react } from "./react.js";
export * as recall from "./recall.js";
export { defineAgent, defineEvaluator, defineMemory, definePlanner, defineTool, truncated } from "./roles.js";
export { problemOf } from "./schema.js";
export { characters, cut } from "./show.js";
export { sleep } from "./timer.js";
export * as tools from "./tools.js";

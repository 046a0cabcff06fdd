// TypeScript to JavaScript: types are taken out and not checked, enums become objects.
//
// Lines stay what they were, so that errors name the line of the source. Decorators and namespaces are not supported.

import text from "./lazy/types.js?text";

import { evaluateOwn } from "./stack.js";

const ENDING = /\.[mc]?ts$/;

/** Whether a file has types, by its name. */
export function isTypeScript(name) {
  return ENDING.test(name);
}

let sucrase;

/** Throws a SyntaxError with `at`, the line and column, where the source cannot be read. */
export function withoutTypes(source) {
  sucrase ??= evaluateOwn("sucrase", text);
  try {
    return sucrase.transform(source, { transforms: ["typescript"], disableESTransforms: true, preserveDynamicImport: true }).code;
  } catch (error) {
    if (error.loc === undefined) throw error;
    const text = error.message.replace(/^Error transforming [^:]*: /, "").replace(/ \(\d+:\d+\)$/, "");
    throw Object.assign(new SyntaxError(text), { at: { line: error.loc.line, column: error.loc.column + 1 } });
  }
}

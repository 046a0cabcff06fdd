// Checks a value against a JSON Schema: the part of it that arguments of tools need.
//
// Known are `type`, `properties`, `required`, `additionalProperties`, `items`, `enum`, `const`,
// `minLength`, `maxLength`, `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`, `minItems`,
// `maxItems`; `$schema`, `title`, `description`, `default`, `examples`, `format` and `$comment` say
// nothing about validity here. Another keyword is refused when the tool is defined, so that no schema
// promises what nobody checks.

import { isObject } from "./json.js";
import { characters } from "./show.js";

const WORDS = ["$schema", "$comment", "title", "description", "default", "examples", "format"];
const TYPES = ["string", "number", "integer", "boolean", "null", "array", "object"];

const CHECKS = {
  type(value, types) {
    const names = [types].flat();
    if (names.some((name) => hasType(value, name))) return undefined;
    return `must be ${names.join(" or ")}, not ${typeOf(value)}`;
  },
  enum(value, values) {
    if (values.some((one) => isSame(one, value))) return undefined;
    return `must be one of ${values.map((one) => JSON.stringify(one)).join(", ")}`;
  },
  const(value, wanted) {
    return isSame(wanted, value) ? undefined : `must be ${JSON.stringify(wanted)}`;
  },
  minLength: (value, min) => text(value, (length) => length >= min, `must have ${plural(min, "character")} or more`),
  maxLength: (value, max) => text(value, (length) => length <= max, `must have ${plural(max, "character")} or fewer`),
  minimum: (value, min) => number(value, (given) => given >= min, `must be ${min} or more`),
  maximum: (value, max) => number(value, (given) => given <= max, `must be ${max} or less`),
  exclusiveMinimum: (value, min) => number(value, (given) => given > min, `must be more than ${min}`),
  exclusiveMaximum: (value, max) => number(value, (given) => given < max, `must be less than ${max}`),
  minItems: (value, min) => list(value, (count) => count >= min, `must have ${plural(min, "item")} or more`),
  maxItems: (value, max) => list(value, (count) => count <= max, `must have ${plural(max, "item")} or fewer`),
};

/** The fault of `value`, in one line that names the place; undefined when there is none. */
export function problemOf(value, schema, place = "") {
  if (schema === true || schema === undefined) return undefined;
  if (schema === false) return `${nameOf(place)} must not be there`;
  for (const [keyword, check] of Object.entries(CHECKS)) {
    const problem = schema[keyword] === undefined ? undefined : check(value, schema[keyword]);
    if (problem !== undefined) return `${nameOf(place)} ${problem}`;
  }
  if (Array.isArray(value)) return problemOfItems(value, schema, place);
  return isObject(value) ? problemOfProperties(value, schema, place) : undefined;
}

/** Throws where `schema` has what this checker does not check. */
export function checkSchema(schema, place = "the schema") {
  if (typeof schema === "boolean") return;
  if (!isObject(schema)) throw new TypeError(`${place} must be an object, true or false`);
  const inner = ["properties", "required", "additionalProperties", "items"];
  for (const keyword of Object.keys(schema)) {
    if (!Object.hasOwn(CHECKS, keyword) && !inner.includes(keyword) && !WORDS.includes(keyword)) {
      throw new TypeError(`${place} has \`${keyword}\`, which is not checked here; known: ${[...Object.keys(CHECKS), ...inner].join(", ")}`);
    }
  }
  for (const type of [schema.type ?? []].flat()) {
    if (!TYPES.includes(type)) throw new TypeError(`${place} has the type \`${type}\`; known: ${TYPES.join(", ")}`);
  }
  for (const [name, property] of Object.entries(schema.properties ?? {})) checkSchema(property, `${place}.${name}`);
  if (schema.items !== undefined) checkSchema(schema.items, `${place}[]`);
  if (schema.additionalProperties !== undefined) checkSchema(schema.additionalProperties, `${place}.*`);
}

function problemOfItems(value, { items }, place) {
  if (items === undefined) return undefined;
  for (let at = 0; at < value.length; at += 1) {
    const problem = problemOf(value[at], items, `${place}[${at}]`);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function problemOfProperties(value, { properties = {}, required = [], additionalProperties }, place) {
  for (const name of required) {
    if (!Object.hasOwn(value, name)) return `${nameOf(inside(place, name))} is missing`;
  }
  for (const [name, inner] of Object.entries(value)) {
    const isKnown = Object.hasOwn(properties, name);
    if (!isKnown && additionalProperties === false) {
      const known = Object.keys(properties).join(", ") || "none";
      return `${nameOf(inside(place, name))} is not known; known: ${known}`;
    }
    const problem = problemOf(inner, isKnown ? properties[name] : additionalProperties, inside(place, name));
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function inside(place, name) {
  return place === "" ? name : `${place}.${name}`;
}

function nameOf(place) {
  const shown = place.length > 100 ? `${place.slice(0, 100)}…` : place;
  return place === "" ? "it" : `\`${shown}\``;
}

function hasType(value, name) {
  if (name === "integer") return Number.isInteger(value);
  return typeOf(value) === name;
}

function typeOf(value) {
  return value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
}

function text(value, isGood, problem) {
  return typeof value !== "string" || isGood(characters(value)) ? undefined : problem;
}

function plural(count, name) {
  return `${count} ${name}${count === 1 ? "" : "s"}`;
}

function number(value, isGood, problem) {
  return typeof value !== "number" || isGood(value) ? undefined : problem;
}

function list(value, isGood, problem) {
  return !Array.isArray(value) || isGood(value.length) ? undefined : problem;
}

function isSame(one, other) {
  if (one === other) return true;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return false;
  const keys = Object.keys(one);
  if (Array.isArray(one) !== Array.isArray(other) || keys.length !== Object.keys(other).length) return false;
  return keys.every((key) => Object.hasOwn(other, key) && isSame(one[key], other[key]));
}

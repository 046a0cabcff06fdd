// What `Intl` has for words: plurals, lists, relative times, names and the parts of a text; all of it in English.

import { NumberFormat } from "./numbers.js";
import { chosen, oneOf } from "./locales.js";

export class PluralRules {
  #locale;
  #isOrdinal;

  constructor(locales, { type = "cardinal" } = {}) {
    this.#locale = chosen(locales);
    this.#isOrdinal = oneOf("type", type, ["cardinal", "ordinal"]) === "ordinal";
  }

  select(number) {
    if (!this.#isOrdinal) return Number(number) === 1 ? "one" : "other";
    const [ten, hundred] = [Math.abs(number) % 10, Math.abs(number) % 100];
    if (hundred >= 11 && hundred <= 13) return "other";
    return { 1: "one", 2: "two", 3: "few" }[ten] ?? "other";
  }

  resolvedOptions() {
    return { locale: this.#locale, type: this.#isOrdinal ? "ordinal" : "cardinal", pluralCategories: this.#isOrdinal ? ["few", "one", "two", "other"] : ["one", "other"] };
  }
}

export class ListFormat {
  #options;

  constructor(locales, { type = "conjunction", style = "long" } = {}) {
    this.#options = { locale: chosen(locales), type: oneOf("type", type, ["conjunction", "disjunction", "unit"]), style };
  }

  format(list) {
    return this.formatToParts(list).map(({ value }) => value).join("");
  }

  formatToParts(list) {
    const items = Array.from(list);
    const { type, style } = this.#options;
    const word = type === "disjunction" ? "or" : style === "long" ? "and" : style === "short" ? "&" : "";
    const space = type === "unit" && style === "narrow" ? " " : ", ";
    const last = type === "unit" || word === "" ? space : items.length > 2 ? `, ${word} ` : ` ${word} `;
    return items.flatMap((value, at) => {
      if (typeof value !== "string") throw new TypeError("Iterable yielded a non-String value");
      const before = at === 0 ? [] : [{ type: "literal", value: at === items.length - 1 ? last : space }];
      return [...before, { type: "element", value }];
    });
  }

  resolvedOptions() {
    return { ...this.#options };
  }
}

const NAMED = {
  day: { "-1": "yesterday", 0: "today", 1: "tomorrow" },
  second: { 0: "now" },
};
const SHORT = { second: "sec.", minute: "min.", hour: "hr.", day: "day", week: "wk.", month: "mo.", quarter: "qtr.", year: "yr." };

export class RelativeTimeFormat {
  #locale;
  #isAuto;
  #style;

  constructor(locales, { numeric = "always", style = "long" } = {}) {
    this.#locale = chosen(locales);
    this.#isAuto = oneOf("numeric", numeric, ["always", "auto"]) === "auto";
    this.#style = style;
  }

  format(value, unit) {
    const name = String(unit).replace(/s$/, "");
    if (!Object.hasOwn(SHORT, name)) throw new RangeError(`Invalid unit argument for format() '${unit}'`);
    const number = Number(value);
    if (this.#isAuto) {
      const named = NAMED[name]?.[number] ?? (name === "day" || name === "second" ? undefined : { "-1": `last ${name}`, 0: `this ${name}`, 1: `next ${name}` }[number]);
      if (named !== undefined) return named;
    }
    const size = Math.abs(number);
    const amount = new NumberFormat("en").format(size);
    const short = size === 1 || !["day", "quarter"].includes(name) ? SHORT[name] : name === "day" ? "days" : "qtrs.";
    const words = this.#style === "long" ? (size === 1 ? name : `${name}s`) : short;
    return number < 0 || Object.is(number, -0) ? `${amount} ${words} ago` : `in ${amount} ${words}`;
  }

  resolvedOptions() {
    return { locale: this.#locale, numberingSystem: "latn", numeric: this.#isAuto ? "auto" : "always", style: this.#style };
  }
}

/** Knows no names, and gives codes back. */
export class DisplayNames {
  #options;

  constructor(locales, options) {
    if (options?.type === undefined) throw new TypeError("Required option \"type\" must not be undefined");
    this.#options = { locale: chosen(locales), ...options };
  }

  of(code) {
    return this.#options.fallback === "none" ? undefined : String(code);
  }

  resolvedOptions() {
    return { ...this.#options };
  }
}

const PARTS = {
  // A picture with its skin and its joiners, a pair of letters that is a flag, or a letter with its marks.
  grapheme: /\r\n|\p{RI}\p{RI}|\p{Emoji}[\p{EMod}\ufe0f]?(?:\u20e3|(?:\u200d\p{Emoji}[\p{EMod}\ufe0f]?)+)?|[^\p{M}\u200d][\p{M}\u200d]*|[^]/gu,
  word: /[\p{L}\p{N}_]+(?:['’.][\p{L}\p{N}_]+)*|\s|[^]/gu,
  sentence: /[^.!?]+[.!?]*\s*|[^]/gu,
};

export class Segmenter {
  #options;

  constructor(locales, { granularity = "grapheme" } = {}) {
    this.#options = { locale: chosen(locales), granularity: oneOf("granularity", granularity, Object.keys(PARTS)) };
  }

  segment(text) {
    const { granularity } = this.#options;
    const input = String(text);
    return {
      *[Symbol.iterator]() {
        for (const { 0: segment, index } of input.matchAll(PARTS[granularity])) {
          const isWordLike = granularity === "word" ? { isWordLike: /[\p{L}\p{N}]/u.test(segment) } : {};
          yield { segment, index, input, ...isWordLike };
        }
      },
      containing(at = 0) {
        for (const part of this) if (at >= part.index && at < part.index + part.segment.length) return part;
        return undefined;
      },
    };
  }

  resolvedOptions() {
    return { ...this.#options };
  }
}

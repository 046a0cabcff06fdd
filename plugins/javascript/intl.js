// `Intl`, and the methods that use it, in English: the engine has none of it.
//
// There are no tables of languages and of time zones here: other locales than English have their marks in numbers
// when they are listed below, and else English; time zones are UTC and fixed distances from it.

import { Collator } from "./intl/collator.js";
import { DateTimeFormat } from "./intl/dates.js";
import { NumberFormat } from "./intl/numbers.js";
import { DisplayNames, ListFormat, PluralRules, RelativeTimeFormat, Segmenter } from "./intl/words.js";
import { canonical } from "./intl/locales.js";

/** `Intl`. */
export const Intl = Object.assign(Object.create(Object.prototype, { [Symbol.toStringTag]: { value: "Intl" } }), {
  getCanonicalLocales: (locales) => [locales ?? []].flat().map(canonical),
  supportedValuesOf: (key) => (key === "timeZone" ? ["UTC"] : []),
});
for (const Format of [Collator, DateTimeFormat, DisplayNames, ListFormat, NumberFormat, PluralRules, RelativeTimeFormat, Segmenter]) {
  Format.supportedLocalesOf = (locales) => [locales ?? []].flat().map(canonical).filter((name) => /^en\b/.test(name));
  // As elsewhere, the older ones may be called without `new`.
  const isOld = [Collator, DateTimeFormat, NumberFormat].includes(Format);
  const found = isOld ? new Proxy(Format, { apply: (Kind, _, args) => new Kind(...args) }) : Format;
  Object.defineProperty(Format.prototype, "constructor", { value: found, writable: true, configurable: true });
  Object.defineProperty(Intl, Format.name, { value: found, writable: true, configurable: true });
}

/** Puts the methods in place; `define` sets a property as the engine's own are. */
export function installLocales(define) {
  const standard = { collator: new Collator() };
  define(Number.prototype, "toLocaleString", function toLocaleString(locales, options) {
    return new NumberFormat(locales, options).format(Number(this));
  });
  define(BigInt.prototype, "toLocaleString", function toLocaleString(locales, options) {
    return new NumberFormat(locales, options).format(BigInt(this));
  });
  define(String.prototype, "localeCompare", function localeCompare(other, locales, options) {
    const collator = locales === undefined && options === undefined ? standard.collator : new Collator(locales, options);
    return collator.compare(String(this), String(other));
  });
  for (const [name, date, time] of [["toLocaleString", true, true], ["toLocaleDateString", true, false], ["toLocaleTimeString", false, true]]) {
    define(Date.prototype, name, {
      [name](locales, options) {
        if (Number.isNaN(this.getTime())) return "Invalid Date";
        return new DateTimeFormat(locales, options, { date, time }).format(this);
      },
    }[name]);
  }
}

// `Intl.Collator`: the order of words in English and languages near it.
//
// Letters are compared without accents and case first, then by accents, then lower before upper case; punctuation
// comes before digits, and those before letters.

import { chosen } from "./locales.js";

const MARKS = /\p{M}/gu;

export class Collator {
  #locale;
  #options;

  constructor(locales, options = {}) {
    this.#locale = chosen(locales);
    this.#options = { usage: "sort", sensitivity: "variant", ignorePunctuation: false, numeric: false, caseFirst: "false", ...options };
    Object.defineProperty(this, "compare", { value: (one, other) => this.#compare(String(one), String(other)) });
  }

  resolvedOptions() {
    return { locale: this.#locale, ...this.#options, collation: "default" };
  }

  #compare(one, other) {
    const { sensitivity, numeric, caseFirst, ignorePunctuation } = this.#options;
    const [left, right] = [one, other].map((text) => (ignorePunctuation ? text.replace(/[\p{P}\s]/gu, "") : text).normalize("NFD"));
    const plain = (text) => text.replace(MARKS, "").toLowerCase();
    const byBase = comparePlain(plain(left), plain(right), numeric);
    if (byBase !== 0 || sensitivity === "base") return byBase;
    if (sensitivity !== "case") {
      const byAccent = compareUnits(left.toLowerCase(), right.toLowerCase());
      if (byAccent !== 0 || sensitivity === "accent") return byAccent;
    }
    const byCase = compareCase(left, right);
    return caseFirst === "upper" ? -byCase || 0 : byCase;
  }
}

function comparePlain(left, right, numeric) {
  const [units, others] = [left, right].map((text) => (numeric ? text.match(/\d+|[^]/gu) : [...text]) ?? []);
  for (let at = 0; at < Math.min(units.length, others.length); at += 1) {
    const [unit, other] = [units[at], others[at]];
    if (numeric && /^\d/.test(unit) && /^\d/.test(other)) {
      const [number, next] = [BigInt(unit), BigInt(other)];
      if (number !== next) return number < next ? -1 : 1;
    } else if (unit !== other) {
      const order = kindOf(unit) - kindOf(other) || rankOf(unit) - rankOf(other) || compareUnits(unit, other);
      return Math.sign(order);
    }
  }
  return Math.sign(units.length - others.length);
}

/** Blanks, then punctuation, signs, digits and letters. */
function kindOf(unit) {
  if (/\s/.test(unit)) return 0;
  if (/\p{L}/u.test(unit)) return 4;
  if (/\d/.test(unit)) return 3;
  return /[_\-,;:!?.'"()[\]{}@*/\\&#%]/.test(unit) ? 1 : 2;
}

/** The place among the signs of ASCII. */
function rankOf(unit) {
  const at = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$".indexOf(unit);
  return at < 0 ? 100 : at;
}

function compareUnits(left, right) {
  return left < right ? -1 : left > right ? 1 : 0;
}

function compareCase(left, right) {
  for (let at = 0; at < Math.min(left.length, right.length); at += 1) {
    if (left[at] !== right[at]) return left[at] === left[at].toLowerCase() ? -1 : 1;
  }
  return 0;
}

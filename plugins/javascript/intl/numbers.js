// `Intl.NumberFormat`: plain numbers, percent, money, units and short forms.
//
// Rounding is half away from zero on the decimal digits of the number, as elsewhere.

import { chosen, marksOf, oneOf } from "./locales.js";

const SYMBOLS = { USD: "$", EUR: "€", GBP: "£", JPY: "¥", INR: "₹", CNY: "CN¥", KRW: "₩", BRL: "R$", CAD: "CA$", AUD: "A$", MXN: "MX$", NZD: "NZ$", ILS: "₪", VND: "₫", TWD: "NT$", HKD: "HK$" };
const NAMES = { USD: ["US dollar", "US dollars"], EUR: ["euro", "euros"], GBP: ["British pound", "British pounds"], JPY: ["Japanese yen", "Japanese yen"] };
const WITHOUT_CENTS = ["JPY", "KRW", "VND", "CLP", "ISK"];
const SHORT = [[1e12, "T", "trillion"], [1e9, "B", "billion"], [1e6, "M", "million"], [1e3, "K", "thousand"]];
const UNITS = {
  kilometer: ["km", "kilometer"], meter: ["m", "meter"], centimeter: ["cm", "centimeter"], mile: ["mi", "mile"],
  kilogram: ["kg", "kilogram"], gram: ["g", "gram"], liter: ["L", "liter"], second: ["sec", "second"],
  minute: ["min", "minute"], hour: ["hr", "hour"], day: ["day", "day"], byte: ["byte", "byte"], kilobyte: ["kB", "kilobyte"],
  megabyte: ["MB", "megabyte"], gigabyte: ["GB", "gigabyte"], percent: ["%", "percent"], celsius: ["°C", "degree Celsius"],
  "kilometer-per-hour": ["km/h", "kilometer per hour"], "mile-per-hour": ["mph", "mile per hour"],
};

export class NumberFormat {
  #options;
  #locale;

  constructor(locales, options = {}) {
    this.#locale = chosen(locales);
    const style = oneOf("style", options.style, ["decimal", "percent", "currency", "unit"]) ?? "decimal";
    if (style === "currency" && options.currency === undefined) throw new TypeError("Currency code is required with currency style.");
    if (style === "unit" && !Object.hasOwn(UNITS, options.unit)) throw new RangeError(`Invalid unit argument for Intl.NumberFormat() '${options.unit}'`);
    const currency = options.currency === undefined ? undefined : String(options.currency).toUpperCase();
    if (currency !== undefined && !/^[A-Z]{3}$/.test(currency)) throw new RangeError(`Invalid currency code : ${options.currency}`);
    oneOf("notation", options.notation, ["standard", "scientific", "engineering", "compact"]);
    this.#options = { ...options, style, currency, ...fractionDigits(options, style, currency) };
    Object.defineProperty(this, "format", { value: (value) => this.#format(value).map(({ value }) => value).join("") });
  }

  formatToParts(value) {
    return this.#format(value);
  }

  formatRange(start, end) {
    return `${this.format(start)}–${this.format(end)}`;
  }

  resolvedOptions() {
    const { style, currency, minimumFractionDigits, maximumFractionDigits, minimumIntegerDigits = 1 } = this.#options;
    const money = currency === undefined ? {} : { currency, currencyDisplay: this.#options.currencyDisplay ?? "symbol" };
    return { locale: this.#locale, numberingSystem: "latn", style, ...money, minimumIntegerDigits, minimumFractionDigits, maximumFractionDigits };
  }

  #format(value) {
    const options = this.#options;
    const number = typeof value === "bigint" ? value : Number(value);
    const isNegative = number < 0 || Object.is(number, -0);
    const { text, suffix } = this.#digits(number);
    const isZero = /^[0.]*$/.test(text);
    const parts = [...this.#grouped(text), ...suffix];
    const sign = signOf(options.signDisplay, isNegative, isZero);
    const signs = sign === "" ? [] : [{ type: sign === "-" ? "minusSign" : "plusSign", value: sign }];
    if (options.currencySign === "accounting" && sign === "-" && options.style === "currency") {
      return [{ type: "literal", value: "(" }, ...this.#styled(parts, text), { type: "literal", value: ")" }];
    }
    return [...signs, ...this.#styled(parts, text)];
  }

  /** The digits of the amount, and what a short form puts after them. */
  #digits(number) {
    const options = this.#options;
    if (Number.isNaN(number)) return { text: "NaN", suffix: [] };
    if (number === Infinity || number === -Infinity) return { text: "∞", suffix: [] };
    const amount = decimalOf(number);
    const scaled = options.style === "percent" ? shifted(amount, 2) : amount;
    if (options.notation === "compact") return this.#compact(scaled);
    if (options.notation === "scientific" || options.notation === "engineering") return this.#scientific(scaled);
    return { text: rounded(scaled, options), suffix: [] };
  }

  #compact(amount) {
    const asShort = (power) => {
      const digits = { ...this.#options };
      const part = shifted(amount, -power);
      if (!hasDigits(this.#options)) {
        const whole = part.split(".")[0].length;
        Object.assign(digits, whole >= 2 ? { minimumFractionDigits: 0, maximumFractionDigits: 0 } : { maximumSignificantDigits: 2, minimumSignificantDigits: 1 });
      }
      return rounded(part, digits);
    };
    for (const [at, [size, short, long]] of SHORT.entries()) {
      if (Number(amount) < size && !(Number(amount) >= size / 10 && Number(asShort(Math.log10(size / 1e3)).replace(/\D.*/, "")) >= 1e3)) continue;
      if (at > 0 && Number(asShort(Math.round(Math.log10(size)))) >= 1e3) continue;
      const isLong = this.#options.compactDisplay === "long";
      const suffix = [...(isLong ? [{ type: "literal", value: " " }] : []), { type: "compact", value: isLong ? long : short }];
      return { text: asShort(Math.round(Math.log10(size))), suffix };
    }
    return { text: asShort(0), suffix: [] };
  }

  #scientific(amount) {
    const exponent = Number(amount) === 0 ? 0 : Math.floor(Math.log10(Number(amount)));
    const power = this.#options.notation === "engineering" ? Math.floor(exponent / 3) * 3 : exponent;
    const suffix = [{ type: "exponentSeparator", value: "E" }, { type: "exponentInteger", value: String(power) }];
    return { text: rounded(shifted(amount, -power), this.#options), suffix };
  }

  #grouped(text) {
    if (!/^\d/.test(text)) return [{ type: text === "NaN" ? "nan" : "infinity", value: text }];
    const { decimal, group, groupsFrom } = marksOf(this.#locale);
    const [integer, fraction] = text.split(".");
    const digits = integer.padStart(this.#options.minimumIntegerDigits ?? 1, "0");
    const from = this.#options.useGrouping === "min2" || this.#options.notation === "compact" ? 5 : groupsFrom;
    const isGrouped = this.#options.useGrouping !== false && digits.length >= from;
    const groups = isGrouped ? digits.match(/\d{1,3}(?=(\d{3})*$)/g) : [digits];
    const parts = groups.flatMap((value) => [{ type: "group", value: group }, { type: "integer", value }]).slice(1);
    return fraction === undefined ? parts : [...parts, { type: "decimal", value: decimal }, { type: "fraction", value: fraction }];
  }

  #styled(parts, text) {
    const { style, currency, currencyDisplay = "symbol", unit, unitDisplay = "short" } = this.#options;
    const isEnglish = this.#locale.startsWith("en");
    const after = (type, value, space = "\u00a0") => [...parts, { type: "literal", value: space }, { type, value }];
    if (style === "percent") return isEnglish ? [...parts, { type: "percentSign", value: "%" }] : after("percentSign", "%");
    if (style === "currency") {
      if (currencyDisplay === "name") return after("currency", (NAMES[currency] ?? [currency, currency])[text === "1" ? 0 : 1], " ");
      const symbol = currencyDisplay === "code" ? currency : currencyDisplay === "narrowSymbol" ? (SYMBOLS[currency] ?? currency).replace(/^[A-Z]+(?=\W)/, "") : SYMBOLS[currency] ?? currency;
      if (!isEnglish) return after("currency", symbol);
      const space = /[A-Z]$/.test(symbol) ? [{ type: "literal", value: "\u00a0" }] : [];
      return [{ type: "currency", value: symbol }, ...space, ...parts];
    }
    if (style !== "unit") return parts;
    const [short, long] = UNITS[unit];
    const isOne = Number(text) === 1;
    if (unitDisplay === "long") return after("unit", isOne ? long : long.replace(/^\w+/, (word) => (word === "percent" ? word : `${word}s`)), " ");
    if (unitDisplay === "narrow") return [...parts, { type: "unit", value: short.replace("sec", "s").replace("min", "m").replace("hr", "h").replace("day", "d").replace("byte", "B").replace("°C", "°C") }];
    if (/^[%°]/.test(short)) return [...parts, { type: "unit", value: short }];
    return after("unit", isOne || !/^(day|byte)$/.test(short) ? short : unit === "byte" ? short : `${short}s`, " ");
  }
}

function fractionDigits(options, style, currency) {
  const isMoney = style === "currency";
  const cents = WITHOUT_CENTS.includes(currency) ? 0 : 2;
  const { minimumFractionDigits: given, maximumFractionDigits: most } = options;
  for (const [name, digits] of [["minimumFractionDigits", given], ["maximumFractionDigits", most]]) {
    if (digits !== undefined && !(digits >= 0 && digits <= 100)) throw new RangeError(`${name} value is out of range.`);
  }
  const least = given ?? Math.min(isMoney ? cents : 0, most ?? Infinity);
  const maximumFractionDigits = most ?? Math.max(least, isMoney ? cents : style === "percent" ? 0 : 3);
  if (least > maximumFractionDigits) throw new RangeError("maximumFractionDigits value is out of range.");
  return { minimumFractionDigits: Math.trunc(least), maximumFractionDigits: Math.trunc(maximumFractionDigits) };
}

function hasDigits({ notation, ...options }) {
  return notation === "compact" && (options.maximumSignificantDigits !== undefined || options.minimumFractionDigits > 0 || ![0, 3].includes(options.maximumFractionDigits));
}

function signOf(display = "auto", isNegative, isZero) {
  if (display === "never") return "";
  if (isNegative && !(isZero && ["exceptZero", "negative"].includes(display))) return "-";
  return display === "always" || (display === "exceptZero" && !isZero) ? "+" : "";
}

/** The digits of the amount without a sign and without an exponent. */
function decimalOf(number) {
  const text = String(number).replace("-", "");
  const [mantissa, exponent] = text.split("e");
  return exponent === undefined ? text : shifted(mantissa, Number(exponent));
}

/** `text` times ten to the power of `by`. */
function shifted(text, by) {
  const [integer, fraction = ""] = text.split(".");
  const point = integer.length + by;
  const digits = (integer + fraction).padStart(integer.length + fraction.length + Math.max(-point + 1, 0), "0");
  const at = point + Math.max(-point + 1, 0);
  const padded = digits.padEnd(at, "0");
  const rest = padded.slice(at).replace(/0+$/, "");
  const whole = padded.slice(0, at).replace(/^0+(?=\d)/, "");
  return rest === "" ? whole : `${whole}.${rest}`;
}

function rounded(text, options) {
  const { minimumSignificantDigits: least, maximumSignificantDigits: most } = options;
  if (least !== undefined || most !== undefined) return toSignificant(text, least ?? 1, most ?? 21);
  return toFraction(text, options.minimumFractionDigits, options.maximumFractionDigits, options.roundingMode);
}

function toFraction(text, least, most, mode = "halfExpand") {
  const [integer, fraction = ""] = text.split(".");
  const kept = fraction.slice(0, most);
  const rest = fraction.slice(most);
  const isUp = { ceil: /[1-9]/.test(rest), floor: false, trunc: false, expand: /[1-9]/.test(rest) }[mode] ?? rest[0] >= "5";
  let digits = integer + kept.padEnd(Math.min(fraction.length, most), "0");
  if (isUp) digits = String(BigInt(digits) + 1n).padStart(digits.length, "0");
  const at = digits.length - kept.length;
  const shown = digits.slice(at).replace(/0+$/, "").padEnd(least, "0");
  return shown === "" ? digits.slice(0, at) : `${digits.slice(0, at)}.${shown}`;
}

function toSignificant(text, least, most) {
  const lead = /^0\.(0*)[1-9]/.exec(text);
  const integer = text.split(".")[0];
  const before = lead ? -lead[1].length : integer === "0" ? 1 : integer.length;
  const cut = most - before;
  const short = cut >= 0 ? toFraction(text, 0, cut) : shifted(toFraction(shifted(text, cut), 0, 0), -cut);
  const wanted = least - short.replace(/^0?\.?0*|\./g, "").length;
  if (wanted <= 0) return short;
  return (short.includes(".") ? short : `${short}.`) + "0".repeat(wanted);
}

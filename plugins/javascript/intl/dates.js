// `Intl.DateTimeFormat` in English, as Americans and Britons write dates.
//
// Zones are UTC and fixed distances from it: there is no table of zones here, and a name of one is a RangeError.

import { canonical, oneOf } from "./locales.js";

const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const DATE_PARTS = ["weekday", "era", "year", "month", "day"];
const TIME_PARTS = ["hour", "minute", "second", "fractionalSecondDigits", "dayPeriod"];
const DATE_STYLES = {
  full: { weekday: "long", year: "numeric", month: "long", day: "numeric" },
  long: { year: "numeric", month: "long", day: "numeric" },
  medium: { year: "numeric", month: "short", day: "numeric" },
  short: { year: "2-digit", month: "numeric", day: "numeric" },
};
const TIME_STYLES = {
  full: { hour: "numeric", minute: "2-digit", second: "2-digit", timeZoneName: "long" },
  long: { hour: "numeric", minute: "2-digit", second: "2-digit", timeZoneName: "short" },
  medium: { hour: "numeric", minute: "2-digit", second: "2-digit" },
  short: { hour: "numeric", minute: "2-digit" },
};

export class DateTimeFormat {
  #fields;
  #isBritish;
  #is12;
  #zone;
  #offset;
  #joinsLong;

  constructor(locales, options = {}, wanted = { date: true, time: false, isFormat: true }) {
    const name = [locales ?? "en-US"].flat().map(canonical)[0] ?? "en-US";
    this.#isBritish = /^en-(GB|AU|NZ|IE|IN|ZA)/.test(name);
    oneOf("month", options.month, ["numeric", "2-digit", "long", "short", "narrow"]);
    this.#zone = options.timeZone ?? "UTC";
    this.#offset = offsetOf(this.#zone);
    this.#joinsLong = ["full", "long"].includes(oneOf("dateStyle", options.dateStyle, Object.keys(DATE_STYLES)));
    this.#fields = fieldsOf(options, wanted);
    const cycle = options.hourCycle === undefined ? undefined : options.hourCycle === "h12" || options.hourCycle === "h11";
    this.#is12 = options.hour12 ?? cycle ?? !this.#isBritish;
    Object.defineProperty(this, "format", { value: (date) => this.formatToParts(date).map(({ value }) => value).join("") });
  }

  formatToParts(date = new Date()) {
    const time = Number(date);
    if (Number.isNaN(time)) throw new RangeError("Invalid time value");
    const at = new Date(time + this.#offset * 60_000);
    const days = this.#date(at);
    const times = this.#time(at);
    if (days.length === 0 || times.length === 0) return [...days, ...times];
    return [...days, { type: "literal", value: this.#joinsLong ? " at " : ", " }, ...times];
  }

  formatRange(start, end) {
    return `${this.format(start)} – ${this.format(end)}`;
  }

  resolvedOptions() {
    const locale = this.#isBritish ? "en-GB" : "en-US";
    return { locale, calendar: "gregory", numberingSystem: "latn", timeZone: this.#zone, ...this.#fields };
  }

  #date(at) {
    const { weekday, year, month, day, era } = this.#fields;
    const two = (number, form) => (form === "2-digit" ? String(number % 100).padStart(2, "0") : String(number));
    const parts = {
      weekday: weekday && { type: "weekday", value: cut(DAYS[at.getUTCDay()], weekday) },
      year: year && { type: "year", value: two(at.getUTCFullYear(), year) },
      day: day && { type: "day", value: two(at.getUTCDate(), day) },
    };
    const isWord = month !== undefined && !["numeric", "2-digit"].includes(month);
    const isNumeric = month !== undefined && !isWord;
    if (month) parts.month = { type: "month", value: isWord ? cut(MONTHS[at.getUTCMonth()], month) : two(at.getUTCMonth() + 1, month) };
    if (this.#isBritish && isNumeric && day) {
      if (day === "numeric") parts.day.value = parts.day.value.padStart(2, "0");
      if (month === "numeric") parts.month.value = parts.month.value.padStart(2, "0");
    }
    const order = this.#isBritish ? ["day", "month", "year"] : ["month", "day", "year"];
    const known = order.map((name) => parts[name]).filter(Boolean);
    const literal = (value) => ({ type: "literal", value });
    const joined = known.flatMap((part, index) => {
      if (index === 0) return [part];
      if (isNumeric) return [literal("/"), part];
      const isAfterDay = part.type === "year" && known[index - 1].type === "day";
      return [literal(isAfterDay ? ", " : " "), part];
    });
    const eras = era ? [literal(" "), { type: "era", value: "AD" }] : [];
    if (!parts.weekday) return [...joined, ...eras];
    if (known.length === 0) return [parts.weekday];
    const isAlone = known.length === 1 && known[0].type === "day";
    if (isAlone) return [known[0], literal(" "), parts.weekday];
    return [parts.weekday, literal(this.#isBritish && isWord && !/short/.test(weekday) ? " " : ", "), ...joined, ...eras];
  }

  #time(at) {
    const { hour, minute, second, fractionalSecondDigits, timeZoneName } = this.#fields;
    const literal = (value) => ({ type: "literal", value });
    const parts = [];
    const add = (type, number, isPadded) => {
      if (parts.length > 0) parts.push(literal(":"));
      parts.push({ type, value: String(number).padStart(isPadded ? 2 : 1, "0") });
    };
    const hours = at.getUTCHours();
    if (hour) add("hour", this.#is12 ? hours % 12 || 12 : hours, hour === "2-digit" || !this.#is12);
    if (minute) add("minute", at.getUTCMinutes(), Boolean(hour || second));
    if (second) add("second", at.getUTCSeconds(), Boolean(minute));
    if (fractionalSecondDigits) {
      if (second) parts.push(literal("."));
      const text = String(at.getUTCMilliseconds()).padStart(3, "0");
      parts.push({ type: "fractionalSecond", value: text.slice(0, fractionalSecondDigits) });
    }
    if (hour && this.#is12) parts.push(literal(" "), { type: "dayPeriod", value: this.#period(hours) });
    if (timeZoneName) parts.push(...(parts.length > 0 ? [literal(" ")] : []), { type: "timeZoneName", value: this.#zoneName(timeZoneName) });
    return parts;
  }

  #period(hours) {
    const text = hours < 12 ? "AM" : "PM";
    return this.#isBritish ? text.toLowerCase() : text;
  }

  #zoneName(form) {
    if (this.#offset === 0) return form === "long" ? "Coordinated Universal Time" : "UTC";
    const size = Math.abs(this.#offset);
    const minutes = size % 60 === 0 ? "" : `:${String(size % 60).padStart(2, "0")}`;
    return `GMT${this.#offset < 0 ? "-" : "+"}${Math.floor(size / 60)}${minutes}`;
  }
}

function fieldsOf(options, { date, time, isFormat }) {
  const { dateStyle, timeStyle } = options;
  if (dateStyle !== undefined || timeStyle !== undefined) {
    const clash = [...DATE_PARTS, ...TIME_PARTS].find((name) => options[name] !== undefined);
    if (clash) throw new TypeError(`Can't set option ${clash} when ${dateStyle ? "dateStyle" : "timeStyle"} is used`);
    oneOf("timeStyle", timeStyle, Object.keys(TIME_STYLES));
    return { ...DATE_STYLES[dateStyle], ...TIME_STYLES[timeStyle] };
  }
  const given = Object.fromEntries([...DATE_PARTS, ...TIME_PARTS, "timeZoneName"].filter((name) => options[name] !== undefined).map((name) => [name, options[name]]));
  const hasDate = ["weekday", "year", "month", "day"].some((name) => given[name]);
  const hasTime = TIME_PARTS.some((name) => given[name]);
  // What is asked for beside the default kind stands alone for `Intl`, and with the default for `toLocaleDateString`.
  const needsDate = date && !hasDate && !(time && hasTime) && !(hasTime && isFormat);
  const needsTime = time && !hasTime && !(date && hasDate);
  if (needsDate) Object.assign(given, { year: "numeric", month: "numeric", day: "numeric" });
  if (needsTime) Object.assign(given, { hour: "numeric", minute: "2-digit", second: "2-digit" });
  return given;
}

/** Minutes east of UTC. */
function offsetOf(zone) {
  if (/^(UTC|GMT|Etc\/(UTC|GMT)|Z)$/i.test(zone)) return 0;
  const [, sign, hours, minutes = "0"] = /^([+-])(\d{2}):?(\d{2})?$/.exec(zone) ?? [];
  if (sign === undefined) throw new RangeError(`Invalid time zone specified: ${zone}; there are UTC and distances such as +02:00`);
  return (sign === "-" ? -1 : 1) * (Number(hours) * 60 + Number(minutes));
}

function cut(word, form) {
  return form === "long" ? word : form === "short" ? word.slice(0, 3) : word[0];
}

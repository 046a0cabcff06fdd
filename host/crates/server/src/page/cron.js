// Cron expressions in words, and their next fires in a time zone. Pure.
//
// The server decides what an expression means; this is a preview before it is sent. It reads five fields, six with
// seconds in front, names of months and weekdays, and `@hourly` and the like; whatever else the server may take is told
// as an expression that the page does not read. A day of the month and a weekday that are both given are alternatives.
// Where a clock goes forward a fixed time that does not exist fires at the first moment after the gap, and where it goes
// back it fires once. Of two hours with the same name the second is left out, in which the server fires `*` and steps
// again.

const MACROS = {
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
  "@monthly": "0 0 1 * *",
  "@weekly": "0 0 * * 0",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@hourly": "0 * * * *",
};

const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October"];
MONTHS.push("November", "December");
const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/** The fields: name, lowest and highest value, and the names of values. */
const FIELDS = [
  ["second", 0, 59, null],
  ["minute", 0, 59, null],
  ["hour", 0, 23, null],
  ["day", 1, 31, null],
  ["month", 1, 12, ["", ...MONTHS]],
  ["weekday", 0, 7, [...DAYS, "Sunday"]],
];

/** Days that are looked through for a next fire: more than four years, for 29 February. */
const DAYS_MAX = 366 * 9;

/** The page does not read it; the server may. */
export class CronError extends Error {}

/** `{second, minute, hour, day, month, weekday}`, each `{values, isAll, step}`. */
export function readCron(text) {
  const written = String(text).trim();
  const parts = (MACROS[written.toLowerCase()] ?? written).split(/\s+/);
  if (parts.length === 5) parts.unshift("0");
  if (parts.length !== 6) throw new CronError("Write five fields: minute, hour, day, month and weekday.");
  const read = {};
  FIELDS.forEach((field, index) => (read[field[0]] = readField(parts[index], field)));
  read.weekday.values = sorted(read.weekday.values.map((day) => day % 7));
  return read;
}

function readField(text, field) {
  const isAll = text === "*" || text === "?";
  const values = text.split(",").flatMap((part) => readRange(part, field));
  const step = /^\*\/(\d+)$/.exec(text);
  return { values: sorted(values), isAll, step: step ? Number(step[1]) : null };
}

function readRange(text, field) {
  const [name, low, high] = field;
  const wrong = () => new CronError(`The page does not read \`${text}\` as a ${name}.`);
  const found = /^(\*|\?|[a-z0-9]+)(?:-([a-z0-9]+))?(?:\/(\d+))?$/i.exec(text);
  if (!found) throw wrong();
  const [, first, last, by] = found;
  const isStar = first === "*" || first === "?";
  if (isStar && last !== undefined) throw wrong();
  const from = isStar ? low : valueOf(first, field, wrong);
  // `5/15` is from 5 to the end.
  let to = isStar || (by !== undefined && last === undefined) ? high : from;
  if (last !== undefined) to = valueOf(last, field, wrong);
  if (isStar && name === "weekday") to = 6;
  const step = by === undefined ? 1 : Number(by);
  if (step < 1 || to < from) throw wrong();
  const values = [];
  for (let value = from; value <= to; value += step) values.push(value);
  return values;
}

function valueOf(text, [, low, high, names], wrong) {
  const named = names?.findIndex((name) => name && name.slice(0, 3).toLowerCase() === text.toLowerCase()) ?? -1;
  const value = named >= 0 ? named : Number(text);
  if (!/^\d+$/.test(text) && named < 0) throw wrong();
  if (value < low || value > high) throw wrong();
  return value;
}

const sorted = (values) => [...new Set(values)].sort((a, b) => a - b);

/** An expression in words, in its own zone: `at 02:30, Monday to Friday, Europe/Berlin time`. */
export function cronWords(text, zone = "UTC") {
  const cron = readCron(text);
  const parts = [secondWords(cron), timeWords(cron), dayWords(cron), monthWords(cron)].filter(Boolean);
  return `${parts.join(", ")}, ${zone === "UTC" ? "UTC" : `${zone} time`}`;
}

function secondWords({ second }) {
  if (second.isAll) return "every second";
  if (second.step !== null) return `every ${second.step} seconds`;
  return second.values.length === 1 && second.values[0] === 0 ? "" : `at second ${listed(second.values)}`;
}

/** Most times of a day that are told one by one. */
const TIMES_MAX = 6;

function timeWords({ minute, hour }) {
  if (minute.isAll) return `every minute${hourWords(hour)}`;
  if (minute.step !== null) return `every ${minute.step} minutes${hourWords(hour)}`;
  const at = minute.values.length === 1 ? minute.values[0] : null;
  const onTheHour = at === 0 ? ", on the hour" : `, at minute ${listed(minute.values)}`;
  if (hour.isAll) return `every hour${onTheHour}`;
  if (hour.step !== null) return `every ${hour.step} hours${onTheHour}`;
  if (minute.values.length * hour.values.length > TIMES_MAX)
    return `at minute ${listed(minute.values)}${hourWords(hour)}`;
  return `at ${listed(hour.values.flatMap((own) => minute.values.map((one) => `${two(own)}:${two(one)}`)))}`;
}

function hourWords(hour) {
  if (hour.isAll) return "";
  const { values } = hour;
  if (isRun(values) && values.length > 1) return ` from ${two(values[0])}:00 to ${two(values.at(-1))}:59`;
  return ` of the ${values.length === 1 ? "hour" : "hours"} ${listed(values)}`;
}

function dayWords({ minute, hour, day, weekday }) {
  const own = [];
  if (!day.isAll)
    own.push(day.step === null ? `on day ${listed(day.values)} of the month` : `every ${day.step} days of the month`);
  if (!weekday.isAll) own.push(weekdayWords(weekday.values));
  if (own.length > 0) return own.join(" or ");
  const isOften = minute.isAll || minute.step !== null || hour.isAll || hour.step !== null;
  return isOften ? "" : "every day";
}

function weekdayWords(values) {
  if (values.length > 2 && isRun(values)) return `${DAYS[values[0]]} to ${DAYS[values.at(-1)]}`;
  return `on ${listed(values.map((value) => DAYS[value]))}`;
}

function monthWords({ month }) {
  if (month.isAll) return "";
  if (month.values.length > 2 && isRun(month.values))
    return `from ${MONTHS[month.values[0] - 1]} to ${MONTHS[month.values.at(-1) - 1]}`;
  return `in ${listed(month.values.map((value) => MONTHS[value - 1]))}`;
}

const isRun = (values) => values.every((value, index) => index === 0 || value === values[index - 1] + 1);
const two = (number) => String(number).padStart(2, "0");
const listed = (values) =>
  values.length < 2 ? String(values[0] ?? "") : `${values.slice(0, -1).join(", ")} and ${values.at(-1)}`;

/** The next fires after a moment, at most `most` of them, in milliseconds. Throws where the zone is unknown. */
export function nextFires(text, zone, afterMs, most = 5) {
  const cron = readCron(text);
  const clock = zoneClock(zone);
  const fires = new Set();
  const today = clock.wall(afterMs);
  for (let ahead = 0; ahead <= DAYS_MAX && fires.size < most; ahead += 1) {
    const date = new Date(Date.UTC(today.year, today.month - 1, today.day + ahead));
    if (!isDay(cron, date)) continue;
    // A day may hold 86 400 fires: no more of them are made than are wanted.
    for (const at of firesOf(cron, date, clock)) {
      if (at > afterMs) fires.add(at);
      if (fires.size >= most) break;
    }
  }
  return [...fires].sort((a, b) => a - b).slice(0, most);
}

function isDay({ day, month, weekday }, date) {
  if (!month.values.includes(date.getUTCMonth() + 1)) return false;
  const isOfMonth = day.values.includes(date.getUTCDate());
  const isOfWeek = weekday.values.includes(date.getUTCDay());
  if (!day.isAll && !weekday.isAll) return isOfMonth || isOfWeek;
  return isOfMonth && isOfWeek;
}

function* firesOf({ second, minute, hour }, date, clock) {
  for (const h of hour.values)
    for (const m of minute.values)
      for (const s of second.values) yield clock.moment(date.getTime() + ((h * 60 + m) * 60 + s) * 1000);
}

/** The clock of a zone: what it shows at a moment, and the moment at which it shows something. */
function zoneClock(zone) {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone: zone,
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  });
  const wall = (ms) =>
    Object.fromEntries(format.formatToParts(new Date(ms)).map((part) => [part.type, Number(part.value)]));
  const shown = (ms) => {
    const { year, month, day, hour, minute, second } = wall(ms);
    return Date.UTC(year, month - 1, day, hour, minute, second);
  };
  const moment = (wallMs) => {
    const offsets = [shown(wallMs - DAY_MS) - (wallMs - DAY_MS), shown(wallMs + DAY_MS) - (wallMs + DAY_MS)];
    const [early, late] = offsets.map((offset) => wallMs - offset);
    // Where the clock goes back both show the time, and the first counts.
    if (shown(early) === wallMs) return early;
    return shown(late) === wallMs ? late : gapEnd(late, early, shown);
  };
  return { wall, moment };
}

const DAY_MS = 86_400_000;

/** The first moment after a gap that lies between these two, to the second. */
function gapEnd(low, high, shown) {
  const offset = shown(low) - low;
  let [from, to] = [low, high];
  while (to - from > 1000) {
    const middle = Math.floor((from + to) / 2000) * 1000;
    if (shown(middle) - middle === offset) from = middle;
    else to = middle;
  }
  return to;
}

/** A moment as a zone's clock shows it: `Sun 29 March 2026 03:00`. */
export function inZone(ms, zone) {
  const { year, month, day, hour, minute, second } = zoneClock(zone).wall(ms);
  const weekday = DAYS[new Date(Date.UTC(year, month - 1, day)).getUTCDay()].slice(0, 3);
  const seconds = second === 0 ? "" : `:${two(second)}`;
  return `${weekday} ${day} ${MONTHS[month - 1]} ${year} ${two(hour)}:${two(minute)}${seconds}`;
}

// Cron expressions in words and their next fires, in zones whose clocks jump.

import assert from "node:assert/strict";
import test from "node:test";

const { cronWords, nextFires, inZone, readCron, CronError } = await import(
  new URL("cron.js", process.env.PAGE_MODULES)
);

for (const [cron, words] of [
  ["* * * * *", "every minute, UTC"],
  ["*/5 * * * *", "every 5 minutes, UTC"],
  ["0 * * * *", "every hour, on the hour, UTC"],
  ["@hourly", "every hour, on the hour, UTC"],
  ["15 * * * *", "every hour, at minute 15, UTC"],
  ["0 */2 * * *", "every 2 hours, on the hour, UTC"],
  ["30 2 * * mon-fri", "at 02:30, Monday to Friday, UTC"],
  ["0 9,17 * * *", "at 09:00 and 17:00, every day, UTC"],
  ["@daily", "at 00:00, every day, UTC"],
  ["0 0 * * 7", "at 00:00, on Sunday, UTC"],
  ["0 0 * * sat,sun", "at 00:00, on Sunday and Saturday, UTC"],
  ["0 9 1 * *", "at 09:00, on day 1 of the month, UTC"],
  ["0 9 1,15 * *", "at 09:00, on day 1 and 15 of the month, UTC"],
  ["0 0 13 * fri", "at 00:00, on day 13 of the month or on Friday, UTC"],
  ["@yearly", "at 00:00, on day 1 of the month, in January, UTC"],
  ["0 6 * jun-aug *", "at 06:00, every day, from June to August, UTC"],
  ["*/10 9-17 * * mon-fri", "every 10 minutes from 09:00 to 17:59, Monday to Friday, UTC"],
  ["0,30 8-16 * * *", "at minute 0 and 30 from 08:00 to 16:59, every day, UTC"],
  ["*/15 * * * * *", "every 15 seconds, every minute, UTC"],
  ["30 0 12 * * *", "at second 30, at 12:00, every day, UTC"],
]) {
  test(`${cron} is ${words}`, () => assert.equal(cronWords(cron), words));
}

test("an expression is told in its own zone", () => {
  assert.equal(cronWords("30 2 * * *", "Europe/Berlin"), "at 02:30, every day, Europe/Berlin time");
});

test("what the page does not read is said, with the field", () => {
  for (const [cron, field] of [
    ["61 * * * *", "minute"],
    ["* 24 * * *", "hour"],
    ["0 0 32 * *", "day"],
    ["0 0 * 13 *", "month"],
    ["0 0 * * 8", "weekday"],
    ["0 0 L * *", "day"],
    ["0 0 * * mon#2", "weekday"],
    ["5-1 * * * *", "minute"],
    ["*/0 * * * *", "minute"],
    ["a * * * *", "minute"],
    ["* * * *", "fields"],
    ["* * * * * * *", "fields"],
    ["", "fields"],
    ["@sometimes", "fields"],
  ])
    assert.throws(
      () => readCron(cron),
      (error) => error instanceof CronError && error.message.includes(field),
      cron,
    );
});

const at = (text) => Date.parse(text);
const fires = (cron, zone, after, most = 3) =>
  nextFires(cron, zone, at(after), most).map((ms) => new Date(ms).toISOString().replace(".000Z", "Z"));

test("fires are those of the zone's clock", () => {
  assert.deepEqual(fires("30 2 * * mon-fri", "Europe/Berlin", "2026-11-27T12:00:00Z"), [
    "2026-11-30T01:30:00Z",
    "2026-12-01T01:30:00Z",
    "2026-12-02T01:30:00Z",
  ]);
  assert.deepEqual(fires("0 0 1 * *", "Asia/Kolkata", "2026-01-15T00:00:00Z", 2), [
    "2026-01-31T18:30:00Z",
    "2026-02-28T18:30:00Z",
  ]);
});

test("a fire at the very moment is over, one a second later comes", () => {
  assert.deepEqual(fires("0 12 * * *", "UTC", "2026-01-01T12:00:00Z", 1), ["2026-01-02T12:00:00Z"]);
  assert.deepEqual(fires("0 12 * * *", "UTC", "2026-01-01T11:59:59Z", 1), ["2026-01-01T12:00:00Z"]);
});

test("a time that does not exist fires at the first moment after the gap", () => {
  assert.deepEqual(fires("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 2), [
    "2026-03-29T01:00:00Z",
    "2026-03-30T00:30:00Z",
  ]);
  assert.equal(inZone(at("2026-03-29T01:00:00Z"), "Europe/Berlin"), "Sun 29 March 2026 03:00");
});

test("a time that comes twice fires once", () => {
  assert.deepEqual(fires("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2), [
    "2026-10-25T00:30:00Z",
    "2026-10-26T01:30:00Z",
  ]);
});

test("a day of the month and a weekday are alternatives, and a leap day is found", () => {
  assert.deepEqual(fires("0 0 13 * fri", "UTC", "2026-11-08T00:00:00Z", 3), [
    "2026-11-13T00:00:00Z",
    "2026-11-20T00:00:00Z",
    "2026-11-27T00:00:00Z",
  ]);
  assert.deepEqual(fires("0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", 1), ["2028-02-29T00:00:00Z"]);
  assert.deepEqual(fires("0 0 30 2 *", "UTC", "2026-01-01T00:00:00Z", 1), []);
});

test("an expression that fires each second costs no more than is asked for", () => {
  assert.equal(fires("* * * * * *", "America/New_York", "2026-06-01T00:00:00Z", 5).length, 5);
});

test("a zone that nobody knows is an error", () => {
  assert.throws(() => nextFires("* * * * *", "Europe/Atlantis", 0), RangeError);
});

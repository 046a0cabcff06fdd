// Numbers, times and texts as people read them, on both sides of each edge.

import assert from "node:assert/strict";
import test from "node:test";

const format = await import(new URL("format.js", process.env.PAGE_MODULES));

/** `[input, expected]` through one function. */
function check(name, cases) {
  test(`${name} says what a person would`, () => {
    for (const [input, expected] of cases) {
      const all = Array.isArray(input) ? input : [input];
      assert.equal(format[name](...all), expected, JSON.stringify(input));
    }
  });
}

const MIN = 60_000;
const HOUR = 60 * MIN;

check("duration", [
  [0, "0 ms"],
  [999, "999 ms"],
  [1000, "1.0 s"],
  [59_949, "59.9 s"],
  [59_960, "1 min"],
  [185_000, "3 min 05 s"],
  [15 * MIN, "15 min"],
  [HOUR, "1 h"],
  [HOUR + 10 * MIN, "1 h 10 min"],
  [24 * HOUR, "1 d"],
  [76 * HOUR, "3 d 04 h"],
  [-1, "–"],
  [null, "–"],
  [Number.NaN, "–"],
]);
check("ago", [
  [[1_000, 3_000], "now"],
  [[0, 5_000], "5 s ago"],
  [[0, MIN], "1 min ago"],
  [[0, HOUR], "1 h ago"],
  [[0, 47 * HOUR], "47 h ago"],
  [[0, 48 * HOUR], "2 days ago"],
  [[HOUR, 0], "in 1 h"],
  [[undefined, 0], "–"],
]);
check("bytes", [
  [0, "0 B"],
  [1023, "1023 B"],
  [1024, "1.0 KiB"],
  [5_242_880, "5.0 MiB"],
  [300 * 2 ** 30, "300 GiB"],
  [2 ** 50, "1024 TiB"],
  [null, "–"],
]);
check("count", [
  [0, "0"],
  [999, "999"],
  [1000, "1\u202f000"],
  [12_345_678, "12\u202f345\u202f678"],
  ["7", "–"],
]);
check("short", [
  [999, "999"],
  [1000, "1.0k"],
  [12_400, "12.4k"],
  [999_999, "1000k"],
  [3_100_000, "3.1M"],
  [8.1e9, "8.1G"],
]);
check("money", [
  [0, "$0.00"],
  [81, "$0.0001"],
  [9_999, "$0.0100"],
  [10_000, "$0.01"],
  [1_834_000, "$1.83"],
  [0.5, "$0.0000"],
  [undefined, "–"],
]);
check("cost", [
  [{ cost_microdollars: 1_834_000, cost_microdollars_min: 1_834_000 }, "$1.83"],
  [{ cost_microdollars: 0 }, "$0.00"],
  [{ cost_microdollars: null, cost_microdollars_min: 0 }, "unknown"],
  [{ cost_microdollars: null }, "unknown"],
  [{ cost_microdollars: null, cost_microdollars_min: 1_834_000 }, "at least $1.83"],
  [undefined, "–"],
]);
check("costNote", [
  [{ cost_microdollars: 0 }, ""],
  [{}, ""],
  [{ cost_microdollars: null }, "cost unknown"],
  [{ cost_microdollars: 1_834_000 }, "$1.83"],
]);
check("percent", [
  [[1, 3], 33],
  [[0, 0], 0],
  [[5, 5], 100],
]);
check("plural", [
  [[1, "run"], "1 run"],
  [[2, "run"], "2 runs"],
  [[0, "entry", "entries"], "0 entries"],
]);
check("words", [
  ["not_started", "not started"],
  ["read-only", "read only"],
  [null, ""],
]);
check("asText", [
  ['{"answer":"It is **8080**."}', "It is **8080**."],
  ['{"answer":{"port":8080,"free":true}}', "port: 8080\nfree: true"],
  ['["a",{"b":1}]', "- a\n- b: 1"],
  ['{"a":"one\\ntwo","b":[],"c":null}', "a:\n  one\n  two\nb: \nc: –"],
  ['"text"', "text"],
  ["{broken", "{broken"],
  ["plain {words}", "plain {words}"],
  [{ fact: "kept", times: 3 }, "fact: kept\ntimes: 3"],
  [7, "7"],
  [null, ""],
]);
check("lastLine", [
  ["Traceback:\n  at 1\nValueError: no such file\n\n", "ValueError: no such file"],
  ["one line", "one line"],
  ["Traceback (most recent call last): File x, line 2 ValueError: a: b", "ValueError: a: b"],
  [
    "the check fails: Traceback (most recent call last): assert 1 == 2",
    "the check fails: Traceback (most recent call last): assert 1 == 2",
  ],
  ["\n \n", ""],
  [null, ""],
]);
check("reason", [
  ["judged to pass", "all checks passed"],
  ["judged to pass; nothing had changed", "all checks passed; nothing had changed"],
  ["it was judged to pass", "it was judged to pass"],
  [null, ""],
]);
check("cut", [
  [["abc", 3], "abc"],
  [["abcd", 3], "abc…"],
  [["🙂🙂🙂", 2], "🙂🙂…"],
  [[null, 3], ""],
]);
check("oneLine", [[["a\n  b\tc", 10], "a b c"]]);
check("pretty", [
  ['{"a":1}', '{\n  "a": 1\n}'],
  ['"text"', "text"],
  ["{broken", "{broken"],
  ["plain", "plain"],
  [[{ a: [] }], '{\n  "a": []\n}'],
]);
check("visible", [
  ["a\u202eb", "a\\u{202e}b"],
  ["tab\tline\n", "tab\tline\n"],
  ["\u0000\u001b[31m", "\\u{0}\\u{1b}[31m"],
  ["زبان", "زبان"],
]);

test("a moment is said in the zone of the reader, and exactly for machines", () => {
  assert.match(format.moment(0), /^19(69|70)-\d\d-\d\d \d\d:\d\d$/);
  assert.match(format.clock(0), /^\d\d:\d\d:\d\d$/);
  assert.equal(format.exact(0), "1970-01-01T00:00:00.000Z");
  assert.equal(format.exact(null), "");
});

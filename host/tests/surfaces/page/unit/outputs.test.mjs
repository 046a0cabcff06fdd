// Typed results of code: a picture is one by its bytes, tables and trees are bounded, and an image is the only place for
// what could hold a script.

import assert from "node:assert/strict";
import test from "node:test";

import { install } from "./document.mjs";

install();
const folder = process.env.PAGE_MODULES;
const { ENTRIES_SHOWN, PIXELS_MAX, ROWS_SHOWN, SVG_CHARS_MAX, entriesOf, pngOf, summaryOf, svgOf, tableOf } =
  await import(new URL("outputs.js", folder));
const { h, isPicture } = await import(new URL("dom.js", folder));
const { outputList } = await import(new URL("part_outputs.js", folder));
const { ending, jobReport, variables } = await import(new URL("part_job.js", folder));

/** The beginning of a PNG of that size. */
function png(width, height, signature = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]) {
  const four = (number) => [24, 16, 8, 0].map((by) => (number >>> by) & 255);
  const head = [...signature, ...four(13), 73, 72, 68, 82, ...four(width), ...four(height), 8, 6, 0, 0, 0];
  return Buffer.from(head).toString("base64");
}

test("a PNG is one by its bytes and not by its name", () => {
  const shown = pngOf(png(640, 480));
  assert.deepEqual([shown.width, shown.height], [640, 480]);
  assert.ok(isPicture(shown.address));
  assert.match(pngOf(png(1, 1, [0x47, 0x49, 0x46, 0x38, 0x39, 0x61, 0, 0])).fault, /no PNG/);
  assert.match(pngOf("iVBORw0KGgo=").fault, /no PNG/, "it ends before its size");
  assert.match(pngOf('iVBORw0KGgo" onload="x').fault, /no base64/);
  assert.match(pngOf("").fault, /no base64/);
  assert.match(pngOf(null).fault, /no base64/);
});

test("a small file that would take all memory as a picture is not shown", () => {
  assert.ok(pngOf(png(8_000, PIXELS_MAX / 8_000)).address);
  assert.match(pngOf(png(8_000, PIXELS_MAX / 8_000 + 1)).fault, /more than are shown/);
  assert.match(pngOf(png(0xffffffff, 0xffffffff)).fault, /more than are shown/);
  assert.match(pngOf(png(0, 5)).fault, /no pixels/);
});

test("an SVG is an address of an image, whatever is in it", () => {
  const hostile = `<svg xmlns="x" onload="alert(1)"><script>alert(2)</script>"'>\ud800#?&\u202e</svg>`;
  const { address } = svgOf(hostile);
  assert.ok(isPicture(address), address);
  assert.ok(!/[<>"#&?\s]/.test(address));
  assert.match(svgOf("<html>").fault, /no SVG/);
  assert.match(svgOf(`<svg>${" ".repeat(SVG_CHARS_MAX)}`).fault, /more than are shown/);
});

test("bytes are an address of an image alone, and of nothing else", () => {
  const address = pngOf(png(1, 1)).address;
  assert.equal(h("img", { src: address, alt: "" }).getAttribute("src"), address);
  for (const make of [
    () => h("a", { href: address }),
    () => h("iframe", { src: address }),
    () => h("img", { src: "data:text/html,<b>", alt: "" }),
    () => h("img", { src: "data:image/svg+xml,<svg/>", alt: "" }),
    () => h("img", { src: `${address} x`, alt: "" }),
    () => h("img", { src: "https://elsewhere", alt: "" }),
  ])
    assert.throws(make, TypeError);
});

test("a table is shown up to a bound, with names for all columns and numbers told", () => {
  const rows = Array.from({ length: ROWS_SHOWN + 1 }, (_, at) => [at, at === 3 ? null : `r${at}`, null]);
  const shown = tableOf({ columns: ["n", " ", "none"], rows, rows_total: 7_000 });
  assert.deepEqual(shown.columns, [
    { name: "n", numeric: true },
    { name: "Column 2", numeric: false },
    { name: "none", numeric: false },
  ]);
  assert.deepEqual([shown.rows.length, shown.kept, shown.total], [ROWS_SHOWN, ROWS_SHOWN + 1, 7_000]);
  assert.equal(
    tableOf({ columns: ["n"], rows: [[1], [2]], rows_total: 1 }).total,
    2,
    "a total that lies is not believed",
  );
});

test("JSON is opened level by level, and long levels in parts", () => {
  const many = entriesOf(Array.from({ length: ENTRIES_SHOWN + 5 }, (_, at) => at));
  assert.deepEqual([many.entries.length, many.rest], [ENTRIES_SHOWN, 5]);
  assert.deepEqual(entriesOf({ a: 1, b: 2 }, 1), { entries: [["b", 2]], rest: 0 });
  assert.equal(summaryOf([1, 2]), "list of 2");
  assert.equal(summaryOf({ a: 1 }), "object of 1");
  assert.equal(summaryOf('say "x"'), '"say \\"x\\""');
  assert.equal(summaryOf(null), "null");
  assert.match(summaryOf("x".repeat(5_000)), /… \(5002 characters\)$/);
});

test("results are drawn by their kinds, and nothing of them is markup", () => {
  const list = outputList([
    { kind: "text", text: "<b>x</b>" },
    { kind: "json", value: { deep: { deeper: ["<i>"] }, empty: [] } },
    { kind: "table", columns: ["<u>"], rows: [["<script>"], [null]], rows_total: 2 },
    { kind: "png", base64: png(2, 3) },
    { kind: "png", base64: "AAAA" },
    { kind: "svg", text: "<svg><script>x</script></svg>" },
    { kind: "html", text: "<b>" },
  ]);
  const items = list.children;
  assert.equal(items.length, 7);
  assert.equal(items[0].querySelector("pre").textContent, "<b>x</b>");
  assert.match(items[1].textContent, /deep: object of 1/);
  assert.doesNotMatch(items[1].textContent, /<i>/, "what is folded is not made yet");
  const folded = items[1].querySelectorAll("details").at(-1);
  folded.open = true;
  folded.querySelector("details").open = true;
  assert.match(items[1].textContent, /0: "<i>"/);
  assert.deepEqual(
    items[2].querySelectorAll("tbody tr").map((row) => row.textContent),
    ["<script>", "null"],
  );
  assert.deepEqual(
    list.querySelectorAll("img").map((one) => one.getAttribute("alt")),
    ["Picture, result 4", "Picture, result 6"],
  );
  assert.match(items[4].textContent, /shown as no picture/);
  assert.match(items[6].textContent, /does not know/);
  assert.equal(list.querySelectorAll("b, i, u, script, iframe, object").length, 0);
});

test("a long table shows the rest when it is asked for", () => {
  const rows = Array.from({ length: 120 }, (_, at) => [at]);
  const list = outputList([{ kind: "table", columns: ["n"], rows, rows_total: 500 }]);
  assert.equal(list.querySelectorAll("tbody tr").length, ROWS_SHOWN);
  assert.match(list.textContent, /The first 50 of 500 rows/);
  list.querySelector(".toolbar button").fire("click");
  assert.equal(list.querySelectorAll("tbody tr").length, 120);
  assert.match(list.textContent, /The first 120 of 500 rows/);
});

const REPORT = {
  success: true,
  stdout: "",
  stderr: "",
  exit_code: 0,
  duration_seconds: 0.25,
  error_message: null,
  fuel_used: 12_000,
  memory_bytes_peak: 0,
  limit: null,
  truncated: false,
  outputs: [],
  sandbox: null,
  session: null,
};

test("a report says how the code ended, and of a traceback the last line first", () => {
  assert.equal(ending(REPORT), "succeeded");
  assert.equal(ending({ success: false, exit_code: 3, limit: null }), "failed with exit code 3");
  assert.equal(ending({ success: false, exit_code: null, limit: "timeout_ms" }), "stopped by timeout_ms");
  assert.match(jobReport(REPORT).textContent, /It printed nothing\./);
  const stderr = "Traceback (most recent call last):\n  File x\nValueError: no\n";
  const failed = jobReport({
    ...REPORT,
    success: false,
    exit_code: 1,
    error_message: "exit code 1",
    stderr,
    truncated: true,
  });
  const block = failed.querySelectorAll(".error-block").at(-1);
  assert.deepEqual(
    block.querySelectorAll("pre").map((one) => one.textContent),
    ["ValueError: no", stderr],
  );
  assert.match(failed.textContent, /dropped/);
});

test("a session names what it keeps and what it does not", () => {
  const session = {
    name: "s",
    steps: 2,
    bytes: 2048,
    variables: ["a", "b"],
    unkept: [{ names: ["f"], reason: "a file" }],
  };
  const text = jobReport({ ...REPORT, session }).textContent;
  assert.match(text, /Session s/);
  assert.match(text, /a, b/);
  assert.match(text, /Not kept: f; a file/);
  assert.match(variables(Array.from({ length: 53 }, (_, at) => `v${at}`)), /v49 and 3 more$/);
});

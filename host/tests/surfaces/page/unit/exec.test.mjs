// The editor of code and the job that is sent: keys move text and nothing else, and what is left empty is the server's.

import assert from "node:assert/strict";
import test from "node:test";

const folder = process.env.PAGE_MODULES;
const { broken, indented, stepOf } = await import(new URL("code_edit.js", folder));
const { execAddress, firstOf, jobOf, LANGUAGES } = await import(new URL("exec_job.js", folder));

/** A text with `[` and `]` around its selection, or `|` where nothing is selected. */
function read(marked) {
  const start = marked.search(/[[|]/);
  const end = marked.includes("]") ? marked.indexOf("]") - 1 : start;
  return { text: marked.replace(/[[\]|]/g, ""), start, end };
}

function check(act, marked, expected, ...more) {
  const { text, start, end } = read(marked);
  const did = act(text, start, end, ...more);
  const after = text.slice(0, did.from) + did.text + text.slice(did.to);
  const marks = did.start === did.end ? ["|", ""] : ["[", "]"];
  const shown =
    after.slice(0, did.start) + marks[0] + after.slice(did.start, did.end) + marks[1] + after.slice(did.end);
  assert.equal(shown, expected);
}

test("Tab puts spaces in up to the next step, and replaces what is chosen in a line", () => {
  check(indented, "|", "  |");
  check(indented, "a|b", "a |b");
  check(indented, "ab|", "ab  |");
  check(indented, "if x:\n    y\n|", "if x:\n    y\n    |");
  check(indented, "x [old] y", "x   | y");
});

test("Tab moves all lines of a selection, Shift+Tab takes them back, and neither touches others", () => {
  check(indented, "a\n[b\nc]\nd", "a\n  [b\n  c]\nd");
  check(indented, "[a\n]b", "  [a\n]b");
  check(indented, "[a\n\nb]", "  [a\n\n  b]");
  check(indented, "  [a\n    b]", "[a\n  b]", true);
  check(indented, "  a|", "a|", true);
  check(indented, "a|", "a|", true);
  check(indented, " |a", "|a", true);
  check(indented, "\ta|", "a|", true);
});

test("Enter keeps the indentation, and goes a step further behind what opens a block", () => {
  check(broken, "a|", "a\n|");
  check(broken, "  a|", "  a\n  |");
  check(broken, "if x:|", "if x:\n  |");
  check(broken, "    f(|)", "    f(\n        |)");
  check(broken, "  a|b", "  a\n  |b");
});

test("a step is what the text has", () => {
  assert.equal(stepOf("x = 1"), "  ");
  assert.equal(stepOf("if x:\n  y"), "  ");
  assert.equal(stepOf("if x:\n    y"), "    ");
});

const EMPTY = {
  language: "python",
  source: "1",
  session: "",
  rich: false,
  timeout_ms: "",
  context: " ",
  stdin: "",
  runtime: "wasm",
};

test("a job has what was filled in, in the units of the API", () => {
  assert.deepEqual(jobOf(EMPTY), { language: "python", source: "1" });
  const full = {
    ...EMPTY,
    session: "s",
    rich: true,
    timeout_ms: "2",
    memory_bytes_max: "64",
    fuel_max: "9",
    output_bytes_max: "8",
    stdin: "in",
    context: '{"n": 3}',
  };
  assert.deepEqual(jobOf(full), {
    language: "python",
    source: "1",
    session: "s",
    rich: true,
    timeout_ms: 2_000,
    memory_bytes_max: 67_108_864,
    fuel_max: 9,
    output_bytes_max: 8_192,
    stdin: "in",
    context: { n: 3 },
  });
});

test("what only Python or only WebAssembly has is not sent for others", () => {
  const script = jobOf({ ...EMPTY, language: "javascript", session: "s", rich: true });
  assert.deepEqual(script, { language: "javascript", source: "1", rich: true }, "a session is Python's alone");
  assert.deepEqual(jobOf({ ...EMPTY, language: "typescript", session: "s" }), { language: "typescript", source: "1" });
  const native = jobOf({ ...EMPTY, runtime: "native", fuel_max: "9", venv: " /v " });
  assert.deepEqual(native, { language: "python", source: "1", runtime: "native", venv: "/v" });
});

test("a field that cannot be sent is named", () => {
  for (const [name, value] of [
    ["timeout_ms", "0"],
    ["fuel_max", "1.5"],
    ["memory_bytes_max", "x"],
    ["context", "{"],
    ["context", "[1]"],
    ["context", "null"],
  ])
    assert.throws(
      () => jobOf({ ...EMPTY, [name]: value }),
      (error) => error.field === name,
      `${name} ${value}`,
    );
});

test("the address has the language and the session", () => {
  assert.equal(execAddress({ language: "python", session: "" }), "#/exec");
  assert.equal(execAddress({ language: "typescript", session: "a b&c" }), "#/exec?language=typescript&session=a+b%26c");
  for (const [language] of LANGUAGES) assert.ok(firstOf(language).length > 10, language);
});

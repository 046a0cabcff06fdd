// The README's examples work: its tool, the test of that and its agent run as they are.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

import { fakeHost, runAgent } from "longhaul-sdk/testing";

const README = readFileSync(new URL("../README.md", import.meta.url), "utf8");

// Within the package, so that its own name leads to it.
const place = mkdtempSync(fileURLToPath(new URL("./readme-", import.meta.url)));
after(() => rmSync(place, { recursive: true, force: true }));

/** The first fenced block that has `part` in it. */
function block(part) {
  const blocks = [...README.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code]) => code);
  const found = blocks.find((code) => code.includes(part));
  assert.ok(found, `no fenced block has ${part}`);
  return found;
}

/** Writes a block to a file and imports it. */
function load(name, code) {
  const file = join(place, name);
  writeFileSync(file, code);
  return import(pathToFileURL(file));
}

const { tool } = await load("app.js", block("defineTool("));
const { agent } = await load("agent.js", block("react(task"));

// The test that it shows, which is one of this run.
await load("counter.js", block("fakeHost({ keyvalue"));

test("the tool says what it can do", () => {
  assert.deepEqual(
    tool.describe().functions.map(({ name, effect }) => [name, effect]),
    [["add", "acts"]],
  );
});

test("the agent that is one call hands back what the model finishes with", () => {
  fakeHost({ replies: [{ action: "finish", output: 3, summary: "counted" }] });
  assert.equal(runAgent(agent, { instruction: "Count." }).output, 3);
});

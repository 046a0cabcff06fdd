// Flows of a person who runs code, works on a graph of steps, and judges what an agent did, at the page of `flows.test.mjs`.
//
// They need the interpreter of Python, and a run that has ended.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";

import { given, longhaul, picture, until, violations, WORK_MS } from "./lab.mjs";

/** Code with a result of each kind but a table. Its picture would own the page if it were a part of it. */
const RICH = `print("<b>41</b>")
seen = {"n": 41}
class Drawn:
    def _repr_svg_(self):
        return '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" onload="window.owned=5"><script>window.owned=6</script><rect width="9" height="9"/></svg>'
display(Drawn())
seen`;

/** The steps of a graph, of which the last one fails in a function of another one. */
const FIRST = ["rows", "rows = [1, 2]"];
const STEPS = [FIRST, ["helper", "def part(n):\n    return 1 / n"], ["half", "part(len(rows) - 2)"]];

/** A step that prints something, and waits for a file. */
const WAITS = "import os, time\nprint('<u> so far')\nwhile not os.path.exists('/out/go'): time.sleep(0.01)\n'done'";

/** Adds the flows. `lab`: `{desk(), button(name, scope), go(hash), ask(path), run()}`. */
export function codeFlows(lab) {
  test("code is run, its output and its results are shown as what they are, and it is stopped", () => codeIsRun(lab));
  test("a graph is run, a step of it diagnosed, changed and run from there, added and removed", () =>
    graphIsWorkedOn(lab));
  test("a trajectory is found, read, rated, corrected and exported", () => trajectoryIsJudged(lab));
}

async function codeIsRun({ desk, button, go }) {
  const page = desk();
  await go("#/exec");
  await page.getByRole("heading", { level: 1, name: "Run code" }).waitFor();
  await page.getByText("No session is kept.").waitFor();
  const code = page.getByRole("textbox", { name: "Code" });
  const session = page.getByRole("textbox", { name: "Session" });
  await code.fill("");
  await page.keyboard.type("for n in range(2):");
  await page.keyboard.press("Enter");
  await page.keyboard.type("print('<b>', n)");
  assert.equal(await code.inputValue(), "for n in range(2):\n  print('<b>', n)", "a block goes a step further");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.name), "source", "Tab is a key of the editor");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Tab");
  assert.notEqual(await page.evaluate(() => document.activeElement.name), "source", "nobody is held in it");

  await code.fill(RICH);
  await session.fill("kept");
  await code.focus();
  await page.keyboard.press("Control+Enter");
  await page.getByRole("heading", { name: "Result", exact: true }).waitFor({ timeout: WORK_MS });
  await page.getByRole("region", { name: "Standard output" }).getByText("<b>41</b>").waitFor();
  await page.locator(".tree").getByText("object of 1").first().waitFor();
  const image = page.locator(".picture img").first();
  await image.waitFor();
  assert.ok(await image.evaluate((one) => one.decode().then(() => one.naturalWidth > 0)), "the picture is drawn");
  assert.equal(await page.evaluate(() => window.owned), undefined, "no script of a picture runs");
  assert.equal(await page.locator("main b b, main pre b, main svg script").count(), 0);
  await page.getByRole("heading", { name: "Session kept" }).waitFor();
  assert.deepEqual(await violations(page), []);
  await picture(page, "exec-result");

  await code.fill("seen['n'] + 1\nraise ValueError('<i>no</i>')");
  await button("Run").click();
  await page.locator(".error-last").getByText("ValueError: <i>no</i>").waitFor({ timeout: WORK_MS });
  assert.deepEqual(await violations(page), []);
  await session.fill("");
  await code.fill("print('<u> so far')\nwhile True: pass");
  await button("Run").click();
  const output = page.getByRole("region", { name: "Standard output, as it comes" });
  await output.getByText("<u> so far").waitFor({ timeout: WORK_MS });
  await page.locator(".head-line").getByText("running").waitFor();
  assert.deepEqual(await violations(page), []);
  await picture(page, "exec-live");
  await button("Stop").click();
  await page.getByText("The code was stopped.").waitFor();
  await page.locator(".head-line").getByText("stopped", { exact: true }).waitFor();
  assert.equal(await output.textContent(), "<u> so far\n", "what was printed stays");

  await page.getByText("Limits and input").click();
  await page.getByLabel("CONTEXT, a JSON object").fill("{");
  await page.getByText("Limits and input").click();
  await button("Run").click();
  await page.locator('.field-error[data-field="context"]').getByText("This is not JSON").waitFor();
  await page.getByRole("button", { name: "End session kept" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "End it" }).click();
  await page.getByText("No session is kept.").waitFor();
}

async function graphIsWorkedOn({ desk, button, go }) {
  const page = desk();
  await go("#/graphs");
  await page.getByText("No graph yet.").waitFor();
  await longhaul(["graph", "new", "taken"]);
  await button("New graph").click();
  const made = page.getByRole("dialog");
  await made.getByLabel("Name", { exact: true }).fill("taken");
  await made.getByLabel("First step").fill(FIRST[0]);
  await made.getByLabel("Source").fill(FIRST[1]);
  await made.getByRole("button", { name: "Make", exact: true }).click();
  await made.locator('.field-error[data-field="name"]').getByText("there is a graph `taken` already").waitFor();
  assert.deepEqual(await violations(page), []);
  await picture(page, "graph-new");
  await made.getByLabel("Name", { exact: true }).fill("sums");
  await made.getByRole("button", { name: "Make", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "sums" }).waitFor();
  for (const [name, source] of STEPS.slice(1)) await longhaul(["graph", "add", "sums", name, "--source", source]);
  await page.reload();
  await page.getByRole("heading", { level: 1, name: "sums" }).waitFor();
  await button("Run stale").click();
  const cell = (name) => page.getByRole("article", { name: `Step ${name}`, exact: true });
  await cell("half").locator(".error-last").getByText("ZeroDivisionError").waitFor({ timeout: WORK_MS });
  await cell("half").getByText("at line 2 of helper").waitFor();
  assert.equal(await page.locator(".plan-step").count(), STEPS.length);
  await page.getByRole("button", { name: "Diagnose: half" }).click();
  await cell("half").getByRole("heading", { name: "Diagnosis" }).waitFor();
  assert.deepEqual(await violations(page), []);
  await picture(page, "graph-diagnosed");

  await page.getByRole("button", { name: "Edit: rows" }).click();
  await cell("rows").getByRole("textbox", { name: "Source" }).fill("rows = [1, 2, 3]");
  await cell("rows").getByRole("button", { name: "Save" }).click();
  await cell("half").getByRole("region", { name: "Value of half" }).getByText("1.0").waitFor({ timeout: WORK_MS });
  await page.locator(".head-line").getByText(`${STEPS.length} fresh`).waitFor();

  await button("Add a step").click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("last <b>");
  await dialog.getByLabel("Source").fill("print('<u>', len(rows))");
  await dialog.getByRole("button", { name: "Add", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  await button("Run all").click();
  await cell("last <b>")
    .getByRole("region", { name: "Output of last <b>" })
    .getByText("<u> 3")
    .waitFor({ timeout: WORK_MS });
  await page.getByRole("button", { name: "Remove: last <b>" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove", exact: true }).click();
  await cell("last <b>").waitFor({ state: "detached" });

  await go("#/graphs/sums/steps/half");
  await page.locator(".cell.is-chosen").getByRole("heading", { name: "half" }).waitFor();
  await go("#/graphs/sums/steps/none");
  await page.getByText("The graph sums has no step none.").waitFor();
  await go("#/graphs/none");
  await page.getByRole("heading", { level: 1, name: "Not found" }).waitFor();
  assert.deepEqual(await violations(page), []);

  await outputIsFollowed({ page, go });
  await go("#/graphs/taken");
  await button("Remove the graph").click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove it" }).click();
  await page.getByRole("heading", { level: 1, name: "Graphs" }).waitFor();
  await page.getByRole("link", { name: "sums", exact: true }).waitFor();
  assert.equal(await page.getByRole("link", { name: "taken", exact: true }).count(), 0);
}

/** What a step prints is there while it runs, also of a run that began elsewhere. */
async function outputIsFollowed({ page, go }) {
  const out = mkdtempSync(join(tmpdir(), "longhaul-page-"));
  await longhaul(["graph", "new", "waiting", "--dir", `${out}:/out:ro`]);
  await longhaul(["graph", "add", "waiting", "<b>", "--source", WAITS]);
  await go("#/graphs/waiting");
  await page.getByRole("heading", { level: 1, name: "waiting" }).waitFor();
  const ran = longhaul(["graph", "run", "waiting"]);
  const cell = page.getByRole("article", { name: "Step <b>", exact: true });
  const output = cell.getByRole("region", { name: "Output of <b>, as it comes" });
  await output.getByText("<u> so far").waitFor({ timeout: WORK_MS });
  await cell.getByText("running, 1 of 1").waitFor();
  assert.deepEqual(await violations(page), []);
  await picture(page, "graph-live");
  writeFileSync(join(out, "go"), "");
  await ran;
  await cell.getByRole("region", { name: "Value of <b>" }).getByText("'done'").waitFor();
  assert.equal(await output.count(), 0);
  rmSync(out, { recursive: true });
}

async function trajectoryIsJudged({ desk, button, go, ask, run }) {
  const page = desk();
  await go(`#/trajectories?project=${given.project}&run=${run()}&agent=code`);
  const rows = page.locator("tbody th a");
  await rows.first().waitFor();
  assert.equal(await rows.count(), (await ask(`/api/v1/runs/${run()}/trajectories?agent=code`)).total);
  await page.getByRole("combobox", { name: "Rating" }).selectOption("yes");
  await page.getByText("No trajectory fits.").waitFor();
  assert.match(page.url(), /judged=yes/);
  await page.getByRole("combobox", { name: "Rating" }).selectOption("");
  await rows.first().click();
  await page.getByRole("heading", { name: "Transcript" }).waitFor({ timeout: WORK_MS });
  assert.ok((await page.locator(".message").count()) > 0);
  assert.equal(await page.locator("main img, main script").count(), 0, "what was said stays text");
  await page.getByRole("combobox", { name: "Rating" }).selectOption("4");
  await page.getByLabel("What the answer should have been").fill("<b>better</b>");
  await button("Save").click();
  await page.locator(".head-line").getByText("4 of 5").waitFor({ timeout: WORK_MS });
  const [, id] = page.url().split(`#/trajectories/${run()}/`);
  const kept = await ask(`/api/v1/runs/${run()}/trajectory?invocation=${id}`);
  assert.deepEqual([kept.rating, kept.correction], [4, "<b>better</b>"]);
  assert.deepEqual(await violations(page), []);
  await picture(page, "trajectory-rated");

  await go(`#/trajectories?run=${run()}&judged=good`);
  await until("one is rated well", async () => (await rows.count()) === 1);
  await page.getByRole("combobox", { name: "Format of the export" }).selectOption("unpaired");
  const [file] = await Promise.all([page.waitForEvent("download"), button("Export as JSON lines").click()]);
  assert.equal(file.suggestedFilename(), "trajectories-unpaired.jsonl");
  const lines = readFileSync(await file.path(), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.deepEqual(
    lines.map((line) => line.label),
    [true],
  );
}

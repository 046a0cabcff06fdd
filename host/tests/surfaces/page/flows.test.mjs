// A person at the page, with real clicks and keys, against the real server: in, start, watch, answer, edit, lose the
// server and have it back, read what came of it. What models and agents wrote stays text all the way.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";

import { codeFlows } from "./code.mjs";
import {
  api,
  given,
  longhaul,
  Model,
  openBrowser,
  openPage,
  picture,
  Server,
  until,
  violations,
  WORK_MS,
} from "./lab.mjs";

/** What an agent of the scheduler is made of. */
const SOURCE = 'print("counted <b>41</b>")\n';

/** What the program ends with when a run pauses. */
const PAUSED = 4;

/** Between two words of the model, where a reply has to last until it is looked at, however slow the machine is. */
const SLOWLY_MS = 1_000;

const server = new Server();
const model = new Model();
let browser, token, ask, abandoned, run, fork, desk;

before(async () => {
  await model.start(given.model_port);
  // The data directory knows a project from its first run on.
  await longhaul(["run", "--plan-only"], PAUSED);
  token = (await longhaul(["token", "add", "page", "--scope", "admin"])).trim();
  await server.start();
  ask = api(server.base, token);
  const [planned] = (await ask("/api/v1/runs")).items;
  abandoned = planned.run;
  await ask(`/api/v1/runs/${planned.run}/abandon`, { method: "POST", body: JSON.stringify({ reason: "made anew" }) });
  browser = await openBrowser();
  desk = await openPage(browser, server.base);
});

after(async () => {
  await browser?.close();
  await server.stop();
  model.stop();
  console.log(`pictures of the page: ${given.artifacts}`);
});

const button = (name, scope = desk.page) => scope.getByRole("button", { name, exact: true });
const go = async (hash) => {
  await desk.page.evaluate((to) => (location.hash = to), hash);
};

/** Whether the server has a route: what it is built without is not shown. */
const has = async (path) => (await ask("/api/v1/openapi.json")).paths[path] !== undefined;

/** Every event of the run, as the API has them. */
async function events() {
  const all = [];
  for (;;) {
    const { items, last } = await ask(`/api/v1/runs/${run}/events?after=${all.length}&limit=500`);
    all.push(...items);
    if (items.length === 0 || all.length >= last) return all;
  }
}

test("a wrong token is said to be wrong, and the right one lets in, by keyboard alone", async () => {
  const { page } = desk;
  await page.goto(server.base);
  await page.getByLabel("Token").waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.name), "token");
  await page.keyboard.type("lh_wrong");
  await page.keyboard.press("Enter");
  await page.getByText("This token is wrong").waitFor();
  assert.equal(await page.getByLabel("Token").getAttribute("aria-invalid"), "true");
  assert.deepEqual(await violations(page), []);
  await picture(page, "login-wrong");
  await page.getByLabel("Token").fill("two words");
  await page.keyboard.press("Enter");
  await page.getByText("A token is one word").waitFor();
  await page.getByLabel("Token").fill(token);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Projects" }).waitFor();
  assert.equal(await page.evaluate(() => document.body.innerText.includes("lh_")), false, "the token is not shown");
});

test("a run is started from its project and is seen as it goes, word by word", async () => {
  const { page } = desk;
  model.pauseMs = SLOWLY_MS;
  await page.getByRole("link", { name: given.project, exact: true }).click();
  await page.getByRole("heading", { level: 1, name: given.project }).waitFor();
  const before = (await ask("/api/v1/runs")).items.length;
  await button("Start a run").click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Start" }).click();
  await dialog.getByText("was abandoned with run").waitFor();
  await dialog.getByLabel("Also if the project was abandoned").check();
  await dialog.getByRole("button", { name: "Start" }).click();
  await page.waitForURL(/#\/runs\/r-/);
  run = /r-[0-9a-f]+/.exec(page.url())[0];
  assert.equal((await ask("/api/v1/runs")).items.length, before + 1);
  await page.getByRole("heading", { name: "Timeline" }).waitFor();
  const saying = page.locator(".reply-text");
  await saying.first().waitFor();
  const early = await saying.first().textContent();
  await until("the words grow", async () => (await saying.first().textContent()).length > early.length);
  model.pauseMs = 2;
  await page.locator(".event.kind-thought").first().waitFor();
  assert.ok(
    (await page.locator(".event.kind-thought").first().textContent()).includes("<img src=x"),
    "what was said stays",
  );
  await until("both steps of the plan are drawn", async () => (await page.locator(".plan-step").count()) === 2);
  assert.equal(await page.locator(".plan-edge").count(), 1);
});

test("what waits for a person is shown where they are, and a feature is edited in place meanwhile", async () => {
  const { page } = desk;
  await page.locator(".approval.is-open").getByText("poster.post").waitFor();
  await picture(page, "run-approval");
  await page
    .getByRole("navigation", { name: "Parts of the run" })
    .getByRole("link", { name: /Features/ })
    .click();
  await page.getByText("waits for an answer").waitFor();
  await page.locator('summary[data-focus="feature-two"]').click();
  const before = await feature("two");
  await button("Edit", page.locator(".feature[open]")).click();
  await page.getByLabel("Title").fill("the second, <b>renamed</b>");
  const priority = page.getByLabel("Priority, 1 to 10");
  await priority.fill("99");
  await button("Save").click();
  const fault = { hasText: /^Write a whole number from 1 to 10\.$/ };
  await page.locator('.field-error[data-field="priority"]', fault).waitFor();
  assert.equal(await priority.getAttribute("aria-invalid"), "true");
  assert.equal(await page.evaluate(() => document.activeElement.name), "priority");
  assert.deepEqual(await feature("two"), before, "nothing was kept");
  await priority.fill("7");
  await button("Add a criterion").click();
  await page.getByLabel("Name of the criterion").last().fill("said");
  await page.getByLabel("What must hold").last().fill("the file says so");
  await page.getByLabel("Check that decides it, if one does").last().fill(before.checks[0].name);
  await button("Save").click();
  await page.locator(".feature").getByText("the second, <b>renamed</b>").first().waitFor();
  const edited = await feature("two");
  assert.equal(edited.title, "the second, <b>renamed</b>");
  assert.equal(edited.priority, 7);
  assert.ok(
    edited.criteria.some(
      (one) => one.id === "said" && one.text === "the file says so" && one.check === before.checks[0].name,
    ),
    JSON.stringify(edited.criteria),
  );
  assert.deepEqual(
    [edited.checks, edited.instruction],
    [before.checks, before.instruction],
    "what was not touched stays",
  );
  assert.deepEqual(await violations(page), []);
});

const feature = async (id) => (await ask(`/api/v1/runs/${run}`)).features.find((one) => one.id === id);

test("an approval is answered in place, and the run goes on", async () => {
  const { page } = desk;
  await page.getByText("waits for an answer").click();
  const card = page.locator(".approval.is-open").first();
  await card.waitFor();
  const id = await card.getAttribute("data-key");
  assert.equal((await ask(`/api/v1/approvals/${id}`)).status, "open");
  await button("Say what to do instead…", card).click();
  await card.getByRole("textbox", { name: "What to do instead" }).fill("y");
  await button("Send", card).click();
  await card.getByText("would be read as a decision").waitFor();
  assert.equal((await ask(`/api/v1/approvals/${id}`)).status, "open", "a slip of the finger is no yes");
  await button("Cancel", card).click();
  await button("Allow once", card).click();
  await until("it is answered", async () => (await ask(`/api/v1/approvals/${id}`)).status !== "open");
  await page.locator(`.approval[data-key="${id}"]`).waitFor({ state: "detached" });
});

test("a rule for the rest of the run is made in place", async () => {
  const { page } = desk;
  await page.locator(".approval.is-open").first().waitFor();
  model.pauseMs = SLOWLY_MS;
  await button("Allow for this run", page.locator(".approval.is-open").first()).click();
  await until("there is a rule", async () => (await ask(`/api/v1/rules?run=${run}`)).items.length > 0);
});

test("when the server is killed the page says so, and it catches up without doubles when the server is back", async () => {
  const { page } = desk;
  await page.locator(".reply-text").first().waitFor();
  const shown = await page.locator(".event").count();
  await server.kill();
  await page.getByText("Disconnected from Longhaul").waitFor();
  assert.equal((await page.locator(".event").count()) >= shown, true, "what was shown stays");
  await picture(page, "disconnected");
  await button("Try now").click();
  await page.getByText("Disconnected from Longhaul").waitFor();
  model.pauseMs = 1;
  await server.start();
  await page.getByText("Disconnected from Longhaul").waitFor({ state: "detached" });
  const completed = async () => {
    const { status, active, why } = await ask(`/api/v1/runs/${run}`);
    if (["failed", "abandoned", "incomplete"].includes(status)) throw new Error(`${status}: ${why}`);
    if (!active && ["parked", "paused"].includes(status)) await answerAll();
    return status === "completed";
  };
  await until("the run ends", completed, WORK_MS);
  await page.locator(".run-head").getByText("completed").first().waitFor();
  await page.getByRole("combobox", { name: "How much is shown" }).selectOption("machinery");
  await until("the beginning is shown", async () => {
    if (await page.getByText("The beginning of the run.").isVisible()) return true;
    // The button goes away with its last press, perhaps while it is reached for.
    await button("Show earlier")
      .click({ timeout: 5_000 })
      .catch(() => {});
    return false;
  });
  let [rows, expected] = [[], []];
  await until("every event is there", async () => {
    rows = await page.locator(".events > li").evaluateAll((all) => all.map((one) => Number(one.dataset.key)));
    // Asked for after the rows: what happens in between is then waited for, and is not taken for a double.
    expected = rowsOf(await events());
    return rows.length >= expected.length;
  });
  assert.deepEqual(rows, expected, "each event once, in order");
  assert.equal(await page.locator(".reply-text").count(), 0, "nobody is said to be talking any more");
});

/** The numbers that the timeline has a row for, the newest first: an answer is told in the row of its call. */
function rowsOf(all) {
  const isAnswer = (line) =>
    line.type === "observation" &&
    all.some(
      (other) =>
        other.type === "action" &&
        other.payload.invocation === line.payload.invocation &&
        other.payload.step === line.payload.of,
    );
  return all
    .filter((line) => !isAnswer(line))
    .map((line) => line.number)
    .reverse();
}

/** What a kill in the middle of an effect leaves a person to answer. */
async function answerAll() {
  const open = await ask(`/api/v1/approvals?open=true&run=${run}`);
  for (const one of open.items)
    await ask(`/api/v1/approvals/${one.id}/answer`, { method: "POST", body: JSON.stringify({ text: "y" }) });
  await ask(`/api/v1/runs/${run}/resume`, {
    method: "POST",
    body: JSON.stringify({ retry_failing: false, sessions: null }),
  }).catch(() => {});
}

test("what models and agents wrote is text and nothing else, everywhere", async () => {
  const { page } = desk;
  assert.ok((await page.locator(".event.kind-thought").first().textContent()).includes('onerror="window.owned=1"'));
  await page.locator(".event .fold > summary").first().click();
  const parts = ["features", "time", "journal", "decisions", "memory", "costs", "result", "past", "plugins"];
  for (const part of ["", ...parts.map((one) => `/${one}`)]) {
    await go(`#/runs/${run}${part}`);
    await page.locator(`.tabs [aria-current="page"][href="#/runs/${run}${part}"]`).waitFor();
    await until(
      `${part} is drawn`,
      async () =>
        (await page.locator(".run-body").innerText()).length > 0 &&
        (await page.locator(".run-body .loading").count()) === 0,
    );
    assert.equal(
      await page.locator("main img, main script, main iframe, main b b, main object, main style").count(),
      0,
      part,
    );
    const links = await page
      .locator("main a")
      .evaluateAll((all) => all.map((one) => one.getAttribute("href")).filter((href) => !href.startsWith("#/")));
    assert.deepEqual(links, [], part);
  }
  assert.equal(await page.evaluate(() => window.owned), undefined);
});

test("the helper that makes elements refuses what could run", async () => {
  const refused = await desk.page.evaluate(async () => {
    const { h, s } = await import("/dom.js");
    const tries = [
      () => h("a", { href: "javascript:1" }),
      () => h("a", { href: "https://elsewhere.test" }),
      () => h("div", { onclick: "1" }),
      () => h("div", { style: "color:red" }),
      () => h("iframe", { srcdoc: "x" }),
      () => h("div", { prop: { ["inner" + "HTML"]: "<b>" } }),
      () => s("a", { "xlink:href": "javascript:1" }),
      () => h("img", { src: "//elsewhere.test/x" }),
    ];
    const failed = (run) => {
      try {
        run();
        return false;
      } catch (error) {
        return error instanceof TypeError;
      }
    };
    return [tries.map(failed), h("p", null, "<i>x</i>").outerHTML];
  });
  assert.deepEqual(refused[0], Array(8).fill(true));
  assert.equal(refused[1], "<p>&lt;i&gt;x&lt;/i&gt;</p>");
});

test("entries of the journal are opened one by one, and a replay comes to the same", async () => {
  const { page } = desk;
  await go(`#/runs/${run}/journal`);
  await page.getByRole("link", { name: "f-one / 1 / generate", exact: true }).click();
  const entry = page.locator(".entry > summary").nth(1);
  await entry.click();
  await page.locator(".entry[open] .entry-body").waitFor();
  await button("Replay").click();
  await page.getByText("each gave the same result").waitFor();
});

test("the report is read here and kept as a file", async () => {
  const { page } = desk;
  await go(`#/runs/${run}/result`);
  await button("Read here").click();
  await page.locator(".plain.code").getByText(run).first().waitFor();
  for (const [format, name] of [
    ["Markdown", "md"],
    ["JSON", "json"],
    ["HTML", "html"],
  ]) {
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: format }).click(),
    ]);
    assert.match(file.suggestedFilename(), new RegExp(`\\.${name}$`));
    assert.ok(readFileSync(await file.path(), "utf8").length > 100, name);
  }
  await page.locator("tbody").getByText("Revert to it").first().waitFor();
});

test("a commit opens with its files and their lines", async () => {
  const { page } = desk;
  await go(`#/runs/${run}/result`);
  await page.getByTitle("Show what it changed").first().click();
  const dialog = page.getByRole("dialog");
  await dialog.locator(".file-tree").waitFor();
  await dialog.locator(".diff-add").first().waitFor();
  assert.deepEqual(await violations(page), []);
  await dialog.getByRole("button", { name: "Close" }).click();
});

test("a schedule is added, run now, paused and removed, and its agent shows what it came to", async (t) => {
  if (!(await has("/api/v1/schedules"))) return t.skip("this server has no schedules");
  const { page } = desk;
  const file = join(mkdtempSync(join(tmpdir(), "page-")), "agent.py");
  writeFileSync(file, SOURCE);
  await longhaul(["agent", "add", "reporter", "--python", file]);
  await go("#/schedules");
  await page.getByText("Nothing is scheduled.").waitFor();
  await button("Add a schedule").click();
  const form = page.getByRole("dialog", { name: "Add a schedule" });
  await form.getByLabel("Name").fill("nightly");
  await form.getByLabel("Agent", { exact: true }).fill("reporter");
  await form.getByLabel("Cron").fill("61 * * * *");
  await form.getByRole("button", { name: "Add" }).click();
  await form.locator("[role=alert]:not(:empty), .field-error:not(:empty)").first().waitFor();
  await form.getByLabel("Cron").fill("30 2 * * mon-fri");
  await form.getByLabel("Time zone").fill("Europe/Berlin");
  await form.getByText("at 02:30, Monday to Friday, Europe/Berlin time").waitFor();
  assert.equal(await form.locator(".preview-fires li").count(), 5, "its next fires before it is saved");
  await form.getByRole("button", { name: "Add" }).click();
  await form.waitFor({ state: "detached" });
  const row = page
    .getByRole("table")
    .first()
    .getByRole("row", { name: /nightly/ });
  await row.getByText("Monday to Friday").first().waitFor();
  const { next_ms: next } = await ask("/api/v1/schedules/nightly");
  const reckoned = await page.evaluate(async () => {
    const { nextFires } = await import("/cron.js");
    return nextFires("30 2 * * mon-fri", "Europe/Berlin", Date.now(), 3);
  });
  assert.deepEqual(reckoned, next.slice(0, 3), "the page reckons as the server does");
  assert.equal(await row.locator("time").first().getAttribute("datetime"), new Date(next[0]).toISOString());
  await page.getByRole("button", { name: "Run now: nightly" }).click();
  await page.locator("#s-tasks ~ div, section").getByText("by hand").first().waitFor();
  const isDone = async () => (await ask("/api/v1/tasks")).items[0]?.status === "completed";
  await until("the task is done", isDone, WORK_MS);
  await page.locator("tbody").getByText("completed").first().waitFor();
  assert.deepEqual(await violations(page), []);
  await page.getByRole("button", { name: "Pause: nightly" }).click();
  await page.getByRole("button", { name: "Resume: nightly" }).waitFor();
  assert.equal((await ask("/api/v1/schedules/nightly")).enabled, false);
  await page.getByRole("button", { name: "Remove: nightly" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await page.getByText("Nothing is scheduled.").waitFor();
  await go("#/agents");
  await page.getByRole("link", { name: "reporter" }).click();
  // The source of the agent, folded above, has these words, too.
  const artifact = page.getByRole("region", { name: "Artifact", exact: true });
  await artifact.getByText("counted <b>41</b>", { exact: true }).waitFor();
  assert.equal(await page.locator("main b b, main pre b").count(), 0, "what code printed is text");
  await button("Run it").click();
  await page.getByRole("dialog").getByRole("button", { name: "Run" }).click();
  await page.getByRole("heading", { name: "Result" }).waitFor({ timeout: WORK_MS });
});

codeFlows({ desk: () => desk.page, button, go, ask: (path) => ask(path), run: () => run });

test("runs are found by their words, the filter is in the address, and several are chosen at once", async () => {
  const { page } = desk;
  await go("#/runs");
  const rows = page.locator("tbody th a");
  await rows.first().waitFor();
  const all = await rows.count();
  assert.equal(await rows.first().textContent(), "Three", "a run is told by its goal");
  const search = page.getByLabel("Search runs");
  await search.fill("nothing like it");
  await page.getByText("No run fits.").waitFor();
  assert.match(page.url(), /search=nothing/);
  await page.reload();
  await page.getByText("No run fits.").waitFor();
  await search.fill("THREE");
  await until("all are found", async () => (await rows.count()) === all);
  await page.getByRole("combobox", { name: "Status" }).selectOption("completed");
  await until("one of them is completed", async () => (await rows.count()) === 1);
  await page.getByRole("checkbox", { name: `Choose ${run}` }).check();
  await page.getByText("1 run chosen").waitFor();
  assert.equal(await button("Pause 0").isDisabled(), true, "a run that is over is not paused");
  assert.deepEqual(await violations(page), []);
  await picture(page, "runs-chosen");
  await button("Choose none").click();
  await page.getByText("1 run chosen").waitFor({ state: "detached" });
});

test("a run is archived, listed apart from the others, and taken back", async () => {
  const { page } = desk;
  await go("#/runs?status=completed");
  const choice = page.getByRole("checkbox", { name: `Choose ${run}` });
  await choice.check();
  await button("Archive 1").click();
  await page.getByText("No run fits.").waitFor();
  await page.getByRole("combobox", { name: "Archive" }).selectOption("true");
  await choice.check();
  await button("Take back from the archive 1").click();
  await page.getByText("No run fits.").waitFor();
  await page.getByRole("combobox", { name: "Archive" }).selectOption("");
  await choice.waitFor();
});

test("a run is compared with another one of its project, side by side", async () => {
  const { page } = desk;
  await go(`#/runs/${run}/compare`);
  await page.getByText("Choose a run to see both side by side.").waitFor();
  const choice = page.getByRole("combobox", { name: "Compare with" });
  await until("both runs are known", async () => (await choice.locator("option").count()) > 1);
  await choice.selectOption(abandoned);
  await page.waitForURL(new RegExp(`/compare\\?with=${abandoned}$`));
  await page.getByRole("heading", { name: "The first difference" }).waitFor();
  await page.getByText("B does not have it").first().waitFor();
  assert.equal(await page.getByRole("table").getByRole("link").count(), 2, "both runs are linked");
  assert.deepEqual(await violations(page), []);
});

test("a slider goes through the past of a run, by keyboard, and the present stands beside it", async () => {
  const { page } = desk;
  await go(`#/runs/${run}?e=3`);
  await page.locator(".one-event").getByRole("link", { name: "The run then" }).click();
  await page.waitForURL(/\/past\?at=event%3A3$/);
  await page.getByRole("heading", { name: "The run then", exact: true }).waitFor();
  const slider = page.getByRole("slider", { name: "Event" });
  const last = Number(await slider.getAttribute("max"));
  assert.equal(last, (await events()).length);
  await slider.focus();
  await page.keyboard.press("End");
  await page.waitForURL(new RegExp(`at=event%3A${last}$`));
  await page.locator("section:has(#s-past) .facts").getByText("completed").waitFor();
  for (let presses = 0; presses < 5; presses += 1) await page.keyboard.press("ArrowLeft");
  await page.waitForURL(new RegExp(`at=event%3A${last - 5}$`));
  assert.match(await slider.getAttribute("aria-valuetext"), new RegExp(`^Event ${last - 5} of ${last}: \\S`));
  await page.getByRole("combobox", { name: "Go to a point" }).selectOption("feature:two");
  await page.waitForURL(/at=feature%3Atwo$/);
  await button("Compare with the present").click();
  await page.getByRole("heading", { name: "The run then and now" }).waitFor();
  assert.equal(await page.locator("tr.is-other").count(), 1, "the second feature was not done then");
  assert.deepEqual(await violations(page), []);
  await go(`#/runs/${run}/past?at=feature%3Anine`);
  await page.getByText("has no feature `nine`").waitFor();
});

test("a run is forked with another answer of its model, and stands beside its fork", async () => {
  const { page } = desk;
  const invocation = `${run}/f-one/1/generate`;
  await go(`#/runs/${run}/journal?i=${encodeURIComponent(invocation)}`);
  await page.locator(".entry > summary", { hasText: "conversation.complete" }).first().click();
  await button("Fork with another answer").click();
  const dialog = page.getByRole("dialog", { name: "Fork here" });
  await dialog.getByText("poster.post").first().waitFor();
  await dialog.getByText("acts, cannot be undone").first().waitFor();
  const answer = dialog.getByLabel(/^Answer of entry \d+/);
  assert.ok((await answer.inputValue()).includes("<img src=x"), "the recorded words, as text");
  await answer.fill('another "line" <b>');
  await dialog.getByLabel("Model", { exact: true }).fill("gone");
  await button("Make the fork", dialog).click();
  await dialog.locator('.field-error[data-field="model"]', { hasText: "models.gone" }).waitFor();
  await dialog.getByLabel("Model", { exact: true }).fill("");
  assert.deepEqual(await violations(page), []);
  await picture(page, "fork");
  await button("Make the fork", dialog).click();
  await dialog.getByText("It is paused").waitFor();
  await dialog.getByRole("link", { name: "Compare both" }).click();
  await page.waitForURL(/\/compare\?with=r-/);
  fork = /with=(r-[0-9a-f]+)/.exec(page.url())[1];
  const shared = await ask(`/api/v1/runs/${fork}/journal/entries?invocation=${encodeURIComponent("f-one/1/generate")}`);
  assert.ok(shared.entries.at(-1).answer.includes('another \\"line\\" <b>'), JSON.stringify(shared.entries.at(-1)));
  assert.equal((await ask(`/api/v1/runs/${fork}`)).fork.parent, run);
  await page.locator(".fork-tree").getByRole("link", { name: /^Compare with its parent/ }).waitFor();
  await go(`#/runs/${fork}`);
  await page.getByText("Forked from").getByRole("link", { name: run }).click();
  await page.locator(".fork-line").getByRole("link", { name: fork }).waitFor();
});

test("a run is rehearsed where its plugins stand, and nothing is moved unasked", async () => {
  const { page } = desk;
  await go(`#/runs/${run}/plugins`);
  await page.getByRole("group", { name: "Plugins of the run" }).getByText("doer").waitFor();
  await button("Rehearse").click();
  await page.getByRole("heading", { name: "Result of the rehearsal" }).waitFor({ timeout: WORK_MS });
  assert.match(await page.locator(".run-body .card").innerText(), /invocations? and [\d\s]+entr(y|ies) alike/);
  assert.equal(await page.getByRole("button", { name: /^Move/ }).count(), 0, "its own bytes are none to move to");
  assert.deepEqual(await violations(page), []);
});

test("the time axis shows the kill, and each event has an address", async () => {
  const { page } = desk;
  await go(`#/runs/${run}/time`);
  await page.locator(".axis-bar.is-session").first().waitFor();
  assert.ok((await page.locator(".axis-mark.mark-kill").count()) >= 1, "the server was killed");
  await page.getByText("The same as a table").click();
  await page.getByRole("table").getByText("Session 1 of one").first().waitFor();
  assert.deepEqual(await violations(page), []);
  await go(`#/runs/${run}?e=1`);
  await page.getByRole("heading", { name: "Event 1", exact: true }).waitFor();
  const [first] = await events();
  await page.locator(`.one-event .kind-${first.type}`).waitFor();
  await page.locator(".one-event").getByRole("link", { name: "Next" }).click();
  await page.getByRole("heading", { name: "Event 2", exact: true }).waitFor();
  await go(`#/runs/${run}?e=999999`);
  await page.getByText("There is no event 999999").waitFor();
});

test("Ctrl-K leads anywhere, and an address that names nothing says so", async () => {
  const { page } = desk;
  await page.keyboard.press("Control+k");
  const field = page.getByRole("combobox", { name: "Go to" });
  await field.fill("costs");
  await page
    .getByRole("option", { name: /^Costs/ })
    .first()
    .waitFor();
  assert.deepEqual(await violations(page), []);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Spent", exact: true }).waitFor();
  assert.match(page.url(), /\/costs$/, "the parts of the open run come first");
  await go("#/costs");
  await page.getByRole("heading", { name: /^By project/ }).waitFor();
  await go("#/nothing/here");
  await page.getByRole("heading", { level: 1, name: "Not found" }).waitFor();
  assert.deepEqual(await violations(page), []);
});

test("everything is reached without a mouse", async () => {
  const { page } = desk;
  await go("#/projects");
  await page.getByRole("heading", { name: "Projects" }).waitFor();
  await page.reload();
  await page.locator("tbody th a").first().waitFor();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.id), "skip");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  // A second key that comes too late for its first, on a slow machine, is none of a pair.
  await until("g r goes to the runs", async () => {
    await page.keyboard.press("g");
    await page.keyboard.press("r");
    return page.evaluate(() => location.hash === "#/runs");
  });
  await page.getByRole("heading", { level: 1, name: "Runs", exact: true }).waitFor();
  await page.locator("tbody th a").first().waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForURL(/#\/runs\/r-/);
  await page.getByRole("heading", { name: "Timeline" }).waitFor();
  await page.keyboard.press("?");
  const help = page.getByRole("dialog", { name: "Keyboard" });
  await help.getByText("Show earlier events").waitFor();
  assert.deepEqual(await violations(page), []);
  await page.keyboard.press("Escape");
  await help.waitFor({ state: "detached" });
  await page.keyboard.press("2");
  await page.waitForURL(/\/features$/);
  await page.locator(".feature > summary").first().focus();
  await page.keyboard.press("Enter");
  const edit = page.locator(".feature[open]").getByRole("button", { name: "Edit" });
  await edit.waitFor();
  for (let presses = 0; !(await edit.evaluate((one) => one === document.activeElement)); presses += 1) {
    assert.ok(presses < 10, "Tab reaches what is in a feature");
    await page.keyboard.press("Tab");
  }
  const outline = await edit.evaluate((one) => getComputedStyle(one).outlineStyle);
  assert.equal(outline, "solid", "the focus is seen");
  await page.keyboard.press("t");
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "light");
  await page.keyboard.press("t");
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  await page.reload();
  await page.locator(".side").waitFor();
  assert.equal(
    await page.evaluate(() => document.documentElement.dataset.theme),
    "dark",
    "it is kept, and so is the token",
  );
  await page.keyboard.press("t");
});

const places = async () => ({
  projects: "#/projects",
  project: `#/projects/${given.project}`,
  runs: "#/runs",
  run: `#/runs/${run}`,
  event: `#/runs/${run}?e=3`,
  features: `#/runs/${run}/features?f=one`,
  time: `#/runs/${run}/time`,
  journal: `#/runs/${run}/journal`,
  decisions: `#/runs/${run}/decisions`,
  memory: `#/runs/${run}/memory`,
  "run-costs": `#/runs/${run}/costs`,
  result: `#/runs/${run}/result`,
  compare: `#/runs/${run}/compare?with=${abandoned}`,
  past: `#/runs/${run}/past?at=event%3A12`,
  "past-and-present": `#/runs/${run}/past?at=feature%3Atwo&now=true`,
  "run-plugins": `#/runs/${run}/plugins`,
  fork: `#/runs/${fork}`,
  approvals: "#/approvals/all",
  rules: "#/approvals/rules",
  trajectories: "#/trajectories",
  trajectory: `#/trajectories/${run}/${encodeURIComponent(`${run}/f-one/1/generate`)}`,
  exec: "#/exec",
  graphs: "#/graphs",
  graph: "#/graphs/sums",
  step: "#/graphs/sums/steps/half",
  costs: "#/costs",
  plugins: "#/plugins",
  missing: "#/nothing",
  ...((await has("/api/v1/schedules")) && { schedules: "#/schedules", agents: "#/agents", agent: "#/agents/reporter" }),
  ...((await has("/api/v1/resources")) && { resources: "#/resources", workers: "#/resources/workers" }),
});

for (const [mode, options] of Object.entries({
  light: { colorScheme: "light" },
  dark: { colorScheme: "dark" },
  phone: {
    viewport: { width: 390, height: 800 },
    deviceScaleFactor: 2,
    hasTouch: true,
    isMobile: true,
    reducedMotion: "reduce",
  },
})) {
  test(`every view is drawn, fits and can be read by all: ${mode}`, async () => {
    const own = await openPage(browser, server.base, options);
    const { page } = own;
    await page.goto(server.base);
    await page.getByLabel("Token").fill(token);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Projects" }).waitFor();
    const found = [];
    for (const [name, hash] of Object.entries(await places())) {
      await page.evaluate((to) => (location.hash = to), hash);
      await until(
        `${name} is drawn`,
        async () =>
          (await page.locator("main h1").count()) === 1 && (await page.locator("main .loading").count()) === 0,
      );
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
      assert.equal(await page.locator("main .failed").count(), 0, `${name}: ${await page.locator("main").innerText()}`);
      // Of a phone a narrower one is tried, too.
      for (const width of mode === "phone" ? [360, 390] : [1320]) {
        await page.setViewportSize({ ...page.viewportSize(), width });
        const over = await page.evaluate(
          () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
        );
        if (over > 0) found.push(`${name} is ${over} px wider than a screen of ${width}`);
      }
      found.push(...(await violations(page)).map((one) => `${name}: ${one}`));
      await picture(page, name);
    }
    if (mode === "phone") {
      await button("Menu", page).click();
      await page.getByRole("link", { name: "Approvals" }).click();
      await page.getByRole("heading", { name: "Approvals" }).waitFor();
      const turning = await page.evaluate(
        () =>
          [...document.querySelectorAll("*")].filter((one) => getComputedStyle(one).animationName !== "none").length,
      );
      assert.equal(turning, 0, "nothing moves for who asked for that");
    }
    assert.deepEqual(found, []);
    assert.deepEqual(own.wrong, []);
    await own.context.close();
  });
}

test("who may only read is offered nothing else", async () => {
  const viewer = (await longhaul(["token", "add", "viewer", "--scope", "read"])).trim();
  const own = await openPage(browser, server.base);
  const { page } = own;
  await page.goto(`${server.base}/#/projects/${given.project}`);
  await page.getByLabel("Token").fill(viewer);
  await page.keyboard.press("Enter");
  await page.locator(".feature > summary").first().click();
  await page.locator(".feature[open]").getByText("Rubric").waitFor();
  for (const name of ["Start a run", "Ask", "Edit", "Drop", "Add a feature"]) {
    assert.equal(await page.getByRole("button", { name, exact: true }).count(), 0, name);
  }
  for (const [hash, heading, names] of [
    ["#/exec", "Run code", ["Run", "Stop"]],
    ["#/graphs/sums", "sums", ["Run stale", "Run all", "Add a step", "Remove the graph", "Run: half", "Edit: half", "Remove: half"]],
  ]) {
    await page.evaluate((to) => (location.hash = to), hash);
    await page.getByRole("heading", { level: 1, name: heading, exact: true }).waitFor();
    for (const name of names) assert.equal(await page.getByRole("button", { name, exact: true }).count(), 0, name);
  }
  for (const [part, heading, names] of [
    ["past?at=feature%3Atwo", "Work in flight", ["Fork here", "Fork at this entry"]],
    ["plugins", "Plugins", ["Rehearse"]],
  ]) {
    await page.evaluate((to) => (location.hash = to), `#/runs/${run}/${part}`);
    await page.locator(".run-body section").getByRole("heading", { name: heading }).first().waitFor();
    for (const name of names) assert.equal(await page.getByRole("button", { name, exact: true }).count(), 0, name);
  }
  assert.deepEqual(own.wrong, []);
  await own.context.close();
});

test("a token that is removed sends its holder to the login, with the reason", async () => {
  const { page } = desk;
  await longhaul(["token", "remove", "page"]);
  await go("#/runs");
  await page.getByLabel("Token").waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
  await page.locator(".login-why").waitFor();
});

test("no page of all this had an error, broke its policy, or asked another host", () => {
  assert.deepEqual(desk.wrong, []);
});

// The palette finds places, projects, runs and graphs by their words, and goes where one presses Enter.

import assert from "node:assert/strict";
import test from "node:test";

import { install } from "./document.mjs";

install();
const folder = process.env.PAGE_MODULES;
const { openPalette, partsOf, ranked } = await import(new URL("part_palette.js", folder));
const keys = await import(new URL("keys.js", folder));

const PLACES = [
  { name: "Runs", href: "#/runs" },
  { name: "Resources", href: "#/resources" },
  { name: "Costs", href: "#/costs" },
];

const answer = (value) => ({ ok: true, status: 200, json: async () => value });
const settle = async () => {
  for (let turn = 0; turn < 12; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

/** The palette, once projects and runs have come. */
async function open() {
  location.hash = "#/costs";
  globalThis.fetch = async (path) => {
    if (path.includes("/projects")) return answer({ items: [{ project: "kept", status: "active" }] });
    if (path.includes("/graphs")) return answer({ items: [{ name: "sales of a#1" }] });
    return answer({ items: [{ run: "r-12ab", title: "Which port?", project: "kept", status: "working" }] });
  };
  openPalette(PLACES);
  await settle();
  const dialog = document.querySelector("dialog");
  const field = dialog.querySelector("input");
  return { dialog, field, rows: () => dialog.querySelectorAll("li").map((one) => one.firstElementChild?.textContent) };
}

test("entries are found by all of their words, those that begin so first", () => {
  const entries = [{ name: "The costs", note: "run" }, { name: "Costs", note: "place" }, { name: "Runs" }];
  const names = (text) => ranked(entries, text).map((one) => one.name);
  assert.deepEqual(names("cost"), ["Costs", "The costs"]);
  assert.deepEqual(names("run cost"), ["The costs"]);
  assert.deepEqual(names(" "), ["The costs", "Costs", "Runs"]);
  assert.deepEqual(names("<nothing>"), []);
  assert.equal(
    ranked(
      Array.from({ length: 99 }, () => ({ name: "x" })),
      "x",
    ).length,
    12,
  );
});

test("the parts of the run that is open are offered", () => {
  assert.ok(partsOf("#/runs/r-12ab/journal").some((one) => one.href === "#/runs/r-12ab/time"));
  assert.deepEqual(partsOf("#/runs"), []);
  assert.deepEqual(partsOf("#/runs/x%22"), []);
});

test("arrows choose, Enter goes, and the field says what is chosen", async () => {
  const { dialog, field, rows } = await open();
  assert.deepEqual(rows(), ["Runs", "Resources", "Costs", "kept", "Which port?", "sales of a#1"]);
  for (const key of ["ArrowDown", "ArrowDown", "ArrowUp", "ArrowUp", "ArrowUp"]) field.fire("keydown", { key });
  assert.equal(field.getAttribute("aria-activedescendant"), "palette-5", "from the first to the last");
  field.fire("keydown", { key: "ArrowUp" });
  field.fire("keydown", { key: "Enter" });
  assert.equal(location.hash, "#/runs/r-12ab");
  assert.equal(dialog.isConnected, false);
});

test("a graph is found by its name, also where an address has to spell that", async () => {
  const { field } = await open();
  field.value = "sales";
  field.fire("input");
  field.fire("keydown", { key: "Enter" });
  assert.equal(location.hash, "#/graphs/sales%20of%20a%231");
});

test("what is typed narrows the list, and nothing is said to be nothing", async () => {
  const { dialog, field, rows } = await open();
  field.value = "port";
  field.fire("input");
  assert.deepEqual(rows(), ["Which port?"]);
  field.value = "zzz";
  field.fire("input");
  assert.match(dialog.querySelector("ul").textContent, /Nothing has that name/);
  assert.equal(field.hasAttribute("aria-activedescendant"), false);
  dialog.close();
});

test("Ctrl-K opens it, in a field as well, and not over another dialog", () => {
  let opened = 0;
  keys.always([[keys.PALETTE, "Go to", () => (opened += 1)]]);
  keys.start();
  const press = (more) =>
    document.dispatchEvent(
      Object.assign(new Event("keydown", { cancelable: true }), { key: "k", ctrlKey: true, ...more }),
    );
  press({});
  press({ ctrlKey: false, metaKey: true, key: "K" });
  assert.equal(opened, 2);
  press({ shiftKey: true });
  press({ ctrlKey: false });
  assert.equal(opened, 2);
  const dialog = document.createElement("dialog");
  dialog.open = true;
  document.body.append(dialog);
  press({});
  assert.equal(opened, 2);
  dialog.remove();
});

// The form of a schedule: what starts it, told in words with its next fires before it is saved.
//
// The preview is the page's own reckoning. The server decides whether a schedule is one, and when it fires.

import * as api from "./api.js";
import { CronError, cronWords, inZone, nextFires } from "./cron.js";
import { fill, h } from "./dom.js";
import { duration, moment } from "./format.js";
import { check, dialog, field, form, input, select, toast } from "./ui.js";

/** Fires that are shown ahead. */
const FIRES = 5;

/** What a trigger comes to: in words, and its next fires; or why it is none. */
export function previewOf(trigger, nowMs) {
  if (trigger.type === "after") return null;
  if (trigger.type === "interval") {
    const everyMs = trigger.interval_seconds * 1000;
    if (!(everyMs > 0)) return null;
    const fires = Array.from({ length: FIRES }, (_, index) => moment(nowMs + (index + 1) * everyMs));
    return previewBox(`every ${duration(everyMs)}`, fires);
  }
  try {
    const { cron, timezone } = trigger;
    const fires = nextFires(cron, timezone, nowMs, FIRES);
    if (fires.length === 0) return previewFault("It never fires.");
    return previewBox(
      cronWords(cron, timezone),
      fires.map((ms) => inZone(ms, timezone)),
    );
  } catch (error) {
    if (error instanceof CronError) return previewFault(error.message);
    return previewFault(`No zone is called ${trigger.timezone}. Write one such as Europe/Berlin.`);
  }
}

const previewFault = (text) => h("p", { class: "hint" }, text);

const previewBox = (words, fires) => [
  h("p", null, h("b", null, "Fires "), words, "."),
  h("p", { class: "hint" }, "Next, if it is added now:"),
  h(
    "ol",
    { class: "preview-fires" },
    fires.map((text) => h("li", null, text)),
  ),
];

/** Asks for a schedule and adds it. */
export function addSchedule(refresh) {
  dialog("Add a schedule", (close) => {
    const name = input({ name: "name", class: "code", required: true });
    const agent = input({ name: "agent", class: "code", list: "agent-names", required: true });
    const names = h("datalist", { id: "agent-names" });
    api
      .agents()
      .then(({ items }) =>
        fill(
          names,
          items.map((one) => h("option", { value: one.name })),
        ),
      )
      .catch(() => {});
    const kind = select(
      [
        ["cron", "at set times (cron)"],
        ["interval", "at intervals"],
        ["after", "after another agent"],
      ],
      "cron",
      { name: "type" },
    );
    const cron = input({ name: "cron", class: "code", required: true, prop: { value: "0 * * * *" } });
    const zone = input({
      name: "timezone",
      prop: { value: Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC" },
    });
    const seconds = input({
      type: "number",
      min: "1",
      required: true,
      name: "interval_seconds",
      prop: { value: "3600" },
    });
    const after = input({ name: "after", class: "code", list: "agent-names", required: true });
    const on = select(
      [
        ["success", "it succeeded"],
        ["failure", "it failed"],
        ["always", "either"],
      ],
      "success",
      { name: "when" },
    );
    const missed = select(
      [
        ["skip", "are skipped"],
        ["once", "start one run"],
        ["all", "start a run each"],
      ],
      "once",
      { name: "missed" },
    );
    const overlap = check("May start while its last run goes on", false);
    const fields = {
      cron: h(
        "div",
        { class: "form-row" },
        field("Cron", cron, { name: "cron", hint: "Minute, hour, day, month, weekday; or @hourly and the like." }),
        field("Time zone", zone, { name: "timezone" }),
      ),
      interval: field("Every so many seconds", seconds, { name: "interval_seconds" }),
      after: h(
        "div",
        { class: "form-row" },
        field("After the agent", after, { name: "after" }),
        field("When", on, { name: "when" }),
      ),
    };
    const place = h("div", null, fields.cron);
    const preview = h("div", { class: "preview", "aria-live": "polite" });
    const show = () => fill(preview, previewOf(trigger(), Date.now()));
    kind.addEventListener("change", () => {
      fill(place, fields[kind.value]);
      show();
    });
    for (const control of [cron, zone, seconds]) control.addEventListener("input", show);
    const trigger = () =>
      ({
        cron: { type: "cron", cron: cron.value.trim(), timezone: zone.value.trim() || "UTC" },
        interval: { type: "interval", interval_seconds: Number(seconds.value) },
        after: { type: "after", after: after.value.trim(), when: on.value },
      })[kind.value];
    show();
    return form(
      "Add a schedule",
      [
        h(
          "div",
          { class: "form-row" },
          field("Name", name, { name: "name" }),
          field("Agent", agent, { name: "agent" }),
        ),
        names,
        field("Starts", kind, { name: "trigger" }),
        place,
        preview,
        field("Fires that were missed while Longhaul was down", missed, { name: "missed" }),
        overlap.element,
      ],
      {
        action: "Add",
        cancel: close,
        submit: async () => {
          await api.addSchedule({
            name: name.value.trim(),
            agent: agent.value.trim(),
            trigger: trigger(),
            enabled: true,
            overlap: overlap.box.checked,
            missed: missed.value,
          });
          close();
          toast("The schedule is added.");
          await refresh();
        },
      },
    );
  });
}

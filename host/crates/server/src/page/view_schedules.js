// Schedules with their next fires, and the tasks that came of them: add, pause, run now, remove, try again.

import * as api from "./api.js";
import { cronWords, inZone } from "./cron.js";
import { fill, h } from "./dom.js";
import { duration, moment, plural, words } from "./format.js";
import { live } from "./live.js";
import { errorBlock } from "./part_error.js";
import { addSchedule } from "./part_schedule_form.js";
import { may } from "./session.js";
import {
  button,
  confirm,
  empty,
  link,
  mono,
  muted,
  pager,
  redraw,
  section,
  select,
  status,
  table,
  toast,
  when,
} from "./ui.js";

const PAGE = 30;

export async function show(ctx) {
  ctx.title("Schedules");
  const list = h("div");
  const tasksBox = h("div", { class: "section" });
  let refresh = async () => {};
  let refreshTasks = async () => {};
  const both = () => Promise.all([refresh(), refreshTasks()]);
  fill(
    ctx.box,
    h(
      "div",
      { class: "view-head" },
      h("h1", null, "Schedules"),
      h(
        "div",
        { class: "actions" },
        may("run") &&
          button("Add a schedule", { kind: "main", sign: "add", focus: "add", run: () => addSchedule(both) }),
      ),
    ),
    list,
    section("Tasks", { id: "s-tasks" }, tasksBox),
  );
  const shown = live(ctx, {
    place: list,
    everyMs: 5_000,
    load: (signal) => api.schedules(signal),
    draw: ({ items }) =>
      redraw(
        list,
        items.length === 0
          ? empty(
              "Nothing is scheduled.",
              h("p", null, "A schedule starts an agent at set times, at intervals, or after another agent."),
            )
          : table("Schedules", columns(both), items, { rowKey: (one) => one.name }),
      ),
  });
  const done = tasks(ctx, tasksBox, ctx.query);
  ({ refresh } = await shown);
  ({ refresh: refreshTasks } = await done);
}

const columns = (refresh) => [
  {
    name: "Schedule",
    cell: (one) => [
      h("b", null, one.name),
      h("span", { class: "sub" }, "starts ", link(`#/agents/${encodeURIComponent(one.agent)}`, one.agent)),
    ],
  },
  { name: "When", cell: (one) => triggerWords(one.trigger) },
  { name: "Status", cell: (one) => (one.enabled ? status("enabled") : status("paused")) },
  {
    name: "Next",
    cell: (one) => [
      nextFires(one),
      one.last_skipped?.detail &&
        h(
          "span",
          { class: "sub" },
          "last refused ",
          when(one.last_skipped.last_ms),
          `: ${one.last_skipped.detail}`,
        ),
    ],
  },
  {
    name: "Actions",
    bare: true,
    cell: (one) =>
      may("run") &&
      h(
        "span",
        { class: "actions" },
        button("Run now", {
          small: true,
          focus: `run-${one.name}`,
          "aria-label": `Run now: ${one.name}`,
          run: async () => {
            const task = await api.schedule(one.name, "run-now");
            toast(`Task ${task.id} is queued.`);
            await refresh();
          },
        }),
        button(one.enabled ? "Pause" : "Resume", {
          small: true,
          focus: `pause-${one.name}`,
          "aria-label": `${one.enabled ? "Pause" : "Resume"}: ${one.name}`,
          run: async () => {
            await api.schedule(one.name, one.enabled ? "pause" : "resume");
            await refresh();
          },
        }),
        button("Remove", {
          small: true,
          kind: "danger",
          focus: `remove-${one.name}`,
          "aria-label": `Remove: ${one.name}`,
          run: () =>
            confirm(`Remove ${one.name}`, "It fires no more. Its tasks stay listed.", "Remove", async () => {
              await api.removeSchedule(one.name);
              await refresh();
            }),
        }),
      ),
  },
];

/** When a schedule fires, in words. */
export function triggerWords(trigger) {
  if (trigger.type === "cron") return [inWords(trigger), h("span", { class: "sub" }, mono(trigger.cron))];
  if (trigger.type === "interval") return `every ${duration(trigger.interval_seconds * 1000)}`;
  return [
    `after `,
    link(`#/agents/${encodeURIComponent(trigger.after)}`, trigger.after),
    trigger.when !== "always" && h("span", { class: "sub" }, `on ${trigger.when}`),
  ];
}

/** An expression in words; one that the page does not read is shown as it is. */
function inWords({ cron, timezone }) {
  try {
    return cronWords(cron, timezone ?? "UTC");
  } catch {
    return [mono(cron), " ", timezone ?? "UTC"];
  }
}

/** A fire on the clock of its schedule, or on the reader's where it has none. */
function fireText(one, ms) {
  const zone = one.trigger.type === "cron" ? (one.trigger.timezone ?? "UTC") : null;
  return zone === null ? moment(ms) : `${inZone(ms, zone)} ${zone}`;
}

function nextFires(one) {
  if (!one.enabled) return muted("paused");
  if (!one.next_ms?.length) return muted(one.trigger.type === "after" ? "when that one is done" : "–");
  const [first, ...rest] = one.next_ms;
  return [
    when(first),
    h("span", { class: "sub" }, fireText(one, first)),
    rest.length > 0 &&
      h(
        "details",
        { class: "fold", data: { open: `next-${one.name}` } },
        h("summary", null, `${rest.length} more`),
        h(
          "ul",
          null,
          rest.slice(0, 10).map((at) => h("li", null, fireText(one, at))),
        ),
      ),
  ];
}

const TASKS = [
  ["", "All"],
  ["pending", "Pending"],
  ["running", "Running"],
  ["completed", "Completed"],
  ["failed", "Failed"],
];

/** The tasks of all schedules, or of one agent. */
export async function tasks(ctx, place, query, agent = null) {
  const filter = select(TASKS, query.get("tasks") ?? "", { "aria-label": "Which tasks" });
  const list = h("div", { class: "section" });
  let offset = 0;
  fill(place, h("div", { class: "toolbar" }, filter), list);
  const shown = await live(ctx, {
    place: list,
    everyMs: 4_000,
    load: (signal) => api.tasks({ status: filter.value, agent, limit: PAGE, offset }, signal),
    draw: (page) =>
      redraw(
        list,
        page.total === 0
          ? empty("No task yet.")
          : table(
              "Tasks",
              taskColumns(() => shown.refresh(), agent === null),
              page.items,
              { rowKey: (one) => one.id },
            ),
        pager(page, (to) => {
          offset = to;
          return shown.refresh();
        }),
      ),
  });
  filter.addEventListener("change", () => {
    offset = 0;
    shown.refresh();
  });
  return shown;
}

const CAUSES = { time: "by the clock", manual: "by hand", after: "after another" };

const taskColumns = (refresh, withAgent) => [
  {
    name: "Task",
    cell: (one) => [
      withAgent ? h("b", null, one.agent) : mono(one.id),
      h(
        "span",
        { class: "sub" },
        withAgent && [mono(one.id), " · "],
        one.schedule && `${one.schedule} · `,
        CAUSES[one.cause] ?? words(one.cause),
      ),
    ],
  },
  {
    name: "Status",
    cell: (one) => [
      status(one.status),
      one.waiting_for && h("span", { class: "sub" }, `waits: ${one.waiting_for}`),
      one.failure && h("span", { class: "sub" }, one.failure),
    ],
  },
  { name: "Attempts", cell: (one) => attempts(one) },
  { name: "Due", numeric: true, cell: (one) => when(one.due_ms ?? one.fire_ms) },
  {
    name: "Actions",
    bare: true,
    cell: (one) =>
      one.status === "failed" &&
      may("run") &&
      h(
        "span",
        { class: "actions" },
        button("Try again", {
          small: true,
          focus: `retry-${one.id}`,
          run: async () => {
            const said = await api.retryTask(one.id);
            toast(said.message ?? `Retry ${said.retry_count}.`);
            await refresh();
          },
        }),
      ),
  },
];

function attempts(one) {
  const all = one.attempts ?? [];
  if (all.length === 0) return muted("none yet");
  return h(
    "details",
    { class: "fold", data: { open: `attempts-${one.id}` } },
    h(
      "summary",
      null,
      plural(all.length, "attempt"),
      one.retry_count > 0 && `, ${plural(one.retry_count, "retry", "retries")}`,
    ),
    h(
      "ol",
      { class: "attempts" },
      all.map((attempt) =>
        h(
          "li",
          null,
          status(
            attempt.success === null || attempt.success === undefined
              ? "running"
              : attempt.interrupted
                ? "interrupted"
                : attempt.success
                  ? "completed"
                  : "failed",
          ),
          " ",
          when(attempt.started_ms, { absolute: true }),
          attempt.ended_ms && ` · ${duration(attempt.ended_ms - attempt.started_ms)}`,
          attempt.error && errorBlock(attempt.error, { name: `${one.id}-${attempt.started_ms}` }),
        ),
      ),
    ),
  );
}

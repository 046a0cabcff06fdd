// Projects: all of them, and one with its features as they progress, its runs, decisions and memory.
//
// A project's status is its newest run's; nothing here keeps one of its own.

import * as api from "./api.js";
import { fill, h } from "./dom.js";
import { plural } from "./format.js";
import { live } from "./live.js";
import { decisions } from "./part_decisions.js";
import { features } from "./part_features.js";
import { memory } from "./part_memory.js";
import { may } from "./session.js";
import {
  button,
  check,
  dialog,
  empty,
  field,
  form,
  input,
  area,
  link,
  mono,
  pager,
  progress,
  redraw,
  select,
  status,
  table,
  tabs,
  toast,
  when,
} from "./ui.js";
import { runTable } from "./part_runs.js";

const PAGE = 50;

export async function show(ctx) {
  const name = ctx.path[1];
  return name ? one(ctx, name) : all(ctx);
}

async function all(ctx) {
  ctx.title("Projects");
  const list = h("div");
  let offset = 0;
  fill(
    ctx.box,
    h(
      "div",
      { class: "view-head" },
      h("h1", null, "Projects"),
      h("div", { class: "actions" }, may("admin") && button("New project", { sign: "add", run: () => newProject() })),
    ),
    list,
  );
  const { refresh } = await live(ctx, {
    place: list,
    wants: (line) =>
      ["project_created", "project_status", "run_started", "judged", "feature", "done", "parked", "paused"].includes(
        line.type,
      ),
    load: (signal) => api.projects({ limit: PAGE, offset }, signal),
    draw: (page) =>
      redraw(
        list,
        page.total === 0 ? nothing() : table("Projects", COLUMNS, page.items),
        pager(page, (to) => {
          offset = to;
          return refresh();
        }),
      ),
  });
}

const nothing = () =>
  empty(
    "No project yet.",
    h("p", null, "A project is a directory with a goal. Make one with ", h("code", null, "longhaul new"), " or here."),
  );

const COLUMNS = [
  {
    name: "Project",
    cell: (row) => [
      link(`#/projects/${encodeURIComponent(row.project)}`, row.project),
      h("span", { class: "sub" }, row.directory),
    ],
  },
  { name: "Status", cell: (row) => status(row.status) },
  { name: "Features", cell: (row) => progress(row.passing.done, row.passing.of, "Features that pass") },
  { name: "Newest run", cell: (row) => (row.run ? link(`#/runs/${row.run}`, mono(row.run)) : "–") },
  { name: "Runs", numeric: true, hide: "phone", cell: (row) => String(row.runs) },
  { name: "Updated", numeric: true, cell: (row) => when(row.last_ms) },
];

function newProject() {
  dialog("New project", (close) => {
    const directory = input({ name: "directory", required: true, placeholder: "/home/me/work/parser" });
    const name = input({ name: "name" });
    const fresh = check("Only if the directory is empty or not there yet", true);
    return form(
      "New project",
      [
        field("Directory", directory, {
          name: "directory",
          hint: "A whole path on the machine that Longhaul runs on.",
        }),
        field("Name", name, { name: "name", hint: "Left empty: the directory's." }),
        fresh.element,
      ],
      {
        action: "Make project",
        cancel: close,
        submit: async () => {
          const made = await api.createProject({
            directory: directory.value.trim(),
            name: name.value.trim() || null,
            fresh: fresh.box.checked,
          });
          close();
          toast(`Project ${made.project} is made.`);
          location.hash = `#/projects/${encodeURIComponent(made.project)}`;
        },
      },
    );
  });
}

async function one(ctx, name) {
  const part = ctx.path[2] ?? "features";
  ctx.title(name);
  const head = h("div");
  const body = h("div");
  fill(ctx.box, head, body);
  let runId = null;
  let drawPart = null;
  await live(ctx, {
    place: head,
    isWhole: true,
    load: async (signal) => {
      const found = await findProject(name, signal);
      return { project: found, run: found.run ? await api.status(found.run, signal) : null };
    },
    draw: ({ project, run }) => {
      redraw(head, projectHead(project, run, part));
      if (project.run !== runId || drawPart === null) {
        runId = project.run;
        fill(body);
        drawPart = PARTS[part] ? (PARTS[part](ctx, body, project, run) ?? (() => {})) : () => {};
      } else drawPart(run);
    },
  });
}

/** Projects have no address of their own in the API: the list is gone through until it is there. */
async function findProject(name, signal) {
  for (let offset = 0; ; offset += 500) {
    const page = await api.projects({ limit: 500, offset }, signal);
    const found = page.items.find((one) => one.project === name);
    if (found) return found;
    if (offset + 500 >= page.total)
      throw new api.ApiError(404, { detail: `There is no project ${name}. It may have another name by now.` });
  }
}

const PARTS = {
  features: (ctx, body, project, run) => {
    if (!run)
      return void fill(
        body,
        empty(
          "No run yet, so no features.",
          may("run") && button("Start a run", { kind: "main", run: () => startRun(project) }),
        ),
      );
    return features(ctx, body, run);
  },
  runs: (ctx, body, project) => {
    let offset = 0;
    live(ctx, {
      place: body,
      load: (signal) => api.runs({ project: project.project, limit: PAGE, offset }, signal),
      draw: (page) =>
        redraw(
          body,
          page.total === 0 ? empty("No run yet.") : runTable(page.items, { withProject: false }),
          pager(page, (to) => {
            offset = to;
            return PARTS.runs(ctx, body, project);
          }),
        ),
    });
  },
  decisions: (ctx, body, project) =>
    project.run ? void decisions(ctx, body, project.run) : void fill(body, empty("No run yet, so no decisions.")),
  memory: (ctx, body, project) =>
    project.run ? void memory(ctx, body, project.run) : void fill(body, empty("No run yet, so nothing is remembered.")),
};

function projectHead(project, run, part) {
  const base = `#/projects/${encodeURIComponent(project.project)}`;
  const shown = run?.features?.filter((feature) => feature.status !== "dropped").length ?? 0;
  return [
    h("p", { class: "crumbs" }, link("#/projects", "Projects")),
    h(
      "div",
      { class: "view-head" },
      h("div", null, h("h1", null, project.project), h("p", { class: "hint" }, project.directory)),
      h(
        "div",
        { class: "actions" },
        project.run && link(`#/runs/${project.run}`, "Newest run"),
        may("run") && button("Ask", { focus: "ask", run: () => askProject(project) }),
        may("run") &&
          button("Start a run", { kind: "main", sign: "run", focus: "start", run: () => startRun(project) }),
      ),
    ),
    h(
      "p",
      { class: "head-line" },
      status(project.status),
      progress(project.passing.done, project.passing.of, "Features that pass"),
      h("span", { class: "muted" }, plural(project.runs, "run"), " · updated ", when(project.last_ms)),
    ),
    tabs(
      "Parts of the project",
      [
        { name: "features", href: base, text: "Features", count: shown },
        { name: "runs", href: `${base}/runs`, text: "Runs", count: project.runs },
        { name: "decisions", href: `${base}/decisions`, text: "Decisions" },
        { name: "memory", href: `${base}/memory`, text: "Memory" },
      ],
      part,
    ),
  ];
}

function startRun(project) {
  dialog(`Start a run of ${project.project}`, (close) => {
    const planOnly = check("Pause when the plan is there", false);
    const again = check("Also if the project was abandoned", false);
    const sessions = input({ type: "number", min: "1", name: "sessions", inputmode: "numeric" });
    return form(
      "Start a run",
      [
        field("Pause after so many sessions", sessions, {
          name: "sessions",
          hint: "Left empty: go on until it is done.",
        }),
        planOnly.element,
        again.element,
      ],
      {
        action: "Start",
        cancel: close,
        submit: async () => {
          const started = await api.startRun({
            project: project.project,
            plan_only: planOnly.box.checked,
            again: again.box.checked,
            sessions: sessions.value ? Number(sessions.value) : null,
          });
          close();
          location.hash = `#/runs/${started.run}`;
        },
      },
    );
  });
}

function askProject(project) {
  dialog(`Ask ${project.project}`, (close) => {
    const goal = area("", { name: "goal", rows: "5" });
    const dispatch = select(
      [
        ["auto", "the agent that fits"],
        ["route", "one agent"],
        ["plan", "a plan of tasks"],
      ],
      "auto",
      { name: "dispatch" },
    );
    return form(
      "Ask",
      [field("Question or goal", goal, { name: "goal" }), field("Answered by", dispatch, { name: "dispatch" })],
      {
        action: "Ask",
        cancel: close,
        submit: async () => {
          const started = await api.ask({ project: project.project, goal: goal.value, dispatch: dispatch.value });
          close();
          location.hash = `#/runs/${started.run}`;
        },
      },
    );
  });
}

// Graphs of steps of code: which there are, and one with its dependencies and cells; run, changed and diagnosed in place,
// with what its steps print as it comes.
//
// A graph whose steps see something is made on the command line, which names it. One that belongs to an agent is only
// looked at, and one whose steps see directories or hosts is changed by the scope admin alone.

import * as api from "./api.js";
import { fill, h, keyed } from "./dom.js";
import { plural, visible } from "./format.js";
import {
  graphHref,
  hasFailed,
  lookOf,
  nextToRun,
  runNotes,
  runWords,
  stateCounts,
  stateWords,
  taken,
} from "./graphs.js";
import { live } from "./live.js";
import { liveWords } from "./live_steps.js";
import { cell, cellMark, onlyItsAgent } from "./part_cells.js";
import { KEYS_HINT, codeArea } from "./part_code_editor.js";
import { newGraph } from "./part_graph_form.js";
import { graphMap } from "./part_graph_map.js";
import { liveSteps } from "./part_live_steps.js";
import { may } from "./session.js";
import {
  announce,
  button,
  check,
  chip,
  confirm,
  dialog,
  empty,
  facts,
  field,
  form,
  input,
  link,
  pager,
  redraw,
  section,
  status,
  table,
  toast,
  when,
} from "./ui.js";
import { missing } from "./view_missing.js";

/** Graphs, and steps of a graph, on a page. */
const PAGE = 100;

/** Most pages that are looked through for a step. */
const PAGES_MAX = 100;

export async function show(ctx) {
  const [, name, part, step] = ctx.path;
  if (!name) return all(ctx);
  if (part && (part !== "steps" || !step)) return missing(ctx, `A graph has no part ${ctx.path.slice(2).join("/")}.`);
  return one(ctx, name, step ?? null);
}

async function all(ctx) {
  ctx.title("Graphs");
  const list = h("div");
  const offset = Number(ctx.query.get("offset")) || 0;
  fill(
    ctx.box,
    h(
      "div",
      { class: "view-head" },
      h("h1", null, "Graphs"),
      h(
        "div",
        { class: "actions" },
        may("run") && button("New graph", { sign: "add", focus: "new-graph", run: () => newGraph(ctx) }),
      ),
    ),
    list,
  );
  await live(ctx, {
    place: list,
    wants: (line) => line.type === "done",
    load: (signal) => api.graphs({ limit: PAGE, offset }, signal),
    draw: (page) =>
      redraw(
        list,
        page.total === 0 ? none() : table("Graphs", COLUMNS, page.items, { rowKey: (graph) => graph.name }),
        pager(page, (to) => ctx.go(`#/graphs${api.queryOf({ offset: to || null })}`)),
      ),
  });
}

const none = () =>
  empty(
    "No graph yet.",
    h(
      "p",
      null,
      "A graph keeps code in steps and runs those that a change affects. Make one here, or with ",
      h("code", null, "longhaul graph new NAME"),
      ".",
    ),
  );

const COLUMNS = [
  {
    name: "Graph",
    cell: (graph) => [
      link(graphHref(graph.name), graph.name),
      graph.of_agent && h("span", { class: "sub" }, "of an agent"),
    ],
  },
  { name: "Steps", numeric: true, cell: (graph) => String(graph.steps) },
  {
    name: "State",
    cell: (graph) =>
      graph.stale > 0 ? status(lookOf("stale"), `${graph.stale} stale`) : status(lookOf("fresh"), stateWords("fresh")),
  },
  { name: "Language", hide: "phone", cell: (graph) => graph.language },
  { name: "Changes", numeric: true, hide: "phone", cell: (graph) => String(graph.version) },
  { name: "Changed", numeric: true, cell: (graph) => when(graph.changed_ms) },
];

/** One graph. `now` is what is shown of it, and what was found of failures. */
async function one(ctx, name, step) {
  ctx.title(step === null ? name : `${step} of ${name}`);
  const asked = Number(ctx.query.get("offset")) || 0;
  const offset = step === null ? asked : await pageOf(name, step, ctx.signal);
  if (ctx.signal.aborted) return;
  if (offset === null) return missing(ctx, `The graph ${name} has no step ${step}.`);
  const now = { name, chosen: step, offset, found: new Map(), keepGoing: false, details: null, notes: [] };
  const frame = {
    head: h("div", { class: "run-head" }),
    notice: h("div"),
    map: h("div", { class: "plan-place" }),
    cells: h("div", { class: "stack" }),
    foot: h("div"),
  };
  const box = h("div", { class: "run-body" });
  fill(ctx.box, box);
  now.output = liveSteps(ctx, name, {
    cells: frame.cells,
    notice: frame.notice,
    changed: () => draw(ctx, now, frame, work),
    stored: () => refresh(),
  });
  const shown = live(ctx, {
    place: box,
    isWhole: true,
    wants: (line) => ["done", "task_done"].includes(line.type),
    load: async (signal) => {
      const ended = now.output.ended();
      return { ended, details: await api.graph(name, { limit: PAGE, offset: now.offset }, signal) };
    },
    draw: ({ ended, details }) => {
      now.details = details;
      now.output.forget(ended);
      if (!frame.head.isConnected)
        fill(box, frame.head, frame.notice, frame.map, section("Steps", { id: "s-steps" }, frame.cells, frame.foot));
      draw(ctx, now, frame, work);
      if (now.isFollowed) return;
      now.isFollowed = true;
      now.output.start();
    },
  });
  const refresh = async () => (await shown).refresh();
  const work = workOf(ctx, now, refresh, () => draw(ctx, now, frame, work));
  await shown;
  const cellOf = frame.cells.querySelector(".cell.is-chosen");
  cellOf?.scrollIntoView({ block: "start" });
  cellOf?.querySelector("h3 a")?.focus({ preventScroll: true });
}

/** Before which step the page begins that has a step; null where no page has it. */
async function pageOf(name, step, signal) {
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const { steps, total } = await api.graph(name, { limit: PAGE, offset: page * PAGE }, signal);
    if (steps.some(({ id }) => id === step)) return page * PAGE;
    if (steps.length === 0 || (page + 1) * PAGE >= total) return null;
  }
  return null;
}

const mayChange = ({ graph }) =>
  !graph.of_agent && may(graph.directories.length > 0 || graph.hosts.length > 0 ? "admin" : "run");

function draw(ctx, now, frame, work) {
  const { details } = now;
  const failing = new Set(details.steps.filter(hasFailed).map(({ id }) => id));
  for (const id of [...now.found.keys()]) if (!failing.has(id)) now.found.delete(id);
  redraw(frame.head, head(ctx, now, work));
  redraw(frame.map, graphMap(now.name, details.steps, now.output.running()?.step));
  const sources = new Map(details.steps.map(({ id, source }) => [id, source]));
  const own = (step) => ({
    graph: now.name,
    sources,
    chosen: now.chosen,
    found: now.found.get(step.id),
    mayChange: mayChange(details),
    ...work,
  });
  keyed(frame.cells, details.steps, {
    key: (step) => step.id,
    mark: (step) => cellMark(now.name, step, own(step)),
    make: (step) => cell(step, own(step)),
  });
  now.output.show();
  redraw(
    frame.foot,
    details.total === 0 &&
      empty(
        "No step yet.",
        h(
          "p",
          null,
          "Add one here, or with ",
          h("code", null, `longhaul graph add ${now.name} STEP --file step.py`),
          ".",
        ),
      ),
    pager({ offset: details.offset, limit: PAGE, total: details.total }, (to) =>
      ctx.go(`${graphHref(now.name)}${api.queryOf({ offset: to || null })}`),
    ),
  );
}

function head(ctx, now, work) {
  const { graph, steps, total } = now.details;
  const running = now.output.running();
  return [
    h("p", { class: "crumbs" }, link("#/graphs", "Graphs")),
    h(
      "div",
      { class: "view-head" },
      h("h1", null, graph.name),
      mayChange(now.details) && total > 0 && runButtons(now, graph, work),
    ),
    h(
      "p",
      { class: "head-line" },
      running && status("working", [link(graphHref(now.name, running.step), running.step), ` ${liveWords(running)}`]),
      stateCounts(steps).map(([state, many]) => status(lookOf(state), `${many} ${stateWords(state)}`)),
      graph.of_agent && chip("of an agent"),
    ),
    graph.of_agent && onlyItsAgent(),
    facts([
      ["Steps", plural(total, "step")],
      ["Language", graph.language],
      ["Sees", graph.directories.length > 0 ? graph.directories.join(", ") : "no directory"],
      ["Hosts", graph.hosts.length > 0 ? graph.hosts.join(", ") : "none"],
      ["Changes", String(graph.version)],
      ["Changed", when(graph.changed_ms)],
    ]),
    mayChange(now.details) && changeButtons(ctx, now, work),
    now.notes.length > 0 &&
      h(
        "div",
        { class: "why" },
        h("h2", null, "Notes of the last run"),
        h(
          "ul",
          { class: "dots" },
          now.notes.map((note) => h("li", null, visible(note))),
        ),
      ),
  ];
}

function runButtons(now, graph, work) {
  return h(
    "div",
    { class: "actions" },
    button("Run stale", {
      kind: "main",
      sign: "run",
      focus: "run-stale",
      disabled: graph.stale === 0,
      run: () => work.run({}),
    }),
    button("Run all", { focus: "run-all", run: () => work.runAll() }),
  );
}

function changeButtons(ctx, now, work) {
  const keep = check("Also run steps that need a failed one", now.keepGoing, { data: { focus: "keep-going" } });
  keep.box.addEventListener("change", () => (now.keepGoing = keep.box.checked));
  return h(
    "div",
    { class: "toolbar" },
    button("Add a step", { small: true, sign: "add", focus: "add-step", run: () => addStep(now, work.refresh) }),
    keep.element,
    button("Remove the graph", { small: true, kind: "danger", focus: "remove-graph", run: () => askRemove(ctx, now) }),
  );
}

const askRemove = (ctx, { name }) =>
  confirm(`Remove ${name}`, "Its steps, their values and its history are removed.", "Remove it", async () => {
    await api.removeGraph(name);
    ctx.go("#/graphs");
  });

/** What is done with a graph. A run goes on when the view is left, since a step that is cut off may have acted. */
function workOf(ctx, now, refresh, draw) {
  const note = (ran) => (now.notes = runNotes(ran));
  const told = (ran) => {
    note(ran);
    toast(`${now.name}: ${runWords(ran)}.`, ran.failed.length + ran.unknown.length > 0 ? "bad" : "good");
  };
  return {
    refresh,
    note,
    run: async (order) => {
      told(await api.runGraph(now.name, { ...order, keep_going: now.keepGoing }));
      await refresh();
    },
    runAll: async () => {
      told(await runEach(ctx, now, refresh));
      await refresh();
    },
    diagnose: async (step) => {
      now.found.set(step, await api.diagnose(now.name, step));
      draw();
      announce(`Diagnosis of ${step}`);
    },
  };
}

/** Runs every step once, in order: one that an earlier one reached is not run again. Gives the sum of the runs. */
async function runEach(ctx, now, refresh) {
  const ids = await allSteps(now.name, ctx.signal);
  const sum = { ran: [], reused: [], failed: [], blocked: [], unknown: [], untouched: 0, warnings: [], discovered: [] };
  const done = new Set();
  for (let step = nextToRun(ids, done); step !== null && !ctx.signal.aborted; step = nextToRun(ids, done)) {
    const ran = await api.runGraph(now.name, { from: step, keep_going: now.keepGoing });
    taken(done, step, ran);
    for (const name of ["ran", "reused", "failed", "blocked", "unknown", "warnings"]) sum[name].push(...ran[name]);
    sum.discovered.push(...ran.discovered);
    await refresh();
  }
  return Object.fromEntries(
    Object.entries(sum).map(([name, ids]) => [name, Array.isArray(ids) ? [...new Set(ids)] : ids]),
  );
}

async function allSteps(name, signal) {
  const ids = [];
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const { steps, total } = await api.graph(name, { limit: PAGE, offset: page * PAGE }, signal);
    ids.push(...steps.map(({ id }) => id));
    if (steps.length === 0 || (page + 1) * PAGE >= total) break;
  }
  return [...new Set(ids)];
}

function addStep(now, refresh) {
  dialog(
    `Add a step to ${now.name}`,
    (close) => {
      const name = input({ name: "step", required: true });
      const code = codeArea("", { name: "source", rows: "8", run: () => asked.requestSubmit() });
      const asked = form(
        "Add a step",
        [
          field("Name", name, { name: "step", hint: "It comes after the last step, and runs in the next run." }),
          field("Source", code, { name: "source", hint: KEYS_HINT }),
        ],
        {
          action: "Add",
          cancel: close,
          submit: async () => {
            const changes = await api.addStep(now.name, { step: name.value.trim(), source: code.value });
            close();
            if (changes.failure) toast(`${name.value.trim()} does not parse: ${changes.failure.message}`, "bad");
            await refresh();
          },
        },
      );
      return asked;
    },
    { wide: true },
  );
}

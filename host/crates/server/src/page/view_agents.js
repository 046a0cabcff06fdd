// Agents as records: which there are, what one hands from run to run, and its tasks.

import * as api from "./api.js";
import { fill, h } from "./dom.js";
import { bytes, duration, pretty, words } from "./format.js";
import { live } from "./live.js";
import { errorBlock } from "./part_error.js";
import { may } from "./session.js";
import {
  button,
  empty,
  facts,
  failed,
  field,
  form,
  area,
  dialog,
  link,
  loading,
  muted,
  plain,
  redraw,
  section,
  status,
  table,
  toast,
  when,
} from "./ui.js";
import { tasks } from "./view_schedules.js";

export async function show(ctx) {
  return ctx.path[1] ? one(ctx, ctx.path[1]) : all(ctx);
}

async function all(ctx) {
  ctx.title("Agents");
  const list = h("div");
  fill(ctx.box, h("h1", null, "Agents"), list);
  await live(ctx, {
    place: list,
    load: (signal) => api.agents(signal),
    draw: ({ items }) =>
      redraw(
        list,
        items.length === 0
          ? empty(
              "No agent is registered.",
              h("p", null, "Register one with ", h("code", null, "longhaul agent add"), "."),
            )
          : table("Agents", COLUMNS, items),
      ),
  });
}

const COLUMNS = [
  {
    name: "Agent",
    cell: (one) => [
      link(`#/agents/${encodeURIComponent(one.name)}`, one.name),
      one.description && h("span", { class: "sub" }, one.description),
    ],
  },
  { name: "Kind", cell: (one) => words(one.kind) },
  { name: "Status", cell: (one) => status(one.active ? "active" : "inactive") },
  { name: "Version", numeric: true, hide: "phone", cell: (one) => String(one.version) },
  { name: "Changed", numeric: true, cell: (one) => when(one.updated_ms) },
];

async function one(ctx, name) {
  ctx.title(name);
  const head = h("div");
  const artifact = h("div");
  const own = h("div", { class: "section" });
  const ran = h("div");
  fill(ctx.box, head, ran, artifact, section("Tasks", { id: "s-tasks" }, own));
  const shown = await live(ctx, {
    place: head,
    isWhole: true,
    load: async (signal) => {
      const [agent, { artifact: held }] = await Promise.all([api.agent(name, signal), api.artifact(name, signal)]);
      return { agent, held };
    },
    draw: ({ agent, held }) => {
      redraw(
        head,
        agentHead(agent, ran, () => shown.refresh()),
      );
      redraw(artifact, artifactCard(ctx, agent, held));
    },
  });
  await tasks(ctx, own, ctx.query, name);
}

function agentHead(agent, ran, refresh) {
  return [
    h("p", { class: "crumbs" }, link("#/agents", "Agents")),
    h(
      "div",
      { class: "view-head" },
      h("div", null, h("h1", null, agent.name), agent.description && h("p", { class: "hint" }, agent.description)),
      may("run") &&
        h(
          "div",
          { class: "actions" },
          button(agent.active ? "Deactivate" : "Activate", {
            focus: "activate",
            run: async () => {
              await api.agentDo(agent.name, agent.active ? "deactivate" : "activate");
              await refresh();
            },
          }),
          button("Run it", { kind: "main", sign: "run", focus: "execute", run: () => execute(agent, ran, refresh) }),
        ),
    ),
    h(
      "p",
      { class: "head-line" },
      status(agent.active ? "active" : "inactive"),
      muted(`${words(agent.kind)} · version ${agent.version} · changed `),
      when(agent.updated_ms),
    ),
    agent.artifact_error && h("div", { role: "alert" }, errorBlock(agent.artifact_error)),
    about(agent),
  ];
}

/** What it is made of, and what it may use and reach. */
function about(agent) {
  const { kind, source, ...rest } = agent.code ?? {};
  const grants = [
    ...(agent.grants?.hosts ?? []),
    ...(agent.grants?.directories ?? []).map((one) => `${one.host} as ${one.guest}${one.write ? ", to write" : ""}`),
  ];
  const limits = agent.limits ?? {};
  const shown = (name, text, value) =>
    h(
      "details",
      { class: "fold", data: { open: name } },
      h("summary", null, text),
      plain(value, { code: true, label: text }),
    );
  return [
    facts([
      ["May reach", grants.length > 0 ? grants.join("; ") : "nothing outside of its sandbox"],
      ["Time", duration(limits.timeout_ms)],
      ["Memory", bytes(limits.memory_bytes_max)],
      ["Output kept", bytes(limits.output_bytes_max)],
      ["Schedules", agent.schedules?.length > 0 ? agent.schedules.join(", ") : null],
      ...Object.entries(rest).map(([name, value]) => [words(name), value === null ? null : String(value)]),
    ]),
    source && shown("source", `Source, ${words(kind)}`, source),
    agent.config && Object.keys(agent.config).length > 0 && shown("config", "Configuration", pretty(agent.config)),
  ];
}

function execute(agent, ran, refresh) {
  dialog(`Run ${agent.name}`, (close) => {
    const context = area("", { name: "input", class: "code", rows: "4" });
    return form(
      "Run",
      [
        field("Input, JSON", context, {
          name: "input",
          hint: "Left empty: the run gets the artifact alone.",
        }),
      ],
      {
        action: "Run",
        cancel: close,
        submit: async () => {
          const given = context.value.trim();
          const body = given === "" ? {} : { input: parse(given) };
          const result = await api.agentDo(agent.name, "execute", body);
          close();
          redraw(ran, resultCard(result));
          toast(
            result.success
              ? `${agent.name} ran.`
              : `${agent.name} failed: ${result.error_message ?? `exit code ${result.exit_code}`}`,
            result.success ? "good" : "bad",
          );
          await refresh();
        },
      },
    );
  });
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw Object.assign(new Error(`This is not JSON: ${error.message}`), { field: "input" });
  }
}

/** What code came to. */
export function resultCard(result) {
  return h(
    "div",
    { class: "card" },
    h("div", { class: "card-head" }, h("h3", null, "Result"), status(result.success ? "completed" : "failed")),
    result.error_message && errorBlock(result.error_message),
    result.stdout &&
      h("div", null, h("h4", null, "Printed"), plain(result.stdout, { code: true, label: "What it printed" })),
    result.stderr &&
      h(
        "div",
        null,
        h("h4", null, "Printed as errors"),
        errorBlock(result.stderr, { label: "What it printed as errors" }),
      ),
    result.notes?.length > 0 &&
      h(
        "ul",
        { class: "dots" },
        result.notes.map((note) => h("li", null, note)),
      ),
    facts([
      ["Exit code", String(result.exit_code ?? "–")],
      ["Took", duration(result.duration_seconds * 1000)],
    ]),
  );
}

function artifactCard(ctx, agent, held) {
  if (!held)
    return section("Artifact", { id: "s-artifact" }, empty("None yet: each run passes its artifact to the next run."));
  const history = h("details", { class: "fold", data: { open: "history" } }, h("summary", null, "Versions before"));
  const box = h("div");
  history.append(box);
  history.addEventListener("toggle", async () => {
    if (!history.open || box.childElementCount > 0) return;
    fill(box, loading());
    try {
      const { items } = await api.artifactHistory(agent.name, ctx.signal);
      fill(
        box,
        items.length === 0
          ? empty("None.")
          : h(
              "ul",
              { class: "dots" },
              items.map((one) =>
                h(
                  "li",
                  null,
                  h(
                    "details",
                    { class: "fold" },
                    h("summary", null, `version ${one.version}`, one.summary && `: ${one.summary}`),
                    one.state !== undefined && plain(pretty(one.state), { code: true }),
                  ),
                ),
              ),
            ),
      );
    } catch (error) {
      if (!ctx.signal.aborted) fill(box, failed(error));
    }
  });
  return section(
    "Artifact",
    { id: "s-artifact" },
    facts([
      ["Runs", String(held.run_count)],
      ["Version", String(held.version)],
      ["Made", when(Date.parse(held.created_at))],
      ["By", held.created_by],
    ]),
    held.summary && plain(held.summary),
    plain(pretty(held.state), { code: true, label: "State" }),
    history,
  );
}

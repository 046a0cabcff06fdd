// The plugins of a run, a rehearsal of the run on other bytes of one of them, and the move to these bytes.
//
// A rehearsal executes nothing. What a move comes to is said before it is asked for: where the rehearsal does not reach
// its end, what has begun ends on the bytes that it began with.

import * as api from "./api.js";
import { fill, h } from "./dom.js";
import { count, duration, plural } from "./format.js";
import { ENDED } from "./part_runs.js";
import { shortName } from "./part_timeline.js";
import { entryPoint, pastHref } from "./points.js";
import { may } from "./session.js";
import {
  button,
  check,
  chip,
  confirm,
  empty,
  facts,
  failed,
  field,
  form,
  link,
  loading,
  mono,
  plain,
  section,
  select,
  table,
  toast,
} from "./ui.js";

/** Invocations and plugins that are read. */
const READ_MAX = 1000;

const VERDICTS = {
  reaches_end: ["reaches its end", "good"],
  differs: ["differs", "bad"],
  cannot_tell: ["cannot be told", "wait"],
};

export function plugins(ctx, place, run) {
  let now = run;
  const list = h("div", null, loading());
  const rehearsal = h("div");
  const result = h("div", { class: "stack" });
  fill(place, h("h2", { class: "unseen" }, "Plugins"), list, rehearsal, result);
  const load = async () => {
    try {
      const [journal, installed] = await Promise.all([
        api.journal(run.run, { limit: READ_MAX }, ctx.signal),
        api.plugins({ limit: READ_MAX }, ctx.signal),
      ]);
      if (ctx.signal.aborted) return;
      const used = usedPlugins(journal.items);
      fill(list, usedSection(used, journal));
      if (may("run")) fill(rehearsal, rehearse(ctx, () => now, versionsOf(installed.items, used), result));
    } catch (error) {
      if (!ctx.signal.aborted) fill(list, failed(error, load));
    }
  };
  load();
  return (next) => {
    now = next;
  };
}

/** The plugins that worked in a run, with their tables and their work: `{plugin, tables, invocations, open}`. */
export function usedPlugins(invocations) {
  const all = new Map();
  for (const one of invocations) {
    const own = all.get(one.plugin) ?? { plugin: one.plugin, tables: new Set(), invocations: 0, open: 0 };
    own.tables.add(one.agent);
    own.invocations += 1;
    own.open += one.until_ms === null ? 1 : 0;
    all.set(one.plugin, own);
  }
  return [...all.values()].sort((a, b) => a.plugin.localeCompare(b.plugin));
}

/** Installed versions as `[reference, words]`, those of the run's plugins first. */
export function versionsOf(plugins, used) {
  const own = new Set(used.map((one) => one.plugin));
  const all = plugins.flatMap((plugin) =>
    plugin.installed.map((kept) => {
      const digest = String(kept.digest).replace(/^sha256:/, "");
      return {
        isOwn: own.has(plugin.name),
        option: [`${plugin.name}@sha256:${digest}`, `${plugin.name} ${kept.version} (${digest.slice(0, 8)})`],
      };
    }),
  );
  return [...all.filter((one) => one.isOwn), ...all.filter((one) => !one.isOwn)].map((one) => one.option);
}

function usedSection(used, { items, total }) {
  return section(
    "Plugins",
    { id: "s-used", count: used.length },
    used.length === 0
      ? empty("No plugin has worked yet.")
      : table(
          "Plugins of the run",
          [
            { name: "Plugin", cell: (one) => h("b", null, one.plugin) },
            { name: "As", cell: (one) => [...one.tables].map((name, index) => [index > 0 && ", ", mono(name)]) },
            { name: "Invocations", numeric: true, cell: (one) => count(one.invocations) },
            { name: "Not ended", numeric: true, cell: (one) => count(one.open) },
          ],
          used,
        ),
    total > items.length && h("p", { class: "hint" }, `Of the first ${items.length} invocations of ${total}.`),
  );
}

function rehearse(ctx, newest, versions, result) {
  const plugin = select([["", "As they are, on this version"], ...versions], "", { name: "plugin" });
  const settings = check("With the settings of plugins that longhaul.toml has now", false, { name: "settings" });
  return section(
    "Rehearse",
    { id: "s-rehearse" },
    h(
      "p",
      { class: "hint" },
      "Each invocation runs again and is answered from its journal alone: nothing is executed, sent or stored.",
    ),
    form(
      "Rehearse",
      [
        field("Bytes", plugin, { name: "plugin", hint: "A plugin that is installed here, and its version." }),
        settings.element,
      ],
      {
        action: "Rehearse",
        submit: async () => {
          const wanted = plugin.value || null;
          const { run } = newest();
          const body = { runs: [run], plugin: wanted, settings: settings.box.checked };
          const report = await api.rehearse(body, ctx.signal);
          fill(result, reportSection(report, wanted, newest));
          result.querySelector("h2")?.focus();
        },
      },
    ),
  );
}

function reportSection(report, wanted, newest) {
  const { plugin } = report;
  return h(
    "section",
    { class: "section", "aria-labelledby": "s-rehearsed" },
    h("div", { class: "section-head" }, h("h2", { id: "s-rehearsed", tabindex: "-1" }, "Result of the rehearsal")),
    facts([
      ["Bytes", plugin ? `${plugin.name} ${plugin.version}` : "those that the run has"],
      ["Digest", plugin && mono(String(plugin.digest).slice(0, 12))],
      ["Entries", count(report.entries)],
      ["Took", duration(report.duration_ms)],
    ]),
    report.runs.map((one) => verdictCard(one)),
    wanted !== null && report.runs.map((one) => moveBar(one, wanted, newest)),
  );
}

function verdictCard(one) {
  const [text, tone] = VERDICTS[one.verdict] ?? [one.verdict, ""];
  return h(
    "article",
    { class: "card" },
    h(
      "p",
      { class: "card-head" },
      h("span", null, link(`#/runs/${one.run}`, mono(one.run)), " ", chip(text, tone)),
      h(
        "span",
        { class: "muted" },
        `${plural(one.invocations, "invocation")} and ${plural(one.entries, "entry", "entries")} alike`,
      ),
    ),
    one.reason && plain(one.reason),
    one.difference && difference(one.run, one.difference),
  );
}

function difference(run, found) {
  const place = `entry ${found.entry} of ${shortName(found.invocation)}`;
  return h(
    "div",
    { class: "stack-small" },
    h(
      "p",
      null,
      "It differs at entry ",
      link(pastHref(run, entryPoint(found.invocation, found.entry)), String(found.entry)),
      " of ",
      link(`#/runs/${run}/journal?i=${encodeURIComponent(found.invocation)}`, shortName(found.invocation)),
    ),
    h("h3", null, "The journal has"),
    plain(found.recorded),
    h("h3", null, "The rehearsal asked"),
    plain(found.asked),
    found.lines.length > 0 &&
      h(
        "pre",
        { class: "plain code diff-lines", tabindex: "0", role: "region", "aria-label": `Difference at ${place}` },
        found.lines.map((line) => h("span", { class: LINES[line[0]] ?? "" }, plain(line).textContent)),
      ),
  );
}

const LINES = { "+": "diff-add", "-": "diff-remove" };

/** What a move would come to, and the order. */
function moveBar(one, wanted, newest) {
  const run = newest();
  if (ENDED.has(run.status)) return h("p", { class: "hint" }, "The run has ended, so it is not moved.");
  const isProved = one.verdict === "reaches_end";
  const comes = isProved
    ? "Invocations that have not ended go on with the new bytes, in the middle of their work."
    : "What has begun ends on the bytes that it began with; what begins later has the new ones: a move at a boundary.";
  const place = h("div", { class: "stack" });
  fill(
    place,
    h("p", null, "A move to these bytes: ", comes),
    h(
      "div",
      { class: "actions" },
      button(isProved ? "Move the run" : "Move the run at a boundary", {
        small: true,
        kind: isProved ? "main" : "danger",
        run: () =>
          confirm(
            "Move the run",
            `${comes} The run is rehearsed once more first. Earlier bytes are kept, and it can be moved back.`,
            "Move it",
            async () => {
              const moved = await api.move(run.run, { plugin: wanted, at_boundary: !isProved });
              fill(place, movedFacts(moved));
              toast("The run is moved.");
            },
            { danger: !isProved },
          ),
      }),
      newest().active && h("span", { class: "hint" }, "It is worked on: pause it first."),
    ),
  );
  return place;
}

function movedFacts(moved) {
  return h(
    "div",
    { class: "card" },
    h("h3", null, `Moved to ${moved.plugin.name} ${moved.plugin.version}`),
    facts([["As", moved.tables.join(", ")]]),
    h(
      "ul",
      { class: "dots" },
      Object.entries(moved.proved).map(([name, entries]) =>
        h("li", null, mono(shortName(name)), ` goes on with them, alike up to entry ${entries}`),
      ),
      moved.unmoved.map((name) => h("li", null, mono(shortName(name)), " ends on the bytes that it began with")),
    ),
  );
}

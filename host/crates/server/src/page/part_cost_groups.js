// Costs by what runs have in common: project, model, agent and day; and what each run used of its budget.
//
// Sums are the server's. Money is drawn where a price is known, and tokens otherwise, which the heading says. A share is
// never drawn without its figure.

import { h, s } from "./dom.js";
import { cost, count, money, percent, plural, short } from "./format.js";
import { ticks } from "./plot.js";
import { link, section } from "./ui.js";

/** Groups that are drawn; the smaller ones are summed up. */
const GROUPS_MAX = 12;

/** Days that are drawn, the newest. */
const DAYS_MAX = 60;

/** The known money of a usage, in millionths of a US dollar. */
export const known = (usage) => usage.cost_microdollars ?? usage.cost_microdollars_min ?? 0;

const tokens = (usage) => usage.input_tokens + usage.output_tokens;

/** How values are measured: in money, or in tokens where no price is known of any. */
export function measureOf(groups) {
  const isPaid = groups.some((group) => known(group.usage) > 0);
  return isPaid ? { name: "money", of: known, say: money } : { name: "tokens", of: tokens, say: short };
}

/** The largest groups, and one that sums up the others. */
export function largest(groups, measure, most = GROUPS_MAX) {
  const values = groups.map(({ name, count, usage }) => ({ name, count, value: measure.of(usage), usage }));
  values.sort((a, b) => b.value - a.value || a.name.localeCompare(b.name));
  if (values.length <= most) return values;
  const rest = values.slice(most - 1);
  const sum = { count: 0, value: 0, usage: null };
  for (const one of rest) {
    sum.count += one.count;
    sum.value += one.value;
  }
  return [...values.slice(0, most - 1), { name: `${rest.length} others`, ...sum }];
}

/** What is counted of a group: runs of a project, else replies of models. */
const counted = (number, noun) => plural(number, noun, noun === "reply" ? "replies" : undefined);

/** Bars of one kind of groups of `noun`; `href(name)` leads to what a group is of. */
export function groupBars(title, groups, { noun = "reply", href = () => null } = {}) {
  if (groups.length === 0) return null;
  const measure = measureOf(groups);
  const rows = largest(groups, measure);
  const top = Math.max(1, ...rows.map((row) => row.value));
  return section(
    `${title}, in ${measure.name}`,
    { id: `s-${title.toLowerCase().replaceAll(" ", "-")}` },
    h(
      "ul",
      { class: "cost-bars" },
      rows.map((row) =>
        h(
          "li",
          null,
          h(
            "span",
            { class: "cost-name" },
            row.usage && href(row.name) ? link(href(row.name), row.name) : row.name || "none",
          ),
          h(
            "span",
            {
              class: "progress-bar cap-bar",
              role: "img",
              "aria-label": `${row.name}: ${measure.say(row.value)}`,
              vars: { "--share": row.value / top },
            },
            h("span"),
          ),
          h(
            "span",
            { class: "cost-value" },
            measure.say(row.value),
            h("span", { class: "muted" }, ` · ${counted(row.count, noun)}`),
          ),
        ),
      ),
    ),
  );
}

const SIZE = { width: 960, height: 170, left: 62, bottom: 22, top: 8 };

/** The days as columns; days without a reply are gaps of their width. */
export function dayColumns(groups) {
  const measure = measureOf(groups);
  const days = everyDay(groups).slice(-DAYS_MAX);
  if (days.length === 0) return null;
  const steps = ticks(Math.max(0, ...days.map((day) => (day.usage ? measure.of(day.usage) : 0))));
  const top = steps.at(-1);
  const [width, height] = [SIZE.width - SIZE.left, SIZE.height - SIZE.bottom - SIZE.top];
  const slot = width / days.length;
  const y = (value) => SIZE.top + height - (value / top) * height;
  const said = days.filter((day) => day.usage).map((day) => `${day.name}: ${measure.say(measure.of(day.usage))}`);
  return section(
    `By day, in ${measure.name}`,
    { id: "s-by-day" },
    h(
      "figure",
      { class: "plot" },
      s(
        "svg",
        {
          class: "plot-box",
          viewBox: `0 0 ${SIZE.width} ${SIZE.height}`,
          role: "img",
          "aria-label": `By day. ${said.slice(-10).join("; ")}`,
        },
        steps.map((value) =>
          s(
            "g",
            { class: "plot-step" },
            s("line", { x1: SIZE.left, x2: SIZE.width, y1: y(value), y2: y(value) }),
            s("text", { x: SIZE.left - 6, y: y(value) + 3.5, "text-anchor": "end" }, measure.say(value)),
          ),
        ),
        days.map((day, index) => dayColumn(day, index, { measure, slot, y })),
        s("text", { class: "plot-time", x: SIZE.left, y: SIZE.height - 6 }, days[0].name),
        days.length > 1 &&
          s("text", { class: "plot-time", x: SIZE.width, y: SIZE.height - 6, "text-anchor": "end" }, days.at(-1).name),
      ),
    ),
  );
}

function dayColumn(day, index, { measure, slot, y }) {
  if (!day.usage) return null;
  const value = measure.of(day.usage);
  const text = `${day.name}: ${measure.say(value)}, ${counted(day.count, "reply")}`;
  return s(
    "rect",
    {
      class: "cost-day",
      x: SIZE.left + index * slot + slot * 0.1,
      y: Math.min(y(value), y(0) - 1),
      width: Math.min(slot * 0.8, 48),
      height: Math.max(1, y(0) - y(value)),
    },
    s("title", null, text),
  );
}

const DAY_MS = 86_400_000;

/** Each day from the first to the last, those without a reply as well. */
export function everyDay(groups) {
  const byName = new Map(groups.map((group) => [group.name, group]));
  const times = groups.map((group) => Date.parse(`${group.name}T00:00:00Z`)).filter(Number.isFinite);
  if (times.length === 0) return [];
  const [from, to] = [Math.min(...times), Math.max(...times)];
  const first = Math.max(from, to - (DAYS_MAX - 1) * DAY_MS);
  const days = [];
  for (let at = first; at <= to; at += DAY_MS) {
    const name = new Date(at).toISOString().slice(0, 10);
    days.push(byName.get(name) ?? { name, count: 0, usage: null });
  }
  return days;
}

/** What a run cost of what it may cost. */
export function budget({ usage, interrupted_usage_max, budget_microdollars }) {
  if (!(budget_microdollars > 0)) return h("span", { class: "muted" }, "no cap");
  const used = known(usage) + known(interrupted_usage_max);
  const share = used / budget_microdollars;
  return h(
    "span",
    { class: "progress" },
    h(
      "span",
      {
        class: ["progress-bar", "cap-bar", share >= 0.9 && "is-near"],
        role: "img",
        "aria-label": `${percent(used, budget_microdollars)} percent of the cap`,
        vars: { "--share": Math.min(1, share) },
      },
      h("span"),
    ),
    h("span", { class: "progress-words" }, `${money(used)} of ${money(budget_microdollars)}`),
  );
}

/** The sum of all runs in words. */
export const sumFacts = (page) => [
  ["Money", cost(page.sum)],
  ["Tokens read", count(page.sum.input_tokens)],
  ["of these cached", page.sum.cached_tokens > 0 ? count(page.sum.cached_tokens) : null],
  ["Tokens written", count(page.sum.output_tokens)],
  ["Runs", count(page.total)],
];

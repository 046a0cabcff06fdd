// The features of a run: how each stands and why, and their words and rubrics, edited in place.
//
// While somebody edits a feature, news about it do not take the form away; the server refuses an edit that comes too
// late and says so in the form. Nobody can mark a feature as passing here: only its judge does.

import * as api from "./api.js";
import { add, fill, h, keyed } from "./dom.js";
import { asText, cost, costNote, cut, plural, reason, short, words } from "./format.js";
import { fileTree } from "./part_diff.js";
import { errorBlock } from "./part_error.js";
import { editor } from "./part_feature_form.js";
import { may } from "./session.js";
import {
  area,
  button,
  chip,
  confirm,
  empty,
  facts,
  field,
  form,
  input,
  mono,
  plain,
  redraw,
  signOf,
  status,
  toast,
  toneOf,
} from "./ui.js";
import { icon } from "./icons.js";

/** Files of a commit that are listed. */
const FILES_MAX = 200;

/** Features that are shown before one asks for more. */
const SHOWN = 100;

/** Draws them; gives what takes the run's news. */
export function features(ctx, place, run) {
  let now = run;
  let most = SHOWN;
  let filter = "";
  const box = { ctx, run: () => now, refresh: async () => take(await api.status(now.run, ctx.signal)) };
  const list = h("div", { class: "features" });
  const foot = h("div");
  const search = input({
    type: "search",
    placeholder: "Filter features",
    "aria-label": "Filter features",
    data: { search: "" },
  });
  const adder = h("div");
  search.addEventListener("input", () => {
    filter = search.value.trim().toLowerCase();
    draw();
  });
  const addButton = may("run") && button("Add a feature", { sign: "add", run: () => startAdding(box, adder) });
  fill(
    place,
    h("h2", { class: "unseen" }, "Features"),
    h("div", { class: "toolbar" }, search, addButton),
    adder,
    list,
    foot,
  );

  function draw() {
    const matching = now.features.filter(
      (one) => filter === "" || `${one.id} ${one.title} ${one.status}`.toLowerCase().includes(filter),
    );
    const wanted = ctx.query.get("f");
    const shown = matching.filter((one, index) => index < most || one.id === wanted);
    keyed(list, shown, {
      key: (one) => one.id,
      mark: (one) => JSON.stringify(one),
      make: (one) => row(box, one, one.id === wanted),
    });
    redraw(
      foot,
      now.features.length === 0 &&
        empty(
          now.status === "planning" || now.status === "new" ? "The plan is being made." : "The run has no features.",
        ),
      matching.length > shown.length &&
        button(`Show ${Math.min(SHOWN, matching.length - shown.length)} more of ${matching.length}`, {
          run: () => {
            most += SHOWN;
            draw();
          },
        }),
    );
  }
  function take(next) {
    now = next;
    draw();
  }
  draw();
  const target = ctx.query.get("f");
  if (target)
    [...list.children]
      .find((one) => one.dataset.key === target)
      ?.querySelector("summary")
      ?.focus();
  return take;
}

function row(box, feature, open) {
  const body = h("div", { class: "feature-body" });
  const element = h(
    "details",
    { class: ["feature", `is-${feature.status}`], data: { open: feature.id }, open },
    h(
      "summary",
      { data: { focus: `feature-${feature.id}` } },
      h(
        "span",
        { class: ["feature-sign", `tone-${toneOf(feature.status)}`] },
        icon(signOf(feature.status), feature.status === "in_progress" ? "turning" : ""),
      ),
      h(
        "span",
        { class: "feature-name" },
        h("b", null, feature.title || feature.id),
        h("span", { class: "sub" }, mono(feature.id), feature.reason && ` · ${cut(reason(feature.reason), 140)}`),
      ),
      h(
        "span",
        { class: "feature-facts" },
        h("span", null, words(feature.status)),
        feature.attempts > 0 && chip(plural(feature.attempts, "failed attempt"), "bad"),
        feature.priority !== 5 && chip(`priority ${feature.priority}`),
      ),
    ),
    body,
  );
  let made = false;
  const make = () => {
    if (made || !element.open) return;
    made = true;
    show(box, element, body, feature);
  };
  element.addEventListener("toggle", make);
  make();
  return element;
}

/** A feature at length, to be read. */
function show(box, element, body, feature) {
  element.removeAttribute("data-held");
  const usage = feature.resource_usage?.usage;
  fill(
    body,
    feature.instruction && plain(feature.instruction),
    rubric(feature),
    feature.last_error &&
      h(
        "div",
        null,
        h("h3", null, "Last failure"),
        errorBlock(feature.last_error, { label: "Last failure", name: feature.id }),
      ),
    feature.issues?.length > 0 &&
      h(
        "div",
        null,
        h("h3", null, "Issues"),
        h(
          "ul",
          { class: "dots" },
          feature.issues.map((issue) => h("li", null, issue.criterion && [mono(issue.criterion), " "], issue.text)),
        ),
      ),
    feature.summary && h("div", null, h("h3", null, "Summary of its agent"), plain(feature.summary)),
    feature.answer && h("div", null, h("h3", null, "Answer"), plain(asText(feature.answer))),
    feature.history?.length > 0 &&
      h(
        "div",
        null,
        h("h3", null, "Rounds before"),
        h(
          "ul",
          { class: "dots" },
          feature.history.map((line) => h("li", null, line)),
        ),
      ),
    facts([
      ["Category", words(feature.category)],
      ["Priority", String(feature.priority)],
      ["Agent", feature.agent],
      ["Waits for", feature.depends_on?.length > 0 ? feature.depends_on.join(", ") : null],
      ["Blocked by", words(feature.blocked_by ?? "")],
      ["Sessions", String(feature.sessions ?? 0)],
      ["Commit", feature.commit ? mono(String(feature.commit).slice(0, 10)) : null],
      ["Passed before the work", feature.vacuous?.join(", ")],
      ["Tokens", usage ? short((usage.input_tokens ?? 0) + (usage.output_tokens ?? 0)) : null],
      ["Money", costNote(usage) ? cost(usage) : null],
    ]),
    feature.files.length > 0 &&
      h("div", null, h("h3", null, "Files of its last commit"), fileTree(feature.files.slice(0, FILES_MAX))),
    feature.status === "blocked" && feature.blocked_by === "question" && may("run") && answer(box, feature),
    may("run") && actions(box, element, body, feature),
  );
}

function rubric(feature) {
  if (!feature.criteria?.length && !feature.checks?.length) return null;
  return h(
    "div",
    null,
    h("h3", null, "Rubric"),
    h(
      "ul",
      { class: "rubric" },
      (feature.criteria ?? []).map((one) =>
        h("li", null, mono(one.id), h("span", null, one.text), one.check && chip(`check ${one.check}`)),
      ),
    ),
    feature.checks?.length > 0 &&
      h(
        "details",
        { class: "fold", data: { open: `checks-${feature.id}` } },
        h("summary", null, plural(feature.checks.length, "check")),
        feature.checks.map((one) =>
          h(
            "div",
            { class: "check-body" },
            h("p", null, h("b", null, one.name), " ", muted(one.language)),
            plain(one.body, { code: true }),
          ),
        ),
      ),
  );
}

const muted = (text) => h("span", { class: "muted" }, text);

function actions(box, element, body, feature) {
  const run = box.run().run;
  const did = (text) => async () => {
    toast(text);
    await box.refresh();
  };
  const edit = () => {
    element.setAttribute("data-held", "");
    fill(
      body,
      editor(feature, {
        cancel: () => show(box, element, body, feature),
        submit: async (spec) => {
          await api.editFeature(run, spec);
          element.removeAttribute("data-held");
          show(box, element, body, { ...feature, ...spec });
          await did(`${spec.id} is changed.`)();
          [...document.querySelectorAll("[data-focus]")]
            .find((one) => one.dataset.focus === `feature-${spec.id}`)
            ?.focus();
        },
      }),
    );
    body.querySelector("input:not([readonly]), textarea")?.focus();
  };
  return h(
    "div",
    { class: "actions" },
    feature.status !== "dropped" && button("Edit", { small: true, focus: `edit-${feature.id}`, run: edit }),
    feature.status === "in_progress" &&
      button("Stop work on it", {
        small: true,
        run: async () => {
          await api.cancelTask(run, feature.id);
          await did(`Work on ${feature.id} stops.`)();
        },
      }),
    feature.status === "passing" &&
      button("Run its checks again", {
        small: true,
        run: async () => {
          const { features: checked } = await api.recheck(run, feature.id);
          const own = checked.find((one) => one.feature === feature.id);
          toast(
            own?.failed?.length > 0
              ? `${feature.id}: ${own.failed.join(", ")} failed`
              : `${feature.id}: its checks pass.`,
            own?.failed?.length > 0 ? "bad" : "good",
          );
          await box.refresh();
        },
      }),
    feature.status !== "dropped" &&
      button("Drop", {
        small: true,
        kind: "danger",
        run: () =>
          confirm(`Drop ${feature.id}`, "It is taken off the list. What it committed stays.", "Drop", async () => {
            await api.dropFeature(run, feature.id);
            await did(`${feature.id} is dropped.`)();
          }),
      }),
  );
}

function answer(box, feature) {
  const text = area("", { rows: "3", name: "text", id: `answer-${feature.id}` });
  return form(`Answer for ${feature.id}`, [field("Your answer", text, { name: "text" })], {
    action: "Answer",
    submit: async () => {
      await api.order(box.run().run, "answer", { feature: feature.id, text: text.value, resolution: null });
      toast("Answered.");
      await box.refresh();
    },
  });
}

function startAdding(box, place) {
  if (place.childElementCount > 0) return void place.querySelector("input")?.focus();
  const fresh = {
    id: "",
    title: "",
    instruction: "",
    category: "functional",
    priority: 5,
    agent: null,
    criteria: [],
    checks: [],
    depends_on: [],
  };
  fill(
    place,
    h(
      "div",
      { class: "card" },
      h("h2", null, "New feature"),
      editor(fresh, {
        isNew: true,
        cancel: () => fill(place),
        submit: async (spec) => {
          await api.addFeature(box.run().run, spec);
          fill(place);
          toast(`${spec.id} is added.`);
          await box.refresh();
        },
      }),
    ),
  );
  place.querySelector("input")?.focus();
}

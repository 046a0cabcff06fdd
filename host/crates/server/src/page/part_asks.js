// Questions of a run to a person: approvals, and questions about effects whose outcome is unknown.

import * as api from "./api.js";
import { fill, h, keyed } from "./dom.js";
import { plural } from "./format.js";
import { approvalCard } from "./part_approvals.js";
import { tabHref } from "./part_run_head.js";
import { may } from "./session.js";
import { area, button, confirm, field, form, link, plain, toast } from "./ui.js";

/** Draws them in the live view, and elsewhere a line that says that there are some. */
export function drawAsks(place, run, open, part, refresh) {
  if (part !== "live") return drawNotice(place, run, open.total + run.questions.length);
  const items = open.items.map((approval) => ({
    key: approval.id,
    mark: approval.status,
    make: () => approvalCard(approval, { done: refresh, withRun: false }),
  }));
  for (const asked of run.questions) {
    items.push({ key: asked.id, mark: asked.id, make: () => effectCard(run, asked, refresh) });
  }
  keyed(place, items, { key: (one) => one.key, mark: (one) => one.mark, make: (one) => one.make() });
}

/** Elsewhere than in the live view one line says that somebody waits. */
function drawNotice(place, run, total) {
  const text = `${plural(total, "question")} of this run ${total === 1 ? "waits" : "wait"} for an answer`;
  fill(place, total > 0 && h("p", { class: "why tone-wait" }, link(tabHref(run.run, "live"), text)));
}

function effectCard(run, asked, refresh) {
  const answer = area("", { name: "resolution", class: "code", rows: "3" });
  const send = (resolution, text) => async () => {
    await api.order(run.run, "answer", { question: asked.id, text, resolution });
    toast("Answered.");
    await refresh();
  };
  const happened = form(
    "It happened",
    [field("What the tool is to have answered, as JSON", answer, { name: "resolution" })],
    { action: "It happened", submit: () => send({ happened: answer.value }, "it happened")() },
  );
  return h(
    "article",
    { class: "approval is-open", "aria-label": "Question" },
    h("div", { class: "approval-head" }, h("h2", null, "The run waits for you")),
    plain(asked.text),
    plain(asked.answer_command, { code: true }),
    may("run") &&
      h(
        "div",
        { class: "approval-answers" },
        h(
          "div",
          { class: "actions" },
          button("It did not happen: do it", { run: send("did_not_happen", "it did not happen") }),
          button("Skip it", {
            run: () =>
              confirm(
                "Skip it",
                "It is not done, whether it happened or not, and the agent gets an error.",
                "Skip",
                send("skip", "skip it"),
                { danger: false },
              ),
          }),
        ),
        h("details", { class: "fold" }, h("summary", null, "It happened"), happened),
      ),
  );
}

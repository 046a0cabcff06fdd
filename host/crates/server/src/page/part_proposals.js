// Changes that agents of a run propose, accepted or rejected in place.

import * as api from "./api.js";
import { h, fill } from "./dom.js";
import { live } from "./live.js";
import { may } from "./session.js";
import { button, dialog, field, form, input, plain, redraw, section, status, toast } from "./ui.js";

export function proposals(ctx, place, run) {
  const box = h("div");
  fill(place, box);
  const shown = live(ctx, {
    place: box,
    everyMs: 60_000,
    wants: (line) => line.run === run.run && line.type === "proposed",
    load: (signal) => api.proposals(run.run, signal),
    draw: ({ items }) => {
      redraw(
        box,
        items.length > 0 &&
          section(
            "Proposals",
            { id: "s-proposals", count: items.length },
            items.map((one) => card(run, one, async () => (await shown).refresh())),
          ),
      );
    },
  });
}

const WHAT = {
  add_feature: "Add a feature",
  drop_feature: "Drop a feature",
  restore_feature: "Restore a feature",
  new_project: "Make a project",
};

function card(run, one, refresh) {
  const subject = one.change.feature?.title ?? one.change.feature ?? one.change.name ?? "";
  const reject = () =>
    dialog("Reject the proposal", (close) => {
      const reason = input({ name: "reason" });
      return form("Reject", [field("Reason", reason, { name: "reason" })], {
        action: "Reject",
        cancel: close,
        submit: async () => {
          await api.rejectProposal(run.run, one.id, reason.value);
          close();
          await refresh();
        },
      });
    });
  return h(
    "article",
    { class: "card" },
    h("h3", null, WHAT[one.change.change] ?? one.change.change, subject && `: ${subject}`),
    one.reason && plain(one.reason),
    one.status !== "open"
      ? status(one.status)
      : may("run") &&
          h(
            "div",
            { class: "actions" },
            button("Accept", {
              small: true,
              kind: "main",
              run: async () => {
                await api.acceptProposal(run.run, one.id);
                toast("Accepted.");
                await refresh();
              },
            }),
            button("Reject", { small: true, run: reject }),
          ),
  );
}

// Results of a run: its commits with their changes, a revert to one of them, and its report to read or to keep.
//
// The report is read as text: the page shows no HTML that it did not build itself. To see it set out, keep the HTML file.

import * as api from "./api.js";
import { fill, h } from "./dom.js";
import { plural } from "./format.js";
import { live } from "./live.js";
import { openCommit } from "./part_commit.js";
import { fileTree } from "./part_diff.js";
import { pastHref } from "./points.js";
import { may } from "./session.js";
import { button, check, dialog, empty, fold, form, link, mono, plain, redraw, section, table, toast, when } from "./ui.js";

export async function commits(ctx, place, run) {
  const reportBox = h("div");
  const list = h("div");
  const reverted = check("Show reverted commits", false);
  const open = button("Read here", {
    run: async () => {
      const text = await (await api.report(run.run, "md")).text();
      fill(reportBox, plain(text, { code: true, label: "Report" }));
      reportBox.firstElementChild.focus?.();
    },
  });
  fill(
    place,
    section(
      "Report",
      {
        id: "s-report",
        actions: [
          open,
          ["md", "json", "html"].map((format) =>
            button({ md: "Markdown", json: "JSON", html: "HTML" }[format], {
              sign: "down",
              title: `Keep the report as ${format}`,
              run: () => keep(run.run, format),
            }),
          ),
        ],
      },
      reportBox,
    ),
    section("Commits", { id: "s-commits", actions: [reverted.element] }, list),
  );
  if (run.kind === "ask") return void fill(list, empty("An ask commits nothing."));
  const { refresh } = await live(ctx, {
    place: list,
    everyMs: 60_000,
    wants: (line) => line.run === run.run && ["commit", "reverted"].includes(line.type),
    load: (signal) => api.commits(run.run, reverted.box.checked, signal),
    draw: (log) =>
      redraw(
        list,
        log.commits.length === 0
          ? empty("No commit yet.")
          : table(
              "Commits",
              [
                {
                  name: "Commit",
                  cell: (one) => [
                    button(one.subject || "Commit", {
                      kind: "text",
                      title: "Show what it changed",
                      focus: `commit-${one.commit}`,
                      run: () => openCommit(run, one),
                    }),
                    h(
                      "span",
                      { class: "sub" },
                      mono(String(one.commit).slice(0, 10)),
                      one.outcome && ` · ${one.outcome}`,
                      " · ",
                      link(pastHref(run.run, `commit:${one.commit}`), "The run then"),
                    ),
                  ],
                },
                { name: "Feature", cell: (one) => [one.feature ?? "–", filesOf(run, one)] },
                { name: "When", numeric: true, cell: (one) => when(one.at_ms) },
                {
                  name: "Actions",
                  bare: true,
                  cell: (one) =>
                    may("run") &&
                    !run.active &&
                    !reverted.box.checked &&
                    h(
                      "span",
                      { class: "actions" },
                      button("Revert to it", { small: true, run: () => goBack(run, one, () => refresh()) }),
                    ),
                },
              ],
              log.commits,
            ),
      ),
  });
  reverted.box.addEventListener("change", () => refresh());
}

/** The files of a commit, where it is the last one of its feature: of the others the server keeps none. */
export function filesOf(run, commit) {
  const feature = run.features.find((one) => one.commit !== null && one.commit === commit.commit);
  if (!feature || feature.files.length === 0) return null;
  return fold(plural(feature.files.length, "file"), () => fileTree(feature.files.slice(0, FILES_MAX)), {
    name: `files-${commit.commit}`,
  });
}

/** Files of a commit that are listed. */
const FILES_MAX = 500;

function goBack(run, commit, refresh) {
  dialog("Revert to this commit", (close) => {
    const stash = check("Stash uncommitted work instead of refusing", false);
    return form(
      "Go back",
      [
        h(
          "p",
          null,
          `The branch is reset to “${commit.subject}”. Later commits stay reachable under a ref of their own.`,
        ),
        stash.element,
      ],
      {
        action: "Go back",
        danger: true,
        cancel: close,
        submit: async () => {
          const done = await api.revert(run.run, { to: commit.commit, stash: stash.box.checked });
          close();
          toast(`Back at ${String(done.to).slice(0, 10)}; ${done.left.length} commits left the branch.`);
          await refresh();
        },
      },
    );
  });
}

/** Keeps a file of the server under the name that the server gives it. */
async function keep(run, format) {
  const response = await api.report(run, format);
  const said = /filename="([A-Za-z0-9._-]{1,100})"/.exec(response.headers.get("content-disposition") ?? "");
  const address = URL.createObjectURL(await response.blob());
  h("a", { href: address, download: said?.[1] ?? `${run}.${format}` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

// Parts that are at work in a run right now, and the part that handed back last.

import * as api from "./api.js";
import { h } from "./dom.js";
import { duration } from "./format.js";
import { shortName } from "./part_timeline.js";
import { empty, link, redraw, section, status } from "./ui.js";

/** Pause in which several events are one look. */
const SETTLE_MS = 400;

/** Agents that are listed. */
const SHOWN = 12;

export function atWork(ctx, place, run) {
  const box = h("div");
  place.append(section("Agents", { id: "s-work" }, box));
  let timer = null;
  let active = run.active;

  async function load() {
    clearTimeout(timer);
    timer = null;
    try {
      draw(await newest(run.run, ctx.signal));
    } catch (error) {
      if (!ctx.signal.aborted && error instanceof api.ApiError) redraw(box, empty(error.message));
    }
  }
  function draw(all) {
    const shown = [...all]
      .sort((a, b) => Number(a.until_ms !== null) - Number(b.until_ms !== null) || b.from_ms - a.from_ms)
      .slice(0, SHOWN);
    redraw(
      box,
      shown.length === 0
        ? empty("No agent has worked yet.")
        : h(
            "ul",
            { class: "workers" },
            shown.map((one) => {
              const busy = one.until_ms === null && active;
              return h(
                "li",
                null,
                status(busy ? "running" : one.until_ms === null ? "paused" : "completed", one.agent || one.plugin),
                link(`#/runs/${run.run}/journal?i=${encodeURIComponent(one.invocation)}`, shortName(one.invocation)),
                h("span", { class: "muted" }, duration((one.until_ms ?? Date.now()) - one.from_ms)),
              );
            }),
          ),
    );
  }
  load();
  return {
    soon: () => {
      timer ??= setTimeout(() => !ctx.signal.aborted && load(), SETTLE_MS);
    },
    take: (next) => {
      if (next.active !== active) {
        active = next.active;
        load();
      }
    },
  };
}

/** The invocations that began last. */
async function newest(run, signal) {
  const first = await api.journal(run, { limit: 1 }, signal);
  const offset = Math.max(0, first.total - 100);
  return (await api.journal(run, { limit: 100, offset }, signal)).items;
}

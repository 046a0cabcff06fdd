// The events of a run as bars on an axis of time: sessions, invocations, models, tools and waits. Pure.
//
// A bar begins and ends with an event; one without an end is open and grows to the newest event, or to now while the
// run is worked on. A process that was killed leaves no event: it is seen where a run goes on without having stopped,
// and marked at the last event before. Bars without any length are kept, since a call of a millisecond happened, too.

/** Most rows that are drawn; the others are counted. */
export const ROWS_MAX = 300;

/** Kinds of bars, with their names for people. */
export const KINDS = {
  session: "session",
  step: "step",
  model: "model",
  tool: "tool",
  wait: "wait",
};

/** Events after which nothing is worked on, so that going on is no sign of a kill. */
const STOPS = new Set(["parked", "paused", "done", "error"]);

/**
 * `lines` are events in order. Gives `{rows, marks, from, to}`: rows `{key, name, depth, bars}` in the order of their
 * begin, bars `{kind, from, to, open, tone, title, number, invocation}`, and marks `{at, kind, title, number}`.
 */
export function chart(lines, nowMs, isActive = false) {
  const all = new Chart();
  for (const line of lines) all.take(line);
  return all.finished(isActive ? nowMs : null);
}

class Chart {
  rows = new Map();
  marks = [];
  #open = new Map();
  #begun = new Map();
  #last = null;
  #isStopped = true;

  take(line) {
    const at = line.at_ms;
    if (typeof at !== "number") return;
    TAKES[line.type]?.(this, line, line.payload ?? {});
    if (STOPS.has(line.type)) this.#isStopped = true;
    else if (line.type !== "resumed") this.#isStopped = false;
    this.#last = line;
  }

  row(key, name, depth) {
    if (!this.rows.has(key)) this.rows.set(key, { key, name, depth, bars: [] });
    return this.rows.get(key);
  }

  /** Begins a bar that an event with the same name ends. */
  begin(name, row, bar) {
    const open = { to: null, open: true, tone: "busy", ...bar };
    row.bars.push(open);
    this.#open.set(name, open);
    return open;
  }

  end(name, line, more) {
    const open = this.#open.get(name);
    if (!open) return null;
    this.#open.delete(name);
    return Object.assign(open, { to: line.at_ms, open: false }, more);
  }

  /** How often something of this name began. */
  times(name) {
    const times = (this.#begun.get(name) ?? 0) + 1;
    this.#begun.set(name, times);
    return times;
  }

  mark(kind, at, title, number) {
    this.marks.push({ kind, at, title, number });
  }

  /** The run goes on: what waited waits no more, and what is open without a stop before was killed. */
  goOn(line) {
    for (const name of ["parked", "paused"]) this.end(name, line, { tone: "wait" });
    if (this.#isStopped || this.#last === null) return this.mark("resume", line.at_ms, "Resumed", line.number);
    this.mark("kill", this.#last.at_ms, "The process ended here without a word", this.#last.number);
    for (const [name, open] of [...this.#open]) {
      if (name.startsWith("session ")) continue;
      Object.assign(open, { to: this.#last.at_ms, open: false, tone: "bad", title: `${open.title}, cut off` });
      this.#open.delete(name);
    }
    this.mark("resume", line.at_ms, "Resumed after the kill", line.number);
  }

  finished(nowMs) {
    const to = Math.max(nowMs ?? 0, this.#last?.at_ms ?? 0);
    for (const row of this.rows.values())
      for (const bar of row.bars) {
        if (bar.to === null) bar.to = to;
        if (bar.open && nowMs === null) bar.tone = "quiet";
      }
    const rows = [...this.rows.values()];
    // The axis begins with the first bar: what a run waits for before it, such as a compiler, would leave it empty.
    const begins = [...rows.flatMap((row) => row.bars.map((bar) => bar.from)), ...this.marks.map((mark) => mark.at)];
    return {
      rows: rows.slice(0, ROWS_MAX),
      hidden: Math.max(0, rows.length - ROWS_MAX),
      marks: this.marks,
      from: begins.reduce((low, at) => Math.min(low, at), to),
      to,
    };
  }
}

const short = (invocation) => String(invocation).split("/").slice(1).join(" / ") || String(invocation);
const stepRow = (all, p) => all.row(`step ${p.invocation}`, short(p.invocation), 1);

/** What each kind of event does. */
const TAKES = {
  resumed: (all, line) => all.goOn(line),
  session_starting: (all, line, p) => {
    const row = all.row(`session ${p.feature}`, p.feature, 0);
    all.begin(`session ${p.feature}`, row, bar("session", line, `Session ${p.session} of ${p.feature}`));
    if (p.session > 1) all.mark("retry", line.at_ms, `${p.feature} is tried again, session ${p.session}`, line.number);
  },
  session_complete: (all, line, p) =>
    all.end(`session ${p.feature}`, line, { tone: p.outcome === "passing" ? "good" : "bad" }),
  task_started: (all, line, p) => began(all, line, p, p.agent || p.plugin),
  delegation: (all, line, p) => began(all, line, p, p.agent),
  task_done: (all, line, p) => all.end(`step ${p.invocation}`, line, { tone: p.ok ? "good" : "bad" }),
  thought: (all, line, p) => {
    const from = line.at_ms - ("took_ms" in p ? p.took_ms : 0);
    const own = bar("model", { ...line, at_ms: from }, `Model ${p.model}`);
    stepRow(all, p).bars.push({ ...own, to: line.at_ms, open: false, tone: "busy", invocation: p.invocation });
  },
  action: (all, line, p) => {
    const own = { ...bar("tool", line, `${p.tool}.${p.function}`), invocation: p.invocation };
    all.begin(`tool ${p.invocation}#${p.step}`, stepRow(all, p), own);
  },
  observation: (all, line, p) => all.end(`tool ${p.invocation}#${p.of}`, line, { tone: p.ok ? "good" : "bad" }),
  parked: (all, line, p) => all.begin("parked", all.row("waits", "Waits", 0), waiting(line, p.question)),
  paused: (all, line) => all.begin("paused", all.row("waits", "Waits", 0), waiting(line, "Paused")),
  approval: (all, line, p) => {
    if ("decision" in p) return all.end(`approval ${p.approval}`, line, { tone: "wait" });
    return all.begin(`approval ${p.approval}`, all.row("waits", "Waits", 0), waiting(line, `Asks before ${p.call}`));
  },
  done: (all, line) => all.end("parked", line, { tone: "wait" }),
};

const bar = (kind, line, title) => ({ kind, from: line.at_ms, title, number: line.number, invocation: null });
const waiting = (line, title) => ({ ...bar("wait", line, title), tone: "wait" });

function began(all, line, p, who) {
  const name = `step ${p.invocation}`;
  const times = all.times(name);
  const title = `${who}: ${short(p.invocation)}`;
  all.begin(name, stepRow(all, p), {
    ...bar("step", line, times > 1 ? `${title}, attempt ${times}` : title),
    invocation: p.invocation,
  });
  if (times > 1) all.mark("retry", line.at_ms, `${short(p.invocation)} goes on, attempt ${times}`, line.number);
}

/** Moments of an axis: round steps of time, at most `most` of them, from the first to the last. */
export function timeTicks(from, to, most = 8) {
  const span = Math.max(1, to - from);
  const step = STEPS_MS.find((one) => span / one <= most) ?? Math.ceil(span / most / DAY_MS) * DAY_MS;
  const ticks = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) ticks.push(at);
  return ticks;
}

const DAY_MS = 86_400_000;
const STEPS_MS = [
  1,
  5,
  10,
  50,
  100,
  500,
  1_000,
  5_000,
  10_000,
  30_000,
  60_000,
  300_000,
  600_000,
  1_800_000,
  3_600_000,
  21_600_000,
  43_200_000,
  DAY_MS,
  7 * DAY_MS,
];

// The start of the page: who is there, the frame around the views, and which view an address names.
//
// It shows no data of its own. Addresses are the part behind `#`, so that a place can be kept and gone back to, and the
// token is in none of them.

import * as api from "./api.js";
import { add, fill, h } from "./dom.js";
import { icon } from "./icons.js";
import * as keys from "./keys.js";
import * as link from "./link.js";
import { listen, live } from "./live.js";
import { openPalette } from "./part_palette.js";
import * as session from "./session.js";
import { announce, button, complain, failed, loading, tick } from "./ui.js";
import { login } from "./view_login.js";
import { missing } from "./view_missing.js";

/** Where one can go: the address, its name, its sign, the key behind `g`, and the module that draws it. */
const PLACES = [
  ["projects", "Projects", "project", "p", () => import("./view_projects.js")],
  ["runs", "Runs", "run", "r", () => import("./view_runs.js")],
  ["trajectories", "Trajectories", "thought", "t", () => import("./view_trajectories.js")],
  ["approvals", "Approvals", "approval", "a", () => import("./view_approvals.js")],
  ["schedules", "Schedules", "schedule", "s", () => import("./view_schedules.js")],
  ["agents", "Agents", "agent", "n", () => import("./view_agents.js")],
  ["exec", "Run code", "exec", "x", () => import("./view_exec.js")],
  ["graphs", "Graphs", "plan", "h", () => import("./view_graphs.js")],
  ["resources", "Resources", "resource", "m", () => import("./view_resources.js")],
  ["costs", "Costs", "cost", "c", () => import("./view_costs.js")],
  ["plugins", "Plugins", "plugin", "u", () => import("./view_plugins.js")],
];

/** A run has a view of its own. */
const RUN = () => import("./view_run.js");

/** An address that names none of them. */
const MISSING = ["", "Not found", "info", "", () => import("./view_missing.js")];

const app = document.getElementById("app");
let leave = null;
let inside = null;
let wasDrawn = false;

start();

async function start() {
  keys.start();
  link.onChange(banner);
  setInterval(() => tick(), 5_000);
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById("main")?.focus();
  });
  window.addEventListener("hashchange", () => inside && route());
  session.onEnd((why) => {
    if (inside) outside(why);
  });
  const hadToken = session.bearer() !== null;
  for (let attempt = 1; ; attempt += 1) {
    try {
      const who = await api.whoami();
      session.begin(session.bearer(), who);
      enter();
      return;
    } catch (error) {
      if (error instanceof api.ApiError && error.status !== 503) {
        outside(error.status === 401 && !hadToken ? null : error.message);
        return;
      }
      await link.lost(attempt, new AbortController().signal);
    }
  }
}

/** The login, with the reason when somebody was sent out. */
function outside(why) {
  inside?.abort();
  leave?.abort();
  inside = null;
  keys.ofView([]);
  document.title = "Log in – Longhaul";
  login(app, why, (token, who) => {
    session.begin(token, who);
    enter();
  });
}

function enter() {
  inside = new AbortController();
  frame();
  listen(inside.signal);
  route();
  announce("Logged in");
}

/** The frame: where one can go, who one is, and the place for the view. */
function frame() {
  const places = h(
    "ul",
    { class: "places", id: "places" },
    PLACES.map(([path, name, sign]) =>
      h(
        "li",
        null,
        h(
          "a",
          { href: `#/${path}`, data: { place: path } },
          icon(sign),
          h("span", null, name),
          path === "approvals" && h("span", { class: "badge", id: "badge" }),
        ),
      ),
    ),
  );
  const menu = h(
    "button",
    {
      type: "button",
      class: "button menu",
      "aria-expanded": "false",
      "aria-controls": "side",
      on: { click: () => openMenu() },
    },
    icon("menu"),
    h("span", { class: "unseen" }, "Menu"),
  );
  const who = session.whoami();
  const side = h(
    "nav",
    { class: "side", id: "side", "aria-label": "Places" },
    h("a", { class: "brand", href: "#/projects" }, "Longhaul"),
    places,
    h(
      "div",
      { class: "side-foot" },
      h(
        "p",
        { class: "who" },
        who?.name ? [h("b", null, who.name), ` · ${(who.scopes ?? []).join(", ")}`] : "No token needed",
      ),
      themeSwitch(),
      h(
        "div",
        { class: "side-buttons" },
        button("Go to…", { kind: "quiet", small: true, sign: "steer", title: keys.PALETTE, run: palette }),
        button("Shortcuts", { kind: "quiet", small: true, sign: "keys", run: keys.showHelp }),
        session.bearer() &&
          button("Log out", { kind: "quiet", small: true, sign: "out", run: () => session.end(null) }),
      ),
    ),
  );
  fill(
    app,
    h("header", { class: "top" }, menu, h("a", { class: "brand", href: "#/projects" }, "Longhaul")),
    side,
    h("main", { id: "main", tabindex: "-1" }),
  );
  keys.always([
    [keys.PALETTE, "Go to a place, a project, a run or a graph", palette],
    ["?", "This list", keys.showHelp],
    ["t", "Light, dark, or as the system has it", () => setTheme(nextTheme())],
    ["/", "To the filter or search field", () => document.querySelector("main [data-search]")?.focus()],
    ["j", "Next row or event", () => keys.step(ROWS, 1)],
    ["k", "Previous row or event", () => keys.step(ROWS, -1)],
    ...PLACES.map(([path, name, , key]) => [
      `g ${key}`,
      `Go to ${name.toLowerCase()}`,
      () => (location.hash = `#/${path}`),
    ]),
  ]);
  const ctx = { signal: inside.signal };
  const badge = document.getElementById("badge");
  live(ctx, {
    place: badge,
    everyMs: 30_000,
    wants: (line) => ["approval", "parked", "paused", "done", "resumed"].includes(line.type),
    load: (signal) => api.approvals({ open: true, limit: 1 }, signal),
    draw: ({ total }) => fill(badge, total > 0 && [String(total), h("span", { class: "unseen" }, " open")]),
  });
}

const palette = () => openPalette(PLACES.map(([path, name]) => ({ name, href: `#/${path}` })));

const ROWS = "main tbody th a, main .event > summary, main .event[tabindex]";

function openMenu(open = !document.body.classList.contains("menu-open")) {
  document.body.classList.toggle("menu-open", open);
  document.querySelector(".menu")?.setAttribute("aria-expanded", String(open));
}

const THEMES = ["auto", "light", "dark"];
const theme = () => document.documentElement.dataset.theme ?? "auto";
const nextTheme = () => THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length];

function setTheme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  try {
    localStorage.setItem("longhaul.theme", name);
  } catch {
    // It lasts until the page is loaded again.
  }
  for (const one of document.querySelectorAll("[data-set-theme]"))
    one.setAttribute("aria-pressed", String(one.dataset.setTheme === name));
}

function themeSwitch() {
  return h(
    "div",
    { class: "switch", role: "group", "aria-label": "Colours" },
    THEMES.map((name) =>
      h(
        "button",
        {
          type: "button",
          title: { auto: "As the system has it", light: "Light", dark: "Dark" }[name],
          data: { setTheme: name },
          "aria-pressed": String(theme() === name),
          on: { click: () => setTheme(name) },
        },
        icon(name),
        h(
          "span",
          { class: "unseen" },
          { auto: "Colours of the system", light: "Light colours", dark: "Dark colours" }[name],
        ),
      ),
    ),
  );
}

/** Draws what the address names. */
async function route() {
  leave?.abort();
  leave = new AbortController();
  const signal = AbortSignal.any([leave.signal, inside.signal]);
  openMenu(false);
  keys.ofView([]);
  const { path, query } = address(location.hash);
  const place = PLACES.find(([name]) => name === path[0]) ?? MISSING;
  for (const one of document.querySelectorAll("[data-place]")) {
    if (one.dataset.place === place[0]) one.setAttribute("aria-current", path.length > 1 ? "true" : "page");
    else one.removeAttribute("aria-current");
  }
  const main = document.getElementById("main");
  const sameView = main.dataset.view === viewName(path);
  const box = sameView && main.firstElementChild ? main.firstElementChild : h("div", { class: "view" });
  const ctx = {
    path,
    query,
    signal,
    box,
    /** Names the view, for the window and for those who hear the page. */
    title: (text) => {
      document.title = `${text} – Longhaul`;
    },
    go: (to) => (location.hash = to),
    /** Keeps an address for what is shown already: nothing is drawn anew, and Back leaves the view. */
    keep: (to) => history.replaceState(null, "", to),
  };
  if (!sameView) fill(main, add(box, loading()));
  if (main.dataset.path !== path.join("/")) window.scrollTo(0, 0);
  main.dataset.view = viewName(path);
  main.dataset.path = path.join("/");
  try {
    const module = await (path[0] === "runs" && path[1] ? RUN() : place[4]());
    if (!signal.aborted) await module.show(ctx);
  } catch (error) {
    if (signal.aborted) return;
    if (error instanceof api.ApiError && error.status === 404) missing(ctx, error.message);
    else fill(box, h("h1", null, place[1]), failed(error, route));
  }
  if (!signal.aborted && wasDrawn && !sameView && document.activeElement === document.body)
    main.focus({ preventScroll: true });
  wasDrawn = true;
}

/** A run and a project keep their frame while one goes between their parts. */
const viewName = (path) => path.slice(0, 2).join("/");

/** `#/runs/r-1/journal?after=3` as its parts. */
function address(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const parts = path
    .split("/")
    .filter(Boolean)
    .map((one) => {
      try {
        return decodeURIComponent(one);
      } catch {
        return one;
      }
    });
  return { path: parts.length > 0 ? parts : ["projects"], query: new URLSearchParams(query) };
}

let countdown = null;

/** Says that the server cannot be reached, when the next attempt is, and that it is back. */
function banner(state, before) {
  const place = document.getElementById("banner");
  clearInterval(countdown);
  document.body.classList.toggle("is-lost", state.lost);
  if (!state.lost) {
    fill(place);
    if (before.lost) announce("Connected again");
    return;
  }
  const left = h("span", { "aria-hidden": "true" });
  const show = () => {
    const seconds = Math.max(0, Math.ceil((state.retryAtMs - Date.now()) / 1000));
    fill(left, seconds > 0 ? ` in ${seconds} s` : " now");
  };
  show();
  countdown = setInterval(show, 500);
  if (before.lost && place.childElementCount > 0) {
    place.querySelector(".banner-wait")?.replaceChildren(left);
    return;
  }
  fill(
    place,
    icon("wait"),
    h(
      "p",
      null,
      h("b", null, "Disconnected from Longhaul"),
      ", trying again",
      h("span", { class: "banner-wait" }, left),
      ". What is shown may be old.",
    ),
    button("Try now", { small: true, run: () => link.wake() }),
  );
}

window.addEventListener("unhandledrejection", (event) => {
  if (event.reason?.name === "AbortError") event.preventDefault();
  else if (event.reason instanceof api.ApiError || event.reason instanceof api.Unreachable) {
    event.preventDefault();
    complain(event.reason);
  }
});

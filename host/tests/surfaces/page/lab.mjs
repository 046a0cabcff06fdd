// What the flows share: the server as a process that can be killed, a model that talks slowly and says what no page
// should believe, and a browser of which every error and every request is noted.
//
// Nothing here asserts what the page shows.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** `{command: {program, args, env, cwd}, modules, chromium, artifacts, model_port, project}`, from the test that starts this. */
export const given = JSON.parse(process.env.PAGE_GIVEN);

const { chromium } = await import(pathToFileURL(join(given.modules, "playwright-core/index.mjs")).href);
const axeSource = readFileSync(join(given.modules, "axe-core/axe.min.js"), "utf8");

/** How long something may take before its test fails instead of hanging. */
export const PATIENCE_MS = 60_000;

/** The same for what agents and their checks do, who share two processors with other tests. */
export const WORK_MS = 240_000;

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits until `look` gives something true. */
export async function until(what, look, patienceMs = PATIENCE_MS) {
  const since = Date.now();
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() - since > patienceMs) throw new Error(`it did not come to this: ${what}`);
    await pause(40);
  }
}

/** The program with these arguments, as the test would start it. */
function start(args) {
  const { program, args: first, env, cwd } = given.command;
  const all = { ...process.env };
  for (const [name, value] of Object.entries(env)) {
    if (value === null) delete all[name];
    else all[name] = value;
  }
  return spawn(program, [...first, ...args], { env: all, cwd, stdio: ["ignore", "pipe", "pipe"] });
}

/** Runs the program to its end, with this code; what it printed. */
export async function longhaul(args, expected = 0) {
  const child = start(args);
  let [out, err] = ["", ""];
  child.stdout.on("data", (piece) => (out += piece));
  child.stderr.on("data", (piece) => (err += piece));
  const [code] = await once(child, "close");
  if (code !== expected) throw new Error(`longhaul ${args.join(" ")}: ${code}: ${out}${err}`);
  return out;
}

/** The server. Started again it listens where it did. */
export class Server {
  #child = null;
  #said = "";
  base = null;

  async start() {
    const child = start(["serve", "--listen", this.base ? new URL(this.base).host : "127.0.0.1:0"]);
    this.#child = child;
    let out = "";
    const hear = (piece) => {
      out += piece;
      this.#said = (this.#said + piece).slice(-20_000);
    };
    child.stdout.on("data", hear);
    child.stderr.on("data", hear);
    await until("the server says where it serves", () => {
      if (child.exitCode !== null) throw new Error(`the server ended: ${out}`);
      return /serving at (http:\/\/\S+)/.exec(out);
    });
    this.base = /serving at (http:\/\/\S+)/.exec(out)[1];
  }

  /** SIGKILL. */
  async kill() {
    const child = this.#child;
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "close");
  }

  async stop() {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), 20_000);
    await once(child, "close");
    clearTimeout(timer);
  }

  said = () => this.#said;
}

/** What the model says to everything: words that a page must not take for markup. */
export const HOSTILE =
  '<img src=x onerror="window.owned=1"><script>window.owned=2</script> [go](javascript:window.owned=3) \u202eback';

/** A model of the OpenAI kind that talks word by word. */
export class Model {
  /** Between two words, in milliseconds. */
  pauseMs = 5;
  asked = 0;
  #server = null;

  async start(port) {
    this.#server = createServer((request, response) => this.#answer(request, response).catch(() => response.destroy()));
    this.#server.listen(port, "127.0.0.1");
    await once(this.#server, "listening");
  }

  async #answer(request, response) {
    for await (const piece of request) void piece;
    this.asked += 1;
    response.writeHead(200, { "content-type": "text/event-stream" });
    const say = (choice, more = {}) =>
      response.write(
        `data: ${JSON.stringify({ id: "m", object: "chat.completion.chunk", created: 0, model: "fake", choices: [{ index: 0, ...choice }], ...more })}\n\n`,
      );
    const words = `${"thinking ".repeat(24)}${HOSTILE} said ${this.asked}`.split(/(?<= )/);
    for (const content of words) {
      say({ delta: { role: "assistant", content }, finish_reason: null });
      await pause(this.pauseMs);
    }
    say(
      { delta: {}, finish_reason: "stop" },
      { usage: { prompt_tokens: 120, completion_tokens: 40, total_tokens: 160 } },
    );
    response.end("data: [DONE]\n\n");
  }

  stop() {
    this.#server?.closeAllConnections();
    this.#server?.close();
  }
}

/** A browser whose pages note what goes wrong in them. */
export async function openBrowser() {
  const args = process.getuid() === 0 ? ["--no-sandbox"] : [];
  return chromium.launch({ executablePath: given.chromium, args, timeout: PATIENCE_MS });
}

/** A page, and what is to be empty when a test is over. */
export async function openPage(browser, base, options = {}) {
  const context = await browser.newContext({
    viewport: { width: 1320, height: 900 },
    acceptDownloads: true,
    ...options,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  const wrong = [];
  // The browser itself notes answers of 401 and broken connections, which are what some flows are about.
  const expected =
    /status of (401|409|412|422)|net::ERR_(CONNECTION_REFUSED|CONNECTION_RESET|CONNECTION_CLOSED|EMPTY_RESPONSE|INCOMPLETE_CHUNKED_ENCODING|CONTENT_LENGTH_MISMATCH|SOCKET_NOT_CONNECTED|ABORTED)/;
  // What the API does not have is what some flows ask for; a file of the page that is missing is wrong.
  const isMissing = (message) =>
    message.text().includes("status of 404") && message.location().url.startsWith(`${base}/api/`);
  page.on(
    "console",
    (message) =>
      ["error", "warning"].includes(message.type()) &&
      !expected.test(message.text()) &&
      !isMissing(message) &&
      wrong.push(`console: ${message.text()} ${message.location().url}`),
  );
  page.on("pageerror", (error) => wrong.push(`error: ${error.stack}`));
  page.on("dialog", (dialog) => {
    wrong.push(`dialog: ${dialog.message()}`);
    dialog.dismiss().catch(() => {});
  });
  page.on("request", (request) => {
    const url = request.url();
    // A picture with its bytes in it is asked of nobody.
    const isOwn = url.startsWith(`${base}/`) || url.startsWith("blob:") || url.startsWith("data:image/");
    if (!isOwn) wrong.push(`request to elsewhere: ${url}`);
    if (/lh_[A-Za-z0-9]/.test(url)) wrong.push(`a token in an address: ${url}`);
  });
  await page.addInitScript(() =>
    document.addEventListener("securitypolicyviolation", (event) =>
      console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`),
    ),
  );
  return { context, page, wrong };
}

/** What axe finds wrong in the page as it is. */
export async function violations(page) {
  await page.evaluate(axeSource);
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return found.violations.map(
    (one) =>
      `${one.id}: ${one.nodes
        .map((node) => node.target.join(" "))
        .slice(0, 3)
        .join("; ")}`,
  );
}

/** Keeps a picture of the page as it is, as NAME-THEME-WIDTH.png in the directory of pictures. */
export async function picture(page, name) {
  mkdirSync(given.artifacts, { recursive: true });
  const theme = await page.evaluate(
    () =>
      document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"),
  );
  const file = `${name}-${theme}-${page.viewportSize().width}.png`;
  await page.screenshot({ path: join(given.artifacts, file) });
}

/** The API, past the page. */
export function api(base, token) {
  return async (path, options = {}) => {
    const response = await fetch(`${base}${path}`, {
      ...options,
      headers: { authorization: `Bearer ${token}`, ...(options.body ? { "content-type": "application/json" } : {}) },
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
    return JSON.parse(text);
  };
}

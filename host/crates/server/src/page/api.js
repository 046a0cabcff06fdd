// Requests to the server, one function for each kind, and what went wrong in words.
//
// Every request goes to the server that sent the page and carries the token as a header. Nothing is retried here: a
// person asks again, or the view that polls does. An answer that is no JSON where JSON is due is an error.

import * as link from "./link.js";
import * as session from "./session.js";

/** How long a request may take; reports and runs of code take longer than the others. */
const PATIENCE_MS = 30_000;

/** The server refused, or could not do it. */
export class ApiError extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || `the server answered ${status}`);
    this.status = status;
    this.title = problem.title ?? "";
    this.field = problem.field ?? null;
    this.request = problem.request ?? null;
  }
}

/** No answer came. */
export class Unreachable extends Error {
  constructor() {
    super("no answer from Longhaul; the page retries");
  }
}

/** A request. `body` is sent as JSON; `query` leaves out what is null or empty, and names each of a list. */
export async function call(method, path, { query, body, signal, headers, patienceMs = PATIENCE_MS, as = "json" } = {}) {
  const response = await send(method, path + queryOf(query), { body, signal, headers, patienceMs });
  if (!response.ok) throw await problem(response);
  if (as === "response") return response;
  if (as === "text") return response.text();
  if (response.status === 204) return null;
  try {
    return await response.json();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(response.status, {
      detail: "the server's answer cannot be read; is it another version than the page? Load the page again",
    });
  }
}

async function send(method, path, { body, signal, headers, patienceMs }) {
  const token = session.bearer();
  const all = { accept: "application/json, application/problem+json, */*;q=0.5", ...headers };
  if (token) all.authorization = `Bearer ${token}`;
  if (body !== undefined) all["content-type"] = "application/json";
  const limit = AbortSignal.timeout(patienceMs);
  try {
    const response = await fetch(path, {
      method,
      headers: all,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
      referrerPolicy: "no-referrer",
    });
    link.reached();
    return response;
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Unreachable();
  }
}

/** The error of an answer that is not 2xx. */
export async function problem(response) {
  let read = {};
  try {
    read = await response.json();
  } catch {
    // A proxy in between may answer in its own way.
  }
  return refusal(response.status, typeof read === "object" && read !== null ? read : {});
}

/** The error of a problem that the server told. A token that is no longer good ends the session. */
export function refusal(status, problem) {
  const error = new ApiError(status, problem);
  if (status === 401) session.end(error.message);
  return error;
}

export function queryOf(query) {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (Array.isArray(value)) value.forEach((one) => params.append(name, String(one)));
    else if (value !== null && value !== undefined && value !== "") params.set(name, String(value));
  }
  const text = params.toString();
  return text ? `?${text}` : "";
}

const V1 = "/api/v1";
const part = encodeURIComponent;
const run = (id, rest = "") => `${V1}/runs/${part(id)}${rest}`;

const get = (path, query, signal) => call("GET", path, { query, signal });
const post = (path, body = {}, options = {}) => call("POST", path, { body, ...options });

export const whoami = (signal) => get(`${V1}/whoami`, null, signal);
export const health = (signal) => get("/health", null, signal);

export const projects = (query, signal) => get(`${V1}/projects`, query, signal);
export const createProject = (body) => post(`${V1}/projects`, body);
export const runs = (query, signal) => get(`${V1}/runs`, query, signal);
export const startRun = (body) => post(`${V1}/runs`, body);
export const ask = (body) => post(`${V1}/asks`, body);

export const status = (id, signal) => get(run(id), null, signal);
export const order = (id, what, body) => post(run(id, `/${what}`), body);
export const cancelTask = (id, task) => post(run(id, `/tasks/${part(task)}/cancel`));
export const addFeature = (id, spec) => post(run(id, "/features"), spec);
export const editFeature = (id, spec) => call("PUT", run(id, `/features/${part(spec.id)}`), { body: spec });
export const dropFeature = (id, feature) => call("DELETE", run(id, `/features/${part(feature)}`));
export const recheck = (id, feature) => post(run(id, "/recheck"), { feature }, { patienceMs: 600_000 });
export const journal = (id, query, signal) => get(run(id, "/journal"), query, signal);
export const entries = (id, invocation, after, signal) =>
  get(run(id, "/journal/entries"), { invocation, after, limit: 100 }, signal);
export const entry = async (id, invocation, number, signal) => {
  const { entries } = await get(run(id, "/journal/entries"), { invocation, after: number - 1, limit: 1 }, signal);
  return entries.find((one) => one.number === number) ?? null;
};
export const at = (id, point, signal) => get(run(id, "/at"), { point }, signal);
export const fork = (id, body, signal) => post(run(id, "/fork"), body, { signal, patienceMs: 120_000 });
export const rehearse = (body, signal) => post(`${V1}/rehearsals`, body, { signal, patienceMs: 600_000 });
export const move = (id, body) => post(run(id, "/move"), body, { patienceMs: 600_000 });
export const replay = (id, invocation) => post(run(id, "/replay"), { invocation }, { patienceMs: 600_000 });
export const commits = (id, reverted, signal) => get(run(id, "/log"), { limit: 100, reverted }, signal);
export const commit = (id, name, signal) => get(run(id, `/commits/${part(name)}`), null, signal);
export const comparison = (runs, signal) =>
  call("GET", `${V1}/comparison`, { query: { run: runs }, signal, patienceMs: 120_000 });
export const revert = (id, body) => post(run(id, "/revert"), body);
export const report = (id, format) =>
  call("GET", run(id, "/report"), { query: { format }, as: "response", patienceMs: 120_000 });
export const events = (id, after, limit, signal) => get(run(id, "/events"), { after, limit }, signal);
export const runStream = (id) => run(id, "/events/stream");
export const allStream = () => `${V1}/events/stream`;

export const approvals = (query, signal) => get(`${V1}/approvals`, query, signal);
export const answerApproval = (id, text) => post(`${V1}/approvals/${part(id)}/answer`, { text });
export const rules = (id, signal) => get(`${V1}/rules`, { run: id }, signal);
export const revokeRule = (id, rule) => call("DELETE", run(id, `/rules/${part(rule)}`));

export const decisions = (id, question, signal) => get(run(id, "/decisions"), { question, limit: 50 }, signal);
export const judge = (id, decision, body) => post(run(id, `/decisions/${part(decision)}/judge`), body);
export const memory = (id, query, signal) => get(run(id, "/memory"), { ...query, limit: 100 }, signal);
export const forget = (id, key, scope) => call("DELETE", run(id, "/memory"), { query: { key, scope } });
export const proposals = (id, signal) => get(run(id, "/proposals"), null, signal);
export const acceptProposal = (id, proposal) => post(run(id, `/proposals/${part(proposal)}/accept`));
export const rejectProposal = (id, proposal, reason) =>
  post(run(id, `/proposals/${part(proposal)}/reject`), { reason });

export const costs = (query, signal) => get(`${V1}/costs`, query, signal);

export const schedules = (signal) => get(`${V1}/schedules`, { limit: 500 }, signal);
export const addSchedule = (body) => post(`${V1}/schedules`, body);
export const schedule = (name, what) => post(`${V1}/schedules/${part(name)}/${what}`);
export const removeSchedule = (name) => call("DELETE", `${V1}/schedules/${part(name)}`);
export const tasks = (query, signal) => get(`${V1}/tasks`, query, signal);
export const retryTask = (id) => post(`/api/tasks/${part(id)}/retry`);

export const agents = (signal) => get(`${V1}/agents`, { limit: 500 }, signal);
export const agent = (name, signal) => get(`${V1}/agents/${part(name)}`, null, signal);
export const agentDo = (name, what, body) => post(`${V1}/agents/${part(name)}/${what}`, body, { patienceMs: 600_000 });
export const artifact = (name, signal) => get(`${V1}/agents/${part(name)}/artifact`, null, signal);
export const artifactHistory = (name, signal) => get(`${V1}/agents/${part(name)}/artifact/history`, null, signal);

export const plugins = (query, signal) => get(`${V1}/plugins`, query, signal);

/** Code may run for an hour; a request that is given up stops it. */
const CODE_PATIENCE_MS = 3_660_000;

/** The answer is a stream of events, which ends with the result. */
export const exec = (body, signal) =>
  post(`${V1}/exec`, body, {
    patienceMs: CODE_PATIENCE_MS,
    signal,
    headers: { accept: "text/event-stream" },
    as: "response",
  });
export const sessions = (query, signal) => get(`${V1}/exec/sessions`, query, signal);
export const endSession = (name) => call("DELETE", `${V1}/exec/sessions/${part(name)}`);

const graphAt = (name, rest = "") => `${V1}/graphs/${part(name)}${rest}`;

export const graphs = (query, signal) => get(`${V1}/graphs`, query, signal);
export const createGraph = (body) => post(`${V1}/graphs`, body);
export const removeGraph = (name) => call("DELETE", graphAt(name));
export const graphStream = (name) => graphAt(name, "/output");
export const graph = (name, query, signal) => get(graphAt(name), query, signal);
export const runGraph = (name, body) => post(graphAt(name, "/run"), body, { patienceMs: CODE_PATIENCE_MS });
export const addStep = (name, body) => post(graphAt(name, "/steps"), body);
export const changeStep = (name, step, body) =>
  call("PUT", graphAt(name, `/steps/${part(step)}`), { body, patienceMs: CODE_PATIENCE_MS });
export const removeStep = (name, step) => call("DELETE", graphAt(name, `/steps/${part(step)}`));
export const diagnose = (name, step) => post(graphAt(name, "/diagnose"), { step });

/** The messages of a trajectory are heard by a replay, which takes its time. */
const REPLAY_PATIENCE_MS = 600_000;

export const trajectories = (id, query, signal) => get(run(id, "/trajectories"), query, signal);
export const trajectory = (id, invocation, signal) =>
  call("GET", run(id, "/trajectory"), { query: { invocation }, signal, patienceMs: REPLAY_PATIENCE_MS });
export const annotate = (id, body) => post(run(id, "/trajectory/annotate"), body);
export const exportTrajectories = (id, query) =>
  call("GET", run(id, "/trajectories/export"), { query, as: "text", patienceMs: REPLAY_PATIENCE_MS });

export const resources = (signal) => get(`${V1}/resources`, null, signal);
export const workers = (signal) => get(`${V1}/workers`, null, signal);

// The session of the person at the page: the token, its scopes, and its end.
//
// The token lives in this tab alone (sessionStorage) and goes nowhere but into the Authorization header of requests to
// the server that sent the page. It is never in an address, a cookie or the document.

const KEY = "longhaul.token";

let token = read();
let who = null;
const ended = new Set();

function read() {
  try {
    return sessionStorage.getItem(KEY);
  } catch {
    return null;
  }
}

/** The token, if there is one. */
export const bearer = () => token;

/** Keeps a token that the server took. */
export function begin(newToken, whoami) {
  token = newToken;
  who = whoami;
  try {
    if (token) sessionStorage.setItem(KEY, token);
    else sessionStorage.removeItem(KEY);
  } catch {
    // Without storage it lasts until the page is loaded again.
  }
}

/** Forgets the token and tells whoever listens why. */
export function end(why) {
  const had = who !== null;
  begin(null, null);
  if (had) for (const listener of ended) listener(why);
}

/** Calls `listener(why)` when the session ends. */
export const onEnd = (listener) => ended.add(listener);

/** What `whoami` answered. */
export const whoami = () => who;

/** Scopes that hold others. `admin` holds all. */
const HOLDS = { run: ["read"], approve: ["read"], admin: ["read", "run", "approve"] };

/** Whether the token has a scope, itself or by one that holds it. The server decides; this hides what it would refuse. */
export function may(scope, scopes = who?.scopes ?? []) {
  return scopes.some((own) => own === scope || (HOLDS[own] ?? []).includes(scope));
}

// `fetch`, with `Headers`, `Request` and `Response`, over the host's HTTP.
//
// A request is made at once and the answer is there whole when the promise settles: nothing streams, and nothing is
// asked beside it. There are no cookies, no cache and no CORS. Each request of a redirect is checked by the host again.

import { exchange } from "./http.js";
import { bytesOf, decode, encode } from "./utf8.js";

const REDIRECTS_MAX = 20;
const REDIRECTS = [301, 302, 303, 307, 308];
const TEXTS = { 200: "OK", 201: "Created", 202: "Accepted", 204: "No Content", 301: "Moved Permanently", 302: "Found", 303: "See Other", 304: "Not Modified", 307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 409: "Conflict", 410: "Gone", 418: "I'm a Teapot", 422: "Unprocessable Entity", 429: "Too Many Requests", 500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout" };

/** Makes the globals; `url` gives the classes of addresses, `Promise` is that of the scripts. */
export function makeFetch(Promise, url) {
  class Headers {
    #list = [];

    constructor(init = []) {
      const pairs = typeof init?.[Symbol.iterator] === "function" ? [...init] : Object.entries(init);
      for (const [name, value] of pairs) this.append(name, value);
    }

    append(name, value) {
      this.#list.push([nameOf(name), valueOf(value)]);
    }

    set(name, value) {
      this.delete(name);
      this.append(name, value);
    }

    delete(name) {
      this.#list = this.#list.filter(([found]) => found !== nameOf(name));
    }

    get(name) {
      const values = this.#list.filter(([found]) => found === nameOf(name)).map(([, value]) => value);
      return values.length === 0 ? null : values.join(", ");
    }

    has(name) {
      return this.get(name) !== null;
    }

    getSetCookie() {
      return this.#list.filter(([name]) => name === "set-cookie").map(([, value]) => value);
    }

    forEach(callback) {
      for (const [name, value] of this) callback(value, name, this);
    }

    *entries() {
      for (const name of [...new Set(this.#list.map(([name]) => name))].sort()) yield [name, this.get(name)];
    }

    *keys() {
      for (const [name] of this) yield name;
    }

    *values() {
      for (const [, value] of this) yield value;
    }

    [Symbol.iterator]() {
      return this.entries();
    }
  }

  class Body {
    #bytes;
    #isUsed = false;

    constructor(bytes) {
      this.#bytes = bytes;
    }

    get bodyUsed() {
      return this.#isUsed;
    }

    bytes() {
      return this.#take((bytes) => bytes.slice());
    }

    arrayBuffer() {
      return this.#take((bytes) => bytes.slice().buffer);
    }

    text() {
      return this.#take((bytes) => decode(bytes).replace(/^\ufeff/, ""));
    }

    json() {
      return this.#take((bytes) => JSON.parse(decode(bytes).replace(/^\ufeff/, "")));
    }

    /** The bytes, for what is made of this body. */
    static bytesIn(body) {
      return body.#bytes;
    }

    #take(make) {
      return new Promise((resolve) => {
        if (this.#isUsed) throw new TypeError("Body is unusable: Body has already been read");
        this.#isUsed = true;
        resolve(make(this.#bytes));
      });
    }
  }

  class Request extends Body {
    constructor(input, init = {}) {
      const { bytes, type } = encoded(init.body ?? (input instanceof Request ? Body.bytesIn(input) : undefined));
      super(bytes);
      this.url = addressOf(input instanceof Request ? input.url : input).href;
      this.method = String(init.method ?? input.method ?? "GET").replace(/^(get|head|post|put|delete|options)$/i, (name) => name.toUpperCase());
      this.headers = new Headers(init.headers ?? input.headers);
      this.redirect = init.redirect ?? "follow";
      this.signal = init.signal ?? input.signal;
      if (type !== undefined && !this.headers.has("content-type")) this.headers.set("content-type", type);
      if (bytes.length > 0 && ["GET", "HEAD"].includes(this.method)) throw new TypeError("Request with GET/HEAD method cannot have body.");
    }
  }

  class Response extends Body {
    constructor(body, { status = 200, statusText = "", headers = [], url = "", redirected = false } = {}) {
      const { bytes, type } = encoded(body);
      super(bytes);
      Object.assign(this, { status, statusText, url, redirected, type: "default", headers: new Headers(headers) });
      if (type !== undefined && !this.headers.has("content-type")) this.headers.set("content-type", type);
    }

    get ok() {
      return this.status >= 200 && this.status < 300;
    }

    clone() {
      return new Response(Body.bytesIn(this), this);
    }

    static json(data, init = {}) {
      const headers = new Headers(init.headers);
      if (!headers.has("content-type")) headers.set("content-type", "application/json");
      return new Response(JSON.stringify(data), { ...init, headers });
    }
  }

  function encoded(body) {
    if (body === undefined || body === null) return { bytes: new Uint8Array() };
    if (body instanceof url().URLSearchParams) {
      return { bytes: encode(String(body)), type: "application/x-www-form-urlencoded;charset=UTF-8" };
    }
    if (body instanceof ArrayBuffer || ArrayBuffer.isView(body)) return { bytes: bytesOf(body) };
    return { bytes: encode(String(body)), type: "text/plain;charset=UTF-8" };
  }

  function addressOf(input) {
    const address = new (url().URL)(String(input));
    if (!/^https?:$/.test(address.protocol)) throw new TypeError(`fetch failed: unknown scheme ${address.protocol}`);
    return address;
  }

  function send(request) {
    let { method, url: at } = request;
    let body = Body.bytesIn(request);
    const headers = new Headers(request.headers);
    for (const [name, value] of [["accept", "*/*"], ["user-agent", "longhaul"]]) if (!headers.has(name)) headers.set(name, value);
    for (let redirects = 0; ; redirects += 1) {
      request.signal?.throwIfAborted();
      const address = addressOf(at);
      const answer = exchange({ method, url: address, headers: [...headers], body });
      const found = new Headers(answer.headers);
      const next = REDIRECTS.includes(answer.status) ? found.get("location") : null;
      if (next === null || request.redirect === "manual") {
        const { status, body: bytes } = answer;
        return new Response(bytes, { status, statusText: TEXTS[status] ?? "", headers: found, url: address.href, redirected: redirects > 0 });
      }
      if (request.redirect === "error") throw new Error("unexpected redirect");
      if (redirects === REDIRECTS_MAX) throw new Error("redirect count exceeded");
      const to = new (url().URL)(next, address);
      if (to.origin !== address.origin) for (const name of ["authorization", "cookie"]) headers.delete(name);
      if (answer.status === 303 ? method !== "HEAD" : answer.status < 303 && method === "POST") {
        [method, body] = ["GET", new Uint8Array()];
        for (const name of ["content-type", "content-length"]) headers.delete(name);
      }
      at = to.href;
    }
  }

  function fetch(input, init) {
    return new Promise((resolve) => {
      const request = new Request(input, init);
      try {
        resolve(send(request));
      } catch (error) {
        if (request.signal?.aborted) throw request.signal.reason;
        // Its reason stands in the message too, since that is what most scripts print.
        throw new TypeError(`fetch failed: ${error.message}`, { cause: error });
      }
    });
  }

  return { fetch, Headers, Request, Response };
}

function nameOf(name) {
  if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name)) throw new TypeError(`Header name must be a valid HTTP token ["${name}"]`);
  return String(name).toLowerCase();
}

function valueOf(value) {
  return String(value).trim();
}

// One exchange over HTTP through the host, which checks the request against what was granted.
//
// The answer is read whole, within the host's cap on a body, and no handle of it stays open: one that came out of
// another must be given back before it.

import outgoing from "wasi:http/outgoing-handler@0.2.12";
import types from "wasi:http/types@0.2.12";
import { decode, encode } from "./utf8.js";

/** Bytes that one blocking write takes, by the contract of wasi:io. */
const WRITE_BYTES_MAX = 4096;
const READ_BYTES_MAX = 64 << 10;

const METHODS = ["get", "head", "post", "put", "delete", "connect", "options", "trace", "patch"];

/** What the host writes by itself, and reads from what comes back. */
const OF_THE_CONNECTION = ["connection", "host", "transfer-encoding"];

/** `{ status, headers, body }` of `{ method, url, headers, body }`; an Error with the host's words when it refuses. */
export function exchange({ method, url, headers, body }) {
  const request = new types.OutgoingRequest(fields(headers));
  const name = method.toLowerCase();
  request.setMethod(METHODS.includes(name) ? { tag: name } : { tag: "other", val: method });
  request.setScheme({ tag: url.protocol === "https:" ? "HTTPS" : "HTTP" });
  request.setAuthority(url.host);
  request.setPathWithQuery(url.pathname + url.search);
  const writing = body.length > 0 ? request.body() : undefined;
  return using(asked(() => outgoing.handle(request, null)), (future) => {
    if (writing) write(writing, body);
    using(future.subscribe(), (answered) => answered.block());
    const answer = unwrapped(future.get());
    return using(answer, (response) => {
      const found = using(response.headers(), (fields) => fields.entries());
      const known = found.map(([name, value]) => [name, decode(value)]);
      return {
        status: response.status(),
        headers: known.filter(([name]) => !OF_THE_CONNECTION.includes(name.toLowerCase())),
        body: read(response),
      };
    });
  });
}

function fields(headers) {
  const sent = headers.filter(([name]) => !OF_THE_CONNECTION.includes(name.toLowerCase()));
  try {
    return types.Fields.fromList(sent.map(([name, value]) => [name, encode(value)]));
  } catch {
    throw new TypeError(`one of the headers ${sent.map(([name]) => name).join(", ")} cannot be sent`);
  }
}

function write(outgoingBody, bytes) {
  try {
    using(outgoingBody.write(), (stream) => {
      for (let at = 0; at < bytes.length; at += WRITE_BYTES_MAX) {
        stream.blockingWriteAndFlush(bytes.slice(at, at + WRITE_BYTES_MAX));
      }
    });
    types.OutgoingBody.finish(outgoingBody, null);
  } catch {
    // The host gave the request up; what it answers says why.
  }
}

function read(response) {
  const parts = [];
  let failure;
  using(response.consume(), (body) =>
    using(body.stream(), (stream) => {
      try {
        for (;;) parts.push(stream.blockingRead(READ_BYTES_MAX));
      } catch (error) {
        const { tag, val } = error.payload ?? {};
        if (tag !== "closed") failure = (tag === "last-operation-failed" && types.httpErrorCode(val)) || { tag: "HTTP-response-incomplete" };
      }
    }),
  );
  if (failure) throw errorOf(failure);
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** The response of `option<result<result<response, error-code>>>`, in the forms that bindings give it. */
function unwrapped(answer) {
  for (let at = answer; ; at = at.val) {
    if (at?.tag === "err") throw errorOf(at.val);
    if (at?.tag !== "ok" && at?.tag !== "some") return at;
  }
}

function asked(action) {
  try {
    return action();
  } catch (error) {
    throw error?.payload === undefined ? error : errorOf(error.payload);
  }
}

function errorOf(code) {
  const { tag, val } = typeof code === "string" ? { tag: code } : code ?? {};
  // The host's own words, with the grant that would allow it.
  if (tag === "internal-error" && typeof val === "string") return new Error(val);
  const words = String(tag).replaceAll("-", " ");
  const text = val === undefined || val === null ? words : `${words}: ${typeof val === "object" ? JSON.stringify(val) : val}`;
  return Object.assign(new Error(text), tag === "connection-refused" ? { code: "ECONNREFUSED" } : {});
}

function using(handle, use) {
  try {
    return use(handle);
  } finally {
    handle?.[Symbol.dispose]?.();
  }
}

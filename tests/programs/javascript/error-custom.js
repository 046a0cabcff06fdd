class NotFound extends Error {
  constructor(what, options) { super(`${what} not found`, options); this.name = "NotFound"; this.what = what; }
}
try {
  try { throw new NotFound("file"); } catch (cause) { throw new Error("load failed", { cause }); }
} catch (e) { console.log(e.message, e.cause.message, e.cause.name, e.cause instanceof NotFound, String(e.cause)); }

// The form of a person, as a job for the server. Pure.
//
// A field that was left empty is not sent, so that the server's own default holds. What only Python has is not sent for
// other languages.

const MIB = 1024 * 1024;

/** Languages: the word of the API, and its name. */
export const LANGUAGES = [
  ["python", "Python"],
  ["javascript", "JavaScript"],
  ["typescript", "TypeScript"],
];

const FIRST = new Map([
  ["python", 'print("hello")\n[n * n for n in range(5)]\n'],
  ["javascript", 'console.log("hello");\n[0, 1, 2].map((n) => n * n);\n'],
  ["typescript", 'const numbers: number[] = [0, 1, 2];\nconsole.log("hello");\nnumbers.map((n) => n * n);\n'],
]);

/** A first program in a language. */
export const firstOf = (language) => FIRST.get(language) ?? "";

/** The body of `POST /api/v1/exec`. Fields are texts as they were typed; throws an error that names its field. */
export function jobOf(fields) {
  const body = { language: fields.language, source: fields.source };
  const number = (name, by = 1) => {
    const text = (fields[name] ?? "").trim();
    if (text === "") return;
    const value = Number(text);
    if (!Number.isSafeInteger(value) || value < 1) throw faultOf(name, "Write a whole number, at least 1.");
    body[name] = value * by;
  };
  number("timeout_ms", 1000);
  number("memory_bytes_max", MIB);
  number("output_bytes_max", 1024);
  if (fields.runtime === "native") {
    body.runtime = "native";
    if (fields.venv?.trim()) body.venv = fields.venv.trim();
  } else number("fuel_max");
  if (fields.stdin) body.stdin = fields.stdin;
  if (fields.context?.trim()) body.context = contextOf(fields.context);
  if (fields.rich) body.rich = true;
  if (fields.language === "python" && fields.session) body.session = fields.session;
  return body;
}

function contextOf(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw faultOf("context", `This is not JSON: ${error.message}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw faultOf("context", 'Write an object, such as {"n": 3}.');
  return value;
}

const faultOf = (field, text) => Object.assign(new Error(text), { field });

/** The address of the view with a language and a session. */
export function execAddress({ language, session }) {
  const params = new URLSearchParams();
  if (language && language !== "python") params.set("language", language);
  if (session) params.set("session", session);
  const text = params.toString();
  return `#/exec${text ? `?${text}` : ""}`;
}

// The words of the engine's own errors as scripts know them from Node, since many a script prints them.
//
// Only those that follow from the engine's words and from the place in the source; others stay as they are.

const TURNS = [
  [/^cannot read property '(.*)' of (undefined|null)$/s, "Cannot read properties of $2 (reading '$1')"],
  [/^cannot set property '(.*)' of (undefined|null)$/s, "Cannot set properties of $2 (setting '$1')"],
  [/^'(.*)' is read-only$/s, "Assignment to constant variable."],
  [/^this is not initialized$/, "Must call super constructor in derived class before accessing 'this' or returning from derived constructor"],
  [/^([\w$]+) is not initialized$/, "Cannot access '$1' before initialization"],
  [/^invalid array length$/, "Invalid array length"],
  [/^invalid array index$/, "Invalid typed array length"],
  [/^Date value is NaN$/, "Invalid time value"],
  [/^cannot convert BigInt to number$/, "Cannot mix BigInt and other types, use explicit conversions"],
  [/^BigInt are forbidden in JSON\.stringify$/, "Do not know how to serialize a BigInt"],
  [/^cannot convert symbol to string$/, "Cannot convert a Symbol value to a string"],
  [/^private class field '(#.*)' does not exist$/, "Cannot read private member $1 from an object whose class did not declare it"],
  [/^empty array$/, "Reduce of empty array with no initial value"],
  [/^expecting hex digit$/, "URI malformed"],
  [/^invalid 'instanceof' right operand$/, "Right-hand side of 'instanceof' is not callable"],
  [/^bad normalization form$/, "The normalization form should be one of NFC, NFD, NFKC, NFKD."],
  [/^invalid value used as WeakMap key$/, "Invalid value used as weak map key"],
  [/^invalid number of digits$/, "toFixed() digits argument must be between 0 and 100"],
];
const NOT_CALLABLE = /^not a (function|constructor)$/;

/** Gives `error` its message in Node's words. `line` is the text where it was made, `column` the place there. */
export function reword(error, line, column) {
  const message = error?.message;
  if (typeof message !== "string" || message.length > 200) return;
  const turned = NOT_CALLABLE.test(message) ? calleeMessage(message, line, column) : turn(message);
  if (turned === undefined) return;
  Object.defineProperty(error, "message", { value: turned, writable: true, configurable: true });
}

function turn(message) {
  const found = TURNS.find(([pattern]) => pattern.test(message));
  return found && message.replace(...found);
}

/** `o.f is not a function`: the place is that of the last name before the bracket. */
function calleeMessage(message, line, column) {
  if (line === undefined || column === undefined) return undefined;
  const [name] = /^[\w$]+(?=\()/.exec(line.slice(column - 1)) ?? [];
  if (name === undefined) return undefined;
  const [before] = /(?:[\w$]+\.)*$/.exec(line.slice(0, column - 1));
  return `${before}${name} is ${message}`;
}

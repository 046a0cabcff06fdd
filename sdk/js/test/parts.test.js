import assert from "node:assert/strict";
import { test } from "node:test";

import { characters, cut, firstObject, Invalid, problemOf, readJson } from "longhaul-sdk";

import { makeRandom } from "../src/random.js";
import { decode, encode } from "../src/utf8.js";

test("the first object that is wanted is found in prose", () => {
  const wanted = (value) => "action" in value;
  const text = 'so {"a": 1} and {"thought": "x {\\"action\\": 0}"} then {"action": "y"} {"action": "z"}';
  assert.deepEqual(firstObject(text, wanted), { action: "y" });
  assert.equal(firstObject("{".repeat(2_000), wanted), undefined);
  assert.deepEqual(firstObject('```json\n{"action":{"b":[1]}}\n```'), { action: { b: [1] } });
});

test("JSON is read down to 100 levels", () => {
  const nested = (levels) => "[".repeat(levels) + "]".repeat(levels);
  assert.ok(readJson("it", nested(100)));
  assert.throws(() => readJson("it", nested(101)), /it cannot be read: it is nested deeper than 100 levels/);
  // Brackets in texts are no levels.
  assert.equal(readJson("it", JSON.stringify("[".repeat(500))).length, 500);
  assert.throws(() => readJson("it", ""), Invalid);
});

test("brackets, quotes and escapes in long texts are only texts", () => {
  const items = Array.from({ length: 200 }, (_, at) => [`${"]}[{".repeat(1_000)}${"\\".repeat(at)}"`]);
  const text = JSON.stringify(items);
  assert.deepEqual(readJson("it", text), items);
  assert.deepEqual(firstObject(`so: {"items":${text}}`), { items });
  assert.throws(() => readJson("it", `${"[1,".repeat(60)}"${"[".repeat(200)}`), Invalid);
  assert.equal(firstObject(`{"open: ${"{".repeat(500)}`), undefined);
});

test("a schema says what is wrong and where", () => {
  const schema = {
    type: "object",
    properties: {
      tags: { type: "array", items: { type: "string", maxLength: 2 }, minItems: 1, maxItems: 2 },
      kind: { enum: ["a", 1, null] },
      n: { type: ["number", "null"], exclusiveMinimum: 0, maximum: 5 },
    },
    additionalProperties: { type: "boolean" },
  };
  for (const [value, problem] of [
    [{}, undefined],
    [{ tags: ["a", "😀😀"], kind: null, n: null, other: true }, undefined],
    [5, "it must be object, not number"],
    [{ tags: [] }, "`tags` must have 1 item or more"],
    [{ tags: ["a", "b", "c"] }, "`tags` must have 2 items or fewer"],
    [{ tags: ["a", "abc"] }, "`tags[1]` must have 2 characters or fewer"],
    [{ kind: "b" }, '`kind` must be one of "a", 1, null'],
    [{ n: 0 }, "`n` must be more than 0"],
    [{ n: 6 }, "`n` must be 5 or less"],
    [{ n: true }, "`n` must be number or null, not boolean"],
    [{ other: 1 }, "`other` must be boolean, not number"],
  ]) {
    assert.equal(problemOf(value, schema), problem);
  }
});

// Before Node 25 there is no base64 on Uint8Array, which the engine has.
const skip = Uint8Array.fromBase64 === undefined;

test("text becomes UTF-8 and comes back", { skip }, () => {
  const plain = new TextEncoder();
  for (const text of ["", "a", "ä€😀\u0000\u{10ffff}", "x".repeat(20_000) + "ä"]) {
    assert.deepEqual(encode(text), plain.encode(text));
    assert.equal(decode(encode(text)), text);
  }
  assert.equal(decode(encode("a\ud800b")), "a\ufffdb");
  assert.throws(() => decode(new Uint8Array([0xff])), TypeError);
});

test("characters are scalar values", () => {
  assert.equal(characters("a😀ä"), 3);
  assert.equal(cut("äöü", 3), "äöü");
  assert.equal(cut("ä😀ü", 2), "ä😀… (1 more characters)");
});

test("the same seed gives the same numbers, another seed others", () => {
  const drawn = (byte) => {
    const random = makeRandom();
    random.seed(new Uint8Array(16).fill(byte));
    return Array.from({ length: 1_000 }, random.next);
  };
  assert.deepEqual(drawn(1), drawn(1));
  assert.notDeepEqual(drawn(1), drawn(2));
  assert.ok(drawn(3).every((number) => number >= 0 && number < 1));
  assert.ok(Math.abs(drawn(4).reduce((sum, number) => sum + number) / 1_000 - 0.5) < 0.05);
});

import assert, { strictEqual } from "node:assert";
import { join } from "node:path";
import * as util from "node:util";
strictEqual(1, 1);
assert.deepEqual({ a: [1] }, { a: [1] });
console.log(join("a", "..", "b", "c.txt"), util.format("%s-%d", "x", 5), typeof import.meta.url);
const { basename } = await import("node:path");
console.log(basename("/x/y.tar.gz", ".gz"));

const assert = require("assert");
try { assert.strictEqual(1, 2); } catch (e) { console.log(e.name, e.code); }
try { assert(false, "told"); } catch (e) { console.log(e.message); }
assert.throws(() => { throw new TypeError("bad"); }, TypeError);
console.log("last");
assert.equal(1, 2);

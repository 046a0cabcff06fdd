function* inner() { const r = yield "a"; return r + "!"; }
function* outer() { const v = yield* inner(); yield v; yield* "xy"; }
const it = outer();
console.log(it.next().value, it.next("hey").value, [...it]);

"use strict";
const o = Object.freeze({ a: 1 });
try { o.a = 2; } catch (e) { console.log(e.name); }
try { delete o.a; } catch (e) { console.log(e.name); }
console.log(Object.isFrozen(o), Object.isSealed(Object.seal({})), Object.getOwnPropertyDescriptor(o, "a"));

class Config { static values; static { Config.values = Object.freeze({ a: 1 }); } }
try { "use strict"; Config.values.a = 2; } catch (e) { console.log(e.name); }
console.log(Config.values, Object.isFrozen(Config.values));

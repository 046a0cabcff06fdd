const compose = (...fs) => (x) => fs.reduceRight((v, f) => f(v), x);
const curry = (f) => function c(...a) { return a.length >= f.length ? f(...a) : (...b) => c(...a, ...b); };
console.log(compose((x) => x + 1, (x) => x * 2)(5), curry((a, b, c) => a + b + c)(1)(2)(3));

console.log(early(), typeof late);
function early() { return "hoisted"; }
var late = 1;
console.log((function () { return arguments.length; })(1, 2), (() => {}).name, new Function("a", "b", "return a * b")(3, 4));

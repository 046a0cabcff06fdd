console.group("outer");
console.log("in\nside");
console.group();
console.info("deeper");
console.groupEnd();
console.groupEnd();
console.log("out");

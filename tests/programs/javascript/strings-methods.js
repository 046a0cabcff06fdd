const s = "  Hello, World  ";
console.log(s.trim().toLowerCase().split("").reverse().join(""), s.padEnd(18, "*"), "abc".at(-1), "a-b-c".replaceAll("-", "+"), "abc".localeCompare("abd"));
console.log("x".repeat(3), "hello".slice(-3, -1), "hello".substring(3, 1), "hello".indexOf("l"), "hello".lastIndexOf("l"), "a,b".split(","), "ß".toUpperCase(), "I".toLowerCase());

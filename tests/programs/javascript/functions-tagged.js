const tag = (parts, ...values) => parts.raw.join("|") + values.join("/");
console.log(tag`a${1}b\n${2}c`, String.raw`x\ny${3}`);

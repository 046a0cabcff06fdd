const { createHash, createHmac, randomUUID, randomBytes } = require("crypto");
for (const a of ["md5", "sha1", "sha256", "sha512"]) console.log(a, createHash(a).update("hello").update(" world").digest("hex"));
console.log(createHmac("sha256", "key").update("data").digest("base64"), /^[0-9a-f-]{36}$/.test(randomUUID()), randomBytes(4).length);

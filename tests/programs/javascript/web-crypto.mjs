const hex = (b) => [...new Uint8Array(b)].map((x) => x.toString(16).padStart(2, "0")).join("");
for (const a of ["SHA-1", "SHA-256", "SHA-384", "SHA-512"]) console.log(a, hex(await crypto.subtle.digest(a, new TextEncoder().encode("abc"))));
const r = crypto.getRandomValues(new Uint32Array(4));
console.log(r.length, r.some((x) => x > 0), crypto.randomUUID().length);
await crypto.subtle.digest("MD5", new Uint8Array()).catch((e) => console.log(e.name));

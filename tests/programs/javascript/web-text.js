const bytes = new TextEncoder().encode("h€llo 👍");
console.log(bytes, new TextDecoder().decode(bytes), new TextDecoder("utf-8", { fatal: false }).decode(new Uint8Array([0xff, 65])));
try { new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array([0xc0])); } catch (e) { console.log(e.name); }
console.log(new TextEncoder().encodeInto("é€", new Uint8Array(4)));

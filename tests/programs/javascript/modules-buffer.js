const b = Buffer.from("héllo wörld");
console.log(b.length, b.toString("hex"), b.toString("base64"), Buffer.from("aGk=", "base64").toString(), b.slice(0, 3));
console.log(Buffer.concat([Buffer.from([1, 2]), Buffer.alloc(2, 7)]), Buffer.byteLength("€"), Buffer.compare(Buffer.from("a"), Buffer.from("b")), b.equals(Buffer.from("héllo wörld")));
const w = Buffer.alloc(8);
w.writeUInt32BE(0xdeadbeef, 0); w.writeInt16LE(-2, 4);
console.log(w, w.readUInt32BE(0), w.readInt16LE(4), JSON.stringify(Buffer.from("ab")));

const p = new URLSearchParams({ q: "a b", lang: "en" });
p.set("q", "ö&="); p.append("t", 1); p.delete("lang"); p.append("a", "z"); p.sort();
console.log(p.toString(), [...p.entries()], p.has("t"), [...new URLSearchParams("?a=%20+b&c").values()], p.size);

class Trie { root = {}; add(w) { let n = this.root; for (const c of w) n = n[c] ??= {}; n.$ = true; } find(p) { let n = this.root; for (const c of p) if (!(n = n[c])) return []; const out = []; (function go(n, s) { if (n.$) out.push(s); for (const c of Object.keys(n)) if (c !== "$") go(n[c], s + c); })(n, p); return out; } }
const t = new Trie();
["car", "card", "care", "dog"].forEach((w) => t.add(w));
console.log(t.find("car"), t.find("x"), t);

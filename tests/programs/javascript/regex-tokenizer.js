const tokens = (s) => [...s.matchAll(/\s*(?:(\d+\.?\d*)|(\w+)|(.))/g)].map(([, n, w, o]) => n ? { n: +n } : w ? { w } : { o });
console.log(tokens("x = 3.5 * (y + 2)"));
const calc = (s) => { const t = s.match(/\d+|[-+*/()]/g); let i = 0; const f = () => t[i] === "(" ? (i++, [e(), i++][0]) : +t[i++]; const m = () => { let v = f(); while ("*/".includes(t[i] ?? "x")) v = t[i++] === "*" ? v * f() : v / f(); return v; }; const e = () => { let v = m(); while ("+-".includes(t[i] ?? "x")) v = t[i++] === "+" ? v + m() : v - m(); return v; }; return e(); };
console.log(calc("2+3*(4-1)/2-1"));

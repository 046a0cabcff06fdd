const quick = ([p, ...r]) => p === undefined ? [] : [...quick(r.filter((x) => x < p)), p, ...quick(r.filter((x) => x >= p))];
const merge = (l) => { if (l.length < 2) return l; const m = l.length >> 1, [a, b] = [merge(l.slice(0, m)), merge(l.slice(m))], o = []; while (a.length && b.length) o.push(a[0] <= b[0] ? a.shift() : b.shift()); return [...o, ...a, ...b]; };
const xs = [5, 2, 9, 1, 5, 6, -3];
console.log(quick(xs), merge(xs));

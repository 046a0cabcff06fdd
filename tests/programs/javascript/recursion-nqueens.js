const solve = (n, r = 0, c = [], out = []) => { if (r === n) out.push(c); else for (let x = 0; x < n; x++) if (c.every((y, i) => y !== x && Math.abs(y - x) !== r - i)) solve(n, r + 1, [...c, x], out); return out; };
console.log(solve(6), solve(7).length);

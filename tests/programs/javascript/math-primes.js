const sieve = (n) => { const c = new Uint8Array(n + 1); const out = []; for (let i = 2; i <= n; i++) { if (c[i]) continue; out.push(i); for (let j = i * i; j <= n; j += i) c[j] = 1; } return out; };
console.log(sieve(100).join(" "), sieve(20000).length);

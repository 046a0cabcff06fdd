const memo = (f, seen = new Map()) => (n) => seen.has(n) ? seen.get(n) : (seen.set(n, f(n)), seen.get(n));
const fib = memo((n) => (n < 2 ? n : fib(n - 1) + fib(n - 2)));
console.log(fib(80));

const f = (n) => (n < 2n ? 1n : n * f(n - 1n));
console.log(f(30n), typeof f(3n), 7n / 2n, -7n % 3n, 2n ** 64n, BigInt.asUintN(8, 257n), 10n > 9);
console.log([1n, 2n], { big: 5n }, BigInt("0xff"), Number(123n));

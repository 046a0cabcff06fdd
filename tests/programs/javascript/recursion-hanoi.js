let moves = 0;
const hanoi = (n, a, b, c) => n && (hanoi(n - 1, a, c, b), moves++, hanoi(n - 1, c, b, a));
hanoi(12, "A", "B", "C");
console.log(moves);

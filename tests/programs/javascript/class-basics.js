class Point {
  constructor(x, y) { this.x = x; this.y = y; }
  get length() { return Math.hypot(this.x, this.y); }
  static origin = new Point(0, 0);
  toString() { return `(${this.x}, ${this.y})`; }
}
console.log(new Point(3, 4).length, `${new Point(1, 2)}`, Point.origin, new Point(1, 2));

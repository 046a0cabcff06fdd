console.log("aBc".match(/[a-z]/gi), "a\nb".match(/^b/m)?.index, /a.c/s.test("a\nc"), /\u{1F600}/u.test("😀"), "x1y2".split(/\d/), "a,b;c".split(/([,;])/));
const sticky = /foo/y; sticky.lastIndex = 3;
console.log(sticky.test("barfoo"), sticky.lastIndex, /p/g.flags, String(/a\/b/));

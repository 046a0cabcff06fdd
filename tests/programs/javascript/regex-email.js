const ok = (s) => /^[\w.+-]+@[\w-]+\.[\w.]{2,}$/.test(s);
console.log(["a@b.co", "x.y+z@d-e.org", "no@", "@no.com", "a b@c.de"].map(ok), /[\p{L}]+/u.exec("été 1")[0], "naïve café".match(/\p{Lu}|\p{Ll}+/gu));

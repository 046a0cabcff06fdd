const rot = (s, n) => s.replace(/[a-z]/gi, (c) => { const b = c <= "Z" ? 65 : 97; return String.fromCharCode(((c.charCodeAt(0) - b + n + 26) % 26) + b); });
console.log(rot("Hello, World!", 3), rot(rot("Hello, World!", 3), -3), btoa("hi"), atob("aGk="));

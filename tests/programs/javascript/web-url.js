const u = new URL("https://user:pw@Example.COM:8443/a/b/../c%20d?x=1&y=2&x=3#frag");
console.log(u.host, u.pathname, u.searchParams.getAll("x"), u.hash, u.origin, u.username, String(u));
u.searchParams.append("z", "a b&c"); u.port = "443"; u.hash = ""; u.pathname = "/ü";
console.log(u.href, new URL("../up?q", "http://h/a/b/c").href, u.searchParams.get("none"));
try { new URL("not a url"); } catch (e) { console.log(e.name, e.code); }

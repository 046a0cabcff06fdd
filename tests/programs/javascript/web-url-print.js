console.log(new URL("http://a.b/c?d=e#f"), new URLSearchParams("a=1&b=2"), [new URL("http://x/")].length, URL.canParse?.("x:y"));

from urllib.parse import urlparse, parse_qs, urlencode, quote, unquote, urljoin
u = urlparse("https://user@host:8080/a/b?x=1&x=2&y=#frag")
print(u.netloc, u.port, u.path, parse_qs(u.query, keep_blank_values=True), urlencode({"q": "a b", "e": "ü&"}), quote("a/b c"), unquote("%E2%82%AC"), urljoin("http://h/a/b", "../c"))

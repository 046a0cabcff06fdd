s = "  Hello, World  "
print(s.strip().lower(), "a-b".split("-"), "-".join("abc"), "x".center(5, "*"), "abc".find("z"), "aXbX".replace("X", "_", 1), "ab\ncd".splitlines(), "Hello".swapcase(), "title case".title(), "abc".startswith(("x", "a")), "a=b=c".partition("="), "7".zfill(3), "ß".upper(), "ab".isalpha(), "prefix-x".removeprefix("prefix-"), "%".join(["1", "2"]))
print("a,b,,c".split(","), " a  b ".split(), "abc".translate(str.maketrans("ab", "xy")), "hello".count("l"), "x\ty".expandtabs(4), "1.5".replace(".", "").isdigit(), "Straße".casefold())

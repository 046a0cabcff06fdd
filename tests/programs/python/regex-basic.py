import re
print(re.findall(r"\d+", "a1b22"), re.sub(r"(\w+) (\w+)", r"\2 \1", "hello world"), re.split(r"[,;]\s*", "a, b;c"), re.match("b", "ab"), re.search("b", "ab").span(), re.fullmatch(r"\w+", "abc").group())
m = re.match(r"(?P<y>\d{4})-(?P<m>\d\d)", "2024-05"); print(m.groups(), m["y"], m.groupdict(), m)

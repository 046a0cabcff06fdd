def ok(s):
    c = [x.lower() for x in s if x.isalnum()]; return c == c[::-1]
print([ok(s) for s in ("A man, a plan, a canal: Panama", "nope", "")])

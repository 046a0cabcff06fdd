import re
tokens = [m.lastgroup + ":" + m.group() for m in re.finditer(r"(?P<num>\d+\.?\d*)|(?P<name>\w+)|(?P<op>[-+*/()=])", "x = 3.5 * (y + 2)")]
print(tokens)
def calc(s):
    t = re.findall(r"\d+|[-+*/()]", s); i = 0
    def factor():
        nonlocal i
        if t[i] == "(":
            i += 1; v = expr(); i += 1; return v
        i += 1; return int(t[i - 1])
    def term():
        nonlocal i
        v = factor()
        while i < len(t) and t[i] in "*/":
            o = t[i]; i += 1; v = v * factor() if o == "*" else v / factor()
        return v
    def expr():
        nonlocal i
        v = term()
        while i < len(t) and t[i] in "+-":
            o = t[i]; i += 1; v = v + term() if o == "+" else v - term()
        return v
    return expr()
print(calc("2+3*(4-1)/2-1"))

text = """one
  two \
joined
"""
print(text, repr(text), r"raw\n", "a" "b", '"', 'it\'s', "tab\tx", "\x41\u00e9\N{BULLET}")

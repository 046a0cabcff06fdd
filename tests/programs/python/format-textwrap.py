import textwrap
print(textwrap.fill("the quick brown fox jumps over the lazy dog", 15), textwrap.dedent("  a\n    b\n"), textwrap.shorten("hello big world", 10), textwrap.indent("x\ny", "> "), sep="\n")

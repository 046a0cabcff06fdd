print("never"
def f(:

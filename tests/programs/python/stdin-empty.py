import sys
print(repr(sys.stdin.read()))
try: input("prompt ")
except EOFError: print("EOFError")

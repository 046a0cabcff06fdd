import sys
print("a"); sys.exit(3); print("b")

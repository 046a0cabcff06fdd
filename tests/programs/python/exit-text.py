import sys
print("out"); sys.exit("told on standard error")

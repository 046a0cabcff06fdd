import sys
print("out"); print("err", file=sys.stderr); sys.stdout.write("w\n"); sys.stderr.write("e\n")

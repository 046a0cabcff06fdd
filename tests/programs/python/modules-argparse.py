import argparse
p = argparse.ArgumentParser(prog="tool"); p.add_argument("file"); p.add_argument("-n", type=int, default=3); p.add_argument("--flag", action="store_true")
print(vars(p.parse_args(["x.txt", "-n", "5"])), vars(p.parse_args(["y", "--flag"])))
p.parse_args(["z", "--bogus"])

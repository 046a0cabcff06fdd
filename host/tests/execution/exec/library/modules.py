# Imports every module of the standard library, and prints a row of a table for each that cannot be.
import sys

# The first opens a browser, the second prints a poem.
NOISY = {"antigravity", "this"}

names = sorted(name for name in sys.stdlib_module_names if not name.startswith("_"))
reasons = {}
for name in names:
    try:
        if name not in NOISY:
            __import__(name)
    except ImportError as error:
        reasons[name] = str(error).partition(": ")[2] or str(error)

there = [name for name in names if name not in reasons]
print(f"Of {len(names)} modules {len(there)} can be imported:")
print()
print(", ".join(f"`{name}`" for name in there) + ".")
print()
print("| cannot be imported | why |")
print("|---|---|")
for name, reason in reasons.items():
    print(f"| `{name}` | {reason} |")

x, name = 3.14159, "Zoë"
print(f"{x:.2f} {x:>10.3f}| {name!r} {name:*^9} {1234567:,} {0.256:.1%} {255:#x} {5:03d} {x=:.1f} {'nested ' + name:>12} {{}} {10:b} {1e10:g}")
print(f"{'a' if x > 3 else 'b'} {[i for i in range(3)]} {x:{8}.{3}}")

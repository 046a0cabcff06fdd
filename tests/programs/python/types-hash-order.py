print({"b", "a", "c"} == {"c", "b", "a"}, list({3: 0, 1: 0, 2: 0}), sorted({"z": 1, "y": 2}.items()), [hash(1), hash(1.0), hash(True)], {1: "a", 1.0: "b", True: "c"})

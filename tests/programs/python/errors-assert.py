print("a"); assert 1 + 1 == 3, "math is broken"; print("b")

print("before")
raise ValueError("nobody catches this")

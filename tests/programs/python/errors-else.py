def f(x):
    try: r = 10 / x
    except ZeroDivisionError: return "zero"
    except (TypeError, ValueError) as e: return type(e).__name__
    else: return r
    finally: print("f", x)
print(f(2), f(0), f("a"))

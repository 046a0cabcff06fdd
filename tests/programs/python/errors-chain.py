class AppError(Exception): pass
try:
    try: int("x")
    except ValueError as e: raise AppError("load failed") from e
except AppError as e: print(e, type(e.__cause__).__name__, e.__cause__, e.__suppress_context__)
try:
    try: 1 / 0
    finally: print("cleanup")
except ZeroDivisionError: print("outer")
else: print("never")

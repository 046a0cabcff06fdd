try: open("/nowhere/file")
except FileNotFoundError as e: print(type(e).__name__)
print(__import__("os").path.exists("/nowhere"))

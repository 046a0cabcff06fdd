try: raise SystemExit(5)
except SystemExit as e: print("caught", e.code)
raise SystemExit(256 + 7)

def quit_now(code): raise SystemExit(code)
try: quit_now(9)
finally: print("finally runs")

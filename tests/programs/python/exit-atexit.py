import atexit
atexit.register(print, "at exit"); atexit.register(lambda: print("first"))
print("main")

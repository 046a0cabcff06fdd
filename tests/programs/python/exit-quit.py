print("before"); quit(4)

import traceback
def inner(): raise KeyError("k")
try: inner()
except KeyError:
    text = traceback.format_exc()
    print(text.splitlines()[0], text.splitlines()[-1])

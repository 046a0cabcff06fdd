import os
print("HOME" in os.environ, os.environ.get("NOTHING", "default")); os.environ["X"] = "1"; print(os.getenv("X"))

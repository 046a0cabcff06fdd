import os, sys
print("flushed"); sys.stdout.flush(); os._exit(6)

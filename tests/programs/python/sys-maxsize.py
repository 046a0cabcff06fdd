import sys
print(sys.maxsize, sys.platform)

import sys, os
print(type(sys.argv[0]).__name__, len(sys.argv), sys.byteorder, sys.maxsize > 2 ** 30, __name__, sys.version_info >= (3, 9), os.sep, os.linesep == "\n", sys.getrecursionlimit())

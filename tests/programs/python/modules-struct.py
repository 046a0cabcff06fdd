import struct, array
print(struct.pack(">IhB", 1, -2, 3), struct.unpack("<d", struct.pack("<d", 0.1)), struct.calcsize("=Qc"), array.array("i", [1, 2]).tobytes(), memoryview(b"abc")[1:].tolist())

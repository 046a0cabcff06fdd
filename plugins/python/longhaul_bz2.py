"""The half of `_bz2` that a source needs to read what others packed, in Python, where the library in C is not there.

It reads streams of bzip2, some 100 KB a second, checks their sums, and packs nothing: use `gzip` for that.
"""

# The number of symbols between two choices of a table, by the format.
_GROUP = 50

_BLOCK, _END = 0x314159265359, 0x177245385090


def _sums():
    for byte in range(256):
        value = byte << 24
        for _ in range(8):
            value = (value << 1) ^ 0x04C11DB7 if value & 0x80000000 else value << 1
        yield value & 0xFFFFFFFF


_SUMS = tuple(_sums())


class BZ2Compressor:
    def __init__(self, compresslevel=9):
        raise OSError("bzip2 is read and not written here; use `gzip` or `zlib`")


class BZ2Decompressor:
    """As that of `bz2`."""

    def __init__(self):
        self._input, self._output = bytearray(), bytearray()
        self._bits, self._left, self._read = 0, 0, 0
        self._sum = 0
        self._steps = self._stream()
        self._is_done = False
        self.unused_data = b""

    @property
    def eof(self):
        return self._is_done and not self._output

    @property
    def needs_input(self):
        return not self._is_done and not self._output

    def decompress(self, data, max_length=-1):
        if self.eof:
            raise EOFError("End of stream already reached")
        self._input += data
        while not self._is_done and (max_length < 0 or len(self._output) < max_length):
            try:
                if next(self._steps):
                    break
            except StopIteration:
                self._is_done = True
                self.unused_data = bytes(self._input[self._read :])
        length = len(self._output) if max_length < 0 else max_length
        given = bytes(self._output[:length])
        del self._output[:length]
        return given

    # Generators: they give true where they need more input, and false after a block.

    def _take(self, count):
        while self._left < count:
            if self._read == len(self._input):
                yield True
                continue
            part = self._input[self._read : self._read + 64]
            self._read += len(part)
            self._bits = (self._bits << 8 * len(part)) | int.from_bytes(part)
            self._left += 8 * len(part)
        self._left -= count
        value = self._bits >> self._left
        self._bits &= (1 << self._left) - 1
        if self._read > 1 << 16:
            del self._input[: self._read]
            self._read = 0
        return value

    def _stream(self):
        head = yield from self._take(32)
        size = (head & 0xFF) - 0x30
        if head >> 8 != 0x425A68 or not 1 <= size <= 9:
            raise OSError("Invalid data stream")
        while True:
            mark = yield from self._take(48)
            wanted = yield from self._take(32)
            if mark == _END:
                break
            if mark != _BLOCK:
                raise OSError("Invalid data stream")
            block = yield from self._block(size * 100_000)
            found = _sum(block)
            if found != wanted:
                raise OSError("Invalid data stream")
            self._sum = ((self._sum << 1 | self._sum >> 31) & 0xFFFFFFFF) ^ found
            self._output += block
            yield False
        if self._sum != wanted:
            raise OSError("Invalid data stream")
        # Whole bytes that were taken ahead are the next stream's.
        self._read -= self._left // 8

    def _block(self, size_max):
        randomised = yield from self._take(1)
        origin = yield from self._take(24)
        if randomised:
            raise OSError("Invalid data stream")
        used = yield from self._take(16)
        symbols = []
        for high in range(16):
            if used >> 15 - high & 1:
                row = yield from self._take(16)
                symbols += [16 * high + low for low in range(16) if row >> 15 - low & 1]
        tables = yield from self._take(3)
        choices = yield from self._take(15)
        if not (2 <= tables <= 6 and choices and symbols):
            raise OSError("Invalid data stream")
        chosen = yield from self._choices(choices, tables)
        codes = []
        for _ in range(tables):
            lengths = yield from self._lengths(len(symbols) + 2)
            codes.append(_codes(lengths))
        moved = yield from self._symbols(symbols, chosen, codes, size_max)
        return _unrepeated(_unsorted(moved, origin))

    def _choices(self, count, tables):
        order, chosen = list(range(tables)), []
        for _ in range(count):
            at = 0
            while (yield from self._take(1)):
                at += 1
                if at >= tables:
                    raise OSError("Invalid data stream")
            order.insert(0, order.pop(at))
            chosen.append(order[0])
        return chosen

    def _lengths(self, count):
        lengths = []
        length = yield from self._take(5)
        for _ in range(count):
            while True:
                if not 1 <= length <= 20:
                    raise OSError("Invalid data stream")
                if not (yield from self._take(1)):
                    break
                length += -1 if (yield from self._take(1)) else 1
            lengths.append(length)
        return lengths

    def _symbols(self, order, chosen, codes, size_max):
        """The bytes before they were sorted back, as each was moved to the front."""
        order, end = list(order), len(order) + 1
        found = bytearray()
        run, weight = 0, 1
        for table in chosen:
            limits, offsets, symbols, shortest = codes[table]
            for _ in range(_GROUP):
                length = shortest
                code = yield from self._take(length)
                while length > 20 or code > limits[length]:
                    if length >= 20:
                        raise OSError("Invalid data stream")
                    length += 1
                    code = code << 1 | (yield from self._take(1))
                symbol = symbols[code - offsets[length]]
                if symbol <= 1:
                    run += weight << symbol
                    weight <<= 1
                    if run > size_max:
                        raise OSError("Invalid data stream")
                    continue
                if run:
                    found += bytes([order[0]]) * run
                    run, weight = 0, 1
                if len(found) > size_max:
                    raise OSError("Invalid data stream")
                if symbol == end:
                    return found
                byte = order.pop(symbol - 1)
                order.insert(0, byte)
                found.append(byte)
        raise OSError("Invalid data stream")


def _codes(lengths):
    """Of each length the last code, and what of a code is its place among the symbols."""
    symbols = sorted(range(len(lengths)), key=lambda symbol: (lengths[symbol], symbol))
    counts = [0] * 22
    for length in lengths:
        counts[length] += 1
    limits, offsets = [-1] * 22, [0] * 22
    code = place = 0
    for length in range(1, 21):
        offsets[length] = code - place
        code += counts[length]
        place += counts[length]
        limits[length] = code - 1
        code <<= 1
    return limits, offsets, symbols, min(lengths)


def _unsorted(data, origin):
    """The bytes of a block before their rotations were sorted."""
    if origin >= len(data):
        raise OSError("Invalid data stream")
    starts, total = [0] * 256, 0
    for byte in range(256):
        starts[byte] = total
        total += data.count(byte)
    follows = [0] * len(data)
    for at, byte in enumerate(data):
        follows[starts[byte]] = at
        starts[byte] += 1
    found = bytearray(len(data))
    at = follows[origin]
    for place in range(len(data)):
        found[place] = data[at]
        at = follows[at]
    return found


def _unrepeated(data):
    """Four equal bytes are followed by the number of further ones."""
    found = bytearray()
    at = begin = 0
    while at < len(data) - 3:
        if data[at] == data[at + 1] == data[at + 2] == data[at + 3]:
            found += data[begin : at + 4]
            if at + 4 < len(data):
                found += data[at : at + 1] * data[at + 4]
            at = begin = at + 5
        else:
            at += 1
    found += data[begin:]
    return found


def _sum(data):
    value = 0xFFFFFFFF
    for byte in data:
        value = (value << 8 & 0xFFFFFFFF) ^ _SUMS[value >> 24 ^ byte]
    return value ^ 0xFFFFFFFF

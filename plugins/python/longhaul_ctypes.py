"""The part of `ctypes` that modules ask for beside any library: numbers of a fixed size, and what size that is.

Libraries cannot be loaded, so there are no functions, pointers and structures.
"""

import struct

_REASON = "compiled libraries cannot be loaded here; use modules in Python"

_CODES = {
    "c_bool": "?", "c_byte": "b", "c_ubyte": "B", "c_char": "c", "c_short": "h", "c_ushort": "H", "c_int": "i",
    "c_uint": "I", "c_long": "l", "c_ulong": "L", "c_longlong": "q", "c_ulonglong": "Q", "c_int8": "b", "c_uint8": "B",
    "c_int16": "h", "c_uint16": "H", "c_int32": "i", "c_uint32": "I", "c_int64": "q", "c_uint64": "Q", "c_size_t": "N",
    "c_ssize_t": "n", "c_float": "f", "c_double": "d", "c_void_p": "P",
}


class _Simple:
    def __init__(self, value=None):
        self.value = (b"\0" if self._code == "c" else False if self._code == "?" else 0) if value is None else value

    def _get(self):
        return self._kept

    def _set(self, value):
        if self._code in "bBhHiIlLqQNnP":
            bits = 8 * struct.calcsize(self._code)
            value = int(value) & (1 << bits) - 1
            if self._code in "bhilqn" and value >> bits - 1:
                value -= 1 << bits
        else:
            value = struct.unpack(self._code, struct.pack(self._code, value))[0]
        self._kept = value

    value = property(_get, _set)

    def __repr__(self):
        return f"{type(self).__name__}({self.value!r})"


for _name, _code in _CODES.items():
    globals()[_name] = type(_name, (_Simple,), {"_code": _code, "__module__": "ctypes"})


def sizeof(kind):
    return struct.calcsize(kind._code)


class CDLL:
    def __init__(self, name=None, *_, **__):
        raise OSError(_REASON)


class _Loader:
    def LoadLibrary(self, name):
        raise OSError(_REASON)


PyDLL = CDLL
cdll = pydll = _Loader()


def __getattr__(name):
    raise AttributeError(f"`ctypes` has no `{name}` here: {_REASON}")

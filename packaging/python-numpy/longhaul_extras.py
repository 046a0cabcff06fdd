"""Packages with code of their own, which lie in the image of the interpreter as objects.

They are imported when the image is built: later, their files are not there. Modules of them that are not imported here are
packed as sources, as those of the standard library are. numpy reads and writes files through the objects of Python: its own
way duplicates their descriptors, which WASI cannot, and files in `/tmp` have none.
"""

import contextlib
import os
import sys

import longhaul_library
import numpy
import numpy.fft
import numpy.lib._format_impl
import numpy.lib.recfunctions
import numpy.linalg
import numpy.ma
import numpy.polynomial
import numpy.random

# The words of the seed of an instance: 128 bits, as numpy's own generators take.
_SEED_WORDS = 4


def start_instance():
    """Seeds the generator behind the functions of `numpy.random`, whose state in the image is the same for all."""
    numpy.random.seed(numpy.frombuffer(os.urandom(4 * _SEED_WORDS), numpy.uint32))


def _fromfile(file, dtype=float, count=-1, sep="", offset=0, *, like=None):
    """As `numpy.fromfile`, for files and paths."""
    dtype = numpy.dtype(dtype)
    with contextlib.nullcontext(file) if hasattr(file, "read") else open(file, "rb") as opened:
        opened.seek(offset, os.SEEK_CUR)
        if sep:
            return numpy.fromstring(opened.read().decode("latin-1"), dtype, count, sep=sep, like=like)
        data = opened.read(-1 if count < 0 else count * dtype.itemsize)
    whole = len(data) - len(data) % dtype.itemsize
    return numpy.array(numpy.frombuffer(data[:whole], dtype), like=like)


def _pack(package):
    """Packs the sources of a package: its other modules are imported from there, and tracebacks show the lines."""
    file = package.__file__
    for name, file, is_package in [
        (package.__name__, file, True),
        *longhaul_library._modules(os.path.dirname(file), package.__name__ + "."),
    ]:
        longhaul_library._pack(name, file, is_package)
        if name in sys.modules:
            sys.modules[name].__spec__ = longhaul_library._spec(name)
            sys.modules[name].__loader__ = longhaul_library._Loader


numpy.fromfile = _fromfile
numpy.lib._format_impl.isfileobj = lambda file: False
_pack(numpy)

"""The packages that the build fetches, each with its version and the digests of its files.

pip refuses a file with another digest. The wheels are those for Linux on x86-64, and for every Python.
"""

from typing import NamedTuple


class Pin(NamedTuple):
    """A package of PyPI and the digest of the one file of it that is taken."""

    name: str
    version: str
    sha256: str
    # Further arguments of pip.
    how: tuple = ()

    def requirement(self):
        """The line of a file of requirements, for a pip that is told `--require-hashes`."""
        return f"{self.name}=={self.version} --hash=sha256:{self.sha256}\n"


NUMPY = Pin("numpy", "2.4.6", "f3a3570c4a2a16746ac2c31a7c7c7b0c186b95ce902e33db6f28094ed7387dda")

TOOLS = [
    # The version whose libraries `longhaul plugin build` links, and whose names the compiler may therefore use.
    Pin("componentize-py", "0.25.1", "8623cd8cab8453cb0cd8bf03f3c7103420d06f2f3d360186a280a70a1ca5e89f"),
    # Without code of its own, since that is made for one version of Python.
    Pin("cython", "3.3.1", "61abc7feedd20dac6c4ff7ab3a30e17136a067b242ab9253e2b4a6d9a72c2b61",
        ("--platform", "any", "--python-version", "3.11")),
    Pin("ninja", "1.13.2", "65a24341b5ac09fcadcc37082660be40a94174e51a937fabf6e2cae26225fa2c"),
    Pin("ziglang", "0.15.2", "806316453d1ede7174ed3fefb8e5348154629089c3bb5fe812dfd0e172fac130"),
]  # fmt: skip

# The version of CPython that componentize-py has, as far as compiled code depends on it.
PYTHON = "3.14"

"""What `/tmp` in memory says of its files, and that no call gets around its bounds. Each test is a process of its own."""

import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent

SET_UP = """
import os, time
import longhaul_temporary
longhaul_temporary._is_memory = lambda: True
longhaul_temporary.install()
longhaul_temporary.begin(1_000)

def refused(function, *arguments):
    try:
        function(*arguments)
    except (OSError, ValueError) as error:
        return getattr(error, "errno", None) or type(error).__name__

def held():
    return longhaul_temporary._tree.bytes
"""


class Temporary(unittest.TestCase):
    def check(self, source, expected):
        done = subprocess.run(
            [sys.executable, "-c", SET_UP + source], capture_output=True, text=True, cwd=HERE.parent,
        )
        self.assertEqual((done.stdout, done.returncode), (expected, 0), done.stderr)

    def test_times_can_be_copied_as_the_library_does(self):
        self.check(
            """
open("/tmp/a", "w").close()
os.utime("/tmp/a", (1, 2.5))
one = os.stat("/tmp/a")
open("/tmp/b", "w").close()
os.utime("/tmp/b", ns=(one.st_atime_ns, one.st_mtime_ns))
two = os.stat("/tmp/b")
print(two.st_mtime, two.st_mtime_ns, two[8], time.time() - two.st_ctime < 60)
""",
            "2.5 2500000000 2 True\n",
        )

    def test_a_size_below_nothing_frees_nothing(self):
        self.check(
            """
import errno
with open("/tmp/a", "wb") as file:
    file.write(bytes(900))
raw = open("/tmp/a", "rb+", buffering=0)
print([refused(os.truncate, "/tmp/a", -5) == errno.EINVAL, refused(raw.truncate, -5) == errno.EINVAL, held()])
print([refused(open("/tmp/a", "rb", buffering=0).truncate, 0), refused(raw.seek, 0, 9) == errno.EINVAL, held()])
print(raw.seek(0, 2), raw.truncate(), refused(raw.write, bytes(101)) == errno.ENOSPC, raw.truncate(0), held())
""",
            "[True, True, 900]\n['UnsupportedOperation', True, 900]\n900 900 True 0 0\n",
        )

    def test_what_is_open_and_has_no_name_counts_until_it_is_closed(self):
        self.check(
            """
file = open("/tmp/a", "wb", buffering=0)
file.write(bytes(900))
os.unlink("/tmp/a")
before = held()
file.close()
print(before, held(), os.listdir("/tmp"))
""",
            "900 0 []\n",
        )


if __name__ == "__main__":
    unittest.main()

"""Which files a step is noted to have read, by whatever function it opens them."""

import ast
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).parents[1]

# Reads, writes and asks in ways that differ; prints what was noted.
CODE = """
import glob, io, os, pathlib, sys
import longhaul_files
top = sys.argv[1]
longhaul_files.note_files([top, "/nowhere"])
open(top + "/plain")
open(os.fsencode(top) + b"/bytes")
io.open(pathlib.Path(top, "path"))
pathlib.Path(top, "text").read_text()
os.close(os.open(top + "/low", os.O_RDONLY))
os.chdir(top)
open("relative")
open("folder/../normal")
with open("written", "w") as file: file.write("x")
open("written").read()
with open("appended", "a") as file: file.write("x")
with open("both", "r+") as file: file.read()
os.path.exists("asked")
try:
    open("missing")
except OSError:
    pass
glob.glob("folder/*")
sys.path.insert(0, top)
import module
print(longhaul_files.noted_files())
print(longhaul_files.noted_files())
open("plain")
longhaul_files.note_files([])
open("plain")
print(longhaul_files.noted_files())
"""


class Files(unittest.TestCase):
    def test_what_a_step_opens_is_noted_and_what_it_writes_is_not_among_what_it_reads(self):
        with tempfile.TemporaryDirectory() as top:
            top = os.path.realpath(top)
            names = "plain bytes path text low relative normal appended both asked module.py".split()
            for name in names:
                pathlib.Path(top, name).write_text("")
            pathlib.Path(top, "folder").mkdir()
            code = [sys.executable, "-B", "-c", CODE, top]
            ran = subprocess.run(code, env={**os.environ, "PYTHONPATH": str(HERE)}, capture_output=True, text=True)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            noted, again, nothing = (ast.literal_eval(line) for line in ran.stdout.splitlines())
        read = "plain bytes path text low relative normal missing folder module.py".split()
        self.assertEqual(noted["files"], [f"{top}/{name}" for name in read])
        self.assertEqual(noted["written"], [f"{top}/{name}" for name in sorted(["written", "appended", "both"])])
        self.assertEqual((again, nothing), ({"files": [], "written": []},) * 2)


if __name__ == "__main__":
    unittest.main()

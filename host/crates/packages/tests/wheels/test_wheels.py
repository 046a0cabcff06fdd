"""What the script `wheels.py` makes of good and of bad wheels. The index is a folder that pip is pointed to."""

import hashlib
import json
import os
import pathlib
import stat
import runpy
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "src/wheels.py"


def wheel(folder, name, version, files, tag="py3-none-any", needs=()):
    """Writes a wheel; `files` are names with contents, or entries of a zip archive."""
    path = pathlib.Path(folder) / f"{name}-{version}-{tag}.whl"
    info = f"{name}-{version}.dist-info"
    metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", *(f"Requires-Dist: {one}\n" for one in needs)]
    own = {
        f"{info}/METADATA": "".join(metadata),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry, content in {**files, **own}.items():
            archive.writestr(entry, content)
    return path


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


class Wheels(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = pathlib.Path(place.name)
        self.index, self.wheels = self.place / "index", self.place / "wheels"
        self.index.mkdir()

    def ask(self, **request):
        environment = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.index), "PIP_CONFIG_FILE": os.devnull}
        done = subprocess.run(
            [sys.executable, "-I", str(SCRIPT)], input=json.dumps(request), capture_output=True, text=True, env=environment
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def lock(self, *requirements):
        return self.ask(do="lock", requirements=requirements)

    def fill(self, packages):
        folder = tempfile.mkdtemp(dir=self.place)
        answer = self.ask(do="fill", packages=packages, wheels=str(self.wheels), folder=folder)
        found = {str(path.relative_to(folder)) for path in pathlib.Path(folder).rglob("*") if path.is_file()}
        return answer, {path for path in found if ".dist-info/" not in path}

    def refuse(self, files, expected, name="bad"):
        """The wheel is in the cache already, as one that pip had no say in."""
        self.wheels.mkdir(exist_ok=True)
        path = wheel(self.place, name, "1.0", files)
        sha256 = digest(path)
        path.rename(self.wheels / f"{sha256}.whl")
        answer, _ = self.fill([{"name": name, "version": "1.0", "sha256": sha256}])
        self.assertIn(expected, answer.get("refused", "it was taken"))
        self.assertNotIn("\n", answer["refused"])

    def test_packages_are_locked_with_all_that_they_need_and_then_need_no_index(self):
        top = wheel(self.index, "top", "1.2", {"top/__init__.py": "x = 1"}, needs=["below>=1"])
        below = wheel(self.index, "below", "1.0", {"below.py": "", "below-1.0.data/purelib/other.py": ""})
        wheel(self.index, "below", "0.9", {"below.py": ""})
        locked = self.lock("Top==1.2")
        expected = [
            {"name": "below", "version": "1.0", "sha256": digest(below)},
            {"name": "top", "version": "1.2", "sha256": digest(top)},
        ]
        self.assertEqual(locked, {"packages": expected})
        self.assertEqual(self.fill(expected), ({}, {"top/__init__.py", "below.py", "other.py"}))
        top.unlink()
        below.unlink()
        self.assertEqual(self.fill(expected)[0], {})

    def test_needs_are_those_of_the_sandbox_and_not_of_this_machine(self):
        wheel(self.index, "here", "1.0", {"here.py": ""})
        wheel(self.index, "top", "1.0", {"top.py": ""}, needs=['here; sys_platform == "wasi"', 'there; os_name == "nt"'])
        self.assertEqual([one["name"] for one in self.lock("top")["packages"]], ["here", "top"])

    def test_compiled_modules_are_refused_and_left_out_where_a_package_does_without(self):
        tag = "cp314-cp314-manylinux2014_x86_64"
        wheel(self.index, "fast", "1.0", {"fast.py": "", "_fast.cpython-314-x86_64-linux-gnu.so": ""}, tag)
        self.assertIn("`fast` 1.0 has compiled modules", self.lock("fast")["refused"])
        wheel(self.index, "PyYAML", "6.0", {"yaml/__init__.py": "", "yaml/_yaml.cpython-314-x86_64-linux-gnu.so": ""}, tag)
        packages = self.lock("pyyaml")["packages"]
        self.assertEqual(self.fill(packages), ({}, {"yaml/__init__.py"}))
        # A wheel in pure Python goes before one for this machine.
        pure = wheel(self.index, "fast", "1.0", {"fast.py": ""})
        self.assertEqual(self.lock("fast")["packages"][0]["sha256"], digest(pure))
        self.refuse({"a.so": ""}, "has compiled modules")

    def test_what_is_not_there_or_does_not_go_together_is_told_in_one_line(self):
        wheel(self.index, "one", "1.0", {"one.py": ""}, needs=["two<2"])
        wheel(self.index, "two", "2.0", {"two.py": ""})
        wheel(self.index, "two", "1.0", {"two.py": ""})
        for wanted, expected in (
            (["nothing"], "there is no wheel of `nothing`"),
            (["one==9"], "there is no wheel of `one==9`"),
            (["one", "two==2.0"], "these packages do not go together: one, two==2.0"),
        ):
            refused = self.lock(*wanted)["refused"]
            self.assertIn(expected, refused)
            self.assertNotIn("\n", refused)

    def test_nothing_is_built_whatever_a_package_says_that_it_needs(self):
        """An address in the place of a version, which pip would follow and build."""
        (self.place / "source").mkdir()
        ran = self.place / "ran"
        (self.place / "source/backend.py").write_text(f"open({str(ran)!r}, 'w').close()")
        system = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        (self.place / "source/pyproject.toml").write_text(system)
        with tarfile.open(self.place / "other-1.0.tar.gz", "w:gz") as archive:
            archive.add(self.place / "source", "other-1.0")
        wheel(self.place, "other", "1.0", {"other.py": ""})
        for number, address in enumerate((
            (self.place / "other-1.0.tar.gz").as_uri(),
            (self.place / "other-1.0-py3-none-any.whl").as_uri(),
            "git+https://a.example/other.git",
        )):
            wheel(self.index, f"top{number}", "1.0", {"top.py": ""}, needs=[f"other @ {address}"])
            refused = self.lock(f"top{number}")["refused"]
            self.assertIn("needs `other` from an address of its own; only wheels of an index are taken", refused)
            self.assertNotIn("\n", refused)
        self.assertFalse(ran.exists(), "code of a package ran")

    def test_what_an_archive_says_of_itself_wrongly_is_told_as_no_wheel(self):
        self.wheels.mkdir()
        path = wheel(self.place, "bad", "1.0", {"bad.py": os.urandom(1_000)})
        broken = bytearray(path.read_bytes())
        # The packed bytes of the first file.
        broken[60:90] = bytes(30)
        sha256 = hashlib.sha256(broken).hexdigest()
        (self.wheels / f"{sha256}.whl").write_bytes(broken)
        answer, _ = self.fill([{"name": "bad", "version": "1.0", "sha256": sha256}])
        self.assertIn("`bad` 1.0 is no wheel", answer["refused"])
        packed = zipfile.ZipInfo("bad.py")
        packed.compress_type = zipfile.ZIP_BZIP2
        self.refuse({packed: "x = 1"}, "packed in a way that a wheel may not have")

    def test_a_wheel_that_is_not_what_the_lock_says_is_refused(self):
        path = wheel(self.index, "top", "1.0", {"top.py": "x = 1"})
        packages = self.lock("top")["packages"]
        path.unlink()
        wheel(self.index, "top", "1.0", {"top.py": "x = 2"})
        self.assertIn("not what the lock says", self.fill(packages)[0]["refused"])
        # The same for one in the cache, which is removed.
        self.wheels.mkdir(exist_ok=True)
        spoiled = self.wheels / (packages[0]["sha256"] + ".whl")
        spoiled.write_bytes(b"PK")
        self.assertIn("and was removed", self.fill(packages)[0]["refused"])
        self.assertFalse(spoiled.exists())

    def test_no_file_leaves_the_folder(self):
        link = zipfile.ZipInfo("link")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        for files in ({"../a": ""}, {"/a": ""}, {"a/../../b": ""}, {"a\\b": ""}, {"c:/b": ""}, {link: "/etc/passwd"}):
            self.refuse(files, "which a wheel may not have")
        self.assertEqual([path for path in self.place.iterdir() if path.name in "ab"], [])

    def test_sizes_are_bounded_as_they_are_unpacked(self):
        self.refuse({"zeros.py": bytes((256 << 20) + 1)}, "more than 268435456 bytes")
        self.refuse({f"m{number}.py": "" for number in range(20_001)}, "more than 20000 files and folders")
        deep = {"/".join([f"a{number}", *["b"] * 200, "c.py"]): "" for number in range(100)}
        self.refuse(deep, "more than 20000 files and folders")

    def test_a_wheel_that_is_too_long_is_not_fetched_to_its_end(self):
        path = wheel(self.index, "long", "1.0", {"long.bin": os.urandom(64 << 20)})
        answer, _ = self.fill([{"name": "long", "version": "1.0", "sha256": digest(path)}])
        self.assertIn("longer than 67108864 bytes", answer.get("refused", "it was taken"))
        self.assertEqual([*self.wheels.iterdir()], [])

    def test_metadata_that_unpacks_to_more_than_the_memory_is_refused(self):
        path = wheel(self.place, "bomb", "1.0", {"bomb.py": ""})
        bomb = self.index / path.name
        with zipfile.ZipFile(path) as good, zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for name in good.namelist():
                with archive.open(name, "w", force_zip64=True) as file:
                    file.write(good.read(name))
                    for _ in range(2 << 10 if name.endswith("METADATA") else 0):
                        file.write(bytes(1 << 20))
        self.assertIn("bytes of memory", self.lock("bomb").get("refused", "it was taken"))

    def test_a_line_has_no_password_of_an_index(self):
        line = runpy.run_path(str(SCRIPT))["_line"]
        for said, expected in (
            ("see https://me:pass@index.example/simple", "see https://index.example/simple"),
            ("see https://me:p@ss@index.example/simple", "see https://index.example/simple"),
            ("see https://index.example/@scope now @", "see https://index.example/@scope now @"),
        ):
            self.assertEqual(line(said), expected)

    def test_what_a_killed_script_left_is_removed_and_what_another_one_fetches_is_not(self):
        self.wheels.mkdir()
        old, new = self.wheels / "tmpold", self.wheels / "tmpnew"
        for folder in (old, new):
            folder.mkdir()
            (folder / "half.whl").write_bytes(b"PK")
        os.utime(old, (1, 1))
        self.assertEqual(self.fill([]), ({}, set()))
        self.assertEqual([path.name for path in self.wheels.iterdir()], ["tmpnew"])

    def test_what_is_no_wheel_is_refused(self):
        self.wheels.mkdir()
        bytes_of_none = b"no zip at all"
        sha256 = hashlib.sha256(bytes_of_none).hexdigest()
        (self.wheels / f"{sha256}.whl").write_bytes(bytes_of_none)
        answer, _ = self.fill([{"name": "bad", "version": "1", "sha256": sha256}])
        self.assertIn("`bad` 1 is no wheel", answer["refused"])


if __name__ == "__main__":
    unittest.main()

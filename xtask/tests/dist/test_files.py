"""The files of a release: archives, lists of dependencies, licences, and what is asked of a program."""

import json
import shutil
import subprocess
import sys
import tempfile
import unittest
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src/dist"))

import archives
import packages
import program

TIME = 1_600_000_000
CONTROL = "Package: made-up\nVersion: 1.0\nArchitecture: all\nMaintainer: Nobody <nobody@localhost>\nDescription: nothing\n"


def entries():
    return [archives.Entry("usr/bin/made-up", "#!/bin/sh\n", 0o755), archives.Entry("etc/made-up", "a = 1\n")]


def package(name, dependencies, place=None, is_runtime=True):
    described = {"name": name, "version": "1.0.0", "license": "MIT/Apache-2.0", "manifest_path": f"{place}/Cargo.toml",
                 "source": place and "registry+somewhere"}
    return packages.Package(described, is_runtime, dependencies)


class Files(unittest.TestCase):
    def test_an_archive_does_not_depend_on_the_order_or_on_when_it_is_made(self):
        for make in [lambda given: archives.tar_gz(given, TIME), lambda given: archives.deb(given, CONTROL, {}, TIME)]:
            self.assertEqual(make(entries()), make(entries()[::-1]))

    @unittest.skipUnless(shutil.which("dpkg-deb"), "dpkg-deb is not here")
    def test_debian_reads_our_package(self):
        with tempfile.TemporaryDirectory() as place:
            file = Path(place) / "made-up.deb"
            file.write_bytes(archives.deb(entries(), CONTROL, {"postinst": "#!/bin/sh\n"}, TIME))
            subprocess.run(["dpkg-deb", "--extract", file, Path(place) / "root"], check=True)
            made = Path(place) / "root/usr/bin/made-up"
            self.assertEqual((made.read_text(), made.stat().st_mode & 0o777), ("#!/bin/sh\n", 0o755))
            fields = subprocess.run(["dpkg-deb", "--field", file, "Installed-Size", "Conffiles"], check=True,
                                    capture_output=True, text=True).stdout
            self.assertIn("Installed-Size: 2", fields)

    def test_auditors_find_packages_by_their_places(self):
        found = [package("a", [("b", "1.0.0")]), package("b", [], "/none"), package("c", [], "/none", is_runtime=False)]
        listed = json.loads(zlib.decompress(packages.audit_list(found, "a")))["packages"]
        self.assertEqual(listed[0], {"name": "a", "version": "1.0.0", "source": "local", "dependencies": [1], "root": True})
        self.assertEqual([one.get("kind") for one in listed], [None, None, "build"])

    def test_a_bill_of_materials_is_the_same_twice_and_has_checksums(self):
        found = [package("a", [("b", "1.0.0")]), package("b", [], "/none")]
        lock = f'[[package]]\nname = "b"\nversion = "1.0.0"\nsource = "registry+x"\nchecksum = "{"0" * 64}"\n'
        made = [packages.bill_of_materials(found, [package("d", [], "/none")], "a", lock, TIME) for _ in range(2)]
        self.assertEqual(made[0], made[1])
        bill = json.loads(made[0])
        names = [component["name"] for component in bill["components"]]
        self.assertEqual(names, ["b", "d", "CPython", "QuickJS"])
        self.assertEqual(bill["components"][0]["hashes"], [{"alg": "SHA-256", "content": "0" * 64}])
        self.assertEqual(bill["components"][0]["licenses"], [{"expression": "MIT OR Apache-2.0"}])

    def test_a_licence_stands_once_with_all_its_packages(self):
        with tempfile.TemporaryDirectory() as place:
            for name, text in [("b", "Be kind."), ("c", "Be  kind.\n")]:
                (Path(place) / name).mkdir()
                (Path(place) / name / "LICENSE-MIT").write_text(text)
            text = packages.licences([package("a", []), package("b", [], f"{place}/b"), package("c", [], f"{place}/c"),
                                      package("d", [], f"{place}/d")])
            self.assertEqual(text.count("kind."), 1)
            self.assertIn("b 1.0.0 (MIT/Apache-2.0), LICENSE-MIT\nc 1.0.0 (MIT/Apache-2.0), LICENSE-MIT\n", text)
            self.assertIn("d 1.0.0: MIT/Apache-2.0", text)

    def test_a_program_of_this_machine_alone_is_no_release(self):
        content = Path(sys.executable).resolve().read_bytes()
        told = "\n".join(program.faults(content + b"/home/somebody/project/src/main.rs\0", ["/home/somebody"]))
        self.assertIn("no section .dep-v0", told)
        self.assertIn("in `/home/somebody/project/src/main.rs`", told)


if __name__ == "__main__":
    unittest.main()

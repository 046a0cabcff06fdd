"""Tests of the recipe's own Python: what it pins, reads and writes. Nothing is fetched or built."""

import contextlib
import io
import os
import re
import sys
import tempfile
import tomllib
import unittest
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1]
TREE = FOLDER.parents[1]
sys.path.insert(0, str(FOLDER))

import build
import compare
import fetch
import interpreter
import pins
import place
import toolchain
import wasm

RUST = (TREE / "host/crates/build/src/python.rs").read_text()


class PinTest(unittest.TestCase):
    def test_each_package_has_a_version_and_a_whole_digest(self):
        for pin in [*pins.TOOLS, pins.NUMPY]:
            self.assertRegex(pin.requirement(), r"^[a-z-]+==[0-9.]+ --hash=sha256:[0-9a-f]{64}\n$")

    def test_the_compiler_is_asked_about_the_interpreter_that_the_program_links(self):
        version = re.search(r'TOOL_VERSION: &str = "([^"]+)"', RUST)[1]
        self.assertEqual({pin.name: pin.version for pin in pins.TOOLS}["componentize-py"], version)

    def test_another_digest_is_another_folder(self):
        self.assertEqual(place.name_of(["a", b"b"]), place.name_of([b"a", "b"]))
        self.assertNotEqual(place.name_of(["ab", ""]), place.name_of(["a", "b"]))
        self.assertRegex(place.name_of(build.inputs()), r"^python-numpy-[0-9a-f]{12}$")


class PlaceTest(unittest.TestCase):
    def test_the_cache_is_that_of_the_program(self):
        kept = dict(os.environ)
        try:
            os.environ |= {"LONGHAUL_CACHE": "/a", "XDG_CACHE_HOME": "/b", "HOME": "/c"}
            self.assertEqual(place.cache(), Path("/a"))
            os.environ["LONGHAUL_CACHE"] = ""
            self.assertEqual(place.cache(), Path("/b/longhaul"))
            del os.environ["XDG_CACHE_HOME"]
            self.assertEqual(place.cache(), Path("/c/.cache/longhaul"))
        finally:
            os.environ.clear()
            os.environ |= kept

    def test_a_step_that_failed_is_made_again_and_one_that_ended_is_not(self):
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / "some/made"
            with self.assertRaises(ValueError), place.once(made) as missing:
                self.assertTrue(missing)
                raise ValueError
            with place.once(made) as missing:
                self.assertTrue(missing)
            with place.once(made) as missing:
                self.assertFalse(missing)

    def test_a_command_that_fails_is_told_with_its_last_lines_and_its_log(self):
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "log"
            with self.assertRaises(SystemExit) as raised, contextlib.redirect_stdout(io.StringIO()):
                place.run("do it", [sys.executable, "-c", "print('why'); raise SystemExit(3)"], log)
            self.assertEqual(str(raised.exception), f"why\nerror: cannot do it; the whole output is in `{log}`")


class HeadersTest(unittest.TestCase):
    def test_headers_of_another_version_are_refused_with_what_to_do(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            with self.assertRaises(SystemExit) as raised:
                fetch.checked(folder)
            self.assertIn(f"`{folder}` has none", str(raised.exception))
            self.assertIn("--headers", str(raised.exception))
            (folder / "patchlevel.h").write_text('#define PY_VERSION      \t"3.13.1"\n')
            with self.assertRaises(SystemExit) as raised:
                fetch.checked(folder)
            self.assertIn("has 3.13.1", str(raised.exception))
            (folder / "patchlevel.h").write_text('/* Version */\n#define PY_VERSION  "3.14.10"\n#define PY_VERSION_HEX 1\n')
            self.assertEqual(fetch.checked(folder), folder)


class InterpreterTest(unittest.TestCase):
    def test_the_configuration_has_numbers_and_names_and_nothing_else(self):
        text = interpreter.configuration(
            {"HAVE_DLOPEN": 1, "HAVE_FORK": 0, "SIZEOF_LONG": 4, "ALIGNOF_X": 0, "RETSIGTYPE": "void", "HAVE_A": "a b",
             "prefix": "/usr", "HAVE_EMPTY": ""}
        )  # fmt: skip
        defined = [line for line in text.splitlines() if line.startswith("#define ") and "_GNU" not in line]
        self.assertEqual(
            defined,
            ["#define Py_PYCONFIG_H", "#define ALIGNOF_X 0", "#define HAVE_DLOPEN 1", "#define RETSIGTYPE void",
             "#define SIZEOF_LONG 4"],
        )  # fmt: skip
        self.assertIn("#define _GNU_SOURCE 1", text)

    def test_the_answer_names_the_headers_and_the_suffix_of_the_sandbox(self):
        answer = interpreter.answer(Path("/h"), {"EXT_SUFFIX": ".cpython-314-wasm32-wasi.so", "prefix": "/build"})
        self.assertEqual(answer["paths"]["include"], "/h")
        self.assertEqual(answer["variables"]["prefix"], "/usr")
        self.assertEqual(answer["suffix"], ".cpython-314-wasm32-wasi.so")
        self.assertEqual(answer["install_paths"]["purelib"], "/lib/python3.14/site-packages")


class LinkTest(unittest.TestCase):
    def test_arguments_of_a_link_are_told_apart(self):
        output, sources, objects, flags = toolchain.parts(
            ["a.c", "-o", "out.so", "b.o", "c.a", "-O2", "-I", "d", "-De=f.o", "-Wl,--as-needed", "-lm", "-shared", "-std=c11"]
        )
        self.assertEqual((output, sources, objects), (Path("out.so"), ["a.c"], ["b.o", "c.a"]))
        self.assertEqual(flags, ["-O2", "-I", "d", "-De=f.o", "-std=c11"])

    def test_a_module_whose_imports_no_library_has_is_removed(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.so"
            for known, code in [({"there", "missing"}, 0), ({"there"}, 1)]:
                path.write_bytes(module(imports=["there", "missing", "memory"], exports=["mine"]))
                errors = io.StringIO()
                with contextlib.redirect_stderr(errors):
                    self.assertEqual(toolchain.refuse_missing(path, known), code)
                self.assertEqual(errors.getvalue(), "error: no library of the runtime has: missing\n" if code else "")
                self.assertEqual(path.exists(), code == 0)

    def test_the_header_and_the_source_agree_on_the_names_that_one_module_exports(self):
        for file in ("status.h", "status.c"):
            self.assertEqual(set(re.findall(r"int (longhaul_\w+)\(", (FOLDER / file).read_text())), toolchain.STATUS)


class WasmTest(unittest.TestCase):
    def test_names_are_read_past_imports_of_every_kind(self):
        made = module(imports=["f", "g"], exports=["mine"], others=True)
        self.assertEqual(wasm.imports(made), [("env", "f"), ("env", "g"), ("env", "t"), ("env", "m"), ("env", "v")])
        self.assertEqual(wasm.exports(made), {"mine"})
        self.assertFalse(wasm.is_library(made))
        self.assertTrue(wasm.is_library(made + section(0, name("dylink.0") + b"\0")))

    def test_core_modules_of_a_component_are_found(self):
        inner = module(imports=[], exports=["x" * 200])
        component = b"\0asm\x0d\0\1\0" + section(0, name("note")) + section(1, inner)
        self.assertEqual(wasm.modules(component), [inner])
        self.assertEqual(wasm.exports(inner), {"x" * 200})


class PluginTest(unittest.TestCase):
    def test_the_plugin_of_this_tree_has_the_lines_behind_which_something_is_added(self):
        plugin = TREE / "plugins/python"
        app = build.with_extras((plugin / "app.py").read_text())
        self.assertIn("import asyncio.selector_events\nimport longhaul_extras\n", app)
        self.assertIn("    longhaul_extras.start_instance()\n", app)
        compile(app, "app.py", "exec")
        manifest = tomllib.loads(build.with_packages((plugin / "plugin.toml").read_text()))
        self.assertEqual(manifest["build"]["paths"], ["../packages"])
        self.assertRegex(manifest["version"], rf"^[0-9.]+\+numpy\.{re.escape(pins.NUMPY.version)}$")

    def test_a_plugin_without_the_line_is_refused(self):
        with self.assertRaises(SystemExit) as raised:
            build.with_extras("import asyncio.selector_events\n")
        self.assertIn("name another one in ADDED", str(raised.exception))
        with self.assertRaises(SystemExit) as raised:
            build.with_packages('version = "1"\n')
        self.assertIn("change `with_packages`", str(raised.exception))

    def test_the_extras_use_what_the_library_of_the_interpreter_has(self):
        library = (TREE / "plugins/python/longhaul_library.py").read_text()
        for used in re.findall(r"longhaul_library\.(\w+)", (FOLDER / "longhaul_extras.py").read_text()):
            self.assertRegex(library, rf"(?m)^(def|class) {used}\b")


class ComparisonTest(unittest.TestCase):
    def test_the_list_of_programs_is_whole_and_every_reason_is_one_of_a_program(self):
        found, reasons = compare.programs(compare.PROGRAMS.read_text())
        self.assertGreaterEqual(len(found), 60)
        for program in found:
            compile(program.source, program.name, "exec")
        self.assertEqual({program.differs for program in found} - {None}, set(reasons))

    def test_a_reason_that_is_not_there_is_refused(self):
        with self.assertRaisesRegex(ValueError, "no such reason: x"):
            compare.programs("[reasons]\n[programs]\na = { source = '', differs = 'x' }\n")

    def test_a_difference_counts_where_the_list_does_not_have_it(self):
        plain, listed = compare.Program("a", "pass"), compare.Program("b", {"source": "pass", "differs": "int32"})
        self.assertEqual(compare.verdict(plain, "1", "1"), ("equal", True))
        self.assertEqual(compare.verdict(plain, "1", "2"), ("differs", False))
        self.assertEqual(compare.verdict(listed, "1", "2"), ("differs: int32", True))
        self.assertEqual(compare.verdict(listed, "1", "1"), ("equal, and the list says: int32", False))

    def test_what_a_program_prints_and_its_exit_code_are_compared(self):
        output, errors = compare.output_of([sys.executable], "import sys; print(1); print('e', file=sys.stderr); sys.exit(3)")
        self.assertEqual((output, errors), ("1\nexit code 3\n", "e\n"))


def module(imports, exports, others=False):
    """A core module that imports functions of these names, and with `others` a table, a memory and a global."""
    listed = [name("env") + name(imported) + b"\0\0" for imported in imports]
    if others:
        listed += [name("env") + name("t") + b"\1\x70\0\0", name("env") + name("m") + b"\2\1\1\x80\x02"]
        listed += [name("env") + name("v") + b"\3\x7f\1"]
    exported = [name(each) + b"\0" + number(200) for each in exports]
    return b"\0asm\1\0\0\0" + section(2, vector(listed)) + section(7, vector(exported))


def section(kind, body):
    return bytes([kind]) + number(len(body)) + body


def vector(items):
    return number(len(items)) + b"".join(items)


def name(text):
    return number(len(text)) + text.encode()


def number(value):
    written = b""
    while value >= 128:
        written += bytes([value & 127 | 128])
        value >>= 7
    return written + bytes([value])


if __name__ == "__main__":
    unittest.main()

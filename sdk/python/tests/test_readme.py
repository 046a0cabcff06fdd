"""The README's examples work, and every example says what it is."""

import re
import sys
import tomllib
import types
import unittest

from .contract import SDK, read

README = (SDK / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


class Readme(unittest.TestCase):
    def test_its_plugins_and_its_test_run(self) -> None:
        app = types.ModuleType("app")
        sys.modules["app"] = app
        self.addCleanup(sys.modules.pop, "app")
        *plugins, test = blocks("python")
        self.assertEqual(len(plugins), 2)
        for plugin in plugins:
            exec(compile(plugin, "README.md", "exec"), app.__dict__)
        scope: dict[str, object] = {}
        exec(compile(f"{test}\ntest_it_reports()", "README.md", "exec"), scope)

    def test_its_manifest_has_the_fields_of_the_examples(self) -> None:
        (text,) = blocks("toml")
        shown = tomllib.loads(text)
        _, worlds = read()
        examples = sorted((SDK / "examples").glob("*/plugin.toml"))
        self.assertEqual(len(examples), 5)
        for path in examples:
            manifest = tomllib.loads(path.read_text(encoding="utf-8"))
            with self.subTest(manifest["name"]):
                self.assertLessEqual(set(manifest) - {"settings"}, set(shown))
                self.assertEqual(set(manifest["build"]), set(shown["build"]))
                self.assertEqual(worlds[manifest["world"]].exports, [path.parent.name])

    def test_its_table_of_errors_is_what_happens(self) -> None:
        from longhaul_sdk import errors
        from longhaul_sdk._roles import ROLES

        rows = re.findall(r"^\| `(\w+Error)`[^|]*\|(.*)\|$", README, re.MULTILINE)
        self.assertGreater(len(rows), 5)
        for name, cells in rows:
            if "the same" in cells:
                continue
            kind = getattr(errors, name)
            for role, cell in zip(("agent", "planner", "evaluator", "tool", "memory"), cells.split("|")):
                wanted = "".join(word.capitalize() for word in cell.strip(" `").split("-"))
                found = next(one for one in ROLES if one.interface == role)
                with self.subTest(f"{name} in {role}"):
                    self.assertEqual(found.error_case(kind.__new__(kind)), wanted)

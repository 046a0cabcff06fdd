"""One instance of the tool `python`, as a process: `child.py FUNCTION WORK ARGUMENTS ANSWER`, the last two files.

Standard input and output are the pipe between two of them, as the host connects it.
"""

import importlib.machinery
import os
import sys
import types

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def main(function, work, arguments, answer):
    with open(arguments) as file:
        arguments = file.read()
    # The tool puts something else in their place.
    end, answer = os._exit, open(answer, "w")
    _stand_in()
    # A module of the work must not be hidden by what the tests are made of.
    sys.path[:] = [HERE] + [path for path in sys.path[1:] if path]
    import app

    sys.path.remove(HERE)
    app.WORK, app._PATHS = work, tuple(sys.path)
    # In the image the library has a folder of its own, by which its frames are told from those of the work.
    app.longhaul_tests.OWN_FILES.add(sys.modules["unittest.main"].__file__)
    if function == "check_apart":
        _see_nothing(app)
    answer.write(app.Tool().call(function, arguments, _Context()))
    answer.close()
    end(0)


class _Context:
    """What a call is told beside its arguments."""

    def __init__(self, _key="", _remaining_ms=0, attempt=1, settings=""):
        self.attempt, self.settings = attempt, settings


def _stand_in():
    """Puts something in the place of what the contract brings, where there is no component."""
    record = lambda name: type(name, (Exception,), {"__init__": lambda self, *values, **fields: None})
    names = ("ToolInfo", "Function", "ToolError_Failed", "ToolError_UnknownFunction", "ToolError_InvalidArguments")
    types_of_tools = {name: record(name) for name in names}
    types_of_tools.update(ToolResult=lambda output, truncated: output, EffectClass=types.SimpleNamespace(READ_ONLY=0))
    modules = {
        "componentize_py_types": {"Err": record("Err")},
        "longhaul_http": {},
        "wit_world": {},
        "wit_world.exports": {"Tool": object},
        "wit_world.exports.tool": {"CallContext": _Context, "Verification_DidNotHappen": record("DidNotHappen")},
        "wit_world.imports": {},
        "wit_world.imports.tool_types": types_of_tools,
    }
    for name, fields in modules.items():
        module = sys.modules[name] = types.ModuleType(name)
        module.__dict__.update(fields)
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], last, module)


def _see_nothing(app):
    """Of the files of the work, as an instance that is granted none."""

    class Library:
        def find_spec(self, name, path=None, target=None):
            is_library = name.partition(".")[0] in sys.stdlib_module_names
            return importlib.machinery.PathFinder.find_spec(name, path, target) if is_library else None

    app._FINDERS = (importlib.machinery.BuiltinImporter, importlib.machinery.FrozenImporter, Library())
    app._start_instance = lambda: (False, False)
    os.path.isdir = lambda path: False


if __name__ == "__main__":
    main(*sys.argv[1:])

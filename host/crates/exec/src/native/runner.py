"""Runs the source of a native job in the machine's own Python, inside the sandbox.

It reads its request beside itself, and writes a line of JSON for each output there. All of this is the source's to
change: it can make the host believe something false about its own job, and nothing else.
"""

import json
import linecache
import os
import sys
import traceback
import types

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import longhaul_outputs  # noqa: E402
import longhaul_tests  # noqa: E402

sys.path.remove(HERE)

MAIN_NAME = "<python>"

_OWN_FILES = (__file__, longhaul_outputs.__file__, *longhaul_tests.OWN_FILES)

# Kept before the source runs, which may put something else in its place.
_dumps, _loads = json.dumps, json.loads


def main():
    with open(os.path.join(HERE, "request.json"), encoding="utf-8") as file:
        request = json.load(file)
    _open_input()
    outputs = longhaul_outputs.Outputs(lambda line: _write("output", line))
    directory = _directory(request)
    sys.path[:0] = [os.path.join(HERE, "modules"), directory]
    sys.argv = [MAIN_NAME]
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    namespace = main.__dict__
    namespace.update(__builtins__=__builtins__, CONTEXT=request["context"])
    if request["is_step"]:
        _step()
    if request["is_check"]:
        _tell_exits()
    code, end = 0, {}
    try:
        code = _run(request, namespace, outputs, directory)
    except SystemExit as error:
        code = error.code
        if request["is_check"] and not code and _is_of_work(error):
            sys.stderr.write("the work ended the check before it was through\n")
            code = 1
    except BaseException as error:
        _show(error)
        code, end["memory"] = (130 if isinstance(error, KeyboardInterrupt) else 1), isinstance(error, MemoryError)
    if request["rich"]:
        _show_figures(outputs)
    end.update(outputs_dropped=outputs.dropped, memory_bytes_peak=_memory_bytes_peak())
    _write("end", _dumps(end))
    sys.exit(code)


def _step():
    """Runs a step of a session, and ends the process as it ended."""
    if sys.version_info < (3, 11):
        sys.exit("a session needs Python 3.11 or newer, and this is " + sys.version.split()[0])
    directory, path = os.getcwd(), [*sys.path]
    sys.path.insert(0, HERE)
    import longhaul_steps

    # `/work` and `/packages` are places in WebAssembly; here they would be some of the machine's, which the import went to.
    longhaul_steps.WORK = longhaul_steps.PACKAGES = os.path.join(HERE, "nothing")
    os.chdir(directory)
    sys.path[:] = path
    with open(os.path.join(HERE, "step.json"), encoding="utf-8") as file:
        arguments = file.read()
    answer = longhaul_steps.answer(arguments)
    with open(os.path.join(HERE, "answer"), "w", encoding="utf-8") as file:
        file.write(answer)
    fields = _loads(answer)
    lacks_memory = (fields["error"] or {}).get("type") == "MemoryError"
    _write("end", _dumps({"memory": lacks_memory, "memory_bytes_peak": _memory_bytes_peak()}))
    sys.exit(fields["exit_code"])


def _tell_exits():
    """Makes an exit of `os._exit`, so that the work does not end its check unseen. Processes that it starts still end so."""
    end, own = os._exit, os.getpid()

    def leave(code):
        if os.getpid() != own:
            end(code)
        raise SystemExit(code)

    os._exit = leave


def _write(field, text):
    """A line for the host. The file is not kept open: a program that the source starts would have it, too."""
    try:
        file = os.open(os.path.join(HERE, "outputs"), os.O_WRONLY | os.O_APPEND)
    except OSError:
        # A source that removed it has no outputs.
        return
    try:
        left = f'{{"{field}": {text}}}\n'.encode()
        while left:
            left = left[os.write(file, left) :]
    finally:
        os.close(file)


def _run(request, namespace, outputs, directory):
    """Gives the exit code."""
    source = request["source"]
    linecache.cache[MAIN_NAME] = (len(source), None, source.splitlines(keepends=True), MAIN_NAME)
    if request["is_check"]:
        longhaul_tests.set_up(namespace, directory)
        exec(longhaul_tests.compiled(source, MAIN_NAME), namespace)
        return longhaul_tests.run(namespace, sys.stderr.write)
    if request["rich"]:
        namespace["display"] = outputs.display
        longhaul_outputs.run(source, MAIN_NAME, namespace, outputs)
    else:
        exec(compile(source, MAIN_NAME, "exec", dont_inherit=True), namespace)
    return 0


def _is_of_work(error):
    """Whether a module of the work, and not the check or the library, raised it."""
    own = (MAIN_NAME, *_OWN_FILES)
    library = (os.path.dirname(os.__file__) + os.sep, "<frozen ")
    frames = traceback.walk_tb(error.__traceback__)
    names = [frame.f_code.co_filename for frame, _ in frames]
    return any(name not in own and not name.startswith(library) for name in names)


def _directory(request):
    """The directory that the job works in."""
    directory = request.get("directory")
    if directory is not None:
        os.chdir(directory)
    return os.getcwd()


def _open_input():
    """The job's standard input, also for programs that the source starts."""
    file = os.open(os.path.join(HERE, "stdin"), os.O_RDONLY)
    os.dup2(file, 0)
    os.close(file)


def _show_figures(outputs):
    try:
        outputs.show_figures()
    except Exception as error:
        _show(error)


def _show(error):
    """As the interpreter would, without the frames of these files."""
    own = _OWN_FILES
    try:
        sys.stdout.flush()
        shown = traceback.TracebackException(type(error), error, error.__traceback__)
        part = shown
        while part is not None:
            part.stack[:] = [frame for frame in part.stack if frame.filename not in own]
            part = part.__cause__ or part.__context__
        sys.stderr.write("".join(shown.format()))
    except BaseException:
        os.write(2, f"{type(error).__name__} (it cannot be shown)\n".encode())


def _memory_bytes_peak():
    try:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    except Exception:
        return 0


main()

"""What a step of a session has beside the values of the steps before it: a context, an input, and typed outputs.

A step of a session ends as a job does: with an exit code, and with a traceback where it raised. What the host hands in
(`CONTEXT`, `display`) is taken out of the namespace again, so that the session does not keep it.
"""

import io
import linecache
import sys
import traceback

import longhaul_outputs

# Kept before any step runs, which may put something else in their places.
_BytesIO, _TextIOWrapper = io.BytesIO, io.TextIOWrapper
_set, _pop, _get = dict.__setitem__, dict.pop, dict.get


def enter(request, namespace):
    """Prepares the namespace and the streams for a step."""
    return Session(request, namespace)


class Session:
    """One step of a session."""

    def __init__(self, request, namespace):
        given = request["session"]
        self.file = f"<python {request['id']}>"
        self.outputs = longhaul_outputs.Outputs()
        self._code = 0
        self._given = {"CONTEXT": given["context"], "display": self.outputs.display}
        for name, value in self._given.items():
            _set(namespace, name, value)
        sys.argv = ["<python>"]
        sys.stdin = _TextIOWrapper(_BytesIO(given["stdin"].encode("utf-8", "replace")), "utf-8")
        source = request["source"]
        linecache.cache[self.file] = (len(source), None, source.splitlines(keepends=True), self.file)

    def leave(self, error, namespace, noted, own_files):
        """Notes how the step ended, and takes out what was handed in."""
        self._code = self._exit_code(error, (*own_files, __file__, longhaul_outputs.__file__))
        try:
            self.outputs.show_figures()
        except Exception as failed:
            _show(failed, own_files)
        for name in self._given:
            _pop(namespace, name, None)
            noted.discard(name)

    def _exit_code(self, error, own_files):
        if error is None:
            return 0
        if not isinstance(error, SystemExit):
            _show(error, own_files)
            return 130 if isinstance(error, KeyboardInterrupt) else 1
        if error.code is None or isinstance(error.code, int):
            return (error.code or 0) & 0xFF
        _complain(f"{error.code}\n")
        return 1

    def answer(self):
        """The fields that the host reads."""
        return {"exit_code": self._code, "outputs": self.outputs.kept, "outputs_dropped": self.outputs.dropped}


def _show(error, own_files):
    """As the interpreter would, without the frames of these files."""
    try:
        shown = traceback.TracebackException(type(error), error, error.__traceback__)
        part = shown
        while part is not None:
            part.stack[:] = [frame for frame in part.stack if frame.filename not in own_files]
            part = part.__cause__ or part.__context__
        _complain("".join(shown.format()))
    except BaseException:
        _complain(f"{type(error).__name__} (it cannot be shown)\n")


def _complain(text):
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except Exception:
        # The step has put something else there.
        pass

"""Threads that take turns, where an interpreter has one thread of the machine.

A thread that was started runs when another one waits: for a lock, a queue, an event, a thread to end, or a time to pass.
It then runs until it ends, on top of the one that waits; if it waits itself, the next one runs on top of it. So work that
is spread over threads and collected is done, one part after the other, always in the same order. What cannot go on this
way is two threads that answer each other again and again: the upper one waits for the lower one, which cannot run. That
is refused with an error in the upper one, and not left to the host's time-out. A `ThreadPoolExecutor` does what it is
given at once. Nothing here runs two things at a time.
"""

import _thread
import asyncio.base_events
import collections
import concurrent.futures
import concurrent.futures.thread
import itertools
import queue
import threading
import time

# Threads that wait on top of one another. Each takes some of the stack.
NESTED_MAX = 100

# Threads that were started and did not run yet.
STARTED_MAX = 10_000

_STUCK = (
    "threads take turns here, and each runs until it ends or waits; this one waits for something that only a thread "
    "below it could do, which cannot go on before this one ends. Use a queue that is filled first, `concurrent.futures` "
    "or `asyncio`"
)

_ALL_STUCK = (
    "all threads wait for one another; threads take turns here, and one in the background that had nothing to do has "
    "ended, so start threads when there is work for them"
)

_sleep = time.sleep
_run_once = asyncio.base_events.BaseEventLoop._run_once
_main = _thread.get_ident()
_idents = itertools.count(_main + 1)

# The threads that were started and did not run yet: what they do, and their handles.
_started = collections.deque()

# The threads that run now, the lowest first, as their handles.
_running = []


class Lock:
    """As `threading.Lock`; who waits for it lets others run."""

    def __init__(self):
        self._is_held = False

    def acquire(self, blocking=True, timeout=-1):
        if not blocking and timeout != -1:
            raise ValueError("can't specify a timeout for a non-blocking call")
        if timeout < 0 and timeout != -1:
            raise ValueError("timeout value must be a non-negative number")
        if self._is_held and not (blocking and timeout != 0 and _wait(self, timeout)):
            return False
        self._is_held = True
        return True

    def release(self):
        if not self._is_held:
            raise RuntimeError("release unlocked lock")
        self._is_held = False

    def locked(self):
        return self._is_held

    def _at_fork_reinit(self):
        self._is_held = False

    def __enter__(self):
        return self.acquire()

    def __exit__(self, *_):
        self.release()

    def __repr__(self):
        return f"<{'locked' if self._is_held else 'unlocked'} {type(self).__module__}.Lock object at {hex(id(self))}>"


Lock.__module__, Lock.__name__, Lock.__qualname__ = "threading", "lock", "lock"


class _Handle:
    """What `threading` knows of a thread."""

    def __init__(self):
        self.ident, self.is_daemon, self.has_slept = 0, False, False
        self._is_done = False

    def is_done(self):
        return self._is_done

    def _set_done(self):
        self._is_done = True

    def join(self, timeout=None):
        if self in _running:
            raise RuntimeError("Cannot join current thread")
        # Started, so that it runs as soon as there is a wait.
        while not self._is_done and _run_next():
            pass
        if not self._is_done and timeout is None or timeout == -1 and not self._is_done:
            _refuse()


def _wait(lock, timeout):
    """Lets others run until the lock is free; tells whether it is."""
    while lock._is_held:
        if _run_next():
            continue
        if timeout < 0:
            _refuse()
        _sleep(timeout)
        return not lock._is_held
    return True


def _refuse():
    if _running and _running[-1].is_daemon:
        # Nobody waits for it: it ends as at the end of the program.
        raise SystemExit
    raise RuntimeError(_STUCK if _running else _ALL_STUCK)


def _run_next():
    if not _started:
        return False
    if len(_running) >= NESTED_MAX:
        raise RuntimeError(f"threads take turns here, and more than {NESTED_MAX} wait on top of one another")
    function, handle = _started.popleft()
    _running.append(handle)
    try:
        function()
    finally:
        _running.pop()
        handle._set_done()
    return True


def _start_joinable(function, handle=None, daemon=True):
    if len(_started) >= STARTED_MAX:
        raise RuntimeError(f"can't start new thread: {STARTED_MAX} wait for their turn")
    handle = _Handle() if handle is None else handle
    handle.ident, handle.is_daemon = next(_idents), daemon
    thread = getattr(function, "__self__", None)
    if isinstance(thread, threading.Thread):
        # `start` waits for it, and would so run the thread to its end.
        thread._started.set()
        thread._ident = handle.ident
    _started.append((function, handle))
    return handle


def _start_new(function, args, kwargs=None):
    def run():
        try:
            function(*args, **(kwargs or {}))
        except SystemExit:
            pass
        except BaseException as error:
            threading.excepthook(threading.ExceptHookArgs((type(error), error, error.__traceback__, None)))

    return _start_joinable(run).ident


def _ident():
    return _running[-1].ident if _running else _main


def _sleep_in_turn(seconds):
    """As `time.sleep`; others run first."""
    thread = _running[-1] if _running else None
    # A thread that sleeps once works for so long, and one that sleeps again may look for what others do.
    if seconds > 0 and (thread is None or thread.has_slept):
        while _run_next():
            pass
    if thread is not None:
        thread.has_slept = True
    _sleep(seconds)


def _run_loop_once(loop):
    """As the event loop does, which otherwise waits for what threads tell it."""
    while _run_next():
        pass
    _run_once(loop)


def _submit(self, function, /, *args, **kwargs):
    """As `ThreadPoolExecutor.submit`, done at once."""
    if self._broken:
        raise concurrent.futures.thread.BrokenThreadPool(self._broken)
    if self._shutdown:
        raise RuntimeError("cannot schedule new futures after shutdown")
    future = concurrent.futures.Future()
    future.set_running_or_notify_cancel()
    try:
        future.set_result(function(*args, **kwargs))
    except (Exception, SystemExit) as error:
        # An exit ends a thread, and not the program.
        future.set_exception(error)
    return future


def finish():
    """At the end of the program: those that it waits for run to their end."""
    while _started:
        if _started[0][1].is_daemon:
            _started.popleft()
        else:
            _run_next()


def forget():
    """Before another source."""
    _started.clear()
    _running.clear()


def install():
    """Puts turns in the place of threads. Locks that exist by now are those of the library, which holds none of them
    while it waits."""
    import _threading_local

    time.sleep = _sleep_in_turn
    for module in (_thread, threading):
        module.get_ident = _ident
    _thread.allocate_lock = _thread.allocate = _thread.lock = threading._allocate_lock = threading.Lock = Lock
    _thread.start_new_thread = _thread.start_new = _start_new
    _thread.start_joinable_thread = threading._start_joinable_thread = _start_joinable
    _thread._ThreadHandle = threading._ThreadHandle = _Handle
    threading._CRLock = None
    threading.local = _threading_local.local
    queue.SimpleQueue = queue._PySimpleQueue
    concurrent.futures.ThreadPoolExecutor.submit = _submit
    asyncio.base_events.BaseEventLoop._run_once = _run_loop_once

# Starts a program on a kernel whose Landlock says that it is an older version, or, as version 0, that there is none: a
# filter hands the question for the version to a process that answers it. Arguments: the version, and the program with its
# arguments.
import ctypes, errno, os, socket, struct, sys

CREATE_RULESET, SECCOMP = 444, 317 if os.uname().machine == "x86_64" else 277
NEW_LISTENER, RECEIVE, SEND = 8, 0xC0502100, 0xC0182101
libc = ctypes.CDLL(None, use_errno=True)


class Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("steps", ctypes.c_char_p)]


def install():
    steps = [
        (0x20, 0, 0, 0),  # the number of the call
        (0x15, 0, 3, CREATE_RULESET),
        (0x20, 0, 0, 32),  # its third argument
        (0x15, 0, 1, 1),  # the version is asked for
        (0x06, 0, 0, 0x7FC00000),  # somebody else answers
        (0x06, 0, 0, 0x7FFF0000),
    ]
    code = b"".join(struct.pack("HBBI", *step) for step in steps)
    libc.prctl(38, 1, 0, 0, 0)
    return libc.syscall(SECCOMP, 1, NEW_LISTENER, ctypes.byref(Program(len(steps), code)))


def answer(listener, version):
    while True:
        question = ctypes.create_string_buffer(80)
        if libc.ioctl(listener, RECEIVE, question) != 0:
            return
        value, error = (version, 0) if version > 0 else (0, -errno.ENOSYS)
        reply = ctypes.create_string_buffer(struct.pack("QqiI", *struct.unpack_from("Q", question), value, error, 0))
        libc.ioctl(listener, SEND, reply)


libc.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p]
ours, theirs = socket.socketpair()
# The answering process must not be held by the filter itself.
if os.fork() == 0:
    theirs.close()
    _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
    ours.close()
    answer(descriptors[0], int(sys.argv[1]))
    os._exit(0)
ours.close()
listener = install()
if listener < 0:
    sys.exit("no filter")
socket.send_fds(theirs, [b"x"], [listener])
os.close(listener)
theirs.close()
os.execvp(sys.argv[2], sys.argv[2:])

# Tries to get out of the sandbox, each way once, and prints what came of it: a name and `refused` with the reason, or
# `REACHED`. Arguments: the host's process, its port, the name of its abstract socket, and the lab's directory.
import ctypes, errno, fcntl, os, resource, socket, struct, sys

host, port, abstract, lab = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
level = sys.argv[5]
libc = ctypes.CDLL(None, use_errno=True)
X86 = os.uname().machine == "x86_64"
NAMESPACES = {"user": 0x10000000, "mount": 0x20000, "pid": 0x20000000, "network": 0x40000000, "time": 0x80}


def attempt(name, work):
    try:
        result = work()
    except OSError as error:
        print(f"{name}: refused {errno.errorcode.get(error.errno, error.errno)}")
        return
    print(f"{name}: REACHED {result!r:.200}")


def call(number, *arguments):
    ctypes.set_errno(0)
    answer = libc.syscall(number, *arguments)
    if answer == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return answer


def read(path):
    with open(path, "rb") as file:
        return file.read(64)


def write(path, text="1"):
    with open(path, "r+b" if os.path.exists(path) else "wb") as file:
        file.write(text.encode())


def deny(condition, value=None):
    """What must not be so."""
    if condition:
        return value or True
    raise OSError(errno.EPERM, "not so")


def connect(family, address, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as made:
        made.settimeout(2)
        made.connect(address)
        return made.getpeername()


def packet(address, kind):
    """By one of a pair of sockets, which need not be made as a socket is."""
    one, other = socket.socketpair(socket.AF_UNIX, kind)
    with one, other:
        return one.sendto(b"evil", address)


def terminal(request):
    master, slave = os.openpty()
    return fcntl.ioctl(slave, request, b"x\0\0\0\0\0\0\0")


def inherited_terminal(request):
    for fd in range(0, 64):
        if os.path.exists(f"/proc/self/fd/{fd}") and os.isatty(fd):
            return fd, fcntl.ioctl(fd, request, b"x\0\0\0\0\0\0\0")
    raise OSError(errno.ENOTTY, "no terminal")


def descriptors():
    named = {fd: os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if int(fd) > 2}
    named = {fd: name for fd, name in named.items() if name.startswith("/") and not name.startswith("/proc/")}
    return deny(named, named)


def own_memory_file():
    fd = os.memfd_create("own")
    os.write(fd, open("/bin/cat", "rb").read())
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writer, 1)
        os.dup2(os.open("/dev/null", os.O_WRONLY), 2)
        try:
            os.execv(f"/proc/self/fd/{fd}", ["cat", f"{lab}/home/.ssh/id"])
        finally:
            os._exit(1)
    os.close(writer)
    os.waitpid(child, 0)
    return deny(got := os.read(reader, 64), got)


def nested(flag):
    # The raw call, as no library's wrapper takes these flags.
    child = call(56 if X86 else 220, flag | 17, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return child


def status(field):
    line = next(line for line in open("/proc/self/status") if line.startswith(field))
    return line.split()[1]


def scheduling():
    # Its size, the usual scheduler, and nothing else.
    return ctypes.create_string_buffer(struct.pack("IIQiIQQQ", 48, 0, 0, 0, 0, 0, 0, 0))


def returned(answer):
    if answer == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return answer


def removed(control, number, *part):
    control(number, *part, 0, None)
    return number


def memory(take):
    """512 MB beside a limit of 200 MB."""
    limit = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (200 << 20, limit[1]))
    try:
        return [take() for _ in range(8)]
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limit)


def file_in_memory():
    fd = os.memfd_create("own")
    return fd, [os.write(fd, bytes(1 << 20)) for _ in range(64)]


def segment():
    number = returned(libc.shmget(0, 64 << 20, 0o1600))
    attached = libc.shmat(number, None, 0)
    ctypes.memset(attached, 1, 64 << 20)
    libc.shmdt(ctypes.c_void_p(attached))
    segments.append(number)
    return number


segments = []
libc.shmat.restype = ctypes.c_void_p


class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]


def memory_of(pid):
    buffer = ctypes.create_string_buffer(8)
    local, remote = Vector(ctypes.addressof(buffer), 8), Vector(ctypes.addressof(buffer), 8)
    return call(310 if X86 else 270, pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)


# Files.
attempt("a key in the home", lambda: read(f"{lab}/home/.ssh/id"))
attempt("the key of a model", lambda: read(f"{lab}/home/api-key"))
attempt("an ignored file of the checkout", lambda: read(f"{lab}/checkout/.env"))
attempt("the list of the home", lambda: os.listdir(f"{lab}/home"))
attempt("the passwords of the machine", lambda: read("/etc/shadow"))
attempt("keys of the machine's services", lambda: deny(os.listdir("/etc/ssl/private")) if os.path.isdir("/etc/ssl/private") else deny(False))
attempt("a file in a system directory", lambda: write("/usr/bin/evil"))
attempt("a file in /etc", lambda: write("/etc/evil"))
if level != "landlock":
    # Landlock does not cover modes: what belongs to the same user is open to this.
    attempt("the mode of somebody's file", lambda: os.chmod(f"{lab}/home/api-key", 0o666))
attempt("a file of the checkout", lambda: write(f"{lab}/checkout/evil"))
attempt("the start of another program from memory", own_memory_file)
attempt("a file by its handle", lambda: call(304 if X86 else 265, -100, ctypes.create_string_buffer(32), 0))
attempt("a device", lambda: os.mknod("/tmp/device" if level != "landlock" else f"{os.environ['TMPDIR']}/device", 0o60600, os.makedev(8, 0)))
attempt("memory of the machine", lambda: read("/dev/mem"))
attempt("messages of the kernel", lambda: read("/dev/kmsg"))
# Terminals.
attempt("typing into a terminal", lambda: terminal(0x5412))
attempt("acting on a console", lambda: terminal(0x541C))
attempt("another line discipline", lambda: terminal(0x5423))
attempt("the terminal of the session", lambda: os.open("/dev/tty", os.O_RDWR))
attempt("typing into a terminal that was inherited", lambda: inherited_terminal(0x5412))
attempt("a terminal of the session by its number", lambda: deny(int(read("/proc/self/stat").split()[6]) != 0))
attempt("a descriptor that was inherited", descriptors)
# The kernel and its settings.
attempt("the pattern of core files", lambda: write("/proc/sys/kernel/core_pattern", "|/tmp/evil"))
attempt("the name of the machine", lambda: write("/proc/sys/kernel/hostname", "evil"))
attempt("the panic of the kernel", lambda: write("/proc/sys/kernel/panic"))
attempt("a restart of the machine", lambda: write("/proc/sysrq-trigger", "x"))
attempt("more user namespaces", lambda: write("/proc/sys/user/max_user_namespaces", "1000"))
attempt("keys of the kernel", lambda: call(250 if X86 else 219, 0, -3, 1))
attempt("a new key", lambda: call(248 if X86 else 217, b"user", b"evil", b"x", 1, -3))
attempt("a program in the kernel", lambda: call(321 if X86 else 280, 0, ctypes.create_string_buffer(128), 128))
attempt("counters of the machine", lambda: call(298 if X86 else 241, ctypes.create_string_buffer(128), 0, -1, -1, 0))
attempt("faults of memory", lambda: call(323 if X86 else 282, 0))
attempt("rings of system calls", lambda: call(425, 4, ctypes.create_string_buffer(128)))
attempt("a log of the kernel", lambda: call(103 if X86 else 116, 10, 0, 0))
attempt("addresses without chance", lambda: libc.personality(0x40000) if libc.personality(0x40000) != -1 else deny(False))
attempt("the other instruction set", lambda: call(0x40000000 + 39) if X86 else deny(False))
# Namespaces and mounts.
for kind, flag in NAMESPACES.items():
    attempt(f"a {kind} namespace of its own", lambda: call(272 if X86 else 97, flag))
    if kind != "time":
        attempt(f"a process in a new {kind} namespace", lambda: nested(flag))
attempt("clone3", lambda: call(435, ctypes.create_string_buffer(88), 88))
attempt("another namespace", lambda: call(308 if X86 else 268, os.open("/proc/self/ns/net", os.O_RDONLY), 0))
attempt("a mount", lambda: call(165 if X86 else 40, b"none", b"/tmp", b"tmpfs", 0, 0))
attempt("a mount of the new kind", lambda: call(430, b"tmpfs", 0))
attempt("the end of a mount", lambda: call(166 if X86 else 39, b"/usr", 2))
attempt("another root", lambda: os.chroot("/tmp" if level != "landlock" else "/usr"))
# Memory.
attempt("memory by files in memory", lambda: memory(file_in_memory))
attempt("memory by a secret file in memory", lambda: call(447, 0))
attempt("memory by segments that are not attached", lambda: memory(segment))
for number in segments:
    libc.shmctl(number, 0, None)
if level != "landlock":
    # What a database asks for.
    returned(libc.shmget(0, 4096, 0o1600))
# Other processes.
attempt("the program of process 1", lambda: write("/proc/1/exe"))
attempt("where the program of process 1 lies", lambda: os.readlink("/proc/1/exe"))
attempt("the program of the parent", lambda: write(f"/proc/{os.getppid()}/exe"))
if level != "runsc":
    # There it is the program's own: whoever starts it in a backend has been told nothing else.
    attempt("the environment of the parent", lambda: read(f"/proc/{os.getppid()}/environ"))
attempt("the memory of the parent", lambda: read(f"/proc/{os.getppid()}/mem"))
attempt("tracing process 1", lambda: call(101 if X86 else 117, 16, 1, 0, 0))
attempt("tracing the parent", lambda: call(101 if X86 else 117, 16, os.getppid(), 0, 0))
attempt("being traced", lambda: call(101 if X86 else 117, 0, 0, 0, 0))
attempt("reading memory of the parent", lambda: memory_of(os.getppid()))
attempt("a signal to the host", lambda: os.kill(host, 0))
if level == "landlock":
    # Elsewhere it is the first process, which no signal ends; others are not in sight, and what is shared is its own.
    attempt("a signal to the parent", lambda: os.kill(os.getppid(), 0))
    for name, process in [("the host", host), ("the parent", os.getppid())]:
        attempt(f"limits of {name}", lambda: resource.prlimit(process, resource.RLIMIT_CORE))
        attempt(f"the priority of {name}", lambda: os.setpriority(os.PRIO_PROCESS, process, os.getpriority(os.PRIO_PROCESS, process)))
        attempt(f"the disk priority of {name}", lambda: call(251 if X86 else 30, 1, process, 2 << 13 | 4))
        attempt(f"the processors of {name}", lambda: os.sched_setaffinity(process, os.sched_getaffinity(process)))
        attempt(f"the scheduler of {name}", lambda: os.sched_setscheduler(process, os.SCHED_OTHER, os.sched_param(0)))
        attempt(f"the parameters of the scheduler of {name}", lambda: os.sched_setparam(process, os.sched_param(0)))
        attempt(f"the attributes of the scheduler of {name}", lambda: call(314 if X86 else 274, process, scheduling(), 0))
    attempt("the priority of the user's processes", lambda: os.setpriority(os.PRIO_USER, 0, os.getpriority(os.PRIO_USER, 0)))
    attempt("the priority of another group", lambda: os.setpriority(os.PRIO_PGRP, os.getpgid(host), os.getpriority(os.PRIO_PGRP, os.getpgid(host))))
    attempt("the disk priority of the user's processes", lambda: call(251 if X86 else 30, 3, os.getuid(), 2 << 13 | 4))
    attempt("shared memory of the machine", lambda: removed(libc.shmctl, returned(libc.shmget(1, 4096, 0o1600))))
    attempt("a queue of the machine", lambda: removed(libc.msgctl, returned(libc.msgget(1, 0o1600))))
    attempt("semaphores of the machine", lambda: removed(libc.semctl, returned(libc.semget(1, 1, 0o1600)), 0))
    attempt("a named queue of the machine", lambda: call(240 if X86 else 180, b"longhaul-attack", os.O_CREAT | os.O_RDWR, 0o600, None) and call(241 if X86 else 181, b"longhaul-attack"))
    attempt("a file in the shared memory of the machine", lambda: write("/dev/shm/longhaul-attack"))
    # Of oneself all of it is as usual.
    resource.setrlimit(resource.RLIMIT_CORE, resource.getrlimit(resource.RLIMIT_CORE))
    os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0))
    os.sched_setaffinity(0, os.sched_getaffinity(0))
    os.sched_setscheduler(0, os.sched_getscheduler(0), os.sched_getparam(0))
attempt("the environment of the host", lambda: read(f"/proc/{host}/environ") if level == "landlock" else deny(os.path.exists(f"/proc/{host}/environ") and host != os.getpid() and read(f"/proc/{host}/environ")))
# Rights.
attempt("the user root", lambda: deny(0 in os.getresuid() + os.getresgid() + tuple(os.getgroups())))
attempt("becoming root", lambda: os.setuid(0))
attempt("rights of root", lambda: deny(int(status("CapEff"), 16) | int(status("CapPrm"), 16) | int(status("CapBnd"), 16) * (level != "landlock")))
attempt("new rights by a program", lambda: deny(libc.prctl(39, 0, 0, 0, 0) != 1))
attempt("system calls without a filter", lambda: deny(status("Seccomp:") != "2"))
# Networks and services.
attempt("the loopback of the machine", lambda: connect(socket.AF_INET, ("127.0.0.1", port)))
attempt("a packet to the machine", lambda: deny(any("00000000" == line.split()[1] for line in open("/proc/net/route").readlines()[1:])) if level != "landlock" else connect(socket.AF_INET, ("127.0.0.1", port), socket.SOCK_DGRAM))
attempt("a service by its path", lambda: connect(socket.AF_UNIX, f"{lab}/service"))
attempt("a service by its abstract name", lambda: connect(socket.AF_UNIX, "\0" + abstract))
# Pairs that go nowhere else are what programs use; each kind of packets leads to any name, and this family has two.
for kind in [socket.SOCK_STREAM, socket.SOCK_SEQPACKET]:
    [end.close() for end in socket.socketpair(socket.AF_UNIX, kind)]
for kind in [socket.SOCK_DGRAM, socket.SOCK_RAW]:
    attempt(f"a packet to a service by its path, as kind {int(kind)}", lambda: packet(f"{lab}/packets", kind))
    attempt(f"a packet to a service by its abstract name, as kind {int(kind)}", lambda: packet("\0" + abstract + "-packets", kind))
for name, family, kind, protocol in [
    ("packets", socket.AF_PACKET, socket.SOCK_RAW, 0),
    ("a raw socket", socket.AF_INET, socket.SOCK_RAW, 1),
    ("audit messages", socket.AF_NETLINK, socket.SOCK_RAW, 9),
    ("the hypervisor", 40, socket.SOCK_STREAM, 0),
    ("ciphers of the kernel", 38, 5, 0),
]:
    attempt(name, lambda: socket.socket(family, kind, protocol).close())
print("end")

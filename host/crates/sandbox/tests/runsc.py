#!/usr/bin/python3
# Stands in for gVisor's `runsc`: checks what it is told, and holds a program by namespaces as a bundle asks for. What
# must not be so, or is not known, ends it with a line that says it. What it saw is in `seen.json` of the program's
# directory for temporary files.
import ctypes, json, os, signal, sys

FLAGS = {"--rootless", "--ignore-cgroups", "--network=none", "--host-uds=open", "--file-access=shared"}
FLAGS |= {"--overlay2=none"}
SPACES = {"pid", "network", "ipc", "uts", "mount"}
NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
RDONLY, NOSUID, NODEV, REMOUNT, BIND, REC = 1, 2, 4, 32, 4096, 16384
DETACH, PIVOT_ROOT = 2, 155 if os.uname().machine == "x86_64" else 41
# The only one that does nothing by itself: who has it may map root into a namespace.
RIGHTS = {"CAP_SETFCAP": 31}
KNOWN = {"ociVersion", "process", "root", "hostname", "mounts", "linux"}
libc = ctypes.CDLL(None, use_errno=True)


def want(condition, what):
    if not condition:
        sys.exit(f"stand-in: {what}")


def done(answer, what):
    want(answer == 0, f"{what}: {os.strerror(ctypes.get_errno())}")


def mount(source, target, kind, flags, options=None):
    encoded = [text and text.encode() for text in (source, target, kind)]
    done(libc.mount(*encoded, flags, options and options.encode()), f"mount {target}")


def mounts():
    for line in open("/proc/self/mountinfo"):
        fields = line.split()
        yield fields[4].replace("\\040", " "), fields[5].split(",")


def check_itself():
    status = dict(line.split(":\t", 1) for line in open("/proc/self/status") if ":\t" in line)
    want(os.getuid() != 0 and os.getgroups() in ([], [os.getgid()]), "it is started as root")
    want(int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0, "it is started with rights")
    want(set(os.environ) <= {"PATH", "LC_CTYPE"}, f"it is told variables: {sorted(os.environ)}")
    want(not os.isatty(0) and not os.isatty(2), "it has a terminal")


def check(config):
    process, root = config["process"], config["root"]
    want(set(config) == KNOWN, f"the bundle has {sorted(config)}")
    want(process["terminal"] is False and process["noNewPrivileges"] is True, "rights can be gained")
    want(all(set(rights) <= set(RIGHTS) for rights in process["capabilities"].values()), "capabilities are given")
    want({space["type"] for space in config["linux"]["namespaces"]} == SPACES, "a namespace is missing")
    want(root["readonly"] is True, "the root is writable")
    binds = [given for given in config["mounts"] if given["type"] == "bind"]
    for given in binds:
        source, shown = given["source"], given["destination"]
        want(source == root["path"] + shown, f"{source} is shown as {shown}")
    writable = tuple(given["source"] for given in binds if "ro" not in given["options"])
    for target, options in mounts():
        inside = target.startswith(root["path"] + "/") and not target.startswith(root["path"] + "/dev")
        if inside and not any(target == place or target.startswith(place + "/") for place in writable):
            want("ro" in options, f"{target} is mounted {options}")
    return binds


def seen(config):
    root = config["root"]["path"]
    shown = sorted(target[len(root):] for target, _ in mounts() if target.startswith(root + "/"))
    return {"top": sorted(os.listdir(root)), "shown": shown, "mounts": config["mounts"], "args": sys.argv[1:]}


def hold(config, binds):
    uid, gid, root = os.getuid(), os.getgid(), config["root"]["path"]
    done(libc.unshare(NEWUSER | NEWNS | NEWPID | NEWNET | NEWIPC | NEWUTS), "unshare")
    for file, text in [("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")]:
        open(f"/proc/self/{file}", "w").write(text)
    child = os.fork()
    if child == 0:
        libc.prctl(1, signal.SIGKILL, 0, 0, 0)
        begin(config, binds, root)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def begin(config, binds, root):
    os.setsid()
    mount(root, root, None, BIND | REC)
    mount(None, root, None, BIND | REMOUNT | RDONLY)
    for given in binds:
        mount(given["source"], given["source"], None, BIND | REC)
    mount("proc", root + "/proc", "proc", NOSUID | NODEV)
    os.chdir(root)
    done(libc.syscall(PIVOT_ROOT, b".", b"."), "pivot_root")
    done(libc.umount2(b".", DETACH), "umount")
    os.chdir(config["process"]["cwd"])
    given = {RIGHTS[name] for name in config["process"]["capabilities"].get("bounding", [])}
    for right in set(range(64)) - given:
        libc.prctl(24, right, 0, 0, 0)
    libc.prctl(38, 1, 0, 0, 0)
    # This language has turned them off.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    process = config["process"]
    os.execve(process["args"][0], process["args"], dict(pair.split("=", 1) for pair in process["env"]))


flags, (command, bundle, name) = sys.argv[1:-3], sys.argv[-3:]
state = next((flag.split("=")[1] for flag in flags if flag.startswith("--root=")), "")
want(set(flags) == FLAGS | {f"--root={state}"} and state == "/.state/state", f"flags {flags}")
want((command, bundle, name) == ("run", "--bundle=/.state", "program"), f"{command} {bundle} {name}")
check_itself()
config = json.load(open("/.state/config.json"))
binds = check(config)
print("stand-in: a warning before the program", file=sys.stderr, flush=True)
with open(config["root"]["path"] + "/tmp/tmp/seen.json", "w") as file:
    json.dump(seen(config), file)
hold(config, binds)

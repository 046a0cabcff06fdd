"""Makes the files of a release: python3 release.py COMMAND, which `cargo xtask dist` calls.

    dependencies ROOT FILE                     the list of dependencies that the program carries
    files ROOT PROGRAM GENERATED OUT EPOCH PATH...
                                               checks the program and writes the files of a release to OUT

No PATH may stand in the program. GENERATED has what the program writes of itself: `completions` and `man`. Nothing here builds or signs.
"""

import hashlib
import sys
from pathlib import Path

import archives
import packages
import program

TARGET = "x86_64-unknown-linux-gnu"
NAME = "longhaul"

# What is built; `cargo xtask dist` builds the same.
OF_PROGRAM = ["--package", NAME, "--features", "shipped,local-model", "--target", TARGET]
OF_PLUGINS = ["--workspace", "--target", "wasm32-unknown-unknown"]

CONTROL = """Package: {name}
Version: {version}
Architecture: amd64
Maintainer: The maintainers of Longhaul <longhaul@localhost>
Section: devel
Priority: optional
Depends: libc6 (>= 2.28), passwd
Recommends: ca-certificates, git
Description: host for long-running agents, sandboxed and journaled
 Longhaul runs long-lived AI agents as sandboxed WebAssembly components, and
 commits their work to git, feature by feature. Every effect is journaled, so a
 run that is killed goes on where it was.
"""

POSTINST = """#!/bin/sh
set -e
if [ "$1" = configure ]; then
    if ! getent passwd longhaul >/dev/null; then
        useradd --system --home-dir /var/lib/longhaul --shell /usr/sbin/nologin longhaul
    fi
    if [ -d /run/systemd/system ]; then
        systemctl daemon-reload || true
        # A service that runs goes on with the new program; one that does not is not started.
        systemctl try-restart longhaul.service || true
    fi
fi
"""

PRERM = """#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
    systemctl disable --now longhaul.service || true
fi
"""

# Runs, journals and secrets stay: nothing else has a copy of them.
POSTRM = """#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
if [ "$1" = purge ] && [ -d /var/lib/longhaul ]; then
    echo "longhaul: /var/lib/longhaul stays, with its runs; remove it with: rm -r /var/lib/longhaul" >&2
fi
"""


def main(arguments):
    match arguments:
        case ["dependencies", root, file]:
            found = packages.packages(Path(root) / "Cargo.toml", OF_PROGRAM)
            Path(file).write_bytes(packages.audit_list(found, NAME))
        case ["files", root, built, generated, out, epoch, *forbidden]:
            files(Path(root), Path(built), Path(generated), Path(out), int(epoch), forbidden)
        case _:
            raise SystemExit(__doc__)


def files(root, built, generated, out, epoch, forbidden):
    content = built.read_bytes()
    faults = program.faults(content, forbidden)
    if faults:
        raise SystemExit("\n".join(f"error: {built}: {fault}" for fault in faults))
    of_program = packages.packages(root / "Cargo.toml", OF_PROGRAM)
    of_plugins = packages.packages(root / "plugins/Cargo.toml", OF_PLUGINS)
    version = next(package.version for package in of_program if package.name == NAME)
    licences = packages.licences(of_program + of_plugins)
    locks = "".join((root / lock).read_text() for lock in ["Cargo.lock", "plugins/Cargo.lock"])
    bill = packages.bill_of_materials(of_program, of_plugins, NAME, locks, epoch)
    text = {name: (root / name).read_bytes()
            for name in ["README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE-APACHE", "LICENSE-MIT"]}
    unit = (root / "packaging/longhaul.service").read_text()
    written = {
        f"{NAME}-{version}-{TARGET}.tar.gz": tarball(content, generated, text, licences, unit, version, epoch),
        f"{NAME}_{version}_amd64.deb": debian(content, generated, text, licences, unit, version, epoch),
        f"{NAME}-{version}.cdx.json": bill.encode(),
    }
    for old in out.iterdir():
        old.unlink()
    for name, data in written.items():
        (out / name).write_bytes(data)
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(written.items()))
    (out / "SHA256SUMS").write_text(sums)
    # It checks the digests and has none; `packaging/fill.py` sets the public home in it.
    (out / "install.sh").write_bytes((root / "packaging/install.sh").read_bytes())
    print(f"{NAME} {version}: {len(content) / (1 << 20):.1f} MiB, {len(of_program)} packages")
    print(sums, end="")


def tarball(content, generated, text, licences, unit, version, epoch):
    entries = [archives.Entry(NAME, content, 0o755), archives.Entry("LICENCES-OF-DEPENDENCIES.txt", licences),
               archives.Entry("longhaul.service", unit)]
    entries += [archives.Entry(name, data) for name, data in text.items()]
    for folder in ["completions", "man"]:
        entries += [archives.Entry(f"{folder}/{file.name}", file.read_bytes())
                    for file in sorted((generated / folder).iterdir())]
    return archives.tar_gz(entries, epoch, f"{NAME}-{version}/")


def debian(content, generated, text, licences, unit, version, epoch):
    completions = {
        "bash": f"usr/share/bash-completion/completions/{NAME}",
        "zsh": f"usr/share/zsh/vendor-completions/_{NAME}",
        "fish": f"usr/share/fish/vendor_completions.d/{NAME}.fish",
    }
    written_by = {"bash": f"{NAME}.bash", "zsh": f"_{NAME}", "fish": f"{NAME}.fish"}
    documents = f"usr/share/doc/{NAME}"
    # The licence texts of a package stand in its `copyright`.
    rights = text["LICENSE-MIT"] + b"\nOr, at your choice:\n\n" + text["LICENSE-APACHE"] + b"\n" + licences.encode()
    entries = [
        archives.Entry(f"usr/bin/{NAME}", content, 0o755),
        archives.Entry("usr/lib/systemd/system/longhaul.service", unit.replace("/usr/local/bin/", "/usr/bin/")),
        archives.Entry(f"{documents}/copyright", rights),
        archives.Entry(f"{documents}/README.md", text["README.md"]),
        archives.Entry(f"{documents}/changelog.gz", archives.packed(text["CHANGELOG.md"])),
    ]
    entries += [archives.Entry(path, (generated / "completions" / written_by[shell]).read_bytes())
                for shell, path in completions.items()]
    entries += [archives.Entry(f"usr/share/man/man1/{page.name}.gz", archives.packed(page.read_bytes()))
                for page in sorted((generated / "man").iterdir())]
    control = CONTROL.format(name=NAME, version=version)
    return archives.deb(entries, control, {"postinst": POSTINST, "prerm": PRERM, "postrm": POSTRM}, epoch)


if __name__ == "__main__":
    main(sys.argv[1:])

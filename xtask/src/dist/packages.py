"""The packages that a program is made of, as cargo resolves them: for auditors, for a bill of materials, for licences.

Own code in place of `cargo auditable` and `cargo cyclonedx`: each is built for minutes, both read the same two commands
of cargo, and what they write is short. Nothing here asks a registry.
"""

import datetime
import json
import os
import re
import subprocess
import uuid
import zlib
from pathlib import Path

# The name by which auditors know the registry that cargo uses by default, in two parts.
REGISTRY = ".".join(["crates", "io"])

# The machine that releases are built on.
HOST = "x86_64-unknown-linux-gnu"

# Files of a package that hold a licence or a notice, wherever in it: of vendored sources, too.
LICENCE_FILE = re.compile(r"(UN)?(LICEN[SC]E|COPYING|COPYRIGHT|NOTICE|AUTHORS)", re.IGNORECASE)

# The checksum of a package in Cargo.lock.
CHECKSUM = re.compile(r'name = "([^"]+)"\nversion = "([^"]+)"\nsource = [^\n]+\nchecksum = "([0-9a-f]+)"')

# Folders with files for tests, which are not part of a program.
NOT_BUILT = {"tests", "test", "benches", "examples", "target", "fuzz", ".git"}

# Components that no package of cargo's tells of: what interpreters are made of.
INTERPRETERS = [
    ("CPython", "PSF-2.0", "python.wasm", "the interpreter, with its standard library"),
    ("QuickJS", "MIT", "javascript.wasm", "the interpreter"),
]


class Package:
    """A package, and the packages that it is built with."""

    def __init__(self, described, is_runtime, dependencies):
        self.name = described["name"]
        self.version = described["version"]
        self.licence = described.get("license") or ""
        self.licence_file = described.get("license_file")
        self.source = described.get("source")
        self.folder = Path(described["manifest_path"]).parent
        self.is_runtime = is_runtime
        self.dependencies = dependencies

    @property
    def key(self):
        return (self.name, self.version)

    @property
    def url(self):
        return f"pkg:cargo/{self.name}@{self.version}"


def packages(manifest, options):
    """The packages of the build of `manifest` with these options of cargo's, by name and version, sorted."""
    # cargo tree knows which features are on, and cargo metadata where a package is and what it says of itself.
    runtime = _names(manifest, options, "normal,no-proc-macro")
    built = _names(manifest, options, "normal,build")
    command = ["metadata", "--format-version", "1", "--locked", "--all-features", "--manifest-path", str(manifest)]
    # Build scripts and macros run on the machine that builds.
    platforms = [word for target in (options[options.index("--target") + 1], HOST)
                 for word in ("--filter-platform", target)]
    metadata = json.loads(_cargo(command + platforms))
    described = {package["id"]: package for package in metadata["packages"]}
    keys = {id: (package["name"], package["version"]) for id, package in described.items()}
    found = {}
    for node in metadata["resolve"]["nodes"]:
        key = keys[node["id"]]
        if key in built:
            for_tests = {dep["pkg"] for dep in node["deps"] if all(kind["kind"] == "dev" for kind in dep["dep_kinds"])}
            dependencies = {keys[id] for id in node["dependencies"] if id not in for_tests} & built
            found[key] = Package(described[node["id"]], key in runtime, sorted(dependencies))
    if missing := sorted(built - found.keys()):
        raise SystemExit(f"error: cargo tree lists packages that cargo metadata does not: {missing}")
    return [found[key] for key in sorted(found)]


def _names(manifest, options, edges):
    command = ["tree", "--locked", "--manifest-path", str(manifest), "--edges", edges, "--prefix", "none"]
    names = set()
    for line in _cargo(command + ["--format", "{p}"] + options).splitlines():
        words = line.split()
        if len(words) >= 2:
            names.add((words[0], words[1].removeprefix("v")))
    return names


def _cargo(arguments):
    cargo = os.environ.get("CARGO", "cargo")
    return subprocess.run([cargo, *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def audit_list(found, root):
    """The list in the form of `cargo auditable`: JSON, packed with zlib."""
    places = {package.key: place for place, package in enumerate(found)}
    listed = []
    for package in found:
        entry = {"name": package.name, "version": package.version, "source": _source(package)}
        if not package.is_runtime:
            entry["kind"] = "build"
        if package.dependencies:
            entry["dependencies"] = sorted(places[key] for key in package.dependencies)
        if package.name == root:
            entry["root"] = True
        listed.append(entry)
    text = json.dumps({"packages": listed}, separators=(",", ":"))
    return zlib.compress(text.encode(), 9)


def _source(package):
    if package.source is None:
        return "local"
    return REGISTRY if package.source.startswith("registry+") else package.source.split("+")[0]


def bill_of_materials(found, of_plugins, root, lock, epoch):
    """A CycloneDX document, without a time or a number of its own: the same build has the same document."""
    sums = {(name, version): digest for name, version, digest in CHECKSUM.findall(lock)}
    program = next(package for package in found if package.name == root)
    known = {package.key for package in found}
    components = [_component(package, sums) for package in found if package is not program]
    for package in of_plugins:
        if package.key not in known and package.is_runtime:
            component = _component(package, sums)
            component["properties"] = [{"name": "longhaul:part", "value": "a shipped plugin"}]
            components.append(component)
    for name, licence, file, what in INTERPRETERS:
        components.append({
            "type": "library", "bom-ref": f"interpreter:{name}", "name": name, "description": f"{what}, in {file}",
            "licenses": [{"license": {"id": licence}}],
        })
    dependencies = [{"ref": package.url, "dependsOn": [f"pkg:cargo/{name}@{version}" for name, version
                                                        in package.dependencies]} for package in found]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "application", "bom-ref": program.url, "name": program.name, "version": program.version,
                "purl": program.url, "licenses": [{"expression": program.licence}],
            },
        },
        "components": components,
        "dependencies": dependencies,
    }
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(document, sort_keys=True))
    return json.dumps({"$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
                       "serialNumber": f"urn:uuid:{number}", **document}, indent=1) + "\n"


def _component(package, sums):
    component = {
        "type": "library", "bom-ref": package.url, "name": package.name, "version": package.version,
        "purl": package.url, "scope": "required" if package.is_runtime else "excluded",
    }
    if package.licence:
        # The older way to write "or", which is no expression.
        component["licenses"] = [{"expression": package.licence.replace("/", " OR ")}]
    if package.key in sums:
        component["hashes"] = [{"alg": "SHA-256", "content": sums[package.key]}]
    return component


def licences(found):
    """The texts of the licences of all packages, each once, with the packages that it stands for."""
    texts = {}
    without = []
    for package in found:
        # Packages of this repository have its licence, whose texts are in the archive.
        files = _licence_files(package) if package.source else []
        if package.source and not files:
            without.append(package)
        for file in files:
            text = file.read_text(encoding="utf-8", errors="replace").strip()
            title = f"{package.name} {package.version} ({package.licence}), {file.relative_to(package.folder)}"
            texts.setdefault(_folded(text), (text, []))[1].append(title)
    parts = ["The licences of what longhaul is built from. Each text stands once, below the packages that have it.\n"]
    for name, licence, file, what in INTERPRETERS:
        parts.append(f"{file} contains {name} ({licence}), {what}.\n")
    for text, titles in sorted(texts.values(), key=lambda entry: entry[1][0]):
        parts.append("-" * 80 + "\n" + "\n".join(sorted(set(titles))) + "\n\n" + text + "\n")
    if without:
        parts.append("-" * 80 + "\nPackages without a text of their own, under the licences that they name:\n\n"
                     + "\n".join(f"{package.name} {package.version}: {package.licence}" for package in without) + "\n")
    return "\n".join(parts)


def _licence_files(package):
    found = set()
    for folder, folders, files in os.walk(package.folder):
        depth = len(Path(folder).relative_to(package.folder).parts)
        folders[:] = [] if depth >= 3 else sorted(name for name in folders if name not in NOT_BUILT)
        for name in files:
            is_text = Path(name).suffix.lower() in ("", ".md", ".txt") or LICENCE_FILE.fullmatch(Path(name).suffix[1:])
            is_dual = re.match(r"LICEN[SC]E[-_.]", name, re.IGNORECASE) and Path(name).suffix.lower() not in (".rs", ".py")
            if LICENCE_FILE.match(name) and (is_text or is_dual):
                found.add(Path(folder) / name)
    named = package.licence_file and package.folder / package.licence_file
    if named and named.is_file():
        found.add(named)
    return sorted(found)


def _folded(text):
    return re.sub(r"\s+", " ", text).lower()

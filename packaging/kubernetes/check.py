"""Holds the manifests to the schemas of Kubernetes: python3 check.py [DIRECTORY]

Reads the manifests of a directory, its own by default, and applies each of its `patches` to the resource that the patch
names. Each resource has to fit the schemas of the oldest version that the manifests are for and of the newest one that
there are schemas for, without a field that they do not know. The settings in a ConfigMap have to be TOML, and a worker
needs the database that it shares; their keys are checked by the server. Prints the resources of each file as JSON; the
first fault is one line, and the exit code 1. Needs Python 3.11, the packages of requirements.txt, and no cluster.
"""

import json
import sys
import tomllib
from pathlib import Path

import kubernetes_validate
import yaml

OLDEST = "1.30"
NEWEST = kubernetes_validate.latest_version()


class Loader(yaml.SafeLoader):
    """Refuses a key that stands twice in a map, as Kubernetes does."""

    def construct_mapping(self, node, deep=False):
        keys = set()
        for node_of_key, _ in node.value:
            key = self.construct_object(node_of_key, deep=True)
            if key in keys:
                raise yaml.constructor.ConstructorError(None, None, f"`{key}` stands twice", node_of_key.start_mark)
            keys.add(key)
        return super().construct_mapping(node, deep)


def main(directory):
    files = {path: read(path) for path in sorted(directory.glob("*.yaml"))}
    patches = {path: read(path) for path in sorted(directory.glob("patches/*.yaml"))}
    if not files:
        raise SystemExit(f"error: `{directory}` has no manifests")
    resources = {name(resource): resource for found in files.values() for resource in found}
    for path, found in patches.items():
        for patch in found:
            if name(patch) not in resources:
                raise SystemExit(f"error: {path}: there is no {name(patch)}")
        files[path] = [merged(resources[name(patch)], patch) for patch in found]
    for path, found in files.items():
        for resource in found:
            for version in (OLDEST, NEWEST):
                check(path, resource, version)
            check_settings(path, resource)
    shown = {str(path.relative_to(directory)): found for path, found in files.items()}
    print(json.dumps(shown, indent=1))


def read(path):
    try:
        with path.open() as file:
            return [resource for resource in yaml.load_all(file, Loader) if resource]
    except yaml.YAMLError as error:
        raise SystemExit(f"error: {path}: {' '.join(str(error).split())}")


def name(resource):
    metadata = resource.get("metadata", {})
    return f"{resource.get('kind')} {metadata.get('namespace')}/{metadata.get('name')}"


def merged(value, patch):
    """A value with a strategic merge patch: maps are merged, and so are lists of what has names, by these."""
    if isinstance(value, dict) and isinstance(patch, dict):
        return {**value, **{key: merged(value.get(key), change) for key, change in patch.items()}}
    if not (isinstance(value, list) and all(isinstance(item, dict) and "name" in item for item in value + patch)):
        return patch
    changes = {change["name"]: change for change in patch}
    changed = [merged(item, changes.pop(item["name"], {})) for item in value]
    return changed + list(changes.values())


def check(path, resource, version):
    try:
        kubernetes_validate.validate(resource, version, strict=True)
    except kubernetes_validate.ValidationError as error:
        place = ".".join(str(part) for part in error.path)
        raise SystemExit(f"error: {path}: {name(resource)}: Kubernetes {version}: {place}: {error.message}")
    except kubernetes_validate.SchemaNotFoundError as error:
        raise SystemExit(f"error: {path}: {name(resource)}: {error.message}")


def check_settings(path, resource):
    """A server that cannot read its settings would end again and again."""
    if resource["kind"] != "ConfigMap":
        return
    for key, text in (resource.get("data") or {}).items():
        if not key.endswith(".toml"):
            continue
        try:
            settings = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise SystemExit(f"error: {path}: {name(resource)}: {key}: {error}")
        if "worker" in settings and "store" not in settings:
            raise SystemExit(f"error: {path}: {name(resource)}: {key}: [worker] needs the database of [store]")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).resolve().parent)

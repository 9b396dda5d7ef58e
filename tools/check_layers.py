#!/usr/bin/env python3
"""Checks the shape of the source tree; prints what is wrong and exits 1.

- Includes point one way: base <- ocl <- stages <- pipeline <- cli. A stage may use the types that a
  neighbour's public header declares, as the table says, never its other headers.
- A file's name is unique in the repository.
- A C file or kernel opens with a comment that says what it is for, and has at most 650 lines.
"""
import collections
import os
import re
import sys

# What each folder of pipeline/ may include from other folders. "ocl" where a stage talks to
# devices; other stages' headers where data passes from one to the next.
MAY_USE = {
    "base": set(),
    "ocl": {"base"},
    "walk": {"base"},
    "decode": {"base"},
    "staging": {"base", "ocl", "decode", "histogram"},
    "histogram": {"base", "ocl", "decode"},
    "store": {"base", "decode", "histogram"},
    "cluster": {"base", "ocl", "store", "histogram"},
    ".": {"base", "ocl", "walk", "decode", "staging", "histogram", "store", "cluster"},
    "cli": {"base", "ocl", "walk", "decode", "staging", "histogram", "store", "cluster", "."},
}
LIMIT = 650
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def source_files(root):
    for top in ("pipeline", "kernels", "tools", "datasets", "tests"):
        for folder, folders, names in os.walk(os.path.join(root, top)):
            folders[:] = sorted(f for f in folders if not f.startswith((".", "__")))
            for name in sorted(names):
                yield os.path.relpath(os.path.join(folder, name), root)


def folder_of(path):
    """The layer of a path below pipeline/."""
    parts = path.split("/")
    return parts[0] if len(parts) > 1 else "."


def main():
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    wrong = []
    names = collections.defaultdict(list)
    for path in source_files(root):
        names[os.path.basename(path)].append(path)
        if not path.endswith((".c", ".h", ".cl")):
            continue
        with open(os.path.join(root, path), encoding="utf-8") as file:
            lines = file.read().splitlines()
        if not lines or not lines[0].startswith("/*"):
            wrong.append("%s: does not open with a comment on its purpose" % path)
        if len(lines) > LIMIT:
            wrong.append("%s: %d lines, more than %d" % (path, len(lines), LIMIT))
        if not path.startswith("pipeline/"):
            continue
        layer = folder_of(path[len("pipeline/"):])
        if layer not in MAY_USE:
            wrong.append("%s: %s is no known layer" % (path, layer))
            continue
        for number, line in enumerate(lines, 1):
            found = INCLUDE.match(line)
            if not found or not os.path.exists(os.path.join(root, "pipeline", found[1])):
                continue  # of the same folder, of kernels/, or generated
            other = folder_of(found[1])
            if other != layer and other not in MAY_USE[layer]:
                wrong.append("%s:%d: %s must not include %s" % (path, number, layer, found[1]))
    for name, paths in sorted(names.items()):
        if len(paths) > 1 and not name.startswith("README"):
            wrong.append("%s: one name, several files: %s" % (name, ", ".join(paths)))
    print("\n".join(wrong) if wrong else "the layers are in order")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

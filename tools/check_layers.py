#!/usr/bin/env python3
"""Checks how the source tree hangs together.

    tools/check_layers.py [ROOT]

* Includes point one way: base <- ocl <- stages <- jobs <- cli. A stage includes base and itself, a
  job all stages and itself; which stages see OpenCL and kernels, and which see another stage, is
  listed below. Kernels include kernels.
* A C file, header or kernel opens with a comment on its purpose.
* A file name occurs once in pipeline/ and kernels/.
* A file of more than 600 lines says "long because: REASON" near its top.

Prints what is wrong, one line each, and exits 1; or prints nothing and exits 0.
"""
import os
import re
import sys

# Stage -> what it may include besides base and itself.
STAGE_INCLUDES = {
    "part": (),
    "walk": (),
    "decode": ("part",),
    "features": ("part",),
    "staging": ("ocl", "kernels", "part", "features", "histogram", "steps"),
    "steps": ("ocl", "kernels", "part"),
    "histogram": ("ocl", "kernels", "part", "features"),
    "log": (),
    "file": ("log", "features"),
    "matrix": ("file",),
    "cluster": ("ocl", "kernels", "matrix"),
}

# Folders that wire stages.
JOBS = ("ingest",)

LINES_MAX = 600
# "long because:" stands within this many lines of the top.
REASON_WITHIN = 30

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')
SOURCES = (".c", ".h", ".cl", ".py")
SOURCE_DIRECTORIES = ("pipeline", "kernels", "tools", "tests", "datasets")


def files_below(root, directory):
    """Paths below root/directory, relative to root, sorted."""
    found = []
    for path, directories, names in os.walk(os.path.join(root, directory)):
        directories[:] = [d for d in directories if not d.startswith((".", "__"))]
        found += [os.path.relpath(os.path.join(path, n), root) for n in names]
    return sorted(found)


def layer_of(path):
    """The layer of a path relative to the root: a folder's name or "kernels"; None for files that are
    in no layer."""
    parts = path.split(os.sep)
    if parts[0] == "kernels":
        return "kernels"
    if parts[0] == "pipeline":
        return parts[1]
    return None


def allowed(layer):
    """The layers that a file of this layer may include; None for an unknown layer."""
    if layer == "kernels":
        return {"kernels"}
    if layer == "base":
        return {"base"}
    if layer == "ocl":
        return {"base", "ocl", "kernels"}
    if layer in STAGE_INCLUDES:
        return {"base", layer} | set(STAGE_INCLUDES[layer])
    below = {"base", "ocl", "kernels"} | set(STAGE_INCLUDES)
    if layer in JOBS:
        return below | {layer}
    if layer == "cli":
        return below | set(JOBS) | {"cli"}
    return None


def resolve(root, path, include):
    """The included file relative to root, looked for as the compiler does; None if it is not in the
    tree (generated, or a library's)."""
    for directory in (os.path.dirname(path), "pipeline", "kernels"):
        candidate = os.path.normpath(os.path.join(directory, include))
        if os.path.isfile(os.path.join(root, candidate)):
            return candidate
    return None


def read_lines(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read().splitlines()


def check_includes(root, path, lines):
    layer = layer_of(path)
    may = allowed(layer)
    if may is None:
        return ["%s: the folder '%s' is no layer that tools/check_layers.py knows" % (path, layer)]
    wrong = []
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        target = match and resolve(root, path, match.group(1))
        if target and layer_of(target) not in may:
            wrong.append("%s:%d: includes %s, but %s may include only %s" %
                         (path, number, match.group(1), layer, ", ".join(sorted(may))))
    return wrong


def check_length(path, lines):
    if len(lines) <= LINES_MAX:
        return []
    if any(re.search(r"long because: *\S", line) for line in lines[:REASON_WITHIN]):
        return []
    return ["%s: %d lines, more than %d: split it, or say \"long because: REASON\" near its top" %
            (path, len(lines), LINES_MAX)]


def check_purpose(path, lines):
    if not path.endswith((".c", ".h", ".cl")) or (lines and lines[0].startswith("/*")):
        return []
    return ["%s: does not open with a comment on its purpose" % path]


def check_names(paths):
    first = {}
    wrong = []
    for path in paths:
        name = os.path.basename(path)
        if name in first:
            wrong.append("%s: there is %s already; file names are unique" % (path, first[name]))
        first.setdefault(name, path)
    return wrong


def check(root):
    """The list of everything that is wrong in the tree."""
    wrong = []
    named = []
    for directory in SOURCE_DIRECTORIES:
        for path in files_below(root, directory):
            if directory in ("pipeline", "kernels"):
                named.append(path)
            if not path.endswith(SOURCES):
                continue
            lines = read_lines(root, path)
            wrong += check_purpose(path, lines) + check_length(path, lines)
            if directory in ("pipeline", "kernels"):
                wrong += check_includes(root, path, lines)
    return wrong + check_names(named)


def main(arguments):
    if len(arguments) > 2 or (len(arguments) == 2 and not os.path.isdir(arguments[1])):
        print("usage: tools/check_layers.py [ROOT]", file=sys.stderr)
        return 2
    here = os.path.dirname(os.path.abspath(__file__))
    root = arguments[1] if len(arguments) == 2 else os.path.dirname(here)
    if not os.path.isdir(os.path.join(root, "pipeline")):
        print("%s has no pipeline/ to check" % root, file=sys.stderr)
        return 2
    wrong = check(root)
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))

#!/usr/bin/env python3
"""Checks the structure of the source tree.

    tools/check_layers.py [ROOT]

* Includes point one way: base <- ocl <- stages <- jobs <- cli. A stage includes base and itself, a
  job all stages and itself; which stages see OpenCL and kernels, and which see another stage, is
  listed below. Kernels include kernels.
* A C file, header or kernel opens with a comment on its purpose.
* A file name occurs once in pipeline/ and kernels/.
* Includes form no cycle: a .c and its .h count as one file, and the includes of a header without a
  .c as those of each file that includes it.
* A test file is in the folder named after the sources that it tests, after the kernels or after a toy,
and ends with its group.
* HDF5 is called only in the folders of the result file and of the matrices.

Prints each violation on one line and exits 1; without any it prints nothing and exits 0.
"""
import os
import re
import sys

# Stage -> what else it may include, apart from base and itself.
STAGE_INCLUDES = {
    "ranks": (),
    "sources": (),
    "decode": (),
    "matrix": (),
    "net": ("kernels",),
    "kmeans": ("ocl", "kernels", "ranks", "matrix"),
    "features": ("ocl", "kernels", "decode", "matrix", "net", "kmeans"),
    "device": ("ocl", "kernels", "decode", "net", "features"),
    "result": ("matrix", "features"),
    "neighbours": ("ocl", "kernels", "matrix", "kmeans", "features", "result"),
}

# Folders that connect stages.
JOBS = ("ingest", "jobs", "report", "library")
# Job -> the other jobs that it may include.
JOB_INCLUDES = {"report": ("jobs",), "library": ("ingest", "jobs")}

# Folders that still have include cycles. Add none.
KNOWN_CIRCLES = ()

HDF5_FOLDERS = ("result", "matrix")
HDF5 = re.compile(r"#\s*include\s*<hdf5|\bH5[A-Z]{1,2}[a-z]\w*\s*\(")

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
    """The layer of a path relative to the root: a folder's name or "kernels"; None for files outside all
    layers."""
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
        return below | {layer} | set(JOB_INCLUDES.get(layer, ()))
    if layer == "cli":
        return below | set(JOBS) | {"cli"}
    return None


def resolve(root, path, include):
    """The included file relative to root, searched as the compiler does; None if it is not in the
    tree (generated, or from a library)."""
    for directory in (os.path.dirname(path), "pipeline", "kernels"):
        candidate = os.path.normpath(os.path.join(directory, include))
        if os.path.isfile(os.path.join(root, candidate)):
            return candidate
    return None


def read_lines(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read().splitlines()


def included(root, path, lines):
    """(line number, name, path relative to root) of what the file includes from the tree."""
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        target = match and resolve(root, path, match.group(1))
        if target:
            yield number, match.group(1), target


def check_includes(path, targets):
    layer = layer_of(path)
    may = allowed(layer)
    if may is None:
        return ["%s: the folder '%s' is no layer that tools/check_layers.py knows" % (path, layer)]
    return ["%s:%d: includes %s, but %s may include only %s" %
            (path, number, name, layer, ", ".join(sorted(may)))
            for number, name, target in targets if layer_of(target) not in may]


def check_hdf5(path, lines):
    if layer_of(path) in HDF5_FOLDERS:
        return []
    return ["%s:%d: calls HDF5, which only %s do" % (path, number, " and ".join(HDF5_FOLDERS))
            for number, line in enumerate(lines, 1) if HDF5.search(line)]


def check_test(root, path, lines):
    folder = path.split(os.sep)[1]
    if not re.search(r"/test_\w+\.c$", path):
        return []
    if folder not in ("kernels", "toys") and not os.path.isdir(os.path.join(root, "pipeline", folder)):
        return ["%s: there is no folder pipeline/%s" % (path, folder)]
    name = re.escape(os.path.basename(path)[len("test_"):-len(".c")])
    if not any(re.match(r"TEST_GROUP(_WITHIN\(\d+, |\()%s, " % name, line) for line in lines):
        return ["%s: has no TEST_GROUP of that name (tests/runner.h)" % path]
    return []


def include_graph(includes):
    """For each .c without its suffix, the others that it includes, directly or by headers that have
    no .c. `includes`: path -> included paths."""
    def module(path):
        stem = os.path.splitext(path)[0]
        return stem if stem + ".c" in includes else None

    def reached(path, seen):
        found = set()
        for target in includes.get(path, ()):
            if target not in seen:
                seen.add(target)
                found |= {module(target)} if module(target) else reached(target, seen)
        return found

    graph = {}
    for path in includes:
        if module(path):
            graph.setdefault(module(path), set()).update(reached(path, set()) - {module(path)})
    return graph


def find_circles(graph):
    """The sets of several modules in which each module reaches all others."""
    def reachable(start):
        seen, todo = set(), [start]
        while todo:
            for target in graph[todo.pop()]:
                if target not in seen:
                    seen.add(target)
                    todo.append(target)
        return seen

    reach = {module: reachable(module) for module in graph}
    circles = []
    for module in sorted(graph):
        circle = {other for other in reach[module] if module in reach[other]}
        if circle and module == min(circle):
            circles.append(circle)
    return circles


def check_circles(includes):
    graph = include_graph(includes)
    wrong = []
    for circle in find_circles(graph):
        layers = {layer_of(module + ".c") for module in circle}
        if len(layers) > 1 or not layers.issubset(KNOWN_CIRCLES):
            wrong.append("includes run in a circle: " + "; ".join(
                "%s includes %s" % (module, ", ".join(sorted(graph[module] & circle)))
                for module in sorted(circle)))
    return wrong


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
    """The list of all violations in the tree."""
    wrong = []
    named = []
    includes = {}
    for directory in SOURCE_DIRECTORIES:
        for path in files_below(root, directory):
            if directory in ("pipeline", "kernels"):
                named.append(path)
            if not path.endswith(SOURCES):
                continue
            lines = read_lines(root, path)
            wrong += check_purpose(path, lines)
            if directory == "tests":
                wrong += check_test(root, path, lines)
            if directory not in ("pipeline", "kernels"):
                continue
            targets = list(included(root, path, lines))
            includes[path] = [target for _, _, target in targets]
            wrong += check_includes(path, targets)
            wrong += check_hdf5(path, lines)
    return wrong + check_names(named) + check_circles(includes)


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

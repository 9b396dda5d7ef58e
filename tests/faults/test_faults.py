"""Makes every call of the program that can fail do so, one at a time: files, memory, threads and OpenCL (see
faults.c). After any fault the program exits with a documented status and one clear line; a file under its
final name is complete; and repeating the command without the fault gives the usual result. "kill" ends the
program immediately before the call.

A first run without faults counts the calls of each site. CLPIPE_LONG=1 tests all sites; otherwise an even
sample is tested: 2 of each class of calls, 12 with CLPIPE_ALL=1, 1 with CLPIPE_CORE=1. A disk that is full
from a given write on is tested for every third write of an ingest, or for every write of an ingest and of a
clustering."""

import collections
import concurrent.futures
import copy
import errno
import math
import os
import shutil
import subprocess
import tarfile
import sys
from pathlib import Path

import h5py
import numpy
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "cli"))
from conftest import ALL, CLPIPE, CORE, LONG, draw_photos, error_lines, program, run_clpipe  # noqa: E402, F401

LIBRARY = CLPIPE.parent / "tests" / "faults.so"
# Number of cases for each class of calls, and the time limit of a command in seconds.
CASES = 1e9 if LONG else 12 if ALL else 1 if CORE else 2
HANG = 30

OUT_OF_RESOURCES, NO_BUFFER, NO_MEMORY, NOT_BUILT = -5, -4, -6, -11
# Faults for each class of calls. "+": that call and all later ones fail.
ACTIONS = {
    "open": [errno.EACCES, errno.EMFILE, "kill"],
    "list": [errno.EIO],
    "read": [errno.EIO, errno.EINTR, "short"],
    "write": [f"{errno.ENOSPC}+", errno.EIO, errno.EINTR, "short", "kill"],
    "copy": [f"{errno.EOPNOTSUPP}+", errno.EOPNOTSUPP],
    "sync": [errno.EIO, "kill"],
    "rename": [errno.EIO, errno.ENOSPC, "kill"],
    "truncate": [errno.ENOSPC, "kill"],
    "mkdir": [errno.EACCES, errno.ENOSPC, "kill"],
    "unlink": [errno.EIO, "kill"],
    "map": [errno.ENOMEM],
    "memory": [errno.ENOMEM],
    "thread": [errno.EAGAIN],
    "process": [errno.EAGAIN, "kill"],
    "socket": [errno.EMFILE],
    "message": [errno.ENOMEM, errno.EINTR, "kill"],
    "context": [OUT_OF_RESOURCES],
    "queue": [NO_MEMORY],
    "buffer": [NO_BUFFER, f"{NO_BUFFER}+"],
    "program": [NO_MEMORY],
    "build": [NOT_BUILT, f"{NOT_BUILT}+"],
    "kernel": [NO_MEMORY],
    "argument": [OUT_OF_RESOURCES],
    "launch": [OUT_OF_RESOURCES],
    "transfer": [OUT_OF_RESOURCES],
    "flush": [OUT_OF_RESOURCES],
    "callback": [OUT_OF_RESOURCES],
    "event": [OUT_OF_RESOURCES],
}


# All enqueue calls of one kind are one site: each call is a separate case, up to this number.
OPENCL = ("context", "queue", "buffer", "program", "build", "kernel", "argument", "launch",
          "transfer", "flush", "callback", "event")
CALLS = 60 if LONG else 3


def run_with(place, args, fault=None, listing=None, note=None, env=None):
    env = {**os.environ, "LD_PRELOAD": str(LIBRARY), **(env or {})}
    for key, value in [("CLPIPE_FAULT", fault), ("CLPIPE_FAULT_LIST", listing),
                       ("CLPIPE_FAULT_NOTE", note)]:
        if value:
            env[key] = str(value)
    return subprocess.run([str(CLPIPE), *map(str, args)], cwd=place, env=env, text=True,
                          capture_output=True, stdin=subprocess.DEVNULL, timeout=HANG)


def digest(path):
    result = run_clpipe("info", "--digest", path)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def look(place):
    """The contents of a directory: identities of results, and bytes of all other files."""
    found = {}
    for folder, folders, names in os.walk(place):
        for name in names:
            path = Path(folder) / name
            key = str(path.relative_to(place))
            if path.is_symlink():
                found[key] = os.readlink(path)
            else:
                found[key] = digest(path) if name.endswith(".h5") else path.read_bytes()
        for name in folders:
            found[str((Path(folder) / name).relative_to(place)) + "/"] = None
    return found


class Job:
    """A command, the directory that it starts in, and its result."""

    def __init__(self, name, start, args, scratch, env=None):
        self.name, self.start, self.args = name, start, args
        self.scratch, self.env = scratch, env
        place = self.fresh()
        result = run_with(place, args, env=env)
        assert result.returncode in (0, 1), result.stderr
        # The caches are warm now.
        place = self.fresh()
        listing = scratch / "sites"
        result = run_with(place, args, listing=listing, env=env)
        self.code, self.output = result.returncode, result.stdout
        self.expected = look(place)
        self.before = look(start)
        self.cases = []
        self.writes = 0
        for line in sorted(listing.read_text().splitlines()):
            kind, site, calls = line.split()
            calls = int(calls)
            self.writes += calls if kind == "write" else 0
            steps = min(calls, CALLS if kind in OPENCL else 3) - 1
            for action in ACTIONS[kind]:
                for nth in sorted({1 + (calls - 1) * i // max(steps, 1) for i in range(steps + 1)}):
                    self.cases.append((kind, site, nth, str(action)))

    def fresh(self):
        place = self.scratch / "place"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self.start, place, symlinks=True)
        return place

    def beside(self, scratch):
        """Copies the job to another directory."""
        scratch.mkdir()
        other = copy.copy(self)
        other.scratch = scratch
        return other

    def check(self, case):
        kind, site, nth, action = case
        place = self.fresh()
        note = self.scratch / "note"
        note.unlink(missing_ok=True)
        count = f"{nth}+" if action.endswith("+") else str(nth)
        result = run_with(place, self.args, note=note, env=self.env,
                          fault=f"{kind} {site} {count} {action.rstrip('+')}")
        happened = note.exists()
        note.unlink(missing_ok=True)
        if not happened:
            # The number of calls depends on the timing of threads.
            assert result.returncode == self.code, result.stderr
            return False
        lines = result.stderr.splitlines()
        errors = [line for line in error_lines(result) if not line.startswith("clpipe: notice: ")]
        if kind == "message" and action == "kill" and result.returncode in (self.code, 3):
            # The fault killed a decoder process, which is replaced, or the process that starts decoders.
            assert len(errors) == (result.returncode == 3), result.stderr
        elif action == "kill":
            assert result.returncode == -9, result.stderr
        elif action in (str(errno.EINTR), "short") or kind == "copy":
            # This is not an error.
            assert result.returncode == self.code, result.stderr
            assert look(place) == self.expected
        else:
            assert result.returncode in (0, 1, 3), (result.returncode, result.stderr)
            if result.returncode == 3:
                assert len(errors) == 1 and lines[-1] == errors[0], result.stderr
                assert len(lines[-1]) > 20
            else:
                assert not errors, result.stderr
        if self.name == "devices" and kind in OPENCL and kind != "context" and not action.endswith("+"):
            # Another device takes over.
            assert result.returncode == self.code, result.stderr
            assert look(place) == self.expected
        for name, now in look(place).items():
            # The result is unchanged or complete; if it has unexpected failures, clpipe verify must accept
            # it.
            if name.endswith(".h5") and now not in (self.before.get(name), self.expected[name]):
                verified = run_clpipe("verify", place / name)
                assert verified.returncode == 0, verified.stdout + verified.stderr
                assert result.returncode == 1 and "hdf5" not in site
        if (place / "pages").exists():
            # A report is complete or absent.
            assert (place / "pages" / "index.html").exists() and (place / "pages" / ".clpipe-report").exists()
        if (place / "tree").exists():
            # An existing tree is not changed.
            assert look(place) == self.expected
            return True
        again = run_clpipe(*self.args, cwd=place, env=self.env)
        if self.name == "codebook" and (result.returncode, again.returncode) == (1, 3):
            # The codebooks of a sample without an image that could not be read are others.
            assert "--force" in again.stderr, again.stderr
            again = run_clpipe(*self.args, "--force", cwd=place, env=self.env)
        # The status is 0 if the file already existed.
        assert again.returncode in (0, self.code), again.stderr
        if look(place) != self.expected and "dct:words=4" in self.args:
            # Pictures that could not be read were also missing from the sample.
            again = run_clpipe(*self.args, "--retrain", cwd=place, env=self.env)
            assert again.returncode in (0, self.code), again.stderr
        assert look(place) == self.expected
        return True


@pytest.fixture(scope="module")
def starts(tmp_path_factory, program):
    """The directories in which the commands start."""
    if not LIBRARY.exists():
        pytest.skip(f"{LIBRARY} is not built")
    base = tmp_path_factory.mktemp("starts")
    places = {name: base / name for name in ("empty", "update", "resume", "features", "clusters", "parts")}
    for place in places.values():
        place.mkdir()
    pictures = base / "pictures"
    draw_photos(pictures, 5)
    (pictures / "cut.jpg").write_bytes((pictures / "green" / "01.jpg").read_bytes()[:500])
    feature = ["--feature", "rgb:bins=8x8x8", "--feature", "gray:bins=16,grid=2x2,store=uint8"]
    ingest = ["ingest", pictures, "-o", "x.h5", *feature]

    with tarfile.open(base / "more.tar.gz", "w:gz") as archive:
        archive.add(pictures / "blue", "blue")
    learning = ["ingest", pictures, base / "more.tar.gz", "-o", "x.h5", "--feature", "dct:words=4",
                "--compress"]

    # An update with one new picture, of a file that also has labels, imported rows, neighbours and foreign
    # data.
    last = pictures / "red" / "03.jpg"
    content = last.read_bytes()
    stamp = os.stat(last)
    last.unlink()
    assert run_clpipe(*ingest, cwd=places["update"]).returncode == 1
    numpy.save(base / "rows.npy", numpy.ones((5, 3), dtype="f4"))
    numpy.save(base / "six.npy", numpy.ones((6, 3), dtype="f4"))
    for command in [["cluster", "x.h5", "-k", "2", "--feature", "rgb_8x8x8"],
                    ["import", "x.h5", f"clip={base / 'rows.npy'}"],
                    ["similar", "x.h5", "--all", "-n", "2", "--feature", "rgb_8x8x8"]]:
        done = run_clpipe(*command, cwd=places["update"])
        assert done.returncode == 0, done.stderr
    with h5py.File(places["update"] / "x.h5", "a") as file:
        file.attrs["note"] = "mine"
        file["theirs/texts"] = ["a", "bc"] * 500
        file["theirs/deep/er"] = numpy.arange(20.0)
        file["theirs/deep/er"].attrs["unit"] = "m"
        file["theirs"].create_dataset("packed", data=numpy.arange(100000), chunks=(9000,), compression=1)
    last.write_bytes(content)
    os.utime(last, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    # An interrupted run: renaming the result failed.
    assert run_with(places["resume"], ingest, fault="rename * 1+ 5").returncode == 3
    assert os.listdir(places["resume"]) == ["x.h5.partial"]

    assert run_clpipe(*ingest, cwd=places["features"]).returncode == 1
    shutil.copy(places["features"] / "x.h5", places["clusters"] / "x.h5")
    shutil.copy(places["features"] / "x.h5", places["clusters"] / "new.h5")
    cluster = ["cluster", "x.h5", "-k", "2", "--feature", "rgb_8x8x8"]
    assert run_clpipe(*cluster, cwd=places["clusters"]).returncode == 0
    # Sidecar files, and files to be merged.
    (pictures / "green" / "01.cls").write_text("7")
    beside = [*ingest, "--sidecar", "--thumbnails", "32"]
    for part in "red", "green":
        done = run_clpipe("ingest", pictures / part, "-o", f"{part}.h5", *beside[4:], cwd=places["parts"])
        assert done.returncode == 0, done.stderr
    merge = ["merge", "red.h5", "green.h5", "-o", "x.h5", "--force"]
    return {"ingest": (places["empty"], ingest),
            "sidecars": (places["empty"], beside),
            "merge": (places["parts"], merge),
            "copy": (places["parts"], [*merge, "--copy"]),
            "list": (places["empty"], ["list", pictures, base / "more.tar.gz", "-o", "list", "--force"]),
            "devices": (places["empty"], [*ingest, "--device", "all"],
                        {"POCL_DEVICES": "basic pthread"}),
            "isolated": (places["empty"], [*ingest, "--isolate"]),
            "codebooks": (places["empty"], learning),
            "update": (places["update"], ingest),
            "codebook": (places["empty"], ["codebook", pictures, "-o", "x.h5", *learning[5:7]]),
            "resume": (places["resume"], ingest),
            "import": (places["features"], ["import", "x.h5", f"clip={base / 'six.npy'}"]),
            "similar": (places["features"], ["similar", "x.h5", "--all", "-n", "2", "--feature", "rgb_8x8x8"]),
            "select": (places["clusters"], ["select", "x.h5", "3"]),
            "cluster": (places["features"], cluster),
            "assign": (places["clusters"], ["assign", "x.h5", "new.h5"]),
            "export": (places["clusters"], ["export", "x.h5", "--what", "features", "--feature",
                                            "gray_16_2x2", "-o", "features.csv", "--force"]),
            "report": (places["clusters"], ["report", "x.h5", "-o", "pages"]),
            "tree": (places["clusters"], ["export", "x.h5", "--what", "tree", "--to", "tree"])}


def slow(*names):
    return [pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.mark.parametrize("name", ["ingest", *slow("cluster", "devices", "isolated", "codebooks", "update",
                                                  "resume", "assign", "export", "report", "tree", "sidecars",
                                                  "merge", "copy", "list", "codebook", "import", "similar",
                                                  "select")])
def test_every_call_fails(starts, tmp_path, capsys, name):
    start, args, *env = starts[name]
    whole = tmp_path / "whole"
    whole.mkdir()
    job = Job(name, start, args, whole, *env)  # as deep as each case: links in the output are relative
    # Visits all cases in an order that spreads evenly over them, and takes the first ones of each class.
    step = next(s for s in range(len(job.cases) * 5 // 8, 0, -1) if math.gcd(s, len(job.cases)) == 1)
    order = [job.cases[i * step % len(job.cases)] for i in range(len(job.cases))]
    of_class, cases = collections.Counter(), []
    for case in order:
        of_class[case[0]] += 1
        if of_class[case[0]] <= CASES:
            cases.append(case)
    failed = []

    def check(number):
        try:
            return job.beside(tmp_path / str(number)).check(cases[number])
        except (AssertionError, subprocess.TimeoutExpired) as error:
            failed.append(f"{' '.join(map(str, cases[number]))}: {error}")
            return False
        finally:
            shutil.rmtree(tmp_path / str(number))

    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        happened = sum(pool.map(check, range(len(cases))))
    tried = len(cases)
    with capsys.disabled():
        print(f" [{name}: {tried} of {len(job.cases)} faults, {happened} took place] ", end="")
    assert not failed, f"{len(failed)} of {tried}:\n" + "\n\n".join(failed[:40])
    assert happened > 0


@pytest.mark.deep
@pytest.mark.parametrize("name", ["ingest", *slow("cluster"), *(["update", "resume", "codebook", "import", "similar",
                                                                        "select", "merge", "copy"] if LONG else [])])
def test_full_disk_from_each_write_on(starts, tmp_path, capsys, name):
    job = Job(name, *starts[name], tmp_path)

    def check(number):
        happened = job.beside(tmp_path / str(number)).check(("write", "*", number,
                                                             f"{errno.ENOSPC}+"))
        shutil.rmtree(tmp_path / str(number))
        return happened

    # The number of writes to the log depends on timing.
    writes = range(1, job.writes + 1, 1 if ALL else 3)
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        happened = sum(pool.map(check, writes))
    with capsys.disabled():
        print(f" [{name}: the disk was full from each of {happened} writes on] ", end="")
    assert happened > 5 and happened > len(writes) * 0.7

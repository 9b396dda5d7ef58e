"""A process is paused, or continues to work, while another process takes over, with locks that are missing or have no
effect: what the other process has finished is not replaced."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import h5py
import numpy
import pytest

from conftest import CLPIPE, FEATURE, digest, draw_photos, log_bytes, log_records, logs_of, run_clpipe

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_result(int fd, const char *part)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    return part && strstr(path, part);
}

static int no_lock(void)
{
    errno = ENOLCK;
    return strcmp(getenv("SHIM_LOCKS"), "none") ? 0 : -1; /* else everybody gets every lock */
}

int flock(int fd, int operation)
{
    int (*next)(int, int) = (int (*)(int, int))dlsym(RTLD_NEXT, "flock");
    return is_result(fd, ".h5") ? no_lock() : next(fd, operation);
}

#define FCNTL(name) int name(int fd, int command, ...) \
{ \
    va_list list; \
    va_start(list, command); \
    void *argument = va_arg(list, void *); \
    va_end(list); \
    int (*next)(int, int, ...) = (int (*)(int, int, ...))dlsym(RTLD_NEXT, #name); \
    return command == F_OFD_SETLK && is_result(fd, ".tmp-clpipe-") ? no_lock() : next(fd, command, argument); \
}
FCNTL(fcntl)
FCNTL(fcntl64)

/* Stops before the temporary file is renamed. */
int fsync(int fd)
{
    int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    if (getenv("SHIM_STOP") && is_result(fd, ".tmp-clpipe-")) {
        unsetenv("SHIM_STOP");
        raise(SIGSTOP);
    }
    return next(fd);
}

/* A file system that cannot rename without replacing, and has links or not. */
int renameat2(int from, const char *name, int to, const char *other, unsigned flags)
{
    int (*next)(int, const char *, int, const char *, unsigned) =
        (int (*)(int, const char *, int, const char *, unsigned))dlsym(RTLD_NEXT, "renameat2");
    errno = EINVAL;
    return getenv("SHIM_LINKS") ? -1 : next(from, name, to, other, flags);
}

int linkat(int from, const char *name, int to, const char *other, int flags)
{
    int (*next)(int, const char *, int, const char *, int) =
        (int (*)(int, const char *, int, const char *, int))dlsym(RTLD_NEXT, "linkat");
    const char *links = getenv("SHIM_LINKS");
    errno = EPERM;
    return links && strcmp(links, "none") == 0 ? -1 : next(from, name, to, other, flags);
}

/* A file system that keeps the lock, which is open, under another name, as NFS and FUSE do. */
int unlinkat(int at, const char *name, int flags)
{
    int (*next)(int, const char *, int) = (int (*)(int, const char *, int))dlsym(RTLD_NEXT, "unlinkat");
    return getenv("SHIM_HIDES") && !strcmp(name, "lock") ? renameat(at, name, at, ".hidden01") : next(at, name, flags);
}

int close(int fd)
{
    int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "close");
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = is_result(fd, "/.hidden01") ? readlink(link, path, sizeof path - 1) : 0;
    path[n > 0 ? n : 0] = 0;
    return n > 0 ? next(fd) | unlink(path) : next(fd);
}
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    """Returns environment variables that preload the library; locks are "none" or "free"."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("there is no C compiler")
    place = tmp_path_factory.mktemp("shim")
    (place / "shim.c").write_text(SHIM)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", place / "shim.so", place / "shim.c"], check=True)

    def environment(locks="none", **more):
        return {**os.environ, "LD_PRELOAD": str(place / "shim.so"), "SHIM_LOCKS": locks, **more}

    return environment


def start(env, cwd, *args):
    return subprocess.Popen([CLPIPE, *map(str, args)], cwd=cwd, env=env, text=True, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def is_stopped(process):
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def wait_until(condition, process):
    while not condition():
        assert process.poll() is None, process.stderr.read()
        sum(range(10000))  # a test that uses no processor time is considered hung
        time.sleep(0.005)


def go_on(process, *words):
    """Continues the process, which must fail with one line that has one of the words; returns its output."""
    process.send_signal(signal.SIGCONT)
    output, errors = process.communicate(timeout=60)
    lines = errors.splitlines()
    assert process.returncode == 3 and len(lines) == 1, errors
    assert any(word in lines[0] for word in words), lines
    return output


PAUSED = ["has taken over"]
CHANGED = ["has appeared since the run began", "another process has replaced, changed or removed it"]
# Commands for result.h5, which has clusters/kmeans of rgb_8x8x8, and for damaged.h5.
CLAIMING = {
    "ingest": ["ingest", "more", "-o", "result.h5", "-q"],
    "fresh": ["ingest", "more", "--fresh", "-o", "result.h5", "-q", *FEATURE],
    "run": ["run", "more", "-o", "result.h5", "-q", "--no-report", "--name", "mine"],
    "cluster": ["cluster", "result.h5", "-k", "2", "--name", "mine", "--feature", "rgb_8x8x8", "-q"],
    "assign": ["assign", "base.h5", "result.h5", "--name", "mine", "-q"],
    "import": ["import", "result.h5", "mine=rows.npy", "-q"],
    "similar": ["similar", "result.h5", "--all", "--feature", "rgb_8x8x8", "-q"],
    "remove": ["remove", "result.h5", "clusters/kmeans", "-q"],
    "rename": ["rename", "result.h5", "kmeans", "mine", "-q"],
    "repair": ["repair", "damaged.h5"],
    "new": ["ingest", "photos", "-o", "new.h5", "-q", *FEATURE],
}
OTHERS = {
    "merge": ["merge", "a.h5", "b.h5", "-o", "out.h5", "--force", "-q"],
    "codebook": ["codebook", "photos", "-o", "out.h5", "--force", "--feature", "dct:words=4", "--sample", "9", "-q"],
    "list": ["list", "photos", "-o", "out.list", "--force", "-q"],
    "export": ["export", "result.h5", "--what", "labels", "-o", "out.csv", "--force", "-q"],
    "cluster": ["cluster", "rows.npy", "-k", "2", "-o", "new.h5", "-q"],
}


@pytest.fixture(scope="module")
def base(tmp_path_factory, program):
    """A result with clusters, a damaged copy of it, a directory with one more picture, rows, and two parts."""
    place = tmp_path_factory.mktemp("base")
    draw_photos(place / "photos")
    for args in (["ingest", "photos", *FEATURE, "-o", "result.h5"], ["cluster", "result.h5", "-k", "3"],
                 ["ingest", "photos/red", *FEATURE, "-o", "a.h5"], ["ingest", "photos/blue", *FEATURE, "-o", "b.h5"]):
        assert run_clpipe(*args, "-q", cwd=place).returncode == 0
    shutil.copytree(place / "photos", place / "more")
    (place / "more" / "zzz.jpg").write_bytes((place / "photos" / "green" / "07.jpg").read_bytes())
    shutil.copy(place / "result.h5", place / "base.h5")
    assert run_clpipe("rename", "base.h5", "kmeans", "mine", "-q", cwd=place).returncode == 0
    numpy.save(place / "rows.npy", numpy.random.default_rng(3).normal(0, 1, (13, 5)).astype("f4"))
    damaged = bytearray((place / "result.h5").read_bytes())
    with h5py.File(place / "result.h5") as f:
        damaged[f["features/rgb_8x8x8"].id.get_offset() + 9] ^= 4
    (place / "damaged.h5").write_bytes(damaged)
    return place


@pytest.mark.slow
@pytest.mark.parametrize("locks", ["none", "free"])
def test_taken_over_before_the_rename(shim, base, tmp_path, locks):
    """All commands that claim the file: what another process has stored in the meantime is kept."""
    paused = {}
    for name, args in CLAIMING.items():
        place = tmp_path / name
        shutil.copytree(base, place)
        paused[name] = start(shim(locks, SHIM_STOP="1"), place, *args)
    for process in paused.values():
        wait_until(lambda: is_stopped(process), process)
    others = {}
    for name, args in CLAIMING.items():
        file = "damaged.h5" if name == "repair" else "new.h5" if name == "new" else "result.h5"
        other = ["cluster", file, "-k", "2", "--name", "theirs", "--feature", "rgb_8x8x8", "-q"]
        other = args if name == "new" else ["rename", file, "kmeans", "theirs", "-q"] if name == "repair" else other
        others[name] = start(shim(locks), tmp_path / name, *other), tmp_path / name / file
    for name, (process, file) in others.items():
        output, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        whole = file.read_bytes()
        args = CLAIMING[name]
        assert go_on(paused[name], *PAUSED) == "" or name == "repair"  # it has already reported the damage
        assert file.read_bytes() == whole, name
        left = {path.name for path in file.parent.iterdir()} - {path.name for path in base.iterdir()}
        if name in ("ingest", "fresh", "run"):  # the log remains
            assert left == {"result.h5.partial"}
            assert run_clpipe(*args, cwd=file.parent).returncode == 0
            left = {path.name for path in file.parent.iterdir()} - {path.name for path in base.iterdir()}
        assert left == ({"new.h5"} if name == "new" else set()), name


@pytest.mark.deep
@pytest.mark.parametrize("links", [None, pytest.param("some", marks=pytest.mark.deep),
                                   pytest.param("none", marks=pytest.mark.deep)])
def test_changed_before_the_rename(shim, base, tmp_path, links):
    """Commands that do not claim the file, on three kinds of file systems: a file that appeared meanwhile is kept."""
    env = shim(SHIM_STOP="1", **({"SHIM_LINKS": links} if links else {}))
    for name, args in OTHERS.items():
        for before in ("nothing", "a file"):
            place = tmp_path / f"{name} {before}"
            shutil.copytree(base, place)
            out = place / args[args.index("-o") + 1]
            if before == "a file" and name == "cluster":
                assert run_clpipe(*args, cwd=place).returncode == 0
                args = [*args, "--name", "more"]
            elif before == "a file" and name == "codebook":  # which never replaces images
                assert run_clpipe(*args, cwd=place).returncode == 0
            elif before == "a file":
                shutil.copy(base / "a.h5", out)
            process = start(env, place, *args)
            wait_until(lambda: is_stopped(process), process)
            out.write_text("newer")
            assert go_on(process, *CHANGED) == ""
            assert out.read_text() == "newer"
            assert {path.name for path in place.iterdir()} == {path.name for path in base.iterdir()} | {out.name}


@pytest.mark.parametrize("links", ["some", "none"])
def test_file_systems_that_cannot_rename_exclusively(shim, base, tmp_path, links):
    shutil.copytree(base, tmp_path / "x")
    for name in ("list", "cluster"):
        process = start(shim(SHIM_LINKS=links), tmp_path / "x", *OTHERS[name])
        assert process.wait() == 0, process.stderr.read()
        process.communicate()
    assert {path.name for path in (tmp_path / "x").iterdir()} == {path.name for path in base.iterdir()} | {"out.list",
                                                                                                       "new.h5"}


def test_metadata_may_change(shim, base, tmp_path):
    """An additional name, other permissions or another owner do not change the content."""
    shutil.copytree(base, tmp_path / "x")
    result = tmp_path / "x" / "result.h5"
    process = start(shim(SHIM_STOP="1"), tmp_path / "x", *CLAIMING["import"])
    wait_until(lambda: is_stopped(process), process)
    result.chmod(0o640)
    os.link(result, tmp_path / "backup.h5")
    process.send_signal(signal.SIGCONT)
    assert process.communicate()[1] == "" and process.returncode == 0
    assert result.stat().st_mode & 0o777 == 0o640
    with h5py.File(result) as f:
        assert f["features/mine"].shape == (13, 5)


@pytest.fixture(scope="module")
def work(tmp_path_factory, program):
    """The command for a directory with pictures, whose log has a dozen blocks, and the identity of the result."""
    place = tmp_path_factory.mktemp("work")
    draw_photos(place / "photos" / "0", 30)
    for copy in range(1, 10):
        shutil.copytree(place / "photos" / "0", place / "photos" / str(copy))
    args = ["ingest", place / "photos", "--feature", "rgb:bins=256,grid=8x8", "-q", "--threads", "1", "-o"]
    assert run_clpipe(*args, place / "whole.h5").returncode == 0
    return args, digest(place / "whole.h5")


def begin_work(shim, args, place, locks):
    process = start(shim(locks), place, *args, "x.h5")
    wait_until(lambda: log_bytes(place / "x.h5.partial") > 5 << 20, process)
    return process


@pytest.mark.variations
@pytest.mark.parametrize("locks", ["none", "free"])
def test_two_at_the_same_time(shim, work, tmp_path, locks):
    """Each process has its own log: the first one ends at its next sync, and its synced work is not repeated."""
    args, whole = work
    first = begin_work(shim, args, tmp_path, locks)
    second = start(shim(locks), tmp_path, *args, "x.h5", "--json", "report.json")
    output, errors = second.communicate(timeout=60)
    assert (second.returncode, errors) == (0, "")
    assert json.loads((tmp_path / "report.json").read_text())["images_resumed"] >= 20
    go_on(first, f"process {second.pid} on ", "another process has taken over", "has appeared since the run began")
    assert digest(tmp_path / "x.h5") == whole
    assert sorted(os.listdir(tmp_path)) == ["report.json", "x.h5"]


@pytest.mark.parametrize("done", [True, pytest.param(False, marks=pytest.mark.deep)])
def test_taken_over_in_the_middle(shim, work, tmp_path, done):
    """Another process continues the log of a paused ingest. The paused one ends, whether the other is
    finished or still working, and the result is that of an undisturbed ingest."""
    args, whole = work
    first = begin_work(shim, args, tmp_path, "none")
    first.send_signal(signal.SIGSTOP)
    size = log_bytes(tmp_path / "x.h5.partial")
    second = start(shim(), tmp_path, *args, "x.h5")
    if done:
        assert second.communicate()[1] == "" and second.returncode == 0
        go_on(first, *PAUSED)
    else:
        wait_until(lambda: log_bytes(tmp_path / "x.h5.partial") > size + (5 << 20), second)
        second.send_signal(signal.SIGSTOP)
        go_on(first, f"process {second.pid} on ")
        assert (tmp_path / "x.h5.partial" / "lock").read_text().startswith(f"{second.pid} ")
        assert len(logs_of(tmp_path / "x.h5.partial")) == 2
        second.send_signal(signal.SIGCONT)
        assert second.communicate()[1] == "" and second.returncode == 0
    assert digest(tmp_path / "x.h5") == whole
    assert os.listdir(tmp_path) == ["x.h5"]


@pytest.mark.deep
def test_resumed_three_times(work, tmp_path):
    """Each killed run leaves a log; the last run uses the records of all logs."""
    args, whole = work
    counts = []
    for _ in range(4):
        process = start(os.environ, tmp_path, *args, "x.h5")
        kept = log_bytes(tmp_path / "x.h5.partial")
        wait_until(lambda: log_bytes(tmp_path / "x.h5.partial") > kept + (5 << 20), process)
        process.kill()
        process.communicate()
        paths = log_records(tmp_path / "x.h5.partial")[0]
        assert len(paths) == len(set(paths))
        counts.append(len(paths))
    assert counts == sorted(set(counts)) and len(logs_of(tmp_path / "x.h5.partial")) == 4
    assert run_clpipe(*args, "x.h5", "--json", "report.json", cwd=tmp_path).returncode == 0
    assert json.loads((tmp_path / "report.json").read_text())["images_resumed"] == counts[-1]
    assert digest(tmp_path / "x.h5") == whole
    assert sorted(os.listdir(tmp_path)) == ["report.json", "x.h5"]


def test_renamed_open_files_leave_no_directory(finished, shim, tmp_path):
    shutil.copy(finished, tmp_path / "f.h5")
    result = run_clpipe("cluster", "f.h5", "-k", 2, "--name", "two", "--feature", "counts", cwd=tmp_path,
                        env=shim(SHIM_HIDES="1"))
    assert result.returncode == 0, result.stderr
    assert os.listdir(tmp_path) == ["f.h5"]

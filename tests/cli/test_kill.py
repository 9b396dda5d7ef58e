"""Kills ingest, shards and their merge, cluster, run and the commands that add to a file with SIGKILL at any moment,
then repeats the command until it finishes. The result equals that of an uninterrupted run, sealed work is not
repeated, no files are left over, and the output is never half-written. One process in eight gets SIGTERM or SIGUSR1
instead. These signals, SIGINT and --max-time end a busy run with its work sealed.

There are 40 kills, 200 with CLPIPE_ALL=1, and 1,000 with CLPIPE_LONG=1. Their times are drawn from CLPIPE_SEED,
which is printed."""

import base64
import concurrent.futures
import contextlib
import itertools
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import threading
import time
import zlib
from pathlib import Path

import pytest

from conftest import ALL, CLPIPE, LONG, SEED, descendants, digest, log_bytes, log_records, run_clpipe, spoil

KILLS = 1000 if LONG else 200 if ALL else 40
# The number of chains of kills that run at the same time.
CHAINS = len(os.sched_getaffinity(0)) + 1
# Each picture adds 200 kB to the log, which is written in blocks of 4 MiB, so work is sealed throughout a run.
PICTURES = 100
FEATURES = ["--feature", "rgb:bins=256,grid=8x8", "--feature", "gray:bins=63,store=uint8"]
SHARDS = 5
COMMANDS = {
    "ingest": ["ingest", "pictures", "-o", "x.h5", *FEATURES],
    "cluster": ["cluster", "x.h5", "-k", "12", "--feature", "rgb_256_8x8", "--n-init", "3"],
    "shards": ["ingest", "pictures", "-o", "x.h5", *FEATURES],
    # The file that the command writes, and the command.
    "adding": {
        "codebook": ("c.h5", ["codebook", "pictures", "-o", "c.h5", "--feature", "dct:words=16"]),
        "import": ("x.h5", ["import", "x.h5", "rows=rows.npy"]),
        "similar": ("x.h5", ["similar", "x.h5", "--all", "-n", "3", "--feature", "gray_63"]),
        "select": ("x.h5", ["select", "x.h5", "20"]),
        "assign": ("new.h5", ["assign", "x.h5", "new.h5"]),
        "repair": ("y.h5", ["repair", "damaged.h5", "-o", "y.h5"]),
        "rename": ("x.h5", ["rename", "x.h5", "kmeans", "other"]),
        "remove": ("x.h5", ["remove", "x.h5", "kmeans"]),
    },
    "run": ["run", "--no-report", "pictures", "-o", "x.h5", "-k", "6", *FEATURES, "--compress"],
}


def start(place, *args):
    return subprocess.Popen([str(CLPIPE), *map(str, args), "--progress", "never"], cwd=place,
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True)


class Moments:
    """Random delays until a kill. They adapt to the duration of a run so that about one run in six ends before its
    kill."""

    def __init__(self, name, seconds):
        self.random = random.Random(name)
        self.longest = seconds

    def draw(self):
        return self.random.uniform(0, self.longest)

    def learn(self, killed):
        self.longest *= 1.1 if killed else 0.6

    def chance(self, share):
        return self.random.random() < share


def kill_once(process, moments):
    """Kills a process after a random delay, or asks it to stop. Returns whether SIGKILL ended it."""
    number = signal.SIGKILL
    if moments.chance(0.125):
        number = signal.SIGTERM if moments.chance(0.5) else signal.SIGUSR1
    asked = False
    try:
        process.wait(moments.draw())
    except subprocess.TimeoutExpired:
        asked = True
        process.send_signal(number)
    _, said = process.communicate(timeout=60)
    code = process.returncode
    if number != signal.SIGKILL and asked:
        # The signal may come before the process has installed its handler, or when its result is already final.
        assert code in (4, 0, 1, -number), said
    else:
        assert code in (0, 1, -signal.SIGKILL), said
    moments.learn(code not in (0, 1))
    return code == -signal.SIGKILL


def finish(place, *args):
    """Runs a command to its end and returns its report."""
    result = run_clpipe(*args, "--json", "-", "--progress", "never", cwd=place)
    assert result.returncode in (0, 1), result.stderr
    return json.loads(result.stdout)


class Tally:
    """Counts what all chains of a test have done, and tells whether they should continue."""

    def __init__(self, share):
        self.most = int(KILLS * share)
        self.lock = threading.Lock()
        self.kills = self.resumed = self.early = self.ends = 0

    def add(self, kills=0, resumed=0, early=0, ends=0):
        with self.lock:
            self.kills += kills
            self.resumed += resumed
            self.early += early
            self.ends += ends

    def more(self):
        return self.kills < self.most


def run_chains(chain, name, share, whole, tmp_path, capsys):
    """Runs several chains at a time, each in its own directory and with its own delays."""
    tally = Tally(share)

    def one(number):
        place = tmp_path / f"{name} {number}"
        place.mkdir()
        (place / "pictures").symlink_to(whole["pictures"])
        chain(place, COMMANDS[name], Moments(f"{SEED} {name} {number}", whole["seconds"][name]),
              tally, whole)

    with concurrent.futures.ThreadPoolExecutor(CHAINS) as pool:
        for result in [pool.submit(one, number) for number in range(CHAINS)]:
            assert not result.exception(), (SEED, result.exception())
    with capsys.disabled():
        print(f" [seed {SEED}, {name}: {tally.kills} kills, {tally.ends} results, "
              f"{tally.resumed} images resumed, {tally.early} times the file was complete] ", end="")
    assert tally.kills >= 5
    return tally


@pytest.fixture(scope="module")
def whole(tmp_path_factory, program):
    """Pictures, the identities of the results of uninterrupted runs, and the seconds that these took with warm
    caches."""
    import numpy
    from PIL import Image
    place = tmp_path_factory.mktemp("whole")
    random_pixels = numpy.random.default_rng(5)
    for i in range(PICTURES):
        name = f"{i:02}.png" if i % 4 == 0 else f"{i:02}.jpg"
        path = place / "pictures" / ["red", "green", "blue"][i % 3] / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = random_pixels.integers(0, 256, (48 + i % 9, 64 - i % 7, 3), dtype="uint8")
        Image.fromarray(pixels).save(path)
    spoil(place / "pictures")
    seconds = {}
    for name, output in [("ingest", "x.h5"), ("cluster", "x.h5"), ("run", "y.h5")]:
        args = [output if arg == "x.h5" else arg for arg in COMMANDS[name]]
        if name == "cluster":
            (place / "features.h5").write_bytes((place / "x.h5").read_bytes())
        # The first run builds the kernels.
        for again in range(2):
            begin = time.monotonic()
            if again and name == "cluster":
                (place / output).write_bytes((place / "features.h5").read_bytes())
            elif again:
                (place / output).unlink()
            finish(place, *args)
            seconds[name] = time.monotonic() - begin
    return {"pictures": place / "pictures", "place": place, "seconds": seconds,
            "features": digest(place / "features.h5"), "cluster": digest(place / "x.h5"),
            "run": digest(place / "y.h5")}


def check_log(place):
    """Asserts that the log has no item twice, so that no sealed item of an earlier run was repeated. Returns the
    number of images."""
    images, others = log_records(place / "x.h5.partial")
    assert len(set(images + others)) == len(images + others)
    return len(images)


def check_end(place, report, sealed, finished):
    """Asserts that the last run reused exactly the sealed items and left no other files."""
    assert report["images_resumed"] + report["images_unchanged"] == \
        (report["images_ok"] if finished else sealed), (sealed, finished, report)
    assert sorted(os.listdir(place)) == ["pictures", "x.h5"]


def kill_ingest(place, command, moments, tally, whole):
    while tally.more():
        tally.add(kills=kill_once(start(place, *command), moments))
        # The file is never half-written, and the pictures in the log must not be decoded again.
        sealed, finished = check_log(place), (place / "x.h5").exists()
        if finished:
            assert digest(place / "x.h5") == whole["features"]
            tally.add(early=1)
        if moments.chance(0.6):
            continue
        report = finish(place, *command)
        check_end(place, report, sealed, finished)
        assert digest(place / "x.h5") == whole["features"]
        tally.add(ends=1, resumed=report["images_resumed"])
        (place / "x.h5").unlink()


def kill_cluster(place, command, moments, tally, whole):
    features = (whole["place"] / "features.h5").read_bytes()
    while tally.more():
        (place / "x.h5").write_bytes(features)
        for _ in range(1 if moments.chance(0.3) else 4):
            tally.add(kills=kill_once(start(place, *command), moments))
            now = digest(place / "x.h5")
            assert now in (whole["features"], whole["cluster"])
            tally.add(early=now == whole["cluster"])
        finish(place, *command)
        assert digest(place / "x.h5") == whole["cluster"]
        assert sorted(os.listdir(place)) == ["pictures", "x.h5"]
        tally.add(ends=1)


def kill_run(place, command, moments, tally, whole):
    while tally.more():
        for _ in range(1 if moments.chance(0.3) else 4):
            tally.add(kills=kill_once(start(place, *command), moments))
            sealed, finished = check_log(place), (place / "x.h5").exists()
            if finished:
                assert digest(place / "x.h5") in (whole["features"], whole["run"])
                tally.add(early=1)
        report = finish(place, *command)["ingest"]
        check_end(place, report, sealed, finished)
        assert digest(place / "x.h5") == whole["run"]
        tally.add(ends=1, resumed=report["images_resumed"])
        (place / "x.h5").unlink()


def kill_shards(place, command, moments, tally, whole):
    """Ingests each shard until it is done, then merges all shards."""
    parts = [f"s{i}.h5" for i in range(SHARDS)]
    while tally.more():
        for i, part in enumerate(parts):
            share = [part if arg == "x.h5" else arg for arg in command] + ["--shard", f"{i}/{SHARDS}"]
            for _ in range(1 if moments.chance(0.3) else 3):
                tally.add(kills=kill_once(start(place, *share), moments))
            tally.add(early=(place / part).exists())
            tally.add(resumed=finish(place, *share)["images_resumed"])
        for _ in range(2):
            tally.add(kills=kill_once(start(place, "merge", *parts, "-o", "x.h5", "--force"), moments))
        assert run_clpipe("merge", *parts, "-o", "x.h5", "--force", "-q", cwd=place).returncode in (0, 1)
        assert digest(place / "x.h5") == whole["features"]
        assert sorted(os.listdir(place)) == ["pictures", *parts, "x.h5"]
        tally.add(ends=1)
        for name in [*parts, "x.h5"]:
            (place / name).unlink()


def kill_adding(place, commands, moments, tally, whole):
    inputs = whole["inputs"]

    def start_anew():
        for name in set(os.listdir(place)) - {"pictures"}:
            (place / name).unlink()
        for path in inputs.iterdir():
            shutil.copyfile(path, place / path.name)

    for output, command in itertools.cycle(commands.values()):
        if not tally.more():
            break
        before = digest(inputs / output) if (inputs / output).exists() else None
        with whole["lock"]:
            if command[0] not in whole["after"]:
                start_anew()
                assert run_clpipe(*command, cwd=place).returncode in (0, 1)
                whole["after"][command[0]] = digest(place / output)
        start_anew()
        for _ in range(3):
            tally.add(kills=kill_once(start(place, *command), moments))
            now = digest(place / output) if (place / output).exists() else None
            done = now == whole["after"][command[0]]
            assert done or now == before, (command, now)
            tally.add(early=done)
            if done:
                break
        # A removed or renamed clustering no longer exists, and the output of a repair is not replaced.
        if not done or command[0] not in ("repair", "rename", "remove"):
            assert run_clpipe(*command, cwd=place).returncode in (0, 1)
        assert digest(place / output) == whole["after"][command[0]]
        assert set(os.listdir(place)) == {"pictures", output, *os.listdir(inputs)}
        tally.add(ends=1)


@pytest.mark.deep
def test_kill_ingest(whole, tmp_path, capsys):
    tally = run_chains(kill_ingest, "ingest", 0.55, whole, tmp_path, capsys)
    assert tally.resumed > 0


@pytest.mark.deep
def test_kill_cluster(whole, tmp_path, capsys):
    run_chains(kill_cluster, "cluster", 0.25, whole, tmp_path, capsys)


@pytest.mark.deep
def test_kill_run(whole, tmp_path, capsys):
    run_chains(kill_run, "run", 0.2, whole, tmp_path, capsys)


@pytest.mark.slow
def test_kill_shards(whole, tmp_path, capsys):
    whole["seconds"]["shards"] = whole["seconds"]["ingest"]
    run_chains(kill_shards, "shards", 0.75, whole, tmp_path, capsys)


@pytest.mark.slow
def test_kill_adding(whole, tmp_path, capsys):
    """Some commands write a file in a single step; at any time it is either the old file or the new one."""
    import numpy
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    shutil.copyfile(whole["place"] / "x.h5", inputs / "x.h5")
    shutil.copyfile(whole["place"] / "features.h5", inputs / "new.h5")
    data = bytearray((inputs / "x.h5").read_bytes())
    data[len(data) // 2] ^= 1
    (inputs / "damaged.h5").write_bytes(data)
    numpy.save(inputs / "rows.npy", numpy.random.default_rng(3).random((PICTURES, 300), "f4"))
    whole |= {"inputs": inputs, "after": {}, "lock": threading.Lock()}
    whole["seconds"]["adding"] = 0.2
    run_chains(kill_adding, "adding", 0.3, whole, tmp_path, capsys)


# --- requests to stop ---------------------------------------------------------------------------

@pytest.fixture(scope="module")
def many(tmp_path_factory, program):
    """Enough work for several seconds on any machine: links to a large picture."""
    import numpy
    from PIL import Image
    directory = tmp_path_factory.mktemp("many")
    values = numpy.random.default_rng(1).integers(0, 256, (1500, 2000, 3), dtype="uint8")
    Image.fromarray(values).save(directory / "0000.jpg", quality=90)
    for i in range(1, 3000):
        os.link(directory / "0000.jpg", directory / f"{i:04}.jpg")
    return directory


def stop_by(number):
    return lambda process: process.send_signal(number)


def wait_until(condition):
    """Waits up to a minute for a condition, since the machine may be busy."""
    end = time.monotonic() + 60
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    assert condition()


def bytes_kept(place):
    """Bytes in the logs of the unfinished run; 0 before it starts."""
    return log_bytes(place / "x.h5.partial")


def wait_for_more(place, process, kept):
    """Waits until the logs have more than `kept` bytes; on a busy machine, a run may take seconds to start."""
    wait_until(lambda: bytes_kept(place) > kept or process.poll() is not None)


@pytest.mark.parametrize("name, args, stop", [
    ("SIGTERM", [], stop_by(signal.SIGTERM)),
    ("SIGTERM to isolated decoders", ["--isolate"], stop_by(signal.SIGTERM)),
    ("SIGUSR1", [], stop_by(signal.SIGUSR1)),
    ("SIGXCPU", [], stop_by(signal.SIGXCPU)),
    ("SIGINT", [], stop_by(signal.SIGINT)),
    ("--max-time", ["--max-time", "4"], None),
])
@pytest.mark.deep
def test_stop_under_load(many, tmp_path, name, args, stop):
    # Each picture has 200 kB of values, so a part of the log is written soon.
    command = ["ingest", many, "-o", "x.h5", "--feature", "rgb:bins=256,grid=8x8"]
    process = start(tmp_path, *command, *args)
    if stop:
        wait_until(lambda: log_records(tmp_path / "x.h5.partial")[0] or process.poll() is not None)
        stop(process)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 4, said
    assert os.listdir(tmp_path) == ["x.h5.partial"]
    images = check_log(tmp_path)
    assert images > 0
    # The next run resumes exactly the sealed pictures before it is stopped as well.
    process = start(tmp_path, *command, "--json", "report.json")
    wait_until(lambda: len(log_records(tmp_path / "x.h5.partial")[0]) > images or process.poll() is not None)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 4
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["images_resumed"] == images, report
    assert check_log(tmp_path) >= images


SLOW_READ = """
    #define _GNU_SOURCE
    #include <fcntl.h>
    #include <sys/stat.h>
    #include <sys/syscall.h>
    #include <time.h>
    #include <unistd.h>

    static void delay(int fd)
    {
        struct stat st;
        if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 5000000) {
            close(open("reading", O_CREAT | O_WRONLY, 0666));
            nanosleep(&(struct timespec){.tv_nsec = 100000000}, 0);
        }
    }
    ssize_t pread(int fd, void *data, size_t size, off_t offset)
    {
        delay(fd);
        return syscall(SYS_pread64, fd, data, size, offset);
    }
    ssize_t pread64(int fd, void *data, size_t size, off_t offset)
    {
        return pread(fd, data, size, offset);
    }
    ssize_t __pread64_chk(int fd, void *data, size_t size, off_t offset, size_t room)
    {
        (void)room;
        return pread(fd, data, size, offset);
    }
    ssize_t read(int fd, void *data, size_t size)
    {
        delay(fd);
        return syscall(SYS_read, fd, data, size);
    }
    ssize_t __read_chk(int fd, void *data, size_t size, size_t room)
    {
        (void)room;
        return read(fd, data, size);
    }
"""


@pytest.mark.deep
def test_stop_while_a_picture_takes_long(whole, tmp_path):
    """The picture is left for the next run; later pictures, which finished meanwhile, are not."""
    import numpy
    from PIL import Image
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler or any(name in CLPIPE.read_bytes() for name in (b"__asan_init", b"__tsan_init")):
        pytest.skip("there is no C compiler, or the sanitizers must be loaded first")
    (tmp_path / "slow.c").write_text(SLOW_READ)
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", tmp_path / "slow.so",
                    tmp_path / "slow.c"], check=True)
    place = tmp_path / "place"
    shutil.copytree(whole["pictures"], place / "pictures")
    values = numpy.random.default_rng(2).integers(0, 256, (2000, 2000, 3), dtype="uint8")
    Image.fromarray(values).save(place / "pictures" / "green" / "large.png", compress_level=0)
    environment = {**os.environ, "LD_PRELOAD": str(tmp_path / "slow.so")}
    said = tmp_path / "said"
    with open(said, "w") as file:
        process = subprocess.Popen([str(CLPIPE), *COMMANDS["ingest"], "--threads", "2", "--progress", "always"],
                                   cwd=place, env=environment, stdin=subprocess.DEVNULL, stderr=file)
    # All other pictures have been processed.
    wait_until(lambda: f" {PICTURES + 5}/" in said.read_text() and (place / "reading").exists())
    process.terminate()
    assert process.wait(60) == 4
    (place / "reading").unlink()
    images, _ = log_records(place / "x.h5.partial")
    assert b"green/large.png" not in images
    assert any(name > b"green/large.png" for name in images)
    report = finish(place, *COMMANDS["ingest"])
    assert report["images_resumed"] == len(images) == report["images_ok"] - 1
    (place / "x.h5").rename(place / "parts.h5")
    finish(place, *COMMANDS["ingest"])
    assert digest(place / "parts.h5") == digest(place / "x.h5")


@pytest.mark.deep
def test_stop_cluster(whole, tmp_path):
    """The file does not change; see test_checkpoint.py for the checkpoint."""
    features = (whole["place"] / "features.h5").read_bytes()
    (tmp_path / "x.h5").write_bytes(features)
    process = start(tmp_path, "cluster", "x.h5", "-k", "40", "--feature", "rgb_256_8x8",
                    "--n-init", "100000", "--checkpoint", "0.001")
    wait_until((tmp_path / "x.h5.kmeans.checkpoint").exists)
    process.terminate()
    _, said = process.communicate(timeout=60)
    assert process.returncode == 4, said
    assert (tmp_path / "x.h5").read_bytes() == features
    assert sorted(os.listdir(tmp_path)) == ["x.h5", "x.h5.kmeans.checkpoint"]


def test_second_interrupt_ends_at_once(many, tmp_path):
    process = start(tmp_path, "ingest", many, "-o", "x.h5", "--feature", "rgb:bins=256,grid=8x8")
    wait_until(lambda: log_records(tmp_path / "x.h5.partial")[0] or process.poll() is not None)
    process.send_signal(signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGCONT)
    time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    # Either the run had already sealed its work, or the second signal ended it.
    assert process.returncode in (4, 130)
    assert os.listdir(tmp_path) == ["x.h5.partial"]


@pytest.mark.deep
def test_interrupt_while_kernels_are_compiled(many, tmp_path):
    """A Ctrl-C reaches the process that compiles, too."""
    cold = {"POCL_CACHE_DIR": str(tmp_path / "cold"), "CLPIPE_CACHE_DIR": str(tmp_path / "cold")}
    process = subprocess.Popen([str(CLPIPE), "ingest", str(many), "-o", "x.h5", "--feature", "hsv", "-q"], cwd=tmp_path,
                               env={**os.environ, **cold}, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def compiles():
        for pid in descendants():
            with contextlib.suppress(OSError):  # it has ended
                if b"--try-to-compile" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    return True
        return process.poll() is not None

    wait_until(compiles)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 4 and "cannot be" not in said, said


# --- earlier releases ---------------------------------------------------------------------------------

# A log of version 0.1.0: three pictures, a failure, and the beginning of another record.
EARLIER_LOG = """
eNpz9gnwDPDxd2dkYGCwBxKRalsmAJkM1UoFiUWJuaklqUXFSlbVSmmpiSWlRalAdrRSelFiZbyJLYiySsrMK7Y10Ukvykyx
Naww1MnLL8pNzMmsSrXNy89LVYrVUUrMKchIVLJSKs/ILElV0lHKTayIL8isSM0BmmVkZmFibGpiagYRLk5OzAOKGhoY6Cil
pCbnp6SChHJSgUI6Smn5OTn55fHFlbk5mXnZQGVpiTnFqTpKGZkpKal5cG5mXnJOaQpQSzTQ7tQKJE5OZm5miZKVQa2OUnF+
aVEyxDMFGfkl+cUghyK8WA31ItDVxHiyFsO1taDgbJJ7VMcABYypQELh5c1omAATELMCsSCUL3r29/3WcBMxZqgcIyNEvCAv
F0xrmBheP37K2Ovv6ROyXeeY+CSg+hL1CtJzYQayQGkmqGQkEDdGiT9lRLNUGs1SFqhedEvTVvHvdK5OPs9V/GGOW2j9Dx6o
viSQpSCXgtQLgFwBxI9NA8KY0CziQbOIEaoH3SJdY5Z2NfEaUY7bxrYvbVgkRKD6kkEWMcE0QTEIeAKxbzJzJjPMQlaIhbxo
FoLYKkCcoleQl16SkaqQnJ9XkppXopBZrJCXr5Cdl1+ep5CZm5ieqpAGitQSkMFLL76+yoJmMMRnAD88vBY=
"""


def test_log_of_an_earlier_release(tmp_path):
    """The log is refused and kept; with --fresh, the file is created."""
    photos = tmp_path / "photos"
    photos.mkdir()
    for name, width, height, value in (("a", 3, 2, lambda x, y: 40 * x), ("b", 4, 4, lambda x, y: 250 - y),
                                       ("c", 1, 1, lambda x, y: 128), ("e", 5, 1, lambda x, y: 60 * x)):
        pixels = bytes(value(x, y) for y in range(height) for x in range(width))
        (photos / f"{name}.pgm").write_bytes(b"P5 %d %d 255\n" % (width, height) + pixels)
    (photos / "d.png").write_bytes(b"not a picture")
    for name in os.listdir(photos):
        os.utime(photos / name, ns=(1600000000123456789,) * 2)
    (tmp_path / "f.h5.partial").mkdir()
    (tmp_path / "f.h5.partial" / "records").write_bytes(zlib.decompress(base64.b64decode(EARLIER_LOG)))
    command = ["ingest", "photos", "-o", "f.h5", "--feature", "gray:bins=4,normalize=none"]
    result = run_clpipe(*command, cwd=tmp_path)
    assert result.returncode == 2 and "clpipe 0.2 or an earlier version" in result.stderr and "--fresh" in result.stderr
    assert (tmp_path / "f.h5.partial" / "records").read_bytes() == zlib.decompress(base64.b64decode(EARLIER_LOG))
    result = run_clpipe(*command, "--fresh", "--json", "f.json", cwd=tmp_path)
    assert result.returncode == 1, result.stderr
    counts = json.loads((tmp_path / "f.json").read_text())
    assert (counts["images_resumed"], counts["images_ok"], counts["images_failed"]) == (0, 4, 1)
    assert not (tmp_path / "f.h5.partial").exists()

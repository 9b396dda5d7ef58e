"""SIGKILL at any moment of ingest, cluster and run, each followed by the same command until done:
the result is that of an uninterrupted run, nothing sealed is done again, nothing is left over and
nothing half-written ever stands under the final name. SIGTERM, SIGUSR1, SIGINT and --max-time end a
busy run with its work sealed.

CLPIPE_LONG=1 makes it 1,000 kills; otherwise it is 200, or what fits into 48 seconds. The moments
are drawn from CLPIPE_SEED (the clock where it is not set), which is printed."""

import json
import os
import random
import signal
import struct
import subprocess
import time

import pytest

from conftest import CLPIPE, draw_photos, error_lines, run_clpipe, spoil

LONG = os.environ.get("CLPIPE_LONG") == "1"
KILLS = 1000 if LONG else 200
SECONDS = 3600 if LONG else 48
SEED = int(os.environ.get("CLPIPE_SEED") or time.time_ns() % 1000000)
FEATURES = ["--feature", "rgb:bins=128,grid=4x4"]


def start(place, *args):
    return subprocess.Popen([str(CLPIPE), *map(str, args), "--progress", "never"], cwd=place,
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True)


def log_records(place, name="x.h5"):
    """The whole records in an unfinished run's log: (images, failures); None without a log."""
    try:
        with open(place / f"{name}.partial" / "records", "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return None
    if len(data) < 24:
        return 0, 0
    at = 24 + struct.unpack_from("<I", data, 12)[0]
    images = failures = 0
    while at + 18 <= len(data):
        length, = struct.unpack_from("<I", data, at)
        if length == 0 or at + 16 + length > len(data):
            break
        kind, reason = data[at + 16], data[at + 17] if length > 1 else 0
        if kind == 2:
            images += reason == 0
            failures += reason != 0
        at += 16 + length
    return images, failures


def digest(path):
    result = run_clpipe("info", "--digest", path)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


class Moments:
    """Delays until a kill, spread over a run's time as it turns out to be."""

    def __init__(self, seconds):
        self.random = random.Random(SEED)
        self.longest = seconds

    def draw(self):
        return self.random.uniform(0, self.longest)

    def chance(self, share):
        return self.random.random() < share


def kill_once(process, delay):
    """True if the kill came before the end. Waiting is by sleep: a run may end early."""
    try:
        process.wait(delay)
    except subprocess.TimeoutExpired:
        process.kill()
    process.communicate()
    return process.returncode == -signal.SIGKILL


def finish(place, *args):
    """Runs to the end: returns the report, or fails with what the program said."""
    result = run_clpipe(*args, "--json", "-", "--progress", "never", cwd=place)
    assert result.returncode in (0, 1), (SEED, result.stderr)
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory, program):
    directory = tmp_path_factory.mktemp("pictures")
    draw_photos(directory, 160)
    spoil(directory)
    return directory


@pytest.fixture(scope="module")
def whole(pictures, tmp_path_factory):
    """Uninterrupted results, their identities, and the seconds they took with warm caches."""
    place = tmp_path_factory.mktemp("whole")
    seconds = {}
    for name, *args in [("ingest", "ingest", pictures, "-o", "x.h5", *FEATURES),
                        ("cluster", "cluster", "x.h5", "-k", "12", "--feature",
                         "rgb_128_4x4", "--n-init", "3"),
                        ("run", "run", pictures, "-o", "y.h5", "-k", "6", *FEATURES)]:
        if name == "cluster":
            (place / "features.h5").write_bytes((place / "x.h5").read_bytes())
        # The first builds kernels.
        for again in range(2):
            begin = time.monotonic()
            output = place / args[args.index("-o") + 1] if "-o" in args else place / "x.h5"
            if again:
                if name == "cluster":
                    output.write_bytes((place / "features.h5").read_bytes())
                else:
                    output.unlink()
            finish(place, *args)
            seconds[name] = time.monotonic() - begin
    return {"place": place, "seconds": seconds, "features": digest(place / "features.h5"),
            "cluster": digest(place / "x.h5"), "run": digest(place / "y.h5")}


def share(part):
    """A part's kills and its last moment."""
    return int(KILLS * part), time.monotonic() + SECONDS * part


def test_kill_ingest(pictures, whole, tmp_path, capsys):
    moments = Moments(whole["seconds"]["ingest"] * 1.1)
    command = ["ingest", pictures, "-o", "x.h5", *FEATURES]
    most, last = share(0.5)
    kills = resumed = early = 0
    while kills < most and time.monotonic() < last:
        if kill_once(start(tmp_path, *command), moments.draw()):
            kills += 1
        # Nothing half-written, ever; and what is in the log now must not be decoded again.
        if (tmp_path / "x.h5").exists():
            assert digest(tmp_path / "x.h5") == whole["features"], SEED
            early += 1
        if moments.chance(0.5):
            continue
        there = log_records(tmp_path) or (0, 0)
        finished = (tmp_path / "x.h5").exists()
        report = finish(tmp_path, *command)
        known = report["images_resumed"] + report["images_unchanged"]
        assert known >= there[0], (SEED, there, report)
        if finished:
            assert report["images_unchanged"] == report["images_ok"], (SEED, report)
        resumed += report["images_resumed"]
        assert os.listdir(tmp_path) == ["x.h5"], SEED
        assert digest(tmp_path / "x.h5") == whole["features"], SEED
        os.unlink(tmp_path / "x.h5")
    with capsys.disabled():
        print(f" [seed {SEED}: {kills} kills of ingest, {resumed} images resumed, {early} times "
              f"the file was there] ", end="")
    assert kills >= 10 and resumed > 0


def test_kill_cluster(whole, tmp_path, capsys):
    moments = Moments(whole["seconds"]["cluster"] * 1.1)
    command = ["cluster", "x.h5", "-k", "12", "--feature", "rgb_128_4x4", "--n-init", "3"]
    features = (whole["place"] / "features.h5").read_bytes()
    most, last = share(0.25)
    kills = early = 0
    while kills < most and time.monotonic() < last:
        (tmp_path / "x.h5").write_bytes(features)
        for _ in range(1 if moments.chance(0.5) else 3):
            kills += kill_once(start(tmp_path, *command), moments.draw())
            now = digest(tmp_path / "x.h5")
            assert now in (whole["features"], whole["cluster"]), SEED
            early += now == whole["cluster"]
        finish(tmp_path, *command)
        assert digest(tmp_path / "x.h5") == whole["cluster"], SEED
        assert os.listdir(tmp_path) == ["x.h5"], SEED
    with capsys.disabled():
        print(f" [{kills} kills of cluster, {early} times after the rename] ", end="")
    assert kills >= 5


def test_kill_run(pictures, whole, tmp_path, capsys):
    moments = Moments(whole["seconds"]["run"] * 1.1)
    command = ["run", pictures, "-o", "y.h5", "-k", "6", *FEATURES]
    most, last = share(0.25)
    kills = 0
    while kills < most and time.monotonic() < last:
        for _ in range(1 if moments.chance(0.5) else 3):
            kills += kill_once(start(tmp_path, *command), moments.draw())
            if (tmp_path / "y.h5").exists():
                assert digest(tmp_path / "y.h5") in (whole["features"], whole["run"]), SEED
        there = log_records(tmp_path, "y.h5") or (0, 0)
        report = finish(tmp_path, *command)["ingest"]
        assert report["images_resumed"] + report["images_unchanged"] >= there[0], SEED
        assert os.listdir(tmp_path) == ["y.h5"], SEED
        assert digest(tmp_path / "y.h5") == whole["run"], SEED
        os.unlink(tmp_path / "y.h5")
    with capsys.disabled():
        print(f" [{kills} kills of run] ", end="")
    assert kills >= 5


# --- asked to stop ------------------------------------------------------------------------------

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


@pytest.mark.parametrize("name, args, stop", [
    ("SIGTERM", [], stop_by(signal.SIGTERM)),
    ("SIGUSR1", [], stop_by(signal.SIGUSR1)),
    ("SIGINT", [], stop_by(signal.SIGINT)),
    ("--max-time", ["--max-time", "2"], None),
])
def test_stop_under_load(many, tmp_path, name, args, stop):
    command = ["ingest", many, "-o", "x.h5", *args]
    begin = time.monotonic()
    process = start(tmp_path, *command)
    time.sleep(2)
    assert process.poll() is None or not stop
    asked = time.monotonic()
    if stop:
        stop(process)
    _, said = process.communicate(timeout=30)
    took = time.monotonic() - (asked if stop else begin + 2)
    assert process.returncode == 4, said
    assert took < 5, f"{name} took {took:.2f} s"
    assert os.listdir(tmp_path) == ["x.h5.partial"]
    images, failures = log_records(tmp_path)
    assert images > 0 and failures == 0
    # What is sealed is taken up again, and nothing else had to be done before the next stop.
    process = start(tmp_path, "ingest", many, "-o", "x.h5", "--json", "report.json")
    time.sleep(1)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 4
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["images_resumed"] == images, report
    assert log_records(tmp_path)[0] >= images


def test_stop_cluster(whole, tmp_path):
    """Clustering has nothing to seal: the file stays as it was, and the exit code says so."""
    features = (whole["place"] / "features.h5").read_bytes()
    (tmp_path / "x.h5").write_bytes(features)
    process = start(tmp_path, "cluster", "x.h5", "-k", "40", "--feature", "rgb_128_4x4",
                    "--n-init", "100000")
    time.sleep(1.5)
    asked = time.monotonic()
    process.terminate()
    _, said = process.communicate(timeout=30)
    assert time.monotonic() - asked < 5
    assert process.returncode == 4, said
    assert (tmp_path / "x.h5").read_bytes() == features
    assert os.listdir(tmp_path) == ["x.h5"]


def test_second_interrupt_ends_at_once(many, tmp_path):
    process = start(tmp_path, "ingest", many, "-o", "x.h5")
    time.sleep(1)
    process.send_signal(signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGCONT)
    time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    asked = time.monotonic()
    process.communicate(timeout=30)
    # Either it was as quick as that with sealing, or it was ended.
    assert process.returncode in (4, 130)
    assert time.monotonic() - asked < 5
    assert os.listdir(tmp_path) == ["x.h5.partial"]

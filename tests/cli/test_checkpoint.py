"""A clustering that was killed or stopped continues from its checkpoint, with a bit-identical result.

The times of the kills are drawn from CLPIPE_SEED, which is printed."""

import json
import os
import random
import signal
import subprocess
import time

import numpy
import pytest

from conftest import CLPIPE, LONG, SEED, digest

STATE = "x.h5.kmeans.checkpoint"
KINDS = {
    "n-init": ["-k", "48", "--n-init", "3", "--max-iter", "25"],
    "sweep": ["-k", "2:5", "--n-init", "2", "--max-iter", "9"],
    "mini-batch": ["-k", "24", "--mini-batch", "3000", "--max-iter", "60"],
    "k-means||": ["-k", "24", "--init", "kmeans-parallel", "--metric", "cosine", "--tol", "1e-4"],
}


@pytest.fixture(scope="module")
def vectors(tmp_path_factory, program):
    path = tmp_path_factory.mktemp("vectors") / "vectors.npy"
    values = numpy.random.default_rng(5).normal(0, 1, (12000, 48))
    values += numpy.arange(12000)[:, None] % 9 / 3
    numpy.save(path, values.astype("f4"))
    return path


def command(vectors, *args):
    return [str(CLPIPE), "cluster", str(vectors), "-o", "x.h5", "--progress", "never", "--json",
            "-", *map(str, args)]


def run(place, *args, code=0):
    result = subprocess.run(command(*args), cwd=place, capture_output=True, text=True)
    assert result.returncode == code, result.stderr
    return json.loads(result.stdout) if code == 0 else result.stderr


@pytest.mark.parametrize("kind", [kind if kind == "n-init" else pytest.param(kind, marks=pytest.mark.slow)
                                  for kind in KINDS])
def test_killed(vectors, tmp_path, kind, capsys):
    draw = random.Random(SEED)
    # The first run builds the kernels.
    for name in ("cold", "whole"):
        (tmp_path / name).mkdir()
        begin = time.monotonic()
        run(tmp_path / name, vectors, *KINDS[kind], "--checkpoint", "0")
        longest = time.monotonic() - begin
    wanted = digest(tmp_path / "whole" / "x.h5")
    place = tmp_path / "killed"
    place.mkdir()
    kills = taken = 0
    while kills < (50 if LONG else 3):
        process = subprocess.Popen(command(vectors, *KINDS[kind], "--checkpoint", "0.001"),
                                   cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # Without a checkpoint there is nothing to resume, and most of such a short run is startup.
        while process.poll() is None and not (place / STATE).exists():
            time.sleep(0.002)
        try:
            process.wait(draw.uniform(0, 0.7) * longest)
            longest *= 0.8
        except subprocess.TimeoutExpired:
            process.kill()
            kills += 1
            process.wait()
            # In half of the cases, another run is killed before one is allowed to finish.
            if draw.random() < 0.5 and kills % 2:
                continue
        result = subprocess.run(command(vectors, *KINDS[kind], "--checkpoint", "0.001"), cwd=place,
                                capture_output=True, text=True)
        assert result.returncode == 0, (SEED, result.stderr)
        taken += "resuming after" in result.stderr
        assert digest(place / "x.h5") == wanted, SEED
        assert os.listdir(place) == ["x.h5"], SEED
        os.unlink(place / "x.h5")
    with capsys.disabled():
        print(f" [seed {SEED}: {kills} kills, {taken} resumed from a checkpoint] ", end="")
    assert taken > 0


# Enough work for a long time, mostly seeding and restarts.
BUSY = ["-k", "40", "--n-init", "10000", "--max-iter", "10"]


def stopped(vectors, place, name="SIGTERM"):
    """Runs until a new checkpoint is stored, then stops by the signal or option `name`; returns standard error."""
    state = place / STATE

    def stored():
        return os.stat(state).st_mtime_ns if state.exists() else 0

    before, seconds = stored(), 1
    while name == "--max-time" and stored() == before and seconds < 60:
        said = run(place, vectors, *BUSY, "--max-time", seconds, code=4)
        seconds *= 2
    if name != "--max-time":
        process = subprocess.Popen(command(vectors, *BUSY, "--checkpoint", "0.001"), cwd=place, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while stored() == before and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(getattr(signal, name))
        _, said = process.communicate(timeout=60)
        assert process.returncode == 4, said
    assert stored() != before
    return said


def iterations(said):
    return int(said.split("interrupted after ")[1].split()[0].replace(",", ""))


@pytest.mark.deep
@pytest.mark.parametrize("name", ["SIGTERM", "SIGUSR1", "SIGUSR2", "SIGINT", "--max-time"])
def test_stopped(vectors, tmp_path, name):
    said = stopped(vectors, tmp_path, name)
    assert "run the same command again to resume" in said
    assert os.listdir(tmp_path) == [STATE]
    made = iterations(said)
    said = stopped(vectors, tmp_path, name)
    assert f"after {made:,} iterations" in said
    assert iterations(said) >= made


@pytest.mark.deep
def test_without_checkpoints(vectors, tmp_path):
    said = run(tmp_path, vectors, *BUSY, "--max-time", "1", "--checkpoint", "0", code=4)
    assert "nothing was stored" in said
    assert os.listdir(tmp_path) == []


def test_checkpoint_of_other_options(vectors, tmp_path):
    """It is not used, and it is removed once the result is stored. A clustering with another name has its own
    checkpoint."""
    stopped(vectors, tmp_path)
    run(tmp_path, vectors, "-k", "3", "--name", "other", "--max-iter", "3")
    assert sorted(os.listdir(tmp_path)) == ["x.h5", STATE]
    result = subprocess.run(command(vectors, "-k", "3", "--max-iter", "3"), cwd=tmp_path,
                            capture_output=True, text=True)
    assert result.returncode == 0
    assert f"{STATE} belongs to other rows, other options" in result.stderr
    assert json.loads(result.stdout)["iterations_resumed"] == 0
    assert os.listdir(tmp_path) == ["x.h5"]


def test_damaged_checkpoint(vectors, tmp_path):
    stopped(vectors, tmp_path)
    state = tmp_path / STATE
    data = bytearray(state.read_bytes())
    data[len(data) // 3] ^= 4
    state.write_bytes(data)
    said = stopped(vectors, tmp_path)
    assert f"{STATE} is damaged; it is ignored" in said and "resuming after" not in said
    # The damaged checkpoint has been overwritten by a valid one.
    assert "resuming after" in stopped(vectors, tmp_path)


def test_option(vectors, tmp_path):
    """--checkpoint without a value changes nothing."""
    run(tmp_path, "--checkpoint", vectors, "-k", "2", "--checkpoint")
    assert os.listdir(tmp_path) == ["x.h5"]
    said = run(tmp_path, vectors, "-k", "2", "--checkpoint=soon", code=2)
    assert "--checkpoint expects a time such as" in said


@pytest.mark.deep
def test_checkpoint_of_other_rows(vectors, tmp_path):
    """Matrices are recognised by their values; a run continues with equal values in another file."""
    stopped(vectors, tmp_path)
    values = numpy.load(vectors)
    values[777, 3] += 1
    numpy.save(tmp_path / "changed.npy", values)
    said = run(tmp_path, tmp_path / "changed.npy", *BUSY, "--max-time", "1", code=4)
    assert "belongs to other rows" in said
    # The file name of the input is one of the options, so only the directory changes.
    (tmp_path / "elsewhere").mkdir()
    os.rename(tmp_path / "changed.npy", tmp_path / "elsewhere" / "changed.npy")
    said = run(tmp_path, tmp_path / "elsewhere" / "changed.npy", *BUSY, "--max-time", "1", code=4)
    assert "resuming after" in said


def test_stopped_before_the_checkpoint_is_resumed(vectors, tmp_path):
    """The checkpoint stays unchanged."""
    stopped(vectors, tmp_path)
    before = (tmp_path / STATE).read_bytes()
    said = run(tmp_path, vectors, *BUSY, "--max-time", "0.01", code=4)
    assert "run the same command again to resume from" in said
    assert (tmp_path / STATE).read_bytes() == before

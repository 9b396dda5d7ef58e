"""The kind net: rows equal those that numpy computes from the files, and updates move them like other rows."""
import os

import h5py
import network_numpy
import numpy
import pytest
from conftest import CLPIPE, check_one_error, digest, run_clpipe
from PIL import Image
from test_networks import random_network

SIZES = [(1, 1), (32, 32), (50, 1), (1, 50), (97, 61), (23, 200), (8, 8), (300, 211)]


def axis(size, scaled):
    """The weight of each pixel of an axis in each scaled pixel (pipeline/decode/scale.h)."""
    weights = numpy.zeros((scaled, size), object)
    for x in range(scaled):
        for i in range(size):
            if scaled <= size:
                weights[x, i] = max(0, min((i + 1) * scaled, (x + 1) * size) - max(i * scaled, x * size))
            else:
                at = min(max((2 * x + 1) * size - scaled, 0), 2 * scaled * (size - 1))
                weights[x, i] = max(0, 2 * scaled - abs(at - 2 * scaled * i))
    return weights


def scaled(pixels, height, width, crop):
    full = [height, width]
    if crop:
        by_width = width * pixels.shape[0] >= height * pixels.shape[1]
        over = 1000 * (width if by_width else height)
        under = crop * pixels.shape[1 if by_width else 0]
        for k, kept in enumerate((height, width)):
            most = max((2 * pixels.shape[k] * over + under) // (2 * under), kept)
            full[k] = most + (most - kept) % 2
    top, left = (full[0] - height) // 2, (full[1] - width) // 2
    down = axis(pixels.shape[0], full[0])[top:top + height]
    across = axis(pixels.shape[1], full[1])[left:left + width]
    area = int(down[0].sum()) * int(across[0].sum())
    out = [(down @ pixels[:, :, c].astype(object) @ across.T * 2 + area) // (2 * area) for c in range(3)]
    return numpy.stack(out, axis=2).astype("u1")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Pictures, and a model in the model directory."""
    monkeypatch.chdir(tmp_path)
    os.mkdir("models")
    os.mkdir("p")
    monkeypatch.setenv("CLPIPE_MODELS", str(tmp_path / "models"))
    data = network_numpy.write(random_network(5))
    with open("models/small.net", "wb") as file:
        file.write(data)
    random = numpy.random.default_rng(1)
    for height, width in SIZES:
        Image.fromarray(random.integers(0, 256, (height, width, 3), dtype="u1")).save(f"p/{height}x{width}.png")
    return network_numpy.read(data)


def wanted(network, path, crop, unit):
    height, width = network["picture"][:2]
    picture = scaled(numpy.asarray(Image.open(path)), height, width, crop)
    row = network_numpy.values(network, picture)[0]
    length = numpy.float64(0)
    for value in row.astype("f8"):
        length += value * value
    return (row.astype("f8") / numpy.sqrt(length)).astype("f4") if unit and length > 0 else row


@pytest.mark.variations
@pytest.mark.parametrize("options, crop, unit", [
    (",fit=squash", 0, True), (",crop=0.875", 875, True), (",fit=squash,normalize=none", 0, False)])
def test_rows(place, options, crop, unit):
    assert run_clpipe("ingest", "p", "-o", "x.h5", "--feature", f"net:model=small{options}").returncode == 0
    with h5py.File("x.h5") as file:
        rows = file["features/net"][:]
        for row, path in zip(rows, file["images/path"].asstr()[:]):
            assert numpy.array_equal(row, wanted(place, f"p/{path}", crop, unit)), path
    assert run_clpipe("verify", "x.h5").returncode == 0


@pytest.mark.deep
def test_one_identity(place):
    feature = ["--feature", "net:model=models/small.net"]
    assert run_clpipe("ingest", "p", "-o", "one.h5", *feature, "--max-time", 0).returncode == 4  # and is resumed below
    for name, options in (("one", ["--threads", 1]), ("seven", ["--threads", 7]), ("small", ["--memory", "16M"])):
        assert run_clpipe("ingest", "p", "-o", f"{name}.h5", *feature, *options).returncode == 0
    for index in range(2):
        assert run_clpipe("ingest", "p", "-o", f"s{index}.h5", *feature, "--shard", f"{index}/2").returncode == 0
    assert run_clpipe("merge", "s0.h5", "s1.h5", "-o", "merged.h5").returncode == 0
    assert len({digest(f"{name}.h5") for name in ("one", "seven", "small", "merged")}) == 1


def test_updates_use_the_same_model(place):
    assert run_clpipe("ingest", "p", "-o", "x.h5", "--feature", "net:model=small").returncode == 0
    assert run_clpipe("cluster", "x.h5", "-k", 2).returncode == 0
    Image.new("RGB", (40, 30), (200, 10, 90)).save("p/new.png")
    os.rename("models/small.net", "models/renamed.net")  # it is found by its digest
    assert run_clpipe("ingest", "p", "-o", "x.h5").returncode == 0
    assert run_clpipe("ingest", "p", "-o", "again.h5", "--feature", "net:model=renamed").returncode == 0
    with h5py.File("x.h5") as file, h5py.File("again.h5") as again:
        assert numpy.array_equal(file["features/net"][:], again["features/net"][:])
    outside = run_clpipe("similar", "x.h5", "p/new.png", "-n", 2)
    assert outside.returncode == 0 and len(outside.stdout.splitlines()) == 3
    os.remove("p/new.png")
    os.rename("models/renamed.net", "elsewhere.net")
    check_one_error(run_clpipe("ingest", "p", "-o", "x.h5"), 2, "needs its model", "--feature net=net:model=FILE")
    with open("models/other.net", "wb") as file:
        file.write(network_numpy.write(random_network(6)))
    check_one_error(run_clpipe("ingest", "p", "-o", "x.h5", "--feature", "net:model=other"), 2, "x.h5", "net")
    assert run_clpipe("ingest", "p", "-o", "x.h5", "--feature", "net:model=elsewhere.net").returncode == 0


@pytest.mark.parametrize("spec, words", [
    ("net", "net takes model=FILE"), ("net:model=none", "there is no model none"),
    ("net:model=small,output=none", "has no output none"), ("net:model=small,grid=2x2", "takes no grid="),
    ("net:model=small,fit=none", "must be crop or squash"), ("net:model=small,crop=2", "from 0.5 to 1"),
    ("net:model=small,normalize=hellinger", "must be unit or none"), ("rgb:model=small", "model")])
def test_refused(place, spec, words):
    check_one_error(run_clpipe("ingest", "p", "-o", "x.h5", "--feature", spec), 2, words)

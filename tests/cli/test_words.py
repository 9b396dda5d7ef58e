"""Words for clusters and pictures: from the classes of a network, or from folders."""
import csv
import io
import json
import math
import os
import shutil

import h5py
import network_numpy
import numpy
import pytest
from conftest import CLPIPE, ROOT, check_one_error, digest, draw_photos, run_clpipe
from PIL import Image
from test_networks import random_network

PHOTOS = ROOT / ".." / "shared" / "data" / "photos" / "labelled"
LITE0 = os.path.expanduser("~/.local/share/clpipe/models/lite0.net")
CLASSES = ["cat", "dog / hound", "castle", "castle gate", "red, crimson"]


def network_with_classes(seed=5):
    network = random_network(seed)
    values = network_numpy.read(network_numpy.write(network))
    columns = len(network_numpy.values(values, numpy.zeros((*network["picture"][:2], 3), "u1"))[0])
    random = numpy.random.default_rng(seed)
    network.update({"classes": CLASSES, "class_output": 0,
                    "class_weights": random.integers(-127, 128, (len(CLASSES), columns)).astype("i1"),
                    "class_scale": random.uniform(0.01, 0.02, len(CLASSES)).astype("f4"),
                    "class_bias": random.uniform(-1, 1, len(CLASSES)).astype("f4")})
    return network


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLPIPE_MODELS", str(tmp_path))
    with open("small.net", "wb") as file:
        file.write(network_numpy.write(network_with_classes()))
    random = numpy.random.default_rng(2)
    for folder in "ab":
        os.mkdir(folder)
        for i in range(6):
            pixels = random.integers(0, 256, (20 + i, 30, 3)) // (3 if folder == "a" else 1)
            Image.fromarray(pixels.astype("u1")).save(f"{folder}/{i}.png")
    return network_with_classes()


def usual_length(weights):
    return 36 / math.sqrt((weights.astype("f8") ** 2).sum(1).mean())


def stored(name):
    with h5py.File(name) as file:
        return {key: item[()] for key, item in file["classes/net"].items()}, file["classes/net"].attrs["model_digest"]


@pytest.mark.deep
@pytest.mark.parametrize("options", ["", ",normalize=none", ",store=uint8"])
def test_the_layer_equals_the_model(place, options):
    assert run_clpipe("ingest", "a", "b", "-o", "x.h5", "--feature", f"net:model=small{options}").returncode == 0
    layer, _ = stored("x.h5")
    weights, scale = place["class_weights"], place["class_scale"]
    assert [name.decode() for name in layer["name"]] == CLASSES
    assert numpy.array_equal(layer["matrix"], weights) and numpy.array_equal(layer["offset"], place["class_bias"])
    factor = 1 if "none" in options else usual_length(weights * scale.astype("f8")[:, None])
    assert numpy.allclose(layer["scale"], scale * factor, rtol=1e-6)
    with h5py.File("x.h5") as file:
        assert file["classes/net/matrix"].dims[1][0].name == "/feature_net"
        assert file["classes/net/name"].dims[0][0].name == "/class_net"
        model = file["features/net"].attrs["spec"].split("model=")[1][:64]
        assert file["classes/net"].attrs["model_digest"] == model
    assert run_clpipe("verify", "x.h5").returncode == 0


@pytest.mark.deep
def test_the_layer_is_carried_over(place):
    feature = ["--feature", "net:model=small"]
    assert run_clpipe("ingest", "a", "b", "-o", "x.h5", *feature).returncode == 0
    assert run_clpipe("ingest", "a", "-o", "a.h5", *feature).returncode == 0
    assert run_clpipe("ingest", "b", "-o", "b.h5", *feature).returncode == 0
    for index in range(2):
        assert run_clpipe("ingest", "a", "b", "-o", f"s{index}.h5", *feature, "--shard", f"{index}/2").returncode == 0
    expected = stored("x.h5")
    made = {"merged": ["merge", "a.h5", "b.h5", "-o", "merged.h5"], "copied": ["merge", "a.h5", "b.h5", "-o",
            "copied.h5", "--copy"], "joined": ["merge", "s0.h5", "s1.h5", "-o", "joined.h5"]}
    for name, words in made.items():
        assert run_clpipe(*words).returncode == 0
        assert digest(f"{name}.h5") == digest("x.h5")
    shutil.copy("x.h5", "y.h5")
    assert run_clpipe("cluster", "y.h5", "-k", 2, "-q").returncode == 0
    Image.new("RGB", (40, 30), (200, 10, 90)).save("a/new.png")
    assert run_clpipe("ingest", "a", "b", "-o", "y.h5").returncode == 0
    for name in [*made, "y"]:
        found = stored(f"{name}.h5")
        assert found[1] == expected[1] and all(numpy.array_equal(found[0][key], expected[0][key]) for key in found[0])
        assert run_clpipe("verify", f"{name}.h5").returncode == 0, name


@pytest.mark.deep
def test_damage_is_reported(place):
    assert run_clpipe("run", "a", "b", "-o", "x.h5", "--feature", "net:model=small", "-k", 2, "--no-report",
                      "-q").returncode == 0
    for number, (name, wrong) in enumerate((
            ("matrix", numpy.zeros((5, 3), "i1")), ("matrix", numpy.full((5, 1), numpy.nan, "f4")),
            ("scale", numpy.ones(4, "f4")), ("offset", numpy.full(5, numpy.inf, "f4")), ("name", numpy.zeros(5)))):
        shutil.copy("x.h5", "y.h5")
        with h5py.File("y.h5", "r+") as file:
            if number == 1:
                wrong = numpy.full(file["classes/net/matrix"].shape, numpy.nan, "f4")
            del file[f"classes/net/{name}"]
            file[f"classes/net/{name}"] = wrong
        verified = run_clpipe("verify", "y.h5")
        assert verified.returncode == 1 and "/classes/net: " in verified.stdout, (name, verified.stdout)
        assert run_clpipe("info", "y.h5").returncode == 0
        report = run_clpipe("report", "y.h5", "-o", "r")
        check_one_error(report, 3, "/classes/net")
    with h5py.File("x.h5", "r+") as file:
        file["classes/net"].attrs["model_digest"] = "0" * 64
    assert "a different model" in run_clpipe("verify", "x.h5").stdout


def shares(scores):
    parts = numpy.exp(scores - scores.max())
    return parts / parts.sum()


def words_of(rows, labels, layer):
    """The words as defined in docs/clustering.md."""
    weights = layer["matrix"].astype("f8") * layer["scale"][:, None]
    length = usual_length(weights)
    rows = rows / numpy.linalg.norm(rows, axis=1, keepdims=True)

    def of(mean):
        return shares(weights @ (mean / numpy.linalg.norm(mean)) * length + layer["offset"])

    found = []
    for cluster in range(labels.max() + 1):
        own, others = of(rows[labels == cluster].mean(0)), of(rows[labels != cluster].mean(0))
        spread = numpy.abs(rows[labels == cluster]).sum(1).mean() / math.sqrt(rows.shape[1])
        gain = own * numpy.log(own / others)
        order = [c for c in numpy.argsort(-gain, kind="stable")
                 if own[c] >= (0.8 if spread < 0.35 else 0.05) and gain[c] > 0]
        found.append([(layer["name"][c].decode(), own[c]) for c in order[:3]])
    return found


def test_words_of_classes(place):
    result = run_clpipe("run", "a", "b", "-o", "x.h5", "--feature", "net:model=small", "-k", 3, "--json", "x.json")
    assert result.returncode == 0, result.stderr
    with h5py.File("x.h5") as file:
        rows, labels = file["features/net"][:].astype("f8"), file["clusters/kmeans/labels"][:]
    expected = words_of(rows, labels, stored("x.h5")[0])
    assert any(expected)
    info = json.loads(run_clpipe("info", "x.h5", "--json", "-").stdout)
    exported = list(csv.DictReader(io.StringIO(run_clpipe("export", "x.h5", "--what", "clusters").stdout)))
    with open("x.json") as file:
        reported = json.load(file)["cluster"]["words"]
    assert reported == info["clusters"][0]["words"]
    for cluster, words in enumerate(expected):
        assert [one["word"] for one in reported[cluster]] == [word for word, _ in words]
        assert numpy.allclose([one["share"] for one in reported[cluster]], [part for _, part in words], atol=1e-4)
        row, = [row for row in exported if row["cluster"] == str(cluster)]
        assert [row[f"word_{i}"] for i in (1, 2, 3)] == ([word for word, _ in words] + [""] * 3)[:3]
        for word, part in words[:1]:
            assert f"{word} {100 * part:.0f} %" in result.stdout
            assert f"{cluster}: {word} {100 * part:.0f} %" in run_clpipe("info", "x.h5").stdout
    with open("x-report/data/images-0.js") as file:
        assert '"words":[[' in file.read()


@pytest.mark.deep
def test_rank_by_a_class(place, monkeypatch):
    assert run_clpipe("ingest", "a", "b", "-o", "x.h5", "--feature", "net:model=small", "--feature",
                      "rgb:bins=8x8x8").returncode == 0
    layer, _ = stored("x.h5")
    with h5py.File("x.h5") as file:
        rows = file["features/net"][:].astype("f8")
    scores = rows @ (layer["matrix"].astype("f8") * layer["scale"][:, None]).T + layer["offset"]
    for asked, classes in (("castle", [2]), ("CASTLE", [2]), ("hound", [1]), ("crimson", [4])):
        found = list(csv.DictReader(io.StringIO(run_clpipe("similar", "x.h5", "--class", asked, "-n", 20).stdout)))
        best = scores[:, classes].max(1)
        assert [int(row["row"]) for row in found][:12] == numpy.argsort(-best, kind="stable").tolist()
        assert numpy.allclose([float(row["score"]) for row in found[:12]], numpy.sort(best)[::-1], atol=1e-4)
        assert [row["row"] for row in found][12:] == ["-1"] * 8
    check_one_error(run_clpipe("similar", "x.h5", "--class", "castel"), 2, "no class 'castel'", "castle", "net")
    check_one_error(run_clpipe("similar", "x.h5", "--class", "cat", "--all"), 2, "only one of")
    check_one_error(run_clpipe("similar", "x.h5", "--class", "cat", "--feature", "rgb_8x8x8"), 2, "no classes")
    report = json.loads(run_clpipe("similar", "x.h5", "--class", "cat", "-n", 1, "--json", "-").stdout)
    monkeypatch.syspath_prepend(str(ROOT / "tools" / "python"))
    monkeypatch.setenv("CLPIPE", str(CLPIPE))
    import clpipe
    assert clpipe.similar("x.h5", class_="cat", neighbours=1)["neighbours"] == report["neighbours"]
    assert run_clpipe("cluster", "x.h5", "-k", 2, "--feature", "net", "-q").returncode == 0
    with clpipe.open("x.h5") as file:
        assert file.class_names("net") == CLASSES
        assert numpy.allclose(file.class_scores("net"), scores, atol=1e-4)
        assert file.class_scores("net", 3).shape == (5,)
        assert len(file.words()) == 2 and file.clusters()["size"].is_monotonic_decreasing
    assert report["class"] == "cat" and report["neighbours"][0]["distance"] is None


@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_rank_by_a_vector(place, kind):
    assert run_clpipe("ingest", "a", "b", "-o", "x.h5", "--feature", "net:model=small").returncode == 0
    with h5py.File("x.h5") as file:
        rows = file["features/net"][:].astype("f8")
    query = rows[3] + 0.1 * rows[7]
    numpy.save("q.npy", query.astype(kind))
    numpy.save("row.npy", query[None].astype(kind))
    numpy.save("short.npy", query[:-1])
    numpy.save("nan.npy", query * numpy.nan)
    distances = ((rows - query.astype(kind).astype("f4")) ** 2).sum(1)
    for name in "q.npy", "row.npy":
        found = list(csv.DictReader(io.StringIO(run_clpipe("similar", "x.h5", "--vector", name, "-n", 5).stdout)))
        assert [int(row["row"]) for row in found] == numpy.argsort(distances)[:5].tolist()
        assert numpy.allclose([float(row["squared_distance"]) for row in found], numpy.sort(distances)[:5], atol=1e-6)
    check_one_error(run_clpipe("similar", "x.h5", "--vector", "short.npy"), 2, "short.npy has", "rows of net have")
    check_one_error(run_clpipe("similar", "x.h5", "--vector", "nan.npy"), 3, "nan.npy has no values")
    check_one_error(run_clpipe("similar", "x.h5", "--vector", "none.npy"), 2, "none.npy")


def test_words_of_folders(tmp_path):
    draw_photos(tmp_path / "photos")
    result = run_clpipe("run", "photos", "-o", "x.h5", "--feature", "rgb:bins=8x8x8", "-k", 3, "--json", "x.json",
                        cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    report = json.loads((tmp_path / "x.json").read_text())["cluster"]
    with h5py.File(tmp_path / "x.h5") as file:
        labels = file["clusters/kmeans/labels"][:]
        folders = [path.split("/")[-2] if "/" in path else "" for path in file["images/path"].asstr()[:]]
    for cluster, words in enumerate(report["words"]):
        own = [folder for folder, label in zip(folders, labels) if label == cluster]
        for one in words:
            assert one["share"] == own.count(one["word"]) / len(own) >= 0.2
    assert sum(map(len, report["words"])) >= 2


def right_words():
    with open(ROOT / "tests" / "cli" / "right_words.txt") as file:
        pairs = [line.rstrip("\n").split(": ", 1) for line in file if not line.startswith("#")]
    return {folder: words.split("; ") for folder, words in pairs}


@pytest.mark.slow
@pytest.mark.skipif(not PHOTOS.is_dir() or not os.path.exists(LITE0), reason="needs the photographs and lite0")
def test_the_right_words(tmp_path):
    table = right_words()
    result = run_clpipe("run", PHOTOS, "-o", "x.h5", "--preset", "semantic", "-k", 12, "--no-report", "--json", "-",
                        cwd=tmp_path, timeout=600)
    assert result.returncode == 0, result.stderr
    words = json.loads(result.stdout)["cluster"]["words"]
    with h5py.File(tmp_path / "x.h5") as file:
        labels = file["clusters/kmeans/labels"][:]
        folders = numpy.array([path.split("/")[0] for path in file["images/path"].asstr()[:]])
    right = [folder for folder in table if {one["word"] for one in
             words[numpy.bincount(labels[folders == folder]).argmax()]} & set(table[folder])]
    assert len(right) >= 9, right


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists(LITE0), reason="needs lite0")
def test_noise_and_textures_have_no_words(tmp_path):
    random = numpy.random.default_rng(3)
    for i in range(30):
        height, width = random.integers(150, 400, 2)
        y, x = numpy.mgrid[0:height, 0:width]
        angle, step = random.uniform(0, math.pi), random.uniform(0.1, 0.6)
        waves = 127 + 100 * numpy.sin(step * (x * math.cos(angle) + y * math.sin(angle)))
        small = random.integers(0, 256, (height // 8 + 2, width // 8 + 2, 3), dtype="u1")
        for name, pixels in (("noise", random.integers(0, 256, (height, width, 3))),
                             ("waves", waves + random.normal(0, 10, waves.shape)),
                             ("blots", numpy.asarray(Image.fromarray(small).resize((width, height), Image.BICUBIC)))):
            os.makedirs(tmp_path / "p" / name, exist_ok=True)
            Image.fromarray(numpy.clip(pixels, 0, 255).astype("u1")).save(tmp_path / "p" / name / f"{i}.png")
    result = run_clpipe("run", "p", "-o", "x.h5", "--preset", "semantic", "-k", 4, "--no-report", "--json", "-",
                        cwd=tmp_path, timeout=600)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["cluster"]["words"] == [[]] * 4

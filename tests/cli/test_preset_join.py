"""The joined features of a preset: their rows follow its rule and can be clustered, assigned, searched and
updated."""

import json
import shutil

import h5py
import numpy
import pytest

from clusterings import cluster, stored
from conftest import check_one_error, draw_photos, run_clpipe
from test_evaluate import evaluate, folder, measures
from test_projection import check_labels, components_of, project

FEATURES = ["--feature", "color=hsv:bins=8x2x2", "--feature", "layout=gray:bins=8,grid=2x2",
            "--feature", "root=rgb:bins=16,normalize=hellinger"]
WEIGHTS = {"color": 1, "layout": 0.5, "root": 0.25}


def make(place, source, output, pca=5, **more):
    """Makes a file whose preset joins three features, which is smaller than the program's own presets."""
    result = run_clpipe("ingest", source, "-o", output, *FEATURES, cwd=place)
    assert result.returncode == 0, result.stderr
    with h5py.File(place / output, "a") as f:
        f.attrs["preset"] = json.dumps(
            {"name": "good", "features": [{"name": n, "weight": w} for n, w in WEIGHTS.items()],
             "metric": "euclidean", "rows": "unit", "pca": pca, "whiten": 0.5, **more})
    return place / output


def joined(path):
    with h5py.File(path) as f:
        parts = {name: f["features"][name][:].astype("f8") for name in WEIGHTS}
    parts = {n: numpy.sqrt(x) if n != "root" else x for n, x in parts.items()}
    parts = [x / numpy.linalg.norm(x, axis=1, keepdims=True) * WEIGHTS[n] for n, x in parts.items()]
    return (numpy.hstack(parts) / numpy.sqrt(sum(w * w for w in WEIGHTS.values()))).astype("f4")


@pytest.fixture(scope="module")
def place(tmp_path_factory, program):
    place = tmp_path_factory.mktemp("preset")
    (place / "photos").mkdir()
    draw_photos(place / "photos", 40)
    make(place, "photos", "x.h5")
    return place


def test_rows_rankings_and_clusters(place, tmp_path):
    path = shutil.copy(place / "x.h5", tmp_path / "x.h5")
    rows = joined(path)
    out = run_clpipe("export", path, "--what", "features", "--format", "npy", "-o", tmp_path / "rows.npy")
    assert out.returncode == 0, out.stderr
    assert numpy.abs(numpy.load(tmp_path / "rows.npy") - rows).max() <= 6e-8
    with h5py.File(path) as f:
        classes = [folder(p.decode()) for p in f["images/path"][:]]
    found = evaluate(path)["features"]
    assert [f["feature"] for f in found] == [*sorted(WEIGHTS), "preset"]
    wanted = measures(rows.astype("f8"), classes)
    assert (found[-1]["values"], found[-1]["metric"]) == (rows.shape[1], "euclidean")
    assert {key: found[-1][key] for key in wanted} == pytest.approx(wanted, abs=1e-3)
    cluster(path, "-k", 3, cwd=tmp_path)
    arrays, attributes = stored(path)
    assert attributes["feature"] == "preset" and json.loads(attributes["parameters"])["pca"] == 5
    mean, components, _ = components_of(rows.astype("f8"), 5, 0.5)
    assert numpy.abs(arrays["components"][:3] - components[:3]).max() < 1e-4
    check_labels(arrays, project(rows.astype("f8"), arrays["mean"], arrays["components"]))
    cluster(path, "-k", 3, "--pca", 0, "--name", "plain", cwd=tmp_path)
    arrays, attributes = stored(path, "plain")
    assert "mean" not in arrays and attributes["feature"] == "preset"
    check_labels(arrays, rows)


def test_rankings_have_components_of_their_own(place, tmp_path):
    path = make(place, "photos", tmp_path / "r.h5", rank_pca=4)
    with h5py.File(path) as f:
        classes = [folder(p.decode()) for p in f["images/path"][:]]
    rows = joined(path).astype("f8")
    mean, components, _ = components_of(rows, 5, 0)
    ranked = project(rows, mean, components[:4])
    wanted = measures(ranked, classes)
    answers = []
    for clustered in False, True:
        if clustered:
            cluster(path, "-k", 3, cwd=tmp_path)
        found = evaluate(path)["features"][-1]
        assert found["values"] == 4
        assert {key: found[key] for key in wanted} == pytest.approx(wanted, abs=2e-3)
        answers.append(run_clpipe("similar", path, "row:3", place / "photos" / "red" / "00.png", "-n", 5,
                                  cwd=place / "photos").stdout)
    assert answers[0] == answers[1] != ""
    nearest = numpy.sort(((ranked - ranked[3]) ** 2).sum(1))[1:6]
    lines = [line.split(",") for line in answers[0].splitlines() if line.startswith("row:3,")]
    assert [float(line[5]) for line in lines] == pytest.approx(nearest.tolist(), abs=1e-4)
    plain = run_clpipe("similar", path, "row:3", "-n", 5, "--metric", "euclidean").stdout
    assert plain != "" and plain.splitlines()[1:] != answers[0].splitlines()[1:6]


@pytest.mark.deep
def test_pictures_assign_and_update(place, tmp_path):
    path = shutil.copy(place / "x.h5", tmp_path / "x.h5")
    shutil.copytree(place / "photos", tmp_path / "photos")
    cluster(path, "-k", 3, cwd=tmp_path)
    arrays, _ = stored(path)
    outside = tmp_path / "outside.png"
    shutil.copy(place / "photos" / "red" / "00.png", outside)
    answer = json.loads(run_clpipe("similar", path, outside, "-n", 2, "--json", "-").stdout)
    assert answer["feature"] == "preset"
    assert [n["squared_distance"] for n in answer["neighbours"]] == [0, 0]
    make(tmp_path, "photos", "new.h5")
    assert run_clpipe("assign", path, tmp_path / "new.h5").returncode == 0
    assert (stored(tmp_path / "new.h5")[0]["labels"] == arrays["labels"]).all()
    shutil.copy(outside, tmp_path / "photos" / "zz.png")
    result = run_clpipe("ingest", "photos", "-o", path, "--relocate", "photos", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    continued, _ = stored(path)
    assert len(continued["labels"]) == len(arrays["labels"]) + 1
    check_labels(continued, project(joined(path).astype("f8"), arrays["mean"], arrays["components"]))


def test_presets_of_other_programs(place, tmp_path):
    path = shutil.copy(place / "x.h5", tmp_path / "x.h5")
    for preset in ("{}", "no JSON", '{"metric": "euclidean", "rows": "unit", "features": []}'):
        with h5py.File(path, "a") as f:
            f.attrs["preset"] = preset
        assert run_clpipe("cluster", path, "-k", 3).returncode == 3
    with h5py.File(path, "a") as f:
        f.attrs["preset"] = json.dumps({"metric": "euclidean", "rows": "unit",
                                        "features": [{"name": "gone", "weight": 1}]})
    check_one_error(run_clpipe("cluster", path, "-k", 3, "-q"), 2, "no feature 'gone'")

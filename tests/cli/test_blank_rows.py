"""Pictures in which nothing could be counted, such as a banner too thin for one square, are left out of rankings
and clusterings; the results equal those of a file without such pictures."""

import json
import shutil

import h5py
import numpy
import pytest
from PIL import Image

from conftest import error_lines, run_clpipe

NOTICE = "1 image without values of {} that can be compared: left out"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """without.h5: pictures of noise in two folders; with.h5: the same and, in row 0, a banner of 728 x 20 pixels."""
    place = tmp_path_factory.mktemp("blank")
    random = numpy.random.default_rng(2)
    for folder, scale in (("coarse", 12), ("fine", 3)):
        (place / "p" / folder).mkdir(parents=True)
        for i in range(12):
            small = random.integers(0, 256, (64 // scale, 84 // scale, 3), "u1")
            Image.fromarray(small).resize((84, 64)).save(place / "p" / folder / f"{i}.png")
    shutil.copytree(place / "p", place / "q")
    Image.fromarray(random.integers(0, 256, (20, 728, 3), "u1")).save(place / "q" / "coarse" / "-.png")
    features = [f"--feature={spec}" for spec in (
        "fisher=sift:fisher=4", "words=sift:words=8", "opsift=opsift:words=8", "hsv:bins=4x2x2,normalize=hellinger",
        "hog:grid=2x2")]
    for source, output, options in (("p", "without.h5", []),
                                    ("q", "with.h5", ["--codebook", "without.h5"])):
        result = run_clpipe("ingest", source, "-o", output, *features, *options, cwd=place)
        assert result.returncode == 0, result.stderr
    with h5py.File(place / "with.h5") as file:
        assert file["images/path"].asstr()[0] == "coarse/-.png"
        assert not file["features/fisher"][0].any() and file["features/hsv_4x2x2"][0].any()
    return place


def run(files, *arguments):
    result = run_clpipe(*arguments, cwd=files)
    assert result.returncode == 0, result.stderr
    return result


@pytest.mark.deep
@pytest.mark.parametrize("feature", ["fisher", "words", "fisher+hsv_4x2x2:2"])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_clusters(files, tmp_path, feature, metric):
    arrays = {}
    for name in ("without", "with"):
        result = run(files, "cluster", f"{name}.h5", "--feature", feature, "--metric", metric, "-k", 3,
                     "-o", tmp_path / f"{name}.h5")
        assert (NOTICE.format(feature) in result.stderr) == (name == "with")
        assert "3 clusters of 24 images" in result.stdout
        with h5py.File(tmp_path / f"{name}.h5") as file:
            arrays[name] = {key: data[:] for key, data in file["clusters/kmeans"].items()}
    found, wanted = arrays["with"], arrays["without"]
    assert found["labels"][0] == -1 and numpy.isnan(found["distances"][0])
    for key in ("labels", "distances"):
        assert numpy.array_equal(found[key][1:], wanted[key])
    for key in ("centroids", "sizes", "inertia_history"):
        assert numpy.array_equal(found[key], wanted[key])
    assert numpy.array_equal(found["nearest"], wanted["nearest"] + 1)
    assert "no problems" in run_clpipe("verify", tmp_path / "with.h5").stdout
    labelled = run(files, "assign", tmp_path / "without.h5", "with.h5", "--feature", feature,
                   "-o", tmp_path / "assigned.h5")
    assert NOTICE.format(feature) in labelled.stderr
    with h5py.File(tmp_path / "assigned.h5") as file:
        assert numpy.array_equal(file["clusters/kmeans/labels"][:], found["labels"])


@pytest.mark.parametrize("options", [[], ["--metric", "cosine"], ["--diffuse"], ["--expand", 2]])
def test_rankings(files, options):
    reports = [json.loads(run(files, "evaluate", f"{name}.h5", "--feature", "fisher", "--feature",
                              "opsift", *options, "--json", "-").stdout) for name in ("without", "with")]
    wanted, found = ([{key: value for key, value in one.items() if "seconds" not in key}
                      for one in report["features"]] for report in reports)
    assert found == wanted
    answers = []
    for name, source in (("without", "p"), ("with", "q")):
        rows = run(files, "similar", f"{name}.h5", f"{source}/fine/3.png", "--feature", "fisher", "-n", 5,
                   *options).stdout.splitlines()[1:]
        answers.append([line.split(",")[3:] for line in rows])
    assert answers[0] == answers[1] and len(answers[0]) == 5


def test_neighbours_of_all(files, tmp_path):
    shutil.copy(files / "with.h5", tmp_path / "f.h5")
    result = run(tmp_path, "similar", "f.h5", "--all", "--feature", "words", "-n", 4)
    assert NOTICE.format("words") in result.stderr
    with h5py.File(tmp_path / "f.h5") as file:
        rows = file["neighbours/words/rows"][:]
    assert (rows[0] == -1).all() and (rows[1:] > 0).all()
    run(files, "cluster", "with.h5", "--feature", "words", "-k", 2, "--name", "shown")
    report = run(files, "report", "with.h5", "--name", "shown", "-o", tmp_path / "report")
    assert NOTICE.format("words") in report.stderr


def test_an_update_gives_blank_rows_no_label(files, tmp_path):
    shutil.copytree(files / "p", tmp_path / "p")
    shutil.copy(files / "without.h5", tmp_path / "f.h5")
    for feature, name in (("words", "a"), ("fisher+hsv_4x2x2", "b"), ("hsv_4x2x2", "c")):
        run(tmp_path, "cluster", "f.h5", "--feature", feature, "-k", 2, "--name", name)
    shutil.copy(files / "q" / "coarse" / "-.png", tmp_path / "p" / "coarse")
    run(tmp_path, "ingest", "p", "-o", "f.h5", "--relocate", "p")
    with h5py.File(tmp_path / "f.h5") as file:
        assert [file[f"clusters/{name}/labels"][0] for name in "ab"] == [-1, -1]
        assert file["clusters/c/labels"][0] >= 0
    assert "no problems" in run(tmp_path, "verify", "f.h5").stdout


@pytest.mark.deep
def test_pictures_without_edges_are_compared(clpipe, tmp_path):
    """An empty histogram of gradients is a valid value, so pictures without edges form one cluster."""
    (tmp_path / "p").mkdir()
    for i in range(4):
        Image.new("RGB", (30, 20), (60 * i, 9, 9)).save(tmp_path / "p" / f"{i}.png")
    assert clpipe("run", "p", "--feature", "hog:grid=2x2", "-o", "f.h5").returncode == 0
    with h5py.File(tmp_path / "f.h5") as file:
        assert file["clusters/kmeans/labels"][:].tolist() == [0] * 4
    # These pictures are too small for the feature, so none can be compared.
    for i in range(3):
        Image.new("RGB", (2, 2), (60 * i, 9, 9)).save(tmp_path / "p" / f"{i}.png")
    (tmp_path / "p" / "3.png").unlink()
    refused = clpipe("run", "p", "--feature", "lbp", "-o", "g.h5")
    assert refused.returncode == 3
    assert "no image has values of lbp that can be compared" in error_lines(refused)[-1]

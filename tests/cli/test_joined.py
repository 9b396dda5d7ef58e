"""Several features clustered as one give the same result as their columns side by side, without storing the joined
columns."""

import h5py
import numpy
import pytest

from clusterings import cluster, stored
from conftest import check_one_error, draw_photos, run_clpipe

FEATURES = ["--feature", "color=rgb:bins=8x8x8", "--feature", "hue=hsv", "--feature",
            "count=gray:bins=16,normalize=none", "--feature", "root=gray:bins=8,normalize=hellinger"]
WAYS = [[], ["--threads", "1", "--memory", "1M", "--device-memory", "200K"]]


def bits(path, name="kmeans"):
    arrays, attributes = stored(path, name)
    return {key: value.tobytes() for key, value in arrays.items()} | {
        key: attributes[key] for key in ("iterations", "inertia", "metric")}


@pytest.fixture(scope="module")
def photos(tmp_path_factory, program):
    place = tmp_path_factory.mktemp("joined")
    (place / "photos").mkdir()
    draw_photos(place / "photos", 60)
    result = run_clpipe("ingest", "photos", "-o", "x.h5", *FEATURES, cwd=place)
    assert result.returncode == 0, result.stderr
    return place


@pytest.mark.parametrize("way", WAYS, ids=["resident", "streamed"])
@pytest.mark.parametrize("joined, metric, default", [
    ({"color": 1, "hue": 0.25}, "hellinger", True),
    ({"hue": 2, "root": 1, "count": 0.001}, "euclidean", True),
    ({"color": 1, "hue": 1}, "cosine", False),
    ({"color": 0.5}, "euclidean", False),
])
@pytest.mark.deep
def test_columns_side_by_side(photos, tmp_path, joined, metric, default, way):
    with h5py.File(photos / "x.h5", "r") as file:
        columns = [(file[f"features/{name}"][:].astype("f4").astype(float) * weight).astype("f4")
                   for name, weight in joined.items()]
    numpy.save(tmp_path / "rows.npy", numpy.hstack(columns))
    (tmp_path / "x.h5").write_bytes((photos / "x.h5").read_bytes())
    name = "+".join(name if weight == 1 else f"{name}:{weight}" for name, weight in joined.items())
    said = [] if default else ["--metric", metric]
    cluster("x.h5", "-k", "5", "--feature", name, *said, *way, cwd=tmp_path)
    cluster("rows.npy", "-k", "5", "--metric", metric, "-o", "r.h5", cwd=tmp_path)
    assert bits(tmp_path / "x.h5") == bits(tmp_path / "r.h5")
    assert stored(tmp_path / "x.h5")[1]["feature"] == name
    assert run_clpipe("verify", "x.h5", cwd=tmp_path).returncode == 0
    with h5py.File(tmp_path / "x.h5", "r") as file:
        assert set(file["features"]) == {"color", "hue", "count", "root"}


def test_different_spellings_of_one_name(photos, tmp_path):
    (tmp_path / "x.h5").write_bytes((photos / "x.h5").read_bytes())
    first = cluster("x.h5", "-k", "4", "--feature", "color:0.5+hue", cwd=tmp_path)
    again = cluster("x.h5", "-k", "4", "--feature", "color:.500+hue:1", cwd=tmp_path)
    assert first["seconds_iterate"] > 0 and again["seconds_iterate"] == 0
    result = run_clpipe("cluster", "x.h5", "-k", "4", "--feature", "color:0.6+hue", cwd=tmp_path)
    check_one_error(result, 2, "feature: the file has color:0.5+hue; the command asks for color:0.6+hue")
    result = run_clpipe("cluster", "x.h5", "-k", "4", "--feature", "hue+color:0.5", cwd=tmp_path)
    check_one_error(result, 2, "a different")


@pytest.mark.deep
def test_joined_features_in_other_commands(photos, tmp_path):
    """info, assign, updates and verify know which features were clustered."""
    names = draw_photos(tmp_path / "photos", 40)
    result = run_clpipe("run", "--no-report", "photos", "-o", "x.h5", "-k", "4", *FEATURES, "--cluster-feature",
                        "hue:2+color", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    before, about = stored(tmp_path / "x.h5")
    assert about["feature"] == "hue:2+color" and about["metric"] == "hellinger"
    assert "by hue:2+color" in run_clpipe("info", "x.h5", cwd=tmp_path).stdout
    # The same centroids give the same images the same labels.
    (tmp_path / "y.h5").write_bytes((photos / "x.h5").read_bytes())
    result = run_clpipe("assign", "x.h5", "y.h5", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    with h5py.File(tmp_path / "x.h5") as x, h5py.File(tmp_path / "y.h5") as y:
        of = dict(zip(y["images/path"][:], y["clusters/kmeans/labels"][:]))
        assert [of[path] for path in x["images/path"][:]] == list(before["labels"])
    for name in ("x.h5", "y.h5"):
        assert run_clpipe("verify", name, cwd=tmp_path).returncode == 0
    # When the rows change, the clusters are continued.
    (tmp_path / "photos" / names[5]).unlink()
    result = run_clpipe("ingest", "photos", "-o", "x.h5", *FEATURES, cwd=tmp_path)
    assert result.returncode == 0 and "clusters kmeans are continued" in result.stderr, result.stderr
    assert run_clpipe("verify", "x.h5", cwd=tmp_path).returncode == 0


def test_changed_values_are_found(photos, tmp_path):
    (tmp_path / "x.h5").write_bytes((photos / "x.h5").read_bytes())
    cluster("x.h5", "-k", "4", "--feature", "color+hue:3", cwd=tmp_path)
    with h5py.File(tmp_path / "x.h5", "r+") as file:
        file["features/hue"][7, 0] += 0.25
    result = run_clpipe("verify", "x.h5", cwd=tmp_path)
    assert result.returncode == 1 and "made from other rows" in result.stdout + result.stderr


@pytest.mark.parametrize("name, said", [
    ("color+absent", "holds no feature 'absent'"),
    ("color+", "holds no feature ''"),
    ("color+hue:", "'' is not a valid weight for feature hue"),
    ("color+hue:-1", "'-1' is not a valid weight"),
    ("color:0", "'0' is not a valid weight"),
    ("color:1e9+hue", "'1e9' is not a valid weight"),
    ("color+hue+color:2", "color is joined with itself"),
])
def test_refused(photos, name, said):
    result = run_clpipe("cluster", "x.h5", "-k", "3", "--feature", name, cwd=photos)
    check_one_error(result, 2, said)
    result = run_clpipe("run", "--no-report", "photos", "-o", "y.h5", *FEATURES, "--cluster-feature",
                        "color+absent", cwd=photos)
    check_one_error(result, 2, "--cluster-feature absent: this run computes only")

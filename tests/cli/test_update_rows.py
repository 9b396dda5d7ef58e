"""How an update treats everything that has a value for each image, and data of other programs."""

import json
import os
import shutil

import h5py
import numpy
import pytest

from clusterings import cluster, stored
from conftest import draw_photos, run_clpipe

RGB = "rgb_8x8x8"


@pytest.fixture
def place(tmp_path, monkeypatch, program):
    """The working directory, with p1 (13 images) and p2 (9 images with other colours)."""
    draw_photos(tmp_path / "p1")
    draw_photos(tmp_path / "p2", 8)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    return tmp_path


def clpipe(*args, code=0):
    result = run_clpipe(*args)
    assert result.returncode == code, result.stderr
    return result.stderr


def ingest(*args, output="x.h5", code=0):
    return clpipe("ingest", *args, "-o", output, code=code)


def made(*features):
    ingest("p1", *[f"--feature={spec}" for spec in features or ["rgb:bins=8x8x8"]])


def verify(path="x.h5"):
    assert "no problems found" in run_clpipe("verify", path).stdout
    assert run_clpipe("verify", path).returncode == 0


def names(path="x.h5"):
    with h5py.File(path, "r") as file:
        return [text.decode() for text in file["images/path"][:]]


def test_a_picture_with_the_same_size_and_colours_is_another(place):
    """The bytes decide: imported rows of the earlier picture are not used for the new one."""
    random = numpy.random.default_rng(8)
    os.mkdir("q")
    pixels = random.integers(0, 256, (3, 192), dtype="u1")
    for name, values in zip("abc", pixels):
        with open(f"q/{name}.ppm", "wb") as file:
            file.write(b"P6 8 8 255\n" + values.tobytes())
    ingest("q", "--feature=rgb:bins=4x4x4")
    rows = random.random((3, 5), dtype="f4")
    numpy.save("e.npy", rows)
    clpipe("import", "x.h5", "clip=e.npy")
    with open("q/b.ppm", "wb") as file:
        file.write(b"P6 8 8 255\n" + pixels[1].reshape(64, 3)[::-1].tobytes())
    ingest("q")
    with h5py.File("x.h5") as file:
        assert numpy.array_equal(file["features/clip"][::2], rows[::2])
        assert numpy.isnan(file["features/clip"][1]).all()


def space(values, metric):
    """Rows in the metric's space, as float32 like clpipe's."""
    values = values.astype("f8")
    if metric == "hellinger":
        values = numpy.sqrt(values)
    if metric == "cosine":
        values = values / numpy.linalg.norm(values, axis=1)[:, None]
    return values.astype("f4")


def reference(points, centroids):
    """Nearest centroids (the lowest of equals) and squared distances, in float64."""
    distances = ((points[:, None].astype("f8") - centroids[None].astype("f8")) ** 2).sum(2)
    return distances.argmin(1), distances.min(1)


def check_continued(before, after, earlier, points, attributes):
    """Checks arrays of a clustering before and after an update; earlier: the previous row of each row, or -1."""
    labels, distances = reference(points, after["centroids"])
    kept = earlier >= 0
    for name in ["centroids", "inertia_history"]:
        assert numpy.array_equal(after[name], before[name])
    for name in ["labels", "distances"]:
        assert numpy.array_equal(after[name][kept], before[name][earlier[kept]])
    assert numpy.array_equal(after["labels"][~kept], labels[~kept])
    assert numpy.allclose(after["distances"][~kept], distances[~kept], rtol=1e-6, atol=1e-9)
    k = len(after["centroids"])
    assert numpy.array_equal(after["sizes"], numpy.bincount(after["labels"], minlength=k))
    for i in range(k):
        members = numpy.flatnonzero(after["labels"] == i)
        order = members[numpy.lexsort((members, after["distances"][members]))][:3]
        assert after["nearest"][i].tolist() == order.tolist() + [-1] * (3 - len(order))
    assert attributes["fitted_rows"] == len(before["labels"])
    assert "purity" not in attributes and "folders" not in attributes


# --- clusterings ----------------------------------------------------------------------------------

@pytest.mark.deep
@pytest.mark.parametrize("metric", ["hellinger", "euclidean", "cosine"])
@pytest.mark.parametrize("k", [1, 3, 9])
def test_clusters_are_continued(place, metric, k):
    made()
    cluster("x.h5", "-k", k, "--metric", metric, cwd=place)
    before, old = stored("x.h5")
    said = ingest("p2")
    assert "clusters kmeans are continued: 9 new images" in said
    after, attributes = stored("x.h5")
    with h5py.File("x.h5") as file:
        points = space(file[f"features/{RGB}"][:], metric)
        earlier = file["runs/1/row_map"][:]
    assert earlier.tolist() == list(range(13)) + [-1] * 9
    check_continued(before, after, earlier, points, attributes)
    for name in ["inertia", "content", "parameters", "k", "seed", "iterations", "feature", "metric"]:
        assert attributes[name] == old[name]
    verify()
    # The labels are those that `assign` gives for all rows.
    ingest("p1", "p2", output="all.h5")
    made_again = place / "again.h5"
    ingest("p1", output=made_again)
    cluster(made_again, "-k", k, "--metric", metric, cwd=place)
    clpipe("assign", made_again, "all.h5")
    assigned, _ = stored("all.h5")
    for name in ["labels", "distances", "sizes"]:
        assert numpy.array_equal(assigned[name], after[name]), name


def test_added_removed_and_changed_rows(place):
    """One picture each: removed, added, with other bytes, and only touched."""
    made()
    cluster("x.h5", "-k", 3, cwd=place)
    before, _ = stored("x.h5")
    old = names()
    os.unlink("p1/green/04.png")
    shutil.copy("p2/blue/02.jpg", "p1/blue/new.jpg")
    shutil.copy("p1/blue/05.jpg", "p1/red/03.jpg")
    os.utime("p1/green/01.jpg", ns=(1, 1))
    said = ingest("p1")
    assert "kmeans are continued: 2 new images" in said and "gone" in said
    new = names()
    changed = ["red/03.jpg", "blue/new.jpg"]
    earlier = numpy.array([-1 if name in changed else old.index(name) for name in new])
    after, attributes = stored("x.h5")
    with h5py.File("x.h5") as file:
        assert file["runs/1/row_map"][:].tolist() == earlier.tolist()
        points = space(file[f"features/{RGB}"][:], "hellinger")
    check_continued(before, after, earlier, points, attributes)
    verify()
    # After a second update, fitted_rows is still that of the fit. If rows are only removed, none is labelled.
    os.unlink("p1/blue/new.jpg")
    assert "continued without rows that are gone" in ingest("p1")
    assert stored("x.h5")[1]["fitted_rows"] == 13 and len(stored("x.h5")[0]["labels"]) == 12
    verify()


def test_rows_in_another_order(place):
    """Nothing is added or removed, and there is no notice."""
    listed = sorted(str(path.relative_to(place)) for path in (place / "p1").rglob("*.[jp]*g"))
    (place / "list").write_text("\n".join(listed) + "\n")
    ingest("@list", "--feature=rgb:bins=8x8x8")
    cluster("x.h5", "-k", 3, cwd=place)
    clpipe("similar", "x.h5", "--all", "-n", 3)
    before, old = stored("x.h5")[0], names()
    (place / "list").write_text("\n".join(listed[::-1]) + "\n")
    said = ingest("@list")
    assert "gone" not in said and "leave out" not in said, said
    after, new = stored("x.h5")[0], names()
    assert new == old[::-1] and after["labels"].tolist() == before["labels"][::-1].tolist()
    verify()


@pytest.mark.deep
def test_joined_and_sweeps(place):
    made("rgb:bins=8x8x8", "hsv:bins=8x4x4")
    cluster("x.h5", "-k", 3, "--feature", "rgb_8x8x8+hsv_8x4x4:0.3", "--name", "joined", cwd=place)
    cluster("x.h5", "-k", "2:5", "--feature", RGB, "--name", "best", cwd=place)
    before, _ = stored("x.h5", "joined")
    with h5py.File("x.h5") as file:
        sweep = {key: file["clusters/best/sweep"][key][:] for key in file["clusters/best/sweep"]}
    ingest("p2")
    after, attributes = stored("x.h5", "joined")
    with h5py.File("x.h5") as file:
        rows = numpy.hstack([file[f"features/{RGB}"][:],
                             (file["features/hsv_8x4x4"][:].astype("f8") * 0.3).astype("f4")])
        for key, values in sweep.items():
            assert numpy.array_equal(file["clusters/best/sweep"][key][:], values, equal_nan=True)
    earlier = numpy.array(list(range(13)) + [-1] * 9)
    check_continued(before, after, earlier, space(rows, attributes["metric"]), attributes)
    verify()


@pytest.mark.deep
def test_weighted(place):
    """Labels do not need weights; weights of new rows are unknown."""
    made()
    numpy.save("w.npy", numpy.linspace(0.5, 2, 13).astype("f4"))
    cluster("x.h5", "-k", 3, "--weights", "w.npy", cwd=place)
    ingest("p2")
    with h5py.File("x.h5") as file:
        weights = file["clusters/kmeans/weights"][:]
        labels = file["clusters/kmeans/labels"][:]
    assert numpy.array_equal(weights[:13], numpy.load("w.npy")) and numpy.isnan(weights[13:]).all()
    assert (labels >= 0).all()
    verify()


def test_adding_a_feature_does_not_change_clusters(place):
    made()
    cluster("x.h5", "-k", 3, cwd=place)
    before, old = stored("x.h5")
    said = ingest("p1", "--feature", "gray", "--add")
    after, new = stored("x.h5")
    assert "continued" not in said and "fitted_rows" not in new and new == old
    assert all(numpy.array_equal(before[name], after[name]) for name in before)
    with h5py.File("x.h5") as file:
        assert "row_map" not in file["runs/1"]


@pytest.mark.deep
def test_cluster_after_an_update(place):
    """A continued clustering is not a fit of all rows, so repeating the command with --force fits again."""
    made()
    cluster("x.h5", "-k", 3, cwd=place)
    ingest("p2")
    refused = run_clpipe("cluster", "x.h5", "-k", 3)
    assert refused.returncode == 2 and "made from other rows" in refused.stderr
    cluster("x.h5", "-k", 3, "--force", cwd=place)
    assert "fitted_rows" not in stored("x.h5")[1]
    verify()
    result = run_clpipe("info", "x.h5")
    assert result.returncode == 0


# --- what was imported, neighbours ------------------------------------------------------------------

@pytest.mark.deep
def test_imported_features_and_neighbours(place):
    made()
    rows = numpy.random.default_rng(3).random((13, 5), dtype="f4")
    numpy.save("e.npy", rows)
    clpipe("import", "x.h5", "clip=e.npy")
    cluster("x.h5", "-k", 2, "--feature", "clip", "--name", "mine", cwd=place)
    clpipe("similar", "x.h5", "--all", "-n", 4, "--feature", RGB)
    with h5py.File("x.h5") as file:
        graph = file[f"neighbours/{RGB}/rows"][:]
        distances = file[f"neighbours/{RGB}/distances"][:]
        labels = file["clusters/mine/labels"][:]
    old = names()
    os.unlink("p1/blue/02.jpg")
    said = ingest("p1", "p2")
    assert "1 imported feature is NaN for 9 new images" in said
    assert "get the label -1" in said and "stored neighbours" in said
    kept = [old.index(name) for name in names()[:12]]
    with h5py.File("x.h5") as file:
        assert numpy.array_equal(file["features/clip"][:12], rows[kept])
        assert numpy.isnan(file["features/clip"][12:]).all() and len(file["features/clip"]) == 21
        assert file["features/clip"].attrs["kind"] == "imported"
        assert numpy.array_equal(file["clusters/mine/labels"][:12], labels[kept])
        assert (file["clusters/mine/labels"][12:] == -1).all()
        assert numpy.isnan(file["clusters/mine/distances"][12:]).all()
        assert file["clusters/mine/sizes"][:].sum() == 12
        now = {row: i for i, row in enumerate(kept)}
        for i, row in enumerate(kept):
            wanted = [(now[n], d) for n, d in zip(graph[row], distances[row]) if n in now]
            found = file[f"neighbours/{RGB}/rows"][i]
            assert found.tolist() == [n for n, _ in wanted] + [-1] * (4 - len(wanted))
            assert numpy.array_equal(file[f"neighbours/{RGB}/distances"][i][:len(wanted)],
                                     [d for _, d in wanted])
            assert numpy.isnan(file[f"neighbours/{RGB}/distances"][i][len(wanted):]).all()
        assert (file[f"neighbours/{RGB}/rows"][12:] == -1).all()
    verify()
    # Rows without a label are not a cluster in tables and folders.
    result = run_clpipe("export", "x.h5", "--what", "labels", "--name", "mine", "--format", "csv")
    assert result.returncode == 0 and result.stdout.count(",-1,") == 9
    result = run_clpipe("export", "x.h5", "--what", "tree", "--name", "mine", "--to", "tree")
    assert result.returncode == 0, result.stderr
    assert sum(len(files) for folder, _, files in os.walk("tree") if folder != "tree") == 12
    assert run_clpipe("info", "x.h5").returncode == 0
    # Without new images, none lacks values.
    os.unlink("p2/blue/02.jpg")
    said = ingest("p1", "p2")
    assert "clusters mine are continued without rows that are gone" in said and "-1" not in said


# --- what is not clpipe's ---------------------------------------------------------------------------

def add_foreign(path="x.h5"):
    with h5py.File(path, "a") as file:
        n = len(file["images/path"])
        file["embeddings/clip"] = numpy.arange(n * 4.0).reshape(n, 4)
        file["embeddings/clip"].attrs["model"] = "ViT"
        file["embeddings"].create_dataset("packed", data=numpy.arange(1000), chunks=(100,),
                                          compression="gzip")
        file["features/raw"] = numpy.ones((n, 2))
        file["texts"] = ["a", "bc"]
        file.attrs["note"] = "mine"
        file["images"].attrs["camera"] = 7
        file["elsewhere"] = h5py.SoftLink("/embeddings/clip")
        return n


def check_foreign(n, path="x.h5"):
    with h5py.File(path, "r") as file:
        assert numpy.array_equal(file["embeddings/clip"][:], numpy.arange(n * 4.0).reshape(n, 4))
        assert file["embeddings/clip"].attrs["model"] == "ViT"
        assert numpy.array_equal(file["embeddings/packed"][:], numpy.arange(1000))
        assert file["embeddings/packed"].compression == "gzip"
        assert file["features/raw"].shape == (n, 2)
        assert [text.decode() for text in file["texts"][:]] == ["a", "bc"]
        assert file.attrs["note"] == "mine" and file["images"].attrs["camera"] == 7
        assert file.get("elsewhere", getlink=True).path == "/embeddings/clip"


MOVED = "data of other programs in x.h5 is kept unchanged (4 objects, 2 attributes); rows have moved: " \
        "/runs/1/row_map"


@pytest.mark.parametrize("command, moved", [
    (["ingest", "p1", "p2", "-o", "x.h5"], True),
    (["ingest", "p1", "-o", "x.h5", "--feature", "gray", "--add"], False),
    (["ingest", "p2", "-o", "x.h5", "--drop-source", "p1"], True),
    (["run", "p2", "-o", "x.h5", "-k", "3"], True),
    (["cluster", "x.h5", "-k", "2", "--feature", RGB], False),
    (["import", "x.h5", "more=e.npy"], False),
    (["similar", "x.h5", "--all", "-n", "2"], False),
], ids=lambda value: " ".join(value) if isinstance(value, list) else "")
@pytest.mark.deep
def test_foreign_data_is_kept(place, command, moved):
    made()
    n = add_foreign()
    numpy.save("e.npy", numpy.ones((n, 3), dtype="f4"))
    said = clpipe(*command)
    check_foreign(n)
    verify()
    assert (MOVED in said) == moved and "could not be kept" not in said


@pytest.mark.deep
def test_foreign_attributes_are_kept(place):
    """Also for data that is moved with the rows: all attributes are kept and none is reported as lost."""
    made()
    numpy.save("e.npy", numpy.random.default_rng(3).random((13, 5), dtype="f4"))
    clpipe("import", "x.h5", "clip=e.npy")
    cluster("x.h5", "-k", 2, "--feature", "clip", cwd=place)
    clpipe("similar", "x.h5", "--all", "-n", 2, "--feature", "clip")
    objects = ["features/clip", "clusters/kmeans", "clusters/kmeans/labels", "neighbours/clip", "neighbours/clip/rows"]
    with h5py.File("x.h5", "a") as file:
        for name in objects:
            file[name].attrs.update({"made_by": "ViT", "version": 3, "pair": [1.5, 2.5]})
    os.unlink("p1/blue/02.jpg")
    said = ingest("p1")
    assert "(0 objects, 15 attributes)" in said and "could not be kept" not in said, said
    with h5py.File("x.h5") as file:
        for name in objects:
            found = file[name].attrs
            assert (found["made_by"], found["version"], found["pair"].tolist()) == ("ViT", 3, [1.5, 2.5]), name
    verify()


@pytest.mark.deep
def test_foreign_data_is_kept_by_fresh(place):
    made()
    n = add_foreign()
    cluster("x.h5", "-k", 2, "--feature", RGB, cwd=place)
    for words in ["select", "x.h5", 3], ["similar", "x.h5", "--all", "--feature", RGB]:
        assert run_clpipe(*words).returncode == 0
    os.unlink("p1/blue/02.jpg")
    old = 13
    said = ingest("p1", "--fresh")
    assert "clusters 'kmeans' are removed because the file is started over" in said
    for name in "neighbours/" + RGB, "selections/selection":
        assert f"{name} is removed because the file is started over" in said
    assert "/runs/0/row_map" in said and n == old
    check_foreign(n)
    with h5py.File("x.h5") as file:
        assert file["runs/0/row_map"][:].tolist() == [i for i in range(13) if i != 0]
    verify()


@pytest.mark.deep
def test_row_maps_are_kept(place):
    """Each run has its own map, which refers to the rows of the previous run."""
    made()
    with h5py.File("x.h5") as file:
        assert "row_map" not in file["runs/0"]
    first = names()
    os.unlink("p1/blue/05.jpg")
    ingest("p1")
    (place / "p1" / "a.png").write_bytes((place / "p2" / "red" / "00.png").read_bytes())
    ingest("p1")
    ingest("p1", "--feature", "gray", "--add")
    with h5py.File("x.h5") as file:
        maps = [file[f"runs/{i}/row_map"][:] for i in (1, 2)]
        assert "row_map" not in file["runs/3"]
    earlier = [maps[0][row] if row >= 0 else -1 for row in maps[1]]
    assert [first[row] if row >= 0 else None for row in earlier] == \
        [name if name in first else None for name in names()]
    with h5py.File("x.h5") as file:
        assert file["runs/1/row_map"].dtype == numpy.int64
    verify()


def test_repair_keeps_row_data(place):
    """After damage elsewhere, data of the remaining rows is kept."""
    made()
    rows = numpy.random.default_rng(3).random((13, 5), dtype="f4")
    numpy.save("e.npy", rows)
    clpipe("import", "x.h5", "clip=e.npy")
    n = add_foreign()
    with h5py.File("x.h5", "a") as file:
        file["images/width"][4] = 0
    assert run_clpipe("verify", "x.h5").returncode == 1
    clpipe("repair", "x.h5", code=run_clpipe("repair", "x.h5", "--dry-run").returncode)
    check_foreign(n)
    with h5py.File("x.h5") as file:
        left = [i for i in range(13) if i != 4]
        assert numpy.array_equal(file["features/clip"][:], rows[left])

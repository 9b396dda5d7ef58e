"""Labels for rows that are not images: .npy files and HDF5 files of other programs."""

import json

import h5py
import numpy
import pytest

from conftest import check_one_error, run_clpipe


@pytest.fixture(scope="module")
def made(tmp_path_factory, program):
    """A directory with c.h5, a clustering of rows.npy by cosine, and with new rows in new.npy and foreign.h5."""
    place = tmp_path_factory.mktemp("assign")
    random = numpy.random.default_rng(6)
    numpy.save(place / "rows.npy", random.normal(0, 1, (2000, 19)).astype("f4"))
    new = random.normal(0, 1, (1100, 19)).astype("f4")
    numpy.save(place / "new.npy", new)
    with h5py.File(place / "foreign.h5", "w") as file:
        file.create_dataset("of/them", data=new.astype("f8"), chunks=(100, 5), compression=1)
    result = run_clpipe("cluster", "rows.npy", "-k", 9, "--metric", "cosine", "-o", "c.h5",
                        cwd=place)
    assert result.returncode == 0, result.stderr
    return place


def labels_in(path, name="kmeans"):
    with h5py.File(path, "r") as file:
        group = file["clusters"][name]
        return {key: group[key][:] for key in group} | dict(group.attrs)


@pytest.mark.deep
@pytest.mark.parametrize("source, more", [
    ("new.npy", []), ("foreign.h5:/of/them", []),
    ("new.npy", ["--memory", "1M", "--device-memory", "100K", "--threads", "3"])])
def test_rows_that_are_not_images(made, tmp_path, source, more):
    result = run_clpipe("assign", made / "c.h5", made / source, "-o", "r.h5", "--json", "-", *more,
                        cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert (report["k"], report["n"], report["d"], report["output"]) == (9, 1100, 19, "r.h5")
    found = labels_in(tmp_path / "r.h5")
    rows = numpy.load(made / "new.npy").astype(float)
    rows /= numpy.linalg.norm(rows, axis=1, keepdims=True)
    centroids = labels_in(made / "c.h5")["centroids"]
    assert found["centroids"].tobytes() == centroids.tobytes()
    distances = ((rows[:, None] - centroids.astype(float)) ** 2).sum(2)
    assert numpy.array_equal(found["labels"], distances.argmin(1))
    assert numpy.allclose(found["distances"], distances.min(1), rtol=1e-5)
    assert found["inertia"] == pytest.approx(distances.min(1).sum(), rel=1e-6)
    assert numpy.array_equal(found["sizes"], numpy.bincount(found["labels"], minlength=9))
    assert run_clpipe("verify", "r.h5", cwd=tmp_path).returncode == 0
    # A second run finds the result.
    again = run_clpipe("assign", made / "c.h5", made / source, "-o", "r.h5", cwd=tmp_path)
    assert again.returncode == 0 and "up to date" in again.stdout
    # Other rows under that name need --force.
    other = ["assign", made / "c.h5", made / "rows.npy", "-o", "r.h5"]
    check_one_error(run_clpipe(*other, cwd=tmp_path), 2, "r.h5", "a different", "--force")
    assert run_clpipe(*other, "--force", cwd=tmp_path).returncode == 0
    assert numpy.array_equal(labels_in(tmp_path / "r.h5")["labels"],
                             labels_in(made / "c.h5")["labels"])


def test_labels_of_the_clustered_images_in_another_file(photos, tmp_path):
    """The labels of images can be written to another file too, which leaves the file of the images unchanged."""
    assert run_clpipe("run", "--no-report", photos, "-k", "3", "-o", "c.h5", cwd=tmp_path).returncode == 0
    before = (tmp_path / "c.h5").read_bytes()
    result = run_clpipe("assign", "c.h5", "c.h5", "-o", "apart.h5", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "c.h5").read_bytes() == before
    assert numpy.array_equal(labels_in(tmp_path / "apart.h5")["labels"],
                             labels_in(tmp_path / "c.h5")["labels"])


def test_refused(made, tmp_path, photos):
    numpy.save(tmp_path / "narrow.npy", numpy.ones((5, 18), "f4"))
    numpy.save(tmp_path / "nan.npy", numpy.full((5, 19), numpy.nan, "f4"))
    (tmp_path / "mine.txt").write_text("mine")
    assert run_clpipe("ingest", photos, "-o", "p.h5", cwd=tmp_path).returncode == 0
    for rows, more, code, said in [
            (made / "new.npy", [], 2, ["-o R.h5"]),
            ("narrow.npy", ["-o", "r.h5"], 3, ["18", "19"]),
            ("nan.npy", ["-o", "r.h5"], 3, ["row 0", "NaN"]),
            (made / "new.npy", ["-o", "mine.txt"], 3, ["mine.txt", "not an HDF5 file; name another output"]),
            (made / "new.npy", ["-o", "p.h5"], 2, ["holds other images"]),
            (made / "new.npy", ["-o", "r.h5", "--feature", "x"], 2, ["--feature"]),
            ("absent.npy", ["-o", "r.h5"], 2, ["no file absent.npy"])]:
        result = run_clpipe("assign", made / "c.h5", rows, *more, cwd=tmp_path)
        check_one_error(result, code, *said)
        assert not (tmp_path / "r.h5").exists()

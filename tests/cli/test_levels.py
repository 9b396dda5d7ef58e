"""Levels of clusters: each equals its definition in numpy, has the same bits however it is computed, and is kept by
commands that change the file."""

import json
import subprocess
import time

import h5py
import numpy
import pytest

from clusterings import cluster, stored
from conftest import CLPIPE, check_one_error, digest, draw_photos, run_clpipe
from test_cluster import check_consistent, distances_to, unit

EXACT = ("--device", "cpu", "--tol", 0)


@pytest.fixture(scope="module")
def place(tmp_path_factory, program):
    place = tmp_path_factory.mktemp("levels")
    random = numpy.random.default_rng(11)
    rows = random.normal(0, 4, (40, 20))[random.integers(0, 40, 3000)] + random.normal(0, 1, (3000, 20))
    numpy.save(place / "rows.npy", rows.astype("f4"))
    numpy.save(place / "weights.npy", random.uniform(0, 2, 3000).astype("f4"))
    numpy.save(place / "first.npy", rows[::50].astype("f4"))
    return place


def tree(path, name="kmeans"):
    """The arrays and attributes of each level, beginning with the finest."""
    levels = []
    while name:
        levels.append(stored(path, name))
        name = levels[-1][1].get("parent")
    return levels


def check_levels(levels, space):
    """Asserts that labels follow the parents, that the parents are the nearest centroids, and that each level is
    consistent."""
    for number, (arrays, attributes) in enumerate(levels, 1):
        check_consistent(arrays, attributes | {"inertia": arrays["distances"].astype(float).sum()}, space)
        assert attributes["level"] == number and ("parent" in attributes) == (number < len(levels))
        assert ("parents" in arrays) == (number < len(levels))
    for (fine, _), (coarse, _) in zip(levels, levels[1:]):
        assert fine["parents"].dtype == "int32"
        assert numpy.array_equal(fine["parents"],
                                 distances_to(fine["centroids"].astype(float), coarse["centroids"]).argmin(1))
        assert numpy.array_equal(coarse["labels"], fine["parents"][fine["labels"]])


def test_levels_match_numpy(place, tmp_path):
    """The finest level starts from given centroids. The centroids above are the means of the centroids below, each
    of which counts once."""
    rows = numpy.load(place / "rows.npy").astype(float)
    first = cluster(place / "rows.npy", "--levels", "60,12,4", "--init", place / "first.npy", *EXACT,
                     "-o", "x.h5", cwd=tmp_path)
    assert [(level["name"], level["k"]) for level in first["levels"]] == [
        ("kmeans", 60), ("kmeans-2", 12), ("kmeans-3", 4)]
    levels = tree(tmp_path / "x.h5")
    check_levels(levels, rows)
    below = rows
    for (arrays, attributes), report in zip(levels, first["levels"]):
        labels = arrays["labels"] if below is rows else finer["parents"]
        means = numpy.stack([below[labels == c].mean(0) for c in range(attributes["k"])])
        assert numpy.allclose(arrays["centroids"], means, atol=1e-5)
        assert attributes["inertia"] == report["inertia"] and attributes["converged"]
        finer, below = arrays, arrays["centroids"].astype(float)
    assert levels[0][1]["init"].startswith("given-") and levels[1][1]["init"] == "kmeans++"
    found = cluster(place / "rows.npy", "--levels", "60,12,4", "--init", place / "first.npy", *EXACT,
                    "-o", "x.h5", cwd=tmp_path)
    assert found["levels"] == first["levels"] and found["device"] is None
    assert run_clpipe("verify", "x.h5", cwd=tmp_path).returncode == 0


@pytest.mark.variations
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_split(tmp_path, metric):
    """Each cluster is clustered by itself, with at most as many centroids as it has distinct rows. Then all rows
    are assigned to the nearest of all centroids."""
    random = numpy.random.default_rng(3)
    rows = random.normal(0, 9, (4, 12))[random.integers(0, 4, 600)] + random.normal(0, 1, (600, 12))
    rows = numpy.concatenate([rows, numpy.tile(random.normal(60, 1, (3, 12)), (40, 1)), 0 * rows[:1] - 70])
    rows = numpy.concatenate([rows, 2 * rows[600:603]]).astype("f4")  # equal to other rows under cosine
    numpy.save(tmp_path / "rows.npy", rows)
    options = ("--metric", metric, "--seed", 4, "--device", "cpu", "--init", "kmeans-parallel")
    cluster("rows.npy", "--split", "5x8", *options, "-o", "x.h5", cwd=tmp_path)
    cluster("rows.npy", "-k", 5, *options, "-o", "coarse.h5", cwd=tmp_path)
    whole, (fine, about), (coarse, above) = stored(tmp_path / "coarse.h5")[0], *tree(tmp_path / "x.h5")
    centroids, parents, histories, fewer = [], [], [], 0
    for part in range(5):
        own = rows[whole["labels"] == part]
        space = unit(own.astype(float)).astype("f4") if metric == "cosine" else own
        k = min(8, len(numpy.unique(space, axis=0)))
        fewer += k < 8
        numpy.save(tmp_path / "own.npy", own)
        cluster("own.npy", "-k", k, *options[:-2], "-o", "own.h5", "--force", cwd=tmp_path)
        alone = stored(tmp_path / "own.h5")[0]
        centroids.append(alone["centroids"])
        parents += [part] * k
        histories.append(alone.get("inertia_history", []))
    assert fewer and about["k"] == len(parents) and above["k"] == 5
    assert numpy.array_equal(fine["centroids"], numpy.concatenate(centroids))
    assert numpy.array_equal(fine["parents"], parents) and about["parent"] == "kmeans-2"
    wanted = sum(numpy.pad(one, (0, about["iterations"] - len(one)), "edge") for one in histories)
    assert numpy.allclose(fine["inertia_history"], wanted, rtol=1e-12)
    space = unit(rows.astype(float)) if metric == "cosine" else rows.astype(float)
    check_consistent(fine, about, space)
    assert numpy.array_equal(coarse["centroids"], whole["centroids"])
    assert numpy.array_equal(coarse["labels"], fine["parents"][fine["labels"]])
    assert numpy.array_equal(coarse["inertia_history"], whole["inertia_history"])
    assert run_clpipe("verify", "x.h5", cwd=tmp_path).returncode == 0


def test_a_part_that_fails_ends_the_run(tmp_path):
    """The device's queues for the parts cannot be created."""
    library = CLPIPE.parent / "tests" / "faults.so"
    if not library.exists():
        pytest.skip(f"{library} is not built")
    numpy.save(tmp_path / "rows.npy", numpy.random.default_rng(3).normal(size=(300, 12)).astype("f4"))
    command = ["cluster", "rows.npy", "--split", "3x4", "--device", "cpu", "--threads", 1, "-q", "-o", "x.h5"]
    result = run_clpipe(*command, cwd=tmp_path, env={"LD_PRELOAD": library, "CLPIPE_FAULT": "queue * 6+ -6"})
    check_one_error(result, 3, "CL_OUT_OF_HOST_MEMORY")
    assert not (tmp_path / "x.h5").exists()


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_a_level_is_a_clustering_of_the_centroids_below(place, tmp_path, metric):
    options = ("--metric", metric, "--n-init", 2, "--seed", 5, "--device", "cpu")
    cluster(place / "rows.npy", "--levels", "30,7", *options, "-o", "x.h5", cwd=tmp_path)
    cluster(place / "rows.npy", "-k", 30, *options, "-o", "one.h5", cwd=tmp_path)
    (fine, _), (coarse, attributes) = tree(tmp_path / "x.h5")
    rows = numpy.load(place / "rows.npy").astype(float)
    check_levels(tree(tmp_path / "x.h5"), unit(rows) if metric == "cosine" else rows)
    alone = stored(tmp_path / "one.h5")[0]
    assert all(numpy.array_equal(fine[key], alone[key]) for key in alone)
    numpy.save(tmp_path / "centroids.npy", fine["centroids"])
    cluster("centroids.npy", "-k", 7, *options, "-o", "two.h5", cwd=tmp_path)
    alone, of_alone = stored(tmp_path / "two.h5")
    assert numpy.array_equal(coarse["centroids"], alone["centroids"])
    assert numpy.array_equal(fine["parents"], alone["labels"])
    assert numpy.array_equal(coarse["inertia_history"], alone["inertia_history"])
    assert attributes["metric"] == metric and attributes["iterations"] == of_alone["iterations"]


@pytest.mark.deep
def test_opposite_rows_under_cosine(tmp_path):
    """A mean of zero cannot be a centroid, so the earlier centroid is kept and has a direction at every level."""
    rows = numpy.concatenate([numpy.eye(8), -numpy.eye(8)]).astype("f4")
    numpy.save(tmp_path / "rows.npy", rows)
    numpy.save(tmp_path / "first.npy", rows[:3] + 1)
    for options in ["--init", "first.npy"], ["--seed", 1], ["--seed", 2, "--resample", "2:2"]:
        cluster("rows.npy", "--levels", "3,2", "--metric", "cosine", "--device", "cpu", *options, "-o", "x.h5",
                "--force", cwd=tmp_path)
        check_levels(tree(tmp_path / "x.h5"), rows.astype(float))
        assert all(arrays["centroids"].any(1).all() for arrays, _ in tree(tmp_path / "x.h5"))


def test_weights_apply_to_rows(place, tmp_path):
    cluster(place / "rows.npy", "--levels", "20,5", "--weights", place / "weights.npy", *EXACT, "-o", "x.h5",
            cwd=tmp_path)
    (fine, _), (coarse, attributes) = tree(tmp_path / "x.h5")
    weights = numpy.load(place / "weights.npy").astype(float)
    assert "weights" in fine and "weights" not in coarse
    means = numpy.stack([fine["centroids"][fine["parents"] == c].astype(float).mean(0) for c in range(5)])
    assert numpy.allclose(coarse["centroids"], means, atol=1e-5)
    assert attributes["inertia"] == pytest.approx((weights * coarse["distances"]).sum(), rel=1e-6)


WAYS = {"plain": ("--levels", "60,12,4"), "cosine": ("--levels", "40,6", "--metric", "cosine", "--n-init", 2),
        "split": ("--split", "12x9", "--weights", "weights.npy", "--metric", "cosine"),
        "resampled": ("--levels", "60,12", "--resample", "5:3", "--weights", "weights.npy")}


@pytest.fixture(scope="module", params=WAYS)
def way(request, place):
    arguments = ("cluster", "rows.npy", *WAYS[request.param], "--device", "cpu", "-q")
    output = f"{request.param}.h5"
    result = run_clpipe(*arguments, "-o", output, cwd=place)
    assert result.returncode == 0, result.stderr
    return place, arguments, digest(place / output)


@pytest.mark.variations
@pytest.mark.parametrize("options", [("--threads", 1), ("--threads", 7), ("--memory", "1M"),
                                     ("--memory", "1M", "--device-memory", "64K", "--threads", 2)],
                         ids=lambda options: " ".join(map(str, options)))
def test_same_bits(way, options):
    place, arguments, wanted = way
    result = run_clpipe(*arguments, "-o", "other.h5", "--force", *options, cwd=place)
    assert result.returncode == 0, result.stderr
    assert digest(place / "other.h5") == wanted
    (place / "other.h5").unlink()


@pytest.mark.variations
def test_killed(way):
    """The run is killed at various times; whichever checkpoint is resumed, the result is the same."""
    place, arguments, wanted = way
    output, state = place / "killed.h5", place / "killed.h5.kmeans.checkpoint"
    command = [CLPIPE, *map(str, arguments), "-o", "killed.h5", "--checkpoint", "0.0001", "--threads", "1"]
    taken = 0
    for wait in range(12):
        process = subprocess.Popen(command, cwd=place, stderr=subprocess.DEVNULL)
        while process.poll() is None and not state.exists():
            time.sleep(0.001)
        time.sleep(0.004 * wait)
        process.kill()
        taken += process.wait() != 0 and state.exists()
    result = subprocess.run([part for part in command if part != "-q"], cwd=place, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert taken == 0 or output.exists()
    assert digest(output) == wanted
    assert not state.exists()
    output.unlink()


# --- in a file of images --------------------------------------------------------------------------

@pytest.fixture
def file(program, tmp_path):
    draw_photos(tmp_path / "photos", 24)
    for words in (["ingest", "photos", "-o", "f.h5", "--device", "cpu", "-q"],
                  ["cluster", "f.h5", "--levels", "8,3,2", "--device", "cpu", "-q"]):
        result = run_clpipe(*words, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
    return tmp_path / "f.h5"


@pytest.mark.deep
def test_update_labels_new_rows_at_every_level(file, tmp_path):
    before = tree(file)
    for i in range(3):
        source = sorted((tmp_path / "photos" / "red").iterdir())[i]
        (tmp_path / "photos" / f"new {i}{source.suffix}").write_bytes(source.read_bytes())
    gone = tmp_path / "photos" / "green" / "01.jpg"
    gone.unlink()
    result = run_clpipe("ingest", "photos", "-o", "f.h5", "--device", "cpu", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    levels = tree(file)
    with h5py.File(file) as f:
        rows = f["features/" + levels[0][1]["feature"]][:].astype(float)
        paths = [path.decode() for path in f["images/path"]]
    assert len(levels) == 3 and len(paths) == len(before[0][0]["labels"]) + 2
    for (arrays, attributes), (old, _) in zip(levels, before):
        assert numpy.array_equal(arrays["centroids"], old["centroids"])
        assert (arrays["labels"] >= 0).all() and (arrays["sizes"] == numpy.bincount(
            arrays["labels"], minlength=attributes["k"])).all()
        new, same = paths.index("new 1.jpg"), paths.index("red/03.jpg")
        assert arrays["labels"][new] == arrays["labels"][same]
        assert arrays["distances"][new] == arrays["distances"][same]
    for (fine, _), (coarse, _) in zip(levels, levels[1:]):
        assert numpy.array_equal(coarse["labels"], fine["parents"][fine["labels"]])
    assert rows.shape[0] == len(paths)
    assert run_clpipe("verify", "f.h5", cwd=tmp_path).returncode == 0


def test_assign_labels_at_every_level(place, file, tmp_path):
    cluster(place / "rows.npy", "--levels", "20,6,2", "--device", "cpu", "-o", "x.h5", cwd=tmp_path)
    numpy.save(tmp_path / "few.npy", numpy.load(place / "rows.npy")[:200])
    reports = []
    for _ in range(2):
        result = run_clpipe("assign", "x.h5", "few.npy", "--name", "kmeans", "-o", "few.h5", "--json", "r.json",
                            "--device", "cpu", cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        reports.append(json.loads((tmp_path / "r.json").read_text())["levels"])
    assert reports[0] == reports[1] and [level["k"] for level in reports[0]] == [20, 6, 2]
    assert len(tree(tmp_path / "few.h5")) == 3
    for (new, of_new), (old, of_old) in zip(tree(tmp_path / "few.h5"), tree(tmp_path / "x.h5")):
        assert numpy.array_equal(new["labels"], old["labels"][:200])
        assert numpy.array_equal(new["distances"], old["distances"][:200])
        assert (new["sizes"] == numpy.bincount(new["labels"], minlength=of_new["k"])).all()
        assert numpy.array_equal(new.get("parents"), old.get("parents"))
        assert of_new["level"] == of_old["level"] and of_new.get("parent") == of_old.get("parent")
        assert of_new["inertia"] == pytest.approx(new["distances"].astype(float).sum())
    assert run_clpipe("verify", "few.h5", cwd=tmp_path).returncode == 0
    before = tree(file)
    result = run_clpipe("assign", "f.h5", "f.h5", "--name", "kmeans", "--force", "-o", "own.h5", "--device",
                        "cpu", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert all(numpy.array_equal(new["labels"], old["labels"])
               for (new, _), (old, _) in zip(tree(tmp_path / "own.h5"), before))


def test_levels_in_other_commands(file, tmp_path):
    """Commands that need one clustering use the finest level; select uses all levels."""
    result = run_clpipe("select", "f.h5", 9, "--name", "few", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    (fine, _), (_, _), (coarse, _) = tree(file)
    with h5py.File(file) as f:
        rows = f["selections/few/rows"][:]
    taken, there = (numpy.bincount(labels, minlength=2) for labels in (coarse["labels"][rows], coarse["labels"]))
    assert taken.sum() == 9 and (abs(taken[0] - taken[1]) <= 1 or (taken == there).any())
    assert run_clpipe("info", "f.h5", "--json", "x.json", cwd=tmp_path).returncode == 0
    shown = json.loads((tmp_path / "x.json").read_text())["clusters"]
    assert [(c["name"], c["level"], c["parent"]) for c in shown] == [
        ("kmeans", 1, "kmeans-2"), ("kmeans-2", 2, "kmeans-3"), ("kmeans-3", 3, None)]
    assert "level 3, the coarsest" in run_clpipe("info", "f.h5", cwd=tmp_path).stdout
    few = run_clpipe("cluster", "f.h5", "--levels", "3,1", "--name", "few", "-o", "few.h5", cwd=tmp_path)
    assert few.returncode == 0 and " 1 cluster in /clusters/few-2: " in few.stdout, few


@pytest.mark.deep
def test_levels_are_changed_together(file, tmp_path):
    check_one_error(run_clpipe("cluster", "f.h5", "-k", 2, "--name", "kmeans-2", "--force", cwd=tmp_path), 2,
                    "/clusters/kmeans-2", "is a level of /clusters/kmeans")
    result = run_clpipe("cluster", "f.h5", "-k", 2, "--name", "other-2", "--device", "cpu", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    check_one_error(run_clpipe("cluster", "f.h5", "--levels", "6,2", "--name", "other", "--force", cwd=tmp_path), 2,
                    "a level of /clusters/other takes the name of /clusters/other-2", "--name")
    result = run_clpipe("remove", "f.h5", "other-2", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    result = run_clpipe("rename", "f.h5", "kmeans-2", "middle", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert stored(file)[1]["parent"] == "middle" and len(tree(file)) == 3
    assert run_clpipe("verify", "f.h5", cwd=tmp_path).returncode == 0
    result = run_clpipe("cluster", "f.h5", "--levels", "6,2", "--force", "--device", "cpu", "-q", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    with h5py.File(file) as f:
        assert sorted(f["clusters"]) == ["kmeans", "kmeans-2"]
    result = run_clpipe("remove", "f.h5", "kmeans-2", cwd=tmp_path)
    assert result.returncode == 0 and "removed clusters/kmeans " in result.stdout, result
    with h5py.File(file) as f:
        assert "clusters" not in f


@pytest.mark.deep
def test_run_and_merge_make_no_levels(file, tmp_path):
    """run refuses the option; merge reports that it leaves levels out."""
    check_one_error(run_clpipe("run", "photos", "--levels", "3,2", "-o", "r.h5", cwd=tmp_path), 2,
                    "--levels is an option of clpipe cluster")
    draw_photos(tmp_path / "others")
    assert run_clpipe("ingest", "others", "-o", "o.h5", cwd=tmp_path).returncode == 0
    result = run_clpipe("merge", "f.h5", "o.h5", "-o", "m.h5", cwd=tmp_path)
    assert result.returncode == 0 and "clusterings" in result.stderr and "not merged" in result.stderr, result
    with h5py.File(tmp_path / "m.h5") as merged:
        assert "clusters" not in merged


def test_parents_are_verified(file, tmp_path):
    with h5py.File(file, "r+") as f:
        f["clusters/kmeans/parents"][1] = 3
    result = run_clpipe("verify", "f.h5", cwd=tmp_path)
    assert result.returncode == 1
    assert "/clusters/kmeans/parents: something in rows" in result.stdout
    assert "/clusters/kmeans/parents names a cluster that does not exist" in result.stdout


@pytest.mark.parametrize("words, says", [
    (["-k", 3, "--levels", "4,2"], "exclude each other"), (["--levels", "4,4"], "fewer clusters"),
    (["--levels", "4,"], "numbers of clusters"), (["--levels", ","], "numbers of clusters"),
    (["--levels", "0"], "numbers of clusters"), (["--levels", "20,10,9,8,7,6,5,4,3,2"], "at most 9"),
    (["-k", "2:4", "--resample", "3:2"], "single k"), (["-k", 4, "--resample", "3"], "like 20:10"),
    (["--split", "4"], "like 100x100"), (["--split", "4x1"], "like 100x100"), (["--split", "4x3x2"], "like 100x100"),
    (["--split", "99999x99999"], "like 100x100"), (["--split", "4x3", "-k", 3], "exclude each other"),
    (["--split", "4x3", "--resample", "2:2"], "exclude each other"),
    ([], "give -k K, --levels or --split")])
def test_wrong_options(place, words, says):
    check_one_error(run_clpipe("cluster", "rows.npy", *words, "-o", "wrong.h5", cwd=place), 2, says)


@pytest.mark.deep
def test_resampled(place, tmp_path):
    """The N rows nearest to each centroid are clustered with the next seed, and all rows are assigned to the
    resulting centroids."""
    rows = numpy.load(place / "rows.npy")
    options = ("--seed", 3, "--device", "cpu")
    cluster(place / "rows.npy", "--levels", "30,5", "--resample", "4:2", *options, "-o", "x.h5", cwd=tmp_path)
    cluster(place / "rows.npy", "-k", 30, *options, "-o", "r0.h5", cwd=tmp_path)
    for r in 1, 2:
        before = stored(tmp_path / f"r{r - 1}.h5")[0]
        few = [row for c in range(30) for row in sorted(
            numpy.flatnonzero(before["labels"] == c), key=lambda row: (before["distances"][row], row))[:4]]
        numpy.save(tmp_path / "few.npy", rows[sorted(few)])
        cluster("few.npy", "-k", 30, "--seed", 3 + r, "--device", "cpu", "-o", f"few{r}.h5", cwd=tmp_path)
        result = run_clpipe("assign", f"few{r}.h5", place / "rows.npy", "-o", f"r{r}.h5", cwd=tmp_path)
        assert result.returncode == 0, result.stderr
    wanted, (fine, attributes) = stored(tmp_path / "r2.h5")[0], tree(tmp_path / "x.h5")[0]
    assert all(numpy.array_equal(fine[key], wanted[key]) for key in ("centroids", "labels", "distances", "sizes"))
    rounds = [stored(tmp_path / name)[0]["inertia_history"] for name in ("r0.h5", "few1.h5", "few2.h5")]
    assert numpy.array_equal(fine["inertia_history"], numpy.concatenate(rounds))
    assert attributes["iterations"] == sum(map(len, rounds))
    check_levels(tree(tmp_path / "x.h5"), rows.astype(float))

"""clpipe evaluate: with classes from folders or tables, the measures equal those of numpy and scikit-learn."""

import csv
import json

import h5py
import numpy
import pytest

from conftest import check_one_error, run_clpipe
from test_similar import diffusion, expanded, space

FEATURE = "rgb_8x8x8"


def measures(points, classes, diffuse=False):
    """Retrieval measures as defined in docs/search.md. `classes` holds the class of each row, or None."""
    scores = diffusion(points, points, range(len(points)))[0] if diffuse else None
    ap, hits, first = [], [], {}
    rows = [i for i, c in enumerate(classes) if c is not None]
    for i in rows:
        others = [r for r in rows if r != i]
        d = ((points[others] - points[i]) ** 2).sum(axis=1)
        first_key = -scores[i][others] if diffuse else d
        ranking = [others[r] for r in numpy.lexsort((others, d, first_key))]
        ranks = [1 + r for r, row in enumerate(ranking) if classes[row] == classes[i]]
        if not ranks:
            continue
        precisions = [(k + 1) / rank for k, rank in enumerate(ranks)]
        ap.append(numpy.mean(precisions))
        hits.append([sum(rank <= n for rank in ranks) / n for n in (1, 5, 10)])
        among_ten = [p for p, rank in zip(precisions, ranks) if rank <= 10]
        first.setdefault(classes[i], []).append(numpy.mean(among_ten) if among_ten else 0)
    return dict(zip(("precision_at_1", "precision_at_5", "precision_at_10"), numpy.mean(hits, axis=0)),
                queries=len(ap), map=numpy.mean(ap),
                mmap_at_10=numpy.mean([numpy.mean(values) for values in first.values()]))


def evaluate(*args):
    result = run_clpipe("evaluate", *args, "--json", "-")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def read(path):
    with h5py.File(path) as f:
        return ({name: f["features"][name][:] for name in f["features"]},
                [p.decode() for p in f["images/path"][:]], f["clusters/kmeans/labels"][:])


def folder(path):
    return path.rsplit("/", 1)[0]


def test_folders_are_classes(finished):
    features, paths, labels = read(finished)
    classes = [folder(p) for p in paths]
    found = evaluate(finished)
    assert (found["classes"], found["images"], found["images_left_out"]) == (3, 13, 0)
    assert [(f["feature"], f["metric"]) for f in found["features"]] == [
        ("counts", "euclidean"), (FEATURE, "hellinger")]
    for one in found["features"]:
        wanted = measures(space(features[one["feature"]], one["metric"]), classes)
        assert {key: one[key] for key in wanted} == pytest.approx(wanted, abs=1e-12)
    [clusters] = found["clusterings"]
    metrics = pytest.importorskip("sklearn.metrics")
    table = metrics.cluster.contingency_matrix(classes, labels)
    assert clusters["name"] == "kmeans" and clusters["k"] == 3
    assert clusters["purity"] == pytest.approx(table.max(axis=0).sum() / len(paths), abs=1e-12)
    assert clusters["nmi"] == pytest.approx(
        metrics.normalized_mutual_info_score(classes, labels), abs=1e-12)
    assert clusters["ari"] == pytest.approx(metrics.adjusted_rand_score(classes, labels), abs=1e-12)


def test_columns_are_below_their_titles(finished):
    join = f"{FEATURE}+counts"
    for features in ("counts",), (FEATURE, "counts"), ("counts", join):
        told = run_clpipe("evaluate", finished, *(word for name in features for word in ("--feature", name)))
        head, *rows = [line for line in told.stdout.splitlines() if line.startswith(("feature ", *features))]
        assert [row.split()[0] for row in rows] == list(features)
        start = max(map(len, ("feature", *features)))
        for row in rows:
            assert row[:start].rstrip() == row.split()[0] and len(row) == len(head)
            assert head.index("metric") == row.index(row.split()[2]) == start + 10


def test_features_joins_and_metrics(finished):
    features, paths, _ = read(finished)
    classes = [folder(p) for p in paths]
    join = f"{FEATURE}+counts:0.001"
    found = evaluate(finished, "--feature", "counts", "--feature", join, "--metric", "cosine",
                     "--metric", "hellinger", "--threads", 1)
    rows = {"counts": features["counts"],
            join: numpy.hstack([features[FEATURE], (features["counts"] * 0.001).astype("f4")])}
    assert [(f["feature"], f["metric"], f["values"]) for f in found["features"]] == [
        (name, metric, rows[name].shape[1])
        for name in ("counts", join) for metric in ("cosine", "hellinger")]
    for one in found["features"]:
        wanted = measures(space(rows[one["feature"]], one["metric"]), classes)
        assert {key: one[key] for key in wanted} == pytest.approx(wanted, abs=1e-12)


def test_table_of_classes(finished, tmp_path):
    features, paths, labels = read(finished)
    # Three images have no class: one is not listed, and two have an empty class.
    classes = [None if i in (0, 5, 9) else f"class, {i % 4}" for i in range(len(paths))]
    table = tmp_path / "classes.csv"
    with open(table, "w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["number", "class", "path"])
        lines.writerows([i, classes[i] or "", p] for i, p in enumerate(paths) if i != 5)
        lines.writerow([99, "class, 1", "no/such image.jpg"])
    result = run_clpipe("evaluate", finished, "--classes", table, "--feature", FEATURE)
    assert result.returncode == 0
    assert "1 path that belongs to no image: no/such image.jpg" in result.stderr
    assert "10 images in 4 classes of" in result.stdout and "3 without a class" in result.stdout
    found = evaluate(finished, "--classes", table, "--feature", FEATURE)
    [one] = found["features"]
    wanted = measures(space(features[FEATURE], "hellinger"), classes)
    assert {key: one[key] for key in wanted} == pytest.approx(wanted, abs=1e-12)
    kept = [i for i, c in enumerate(classes) if c]
    metrics = pytest.importorskip("sklearn.metrics")
    assert found["clusterings"][0]["nmi"] == pytest.approx(metrics.normalized_mutual_info_score(
        [classes[i] for i in kept], [labels[i] for i in kept]), abs=1e-12)
    # Without a header line, the first two columns are path and class.
    table.write_text("".join(f'"{p}",{c}\r\n' for p, c in zip(paths, classes) if c).replace("class, ", ""))
    assert evaluate(finished, "--classes", table, "--feature", FEATURE)["features"][0]["map"] == one["map"]


def test_diffusion(finished, tmp_path):
    """An image without a class is in the graph but not in the rankings."""
    features, paths, _ = read(finished)
    table = tmp_path / "classes.csv"
    classes = [folder(p) if i != 4 else None for i, p in enumerate(paths)]
    table.write_text("path,class\n" + "".join(f"{p},{c}\n" for p, c in zip(paths, classes) if c))
    found = evaluate(finished, "--classes", table, "--diffuse", "--metric", "hellinger")
    for one in found["features"]:
        wanted = measures(space(features[one["feature"]], "hellinger"), classes, diffuse=True)
        assert {key: one[key] for key in wanted} == pytest.approx(wanted, abs=1e-12)
    assert found["features"] == [{**one, "seconds": two["seconds"]} for one, two in zip(
        evaluate(finished, "--classes", table, "--diffuse", "--metric", "hellinger", "--threads", 1,
                 "--memory", "1M")["features"], found["features"])]


def test_expansion(finished):
    features, paths, _ = read(finished)
    found = evaluate(finished, "--expand", 2, "--metric", "cosine")
    for one in found["features"]:
        points = space(features[one["feature"]], "cosine")
        wanted = measures(expanded(points, points, range(13), 2), [folder(p) for p in paths])
        assert one["expand"] == 2
        assert {key: one[key] for key in wanted} == pytest.approx(wanted, abs=1e-12)


def test_refusals(finished, tmp_path):
    def refused(code, *args, say):
        check_one_error(run_clpipe("evaluate", *args), code, *say)
    table = tmp_path / "c.csv"
    refused(2, finished, "--metric", "manhattan", say=["manhattan", "see clpipe evaluate --help"])
    refused(2, finished, "--feature", "nothing", say=["nothing"])
    refused(2, finished, "--expand", 2, "--diffuse", say=["not both"])
    refused(2, finished, "--name", "nothing", say=["nothing"])
    refused(2, finished, "--classes", table, say=[table])
    for text, say in (("", "line 1"), ("path\na.jpg\n", "line 1 has no path and class"),
                      ('"a.jpg,b\n', "quoted field that does not end"), ('"a"b,c\n', "after a quoted"),
                      ("a.jpg,x\n", "")):
        table.write_text(text)
        refused(3, finished, "--classes", table, say=[table, say])
    _, paths, _ = read(finished)
    table.write_text("".join(f"{p},same\n" for p in paths))
    refused(3, finished, "--classes", table, say=["all images the same class"])


def test_one_folder_gives_no_classes(photos, tmp_path):
    result = run_clpipe("ingest", photos / "red", "-o", tmp_path / "red.h5")
    assert result.returncode == 0
    check_one_error(run_clpipe("evaluate", tmp_path / "red.h5"), 3, "--classes FILE.csv")

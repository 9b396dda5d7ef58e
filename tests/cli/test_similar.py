"""clpipe similar: neighbours of images and of other pictures compared with numpy; stored neighbours; refused
requests."""

import csv
import io
import json
import os
import shutil

import h5py
import numpy
import pytest

from conftest import check_one_error, run_clpipe

FEATURE = "rgb_8x8x8"
COLUMNS = ["query", "rank", "row", "path", "distance", "squared_distance"]


@pytest.fixture
def file(finished, tmp_path):
    """A file of thirteen images with two features, which tests may change."""
    return shutil.copy(finished, tmp_path / "photos.h5")


def space(rows, metric):
    """Rows in the metric's space, rounded to float32."""
    rows = rows.astype("f8")
    if metric == "hellinger":
        rows = numpy.sqrt(rows)
    if metric == "cosine":
        rows = rows / numpy.sqrt((rows * rows).sum(axis=1, keepdims=True))
    return rows.astype("f4").astype("f8")


def nearest(points, queries, own, n):
    """Rows and squared distances, with -1 and NaN if there are fewer; ties go to the lowest row."""
    rows = numpy.full((len(queries), n), -1)
    squared = numpy.full((len(queries), n), numpy.nan)
    for i, query in enumerate(queries):
        d = ((points - query) ** 2).sum(axis=1)
        order = [r for r in numpy.lexsort((numpy.arange(len(d)), d)) if r != own[i]][:n]
        rows[i, :len(order)] = order
        squared[i, :len(order)] = d[order]
    return rows, squared


def read(path, feature=FEATURE):
    with h5py.File(path) as f:
        return f[f"features/{feature}"][:], [os.fsdecode(p) for p in f["images/path"][:]]


def table(text, separator=","):
    lines = list(csv.reader(io.StringIO(text), delimiter=separator))
    assert lines[0] == COLUMNS
    return lines[1:]


def check_table(lines, names, rows, squared, paths):
    n = rows.shape[1]
    assert len(lines) == len(names) * n
    for i, (query, rank, row, path, distance, square) in enumerate(lines):
        at = i // n, i % n
        assert (query, int(rank), int(row)) == (names[at[0]], at[1] + 1, rows[at])
        if rows[at] < 0:
            assert (path, distance, square) == ("", "", "")
            continue
        assert path == paths[rows[at]]
        assert float(square) == pytest.approx(squared[at], rel=1e-6, abs=1e-12)
        assert float(distance) == pytest.approx(numpy.sqrt(squared[at]), rel=1e-6, abs=1e-9)


# --- images of the file ----------------------------------------------------------------------------

@pytest.mark.parametrize("feature,metric", [(FEATURE, None), (FEATURE, "euclidean"),
                                            (FEATURE, "cosine"), ("counts", None)])
def test_rows_and_paths(clpipe, file, mixed, feature, metric):
    values, paths = read(file, feature)
    names = ["row:3", paths[0], str(mixed / paths[7]), f"./{paths[5]}"]
    own = [3, 0, 7, 5]
    result = clpipe("similar", file, *names, "-n", 4, "--feature", feature,
                    *(["--metric", metric] if metric else []))
    assert (result.returncode, result.stderr) == (0, "")
    points = space(values, metric or ("hellinger" if feature == FEATURE else "euclidean"))
    check_table(table(result.stdout), names, *nearest(points, points[own], own, 4), paths)


def test_fewer_than_asked_for(clpipe, file):
    values, paths = read(file)
    points = space(values, "hellinger")
    result = clpipe("similar", file, "row:0", "-n", 20, "--feature", FEATURE)
    assert result.returncode == 0
    check_table(table(result.stdout), ["row:0"], *nearest(points, points[:1], [0], 20), paths)


def test_equal_pictures_come_first_but_not_the_row_itself(clpipe, file):
    paths = read(file)[1]
    row, copy = paths.index("red/00.png"), paths.index("red/copy of 00.png")
    lines = table(clpipe("similar", file, f"row:{row}", "--feature", FEATURE, "-n", 12).stdout)
    assert (int(lines[0][2]), float(lines[0][5])) == (copy, 0)
    assert row not in [int(line[2]) for line in lines]


def test_formats(clpipe, file, tmp_path):
    values, paths = read(file)
    points = space(values, "hellinger")
    rows, squared = nearest(points, points[:2], [0, 1], 3)
    common = ["similar", file, "row:0", "row:1", "-n", 3, "--feature", FEATURE]
    check_table(table(clpipe(*common, "--format", "tsv").stdout, "\t"), ["row:0", "row:1"], rows,
                squared, paths)
    lines = [json.loads(line) for line in
             clpipe(*common, "--format", "jsonl").stdout.splitlines()]
    assert [list(line) for line in lines] == [COLUMNS] * 6
    assert [line["row"] for line in lines] == rows.ravel().tolist()
    assert clpipe(*common, "-o", "a.npy").returncode == 0
    assert (numpy.load(tmp_path / "a.npy") == rows).all()
    check_one_error(clpipe(*common, "-o", "a.npy"), 3, "a.npy exists", "--force")
    assert clpipe(*common, "-o", "a.npy", "--force").returncode == 0
    report = json.loads(clpipe(*common, "--json", "-").stdout)
    assert (report["feature"], report["metric"], report["n"]) == (FEATURE, "hellinger", 3)
    assert [one["row"] for one in report["neighbours"]] == rows.ravel().tolist()


# --- other pictures --------------------------------------------------------------------------------

def test_pictures_that_are_not_in_the_file(clpipe, file, mixed, tmp_path):
    """A copy elsewhere has the same features as the original, which is therefore at distance 0."""
    values, paths = read(file)
    points = space(values, "hellinger")
    (tmp_path / "@odd").mkdir()
    names = [str(tmp_path / "one.jpg"), "@odd/two.png", "row:2"]
    shutil.copy(mixed / "green" / "01.jpg", names[0])
    shutil.copy(mixed / "blue" / "08.png", tmp_path / names[1])
    same = [paths.index("green/01.jpg"), paths.index("blue/08.png"), 2]
    result = clpipe("similar", file, *names, "-n", 5, "--feature", FEATURE)
    assert (result.returncode, result.stderr) == (0, "")
    check_table(table(result.stdout), names, *nearest(points, points[same], [-1, -1, 2], 5), paths)
    assert [line[5] for line in table(result.stdout)][:6:5] == ["0", "0"]


@pytest.mark.deep
def test_described_with_the_options_of_the_file(clpipe, tmp_path):
    """Transparency, orientation, decode scale, a grid and normalisation are those of the file."""
    from PIL import Image
    random = numpy.random.default_rng(5)
    (tmp_path / "in").mkdir()
    for i in range(6):
        pixels = random.integers(0, 256, (64, 48 + 16 * i, 4)).astype("u1")
        image = Image.fromarray(pixels, "RGBA")
        if i % 2:
            exif = Image.Exif()
            exif[0x0112] = 6
            image.convert("RGB").save(tmp_path / "in" / f"{i}.jpg", exif=exif)
        else:
            image.save(tmp_path / "in" / f"{i}.png")
    made = clpipe("ingest", "in", "-o", "f.h5", "--alpha", "black", "--decode-scale", 2, "--feature",
                  "g=gray:bins=16,grid=2x3,normalize=hellinger")
    assert made.returncode == 0, made.stderr
    (tmp_path / "out").mkdir()
    for i in range(6):
        name = f"{i}.{'jpg' if i % 2 else 'png'}"
        shutil.copy(tmp_path / "in" / name, tmp_path / "out" / name)
        lines = table(clpipe("similar", "f.h5", f"out/{name}", "-n", 2).stdout)
        assert (lines[0][3], float(lines[0][5])) == (name, 0)
        assert float(lines[1][5]) > 0


def test_pictures_that_cannot_be_described(clpipe, file, mixed, tmp_path):
    common = ["--feature", FEATURE]
    check_one_error(clpipe("similar", file, "nothing.jpg", *common), 2, "nothing.jpg", "neither")
    check_one_error(clpipe("similar", file, mixed / "bad" / "cut.jpg", *common), 3, "cut.jpg",
                    "cannot be compared")
    numpy.save(tmp_path / "clip.npy", numpy.eye(13, 7, dtype="f4") + 1)
    assert clpipe("import", file, "clip=clip.npy").returncode == 0
    shutil.copy(mixed / "green" / "01.jpg", tmp_path / "copy.jpg")
    check_one_error(clpipe("similar", file, "copy.jpg", "--feature", "clip"), 2, "clip was imported")
    assert clpipe("similar", file, "row:1", "--feature", "clip").returncode == 0


@pytest.mark.deep
def test_several_pictures(clpipe, file, mixed, tmp_path):
    """One file under several names, odd names, images of the file and others, and some failures."""
    values, paths = read(file)
    points = space(values, "hellinger")
    new, bad = tmp_path / "new", mixed / "bad"
    new.mkdir()
    one = shutil.copy(mixed / "green" / "01.jpg", new / "one.jpg")
    os.symlink(one, new / "link")
    os.link(one, new / "hard.png")
    for name in ("x.tar", "a{1..3}.png", "row", "@list", "line\n.jpg"):
        shutil.copy(one, new / name)
    good = [one, one, "new/../new/one.jpg", new / "link", "new/hard.png", "new/x.tar", "new/a{1..3}.png", "new/@list",
            "new/line\n.jpg", "row:3", paths[5], mixed / paths[7]]
    wrong = {"nothing.jpg": "neither", bad / "cut.jpg": "cannot be compared", "row:99": "no row 99", bad / "text.jpg": "cannot be compared",
             "row:x": "a row is a number", "new": "neither"}
    names = [name for pair in zip(good, wrong) for name in pair] + good[len(wrong):]
    green = paths.index("green/01.jpg")
    queries, own = [green] * 9 + [3, 5, 7], [-1] * 9 + [3, 5, 7]
    common = ["-n", 4, "--feature", FEATURE]

    def check_failures(result):
        assert result.returncode == 1
        lines = result.stderr.splitlines()
        assert len(lines) == len(wrong)
        for line, (name, why) in zip(lines, wrong.items()):
            assert str(name).split(":")[-1] in line and why in line and "written" not in line

    alone = clpipe("similar", file, *good, *common)
    assert (alone.returncode, alone.stderr) == (0, "")
    result = clpipe("similar", file, *names, *common)
    check_failures(result)
    assert result.stdout == alone.stdout
    check_table(table(result.stdout), [str(name) for name in good], *nearest(points, points[queries], own, 4), paths)
    report = clpipe("similar", file, *names, *common, "--json", "-")
    check_failures(report)
    told = json.loads(report.stdout)
    assert [place["query"] for place in told["neighbours"]] == [str(name) for name in good for _ in range(4)]
    assert [one["query"] for one in told["failed"]] == [str(name) for name in wrong]
    check_failures(clpipe("similar", file, *names, *common, "-o", "rows.npy", "-q"))
    rows = numpy.load(tmp_path / "rows.npy")
    assert [i for i, name in enumerate(names) if (rows[i] < 0).all()] == [i for i, name in enumerate(names) if name in wrong]
    # If all pictures fail, there is no answer.
    result = clpipe("similar", file, "nothing.jpg", bad / "cut.jpg", *common)
    assert (result.returncode, result.stdout, len(result.stderr.splitlines())) == (3, "", 3)
    check_one_error(clpipe("similar", file, "row:99", *common), 2, "no row 99")


# --- all of them -----------------------------------------------------------------------------------

@pytest.mark.parametrize("device", [[], ["--memory", "1M"], ["--threads", 1]])
def test_all(clpipe, file, device):
    values, _ = read(file)
    points = space(values, "hellinger")
    rows, squared = nearest(points, points, range(13), 15)
    result = clpipe("similar", file, "--all", "-n", 15, "--feature", FEATURE, *device)
    assert (result.returncode, result.stderr) == (0, "")
    with h5py.File(file) as f:
        group = f[f"neighbours/{FEATURE}"]
        assert group["rows"].dtype == "int64" and group["distances"].dtype == "float32"
        assert (group["rows"][:] == rows).all()
        numpy.testing.assert_allclose(group["distances"][:], squared, rtol=1e-6, atol=1e-12)
        assert (group.attrs["metric"], group.attrs["n"]) == ("hellinger", 15)
    assert clpipe("verify", file).returncode == 0


def test_all_is_replaced_only_by_force(clpipe, file):
    common = ["similar", file, "--all", "--feature", FEATURE]
    assert clpipe(*common, "-n", 3).returncode == 0
    before = file.read_bytes()
    check_one_error(clpipe(*common, "-n", 4), 2, "already has neighbours", "--force")
    assert file.read_bytes() == before
    report = json.loads(clpipe(*common, "-n", 4, "--metric", "cosine", "--force", "--json",
                               "-").stdout)
    assert (report["rows"], report["n"], report["metric"]) == (13, 4, "cosine")
    with h5py.File(file) as f:
        assert f[f"neighbours/{FEATURE}/rows"].shape == (13, 4)
    assert clpipe("verify", file).returncode == 0


def test_verify_finds_wrong_neighbours(clpipe, file):
    assert clpipe("similar", file, "--all", "-n", 3, "--feature", FEATURE).returncode == 0
    for change in (lambda g: g["rows"].__setitem__((4, 0), 4),
                   lambda g: g["rows"].__setitem__((4, 1), 99),
                   lambda g: g["distances"].__setitem__((4, 2), 0)):
        broken = shutil.copy(file, file.with_name("broken.h5"))
        with h5py.File(broken, "r+") as f:
            change(f[f"neighbours/{FEATURE}"])
        result = clpipe("verify", broken)
        assert result.returncode == 1
        assert f"/neighbours/{FEATURE}: row 4" in result.stdout


# --- diffusion -------------------------------------------------------------------------------------

def diffusion(points, queries, own):
    """Scores and squared distances by the formulas of docs/search.md; own: the row of each query, or -1."""
    n, a = len(points), 0.9
    lengths = (points ** 2).sum(axis=1)

    def affinity(x, others, length):
        d = numpy.array([((points[j] - x) ** 2).sum() for j in others]).astype("f4").astype("f8")
        products = numpy.sqrt(length * lengths[others])
        cosine = numpy.divide(length + lengths[others] - d, 2 * products, where=products > 0,
                              out=numpy.zeros(len(others)))
        return numpy.clip(cosine, 0, 1) ** 3

    graph = numpy.zeros((n, n))
    for i, near in enumerate(nearest(points, points, range(n), min(15, n - 1))[0]):
        graph[i, near] = affinity(points[i], near, lengths[i])
    graph = numpy.maximum(graph, graph.T)
    degrees = numpy.sqrt(graph.sum(axis=1))
    degrees[degrees == 0] = 1
    solve = (1 - a) * numpy.linalg.inv(numpy.eye(n) - a * graph / degrees / degrees[:, None])
    starts = numpy.zeros((len(queries), n))
    for start, query, row in zip(starts, queries, own):
        if row >= 0:
            start[row] = 1
            continue
        near = nearest(points, [query], [-1], min(15, n))[0][0]
        shares = affinity(query, near, (query ** 2).sum())
        start[near] = shares / shares.sum() if shares.sum() > 0 else 0
    scores = starts @ solve
    scores[scores < 2 ** -40] = 0
    return scores, numpy.array([((points - q) ** 2).sum(axis=1) for q in queries])


def check_diffused(lines, scores, squared, own):
    """Checks that rows are in descending order of score, and those without a score in order of distance."""
    found = [int(line[2]) for line in lines]
    assert sorted(found) == [i for i in range(len(scores)) if i != own]
    assert [float(line[6]) for line in lines] == pytest.approx(scores[found], rel=1e-6, abs=1e-11)
    assert [float(line[5]) for line in lines] == pytest.approx(squared[found], rel=1e-6, abs=1e-12)
    assert (numpy.diff(scores[found]) <= 1e-11).all()
    unreached = [i for i in found if scores[i] == 0]
    assert unreached == sorted(unreached, key=lambda i: (squared[i], i))
    return len(unreached)


def diffused(clpipe, *args):
    result = clpipe("similar", *args, "--diffuse", "--format", "csv")
    assert (result.returncode, result.stderr) == (0, "")
    lines = list(csv.reader(io.StringIO(result.stdout)))
    assert lines[0] == COLUMNS + ["score"]
    return lines[1:]


@pytest.mark.deep
def test_diffusion(clpipe, file, mixed, tmp_path):
    """Rows, a picture that is not in the file, and a graph of several components, with any number of threads;
    stored neighbours give the same bytes."""
    points = space(read(file)[0], "hellinger")
    shutil.copy(mixed / "green" / "01.jpg", tmp_path / "copy.jpg")
    copied = read(file)[1].index("green/01.jpg")
    common = [file, "row:3", "copy.jpg", "--feature", FEATURE]
    lines = diffused(clpipe, *common, "-n", 12)
    scores, squared = diffusion(points, points[[3, copied]], [3, -1])
    check_diffused(lines[:12], scores[0], squared[0], 3)
    lines = diffused(clpipe, *common, "-n", 13)
    assert lines[12] == ["row:3", "13", "-1", "", "", "", ""]
    check_diffused(lines[13:], scores[1], squared[1], -1)

    numbers = numpy.random.default_rng(8)
    count = 500
    values = numbers.standard_normal((count, 20)) + 3 * numbers.standard_normal((12, 20)).repeat(42, 0)[:count]
    # Two groups far from the others: components that are not connected to the rest.
    values[:40] = 100 + numbers.random((40, 20))
    values[40:60] = -100 - numbers.random((20, 20))
    from PIL import Image
    (tmp_path / "many").mkdir()
    for i in range(count):
        Image.new("L", (1, 1), i % 256).save(tmp_path / "many" / f"{i:04}.png")
    assert clpipe("ingest", "many", "-o", "many.h5", "--feature", "gray:bins=2").returncode == 0
    numpy.save(tmp_path / "v.npy", values.astype("f4"))
    assert clpipe("import", "many.h5", "v=v.npy").returncode == 0
    names = ["row:0", "row:45", "row:250", "row:499", *(f"row:{i}" for i in range(100, 120))]
    own = [int(name[4:]) for name in names]
    points = space(values.astype("f4"), "cosine")
    command = ["many.h5", *names, "--feature", "v", "--metric", "cosine", "-n", count - 1]
    lines = diffused(clpipe, *command)
    scores, squared = diffusion(points, points[own], own)
    parts = [check_diffused(lines[(count - 1) * i:(count - 1) * (i + 1)], scores[i], squared[i], own[i])
             for i in range(len(own))]
    assert parts[1] > 400
    assert diffused(clpipe, *command, "--threads", 1, "--memory", "1M") == lines
    assert clpipe("similar", "many.h5", "--all", "-n", 17, "--feature", "v", "--metric",
                  "cosine").returncode == 0
    assert diffused(clpipe, *command) == lines
    # Stored neighbours are used: a wrong one changes the answer, unless another metric is requested.
    with h5py.File(tmp_path / "many.h5", "r+") as f:
        f["neighbours/v/rows"][250] = f["neighbours/v/rows"][0]
    assert diffused(clpipe, *command) != lines
    report = json.loads(clpipe("similar", "many.h5", "row:7", "--feature", "v", "--diffuse", "-n", 2,
                               "--json", "-").stdout)
    assert report["diffuse"] is True and report["neighbours"][0]["score"] > 0


# --- expansion -------------------------------------------------------------------------------------

def expanded(points, queries, own, n):
    """Replaces each query by the mean of itself and its n nearest of `points`, as defined in docs/search.md."""
    sums = numpy.array(queries)
    for total, near in zip(sums, nearest(points, queries, own, n)[0]):
        for row in near[near >= 0]:
            total += points[row]
    return (sums / numpy.sqrt((sums ** 2).sum(axis=1, keepdims=True))).astype("f4").astype("f8")


@pytest.mark.deep
@pytest.mark.parametrize("n", [3, 1000])
def test_expansion(clpipe, file, mixed, tmp_path, n):
    """Rows and a picture that is not in the file; stored neighbours give the same bytes. Means of the same
    rows may differ by rounding, so the order is checked by distance."""
    points = space(read(file)[0], "hellinger")
    shutil.copy(mixed / "green" / "01.jpg", tmp_path / "copy.jpg")
    copied = read(file)[1].index("green/01.jpg")
    common = ["similar", file, "row:3", "copy.jpg", "row:8", "--feature", FEATURE, "-n", 12, "--expand", n]
    result = clpipe(*common)
    assert (result.returncode, result.stderr) == (0, "")
    means = expanded(points, points, range(13), n)
    queries = numpy.vstack([means[3], expanded(points, points[[copied]], [-1], n)[0], means[8]])
    for i, own in enumerate((3, -1, 8)):
        lines = table(result.stdout)[12 * i:12 * i + 12]
        rows = [int(line[2]) for line in lines]
        assert len(set(rows)) == 12 and own not in rows
        squared = ((means - queries[i]) ** 2).sum(axis=1)
        found = [float(line[5]) for line in lines]
        assert found == pytest.approx(squared[rows], rel=1e-5, abs=1e-12)
        others = sorted(squared[[r for r in range(13) if r != own]])[:12]
        assert found == pytest.approx(others, rel=1e-5, abs=1e-12)
    assert clpipe(*common, "--threads", 1, "--memory", "1M").stdout == result.stdout
    assert clpipe("similar", file, "--all", "-n", 12, "--feature", FEATURE).returncode == 0
    assert clpipe(*common).stdout == result.stdout


# --- misuse ----------------------------------------------------------------------------------------

def test_misuse(clpipe, file, mixed):
    check_one_error(clpipe("similar", file), 2, "--all")
    check_one_error(clpipe("similar", file, "row:1"), 2, "counts", FEATURE)
    common = ["--feature", FEATURE]
    check_one_error(clpipe("similar", file, "row:13", *common), 2, "no row 13", "0 to 12")
    check_one_error(clpipe("similar", file, "row:x", *common), 2, "row:x")
    check_one_error(clpipe("similar", file, "row:1", "--all", *common), 2, "--all")
    check_one_error(clpipe("similar", file, "--all", "-o", "a.csv", *common), 2, "--all")
    check_one_error(clpipe("similar", file, "row:1", "-o", file, *common), 2, "not h5")
    check_one_error(clpipe("similar", file, "row:1", "-n", 0, *common), 2, "-n")
    check_one_error(clpipe("similar", file, "--all", "--diffuse", *common), 2, "leave out --diffuse")
    check_one_error(clpipe("similar", file, "--all", "--expand", 2, *common), 2, "leave out --expand")
    check_one_error(clpipe("similar", file, "row:1", "--expand", 2, "--diffuse", *common), 2, "not both")
    check_one_error(clpipe("similar", mixed / "green" / "01.jpg", "row:1"), 3)


@pytest.mark.deep
def test_rows_without_values(clpipe, file, tmp_path):
    """Such rows have no neighbours and are neighbours of no row; the other rows' neighbours are the same as without
    them."""
    rows = numpy.random.default_rng(5).random((13, 3)).astype("f4")
    rows[6] = rows[9] = numpy.nan
    there = [i for i in range(13) if i not in (6, 9)]
    numpy.save(tmp_path / "part.npy", rows[there])
    paths = read(file)[1]
    (tmp_path / "list").write_text("\n".join(paths[i] for i in there) + "\n")
    made = clpipe("import", file, "part=part.npy", "--paths", "list", "--allow-missing")
    assert made.returncode == 0, made.stderr
    distances = ((rows[:, None].astype("f8") - rows[None]) ** 2).sum(2)
    numpy.fill_diagonal(distances, numpy.nan)
    for n in (3, 12):
        result = clpipe("similar", file, "--all", "--feature", "part", "-n", n, "--force")
        assert result.returncode == 0 and "2 images without values of part" in result.stderr, result.stderr
        with h5py.File(file) as f:
            found, squared = f["neighbours/part/rows"][:], f["neighbours/part/distances"][:]
        assert (found[[6, 9]] == -1).all() and numpy.isnan(squared[[6, 9]]).all()
        for i in there:
            wanted = numpy.argsort(distances[i], kind="stable")[:min(n, 10)]
            assert found[i].tolist() == wanted.tolist() + [-1] * (n - len(wanted))
            assert numpy.allclose(squared[i][:10], distances[i][wanted])
        assert clpipe("verify", file).returncode == 0
    table = clpipe("similar", file, "row:2", "row:6", "--feature", "part", "-n", 2, "--format", "csv")
    assert table.returncode == 0, table.stderr
    found = [line.split(",")[2] for line in table.stdout.splitlines()[1:]]
    assert found == [str(i) for i in numpy.argsort(distances[2], kind="stable")[:2]] + ["-1", "-1"]

"""clpipe select: selections compared with numpy, and how they are stored, listed, exported and removed."""

import json

import h5py
import numpy
import pytest
from conftest import digest, draw_photos, error_lines, run_clpipe

ROW_STREAM, LEVEL_STREAM = 0x53454C00, 0x53454C01


def philox(seed, stream, counter):
    """Philox4x32-10: returns a number in [0, 1) for each counter."""
    counter = numpy.asarray(counter, "u8")
    low = numpy.uint64(0xFFFFFFFF)
    key = [numpy.uint64(seed & 0xFFFFFFFF), numpy.uint64(seed >> 32)]
    x = [counter & low, counter >> numpy.uint64(32), numpy.full(counter.shape, stream, "u8"),
         numpy.zeros(counter.shape, "u8")]
    shift = numpy.uint64(32)
    for _ in range(10):
        a, b = numpy.uint64(0xD2511F53) * x[0], numpy.uint64(0xCD9E8D57) * x[2]
        x = [(b >> shift) ^ x[1] ^ key[0], b & low, (a >> shift) ^ x[3] ^ key[1], a & low]
        key = [(key[0] + numpy.uint64(0x9E3779B9)) & low, (key[1] + numpy.uint64(0xBB67AE85)) & low]
    return ((x[0] << shift | x[1]) >> numpy.uint64(11)).astype("f8") * 2.0**-53


def in_turns(orders, keys):
    """Merges the children's orders: the first of each child, then the second of each, and so on."""
    children = sorted(orders, key=lambda child: keys[child])
    most = max(map(len, orders.values()))
    return [orders[child][turn] for turn in range(most) for child in children if turn < len(orders[child])]


def tree_order(levels, keys_of_rows, seed):
    """levels: labels of rows, followed by the parents of each level's clusters."""
    labels = levels[0]
    orders = {}
    for row in numpy.lexsort((numpy.arange(len(labels)), keys_of_rows)):
        if labels[row] >= 0:
            orders.setdefault(int(labels[row]), []).append(int(row))
    for level, parents in enumerate(levels[1:] + [None]):
        keys = philox(seed, LEVEL_STREAM + level, numpy.arange(max(orders) + 1))
        groups = {}
        for child in orders:
            groups.setdefault(0 if parents is None else int(parents[child]), {})[child] = orders[child]
        orders = {parent: in_turns(group, keys) for parent, group in groups.items()}
    return orders[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """61 rows in 7 clusters with very different sizes."""
    folder = tmp_path_factory.mktemp("select")
    draw_photos(folder / "photos", 60)
    random = numpy.random.default_rng(3)
    for words in [["ingest", "photos", "-o", "f.h5", "--feature", "gray:bins=16"]]:
        result = run_clpipe(*words, "--device", "cpu", "-q", cwd=folder)
        assert result.returncode == 0, result.stderr
    with h5py.File(folder / "f.h5") as f:
        rows = len(f["images/width"])
    centres = random.normal(size=(7, 24))
    which = numpy.minimum(random.geometric(0.35, rows) - 1, 6)
    values = (centres[which] + 0.15 * random.normal(size=(rows, 24))).astype("f4")
    values[5] = values[9] * 2  # the same direction
    numpy.save(folder / "rows.npy", values)
    for words in (["import", "f.h5", "rows=rows.npy"],
                  ["cluster", "f.h5", "--feature", "rows", "-k", 7, "--device", "cpu"]):
        result = run_clpipe(*words, "-q", cwd=folder)
        assert result.returncode == 0, result.stderr
    return folder


@pytest.fixture
def select(folder, tmp_path):
    (tmp_path / "f.h5").write_bytes((folder / "f.h5").read_bytes())

    def run(*words, code=0):
        result = run_clpipe("select", "f.h5", *words, cwd=tmp_path)
        assert result.returncode == code, result.stderr
        return result

    return run


def stored(tmp_path, name="selection"):
    with h5py.File(tmp_path / "f.h5") as f:
        group = f["selections"][name]
        return group["rows"][:].tolist(), dict(group.attrs), group["reason"].asstr()[:].tolist()


def clusters_of(folder):
    with h5py.File(folder / "f.h5") as f:
        return f["clusters/kmeans/labels"][:], f["clusters/kmeans/distances"][:], f["features/rows"][:]


@pytest.mark.parametrize("count", [1, 13, 40, 1000])
def test_balanced_equals_numpy(folder, select, tmp_path, count):
    labels, _, _ = clusters_of(folder)
    select(count, "--seed", 7)
    rows, attributes, reasons = stored(tmp_path)
    assert rows == tree_order([labels], philox(7, ROW_STREAM, numpy.arange(len(labels))), 7)[:count]
    assert attributes["method"] == "balanced" and attributes["seed"] == 7
    assert reasons == [f"of cluster {labels[row]}" for row in rows]
    # The largest possible equal shares.
    shares, sizes = numpy.bincount(labels[rows], minlength=7), numpy.bincount(labels, minlength=7)
    cap = shares.max()
    assert all(share == size or share >= cap - 1 for share, size in zip(shares, sizes))


def test_nearest_equals_numpy(folder, select, tmp_path):
    labels, distances, _ = clusters_of(folder)
    select(20, "--method", "nearest")
    assert stored(tmp_path)[0] == tree_order([labels], distances, 0)[:20]


def test_random_equals_numpy(folder, select, tmp_path):
    keys = philox(2**40 + 5, ROW_STREAM, numpy.arange(len(clusters_of(folder)[0])))
    select(30, "--method", "random", "--seed", 2**40 + 5)
    assert stored(tmp_path)[0] == numpy.argsort(keys, kind="stable")[:30].tolist()


def test_levels_equal_numpy(folder, select, tmp_path):
    labels, _, _ = clusters_of(folder)
    parents = numpy.array([0, 0, 0, 1, 1, 2, 2], "i4")
    result = run_clpipe("cluster", "f.h5", "--feature", "rows", "-k", 3, "--name", "coarse", "--device", "cpu",
                        "-q", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    with h5py.File(tmp_path / "f.h5", "r+") as f:
        f["clusters/kmeans/parents"] = parents
        f["clusters/kmeans"].attrs["parent"] = "coarse"
        f["clusters/kmeans"].attrs.create("level", 1, dtype="u4")
    select(25, "--clusters", "kmeans", "--seed", 3)
    keys = philox(3, ROW_STREAM, numpy.arange(len(labels)))
    assert stored(tmp_path)[0] == tree_order([labels, parents], keys, 3)[:25]


def test_list_and_dry_run(select, folder, tmp_path):
    before = (tmp_path / "f.h5").stat().st_ino
    select(9, "--dry-run", "--to-list", "list")
    assert (tmp_path / "f.h5").stat().st_ino == before
    listed = (tmp_path / "list").read_text().split("\0")
    assert select(9, "--dry-run", "--to-list", "-").stdout.split("\0") == listed
    error = error_lines(select(9, "--dry-run", "--to-list", "-", "--json", "-", code=2))[0]
    assert "cannot both use standard output" in error
    select(9)
    with h5py.File(tmp_path / "f.h5") as f:
        paths = f["images/path"].asstr()[:][f["selections/selection/rows"][:]]
    assert listed == [str(folder / "photos" / path) for path in paths] + [""]
    assert "already has a selection" in error_lines(select(8, "--to-list", "other", code=2))[0]
    assert not (tmp_path / "other").exists()
    select(4, "--within", "list", "--force")
    assert len(stored(tmp_path)[0]) == 4


@pytest.mark.parametrize("memory", ["1G", "1K"])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_diverse_equals_brute_force(folder, select, tmp_path, metric, memory):
    _, _, values = clusters_of(folder)
    if metric == "cosine":
        values = values / numpy.sqrt((values.astype("f8") ** 2).sum(1, keepdims=True))
        values = values.astype("f4")
    values = values.astype("f8")
    answer = [int(philox(0, ROW_STREAM, numpy.arange(len(values))).argmin())]
    nearest = numpy.full(len(values), numpy.inf)
    radius = None
    while len(answer) < 12:
        nearest = numpy.minimum(nearest, ((values - values[answer[-1]]) ** 2).sum(1))
        nearest[answer] = -1
        answer.append(int(nearest.argmax()))
    nearest = numpy.minimum(nearest, ((values - values[answer[-1]]) ** 2).sum(1))
    nearest[answer] = -1
    radius = nearest.max() ** 0.5
    select(12, "--method", "diverse", "--feature", "rows", "--metric", metric, "--memory", memory,
           "--json", "out.json")
    assert stored(tmp_path)[0] == answer
    assert json.loads((tmp_path / "out.json").read_text())["radius"] == pytest.approx(radius, rel=1e-9)


@pytest.mark.parametrize("memory", ["1G", "4K"])
@pytest.mark.parametrize("prefer", ["nearest", "best"])
def test_semantic_equals_numpy(folder, select, tmp_path, prefer, memory):
    labels, distances, values = clusters_of(folder)
    unit = (values / numpy.sqrt((values.astype("f8") ** 2).sum(1, keepdims=True))).astype("f4").astype("f8")
    with h5py.File(folder / "f.h5") as f:
        pixels = f["images/width"][:].astype("i8") * f["images/height"][:]
        size = f["images/bytes"][:].astype("i8")
    rows = numpy.arange(len(labels))
    order = numpy.lexsort((rows, distances) if prefer == "nearest" else (rows, -size, -pixels))
    kept, out = [], {}
    for row in order:
        like = [other for other in kept if labels[other] == labels[row] and
                ((unit[row] - unit[other]) ** 2).sum() <= 2 - 2 * 0.96]
        if like:
            out[int(row)] = int(like[0])
        else:
            kept.append(int(row))
    assert 5 < len(out) < len(labels) - 5 and (5 in out or 9 in out)
    select("--semantic", 0.96, "--prefer", prefer, "--memory", memory, "--name", "unlike")
    with h5py.File(tmp_path / "f.h5") as f:
        group = f["selections/unlike"]
        assert dict(zip(group["omitted"][:].tolist(), group["kept"][:].tolist())) == out
        cosines = [unit[a] @ unit[b] for a, b in out.items()]
        stored_ones = dict(zip(group["omitted"][:].tolist(), group["cosine"][:].tolist()))
        assert numpy.allclose([stored_ones[row] for row in out], cosines, atol=1e-6)
    assert sorted(stored(tmp_path, "unlike")[0]) == sorted(kept)


def test_similar_images_of_other_clusters_are_counted(folder, select, tmp_path):
    for words in (["similar", "f.h5", "--all", "--feature", "rows", "--metric", "cosine", "-n", 60],
                  ["cluster", "f.h5", "--feature", "rows", "-k", 20, "--name", "fine"]):
        result = run_clpipe(*words, "--device", "cpu", "-q", cwd=tmp_path)
        assert result.returncode == 0, result.stderr
    with h5py.File(tmp_path / "f.h5") as f:
        labels, values = f["clusters/fine/labels"][:], f["features/rows"][:]
    unit = values / numpy.linalg.norm(values, axis=1, keepdims=True)
    select("--clusters", "fine", "--semantic", 0.955, "--json", "out.json")
    kept = stored(tmp_path)[0]
    like = (unit[kept] @ unit[kept].T >= 0.955) & (labels[kept][:, None] != labels[kept])
    assert json.loads((tmp_path / "out.json").read_text())["hidden"] == like.any(1).sum() > 0


@pytest.mark.parametrize("more", [[], [9]])
def test_covering_radius_within_limits_of_clusters(folder, select, tmp_path, more):
    """No image is farther away than the radius, even if --per-cluster excludes it."""
    _, _, values = clusters_of(folder)
    select(*more, "--per-cluster", 2, "--method", "diverse", "--feature", "rows", "--json", "out.json")
    chosen = values[stored(tmp_path)[0]].astype("f8")
    squared = ((values.astype("f8")[:, None] - chosen) ** 2).sum(2).min(1)
    assert json.loads((tmp_path / "out.json").read_text())["radius"] == pytest.approx(squared.max() ** 0.5, rel=1e-9)


def test_threshold_of_one_drops_equal_rows(folder, select, tmp_path):
    labels, _, values = clusters_of(folder)
    rows = values / numpy.sqrt((values.astype("f8") ** 2).sum(1, keepdims=True))
    select("--semantic", 1, "--feature", "rows")
    different = {(label, row.tobytes()) for label, row in zip(labels, rows.astype("f4"))}
    assert len(stored(tmp_path)[0]) == len(different)


def test_per_cluster_and_within(folder, select, tmp_path):
    labels, _, _ = clusters_of(folder)
    for method in "balanced", "nearest", "random", "diverse":
        select("--per-cluster", 2, "--method", method, "--name", method)
        rows = stored(tmp_path, method)[0]
        assert (numpy.bincount(labels[rows], minlength=7) == numpy.minimum(numpy.bincount(labels), 2)).all(), method
    some = ["red/03.jpg", "red/06.jpg", "green/01.jpg", "blue/02.jpg", "red/15.jpg"]
    (tmp_path / "some").write_text("".join(f"photos/{path}\n" for path in some))
    run = select(9, "--method", "random", "--within", "some", "--name", "few")
    assert "5 of 5 images chosen" in run.stdout and "fewer than 9: there are no more to choose from" in run.stdout
    with h5py.File(tmp_path / "f.h5") as f:
        paths = f["images/path"].asstr()[:][f["selections/few/rows"][:]]
    assert sorted(paths) == sorted(some)
    # Lists may be concatenated: an image in several of them counts once, in whatever form it is listed.
    again = [*some, "red/03.jpg", str(folder / "photos" / "red" / "06.jpg"), "nowhere.jpg", "nowhere.jpg"]
    (tmp_path / "again").write_text("\n".join(again))
    run = select(9, "--method", "random", "--within", "again", "--name", "same")
    assert "notice: again lists 2 paths that belong to no image: nowhere.jpg, nowhere.jpg" in run.stderr
    assert list(stored(tmp_path, "same")[0]) == list(stored(tmp_path, "few")[0])
    (tmp_path / "foreign").write_text("nowhere.jpg\n")
    refused = select(9, "--within", "foreign", "--name", "x", code=3)
    assert "no path in foreign belongs to an image" in error_lines(refused)[0] and "notice" not in refused.stderr
    error = error_lines(select(9, "--name", "x", "--to-list", "again", code=3))[0]
    assert error.endswith("again exists; replace it with --force, or name another file with --to-list")


def test_says_which_images_cannot_be_chosen(folder, select, tmp_path):
    """Rows of zeros have no direction: by cosine they have no cluster, and diverse cannot compare them."""
    values = numpy.load(folder / "rows.npy")
    values[[3, 17]] = 0
    numpy.save(tmp_path / "zeros.npy", values)
    for words in (["import", "f.h5", "zeros=zeros.npy"],
                  ["cluster", "f.h5", "--feature", "zeros", "-k", 4, "--metric", "cosine", "--name", "angles"]):
        assert run_clpipe(*words, cwd=tmp_path).returncode == 0
    count = len(values)
    for words, key, said in (
            (["--clusters", "angles"], "unlabelled", "2 images left out: without a cluster"),
            (["--method", "diverse", "--feature", "zeros", "--metric", "cosine"], "incomparable",
             "2 images left out: without values that can be compared")):
        assert said in select(count, *words, "--name", key).stdout
        report = json.loads(select(count, *words, "--name", key, "--json", "-").stdout)
        assert (report[key], report["chosen"]) == (2, count - 2)
        assert not {3, 17} & set(stored(tmp_path, key)[0])


def test_stored_listed_exported_removed(folder, select, tmp_path):
    select(10)
    before = (tmp_path / "f.h5").stat()
    assert "already exists: nothing to do" in select(10).stdout
    assert (tmp_path / "f.h5").stat().st_ino == before.st_ino
    assert "replace it with --force" in error_lines(select(11, code=2))[0]
    select(11, "--force")
    assert len(stored(tmp_path)[0]) == 11
    assert run_clpipe("verify", "f.h5", cwd=tmp_path).returncode == 0
    info = run_clpipe("info", "f.h5", "--json", "info.json", cwd=tmp_path)
    assert "selection      11 images, balanced" in info.stdout
    assert json.loads((tmp_path / "info.json").read_text())["selections"][0]["images"] == 11
    table = run_clpipe("export", "f.h5", "--what", "selection", cwd=tmp_path).stdout.splitlines()
    assert table[0] == "path,source,row,reason" and len(table) == 12
    assert [int(line.split(",")[2]) for line in table[1:]] == stored(tmp_path)[0]
    missing = run_clpipe("export", "f.h5", "--what", "selection", "--name", "none", cwd=tmp_path)
    assert missing.returncode == 2 and "holds no selection none; name one with --name: selection" in missing.stderr
    identity = digest(tmp_path / "f.h5")
    removed = run_clpipe("remove", "f.h5", "selections/selection", cwd=tmp_path)
    assert removed.returncode == 0 and digest(tmp_path / "f.h5") != identity
    with h5py.File(tmp_path / "f.h5") as f:
        assert "selection" not in f.get("selections", {})


def test_an_update_keeps_the_selection(select, folder, tmp_path):
    (tmp_path / "photos").mkdir()
    for path in (folder / "photos").rglob("*.*"):
        target = tmp_path / "photos" / path.relative_to(folder / "photos")
        target.parent.mkdir(exist_ok=True)
        target.hardlink_to(path)
    select("--semantic", 0.9)
    with h5py.File(tmp_path / "f.h5") as f:
        paths = f["images/path"].asstr()[:]
        before = {name: paths[f["selections/selection"][name][:]].tolist() for name in ("rows", "omitted", "kept")}
    gone = before["rows"][2]
    (tmp_path / "photos" / gone).unlink()
    (tmp_path / "photos" / "a new one.jpg").write_bytes((folder / "photos" / "red" / "03.jpg").read_bytes())
    result = run_clpipe("ingest", "photos", "-o", "f.h5", "--relocate", "photos", "--device", "cpu", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "notice: selections leave out 1 image" in result.stderr
    with h5py.File(tmp_path / "f.h5") as f:
        paths = f["images/path"].asstr()[:]
        after = {name: paths[f["selections/selection"][name][:]].tolist() for name in ("rows", "omitted", "kept")}
    pairs = [pair for pair in zip(before["omitted"], before["kept"]) if gone not in pair]
    assert after["rows"] == [path for path in before["rows"] if path != gone]
    assert list(zip(after["omitted"], after["kept"])) == pairs
    assert run_clpipe("verify", "f.h5", cwd=tmp_path).returncode == 0


def test_impossible_selections(select, folder, tmp_path):
    assert "say how many images" in error_lines(select(code=2))[0]
    assert "'none'" in error_lines(select("none", code=2))[0]
    assert "--semantic must be a cosine from 0 to 1" in error_lines(select(3, "--semantic", 1.5, code=2))[0]
    assert "--prefer requires --semantic" in error_lines(select(3, "--prefer", "best", code=2))[0]
    numpy.save(tmp_path / "x.npy", numpy.ones((3, 2), "f4"))
    run_clpipe("cluster", "x.npy", "-k", 1, "-o", "x.h5", "--device", "cpu", "-q", cwd=tmp_path)
    result = run_clpipe("select", "x.h5", 1, cwd=tmp_path)
    assert result.returncode == 3 and "holds no images" in result.stderr


@pytest.mark.deep
def test_any_number_of_threads_gives_one_identity(select, tmp_path):
    found = set()
    for threads in 1, 2, 3, 7:
        select(20, "--method", "diverse", "--semantic", 0.99, "--feature", "rows", "--threads", threads, "--force")
        found.add(digest(tmp_path / "f.h5"))
    assert len(found) == 1

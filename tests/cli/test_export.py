"""info, verify and export print what h5py reads."""

import csv
import errno
import io
import json
import os
import shutil
import subprocess

import h5py
import numpy
import pytest

from conftest import CLPIPE, check_one_error, run_clpipe


def text(dataset):
    return [value.decode() if isinstance(value, bytes) else value for value in dataset]


def read_csv(output, **options):
    return list(csv.reader(io.StringIO(output, newline=""), strict=True, **options))


@pytest.fixture(scope="module")
def h5(finished):
    with h5py.File(finished, "r") as file:
        yield file


# --- tables -----------------------------------------------------------------------------------

def test_images(clpipe, finished, mixed, h5):
    result = clpipe("export", finished, "--what", "images")
    assert (result.returncode, result.stderr) == (0, "")
    rows = read_csv(result.stdout)
    assert rows[0] == ["path", "source", "width", "height", "orientation", "channels", "format",
                       "bytes", "mtime_ns", "digest"]
    images = h5["images"]
    assert [row[0] for row in rows[1:]] == text(images["path"])
    assert {row[1] for row in rows[1:]} == {str(mixed)}
    for column, name in enumerate(["width", "height", "orientation", "channels"], 2):
        assert [int(row[column]) for row in rows[1:]] == list(images[name])
    assert [row[6] for row in rows[1:]] == text(images["format"])
    assert [int(row[7]) for row in rows[1:]] == list(images["bytes"])
    assert [int(row[8]) for row in rows[1:]] == list(images["mtime_ns"])
    assert [row[9] for row in rows[1:]] == [f"{a:016x}{b:016x}" for a, b in images["digest"]]
    for path, bytes_, mtime in [(row[0], row[7], row[8]) for row in rows[1:]]:
        stat = (mixed / path).stat()
        assert (int(bytes_), int(mtime)) == (stat.st_size, stat.st_mtime_ns)


def test_failures(clpipe, finished, h5):
    csv_rows = read_csv(clpipe("export", finished, "--what", "failures").stdout)
    tsv_rows = read_csv(clpipe("export", finished, "--what", "failures", "--format", "tsv").stdout,
                        delimiter="\t")
    assert csv_rows == tsv_rows
    assert csv_rows[0] == ["path", "source", "reason", "message", "bytes", "errno"]
    failures = h5["failures"]
    assert [row[0] for row in csv_rows[1:]] == text(failures["path"])
    assert [row[2] for row in csv_rows[1:]] == text(failures["reason"])
    assert [row[3] for row in csv_rows[1:]] == text(failures["message"])
    assert [int(row[4]) for row in csv_rows[1:]] == list(failures["bytes"])
    assert 'bad/with, comma and "quotes".png' in [row[0] for row in csv_rows]
    assert dict((row[0], row[2]) for row in csv_rows[1:]) == {
        "bad/cut.jpg": "truncated", "bad/empty.png": "empty", "bad/text.jpg": "unknown-format",
        'bad/with, comma and "quotes".png': "unknown-format", "notes.txt": "not-an-image"}


def test_labels(clpipe, finished, h5):
    rows = read_csv(clpipe("export", finished, "--what", "labels").stdout)
    assert rows[0] == ["path", "source", "label", "distance", "squared_distance"]
    clusters = h5["clusters/kmeans"]
    assert [row[0] for row in rows[1:]] == text(h5["images/path"])
    assert [int(row[2]) for row in rows[1:]] == list(clusters["labels"])
    squares = numpy.array([row[4] for row in rows[1:]], numpy.float32)
    assert squares.tobytes() == clusters["distances"][:].tobytes()
    lengths = numpy.array([row[3] for row in rows[1:]], numpy.float32)
    assert (lengths == numpy.sqrt(clusters["distances"][:].astype(float)).astype("f4")).all()


@pytest.mark.parametrize("what, dataset", [
    ("labels", "clusters/kmeans/labels"), ("labels", "clusters/kmeans/distances"), ("labels", "images/path"),
    ("clusters", "clusters/kmeans/labels"), ("images", "images/width"), ("failures", "failures/message"),
    ("features", "features/counts"), ("centroids", "clusters/kmeans/centroids")])
def test_unreadable_datasets_are_reported(clpipe, finished, tmp_path, what, dataset):
    shutil.copy(finished, tmp_path / "x.h5")
    with h5py.File(tmp_path / "x.h5", "r+") as f:
        old = f[dataset]
        scales = [dimension[0] if len(dimension) else None for dimension in old.dims]
        shape, kind, attributes = old.shape, old.id.get_type(), dict(old.attrs)
        del f[dataset]
        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        creation.set_chunk(shape)
        creation.set_deflate(1)
        new = h5py.Dataset(h5py.h5d.create(f.id, dataset.encode(), kind, h5py.h5s.create_simple(shape), creation))
        new.id.write_direct_chunk((0,) * len(shape), b"these bytes were never deflated")
        for dimension, scale in zip(new.dims, scales):
            if scale:
                dimension.attach_scale(scale)
        for key, value in attributes.items():
            if key != "DIMENSION_LIST":
                new.attrs[key] = value
    feature = ["--feature", "counts"] if what == "features" else []
    check_one_error(clpipe("export", "x.h5", "--what", what, *feature, "-o", "t.csv"), 3, "cannot read x.h5")
    assert os.listdir(tmp_path) == ["x.h5"]


def test_centroids(clpipe, finished, h5, tmp_path):
    stored = h5["clusters/kmeans/centroids"][:]
    rows = read_csv(clpipe("export", finished, "--what", "centroids").stdout)
    assert rows[0] == ["cluster"] + [f"rgb_8x8x8_{i}" for i in range(512)]
    assert [int(row[0]) for row in rows[1:]] == [0, 1, 2]
    assert numpy.array([row[1:] for row in rows[1:]], "f4").tobytes() == stored.tobytes()
    lines = clpipe("export", finished, "--what", "centroids", "--format", "jsonl").stdout
    values = [json.loads(line)["rgb_8x8x8"] for line in lines.splitlines()]
    assert numpy.array(values, "f4").tobytes() == stored.tobytes()
    assert clpipe("export", finished, "--what", "centroids", "-o", "c.npy").returncode == 0
    assert numpy.load(tmp_path / "c.npy").tobytes() == stored.tobytes()


def test_centroids_of_several_blocks(clpipe, tmp_path):
    rows = numpy.random.default_rng(1).normal(size=(1100, 1000)).astype("f4")
    numpy.save(tmp_path / "rows.npy", rows)
    command = ["cluster", "rows.npy", "-k", 1100, "--init", "rows.npy", "--max-iter", 1, "-o", "r.h5"]
    assert clpipe(*command).returncode == 0
    assert clpipe("export", "r.h5", "--what", "centroids", "-o", "c.npy").returncode == 0
    assert numpy.array_equal(numpy.load(tmp_path / "c.npy"), rows)


def test_clusters(clpipe, finished, h5):
    stored = h5["clusters/kmeans"]
    paths, labels = text(h5["images/path"]), stored["labels"][:]
    lengths = numpy.sqrt(stored["distances"][:].astype(float))
    rows = list(csv.DictReader(io.StringIO(clpipe("export", finished, "--what",
                                                  "clusters").stdout)))
    sizes = stored["sizes"][:].tolist()
    assert [int(row["cluster"]) for row in rows] == sorted(range(3), key=lambda c: (-sizes[c], c))
    for row in rows:
        cluster = int(row["cluster"])
        members = numpy.flatnonzero(labels == cluster)
        assert int(row["size"]) == len(members) == stored["sizes"][cluster]
        assert float(row["share"]) == len(members) / 13
        nearest = [row[f"nearest_{i}"] for i in (1, 2, 3)]
        assert nearest == [paths[i] if i >= 0 else "" for i in stored["nearest"][cluster]]
        assert numpy.isclose(float(row["mean_distance"]), lengths[members].mean())
        assert numpy.isclose(float(row["largest_distance"]), lengths[members].max())
        folders = [os.path.dirname(paths[i]) for i in members]
        assert folders.count(row["folder"]) == int(row["folder_size"]) == \
            max(folders.count(folder) for folder in folders)
        assert int(row["folders"]) == len(set(folders))
    lines = clpipe("export", finished, "--what", "clusters", "--format", "jsonl").stdout
    assert [json.loads(line)["folder"] for line in lines.splitlines()] == \
        [row["folder"] for row in rows]


def test_sweep(clpipe, finished, tmp_path):
    shutil.copy(finished, tmp_path / "x.h5")
    check_one_error(clpipe("export", "x.h5", "--what", "sweep"), 2, "one k", "-k A:B")
    assert clpipe("cluster", "x.h5", "-k", "2:5", "--feature", "counts", "--name",
                  "several").returncode == 0
    with h5py.File(tmp_path / "x.h5", "r") as file:
        stored = {name: data[:] for name, data in file["clusters/several/sweep"].items()}
        chosen = len(file["clusters/several/sizes"])
    rows = list(csv.DictReader(io.StringIO(clpipe("export", "x.h5", "--what", "sweep", "--name",
                                                  "several").stdout)))
    assert [int(row["k"]) for row in rows] == [2, 3, 4, 5] == list(stored["k"])
    assert [int(row["k"]) for row in rows if row["chosen"] == "1"] == [chosen]
    for name in ["iterations", "inertia", "silhouette", "davies_bouldin", "calinski_harabasz",
                 "purity", "nmi", "ari"]:
        assert [float(row[name]) for row in rows] == list(stored[name]), name


def test_absolute_paths(clpipe, photos, tmp_path):
    shutil.copytree(photos, tmp_path / "p")
    (tmp_path / "p" / "odd, \"name\".png").write_bytes((photos / "red" / "00.png").read_bytes())
    (tmp_path / "list.txt").write_text("./p/red/00.png\np/green/01.jpg\n")
    assert clpipe("run", "--no-report", "p", "@list.txt", "-k", 2, "-o", "x.h5").returncode == 0
    for what in ["images", "labels", "features"]:
        usual = read_csv(clpipe("export", "x.h5", "--what", what).stdout)
        rows = read_csv(clpipe("export", "x.h5", "--what", what, "--absolute-paths").stdout)
        assert len(rows) == 17
        for row, other in zip(rows[1:], usual[1:]):
            assert row[0] == str(tmp_path / ("p" if other[1] == "p" else "") / other[0])
            assert os.path.exists(row[0]) and row[1:] == other[1:]
    rows = list(csv.DictReader(io.StringIO(clpipe("export", "x.h5", "--what", "clusters",
                                                  "--absolute-paths").stdout)))
    assert all(os.path.isabs(row["nearest_1"]) and os.path.exists(row["nearest_1"])
               for row in rows)


def test_pipes_and_devices(clpipe, finished, tmp_path):
    ask = ["export", finished, "--what", "labels"]
    wanted = clpipe(*ask).stdout
    assert clpipe(*ask, "-o", "/dev/stdout").stdout == wanted
    assert clpipe(*ask, "-o", "/dev/null").returncode == 0
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cat", "pipe"], cwd=tmp_path, stdout=subprocess.PIPE,
                          text=True) as reader:
        result = clpipe(*ask, "-o", "pipe")
        assert (result.returncode, reader.communicate()[0]) == (0, wanted)
    # Standard output is a file that already has content.
    with open(tmp_path / "out", "w") as out:
        out.write("before\n")
        out.flush()
        assert clpipe(*ask, "-o", "/dev/stdout", capture_output=False, stdout=out).returncode == 0
    assert (tmp_path / "out").read_text() == "before\n" + wanted
    result = clpipe(*ask, "-o", "t.csv", "--json", "/dev/stdout")
    assert json.loads(result.stdout)["rows"] == 13


@pytest.mark.parametrize("feature", ["rgb_8x8x8", "counts"])
def test_features_in_every_format(clpipe, finished, h5, tmp_path, feature):
    stored = h5["features"][feature][:]
    paths = text(h5["images/path"])
    for form in ["csv", "tsv", "jsonl", "npy"]:
        output = tmp_path / f"features.{form}"
        result = clpipe("export", finished, "--what", "features", "--feature", feature,
                        "--format", form, "-o", output)
        assert result.returncode == 0, result.stderr
        assert result.stdout == ""
        if form == "npy":
            values = numpy.load(output)
        elif form == "jsonl":
            lines = [json.loads(line) for line in output.read_text().splitlines()]
            assert [line["path"] for line in lines] == paths
            values = numpy.array([line[feature] for line in lines])
        else:
            rows = read_csv(output.read_text(), delimiter="," if form == "csv" else "\t")
            assert rows[0][:3] == ["path", "source", f"{feature}_0"]
            assert [row[0] for row in rows[1:]] == paths
            values = numpy.array([row[2:] for row in rows[1:]]).astype(stored.dtype)
        assert values.shape == stored.shape
        assert values.astype(stored.dtype).tobytes() == stored.tobytes()
        if form == "npy":
            assert values.dtype == stored.dtype
    assert stored.dtype == (numpy.uint32 if feature == "counts" else numpy.float32)


def test_labels_as_npy(clpipe, finished, h5, tmp_path):
    result = clpipe("export", finished, "--what", "labels", "--format", "npy", "-o", "labels.npy")
    assert result.returncode == 0, result.stderr
    labels = numpy.load(tmp_path / "labels.npy")
    assert labels.shape == h5["clusters/kmeans/labels"].shape
    assert labels.dtype == numpy.int32
    assert (labels == h5["clusters/kmeans/labels"][:]).all()


def test_jsonl(clpipe, finished, h5):
    lines = clpipe("export", finished, "--what", "images", "--format", "jsonl").stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["path"] for row in rows] == text(h5["images/path"])
    assert [row["width"] for row in rows] == list(h5["images/width"])
    lines = clpipe("export", finished, "--what", "failures", "--format", "jsonl").stdout
    assert [json.loads(line)["reason"] for line in lines.splitlines()] == \
        text(h5["failures/reason"])


def test_which_feature(clpipe, finished):
    check_one_error(clpipe("export", finished, "--what", "features"), 2, "--feature", "rgb_8x8x8",
                    "counts")
    check_one_error(clpipe("export", finished, "--what", "features", "--feature", "none"), 2,
                    "'none'", "rgb_8x8x8")
    check_one_error(clpipe("export", finished, "--what", "labels", "--name", "none"), 2, "none",
                    "kmeans")


def test_closed_pipe_is_quiet(finished):
    command = f"'{os.path.abspath(run_clpipe.__globals__['CLPIPE'])}' export '{finished}' " \
              "--what features --feature rgb_8x8x8 --format jsonl | head -c 10; " \
              "echo ${PIPESTATUS[0]}"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert result.stderr == ""
    assert result.stdout.splitlines()[-1].endswith("0")


def test_a_table_does_not_replace_a_result(clpipe, finished, tmp_path):
    copy = tmp_path / "copy"
    shutil.copy(finished, copy)
    before = copy.read_bytes()
    check_one_error(clpipe("export", finished, "--what", "images", "-o", copy), 3, "copy exists",
                    "--force")
    for force in [[], ["--force"]]:
        check_one_error(clpipe("export", copy, "--what", "images", "-o", copy, *force), 2,
                        "copy is the input")
    check_one_error(clpipe("export", copy, "--what", "images", "-o", "t.csv", "--json", copy), 2,
                    "copy")
    assert copy.read_bytes() == before
    assert os.listdir(tmp_path) == ["copy"]


def test_report(clpipe, finished, tmp_path):
    result = clpipe("export", finished, "--what", "images", "-o", "t.csv", "--json", "-")
    report = json.loads(result.stdout)
    assert report.pop("wall")
    assert report == {"what": "images", "rows": 13, "output": "t.csv"}


# --- trees ------------------------------------------------------------------------------------

@pytest.fixture
def sorted_photos(clpipe, photos, tmp_path):
    """Copies the photos and clusters them; returns {path: cluster}."""
    shutil.copytree(photos, tmp_path / "photos")
    shutil.copy(tmp_path / "photos" / "red" / "00.png", tmp_path / "photos" / "red_00.png")
    result = clpipe("run", "--no-report", "photos", "-k", 3, "-o", "r.h5")
    assert result.returncode == 0, result.stderr
    with h5py.File(tmp_path / "r.h5", "r") as file:
        return dict(zip(text(file["images/path"]), file["clusters/kmeans/labels"]))


def check_tree(tree, photos, result, name="kmeans"):
    """Asserts that folders are ordered by size and entries by distance, and that the index lists the entries."""
    with h5py.File(result, "r") as file:
        paths = text(file["images/path"])
        stored = file[f"clusters/{name}"]
        labels, distances, sizes = (stored[key][:] for key in ("labels", "distances", "sizes"))
    order = sorted(range(len(sizes)), key=lambda c: (-int(sizes[c]), c))
    folders = {c: f"{1 + i:0{len(str(len(sizes)))}}_cluster_{c}_{sizes[c]}"
               for i, c in enumerate(order)}
    assert sorted(os.listdir(tree)) == sorted([".clpipe-tree", "index.csv", *folders.values()])
    rows = list(csv.DictReader(open(tree / "index.csv", newline="")))
    assert [row["path"] for row in rows] == paths
    for i, row in enumerate(rows):
        cluster = labels[i]
        members = [j for j in range(len(paths)) if labels[j] == cluster]
        rank = 1 + sorted(members, key=lambda j: (distances[j], j)).index(i)
        assert (row["folder"], int(row["cluster"]), int(row["rank"])) == \
            (folders[cluster], cluster, rank)
        assert row["entry"] == f"{rank:0{len(str(sizes[cluster]))}}_{paths[i].replace('/', '_')}"
        assert numpy.float32(row["distance"]) == \
            numpy.float32(numpy.sqrt(distances[i].astype(float)))
        entry = tree / row["folder"] / row["entry"]
        assert entry.read_bytes() == (photos / paths[i]).read_bytes()
    entries = [f"{folder}/{entry}" for folder in folders.values()
               for entry in os.listdir(tree / folder)]
    assert sorted(entries) == sorted(f"{row['folder']}/{row['entry']}" for row in rows)
    return [tree / entry for entry in entries]


@pytest.mark.variations
@pytest.mark.parametrize("link", ["symlink", "hard", "copy"])
def test_tree(clpipe, tmp_path, sorted_photos, link):
    result = clpipe("export", "r.h5", "--what", "tree", "--to", "tree", "--link", link)
    assert result.returncode == 0, result.stderr
    for path in check_tree(tmp_path / "tree", tmp_path / "photos", tmp_path / "r.h5"):
        assert path.is_symlink() == (link == "symlink")
        assert path.stat().st_nlink == (2 if link == "hard" else 1)
    # red/00.png and red_00.png get the same name but different numbers.
    assert sorted(os.listdir(tmp_path)) == ["photos", "r.h5", "tree"]


def test_no_space_for_copies(clpipe, tmp_path, sorted_photos):
    library = CLPIPE.parent / "tests" / "faults.so"
    if not library.exists():
        pytest.skip(f"{library} is not built")
    note = tmp_path / "note"
    result = clpipe("export", "r.h5", "--what", "tree", "--link", "copy", "--to", "tree",
                    env={"LD_PRELOAD": library, "CLPIPE_FAULT": f"write * 1+ {errno.ENOSPC}",
                         "CLPIPE_FAULT_NOTE": note})
    assert note.exists(), result.stderr
    note.unlink()
    check_one_error(result, 3, "No space left")
    assert sorted(os.listdir(tmp_path)) == ["photos", "r.h5"]


def test_a_tree_moves_with_its_images(clpipe, tmp_path, sorted_photos):
    (tmp_path / "a" / "b").mkdir(parents=True)
    os.symlink("a/b", tmp_path / "way")
    tree = ["export", "r.h5", "--what", "tree", "--to"]
    assert clpipe(*tree, "way/tree").returncode == 0
    assert clpipe(*tree, "photos/tree").returncode == 0
    assert clpipe(*tree, "fixed", "--absolute-paths").returncode == 0
    for name in ["a/b/tree", "photos/tree"]:
        for path in check_tree(tmp_path / name, tmp_path / "photos", tmp_path / "r.h5"):
            assert not os.path.isabs(os.readlink(path))
    assert all(os.path.isabs(os.readlink(path))
               for path in check_tree(tmp_path / "fixed", tmp_path / "photos", tmp_path / "r.h5"))
    (tmp_path / "moved").mkdir()
    for name in ["a", "photos", "r.h5"]:
        os.rename(tmp_path / name, tmp_path / "moved" / name)
    for name in ["a/b/tree", "photos/tree"]:
        check_tree(tmp_path / "moved" / name, tmp_path / "moved" / "photos",
                   tmp_path / "moved" / "r.h5")


@pytest.mark.deep
def test_a_tree_replaces_itself(clpipe, tmp_path, sorted_photos):
    tree, photos, r = tmp_path / "tree", tmp_path / "photos", tmp_path / "r.h5"
    ask = ["export", "r.h5", "--what", "tree", "--to", "tree"]
    assert clpipe(*ask).returncode == 0
    assert clpipe("cluster", "r.h5", "-k", 2, "--name", "two").returncode == 0
    for link in ["symlink", "hard", "symlink"]:
        assert clpipe(*ask, "--name", "two", "--link", link).returncode == 0
        entries = check_tree(tree, photos, r, "two")
    # Files that clpipe did not create are kept, and so is the tree.
    folder = entries[0].parent
    for change, undo in [((tree / "mine.txt").touch, (tree / "mine.txt").unlink),
                         ((tree / "mine").mkdir, (tree / "mine").rmdir),
                         ((folder / "mine.jpg").touch, (folder / "mine.jpg").unlink)]:
        change()
        if (tree / "mine").exists():
            (tree / "mine" / "x").touch()
        result = clpipe(*ask, "--name", "kmeans")
        check_one_error(result, 3, "tree is an earlier tree", "mine", "not from clpipe")
        if (tree / "mine").exists():
            (tree / "mine" / "x").unlink()
        undo()
        check_tree(tree, photos, r, "two")
    target = os.readlink(entries[0])
    entries[0].unlink()
    entries[0].write_bytes(b"an edited picture")
    check_one_error(clpipe(*ask, "--name", "two"), 3, entries[0].name, "has changed")
    entries[0].unlink()
    os.symlink(target, entries[0])
    (tree / "index.csv").write_text("notes")
    check_one_error(clpipe(*ask, "--name", "two"), 3, "index.csv has changed")
    (tree / "index.csv").unlink()
    assert clpipe(*ask, "--name", "kmeans").returncode == 0
    check_tree(tree, photos, r)


def test_a_tree_does_not_lose_images(clpipe, tmp_path, sorted_photos):
    ask = ["export", "r.h5", "--what", "tree", "--to"]
    assert clpipe(*ask, "copies", "--link", "copy").returncode == 0
    check_one_error(clpipe(*ask, "copies"), 3, "copies holds copies of images")
    assert clpipe(*ask, "hard", "--link", "hard").returncode == 0
    (tmp_path / "photos" / "red" / "03.jpg").unlink()
    check_one_error(clpipe(*ask, "hard"), 3, "red_03.jpg is the last name of its image")
    assert len(list((tmp_path / "hard").glob("*/*"))) == len(sorted_photos)


def test_tree_overwrites_nothing(clpipe, tmp_path, sorted_photos):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "empty").mkdir()
    tree = ["export", "r.h5", "--what", "tree", "--to"]
    check_one_error(clpipe(*tree, "full"), 3, "full", "not empty")
    check_one_error(clpipe(*tree, "file"), 3, "file", "not a directory")
    check_one_error(clpipe(*tree, "missing/tree"), 3, "missing/tree")
    assert (tmp_path / "full" / "mine").read_text() == "mine"
    assert (tmp_path / "file").read_text() == "mine"
    assert clpipe(*tree, "empty").returncode == 0
    check_tree(tmp_path / "empty", tmp_path / "photos", tmp_path / "r.h5")
    assert sorted(os.listdir(tmp_path)) == ["empty", "file", "full", "photos", "r.h5"]


def test_tree_of_missing_images(clpipe, tmp_path, sorted_photos):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "photos").rename(tmp_path / "moved")
    result = clpipe("export", tmp_path / "r.h5", "--what", "tree", "--to", "tree",
                    cwd=tmp_path / "elsewhere")
    check_one_error(result, 3, "run this in the directory from which")
    assert os.listdir(tmp_path / "elsewhere") == []
    (tmp_path / "moved").rename(tmp_path / "photos")
    (tmp_path / "photos" / "red" / "00.png").unlink()
    result = clpipe("export", "r.h5", "--what", "tree", "--to", "tree")
    assert result.returncode == 1
    assert "1 image is missing" in result.stderr and "red/00.png" in result.stderr
    assert len(list((tmp_path / "tree").glob("*/*"))) == len(sorted_photos) - 1


# Names that exFAT, FAT or NTFS refuse, with the names of their entries in a tree.
ODD = {"a:b?.png": "a_b_.png", "tab\t.png": "tab_.png", 'quote".png': "quote_.png", "p|<*>.png": "p____.png",
       "back\\slash.png": "back_slash.png", "not UTF-8 \udcff.png": "not UTF-8 _.png", "dot..": "dot__", "space ": "space_",
       "line\n.png": "line_.png", "del\x7f.png": "del_.png", "A.png": "A.png", "a.png": "a.png", "é.png": "é.png"}
LONG = ["x" * 250 + ".png", "sub/" + "y" * 250 + ".jpeg", "é" * 125 + ".png", "\U0001f600" * 61 + ".emoji.png"]


@pytest.fixture
def oddly_named(clpipe, tmp_path):
    """Images with such names and with long names, in two clusters."""
    from PIL import Image
    (tmp_path / "p" / "sub").mkdir(parents=True)
    for i, name in enumerate([*ODD, *LONG]):
        with open(os.path.join(os.fsencode(tmp_path / "p"), os.fsencode(name)), "wb") as file:
            Image.new("RGB", (40, 30), (12 * i, 240 - 14 * i, 77)).save(file, "PNG")
    result = clpipe("run", "--no-report", "p", "-k", 2, "-o", "r.h5")
    assert result.returncode == 0, result.stderr


def check_odd_tree(tree, photos):
    entries, made = {}, set()
    for row in csv.DictReader(open(tree / "index.csv", newline="")):
        path = row["path"].replace("\\xff", "\udcff")
        assert len(os.fsencode(row["entry"])) <= 255
        assert (tree / row["folder"] / row["entry"]).read_bytes() == (photos / path).read_bytes()
        entries[path] = row["entry"].split("_", 1)[1]
        made.add(f"{row['folder']}/{row['entry']}")
    assert {path: entries[path] for path in ODD} == ODD
    for path in LONG:
        assert entries[path].endswith(os.path.splitext(path)[1])
        assert len(entries[path].split("_")[0]) == 8, "the name has no digest"
    assert {str(entry.relative_to(tree)) for entry in tree.glob("*/*")} == made


@pytest.mark.deep
@pytest.mark.parametrize("link", ["symlink", "copy"])
def test_a_tree_of_odd_names(clpipe, tmp_path, oddly_named, link):
    result = clpipe("export", "r.h5", "--what", "tree", "--to", "tree", "--link", link)
    assert result.returncode == 0, result.stderr
    check_odd_tree(tmp_path / "tree", tmp_path / "p")


NO_LINKS = """
#include <errno.h>
int symlinkat(const char *from, int at, const char *to) { (void)from, (void)at, (void)to; errno = WHY; return -1; }
int linkat(int a, const char *b, int c, const char *d, int e) { (void)a, (void)b, (void)c, (void)d, (void)e; errno = WHY; return -1; }
"""


@pytest.mark.variations
@pytest.mark.parametrize("why", ["EPERM", "EOPNOTSUPP", "ENOSYS"])
def test_a_tree_where_links_are_impossible(clpipe, tmp_path, sorted_photos, why):
    """FAT, exFAT and many network file systems have no links, so only copies are possible."""
    if any(name in CLPIPE.read_bytes() for name in (b"__asan_init", b"__tsan_init")):
        pytest.skip("the sanitizers must be loaded first")
    (tmp_path / "links.c").write_text(NO_LINKS)
    subprocess.run(["cc", "-shared", "-fPIC", f"-DWHY={why}", "-o", tmp_path / "links.so", tmp_path / "links.c"], check=True)
    ask = ["export", "r.h5", "--what", "tree", "--to", "tree", "--link"]
    env = {"LD_PRELOAD": str(tmp_path / "links.so")}
    for link in ("symlink", "hard"):
        result = clpipe(*ask, link, env=env)
        check_one_error(result, 3, "--link copy")
        assert "--link symlink" not in result.stderr
        assert not (tmp_path / "tree").exists() and not list(tmp_path.glob("*.tmp*"))
    assert clpipe(*ask, "copy", env=env).returncode == 0
    check_tree(tmp_path / "tree", tmp_path / "photos", tmp_path / "r.h5")


@pytest.fixture
def exfat(tmp_path):
    """An exFAT file system in a file, if this machine can mount it."""
    image, place = tmp_path / "disk", tmp_path / "exfat"
    if os.geteuid() or not shutil.which("mkfs.exfat"):
        pytest.skip("needs root and exfatprogs")
    place.mkdir()
    image.write_bytes(bytes(8 << 20))
    subprocess.run(["mkfs.exfat", image], check=True, capture_output=True)
    loop = subprocess.run(["losetup", "-f", "--show", image], capture_output=True, text=True)
    device = loop.stdout.strip()
    if loop.returncode:
        pytest.skip("no loop device")
    try:
        if all(subprocess.run([*how, device, place], capture_output=True).returncode
               for how in (["mount", "-t", "exfat"], ["mount.exfat-fuse"]) if shutil.which(how[0])):
            pytest.skip("exFAT cannot be mounted here")
        yield place
        subprocess.run(["umount", place], check=True)
    finally:
        subprocess.run(["losetup", "-d", device], check=True)


def test_a_tree_on_exfat(clpipe, tmp_path, oddly_named, exfat):
    ask = ["export", "r.h5", "--what", "tree", "--to", exfat / "tree", "--link"]
    for link in ("symlink", "hard"):
        check_one_error(clpipe(*ask, link), 3, "use --link copy")
    result = clpipe(*ask, "copy")
    assert result.returncode == 0, result.stderr
    check_odd_tree(exfat / "tree", tmp_path / "p")
    assert os.listdir(exfat) == ["tree"]


# --- info, verify -------------------------------------------------------------------------------

@pytest.mark.parametrize("command", [["info"], ["verify"], ["export", "--what", "images"],
                                     ["repair"], ["repair", "--dry-run"]])
def test_a_truncated_file_is_reported(clpipe, finished, tmp_path, command):
    whole = finished.read_bytes()
    (tmp_path / "cut.h5").write_bytes(whole[:len(whole) // 2])
    check_one_error(clpipe(*command, "cut.h5"), 3, "cut.h5",
                    f"the file is truncated ({len(whole) // 2} of {len(whole)} bytes)")


def test_info(clpipe, finished, mixed, h5):
    result = clpipe("info", finished)
    assert (result.returncode, result.stderr) == (0, "")
    for part in [str(mixed), "images    13", "rgb_8x8x8", "512 values of float32", "counts",
                 "100 values of uint32", "failed    4", "2   unknown-format", "1   truncated",
                 "1 file that is not an image", "kmeans", "k 3 by rgb_8x8x8 (hellinger)",
                 "clpipe ingest"]:
        assert part in result.stdout
    report = json.loads(clpipe("info", finished, "--json", "-").stdout)
    assert report["images"] == 13
    assert report["parameters"] == json.loads(h5.attrs["parameters"])
    assert report["failed"] == 4
    assert report["by_reason"] == {"empty": 1, "unknown-format": 2, "truncated": 1,
                                   "not-an-image": 1}
    assert {feature["name"]: feature["dimension"] for feature in report["features"]} == {
        "rgb_8x8x8": 512, "counts": 100}
    assert report["clusters"][0]["sizes"] == list(h5["clusters/kmeans/sizes"])


def test_info_failures(clpipe, finished):
    result = clpipe("info", finished, "--failures")
    assert result.returncode == 0
    rows = [line.split("\t") for line in result.stdout.splitlines()]
    assert [(row[0], row[1]) for row in rows] == [
        ("bad/cut.jpg", "truncated"), ("bad/empty.png", "empty"),
        ("bad/text.jpg", "unknown-format"), ('bad/with, comma and "quotes".png', "unknown-format")]
    assert all(row[2] for row in rows)


def test_info_digest(clpipe, finished):
    result = clpipe("info", finished, "--digest")
    assert result.returncode == 0
    assert len(result.stdout) == 65 and int(result.stdout, 16)
    assert json.loads(clpipe("info", finished, "--digest", "--json", "-").stdout)["digest"] == \
        result.stdout.strip()


@pytest.mark.deep
@pytest.mark.parametrize("content", [b"a photograph", b"{}", b"path,source\n", b"\x93NUMPY"])
def test_files_are_replaced_on_request(clpipe, finished, tmp_path, content):
    ask = ["export", finished, "--what", "labels", "--name", "kmeans"]
    for name in ["x", "x.csv", "x.npy"]:
        (tmp_path / name).write_bytes(content)
        check_one_error(clpipe(*ask, "-o", name), 3, f"{name} exists", "--force", "-o")
        assert (tmp_path / name).read_bytes() == content
        assert clpipe(*ask, "-o", name, "--force").returncode == 0
        assert (tmp_path / name).read_bytes() != content


@pytest.mark.variations
@pytest.mark.parametrize("what", ["labels", "images", "failures", "features"])
@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl", "t.npy", "t.txt"])
def test_the_extension_gives_the_format(clpipe, finished, tmp_path, what, name):
    of = {"features": ["--feature", "counts"], "labels": ["--name", "kmeans"]}
    ask = ["export", finished, "--what", what, *of.get(what, [])]
    result = clpipe(*ask, "-o", name)
    if name == "t.npy" and what in ("images", "failures"):
        check_one_error(result, 2, "npy is only for features, labels and centroids")
        return
    assert result.returncode == 0, result.stderr
    first = (tmp_path / name).read_bytes()
    if name == "t.npy":
        assert len(numpy.load(tmp_path / name)) == 13
    else:
        word = {"t.csv": "csv", "t.tsv": "tsv", "t.jsonl": "jsonl", "t.txt": "csv"}[name]
        assert first.decode() == clpipe(*ask, "--format", word, "-o", "-").stdout
    # An empty file is replaced.
    (tmp_path / name).write_bytes(b"")
    assert clpipe(*ask, "-o", name).returncode == 0
    assert (tmp_path / name).read_bytes() == first
    # --format takes precedence over the extension.
    other = clpipe(*ask, "-o", "other.npy", "--format", "csv")
    assert other.returncode == 0 and "other.npy is written as csv" in other.stderr
    assert (tmp_path / "other.npy").read_bytes().startswith(b"path,source,")


def test_verify(clpipe, finished, tmp_path):
    result = clpipe("verify", finished)
    assert (result.returncode, result.stdout) == (0, f"{finished}: no problems found\n")
    damaged = tmp_path / "damaged.h5"
    shutil.copy(finished, damaged)
    with h5py.File(damaged, "r+") as file:
        file["features/counts"][3, 5] += 1
    result = clpipe("verify", damaged)
    assert result.returncode == 1, result.stderr
    assert "counts" in result.stdout
    assert "clpipe repair recovers the intact rows" in result.stdout.splitlines()[-1]
    report = json.loads(clpipe("verify", damaged, "--json", "-").stdout)
    assert report["ok"] is False and len(report["broken"]) == len(result.stdout.splitlines()) - 1


@pytest.mark.parametrize("command", [["info"], ["verify"], ["export", "--what", "images"],
                                     ["assign"]])
def test_files_that_are_not_results(clpipe, tmp_path, command):
    (tmp_path / "text.h5").write_text("this is no HDF5 file\n" * 100)
    with h5py.File(tmp_path / "foreign.h5", "w") as file:
        file["data"] = numpy.zeros((3, 4))
    for name in ["text.h5", "foreign.h5"]:
        more = [name] if command[0] == "assign" else []
        check_one_error(clpipe(*command, name, *more), 3, name)

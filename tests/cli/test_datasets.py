"""The sample of draw_sample, the recipes of datasets/fetch, datasets/damage, and misuse of tools/quickstart."""
import collections
import json
import os
import re
import subprocess

import pytest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
CLPIPE = os.path.abspath(os.environ.get("CLPIPE", os.path.join(ROOT, "build/release/clpipe")))
DRAW = os.path.join(os.path.dirname(CLPIPE), "draw_sample")
CLASSES = ["desert", "forest", "meadow", "mountains", "night", "sunset"]

# The reasons with which each broken file may fail.
BROKEN = {
    "empty.jpg": {"empty"},
    "text in disguise.jpg": {"unknown-format"},
    "sixty thousand squared.png": {"too-large"},
    "truncated.jpg": {"truncated"},
    "truncated.png": {"truncated"},
    "header only.jpg": {"truncated", "corrupt"},
    "flipped bit.png": {"corrupt"},
}


def run(*command, **options):
    return subprocess.run(command, text=True, capture_output=True, timeout=120, **options)


def read_tree(folder):
    tree = {}
    for parent, _, names in os.walk(os.fsencode(folder)):
        for name in names:
            path = os.path.join(parent, name)
            with open(path, "rb") as file:
                tree[os.path.relpath(path, os.fsencode(folder))] = file.read()
    return tree


def read_labels(folder):
    with open(os.path.join(folder, "labels.tsv"), encoding="utf-8") as file:
        return dict(line.rstrip("\n").split("\t") for line in file)


def raw_path(text):
    """The bytes of a path as written in labels.tsv and by clpipe."""
    return re.sub(rb"\\x([0-9a-f]{2})", lambda m: bytes([int(m[1], 16)]), text.encode())


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    folder = tmp_path_factory.mktemp("draw") / "the sample"
    subprocess.run([DRAW, folder], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def result(sample, tmp_path_factory):
    folder = tmp_path_factory.mktemp("result")
    done = run(CLPIPE, "run", "--no-report", sample, "-o", folder / "r.h5", "-k", "6", "--feature",
               "rgb:bins=8x8x8", "--json", folder / "r.json", "--progress", "never")
    assert done.returncode == 1, done.stderr  # because of the broken files
    return folder


@pytest.mark.slow
def test_same_bytes_every_time(sample, tmp_path):
    assert run(DRAW, tmp_path / "again").returncode == 0
    assert read_tree(sample) == read_tree(tmp_path / "again")


def test_draw_misuse(tmp_path):
    assert run(DRAW).returncode == 2
    assert run(DRAW, "--help").returncode == 2
    missing = run(DRAW, tmp_path / "not" / "there")
    assert missing.returncode == 3
    assert "No such file or directory" in missing.stderr


@pytest.mark.deep
def test_labels_name_every_picture(sample):
    labels = read_labels(sample)
    assert collections.Counter(labels.values()) == {name: 16 for name in CLASSES}
    files = {path for path in read_tree(sample) if not path.startswith(b"broken/")}
    assert {raw_path(path) for path in labels} == files - {b"labels.tsv"}
    assert [raw_path(p) for p in labels] == sorted(raw_path(p) for p in labels)


def test_pictures_are_of_many_kinds(sample):
    image = pytest.importorskip("PIL.Image")
    kinds = collections.Counter()
    for path in read_labels(sample):
        with image.open(os.path.join(os.fsencode(sample), raw_path(path))) as picture:
            picture.load()
            kinds[picture.format, picture.mode] += 1
            kinds["orientation", picture.getexif().get(274)] += 1
            kinds["progressive"] += bool(picture.info.get("progressive"))
            kinds["interlaced"] += bool(picture.info.get("interlace"))
            kinds["transparent"] += "transparency" in picture.info
    for kind in [("JPEG", "RGB"), ("JPEG", "L"), ("JPEG", "CMYK"), ("PNG", "RGB"), ("PNG", "RGBA"),
                 ("PNG", "P"), ("PNG", "L"), ("orientation", 3), ("orientation", 5),
                 ("orientation", 6), ("orientation", 8), "progressive", "interlaced",
                 "transparent"]:
        assert kinds[kind] > 0, kind


def test_clpipe_ingests_every_picture(sample, result):
    h5py = pytest.importorskip("h5py")
    with h5py.File(result / "r.h5") as file:
        paths = [path.decode() for path in file["images/path"][:]]
        assert paths == list(read_labels(sample))
        failures = {path.decode(): reason.decode() for path, reason in
                    zip(file["failures/path"][:], file["failures/reason"][:])}
    assert failures.pop("broken/notes.txt", "not-an-image") == "not-an-image"
    assert failures.pop("labels.tsv", "not-an-image") == "not-an-image"
    assert set(failures) == {"broken/" + name for name in BROKEN}
    for name, reasons in BROKEN.items():
        assert failures["broken/" + name] in reasons, name
    report = json.loads((result / "r.json").read_text())["ingest"]
    assert (report["images_ok"], report["images_failed"]) == (len(paths), len(BROKEN))
    assert report["files_not_images"] == 2


def test_clusters_find_the_classes(sample, result):
    h5py = pytest.importorskip("h5py")
    truth = list(read_labels(sample).values())
    with h5py.File(result / "r.h5") as file:
        labels = file["clusters/kmeans/labels"][:]
    most_common = [collections.Counter(t for t, l in zip(truth, labels) if l == cluster)
                   .most_common(1)[0][1] for cluster in set(labels)]
    # One picture in twelve is grey, so its colours do not tell its class.
    assert sum(most_common) / len(truth) > 0.75


def test_recipes_and_digests_agree():
    def rows(name):
        with open(os.path.join(ROOT, "datasets", name), encoding="utf-8") as file:
            return [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]

    recipes = rows("recipes.tsv")
    assert all(len(row) == 4 for row in recipes)
    names = {row[0] for row in recipes}
    for name, _, images, digest in rows("digests.tsv"):
        assert name in names
        assert int(images) > 0
        assert re.fullmatch("[0-9a-f]{64}", digest)
    assert {row[0] for row in rows("digests.tsv")} == names
    listed = run(os.path.join(ROOT, "datasets/fetch"), "--list")
    assert listed.returncode == 0
    assert {line.split()[0] for line in listed.stdout.splitlines()} == names


def test_fetch_misuse(tmp_path):
    fetch = os.path.join(ROOT, "datasets/fetch")
    assert run(fetch).returncode == 2
    unknown = run(fetch, "nothing", tmp_path / "x")
    assert unknown.returncode == 2 and "nothing" in unknown.stderr
    # A folder that was not made by fetch is left unchanged.
    other = run(fetch, "mate", tmp_path)
    assert other.returncode == 2 and "not made by fetch" in other.stderr


def test_fetch_sees_changed_images(tmp_path):
    (tmp_path / "class").mkdir()
    (tmp_path / "class" / "a.png").write_bytes(b"not what it was")
    version = next(line.split("\t")[1] for line in
                   open(os.path.join(ROOT, "datasets/digests.tsv"), encoding="utf-8")
                   if line.startswith("mate\t"))
    (tmp_path / ".fetched").write_text("mate\t%s\n" % version)
    changed = run(os.path.join(ROOT, "datasets/fetch"), "mate", tmp_path)
    assert changed.returncode == 1 and "expected" in changed.stderr
    # A version without a recorded digest is reported as such.
    (tmp_path / ".fetched").write_text("mate\t0.0\n")
    unknown = run(os.path.join(ROOT, "datasets/fetch"), "mate", tmp_path)
    assert unknown.returncode == 0 and "not in digests.tsv" in unknown.stdout


def test_damage_is_repeatable(sample, tmp_path):
    damage = os.path.join(ROOT, "datasets/damage")
    for name in "one", "two":
        done = run(damage, sample / "sunset", tmp_path / name, "--rounds", "3")
        assert done.stdout.strip() == str(3 * 16)
    assert read_tree(tmp_path / "one") == read_tree(tmp_path / "two")
    other = run(damage, sample / "sunset", tmp_path / "three", "--rounds", "3", "--seed", "2")
    assert other.returncode == 0
    assert read_tree(tmp_path / "one") != read_tree(tmp_path / "three")


def test_quickstart_misuse(tmp_path):
    quickstart = os.path.join(ROOT, "tools/quickstart")
    missing = run(quickstart, tmp_path / "no such folder")
    assert missing.returncode == 2 and "no such folder" in missing.stderr
    assert run(quickstart, "--nonsense").returncode == 2
    assert "quickstart" in run(quickstart, "--help").stdout

"""run, ingest, cluster and assign on small sets from beginning to end: output for people, and JSON."""

import json
import os
import pty
import re
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path

import h5py
import numpy
import pytest
from PIL import Image

from conftest import CLPIPE, FEATURE, check_one_error, draw_photos, error_lines, run_clpipe

INGEST_KEYS = {"images_ok", "images_failed", "images_unchanged", "images_resumed",
               "files_not_images", "bytes_read", "pixels", "seconds", "images_per_second", "stages",
               "files_compared", "files_differ", "bottleneck", "jpeg", "device", "memory_bytes", "peak_rss_bytes", "output"}
FOLDER_KEYS = {"folders", "purity", "nmi", "ari", "words"}  # only if images are in two or more folders
CLUSTER_KEYS = {"name", "feature", "metric", "k", "n_init", "n", "d", "iterations", "iterations_resumed",
                "converged", "inertia", "pruned", "seconds", "seconds_read", "seconds_build", "seconds_init", "seconds_iterate", "device", "sizes", "output"}


def paths_of(file):
    return [path.decode() if isinstance(path, bytes) else path for path in file["images/path"]]


def inode(path):
    status = os.stat(path)
    return status.st_ino, status.st_mtime_ns


# --- run --------------------------------------------------------------------------------------

def test_run(clpipe, photos, tmp_path):
    result = clpipe("run", photos, "-k", 3, "--json", "report.json")
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    report = json.loads((tmp_path / "report.json").read_text())
    assert set(report) == {"ingest", "cluster", "report", "wall"}
    assert set(report["ingest"]) == INGEST_KEYS
    assert set(report["cluster"]) == CLUSTER_KEYS | FOLDER_KEYS
    assert [stage["name"] for stage in report["ingest"]["stages"]] == \
        ["walk", "decode", "upload", "histogram", "store"]
    assert set(report["ingest"]["stages"][0]) == {"name", "busy_seconds", "starved_seconds",
                                                  "blocked_seconds"}
    assert report["ingest"]["images_ok"] == 13
    assert report["ingest"]["output"] == report["cluster"]["output"] == "clpipe.h5"
    assert (report["cluster"]["k"], report["cluster"]["n"], report["cluster"]["d"]) == (3, 13, 512)
    assert sum(report["cluster"]["sizes"]) == 13
    with h5py.File(tmp_path / "clpipe.h5", "r") as file:
        paths = paths_of(file)
        labels = file["clusters/kmeans/labels"][:]
        assert file["clusters/kmeans"].attrs["metric"] in ("hellinger", b"hellinger")
    # Each of the three colours is a cluster.
    colours = {path: path.split("/")[0] for path in paths}
    assert len({(colours[path], label) for path, label in zip(paths, labels)}) == 3
    for part in ["13 images", "images/s", "3 clusters of 13 images by rgb_8x8x8 (hellinger)",
                 "converged", "clpipe.h5", "clpipe export clpipe.h5", "nearest to its centre"]:
        assert part in result.stdout
    assert sorted(os.listdir(tmp_path)) == ["clpipe-report", "clpipe.h5", "report.json"]


def test_run_again_computes_nothing(clpipe, photos, tmp_path):
    first = clpipe("run", photos, "-k", 3)
    assert first.returncode == 0, first.stderr
    before = inode(tmp_path / "clpipe.h5")
    again = clpipe("run", photos, "-k", 3, "--json", "-")
    assert again.returncode == 0, again.stderr
    assert inode(tmp_path / "clpipe.h5") == before
    assert "nothing new" in again.stderr and "up to date" in again.stderr
    report = json.loads(again.stdout)
    assert report["ingest"]["images_unchanged"] == 13
    assert report["cluster"]["k"] == 3 and sum(report["cluster"]["sizes"]) == 13


def shapes(path):
    with h5py.File(path, "r") as file:
        return {name: file[f"clusters/{name}/centroids"].shape[0] for name in file["clusters"]}


@pytest.mark.deep
def test_run_replaces_its_own_result(clpipe, photos, tmp_path):
    """run replaces its own result under the default name; named results and those of `cluster` are kept."""
    x = tmp_path / "clpipe.h5"
    assert clpipe("run", photos, "-k", 3).returncode == 0
    assert clpipe("run", photos, "-k", 4).returncode == 0
    assert shapes(x) == {"kmeans": 4}
    before = inode(x)
    assert clpipe("run", photos, "-k", 4).returncode == 0 and inode(x) == before
    assert clpipe("run", photos, "-k", 2, "--name", "two").returncode == 0
    refused = clpipe("run", photos, "-k", 3, "--name", "two")
    assert refused.returncode == 2 and "k: the file has 2; the command asks for 3" in refused.stderr
    assert clpipe("cluster", "clpipe.h5", "-k", 5, "--force").returncode == 0
    before = inode(x)
    refused = clpipe("run", photos, "-k", 3)
    assert refused.returncode == 2 and "--force" in refused.stderr
    assert error_lines(refused)[-1].startswith("clpipe: clpipe.h5 already holds a different /clusters/kmeans")
    assert inode(x) == before and shapes(x) == {"kmeans": 5, "two": 2}
    assert clpipe("run", photos, "-k", 3, "--force").returncode == 0
    assert clpipe("run", photos, "-k", 2).returncode == 0
    # A renamed clustering belongs to the user; another one that gets the default name does not belong to run.
    assert clpipe("rename", "clpipe.h5", "kmeans", "mine").returncode == 0
    assert clpipe("rename", "clpipe.h5", "two", "kmeans").returncode == 0
    assert clpipe("run", photos, "-k", 3).returncode == 2
    assert shapes(x) == {"kmeans": 2, "mine": 2}


def n_init_of(path, name="kmeans"):
    with h5py.File(path, "r") as file:
        return json.loads(file[f"clusters/{name}"].attrs["parameters"])["n_init"]


@pytest.mark.deep
def test_run_restarts_if_cheap(clpipe, photos, tmp_path):
    """`cluster` does not restart."""
    result = clpipe("run", photos, "-k", 3, "--json", "-")
    assert json.loads(result.stdout)["cluster"]["n_init"] == 10
    assert "(best of 10 runs)" in result.stderr and n_init_of(tmp_path / "clpipe.h5") == 10
    assert clpipe("cluster", "clpipe.h5", "-k", 3, "--name", "once").returncode == 0
    assert n_init_of(tmp_path / "clpipe.h5", "once") == 1
    for options, restarts in [(["--n-init", 2], 2), (["-k", "2:4"], 10), (["--mini-batch", 5], 1)]:
        assert clpipe("run", photos, "-k", 3, *options, "-o", "x.h5", "--force").returncode == 0
        assert n_init_of(tmp_path / "x.h5") == restarts, options
    # Mini-batches are stored, and not reused if another method is requested.
    assert clpipe("run", photos, "-k", 3, "--method", "lloyd", "-o", "x.h5", "--force").returncode == 0
    assert n_init_of(tmp_path / "x.h5") == 10


def test_restarts_of_an_earlier_run_are_kept(clpipe, photos, tmp_path):
    """A file that was made with another number of restarts is up to date unless a number is requested."""
    assert clpipe("run", photos, "-k", 3, "--n-init", 1).returncode == 0
    before = inode(tmp_path / "clpipe.h5")
    result = clpipe("run", photos, "-k", 3)
    assert result.returncode == 0 and "up to date" in result.stdout
    assert inode(tmp_path / "clpipe.h5") == before and n_init_of(tmp_path / "clpipe.h5") == 1
    assert clpipe("run", photos, "-k", 4).returncode == 0
    assert n_init_of(tmp_path / "clpipe.h5") == 10


def test_a_cluster_that_holds_most_images(clpipe, tmp_path):
    """Ten red pictures and three others: the text says that one cluster is large, and suggests next steps."""
    random = numpy.random.default_rng(3)
    (tmp_path / "p").mkdir()
    for i in range(13):
        tint = [(200, 40, 30), (30, 180, 60), (40, 60, 210)][0 if i < 10 else 1 + i % 2]
        pixels = numpy.clip(numpy.array(tint) + random.normal(0, 8, (30, 40, 3)), 0, 255)
        Image.fromarray(pixels.astype("uint8")).save(tmp_path / "p" / f"{i:02}.png")
    result = clpipe("run", "p", "-k", 3)
    assert re.search(r"note +cluster \d holds 77 % of the images: a larger k or another feature",
                     result.stdout)
    assert "--feature hsv --add" in result.stdout and "-k 2:6 (tries each k)" in result.stdout
    result = clpipe("run", "p", "-k", "2:5", "--name", "several", "--json", "s.json")
    sweep = json.loads((tmp_path / "s.json").read_text())["cluster"]["sweep"]["values"]
    ranks = sorted(sweep, key=lambda value: -value["silhouette"])
    assert re.search(rf"note +cluster \d holds 77 % of the images; the next best k is "
                     rf"{ranks[1]['k']} \(silhouette {ranks[1]['silhouette']:.4f}\): "
                     rf"-k {ranks[1]['k']}", result.stdout), result.stdout
    assert "tries each k" not in result.stdout


@pytest.mark.deep
def test_default_k_fits_a_small_directory(clpipe, tmp_path):
    draw_photos(tmp_path / "few", 3)  # also makes a copy of one of them
    result = clpipe("run", "few")
    assert result.returncode == 0, result.stderr
    assert "k is 2 instead of 10 for 4 images; -k chooses another" in result.stderr
    again = clpipe("run", "few", "--json", "-")
    assert again.returncode == 0, again.stderr
    assert "up to date" in again.stderr
    assert json.loads(again.stdout)["cluster"]["k"] == 2
    # Sixteen images with only two different contents.
    (tmp_path / "same").mkdir()
    for i in range(16):
        shutil.copy(tmp_path / "few" / ("red/00.png" if i % 2 else "green/01.jpg"),
                    tmp_path / "same" / f"{i}.{'png' if i % 2 else 'jpg'}")
    assert json.loads(clpipe("run", "same", "-o", "same.h5", "--json",
                             "-").stdout)["cluster"]["k"] == 2
    (tmp_path / "same" / "5.png").unlink()
    shutil.rmtree(tmp_path / "few" / "green")
    result = clpipe("run", "same", "--include", "*.png", "-o", "one.h5")
    assert result.returncode == 0, result.stderr
    assert "k is 1 instead of 10: there is only 1 different image" in result.stderr
    # A k that was requested is not reduced.
    asked = clpipe("run", "few", "-k", 10, "-o", "other.h5")
    assert asked.returncode == 3
    assert "k is 10" in asked.stderr.splitlines()[-1]


def draw_alike(directory, what):
    """Draws pictures that are all alike in some respect."""
    directory.mkdir()
    if what in ("one", "copies"):
        draw_photos(directory / "drawn", 3)
        first = sorted(directory.rglob("*.jpg"))[0].read_bytes()
        shutil.rmtree(directory / "drawn")
        for i in range(1 if what == "one" else 30):
            (directory / f"{i}.jpg").write_bytes(first)
    for i in range(70 if what in ("black", "white") else 0):
        size = (64, 48) if what == "black" else (60 + i, 90)
        Image.new("L", size, 0 if what == "black" else 255).save(directory / f"{i}.png")


@pytest.mark.variations
@pytest.mark.parametrize("what", ["one", "copies", pytest.param("black", marks=pytest.mark.deep),
                                  pytest.param("white", marks=pytest.mark.deep)])
def test_pictures_that_are_all_alike(clpipe, tmp_path, what):
    """They have no principal components, so the default is a single cluster."""
    draw_alike(tmp_path / "p", what)
    result = clpipe("run", "p", "--preset", "fast", "--json", "-")
    assert result.returncode == 0, result.stderr
    assert "k is 1 instead of 10" in result.stderr and "no principal components" in result.stderr
    report = json.loads(result.stdout)
    assert report["cluster"]["k"] == 1 and report["report"]["written"]
    assert (tmp_path / "clpipe-report" / "index.html").is_file()
    again = clpipe("run", "p")
    assert again.returncode == 0 and "up to date" in again.stdout
    assert clpipe("cluster", "clpipe.h5", "-k", 1, "--name", "one").returncode == 0
    asked = clpipe("cluster", "clpipe.h5", "-k", 1, "--pca", 4, "--name", "asked")
    assert asked.returncode == 3 and "all rows are equal" in asked.stderr
    more = clpipe("cluster", "clpipe.h5", "-k", 3, "--name", "three")
    assert more.returncode == 3 and error_lines(more)[-1].startswith("clpipe: k is 3, but")
    assert "no problems" in clpipe("verify", "clpipe.h5").stdout


def parameters_of(path, name="kmeans"):
    with h5py.File(path, "r") as file:
        return json.loads(file[f"clusters/{name}"].attrs["parameters"])


@pytest.mark.deep
def test_omitted_options_come_from_the_file(clpipe, tmp_path):
    """This includes options of the clustering: one that was made with other options is not silently replaced."""
    draw_photos(tmp_path / "p", 13)
    options = ["-k", 3, "--metric", "cosine", "--seed", 7, "--tol", "0.01", "--max-iter", 50]
    assert clpipe("run", "p", *options, "-o", "x.h5").returncode == 0
    before, made = inode(tmp_path / "x.h5"), parameters_of(tmp_path / "x.h5")
    for same in ([], FEATURE, ["--cluster-feature", "rgb_8x8x8"]):
        result = clpipe("run", "p", "-o", "x.h5", *same)
        assert result.returncode == 0 and "up to date" in result.stdout, result.stderr
        assert inode(tmp_path / "x.h5") == before
    assert "notice: k is 3, as in x.h5; -k chooses another" in result.stderr
    # `cluster` finds it without the number of restarts, which run chose by default.
    found = clpipe("cluster", "x.h5", *options)
    assert found.returncode == 0 and "up to date" in found.stdout, found.stderr
    # With more images, the same clustering is computed for all of them.
    draw_photos(tmp_path / "p" / "more", 13)
    assert clpipe("run", "p", "-o", "x.h5").returncode == 0
    assert parameters_of(tmp_path / "x.h5") == made
    # Another k is applied and reported; all other options remain the same.
    other = clpipe("run", "p", "-k", 4, "-o", "x.h5")
    assert other.returncode == 0
    assert ("notice: /clusters/kmeans of x.h5 is replaced (k: the file has 3; the command asks for 4)"
            in other.stderr)
    assert parameters_of(tmp_path / "x.h5") == {**made, "k": 4}
    refused = clpipe("cluster", "x.h5", *options)
    assert refused.returncode == 2 and "(k: the file has 4; the command asks for 3)" in refused.stderr
    # A default k is chosen again.
    draw_photos(tmp_path / "q", 7)
    assert clpipe("run", "q", "-o", "y.h5").returncode == 0
    first = parameters_of(tmp_path / "y.h5")["k"]
    draw_photos(tmp_path / "q" / "more", 31)
    grown = clpipe("run", "q", "-o", "y.h5")
    assert parameters_of(tmp_path / "y.h5")["k"] > first and "is replaced (k:" in grown.stderr


@pytest.mark.deep
def test_a_preset_for_a_file_that_began_with_few_images(clpipe, tmp_path):
    draw_photos(tmp_path / "p", 11)
    few = len(list((tmp_path / "p").rglob("*.*")))
    assert few < 64
    first = clpipe("run", "p", "--preset", "good")
    assert first.returncode == 0 and "too few to learn" in first.stderr
    assert f"of {few} images by oplbp, hsv, hog" in first.stdout  # this preset cannot be requested
    again = clpipe("run", "p", "--preset", "good")
    assert again.returncode == 0 and "nothing new" in again.stdout
    assert "keeps the features for few images; --add adds those of preset good" in again.stderr
    random = numpy.random.default_rng(5)
    for i in range(64):
        Image.fromarray(random.integers(0, 256, (40, 40, 3), "u1")).save(tmp_path / "p" / f"{i}.png")
    before = inode(tmp_path / "clpipe.h5")
    for command in ("run", "ingest"):
        refused = clpipe(command, "p", "--preset", "good", "-o", "clpipe.h5")
        assert refused.returncode == 2 and inode(tmp_path / "clpipe.h5") == before
        assert error_lines(refused)[-1].endswith(
            "clpipe.h5 has the features for few images, not those of preset good; to add it: "
            f"clpipe {command} p --preset good -o clpipe.h5 --add")
    assert clpipe("run", "p").returncode == 0  # nothing is requested, so the file stays the same
    assert clpipe("run", "p", "--preset", "good").returncode == 2
    added = clpipe("run", "p", "--preset", "good", "--add")
    assert added.returncode == 0, added.stderr
    assert "by preset good" in added.stdout
    again = clpipe("run", "p", "--preset", "good")
    assert again.returncode == 0 and "nothing new" in again.stdout and "up to date" in again.stdout


@pytest.mark.deep
def test_more_clusters_than_files(clpipe, photos, tmp_path):
    """The error is reported before the work."""
    for k in (500, "2:500"):
        result = clpipe("run", photos, "-k", k, "--limit", 9)
        assert result.returncode == 3 and "images" not in result.stdout
        assert error_lines(result) == ["clpipe: k is 500, but there are only 9 files; choose a smaller k"]
        assert os.listdir(tmp_path) == []
    # If only reading the images shows it, the error comes later and says that the features are kept.
    (tmp_path / "p").mkdir()
    for i in range(4):
        Image.new("RGB", (30, 20), "red" if i else "blue").save(tmp_path / "p" / f"{i}.png")
    result = clpipe("run", "p", "-k", 3)
    assert result.returncode == 3
    assert error_lines(result)[-1] == ("clpipe: k is 3, but there are only 2 distinct rows; choose a "
                                       "smaller k (the features are kept in clpipe.h5)")
    (tmp_path / "empty").mkdir()
    assert "too few" not in clpipe("run", "empty", "-o", "e.h5").stderr


def test_an_interruption_says_what_to_do(clpipe, tmp_path):
    numpy.save(tmp_path / "rows.npy", numpy.random.default_rng(1).normal(size=(6000, 700)).astype("f4"))
    result = clpipe("cluster", "rows.npy", "-k", 3, "--pca", 200, "--max-time", "0.05", "-o", "r.h5")
    assert result.returncode == 4 and error_lines(result)[-1].endswith("; run the same command again")


def test_descending_range(clpipe, photos):
    result = clpipe("run", photos, "-k", "5:2")
    assert result.returncode == 2 and "A:B:STEP with A below B, not '5:2'" in result.stderr


def next_command(result):
    """The words of the command that a summary proposes, without the program name."""
    line = [line for line in result.stdout.splitlines() if line.startswith("  next ")][-1]
    assert line.split()[1] == "clpipe"
    return shlex.split(line)[2:]


@pytest.mark.deep
@pytest.mark.parametrize("features", [[], ["--feature", "hsv", "--feature", "mine=gray:bins=8"]])
def test_the_proposed_commands_work(clpipe, photos, features):
    """From ingest to one folder per cluster, using only the commands that each step proposes."""
    ingest = clpipe("ingest", photos, "-o", "odd name's.h5", *features)
    assert ingest.returncode == 0, ingest.stderr
    cluster = clpipe(*next_command(ingest))
    assert cluster.returncode == 0, cluster.stderr
    tree = clpipe(*next_command(cluster))
    assert tree.returncode == 0, tree.stderr
    added = clpipe("ingest", photos, "-o", "odd name's.h5", *features, "--add", "--feature",
                   "gray:bins=9")
    assert added.returncode == 0, added.stderr
    assert clpipe(*next_command(added), "--name", "more").returncode == 0


def test_clusters_in_a_separate_file(clpipe, finished, tmp_path):
    """The new file starts without clusters, even if the input has some."""
    for k in (3, 2):
        result = clpipe("cluster", finished, "-k", k, "--feature", "rgb_8x8x8", "-o", f"{k}.h5")
        assert result.returncode == 0, result.stderr
        with h5py.File(tmp_path / f"{k}.h5") as file:
            assert file["clusters/kmeans/sizes"].shape == (k,)
        labels = clpipe(*next_command(result))
        assert labels.returncode == 0, labels.stderr
        assert len(labels.stdout.splitlines()) == 14


@pytest.mark.slow
def test_building_kernels_is_no_bottleneck(clpipe, photos, tmp_path):
    (tmp_path / "cold").mkdir()
    cold = {"POCL_CACHE_DIR": tmp_path / "cold", "CLPIPE_CACHE_DIR": tmp_path / "cold"}
    result = clpipe("ingest", photos, "-o", "out.h5", env=cold)
    assert result.returncode == 0, result.stderr
    assert "no stage was busy" in result.stdout and "-bound" not in result.stdout


def test_new_images_are_added_and_clustered(clpipe, tmp_path):
    draw_photos(tmp_path / "photos")
    assert clpipe("run", "photos", "-k", 3).returncode == 0
    shutil.copy(tmp_path / "photos/blue/02.jpg", tmp_path / "photos/zz.jpg")
    result = clpipe("run", "photos", "-k", 3, "--json", "-")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert (report["ingest"]["images_ok"], report["ingest"]["images_unchanged"]) == (14, 13)
    assert report["cluster"]["n"] == 14


@pytest.mark.deep
def test_the_first_feature_is_clustered(clpipe, photos, tmp_path):
    result = clpipe("run", photos, "-k", 3, "--feature", "zz=gray:bins=64", "--feature", "aa=rgb")
    assert result.returncode == 0, result.stderr
    assert "by zz (hellinger)" in result.stdout
    result = clpipe("run", photos, "-k", 3, "--feature", "zz=gray:bins=64", "--feature", "aa=rgb",
                    "--cluster-feature", "aa", "--name", "second")
    assert "by aa (hellinger)" in result.stdout


def test_failures_are_reported(clpipe, mixed, tmp_path):
    result = clpipe("run", mixed, "-k", 3, "-o", "my photos.h5")
    assert result.returncode == 1, result.stderr
    assert re.search(r"failed +4 +unknown-format 2, truncated 1|"
                     r"failed +4 +unknown-format 2, empty 1, truncated 1", result.stdout)
    assert re.search(r"skipped +1 file that is not an image", result.stdout)
    assert "clpipe info 'my photos.h5' --failures" in result.stdout
    assert clpipe("run", mixed, "-k", 3, "-o", "my photos.h5").returncode == 1


def test_quiet(clpipe, photos):
    result = clpipe("run", photos, "-k", 3, "-q")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_json_is_the_only_output(clpipe, photos):
    result = clpipe("ingest", photos, "-o", "x.h5", "--json=-")
    assert set(json.loads(result.stdout)) == INGEST_KEYS | {"wall"}
    assert "13 images" in result.stderr


def test_dry_run(clpipe, mixed, tmp_path):
    result = clpipe("ingest", mixed, "--dry-run", "--json", "-")
    assert result.returncode == 1
    report = json.loads(result.stdout)
    assert set(report) == INGEST_KEYS | {"wall"}
    assert report["output"] is None and report["device"] is None
    assert report["images_ok"] + report["images_failed"] == 17
    assert os.listdir(tmp_path) == []


def test_strict(clpipe, mixed, tmp_path):
    result = clpipe("ingest", mixed, "-o", "x.h5", "--strict")
    assert result.returncode == 1
    assert "stopping at the first failure" in error_lines(result)[0] and "bad/" in error_lines(result)[0]
    assert not (tmp_path / "x.h5").exists()
    assert clpipe("ingest", mixed, "-o", "x.h5", "-q").returncode == 1
    result = clpipe("ingest", mixed, "-o", "x.h5", "--strict")
    assert result.returncode == 1 and re.search(r"unchanged +\d+ already in the file", result.stdout), result.stdout


@pytest.mark.deep
def test_parameters_and_command_are_recorded(clpipe, photos, tmp_path):
    result = clpipe("ingest", photos, "-o", "x.h5", "--feature", "a=gray:bins=10", "--feature",
                    "rgb:bins=8x8x8,grid=2x2", "--normalize=hellinger", "--exclude", "*b c*",
                    "--include", "*.png", "--include=*.jpg", "--decode-scale", "2")
    assert result.returncode == 0, result.stderr
    with h5py.File(tmp_path / "x.h5", "r") as file:
        text = file.attrs["parameters"]
        command = file["runs/0" if "0" in file["runs"] else "runs/1"].attrs["command"]
    text = text.decode() if isinstance(text, bytes) else text
    command = command.decode() if isinstance(command, bytes) else command
    parameters = json.loads(text)
    assert list(parameters) == ["features", "alpha", "max_pixels", "max_scans", "decode_scale",
                                "follow_symlinks", "hidden", "include", "exclude", "limit"]
    assert parameters["features"] == ["a=gray:bins=10,grid=1x1,normalize=hellinger",
                                      "rgb_8x8x8_2x2=rgb:bins=8x8x8,grid=2x2,normalize=hellinger"]
    assert parameters["include"] == ["*.png", "*.jpg"] and parameters["exclude"] == ["*b c*"]
    assert parameters["decode_scale"] == 2
    assert text == json.dumps(parameters, separators=(",", ":"))
    assert "'*b c*'" in command and command.endswith("--decode-scale 2")


def test_lists(clpipe, photos, tmp_path):
    names = ["red/00.png", "green/01.jpg", "red/00.png"]
    (tmp_path / "list").write_text("\n".join(str(photos / name) for name in names) + "\n")
    assert clpipe("ingest", "@list", "-o", "a.h5").returncode == 0
    with open(tmp_path / "list") as stdin:
        assert clpipe("ingest", "-", "-o", "b.h5", stdin=stdin).returncode == 0
    for output in ["a.h5", "b.h5"]:
        with h5py.File(tmp_path / output, "r") as file:
            assert paths_of(file) == [str(photos / name) for name in names[:2]]


# --- cluster, assign ----------------------------------------------------------------------------

@pytest.fixture(scope="module")
def mixture():
    random = numpy.random.default_rng(3)
    centres = random.normal(0, 10, (5, 20))
    labels = numpy.arange(500) % 5
    return (centres[labels] + random.normal(0, 0.5, (500, 20))).astype(numpy.float32), labels


def same_partition(a, b):
    return len(set(zip(a, b))) == len(set(a)) == len(set(b))


def test_cluster_npy(clpipe, tmp_path, mixture):
    rows, labels = mixture
    numpy.save(tmp_path / "rows.npy", rows)
    check_one_error(clpipe("cluster", "rows.npy", "-k", 5), 2, "-o R.h5")
    result = clpipe("cluster", "rows.npy", "-k", 5, "-o", "r.h5", "--json", "-")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert set(report) == CLUSTER_KEYS | {"wall"}
    assert (report["n"], report["d"], report["output"]) == (500, 20, "r.h5")
    assert report["sizes"] == [100] * 5
    assert "5 clusters of 500 rows by rows.npy (euclidean)" in result.stderr
    with h5py.File(tmp_path / "r.h5", "r") as file:
        assert same_partition(file["clusters/kmeans/labels"][:], labels)
    before = inode(tmp_path / "r.h5")
    again = clpipe("cluster", "rows.npy", "-k", 5, "-o", "r.h5")
    assert again.returncode == 0 and "up to date" in again.stdout
    assert inode(tmp_path / "r.h5") == before
    other = clpipe("cluster", "rows.npy", "-k", 5, "-o", "r.h5", "--seed", 1)
    check_one_error(other, 2, "seed: the file has 0; the command asks for 1", "--force")
    more = clpipe("cluster", "rows.npy", "-k", 2, "-o", "r.h5", "--name", "two")
    assert more.returncode == 0, more.stderr
    with h5py.File(tmp_path / "r.h5", "r") as file:
        assert set(file["clusters"]) == {"kmeans", "two"}
    labels_csv = clpipe("export", "r.h5", "--what", "labels", "--name", "two").stdout
    assert labels_csv.startswith("row,label,distance,squared_distance\n0,")
    rows[0] += 1
    numpy.save(tmp_path / "rows.npy", rows)
    check_one_error(clpipe("cluster", "rows.npy", "-k", 5, "-o", "r.h5"), 2, "other rows")


@pytest.mark.variations
@pytest.mark.parametrize("dtype", ["f2", "f4", "<f8", ">f8", "i2", "u1", "i8"])
def test_cluster_foreign_hdf5(clpipe, tmp_path, mixture, dtype):
    rows, labels = mixture
    with h5py.File(tmp_path / "foreign.h5", "w") as file:
        file.create_dataset("deep/vectors", data=(rows + 100).astype(dtype), chunks=(64, 7),
                            compression="gzip")
    result = clpipe("cluster", "foreign.h5:/deep/vectors", "-k", 5, "-o", "r.h5")
    assert result.returncode == 0, result.stderr
    with h5py.File(tmp_path / "r.h5", "r") as file:
        assert same_partition(file["clusters/kmeans/labels"][:], labels)


def test_foreign_hdf5_that_is_not_a_matrix(clpipe, tmp_path):
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file["matrix"] = numpy.zeros((4, 3))
        file["cube"] = numpy.zeros((2, 2, 2))
        file["names"] = [b"one", b"two"]
        file["group/other"] = numpy.ones((4, 2), int)
    ask = lambda text, *more: clpipe("cluster", text, "-k", 2, "-o", "r.h5", *more)
    check_one_error(ask("f.h5"), 2, "not a clpipe file", "f.h5:/")
    check_one_error(ask("f.h5:/none"), 3, "no dataset /none", "/matrix", "/group/other")
    check_one_error(ask("f.h5:/group"), 3, "no dataset /group")
    check_one_error(ask("f.h5:/cube"), 3, "3 dimensions")
    check_one_error(ask("f.h5:/names"), 3, "not numbers")
    check_one_error(ask("f.h5:/matrix", "--feature", "x"), 2, "--feature")
    check_one_error(ask("f.h5:/matrix"), 3, "distinct row")
    assert os.listdir(tmp_path) == ["f.h5"]


def test_cluster_options(clpipe, tmp_path, finished, mixture):
    rows, _ = mixture
    copy = tmp_path / "copy.h5"
    shutil.copy(finished, copy)
    check_one_error(clpipe("cluster", copy, "-k", 2, "--name", "new"), 2, "--feature", "rgb_8x8x8")
    check_one_error(clpipe("cluster", copy, "-k", 2, "--feature", "rgb_8x8x8"), 2,
                    "already holds a different /clusters/kmeans", "k: the file has 3; the command asks for 2")
    check_one_error(clpipe("cluster", copy, "-k", 2, "--feature", "counts", "--init", "no.npy"), 2,
                    "no.npy")
    numpy.save(tmp_path / "init.npy", numpy.zeros((3, 100), numpy.float32))
    check_one_error(clpipe("cluster", copy, "-k", 2, "--feature", "counts", "--init", "init.npy"),
                    2, "3 centroids of 100", "2 of 100")
    # The full name of the dataset selects the feature.
    result = clpipe("cluster", f"{copy}:/features/counts", "-k", 2, "--name", "c", "--json", "-")
    assert result.returncode == 0, result.stderr
    assert "by counts (euclidean)" in result.stderr
    with h5py.File(copy, "r") as file:
        assert set(file["clusters"]) == {"kmeans", "c"}
        first = file["features/counts"][:2].astype(numpy.float32)
    numpy.save(tmp_path / "init.npy", first)
    result = clpipe("cluster", copy, "-k", 2, "--feature", "counts", "--init", "init.npy", "--name",
                    "given", "-o", "own.h5")
    assert result.returncode == 0, result.stderr
    with h5py.File(tmp_path / "own.h5", "r") as file:
        assert set(file["clusters"]) == {"given"} and "images" not in file
    # Clusters do not replace a file with other images.
    check_one_error(clpipe("cluster", copy, "-k", 2, "--feature", "counts", "-o", finished), 2,
                    "holds other images")


def test_assign(clpipe, tmp_path, photos):
    draw_photos(tmp_path / "more", 6)
    assert clpipe("run", photos, "-k", 3, "-o", "c.h5").returncode == 0
    assert clpipe("ingest", "more", "-o", "t.h5").returncode == 0
    result = clpipe("assign", "c.h5", "t.h5", "--json", "-")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert (report["k"], report["n"], report["iterations"]) == (3, 7, 0)
    with h5py.File(tmp_path / "c.h5", "r") as c, h5py.File(tmp_path / "t.h5", "r") as t:
        known = {path.split("/")[0]: label
                 for path, label in zip(paths_of(c), c["clusters/kmeans/labels"])}
        assert [known[path.split("/")[0]] for path in paths_of(t)] == \
            list(t["clusters/kmeans/labels"])
        centroids = c["clusters/kmeans/centroids"][:].astype(float)
        assert (centroids == t["clusters/kmeans/centroids"][:]).all()
        roots = numpy.sqrt(t["features/rgb_8x8x8"][:].astype(float))
        distances = ((roots[:, None] - centroids[None]) ** 2).sum(2)
        assert numpy.allclose(t["clusters/kmeans/distances"], distances.min(1), atol=1e-5)
        assert (t["clusters/kmeans/labels"][:] == distances.argmin(1)).all()
        nearest = t["clusters/kmeans/nearest"][:]
        for cluster in range(3):
            rows = numpy.flatnonzero(distances.argmin(1) == cluster)
            order = rows[numpy.argsort(t["clusters/kmeans/distances"][:][rows], kind="stable")][:3]
            assert list(nearest[cluster][:len(order)]) == list(order)
    before = inode(tmp_path / "t.h5")
    again = clpipe("assign", "c.h5", "t.h5")
    assert again.returncode == 0 and "up to date" in again.stdout
    assert inode(tmp_path / "t.h5") == before
    assert clpipe("verify", "t.h5").returncode == 0


@pytest.mark.deep
def test_assign_a_directory_names_the_command(clpipe, tmp_path, photos):
    assert clpipe("run", photos, "-k", 3, "-o", "c.h5", "--feature",
                  "own=rgb:bins=4x4x4").returncode == 0
    check_one_error(clpipe("assign", "c.h5", photos), 3, "is a directory",
                    f"clpipe ingest {photos} -o F.h5 --feature own=rgb:bins=4x4x4,grid=1x1,"
                    "normalize=l1")
    assert clpipe("ingest", photos, "-o", "F.h5", "--feature",
                  "own=rgb:bins=4x4x4,grid=1x1,normalize=l1").returncode == 0
    assert clpipe("assign", "c.h5", "F.h5").returncode == 0


def test_dataset_of_a_clpipe_file_is_its_feature(clpipe, tmp_path, photos):
    assert clpipe("ingest", photos, "-o", "c.h5").returncode == 0
    reports = []
    for words in (["c.h5:/features/rgb_8x8x8", "-o", "r.h5"], ["c.h5", "--feature", "rgb_8x8x8", "-o", "s.h5"]):
        result = clpipe("cluster", *words, "-k", 2, "--json", "-")
        assert result.returncode == 0 and "notice" not in result.stderr, result.stderr
        report = json.loads(result.stdout)
        reports.append([report[key] for key in ("feature", "metric", "inertia", "sizes")])
    assert reports[0] == reports[1] and reports[0][:2] == ["rgb_8x8x8", "hellinger"]


def test_plot_on_standard_output(clpipe, photos):
    result = clpipe("run", photos, "-k", "2:4", "--plot", "-")
    assert result.returncode == 0 and "why" in result.stderr
    assert result.stdout.startswith("<?xml") or result.stdout.startswith("<svg")
    assert result.stdout.rstrip().endswith("</svg>")
    result = clpipe("run", photos, "-k", "2:4", "--plot", "-", "--json", "-")
    assert result.returncode == 2 and "cannot both use standard output" in result.stderr


@pytest.mark.deep
@pytest.mark.parametrize("command", [["ingest"], ["run", "-k", 2]])
def test_failures_count_every_time(clpipe, mixed, command):
    """Four of seventeen files fail; the one that is not an image does not count."""
    for options, code in [([], 1), ([], 1), (["--allow-failures", 3], 1),
                          (["--allow-failures", 4], 0), (["--allow-failures", "23%"], 1),
                          (["--allow-failures=24%"], 0), (["--fresh"], 1),
                          (["--fresh", "--allow-failures", 4], 0),
                          (["--dry-run"], 1), (["--dry-run", "--allow-failures", 4], 0)]:
        result = clpipe(*command, mixed, "-o", "x.h5", *options)
        assert result.returncode == code, (options, result.stderr)


@pytest.mark.deep
def test_assign_other_features(clpipe, tmp_path, photos):
    assert clpipe("run", photos, "-k", 3, "-o", "c.h5").returncode == 0
    assert clpipe("ingest", photos, "-o", "gray.h5", "--feature", "gray").returncode == 0
    assert clpipe("ingest", photos, "-o", "counts.h5", "--normalize", "none").returncode == 0
    check_one_error(clpipe("assign", "c.h5", "gray.h5"), 2, "rgb_8x8x8", "gray_256")
    check_one_error(clpipe("assign", "c.h5", "gray.h5", "--feature", "gray_256"), 3, "256", "512")
    check_one_error(clpipe("assign", "c.h5", "counts.h5"), 3, "normalize=l1", "normalize=none")
    check_one_error(clpipe("assign", "gray.h5", "c.h5"), 3, "holds no clusters")


# --- devices, formats, self-test ----------------------------------------------------------------

def test_devices(clpipe):
    result = clpipe("devices", "--json", "-")
    assert result.returncode == 0, result.stderr
    devices = json.loads(result.stdout)
    assert devices and any(device["usable"] for device in devices)
    for i, device in enumerate(devices):
        assert device["index"] == i
        assert {"platform", "name", "type", "version", "driver", "usable", "reason", "global_memory",
                "local_memory", "max_work_group", "unified_memory"} <= set(device)
    table = clpipe("devices").stdout
    assert sum(line.startswith("*") for line in table.splitlines()) == 2  # the device and the legend
    for device in devices:
        assert device["name"][:48] in table


def test_formats(clpipe):
    result = clpipe("formats")
    assert (result.returncode, result.stderr) == (0, "")
    formats = {row["name"]: row for row in json.loads(clpipe("formats", "--json=-").stdout)}
    assert formats["jpeg"]["readable"] and formats["png"]["readable"]
    assert formats["jpeg"]["extensions"] == ["jpg", "jpeg", "jpe", "jfif"]
    for row in formats.values():
        assert row["name"] in result.stdout


@pytest.mark.slow
def test_self_test(clpipe):
    result = clpipe("self-test", "--json", "report.json")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "k-means" in result.stdout and "WRONG" not in result.stdout


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Enough pictures to keep a run busy; hard links, so that they are created quickly."""
    from PIL import Image
    directory = tmp_path_factory.mktemp("many")
    random = numpy.random.default_rng(5)
    noise = random.integers(0, 256, (1200, 1600, 3), dtype=numpy.uint8)
    Image.fromarray(noise).save(directory / "0.jpg", quality=95)
    for i in range(1, 150):
        os.link(directory / "0.jpg", directory / f"{i}.jpg")
    return directory


# --- progress -----------------------------------------------------------------------------------

def in_terminal(*args, columns, cwd, then=None, env=None):
    """Runs the program in a terminal of that width; returns (exit code, complete output)."""
    import fcntl
    import struct
    import termios
    child, parent = None, None
    parent, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    child = subprocess.Popen([str(CLPIPE), *map(str, args)], cwd=cwd, stderr=slave,
                             stdout=slave, stdin=subprocess.DEVNULL,
                             env={**os.environ, "TERM": "xterm", **(env or {})})
    os.close(slave)
    output = b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            piece = os.read(parent, 4096)
        except OSError:
            break
        if not piece:
            break
        output += piece
        if then:
            then(output, child, parent)
    os.close(parent)
    return child.wait(timeout=60), output.decode()


@pytest.mark.deep
def test_compiling_kernels_is_shown(clpipe, photos, tmp_path):
    for cache, shown in [("1", True), (None, False)]:
        env = {"CLPIPE_NO_CACHE": cache} if cache else {}
        if not cache:  # fills the cache
            assert clpipe("run", photos, "-k", 3, "-o", "first.h5").returncode == 0
        code, output = in_terminal("run", *FEATURE, photos, "-k", 3, "-o", f"{shown}.h5", columns=100,
                                   cwd=tmp_path, env=env)
        assert code == 0, output
        assert ("compiling kernels (first run on this device)" in output) == shown, output
        assert bool(re.search(r"wall time.*compiling kernels [0-9.]+", output)) == shown, output


@pytest.mark.variations
@pytest.mark.parametrize("columns", [200, 80, 40, 12])
def test_live_line_fits(clpipe, photos, tmp_path, columns):
    code, output = in_terminal("run", photos, "-k", 3, columns=columns, cwd=tmp_path)
    assert code == 0, output
    lines = re.findall(r"\r\033\[K\033\[\?7l(.*?)\033\[\?7h", output)
    assert lines
    assert all(len(line) < columns for line in lines)
    assert output.rstrip().splitlines()[-1].lstrip("\x1b[K").startswith("  open")


def test_no_colour(program, photos, tmp_path):
    _, coloured = in_terminal("run", photos, "-k", 3, columns=80, cwd=tmp_path)
    assert "\033[1m" in coloured
    _, plain = in_terminal("run", photos, "-k", 3, columns=80, cwd=tmp_path, env={"NO_COLOR": "1"})
    assert not re.search(r"\033\[\d*m", plain)


def test_progress_never(program, photos, tmp_path):
    _, output = in_terminal("run", photos, "-k", 3, "--progress", "never", columns=80, cwd=tmp_path)
    assert "\033[?7l" not in output


def test_no_live_line_in_a_pipe(clpipe, photos):
    result = clpipe("run", photos, "-k", 3)
    assert "\r" not in result.stderr and "\033" not in result.stderr


@pytest.mark.deep
def test_live_line_follows_the_window(many, tmp_path):
    """Lines drawn after the window has shrunk fit into it."""
    import fcntl
    import struct
    import termios
    drawn = re.compile(r"\r\033\[K\033\[\?7l(.*?)\033\[\?7h")
    before = []

    def shrink(output, child, terminal):
        count = len(drawn.findall(output.decode(errors="replace")))
        if not before and count >= 3:
            before.append(count)
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 30, 0, 0))
            child.send_signal(signal.SIGWINCH)

    code, output = in_terminal("ingest", many, "-o", "x.h5", "--limit", 60, columns=120,
                               cwd=tmp_path, then=shrink)
    assert code == 0, output
    lines = drawn.findall(output)
    assert before and len(lines) > before[0] + 1
    assert any(len(line) >= 30 for line in lines[:before[0]])
    # One more line may have been in progress.
    assert all(len(line) < 30 for line in lines[before[0] + 1:])


# --- signals ------------------------------------------------------------------------------------

def interrupt(directory, cwd, *signals, pause=0.0, arguments=()):
    """Sends the signals after some of many pictures are done."""
    with open(cwd.parent / f"{cwd.name}.err", "w+") as said:
        child = subprocess.Popen([str(CLPIPE), "ingest", *FEATURE, str(directory), "-o", "x.h5", "--progress",
                                  "always", "--threads", "1", *arguments], cwd=cwd,
                                 stdout=subprocess.DEVNULL, stderr=said)
        path = Path(said.name)
        while not re.search(r"\b[1-9][0-9]*/150 files", path.read_text()) and child.poll() is None:
            time.sleep(0.01)
        for number in signals:
            child.send_signal(number)
            time.sleep(pause)
        child.wait(60)
        return child.returncode, path.read_text()


@pytest.mark.deep
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU])
def test_one_signal_stops_cleanly(program, many, tmp_path, number):
    code, err = interrupt(many, tmp_path, number)
    assert code == 4, err
    assert "interrupted" in err and "run the same command again to resume" in err
    assert not (tmp_path / "x.h5").exists()


@pytest.mark.deep
def test_clustering_stops_at_any_time(program, tmp_path):
    """Also while it reads and seeds; a CPU runtime may have installed its own SIGUSR1 handler."""
    random = numpy.random.default_rng(1)
    numpy.save(tmp_path / "rows.npy", random.normal(size=(100000, 64)).astype(numpy.float32))
    child = subprocess.Popen([str(CLPIPE), "cluster", "rows.npy", "-k", "400", "-o", "x.h5",
                              "--max-iter", "100000"], cwd=tmp_path, stderr=subprocess.PIPE,
                             text=True)
    time.sleep(1)
    child.send_signal(signal.SIGUSR1)
    _, err = child.communicate(timeout=20)
    assert child.returncode == 4, err
    assert "interrupted" in err
    assert set(os.listdir(tmp_path)) <= {"rows.npy", "x.h5.kmeans.checkpoint"}


@pytest.mark.deep
def test_interrupted_run_continues(program, many, tmp_path):
    code, err = interrupt(many, tmp_path, signal.SIGINT)
    assert code == 4, err
    result = run_clpipe("ingest", many, "-o", "x.h5", "--json", "-", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["images_ok"] == 150
    assert report["images_resumed"] > 0
    assert os.listdir(tmp_path) == ["x.h5"]


@pytest.mark.deep
def test_second_interrupt_ends_at_once(program, many, tmp_path):
    code, err = interrupt(many, tmp_path, signal.SIGINT, signal.SIGINT, pause=0.002,
                          arguments=["--memory", "64M"])
    assert code in (130, 4)
    if code == 4:
        pytest.skip("the first signal was quicker")
    assert not (tmp_path / "x.h5").exists()


@pytest.mark.deep
def test_max_time(program, many, tmp_path):
    result = run_clpipe("ingest", many, "-o", "x.h5", "--threads", "1", "--max-time", "1",
                        cwd=tmp_path)
    assert result.returncode == 4, result.stderr
    assert "--max-time has passed" in result.stderr
    assert not (tmp_path / "x.h5").exists()

"""Choosing k: the measures of a range equal those of scikit-learn, each value equals that of `-k K` alone,
and nothing depends on threads, memory or tiles."""

import json
import re
import shutil
import signal
import subprocess

import h5py
import numpy
import pytest

from clusterings import cluster
from conftest import CLPIPE, ROOT, check_one_error, run_clpipe

PHOTOS = ROOT / ".." / "shared" / "data" / "photos" / "labelled"
MEASURES = ["silhouette", "simplified_silhouette", "davies_bouldin", "calinski_harabasz"]
AGREEMENT = ["purity", "nmi", "ari"]
SAMPLE = 2048


def stored(path, name="kmeans"):
    """The clustering's arrays and attributes, and the sweep's columns and attributes."""
    with h5py.File(path, "r") as file:
        group = file["clusters"][name]
        sweep = group.get("sweep", {})
        return ({key: group[key][:] for key in group if key != "sweep"}, dict(group.attrs),
                {key: sweep[key][:] for key in sweep}, dict(getattr(sweep, "attrs", {})))


def bits(path):
    arrays, attributes, columns, about = stored(path)
    return {key: value.tobytes() for key, value in (arrays | columns).items()} | {
        key: attributes[key] for key in ("inertia", "k")} | about


def purity(classes, labels):
    table = numpy.zeros((classes.max() + 1, labels.max() + 1), int)
    numpy.add.at(table, (classes, labels), 1)
    return table.max(0).sum() / len(labels)


def check_agreement(found, classes, labels):
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
    assert found["purity"] == pytest.approx(purity(classes, labels), abs=1e-12)
    assert found["nmi"] == pytest.approx(normalized_mutual_info_score(classes, labels), abs=1e-9)
    assert found["ari"] == pytest.approx(adjusted_rand_score(classes, labels), abs=1e-9)


def simplified(space, centroids, labels):
    lengths = numpy.sqrt(numpy.stack([((space - c) ** 2).sum(1) for c in centroids], 1))
    rows = numpy.arange(len(labels))
    own = lengths[rows, labels]
    lengths[rows, labels] = numpy.inf
    other = lengths.min(1)
    values = (other - own) / numpy.maximum(own, other)
    values[numpy.bincount(labels)[labels] == 1] = 0
    return values.mean()


# --- against scikit-learn -------------------------------------------------------------------------

def check_value(found, arrays, space, sample=None):
    """Checks the measures of one k; `sample`: the rows for the silhouette, None for all."""
    from sklearn import metrics
    labels = arrays["labels"]
    some = slice(None) if sample is None else sample
    wanted = {
        "silhouette": metrics.silhouette_score(space[some], labels[some]),
        "simplified_silhouette": simplified(space, arrays["centroids"].astype(float), labels),
        "davies_bouldin": metrics.davies_bouldin_score(space, labels),
        "calinski_harabasz": metrics.calinski_harabasz_score(space, labels),
    }
    assert {key: found[key] for key in wanted} == pytest.approx(wanted, rel=1e-6, abs=1e-7)


@pytest.fixture(scope="module")
def photo_file(program, tmp_path_factory):
    if not PHOTOS.is_dir():
        pytest.skip("no photographs beside the project")
    directory = tmp_path_factory.mktemp("photos")
    result = run_clpipe("ingest", PHOTOS, "-o", "photos.h5", "--feature", "rgb:bins=8x8x8",
                        cwd=directory)
    assert result.returncode == 0, result.stderr
    return directory / "photos.h5"


@pytest.mark.deep
def test_photos(photo_file, tmp_path):
    with h5py.File(photo_file, "r") as file:
        space = numpy.sqrt(file["features/rgb_8x8x8"][:].astype(float))
        folders = [path.rpartition("/")[0] for path in file["images/path"].asstr()[:]]
    classes = numpy.unique(folders, return_inverse=True)[1]
    shutil.copy(photo_file, tmp_path / "photos.h5")
    report = cluster("photos.h5", "-k", "4:12:4", cwd=tmp_path)
    arrays, attributes, columns, about = stored(tmp_path / "photos.h5")
    assert list(columns["k"]) == [4, 8, 12]
    assert set(columns) == {"k", "iterations", "converged", "inertia", *MEASURES, *AGREEMENT}
    assert about["sample"] == len(space) and about["measure"] == "silhouette"
    # The stored values are those of the report.
    for i, value in enumerate(report["sweep"]["values"]):
        assert value == {key: column[i] for key, column in columns.items()}
    assert report["sweep"]["reason"] == about["reason"]
    assert report["folders"] == attributes["folders"] == len(set(folders))
    # The stored clustering is the one with the suggested k.
    best = int(columns["silhouette"].argmax())
    assert attributes["k"] == columns["k"][best] == report["k"]
    assert columns["inertia"][best] == attributes["inertia"]
    # Each value is that of -k K alone.
    for i, k in enumerate(columns["k"]):
        alone = tmp_path / f"{k}.h5"
        single = cluster(photo_file, "-k", k, "-o", alone, cwd=tmp_path)
        its_arrays, its_attributes, none, _ = stored(alone)
        assert not none and "sweep" not in single
        for key in ("inertia", "iterations", "converged"):
            assert columns[key][i] == its_attributes[key], key
        found = {key: column[i] for key, column in columns.items()}
        check_value(found, its_arrays, space)
        check_agreement(found, classes, its_arrays["labels"])
        check_agreement(single, classes, its_arrays["labels"])
        assert {key: its_attributes[key] for key in AGREEMENT} == {
            key: single[key] for key in AGREEMENT}
        if i == best:
            for key, array in arrays.items():
                assert array.tobytes() == its_arrays[key].tobytes(), key
    assert run_clpipe("verify", "photos.h5", cwd=tmp_path).returncode == 0


@pytest.fixture(scope="module")
def mixture(program, tmp_path_factory):
    """6,000 rows of 20 columns around 6 centres in rows.npy; returns (directory, rows)."""
    directory = tmp_path_factory.mktemp("mixture")
    random = numpy.random.default_rng(3)
    centres = random.normal(0, 1, (6, 20))
    rows = centres[random.integers(0, 6, 6000)] + 0.6 * random.normal(0, 1, (6000, 20))
    rows = rows.astype("float32")
    numpy.save(directory / "rows.npy", rows)
    return directory, rows


PHILOX_KEYS = 0x9E3779B9, 0xBB67AE85


def drawn(seed, stream, counter):
    """Philox4x32-10 as defined in docs/clustering.md."""
    word = 0xffffffff
    key = [seed & word, seed >> 32]
    x = [counter & word, counter >> 32, stream, 0]
    for _ in range(10):
        a, b = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [(b >> 32) ^ x[1] ^ key[0], b & word, (a >> 32) ^ x[3] ^ key[1], a & word]
        key = [(key[i] + PHILOX_KEYS[i]) & word for i in (0, 1)]
    return ((x[0] << 32 | x[1]) >> 11) * 2.0 ** -53


def sample_of(n, seed):
    """Floyd's algorithm for a random sample."""
    chosen = set()
    for i in range(SAMPLE):
        last = n - SAMPLE + i
        row = int(drawn(seed, 0xffffffff, i) * (last + 1))
        chosen.add(last if row in chosen else row)
    return sorted(chosen)


def test_mixture(mixture, tmp_path):
    directory, rows = mixture
    space = rows.astype(float)
    report = cluster(directory / "rows.npy", "-k", "2:9", "--seed", 5, "--n-init", 3, "--tol", 0,
                     "-o", "r.h5", cwd=tmp_path)
    arrays, attributes, columns, about = stored(tmp_path / "r.h5")
    assert list(columns["k"]) == list(range(2, 10)) and not set(columns) & set(AGREEMENT)
    assert about["sample"] == SAMPLE and report["k"] == attributes["k"] == 6
    assert "Davies-Bouldin and Calinski-Harabasz agree" in about["reason"]
    assert "folders" not in attributes and "folders" not in report
    sample = sample_of(len(rows), 5)
    for i in (4, 7):
        k = columns["k"][i]
        cluster(directory / "rows.npy", "-k", k, "--seed", 5, "--n-init", 3, "--tol", 0, "-o", f"{k}.h5",
                cwd=tmp_path)
        its_arrays, its_attributes = stored(tmp_path / f"{k}.h5")[:2]
        assert columns["inertia"][i] == its_attributes["inertia"]
        check_value({key: column[i] for key, column in columns.items()}, its_arrays, space, sample)
        if k == 6:
            assert all(arrays[key].tobytes() == its_arrays[key].tobytes() for key in arrays)


@pytest.fixture(scope="module")
def plain_bits(mixture):
    directory = mixture[0]
    cluster("rows.npy", "-k", "2:8:3", "-o", "plain.h5", cwd=directory)
    return bits(directory / "plain.h5")


@pytest.mark.deep
@pytest.mark.parametrize("options", [["--threads", "1"], ["--threads", "5"],
                                     ["--memory", "1M", "--device-memory", "100K"]])
def test_same_bits(mixture, plain_bits, tmp_path, options):
    cluster(mixture[0] / "rows.npy", "-k", "2:8:3", "-o", "r.h5", *options, cwd=tmp_path)
    assert bits(tmp_path / "r.h5") == plain_bits


def test_many_clusters_use_all_rows(mixture, tmp_path):
    """A sample is not meaningful if it has only a few rows of each cluster."""
    directory = mixture[0]
    report = cluster(directory / "rows.npy", "-k", "5:130:125", "--max-iter", 3, "-o", "r.h5",
                     cwd=tmp_path)
    assert report["sweep"]["measure"] == "simplified_silhouette"
    assert "simplified silhouette is highest" in report["sweep"]["reason"]


def test_few_rows(program, tmp_path):
    """Undefined measures are NaN in the file and null in the report."""
    numpy.save(tmp_path / "rows.npy", numpy.float32([[0, 0], [0, 1], [9, 9], [9, 8]]))
    report = cluster("rows.npy", "-k", "1:4", "-o", "r.h5", cwd=tmp_path)
    values = report["sweep"]["values"]
    assert report["k"] == 2 and [value["silhouette"] is None for value in values] == [
        True, False, False, True]
    columns = stored(tmp_path / "r.h5")[2]
    assert list(numpy.isnan(columns["davies_bouldin"])) == [True, False, False, True]
    assert run_clpipe("verify", "r.h5", cwd=tmp_path).returncode == 0


# --- drawn ----------------------------------------------------------------------------------------

def plot_lines(stdout):
    """The lines from the tall panel to the last flat one."""
    lines = stdout.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("  silhouette"))
    return lines[first:lines.index("", first)]


@pytest.mark.parametrize("locale, glyphs", [
    ({"LC_ALL": "C"}, " .:#"), ({"LC_ALL": "", "LC_CTYPE": "POSIX", "LANG": "C.UTF-8"}, " .:#"),
    ({"LC_ALL": "en_US.UTF-8"}, " ▁▂▃▄▅▆▇█"), ({"LC_ALL": "", "LC_CTYPE": "", "LANG": "C.utf8"},
                                               " ▁▂▃▄▅▆▇█")])
def test_plot_in_the_terminal(swept, tmp_path, locale, glyphs):
    directory, values = swept
    result = run_clpipe("cluster", directory / "rows.npy", "-k", "2:8", "-o", directory / "swept.h5",
                        cwd=tmp_path, env=locale)
    assert result.returncode == 0, result.stderr
    assert "\x1b" not in result.stdout  # not a terminal, so no colours
    lines = plot_lines(result.stdout)
    assert [line[2:20].strip() for line in lines] == [
        "silhouette", "", "", "", "k", "simplified silh.", "Davies-Bouldin", "Calinski-Harabasz",
        "inertia"]
    for line in lines[:4] + lines[5:]:
        assert set(line[20:20 + 7 * 3]) <= set(glyphs), line
    # Only the suggested k has a full column.
    full = [column for column in range(7)
            if all(line[20 + 3 * column] == glyphs[-1] for line in lines[:4])]
    assert full == [max(range(7), key=lambda i: values[i]["silhouette"])] == [4]
    assert lines[4].split() == ["k", "2", "6", "8"]
    lowest = min(values, key=lambda value: value["davies_bouldin"])
    assert lines[6].endswith(f"lowest {lowest['davies_bouldin']:.4g} at {lowest['k']}")


def test_plot_in_a_narrow_terminal(swept, tmp_path):
    """Lines fit into the terminal, and the chosen column is coloured unless NO_COLOR is set."""
    import fcntl
    import os
    import pty
    import struct
    import termios
    for no_color in (None, "1"):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 64, 0, 0))
        result = run_clpipe("cluster", swept[0] / "rows.npy", "-k", "2:8", "-o",
                            swept[0] / "swept.h5", cwd=tmp_path, capture_output=False,
                            stdout=theirs, env={"LC_ALL": "C.UTF-8", "NO_COLOR": no_color,
                                                "TERM": "xterm"})
        os.close(theirs)
        text = b""
        try:
            while part := os.read(ours, 65536):
                text += part
        except OSError:
            pass
        os.close(ours)
        assert result.returncode == 0
        text = text.decode().replace("\r", "")
        assert ("\x1b[1;32m█" in text) == (no_color is None)
        plain = text.replace("\x1b[1;32m", "").replace("\x1b[0m", "").replace("\x1b[1m", "")
        lines = plot_lines(plain)
        assert len(lines) == 9 and all(len(line) < 64 for line in lines)


@pytest.fixture(scope="module")
def swept(mixture):
    """Makes swept.h5 with k from 2 to 8; returns (directory, the values)."""
    directory = mixture[0]
    report = cluster("rows.npy", "-k", "2:8", "--n-init", 1, "-o", "swept.h5", cwd=directory)
    return directory, report["sweep"]["values"]


def test_plot_as_svg(swept, tmp_path):
    from xml.etree import ElementTree
    directory, values = swept
    common = ["cluster", directory / "rows.npy", "-k", "2:8", "-o", directory / "swept.h5"]
    for _ in range(2):  # an earlier plot is replaced
        result = run_clpipe(*common, "--plot", "k.svg", cwd=tmp_path)
        assert result.returncode == 0, result.stderr
    root = ElementTree.parse(tmp_path / "k.svg").getroot()
    space = "{http://www.w3.org/2000/svg}"
    titles = [text.text for text in root.iter(f"{space}text")]
    for title in ("silhouette", "Davies-Bouldin", "Calinski-Harabasz", "inertia", "k = 6"):
        assert title in titles
    circles = [circle for circle in root.iter(f"{space}circle")]
    assert len(circles) == 5 * len(values)
    chosen = [circle.find(f"{space}title").text for circle in circles
              if circle.get("class") == "chosen"]
    assert len(chosen) == 5
    assert chosen[0] == f"k = 6: {values[4]['silhouette']:.9g}"
    # Higher values are drawn higher.
    heights = [float(circle.get("cy")) for circle in circles[:7]]
    assert list(numpy.argsort(heights)) == list(
        numpy.argsort([-value["silhouette"] for value in values]))
    # Other files with that name are not replaced.
    (tmp_path / "notes").write_text("mine")
    check_one_error(run_clpipe(*common, "--plot", "notes", cwd=tmp_path), 3, "notes", "not an SVG")
    assert (tmp_path / "notes").read_text() == "mine"
    check_one_error(run_clpipe(*common[:2], "-k", "3", "-o", "n.h5", "--plot", "n.svg",
                               cwd=tmp_path), 2, "--plot", "A:B")
    check_one_error(run_clpipe(*common, "--plot", "none/k.svg", cwd=tmp_path), 3, "none")


def test_info(swept, tmp_path):
    result = run_clpipe("info", swept[0] / "swept.h5", cwd=tmp_path)
    assert "k from 2 to 8 was tried: the silhouette is highest" in result.stdout
    report = json.loads(run_clpipe("info", swept[0] / "swept.h5", "--json", "-").stdout)
    assert report["clusters"][0]["sweep"]["values"] == swept[1]


# --- the day of a user ----------------------------------------------------------------------------

@pytest.mark.deep
def test_repeated_sweep_is_up_to_date(photo_file, tmp_path):
    shutil.copy(photo_file, tmp_path / "p.h5")
    first = cluster("p.h5", "-k", "2:4", cwd=tmp_path)
    before = (tmp_path / "p.h5").read_bytes()
    again = cluster("p.h5", "-k", "2:4:1", cwd=tmp_path)
    assert (tmp_path / "p.h5").read_bytes() == before
    for key in ("sweep", "k", "inertia", "folders", *AGREEMENT):
        assert again[key] == first[key]
    other = run_clpipe("cluster", "p.h5", "-k", "2:5", cwd=tmp_path)
    check_one_error(other, 2, "k: the file has 2:4; the command asks for 2:5", "--force")
    # With --force, a single k replaces the sweep.
    cluster("p.h5", "-k", "3", "--force", cwd=tmp_path)
    assert not stored(tmp_path / "p.h5")[2]
    with h5py.File(tmp_path / "p.h5", "r") as file:
        assert "sweep_kmeans" not in file
    assert run_clpipe("verify", "p.h5", cwd=tmp_path).returncode == 0


@pytest.mark.deep
def test_an_update_keeps_the_sweep(photos, tmp_path):
    """An ingest that adds a feature copies the clusters."""
    assert run_clpipe("ingest", photos, "-o", "p.h5", cwd=tmp_path).returncode == 0
    cluster("p.h5", "-k", "2:4", cwd=tmp_path)
    before = bits(tmp_path / "p.h5")
    added = run_clpipe("ingest", photos, "-o", "p.h5", "--add", "--feature", "gray", cwd=tmp_path)
    assert added.returncode == 0, added.stderr
    assert bits(tmp_path / "p.h5") == before and "nmi" in stored(tmp_path / "p.h5")[1]
    assert run_clpipe("verify", "p.h5", cwd=tmp_path).returncode == 0


def test_a_single_folder_is_not_a_class(photos, tmp_path):
    assert run_clpipe("ingest", photos / "red", "-o", "p.h5", cwd=tmp_path).returncode == 0
    report = cluster("p.h5", "-k", "2", cwd=tmp_path)
    assert "folders" not in report and "folders" not in stored(tmp_path / "p.h5")[1]


def test_sources_are_folders(photos, tmp_path):
    result = run_clpipe("ingest", photos / "red", photos / "blue", "-o", "p.h5", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    report = cluster("p.h5", "-k", "2", cwd=tmp_path)
    assert report["folders"] == 2
    assert [report[key] for key in AGREEMENT] == pytest.approx([1, 1, 1], abs=1e-12)


def test_run_accepts_a_range(photos, tmp_path):
    result = run_clpipe("run", "--no-report", photos, "-k", "2:4", "--n-init", 1, "--feature", "rgb:bins=256",
                        "--json", "r.json", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    report = json.loads((tmp_path / "r.json").read_text())["cluster"]
    assert report["k"] == 3 and report["folders"] == 3 and report["ari"] == 1
    assert "why" in result.stdout and "k = 3: the silhouette is highest" in result.stdout


def test_broken_sweep_is_found(mixture, tmp_path):
    cluster(mixture[0] / "rows.npy", "-k", "2:4", "-o", "r.h5", cwd=tmp_path)
    with h5py.File(tmp_path / "r.h5", "r+") as file:
        file["clusters/kmeans/sweep/silhouette"][1] = 3
        file["clusters/kmeans/sweep/k"][2] = 2
    result = run_clpipe("verify", "r.h5", cwd=tmp_path)
    assert result.returncode == 1
    assert "/clusters/kmeans/sweep/k: the values do not ascend" in result.stdout
    assert "a measure has a value that it cannot have" in result.stdout


@pytest.mark.parametrize("options, parts", [
    (["-k", "4:2"], ["-k expects", "A:B", "'4:2'"]), (["-k", "2:2"], ["-k expects"]),
    (["-k", "0:2"], ["-k expects"]), (["-k", "2:"], ["-k expects"]), (["-k", "2:4:0"], ["-k expects"]),
    (["-k", "2:4:1:1"], ["-k expects"]), (["-k", "2:99999999999"], ["-k expects"]),
    (["-k", "2:4", "--init", "rows.npy"], ["single k"]),
])
def test_misuse(mixture, tmp_path, options, parts):
    shutil.copy(mixture[0] / "rows.npy", tmp_path)
    check_one_error(run_clpipe("cluster", "rows.npy", "-o", "r.h5", *options, cwd=tmp_path), 2,
                    *parts)
    assert not (tmp_path / "r.h5").exists()


def test_too_many(program, tmp_path):
    numpy.save(tmp_path / "rows.npy", numpy.repeat(numpy.eye(4, dtype="float32"), 3, axis=0))
    for values, parts in (("2:40", ["k is 40", "12 rows"]), ("2:9", ["k is 9", "distinct row"])):
        check_one_error(run_clpipe("cluster", "rows.npy", "-o", "r.h5", "-k", values, cwd=tmp_path),
                        3, *parts)
        assert not (tmp_path / "r.h5").exists()


@pytest.mark.deep
def test_interrupted(tmp_path, program):
    random = numpy.random.default_rng(1)
    numpy.save(tmp_path / "rows.npy", random.normal(0, 1, (20000, 48)).astype("float32"))
    process = subprocess.Popen([CLPIPE, "cluster", "rows.npy", "-k", "2:250", "-o", "r.h5",
                                "--progress", "always"], cwd=tmp_path, stderr=subprocess.PIPE,
                               text=True)
    lines = []
    for line in process.stderr:
        lines.append(line)
        if re.search("k = .*, [2-9] of 249", line):
            break
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 4, "".join(lines) + process.stderr.read()
    assert "interrupted" in process.stderr.read()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.h5.kmeans.checkpoint", "rows.npy"]

"""clpipe repair: what can be recovered from damaged results and from logs of unfinished runs. Repeating the
command that made the file restores the rest."""

import json
import os
import shutil

import h5py
import numpy
import pytest

from conftest import (CLPIPE, check_one_error, digest, error_lines, log_blocks, log_records, logs_of, run_clpipe)

FEATURES = ["--feature", "rgb:bins=8x8x8", "--feature", "counts=gray:bins=16,normalize=none"]


def report_of(result, code):
    assert result.returncode == code, result.stderr
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def base(mixed, tmp_path_factory, program):
    """A finished file with two clusterings, and the same file without them."""
    place = tmp_path_factory.mktemp("base")
    assert run_clpipe("ingest", mixed, "-o", place / "features.h5", *FEATURES).returncode == 1
    shutil.copy(place / "features.h5", place / "x.h5")
    for name, k in [("few", 2), ("many", 4)]:
        assert run_clpipe("cluster", place / "x.h5", "-k", k, "--feature", "rgb_8x8x8", "--name",
                          name).returncode == 0
    return place


@pytest.fixture
def damaged(base, tmp_path):
    """A copy for a test to damage with h5py."""
    shutil.copy(base / "x.h5", tmp_path / "x.h5")
    return tmp_path / "x.h5"


@pytest.mark.deep
def test_nothing_to_repair(damaged, tmp_path):
    before = damaged.read_bytes()
    report = report_of(run_clpipe("repair", damaged, "--json", "-"), 0)
    assert report["ok"] and not report["written"] and report["broken"] == []
    assert report_of(run_clpipe("repair", damaged, "-o", tmp_path / "y.h5", "--json", "-"), 0)["ok"]
    assert damaged.read_bytes() == before
    assert os.listdir(tmp_path) == ["x.h5"]


def test_dropped_rows_are_made_again(damaged, base, mixed, tmp_path):
    with h5py.File(damaged, "r+") as file:
        file["images/width"][3] = 0
        file["images/channels"][5] = 9
        file["images/orientation"][8] = 77
        file["failures/reason"][1] = b"bad-luck"
    before = damaged.read_bytes()
    dry = report_of(run_clpipe("repair", damaged, "--dry-run", "--json", "-"), 1)
    assert (dry["images_lost"], dry["failures_lost"], dry["written"]) == (3, 1, False)
    assert damaged.read_bytes() == before and os.listdir(tmp_path) == ["x.h5"]

    report = report_of(run_clpipe("repair", damaged, "--json", "-"), 1)
    assert (report["images"], report["images_lost"]) == (10, 3)
    assert (report["failures"], report["failures_lost"]) == (4, 1)
    assert (report["clusters"], report["clusters_lost"]) == (0, 2)
    assert report["written"] and report["kept"].endswith("x.h5.damaged")
    assert sorted(os.listdir(tmp_path)) == ["x.h5", "x.h5.damaged"]
    assert (tmp_path / "x.h5.damaged").read_bytes() == before
    assert run_clpipe("verify", damaged).returncode == 0
    with h5py.File(damaged) as file, h5py.File(base / "x.h5") as whole:
        kept = [i for i in range(13) if i not in (3, 5, 8)]
        assert numpy.array_equal(file["features/counts"][:], whole["features/counts"][:][kept])
        assert list(file["images/path"]) == [whole["images/path"][i] for i in kept]

    # The same command processes only these three images again.
    again = report_of(run_clpipe("ingest", mixed, "-o", damaged, *FEATURES, "--json", "-"), 1)
    assert (again["images_ok"], again["images_unchanged"]) == (13, 10)
    assert digest(damaged) == digest(base / "features.h5")


def test_order_and_paths(damaged, base, mixed):
    """If a path was changed, its row is dropped, but later rows are not."""
    with h5py.File(damaged, "r+") as file:
        paths = [p.decode() for p in file["images/path"]]
        file["images/path"][4] = "zzz" + paths[4]
    report = report_of(run_clpipe("repair", damaged, "--json", "-"), 1)
    assert (report["images"], report["images_lost"]) == (12, 1)
    assert run_clpipe("verify", damaged).returncode == 0
    assert run_clpipe("ingest", mixed, "-o", damaged, *FEATURES).returncode == 1
    assert digest(damaged) == digest(base / "features.h5")


def test_only_broken_clusters_are_dropped(damaged, tmp_path):
    with h5py.File(damaged, "r+") as file:
        file["clusters/few/labels"][2] = 99
    before = damaged.read_bytes()
    report = report_of(run_clpipe("repair", damaged, "-o", tmp_path / "saved.h5", "--json", "-"), 1)
    assert (report["images"], report["images_lost"]) == (13, 0)
    assert (report["clusters"], report["clusters_lost"]) == (1, 1)
    assert report["kept"] is None and damaged.read_bytes() == before
    assert run_clpipe("verify", tmp_path / "saved.h5").returncode == 0
    with h5py.File(tmp_path / "saved.h5") as file:
        assert list(file["clusters"]) == ["many"]
    # An existing output is not overwritten.
    result = run_clpipe("repair", damaged, "-o", tmp_path / "saved.h5")
    check_one_error(result, 3, "saved.h5", "not overwritten")


def test_second_repair_overwrites_nothing(damaged, tmp_path):
    (tmp_path / "x.h5.damaged").write_text("of an earlier repair\n")
    with h5py.File(damaged, "r+") as file:
        file["features/counts"][0] = 0
    before = damaged.read_bytes()
    result = run_clpipe("repair", damaged)
    assert result.returncode == 3 and "x.h5.damaged" in error_lines(result)[-1]
    assert damaged.read_bytes() == before
    assert (tmp_path / "x.h5.damaged").read_text() == "of an earlier repair\n"
    assert sorted(os.listdir(tmp_path)) == ["x.h5", "x.h5.damaged"]


@pytest.mark.parametrize("content", [b"", b"no HDF5 at all\n" * 100, None])
def test_nothing_can_be_saved(base, tmp_path, content):
    path = tmp_path / "x.h5"
    path.write_bytes((base / "x.h5").read_bytes()[:3000] if content is None else content)
    before = path.read_bytes()
    result = run_clpipe("repair", path)
    check_one_error(result, 3, "nothing can be recovered", "x.h5")
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["x.h5"]
    check_one_error(run_clpipe("repair", tmp_path / "none.h5"), 2, "none.h5")
    assert os.listdir(tmp_path) == ["x.h5"]


# --- unfinished runs ------------------------------------------------------------------------------

def log_of(mixed, place):
    """The log of a complete run whose result could not be renamed."""
    library = CLPIPE.parent / "tests" / "faults.so"
    if not library.exists():
        pytest.skip(f"{library} is not built")
    env = {"LD_PRELOAD": library, "CLPIPE_FAULT": "rename * 1+ 5"}
    assert run_clpipe("ingest", mixed, "-o", place / "x.h5", *FEATURES, env=env).returncode == 3
    assert os.listdir(place) == ["x.h5.partial"]
    assert [len(rows) for rows in log_records(place / "x.h5.partial")] == [13, 5]
    log, = logs_of(place / "x.h5.partial")
    return log


def test_unfinished_run_is_saved(mixed, base, tmp_path):
    log = log_of(mixed, tmp_path)
    report = report_of(run_clpipe("repair", tmp_path / "x.h5", "-o", tmp_path / "y.h5", "--json",
                                  "-"), 1)
    assert report["from_unfinished_run"] and (report["images"], report["failures"]) == (13, 5)
    assert digest(tmp_path / "y.h5") == digest(base / "features.h5")
    # Without -o the file is repaired in place, and the run continues from it.
    assert run_clpipe("repair", tmp_path / "x.h5").returncode == 1
    assert log.exists() and digest(tmp_path / "x.h5") == digest(base / "features.h5")
    again = report_of(run_clpipe("ingest", mixed, "-o", tmp_path / "x.h5", *FEATURES, "--json",
                                 "-"), 1)
    assert again["images_unchanged"] == 13
    assert sorted(os.listdir(tmp_path)) == ["x.h5", "y.h5"]


@pytest.mark.deep
@pytest.mark.parametrize("how", ["tail", "bit", "length", "hole", "two"])
def test_damaged_log(mixed, base, tmp_path, how):
    """Only damaged blocks are lost, whether repair or the next run reads the log."""
    log = log_of(mixed, tmp_path)
    data = bytearray(log.read_bytes())
    # Adds a damaged copy of the block before or after the intact one.
    (block, columns), = log_blocks(data)
    other = data[block:]
    columns = [(begin - block, length) for begin, length in columns]
    if how == "tail":
        del other[sum(columns[-1]) - 7:]
    elif how == "bit":
        other[columns[-1][0] + 5] ^= 4
    elif how == "length":
        other[33] ^= 0x40
    elif how == "hole":
        other[columns[1][0]:sum(columns[4])] = bytes(sum(columns[4]) - columns[1][0])
    else:
        other[columns[0][0] + 1] ^= 1
        other[columns[5][0] + 1] ^= 1
    data = data + other if how == "tail" else data[:block] + other + data[block:]
    log.write_bytes(data)

    report = report_of(run_clpipe("repair", tmp_path / "x.h5", "-o", tmp_path / "y.h5", "--json",
                                  "-"), 1)
    assert (report["images"], report["failures"]) == (13, 5)
    assert report["damaged_log_bytes"] > 0
    assert run_clpipe("verify", tmp_path / "y.h5").returncode == 0
    assert log.read_bytes() == data

    again = report_of(run_clpipe("ingest", mixed, "-o", tmp_path / "x.h5", *FEATURES, "--json",
                                 "-"), 1)
    assert again["images_resumed"] == report["images"]
    assert digest(tmp_path / "x.h5") == digest(base / "features.h5")
    assert sorted(os.listdir(tmp_path)) == ["x.h5", "y.h5"]
    # The same command also continues from the recovered file.
    assert run_clpipe("ingest", mixed, "-o", tmp_path / "y.h5", *FEATURES).returncode in (0, 1)
    assert digest(tmp_path / "y.h5") == digest(base / "features.h5")


def test_unreadable_file_with_unfinished_work(mixed, base, tmp_path):
    log_of(mixed, tmp_path)
    (tmp_path / "x.h5").write_bytes((base / "x.h5").read_bytes()[:3000])
    report = report_of(run_clpipe("repair", tmp_path / "x.h5", "--json", "-"), 1)
    assert report["from_unfinished_run"] and len(report["broken"]) == 1
    assert digest(tmp_path / "x.h5") == digest(base / "features.h5")
    assert (tmp_path / "x.h5.damaged").stat().st_size == 3000


def test_header_of_the_log(mixed, tmp_path):
    log = log_of(mixed, tmp_path)
    data = bytearray(log.read_bytes())
    data[40] ^= 1
    log.write_bytes(data)
    result = run_clpipe("repair", tmp_path / "x.h5")
    check_one_error(result, 3, log.name, "damaged")
    assert log.read_bytes() == data

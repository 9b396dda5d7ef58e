"""The case study: all variants find the same words, and wrong arguments are refused."""

import subprocess

import pytest

from conftest import CLPIPE, draw_photos

PROGRAM = CLPIPE.parent / "case_study"
WAYS = ["one_core", "all_cores", "naive", "coalesced", "vectors", "in_local", "in_constant", "clpipe",
        "ingest"]
FLOORS = ["read_once", "arithmetic"]


def study(*args):
    if not PROGRAM.exists():
        pytest.skip("%s is not built" % PROGRAM)
    return subprocess.run([PROGRAM, "-d", "cpu", "-t", "2", "-r", "1", *map(str, args)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


@pytest.mark.deep
def test_variants(tmp_path):
    draw_photos(tmp_path, 3)
    # The last picture and the last work-group are incomplete.
    result = study("-n", 2345, "-D", 48, "-k", 30, *sorted(tmp_path.rglob("*.jpg")))
    assert result.returncode == 0, result.stderr
    head, titles, *lines = result.stdout.splitlines()
    assert head.startswith("2345 descriptors, 48 values, 30 words, 2 threads, ")
    assert titles.split() == ["ms", "x", "naive", "G", "products/s"]
    assert [line.split()[0] for line in lines] == WAYS + FLOORS
    for line in lines:
        name, milliseconds, ratio, *_ = line.split()
        if milliseconds != "-":
            assert float(milliseconds) > 0 and (name != "naive" or float(ratio) == 1)


    assert study("-n", 1000, "-D", 48, "-k", 30).returncode == 0  # with a synthetic picture


def test_usage(tmp_path):
    assert study("-D", 12).returncode == 2
    assert study("-k", 0).returncode == 2
    missing = study("-n", 100, "-k", 5, tmp_path / "none.jpg")
    assert missing.returncode == 3 and "none.jpg" in missing.stderr

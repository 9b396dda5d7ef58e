"""clpipe bench: every variant is measured, and its counts are right."""

import json

from conftest import check_one_error

SMALL = ["--device", "cpu", "--bytes", "1M", "--rounds", 1]


def test_every_variant(clpipe):
    result = clpipe("bench", *SMALL, "--fill", "all", "--feature", "rgb:bins=256", "--feature",
                    "hsv,grid=2x3", "--json", "-")
    assert result.returncode == 0, result.stderr
    (device,) = json.loads(result.stdout)
    rows = device["measured"]
    counted = [row for row in rows if row["what"] in ("private", "local", "global")]
    assert {row["what"] for row in counted} == {"private", "local", "global"}
    assert {row["fill"] for row in rows} == {"constant", "two", "natural", "random", "sorted"}
    assert len(counted) == 3 * 5 * 2
    for row in rows:
        assert row["seconds"] > 0 and row["wrong"] == 0
        assert 0.5e6 < row["bytes"] <= 1 << 20
        assert abs(row["bytes_per_second"] * row["seconds"] / row["bytes"] - 1) < 1e-9
    assert [row for row in rows if row["what"] == "plain C"]


def test_shapes(clpipe):
    result = clpipe("bench", *SMALL, "--shape", "all", "--fill", "random", "--variant", "auto",
                    "--feature", "gray")
    assert result.returncode == 0, result.stderr
    lines = [line.split() for line in result.stdout.splitlines()[2:]]
    assert [line[2] for line in lines if line[0] == "auto"] == ["large", "512x384", "224x224"]
    assert all(line[-1] == "%" for line in lines if line[0] == "auto")


def test_misuse(clpipe):
    check_one_error(clpipe("bench", "--fill", "blue"), 2, "--fill blue", "natural")
    check_one_error(clpipe("bench", "--shape", "9x9"), 2, "--shape 9x9", "224x224")
    check_one_error(clpipe("bench", "--variant", "fastest"), 2, "fastest")
    check_one_error(clpipe("bench", "--feature", "lab"), 2, "lab")
    check_one_error(clpipe("bench", "--rounds", "0"), 2, "--rounds")
    check_one_error(clpipe("bench", "photos"), 2, "photos")

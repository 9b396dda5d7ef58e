"""Reports and summaries divide the whole time of the process into stages."""

import json
import re
import time

import numpy
import pytest

from conftest import FEATURE

OTHER_MOST = 0.1  # of the total, or
OTHER_SECONDS = 0.2  # this time between the stages of a short command


def check(clpipe, tmp_path, arguments, stages):
    begun = time.monotonic()
    result = clpipe(*arguments, "--json", "wall.json")
    elapsed = time.monotonic() - begun
    assert result.returncode in (0, 1), result.stderr
    wall = json.loads((tmp_path / "wall.json").read_text())["wall"]
    assert list(wall) == ["stages", "seconds"]
    spent = wall["stages"]
    assert list(spent)[0] == "start" and list(spent)[-1] == "other"
    assert stages <= set(spent), spent
    assert all(seconds >= 0 for seconds in spent.values())
    assert sum(spent.values()) == pytest.approx(wall["seconds"], abs=1e-6)
    assert 0 < wall["seconds"] <= elapsed
    assert spent["other"] <= max(OTHER_MOST * wall["seconds"], OTHER_SECONDS), spent
    return result, wall


def check_summary(result, wall):
    """The summary has the same times as text, without those that are rounded to zero."""
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("  wall time ")]
    seconds, words = re.fullmatch(r"  wall time   ([0-9.]+) s(?:: (.*))?", line).groups()
    told = {name: float(value) for name, value in (word.rsplit(" ", 1) for word in (words or "").split(", ") if word)}
    assert float(seconds) <= wall["seconds"] + 0.01
    assert sum(told.values()) == pytest.approx(float(seconds), abs=0.01 + 0.005 * len(wall["stages"]))
    assert set(told) <= set(wall["stages"])


@pytest.mark.deep
def test_every_command_accounts_for_its_time(clpipe, photos, tmp_path):
    numpy.save(tmp_path / "rows.npy", numpy.arange(13 * 4, dtype="f4").reshape(13, 4))
    (tmp_path / "more").mkdir()
    for image in sorted(photos.rglob("*.png"))[:2]:
        (tmp_path / "more" / ("more-" + image.name)).write_bytes(image.read_bytes())
    commands = {
        ("list", str(photos), "-o", "photos.list"): {"walking", "writing"},
        ("codebook", photos, "-o", "c.h5", "--feature", "dct:words=8"): {"opening", "codebook"},
        ("ingest", photos, "-o", "p.h5", *FEATURE): {"devices", "walking", "images", "writing"},
        ("ingest", "more", "-o", "q.h5", *FEATURE): {"devices", "walking", "images", "writing"},
        ("cluster", "p.h5", "-k", "3"): {"opening", "devices", "reading rows", "k-means", "storing the result"},
        ("assign", "p.h5", "q.h5"): {"devices", "labelling rows", "storing the labels"},
        ("merge", "p.h5", "q.h5", "-o", "all.h5"): {"merging"},
        ("import", "p.h5", "mine=rows.npy"): {"importing rows"},
        ("select", "p.h5", "4", "--clusters", "kmeans"): {"writing the selection"},
        ("similar", "p.h5", "--all", "--feature", "mine"): {"devices", "rows compared", "writing neighbours"},
        ("evaluate", "p.h5"): {"opening", "rows compared"},
        ("duplicates", "p.h5"): {"comparing codes"},
        ("report", "p.h5", "-o", "pages"): {"pages", "sheets"},
        ("run", photos, "-o", "r.h5", *FEATURE): {"images", "writing", "k-means", "storing the result", "pages"},
    }
    for arguments, stages in commands.items():
        check_summary(*check(clpipe, tmp_path, arguments, stages))
    check(clpipe, tmp_path, ("similar", "p.h5", "row:1", "--feature", "mine"), {"comparing rows"})
    check(clpipe, tmp_path, ("export", "p.h5", "--what", "images", "-o", "t.csv"), {"rows"})
    check(clpipe, tmp_path, ("info", "p.h5"), {"info"})
    check(clpipe, tmp_path, ("verify", "p.h5"), {"verify"})


def test_a_stopped_ingest_accounts_for_its_time(clpipe, photos, tmp_path):
    result = clpipe("ingest", photos, "-o", "p.h5", *FEATURE, "--max-time", "0", "--json", "wall.json")
    assert result.returncode == 4
    report = json.loads((tmp_path / "wall.json").read_text())
    assert report["error"]["exit_code"] == 4
    assert sum(report["wall"]["stages"].values()) == pytest.approx(report["wall"]["seconds"], abs=1e-6)

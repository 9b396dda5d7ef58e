"""The cost of a second ingest is that of a walk plus, if the directory has grown, that of the new files. Compares
processor seconds, which do not depend on other programs."""

import json
import os
import subprocess

import numpy
import pytest
from PIL import Image

from conftest import CLPIPE, FEATURE, digest

LONG = pytest.mark.skipif(not os.environ.get("CLPIPE_LONG"), reason="only in tools/check --long")


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """The paths of 100 small JPEGs."""
    folder = tmp_path_factory.mktemp("few")
    random = numpy.random.default_rng(3)
    paths = [folder / f"{i}.jpg" for i in range(100)]
    for i, path in enumerate(paths):
        pixels = random.integers(0, 256, (32 + i % 7, 40, 3), dtype=numpy.uint8)
        Image.fromarray(pixels).save(path)
    return paths


def add_pictures(directory, few, first, end):
    """Adds links to the pictures, numbered from `first` to `end`, in folders of 1,000."""
    for i in range(first, end):
        path = directory / f"{i // 1000:03}" / f"{i:06}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        os.link(few[i % len(few)], path)
    return directory


def ingest(directory, output, *options):
    """Runs an ingest; returns its report and its processor seconds."""
    command = [str(CLPIPE), "ingest", *FEATURE, str(directory), "-o", str(output), "--json", "-", "-q",
               *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        report = json.loads(process.stdout.read())
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return report, usage.ru_utime + usage.ru_stime


@pytest.mark.slow
def test_a_grown_directory_costs_its_new_files_and_a_walk(program, few, tmp_path, capsys):
    photos = add_pictures(tmp_path / "photos", few, 0, 10000)
    new = add_pictures(tmp_path / "new", few, 10000, 11000)
    before, output = tmp_path / "before.h5", tmp_path / "x.h5"
    ingest(photos, before)
    walk = min(ingest(photos, before)[1] for _ in range(3))
    alone = min(ingest(new, tmp_path / "new.h5", "--fresh")[1] for _ in range(3))
    add_pictures(photos, few, 10000, 11000)
    grown = []
    for _ in range(3):
        output.write_bytes(before.read_bytes())
        report, seconds = ingest(photos, output)
        assert (report["images_ok"], report["images_unchanged"]) == (11000, 10000)
        grown.append(seconds)
    _, everything = ingest(photos, tmp_path / "all.h5")
    assert digest(output) == digest(tmp_path / "all.h5")
    with capsys.disabled():
        print(f" [processor seconds: 1,000 new files {alone:.2f}, a walk of 10,000 {walk:.2f}, both in "
              f"one run {min(grown):.2f}, all files {everything:.2f}] ", end="")
    assert min(grown) < 1.4 * (alone + walk)
    assert min(grown) < 0.7 * everything


@LONG
def test_an_unchanged_directory_of_100000(program, few, tmp_path, capsys):
    photos, output = add_pictures(tmp_path / "photos", few, 0, 100000), tmp_path / "x.h5"
    ingest(photos, output)
    before = os.stat(output)
    seconds = []
    for _ in range(5):
        report, _ = ingest(photos, output)
        assert report["images_unchanged"] == 100000
        seconds.append(report["seconds"])
    after = os.stat(output)
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    with capsys.disabled():
        print(f" [100,000 files, nothing new: {min(seconds):.2f} s] ", end="")
    assert min(seconds) < 2

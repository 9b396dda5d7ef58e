"""Each hostile file becomes an image of the right size or a failure with a reason."""

import csv
import functools
import json
import os
import re
import subprocess
import sys
from urllib.parse import unquote_to_bytes

import h5py
import pytest

from conftest import CLPIPE, ROOT, run_clpipe

NASTY = ROOT.parent / "shared" / "data" / "nasty"
REASONS = {"unreadable", "vanished", "changed", "empty", "unknown-format", "unsupported", "corrupt",
           "truncated", "too-large", "too-many-scans", "timeout", "out-of-memory",
           "decoder-crashed", "not-an-image"}
NO_IMAGE = {"unknown-format", "not-an-image", "empty", "unsupported"}
# Sanitizers need additional memory.
MEMORY = (512 << 20) if CLPIPE.parent.name == "release" else 1 << 30

pytestmark = pytest.mark.skipif(not (NASTY / "manifest.tsv").exists(),
                                reason="../shared/data/nasty is not there")


@functools.cache
def readable():
    """The formats that this build decodes."""
    result = run_clpipe("formats", "--json", "-")
    return {row["name"] for row in json.loads(result.stdout) if row["readable"]}


def read_tsv(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def shown(path):
    """A path as shown in /images/path: bytes that are not UTF-8 become \\xHH."""
    text = path.decode("utf-8", "surrogateescape")
    return re.sub("[\udc80-\udcff]", lambda m: f"\\x{ord(m.group()) - 0xdc00:02x}", text).lower()


def outcomes(output):
    """Returns {path: (width, height) or reason}; each path occurs once."""
    with h5py.File(output) as file:
        text = h5py.check_string_dtype
        assert text(file["images/path"].dtype) and text(file["failures/path"].dtype)
        images = [p.decode().lower() for p in file["images/path"][:]]
        failures = [p.decode().lower() for p in file["failures/path"][:]]
        found = dict(zip(images, zip(file["images/width"][:].tolist(),
                                     file["images/height"][:].tolist())))
        reasons = [r.decode() for r in file["failures/reason"][:]]
        messages = file["failures/message"][:]
    assert set(reasons) <= REASONS
    assert all(messages)
    found.update(zip(failures, reasons))
    assert len(found) == len(images) + len(failures)
    return found


def complaint(row, outcome):
    """Describes what is wrong with the outcome of a row of expectations, or returns None."""
    form, expect = row["format_by_content"], row["expect"]
    if outcome is None:
        return "lost"
    if form == "none":
        return None if outcome in NO_IMAGE else "no image, yet not refused as such"
    if expect == "reject" and not isinstance(outcome, str):
        return "should be refused"
    if form not in readable():
        return None if outcome == "unsupported" else "should be unsupported"
    if expect == "decode" and outcome != (int(row["width"]), int(row["height"])):
        return f"should be {row['width']} x {row['height']}"
    # Two or three letters are not enough to recognise a BMP or PNM.
    if outcome in ("not-an-image", "unknown-format") and form not in ("bmp", "pnm"):
        return "not recognised"
    return None


def complaints(rows, found):
    return [f"{row['path']}: {found.get(row['key'])}: {wrong}" for row in rows
            if (wrong := complaint(row, found.get(row["key"])))]


def check_run(result, found):
    """Checks that the exit code and the counts of the summary agree with the file."""
    assert result.returncode == 1, result.stderr[-2000:]
    ingest = json.loads(result.stdout)
    failed = [o for o in found.values() if isinstance(o, str) and o != "not-an-image"]
    assert ingest["images_ok"] == sum(not isinstance(o, str) for o in found.values())
    assert ingest["images_failed"] == len(failed)
    return ingest


def test_manifest(clpipe, tmp_path):
    rows = read_tsv(NASTY / "manifest.tsv")
    for row in rows:
        row["key"] = shown(os.fsencode(row["path"]))
    result = clpipe("ingest", NASTY, "-o", tmp_path / "nasty.h5", "--hidden", "--json", "-", "-q")
    found = outcomes(tmp_path / "nasty.h5")
    ingest = check_run(result, found)
    assert complaints(rows, found) == []
    # The directory also has three files that describe the manifest.
    assert set(found) - {row["key"] for row in rows} == {"readme.md", "make_synthetic.py",
                                                         "manifest.tsv"}
    assert ingest["peak_rss_bytes"] < MEMORY


def make_tree(directory, *options):
    subprocess.run([sys.executable, NASTY / "make_synthetic.py", directory, *options], check=True,
                   stdout=subprocess.DEVNULL, timeout=120)
    rows = read_tsv(directory / "expected.tsv")
    for row in rows:
        row["bytes_path"] = unquote_to_bytes(row["path"])
        row["key"] = shown(row["bytes_path"])
    return rows


@pytest.fixture(scope="module")
def generated(tmp_path_factory, program):
    """The regular files of the generated tree, including those that unpack to gigabytes: (its root,
    expectations, outcomes)."""
    directory = tmp_path_factory.mktemp("generated")
    rows = make_tree(directory / "tree", "--no-special")
    files = directory / "tree" / "files"
    result = run_clpipe("ingest", files, "-o", directory / "made.h5", "--json", "-", "-q")
    found = outcomes(directory / "made.h5")
    assert check_run(result, found)["peak_rss_bytes"] < MEMORY
    return files, rows, found


@pytest.mark.slow
def test_generated(generated):
    _, rows, found = generated
    assert len(rows) > 400
    assert complaints(rows, found) == []
    assert set(found) == {row["key"] for row in rows}


@pytest.mark.slow
def test_reasons(generated):
    """Each failure has the most helpful reason."""
    _, _, found = generated
    expected = {
        "jpeg/12-bit.jpg": "unsupported",
        "jpeg/lossless-8-bit.jpg": "unsupported",
        "jpeg/height-0-dnl.jpg": "unsupported",
        "jpeg/declared-60000x60000.jpg": "too-large",
        "jpeg/65535x1.jpg": "too-large",
        "jpeg/cut-50.jpg": "truncated",
        "jpeg/cut-progressive-50.jpg": "truncated",
        "jpeg/scans-2647-128x128.jpg": "too-many-scans",
        "jpeg/scans-3001-illegal-128x128.jpg": "too-many-scans",
        "jpeg/eoi-missing.jpg": (64, 40),
        "jpeg/dht-overfull.jpg": "corrupt",
        "png/crc-idat.png": "corrupt",
        "png/crc-text.png": (64, 40),
    }
    assert {path: found.get(path) for path in expected} == expected


@pytest.mark.slow
def test_isolated(tmp_path, generated):
    """Decoding in isolated processes gives the same result to the bit."""
    files = generated[0]
    plain = files.parent.parent / "made.h5"
    result = run_clpipe("ingest", files, "-o", tmp_path / "isolated.h5", "--isolate", "-q")
    assert result.returncode == 1, result.stderr
    assert run_clpipe("info", tmp_path / "isolated.h5", "--digest").stdout == \
        run_clpipe("info", plain, "--digest").stdout != ""


def test_manifest_isolated(tmp_path, program):
    for output, options in (("plain.h5", []), ("isolated.h5", ["--isolate", "--threads", 3])):
        assert run_clpipe("ingest", NASTY, "-o", tmp_path / output, "-q",
                          *options).returncode == 1
    assert run_clpipe("info", tmp_path / "isolated.h5", "--digest").stdout == \
        run_clpipe("info", tmp_path / "plain.h5", "--digest").stdout != ""


@pytest.mark.slow
def test_manifest_by_coefficients(tmp_path, program, generated):
    """Where the pixels of JPEG files are computed does not change the result, including failures and their
    messages."""
    for output, options in (("host.h5", ["host"]), ("device.h5", ["device", "--threads", 3])):
        assert run_clpipe("ingest", NASTY, generated[0], "-o", tmp_path / output, "-q",
                          "--jpeg-pixels", *options).returncode == 1
    assert run_clpipe("info", tmp_path / "device.h5", "--digest").stdout == \
        run_clpipe("info", tmp_path / "host.h5", "--digest").stdout != ""


@pytest.mark.slow
def test_pixel_limit(clpipe, tmp_path, generated):
    """The limit applies to the dimensions in the header; a picture of exactly that size is accepted."""
    files, _, _ = generated
    names = ["png/ct2-d8.png", "png/ct6-d16-adam7.png", "png/1x1-ct2-d8.png", "jpeg/eoi-missing.jpg"]
    (tmp_path / "list").write_text("".join(f"{files / name}\n" for name in names))
    for limit, big in ((64 * 40 - 1, "too-large"), (64 * 40, (64, 40))):
        clpipe("ingest", f"@{tmp_path / 'list'}", "-o", tmp_path / f"{limit}.h5", "--max-pixels",
               limit, "-q")
        found = {path.split("/files/")[-1]: outcome
                 for path, outcome in outcomes(tmp_path / f"{limit}.h5").items()}
        assert found == {names[0]: big, names[1]: big, names[2]: (1, 1), names[3]: big}


@pytest.mark.slow
def test_special_entries(program, tmp_path):
    """Links, FIFOs, sockets, odd names and deep trees neither block the run nor make it fail."""
    rows = make_tree(tmp_path / "tree", "--no-bombs")
    try:
        result = run_clpipe("ingest", tmp_path / "tree" / "files", "-o", tmp_path / "all.h5",
                            "--hidden", "--json", "-", "-q", cwd=tmp_path)
        found = outcomes(tmp_path / "all.h5")
        check_run(result, found)
        plain = [row for row in rows if row["expect"] != "special"]
        assert complaints(plain, found) == []
        for name in ("kinds/real.png", "kinds/hard-link.png", "kinds/to-file.png"):
            assert found[name] == (64, 40)
        for name in ("kinds/self.png", "kinds/dangling.png", "kinds/loop-a.jpg"):
            assert found[name] in ("unreadable", "vanished")
    finally:
        subprocess.run(["chmod", "-R", "u+rwx", tmp_path / "tree"], check=False)
        subprocess.run(["rm", "-r", tmp_path / "tree"], check=True)

"""clpipe export --what shards: contents of the archives, also after failed writes."""

import hashlib
import io
import json
import os
import random
import signal
import subprocess
import tarfile
import time

import h5py
import numpy
import pytest
from conftest import CLPIPE, digest, draw_photos, error_lines, run_clpipe


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    draw_photos(folder / "photos", 60)
    (folder / "photos" / "red" / "ab \u00e9.cls").write_text("7")
    (folder / "photos" / "red" / "ab \u00e9.jpg").write_bytes((folder / "photos" / "red" / "03.jpg").read_bytes())
    with tarfile.open(folder / "photos" / "more.tar.gz", "w:gz") as tar:
        for name in "01.jpg", "07.jpg":
            tar.add(folder / "photos" / "green" / name, f"sub/{name}")
    for words in (["ingest", "photos", "-o", "f.h5", "--feature", "gray:bins=16", "--sidecar"],
                  ["cluster", "f.h5", "-k", 3], ["select", "f.h5", 20]):
        result = run_clpipe(*words, *(["--device", "cpu"] if words[0] != "select" else []), "-q", cwd=folder)
        assert result.returncode == 0, result.stderr
    return folder


def export(folder, *words, code=0):
    result = run_clpipe("export", "f.h5", "--what", "shards", *words, cwd=folder)
    assert result.returncode == code, result.stderr
    return result


def members(directory):
    """Reads all archives in order; returns {key: {suffix: bytes}}."""
    found = {}
    for path in sorted(directory.glob("shard-*.tar")):
        with tarfile.open(path) as tar:
            for member in tar:
                key, suffix = member.name.split(".", 1)
                assert suffix not in found.setdefault(key, {})
                found[key][suffix] = tar.extractfile(member).read()
    return found


def tree(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_contents(folder, tmp_path):
    export(folder, "--to", tmp_path / "out", "--feature", "gray_16", "--samples", 25)
    with h5py.File(folder / "f.h5") as f:
        paths, labels, rows = f["images/path"].asstr()[:], f["clusters/kmeans/labels"][:], f["features/gray_16"][:]
        width = f["images/width"][:]
    found = members(tmp_path / "out")
    assert [int(key) for key in found] == list(range(len(paths)))
    for key, sample in found.items():
        row = int(key)
        about = json.loads(sample["json"])
        assert about["path"] == paths[row] and about["row"] == row and about["width"] == width[row]
        assert about["clusters"] == {"kmeans": labels[row]} and about["source"] == "photos"
        assert numpy.array_equal(numpy.load(io.BytesIO(sample["npy"])), rows[row])
        suffix = paths[row].rsplit(".", 1)[1]
        if "more.tar.gz" not in paths[row]:
            assert sample[suffix] == (folder / "photos" / paths[row]).read_bytes()
        else:
            assert sample[suffix] == (folder / "photos" / "green" / paths[row].rsplit("/", 1)[1]).read_bytes()
        assert sample.get("cls") == (b"7" if "ab \u00e9" in paths[row] else None)
    index = json.loads((tmp_path / "out" / "index.json").read_text())
    assert [one["nsamples"] for one in index["shardlist"]] == [25, 25, len(paths) - 50]
    for one in index["shardlist"]:
        archive = (tmp_path / "out" / one["url"]).read_bytes()
        assert hashlib.sha256(archive).hexdigest() == one["sha256"] and len(archive) == one["filesize"]
    # Ingesting the archives gives the same rows; they are skipped below another source.
    again = run_clpipe("ingest", "out", "--archives", "-o", "again.h5", "--feature", "gray:bins=16", "--device", "cpu", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    with h5py.File(folder / "f.h5") as one, h5py.File(tmp_path / "again.h5") as two:
        assert numpy.array_equal(one["features/gray_16"], two["features/gray_16"])
        assert numpy.array_equal(one["images/digest"], two["images/digest"])
    above = run_clpipe("ingest", ".", "--archives", "-o", "above.h5", "--feature", "gray:bins=16", "--device", "cpu", cwd=tmp_path)
    assert above.returncode == 3 and "no image under ." in above.stderr, above.stdout + above.stderr


def test_selection_and_order(folder, tmp_path):
    export(folder, "--to", tmp_path / "out", "--selection", "selection")
    with h5py.File(folder / "f.h5") as f:
        chosen, why = f["selections/selection/rows"][:], f["selections/selection/reason"].asstr()[:]
    found = members(tmp_path / "out")
    assert [int(key) for key in found] == chosen.tolist()
    assert [json.loads(sample["json"])["reason"] for sample in found.values()] == why.tolist()
    export(folder, "--to", tmp_path / "mixed", "--selection", "selection", "--shuffle", "--seed", 3)
    mixed = members(tmp_path / "mixed")
    assert sorted(mixed) == sorted(found) and list(mixed) != list(found)
    assert all(mixed[key] == found[key] for key in found)
    export(folder, "--to", tmp_path / "mixed again", "--selection", "selection", "--shuffle", "--seed", 3)
    assert tree(tmp_path / "mixed") == tree(tmp_path / "mixed again")


def test_shares(folder, tmp_path):
    export(folder, "--to", tmp_path / "whole", "--samples", 9)
    for i in 2, 0:
        assert "when all shares are written" in export(folder, "--to", tmp_path / "out", "--samples", 9, "--shard",
                                                       f"{i}/3").stderr
    assert not (tmp_path / "out" / "index.json").exists()
    export(folder, "--to", tmp_path / "out", "--samples", 9, "--shard", "1/3")
    assert tree(tmp_path / "out") == tree(tmp_path / "whole")


def test_shares_at_the_same_time(folder, tmp_path):
    """All shares start at once in a new or an existing directory, which is not replaced; any of them may
    finish last."""
    export(folder, "--to", tmp_path / "whole", "--samples", 9)
    for i in range(12):
        out = tmp_path / f"out{i}"
        if i % 2:
            out.mkdir(0o2775)
            there = out.stat()
        shares = [subprocess.Popen([CLPIPE, "export", "f.h5", "--what", "shards", "--to", out, "--samples", "9",
                                    "--shard", f"{share}/6", "-q"], cwd=folder, stderr=subprocess.PIPE, text=True)
                  for share in range(6)]
        assert [(share.communicate()[1], share.returncode) for share in shares] == [("", 0)] * 6
        assert tree(out) == tree(tmp_path / "whole")
        assert i % 2 == 0 or (out.stat().st_ino, out.stat().st_mode) == (there.st_ino, there.st_mode)


def test_existing_files_are_kept(folder, tmp_path):
    export(folder, "--to", tmp_path / "out", "--samples", 9)
    before = tree(tmp_path / "out")
    times = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*.tar")}
    (tmp_path / "out" / "shard-000002.tar").unlink()
    (tmp_path / "out" / "shard-000004.json").unlink()
    (tmp_path / "out" / "index.json").unlink()
    assert "2 archives" in export(folder, "--to", tmp_path / "out", "--samples", 9).stderr
    assert tree(tmp_path / "out") == before
    assert (tmp_path / "out" / "shard-000001.tar").stat().st_mtime_ns == times["shard-000001.tar"]
    other = export(folder, "--to", tmp_path / "out", "--samples", 8, code=3)
    assert "made from other data or with other options" in error_lines(other)[0]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("mine")
    assert "is not empty" in error_lines(export(folder, "--to", tmp_path / "mine", code=3))[0]
    assert tree(tmp_path / "mine") == {"file": b"mine"}


def test_missing_and_changed_files(folder, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    subprocess.run(["cp", "-a", folder / "photos", folder / "f.h5", copy], check=True)
    moved = run_clpipe("ingest", "photos", "-o", "f.h5", "--relocate", "photos", "--device", "cpu", cwd=copy)
    assert moved.returncode == 0, moved.stderr
    times = (copy / "photos" / "red" / "06.jpg").stat()
    changed = bytearray((copy / "photos" / "red" / "06.jpg").read_bytes())
    changed[-9] ^= 1
    (copy / "photos" / "red" / "06.jpg").write_bytes(changed)
    os.utime(copy / "photos" / "red" / "06.jpg", ns=(times.st_atime_ns, times.st_mtime_ns))
    (copy / "photos" / "blue" / "02.jpg").unlink()
    result = export(copy, "--to", tmp_path / "out", "--samples", 30, code=1)
    assert "notice: 2 images gone or changed since: left out" in result.stderr
    with h5py.File(copy / "f.h5") as f:
        paths = f["images/path"].asstr()[:].tolist()
    missing = {paths.index("red/06.jpg"), paths.index("blue/02.jpg")}
    assert [int(key) for key in members(tmp_path / "out")] == [row for row in range(len(paths)) if row not in missing]
    again = export(copy, "--to", tmp_path / "out", "--samples", 30, code=1)
    assert "archives there already" in again.stderr and "notice: 2 images gone or changed since" in again.stderr


@pytest.mark.parametrize("what", ["class", "quality", "time", "feature"])
def test_archives_of_other_data_are_refused(folder, tmp_path, what):
    copy = tmp_path / "copy"
    copy.mkdir()
    subprocess.run(["cp", "-a", folder / "photos", folder / "f.h5", copy], check=True)

    def run(*words):
        result = run_clpipe(*words, "--device", "cpu", "-q", cwd=copy)
        assert result.returncode == 0, result.stderr

    run("ingest", "photos", "-o", "f.h5", "--relocate", "photos")
    with h5py.File(copy / "f.h5") as f:
        numpy.save(copy / "rows.npy", numpy.arange(2 * len(f["images/path"])).reshape(-1, 2))
    run("import", "f.h5", "rows=rows.npy")
    words = ["--to", tmp_path / "out", "--samples", 30, "--feature", "rows"]
    export(copy, *words)
    before = tree(tmp_path / "out")
    if what == "class":
        (copy / "photos" / "red" / "ab \u00e9.cls").write_text("8")
        run("ingest", "photos", "-o", "f.h5")
    elif what == "quality":
        run("ingest", "photos", "-o", "f.h5", "--add", "--quality")
    elif what == "time":
        os.utime(copy / "photos" / "red" / "06.jpg", (5, 5))
        run("ingest", "photos", "-o", "f.h5")
    else:
        numpy.save(copy / "rows.npy", -numpy.load(copy / "rows.npy"))
        run("import", "f.h5", "rows=rows.npy", "--force")
    other = export(copy, *words, code=3)
    assert "made from other data or with other options" in error_lines(other)[0]
    assert tree(tmp_path / "out") == before


@pytest.mark.deep
def test_kills(folder, tmp_path):
    export(folder, "--to", tmp_path / "whole", "--samples", 2)
    whole, seeded, killed = tree(tmp_path / "whole"), random.Random(1), 0
    for _ in range(40):
        process = subprocess.Popen([CLPIPE, "export", "f.h5", "--what", "shards", "--samples", "2", "--to",
                                    tmp_path / "out"], cwd=folder, stderr=subprocess.DEVNULL)
        time.sleep(seeded.random() * 0.1)
        process.send_signal(signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
        if (tmp_path / "out").exists():
            there = {name: data for name, data in tree(tmp_path / "out").items() if ".tmp-clpipe-" not in name}
            assert all(whole[name] == data for name, data in there.items())
    assert killed > 3
    export(folder, "--to", tmp_path / "out", "--samples", 2)
    assert {name: data for name, data in tree(tmp_path / "out").items() if ".tmp-clpipe-" not in name} == whole
    assert digest(folder / "f.h5")


def test_options(folder, tmp_path):
    assert "--what shards requires --to" in error_lines(export(folder, code=2))[0]
    named = export(folder, "--to", tmp_path / "o", "--name", "selection", code=2)
    assert "--selection names the images" in error_lines(named)[0] and not (tmp_path / "o").exists()
    assert "no selection none" in error_lines(export(folder, "--to", tmp_path / "o", "--selection", "none", code=2))[0]
    result = run_clpipe("export", "f.h5", "--what", "images", "--shuffle", cwd=folder)
    assert result.returncode == 2 and "--shuffle requires --what shards" in result.stderr

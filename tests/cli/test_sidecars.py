"""--sidecar: sidecar files of pictures become columns of the result."""
import io
import json
import os
import shutil
import tarfile

import h5py
import pytest
from conftest import check_one_error, digest, run_clpipe

FEATURE = ["--feature", "gray:bins=8", "--device", "cpu", "-q"]
NONE = -2**63
needs_archives = pytest.mark.skipif("not built in" in run_clpipe("--version").stdout.split(
    "archives")[-1].split("\n")[0], reason="this build has no libarchive")


def columns(path):
    with h5py.File(path) as file:
        images = file["images"]
        found = {name: images[name].asstr()[()].tolist() if images[name].dtype.kind == "S"
                 else images[name][()].tolist() for name in ("path", "key", "cls")}
        for name in ("json", "txt"):
            data, ends = images[name]["data"][()].tobytes(), [0, *images[name]["end"][()]]
            found[name] = [data[start:end].decode() for start, end in zip(ends, ends[1:])]
        return found


@pytest.fixture
def samples(tmp_path, photos):
    """Samples in a directory and in archives; some have no sidecar files, or have them before the picture."""
    red, blue = (sorted((photos / tint).iterdir())[0].read_bytes() for tint in ("red", "blue"))
    files = {"a/1.jpg": red, "a/1.cls": b" 7\n", "a/2.cls": b"3", "a/2.json": b'{"x": [1,\n2]}',
             "a/2.png": blue, "a/2.txt": "a caf\u00e9\n".encode(), "a/3.seg.png": red, "a/3.txt": b"x\0y",
             "a/4.jpg": b"no picture", "a/4.cls": b"9", "b/1.png": blue, "b/1.cls": b"-12",
             "b/1.json": b"j" * (1 << 20) + b"!"}
    (tmp_path / "t").mkdir()
    for name, content in files.items():
        (tmp_path / "t" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "t" / name).write_bytes(content)
    for name in ("s.tar", "s.tgz"):
        with tarfile.open(tmp_path / name, "w:gz" if name == "s.tgz" else "w") as archive:
            for member, content in files.items():
                info = tarfile.TarInfo(member)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return files


KEYS = ["a/1", "a/2", "a/3", "b/1"]
CLS = [7, 3, NONE, -12]
JSON = ["", '{"x": [1,\n2]}', "", ""]
TXT = ["", "a caf\u00e9", "", ""]


@pytest.mark.deep
@needs_archives
def test_columns(clpipe, samples, tmp_path):
    result = clpipe("ingest", "t", "s.tar", "s.tgz", "-o", "s.h5", "--sidecar", *FEATURE)
    assert result.returncode == 1, result.stderr
    found = columns(tmp_path / "s.h5")
    assert found["key"] == KEYS * 3 and found["cls"] == CLS * 3
    assert found["json"] == JSON * 3 and found["txt"] == TXT * 3
    assert clpipe("verify", "s.h5").returncode == 0
    assert "nothing new" in clpipe("ingest", "t", "s.tar", "s.tgz", "-o", "s.h5").stdout
    lines = clpipe("export", "s.h5", "--what", "images", "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line)["cls"] for line in lines[:4]] == ["7", "3", None, "-12"]
    assert [json.loads(line)["txt"] for line in lines[:2]] == [None, "a caf\u00e9"]
    # Clusters are added to a copy of the file, which keeps these columns.
    assert clpipe("cluster", "s.h5", "-k", "2", "-q").returncode == 0
    assert columns(tmp_path / "s.h5") == found
    # Without --sidecar there are no such columns; an update adds them.
    assert clpipe("ingest", "s.tar", "-o", "n.h5", *FEATURE).returncode == 1
    with h5py.File(tmp_path / "n.h5") as file:
        assert "cls" not in file["images"] and "key" not in file["images"]
    check_one_error(clpipe("evaluate", "n.h5", "--classes", "cls"), 3, "--sidecar")
    assert clpipe("ingest", "s.tar", "-o", "n.h5", "--sidecar", "-q").returncode == 1
    assert columns(tmp_path / "n.h5")["cls"] == CLS


def test_a_textual_class_makes_all_classes_texts(clpipe, samples, tmp_path):
    assert clpipe("ingest", "t", "-o", "s.h5", "--sidecar", *FEATURE).returncode == 1
    assert columns(tmp_path / "s.h5")["cls"] == CLS
    (tmp_path / "t/b/1.cls").write_text("007")
    assert clpipe("ingest", "t", "-o", "s.h5", "-q").returncode == 1
    assert columns(tmp_path / "s.h5")["cls"] == ["7", "3", "", "007"]


@pytest.mark.deep
def test_repair_keeps_columns(clpipe, samples, tmp_path):
    assert clpipe("ingest", "t", "-o", "s.h5", "--sidecar", *FEATURE).returncode == 1
    whole, before = columns(tmp_path / "s.h5"), digest(tmp_path / "s.h5")
    with h5py.File(tmp_path / "s.h5", "r+") as file:
        file["images/orientation"][1] = 99
    assert clpipe("repair", "s.h5").returncode == 1
    assert columns(tmp_path / "s.h5") == {name: c[:1] + c[2:] for name, c in whole.items()}
    assert clpipe("verify", "s.h5").returncode == 0
    assert clpipe("ingest", "t", "-o", "s.h5", "-q").returncode == 1
    assert columns(tmp_path / "s.h5") == whole and digest(tmp_path / "s.h5") == before
    # Incomplete columns are dropped; the next update restores them even if nothing else has changed.
    os.remove(tmp_path / "s.h5.damaged")
    with h5py.File(tmp_path / "s.h5", "r+") as file:
        del file["images/json"]
    assert clpipe("repair", "s.h5").returncode in (0, 1)
    assert clpipe("ingest", "t", "-o", "s.h5", "-q").returncode == 1
    assert columns(tmp_path / "s.h5") == whole and digest(tmp_path / "s.h5") == before
    assert "nothing new" in clpipe("ingest", "t", "-o", "s.h5").stdout


def test_an_update_reads_new_texts(clpipe, samples, tmp_path):
    """Texts are compared even if no image has changed; the file is written only if a text has changed."""
    ingest = ["ingest", "t", "-o", "t.h5", "--sidecar", *FEATURE, "--allow-failures", "1"]
    assert clpipe(*ingest).returncode == 0
    (tmp_path / "t" / "a" / "1.cls").write_text("8")
    assert clpipe(*ingest).returncode == 0
    assert columns(tmp_path / "t.h5")["cls"] == [8, 3, NONE, -12]
    written = os.stat(tmp_path / "t.h5").st_mtime_ns
    assert clpipe(*ingest).returncode == 0
    assert os.stat(tmp_path / "t.h5").st_mtime_ns == written


@pytest.mark.deep
@needs_archives
def test_shards_keep_samples_together(clpipe, samples, tmp_path):
    (tmp_path / "t/b/1.cls").write_text("cat")  # one shard has text, the others numbers
    assert clpipe("list", "t", "s.tar", "-o", "L", "-q").returncode == 0
    assert clpipe("ingest", "@L", "-o", "one.h5", "--sidecar", *FEATURE).returncode == 1
    for i in range(3):
        clpipe("ingest", "@L", "-o", "s{shard}.h5", "--shard", f"{i}/3", "--sidecar", *FEATURE)
    for how in ([], ["--copy"]):
        result = clpipe("merge", "s0.h5", "s1.h5", "s2.h5", "-o", "all.h5", "--force", *how)
        assert result.returncode in (0, 1), result.stderr
        assert columns(tmp_path / "all.h5") == columns(tmp_path / "one.h5")
        assert digest(tmp_path / "all.h5") == digest(tmp_path / "one.h5")
        os.remove(tmp_path / "all.h5")


def test_classes_for_evaluate(clpipe, photos, tmp_path):
    shutil.copytree(photos, tmp_path / "t")
    for path in list((tmp_path / "t").rglob("*.*")):
        path.with_name(path.name.partition(".")[0] + ".cls").write_text(path.parent.name)
    assert clpipe("ingest", "t", "-o", "s.h5", "--sidecar", "--feature", "rgb:bins=4x4x4", "-q",
                  "--device", "cpu").returncode == 0
    by_class = clpipe("evaluate", "s.h5", "--classes", "cls", "--json", "-")
    by_folder = clpipe("evaluate", "s.h5", "--json", "-")
    a, b = (json.loads(r.stdout) for r in (by_class, by_folder))
    assert a["classes"] == 3
    assert [f["map"] for f in a["features"]] == [f["map"] for f in b["features"]]

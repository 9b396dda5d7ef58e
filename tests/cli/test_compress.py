"""ingest --compress changes the bytes of the file, not its content. Every command reads compressed files and keeps
them compressed."""

import json
import os
import shutil
import subprocess
import sys

import h5py
import numpy
import pytest

from conftest import ROOT, check_one_error, digest, draw_photos, run_clpipe

sys.path.insert(0, str(ROOT / "tools" / "python"))
import clpipe as package  # noqa: E402

# The chunks of these features have five rows, one row and all rows, respectively.
SPECS = ["many=rgb:bins=256,grid=4x4", "wide=gray:bins=256,grid=20x16,normalize=none", "gray:bins=9"]
FEATURES = [f"--feature={spec}" for spec in SPECS]


def clpipe(*args, code=0):
    result = run_clpipe(*args)
    assert result.returncode == code, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def made(program, tmp_path_factory):
    """A directory with 13 images in p and their results plain.h5 and packed.h5."""
    place = tmp_path_factory.mktemp("compress")
    draw_photos(place / "p")
    for output, *options in ("plain.h5",), ("packed.h5", "--compress"):
        assert run_clpipe("ingest", "p", "-o", output, *FEATURES, *options,
                          cwd=place).returncode == 0
    return place


@pytest.fixture
def place(made, tmp_path, monkeypatch):
    shutil.copytree(made, tmp_path / "c")
    monkeypatch.chdir(tmp_path / "c")
    return tmp_path / "c"


def layouts(path):
    """{feature: (rows per chunk, compression, shuffle, stored size as a fraction of the size of the values)}."""
    with h5py.File(path, "r") as file:
        return {name: (values.chunks and values.chunks[0], values.compression, values.shuffle,
                       values.id.get_storage_size() / max(values.nbytes, 1))
                for name, values in file["features"].items()}


def is_compressed(path):
    found = {compression for _, compression, _, _ in layouts(path).values()}
    assert found in ({"gzip"}, {None})
    return found == {"gzip"}


def test_same_content(place):
    assert digest("packed.h5") == digest("plain.h5")
    assert "no problems found" in clpipe("verify", "packed.h5")
    assert not is_compressed("plain.h5")
    found = layouts("packed.h5")
    assert [found[name][:3] for name in ("many", "wide", "gray_9")] == [
        (5, "gzip", False), (1, "gzip", True), (13, "gzip", False)]
    assert found["many"][3] < 0.5 and found["wide"][3] < 0.1
    with h5py.File("packed.h5", "r") as packed, h5py.File("plain.h5", "r") as plain:
        for name, values in plain["features"].items():
            assert numpy.array_equal(packed["features"][name][:], values[:])
            assert numpy.array_equal(packed["features"][name][7], values[7])
    assert "compressed: " in clpipe("info", "packed.h5")
    assert "compressed: " not in clpipe("info", "plain.h5")
    info = json.loads(clpipe("info", "packed.h5", "--json", "-"))
    assert {f["name"]: f["stored_bytes"] for f in info["features"]}["wide"] < 13 * 81920 * 4 / 10


@pytest.mark.deep
def test_commands_agree(place):
    def both(*args):
        plain, packed = (clpipe(*[arg.format(file) for arg in args]) for file in ("plain", "packed"))
        assert plain.replace("plain", "packed") == packed
        return plain
    for name in "many", "wide":
        assert both("export", "{}.h5", "--what", "features", "--feature", name)
    both("similar", "{}.h5", "row:5", "--feature", "many")
    both("similar", "{}.h5", "row:5", "--feature", "wide")
    assert "copy of 00.png" in both("duplicates", "{}.h5", "--format", "csv")
    for file in "plain.h5", "packed.h5":
        clpipe("cluster", file, "-k", "3", "--feature", "many", "--threads", "2")
        clpipe("similar", file, "--all", "-n", "3", "--feature", "wide")
    assert digest("plain.h5") == digest("packed.h5")
    assert is_compressed("packed.h5")
    clpipe("cluster", "packed.h5", "-k", "2", "--feature", "wide", "--name", "w", "-o",
           "c.h5")
    clpipe("assign", "c.h5", "plain.h5", "--name", "w")
    clpipe("assign", "c.h5", "packed.h5", "--name", "w")
    assert digest("plain.h5") == digest("packed.h5")
    clpipe("report", "packed.h5", "-o", "r")
    with package.open("packed.h5") as packed, package.open("plain.h5") as plain:
        assert numpy.array_equal(packed.feature("many"), plain.feature("many"))


@pytest.mark.deep
def test_updates_keep_the_compression(place):
    clpipe("cluster", "packed.h5", "-k", "3", "--feature", "many")
    shutil.copy("p/red/03.jpg", "p/blue/03.jpg")
    os.remove("p/green/07.jpg")
    clpipe("ingest", "p", "-o", "packed.h5", "--relocate", "p")
    assert is_compressed("packed.h5") and "no problems found" in clpipe("verify", "packed.h5")
    with h5py.File("packed.h5", "r") as file:
        assert (file["clusters/kmeans/labels"][:] >= 0).all()
    clpipe("ingest", "p", "-o", "new.h5", *FEATURES)
    clpipe("remove", "packed.h5", "clusters/kmeans")
    assert digest("packed.h5") == digest("new.h5")
    clpipe("ingest", "p", "-o", "packed.h5", "--add", "--feature", "hsv")
    assert is_compressed("packed.h5")
    clpipe("ingest", "p", "-o", "packed.h5", "--fresh", *FEATURES)
    assert not is_compressed("packed.h5") and digest("packed.h5") == digest("new.h5")
    # --compress rewrites an uncompressed file once.
    clpipe("ingest", "p", "-o", "new.h5", "--compress")
    assert is_compressed("new.h5") and digest("packed.h5") == digest("new.h5")
    before = os.stat("new.h5")
    clpipe("ingest", "p", "-o", "new.h5", "--compress")
    assert os.stat("new.h5").st_ino == before.st_ino


@pytest.mark.variations
@pytest.mark.parametrize("kind", ["float16", "uint8"])
def test_stored_types(place, kind):
    for output, *options in ("x.h5",), ("y.h5", "--compress"):
        clpipe("ingest", "p", "-o", output, "--store", kind, *FEATURES, *options)
    assert digest("x.h5") == digest("y.h5") and is_compressed("y.h5")
    assert layouts("y.h5")["many"][2] == (kind == "float16")
    for file in "x.h5", "y.h5":
        clpipe("cluster", file, "-k", "2", "--feature", "many")
    assert digest("x.h5") == digest("y.h5")


@pytest.mark.deep
def test_merge(place):
    for part, name in enumerate(("red", "green", "blue")):
        clpipe("ingest", f"p/{name}", "-o", f"{name}.h5", *FEATURES,
               *(["--compress"] if part < 2 else []))
    clpipe("ingest", "p/red", "p/green", "p/blue", "-o", "all.h5", *FEATURES)
    for output, *options in ("virtual.h5",), ("copy.h5", "--copy"):
        clpipe("merge", "red.h5", "green.h5", "blue.h5", "-o", output, *options)
        assert digest(output) == digest("all.h5")
        assert "no problems found" in clpipe("verify", output)
        clpipe("cluster", output, "-k", "3", "--feature", "many")
    clpipe("cluster", "all.h5", "-k", "3", "--feature", "many")
    assert digest("virtual.h5") == digest("copy.h5") == digest("all.h5")
    assert is_compressed("copy.h5") and layouts("copy.h5")["many"][0] == 5
    clpipe("ingest", "p/red", "-o", "red.h5", "--fresh", *FEATURES)
    clpipe("merge", "red.h5", "blue.h5", "-o", "two.h5", "--copy")
    assert not is_compressed("two.h5")
    clpipe("merge", "red.h5", "blue.h5", "-o", "packed two.h5", "--copy", "--compress")
    assert is_compressed("packed two.h5") and digest("packed two.h5") == digest("two.h5")
    check_one_error(run_clpipe("merge", "red.h5", "blue.h5", "-o", "x.h5", "--compress"), 2,
                    "--compress", "--copy")


def test_merge_of_imports_only(place):
    for part in "red", "green":
        clpipe("ingest", f"p/{part}", "-o", f"{part}.h5", "--feature", "gray:bins=9", "--compress")
        rows = json.loads(clpipe("info", f"{part}.h5", "--json", "-"))["images"]
        numpy.save("rows.npy", numpy.zeros((rows, 3), "f4"))
        clpipe("import", f"{part}.h5", "own=rows.npy")
        with h5py.File(f"{part}.h5", "r+") as file:
            del file["features/gray_9"]
    clpipe("merge", "red.h5", "green.h5", "-o", "both.h5", "--copy", "--compress")


def test_no_rows(place):
    os.mkdir("empty")
    with open("empty/note.jpg", "w") as file:
        file.write("no image")
    shutil.copytree("p/red", "q")
    clpipe("ingest", "q", "-o", "x.h5", "--compress", *FEATURES, "--shard", "0/2")
    clpipe("ingest", "q", "-o", "y.h5", "--compress", *FEATURES, "--shard", "1/2")
    clpipe("merge", "x.h5", "y.h5", "-o", "z.h5", "--copy")
    assert is_compressed("z.h5")


@pytest.mark.deep
def test_full_disk_while_building(place):
    """The disk has space for the log but not for the result. This gives one error line; with more space, the same
    command finishes."""
    command = ["ingest", "p", "--compress", "--feature=gray:bins=9", "-o"]
    clpipe(*command, "whole.h5")
    os.mkdir("disk")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={os.stat('whole.h5').st_size // 2}", "tmpfs", "disk"],
                      capture_output=True).returncode != 0:
        pytest.skip("mounting is not allowed here")
    try:
        check_one_error(run_clpipe(*command, "disk/x.h5"), 3, "x.h5", "free")
        assert os.listdir("disk") == ["x.h5.partial"]
        subprocess.run(["mount", "-o", "remount,size=16m", "disk"], check=True)
        clpipe(*command, "disk/x.h5")
        assert digest("disk/x.h5") == digest("whole.h5")
        assert os.listdir("disk") == ["x.h5"]
    finally:
        subprocess.run(["umount", "disk"], check=True)


def damage(path):
    """Damages the chunk of row 9 of the feature "wide"; returns the undamaged rows."""
    with h5py.File(path, "r") as file:
        rows = file["features/wide"][:]
        chunk = file["features/wide"].id.get_chunk_info(9)
        assert chunk.chunk_offset == (9, 0)
    with open(path, "r+b") as file:
        file.seek(chunk.byte_offset + chunk.size // 2)
        file.write(b"\xa5" * 40)
    return rows


@pytest.mark.deep
def test_a_damaged_chunk(place):
    """The row of the chunk and the other row under the same checksum are lost; all others are saved."""
    rows = damage("packed.h5")
    broken = clpipe("verify", "packed.h5", code=1)
    assert "the chunk of row 9 " in broken and "rows 8 to 9" in broken
    check_one_error(run_clpipe("info", "--digest", "packed.h5"), 3, "the chunk of row 9 ")
    clpipe("repair", "packed.h5", "-o", "saved.h5", code=1)
    assert is_compressed("saved.h5") and "no problems found" in clpipe("verify", "saved.h5")
    with h5py.File("saved.h5", "r") as file:
        assert numpy.array_equal(file["features/wide"][:], numpy.delete(rows, [8, 9], 0))
    # An update restores the lost rows from the pictures.
    clpipe("ingest", "p", "-o", "saved.h5", "--relocate", "p")
    assert digest("saved.h5") == digest("plain.h5")


def test_a_damaged_chunk_and_other_damage(place):
    with h5py.File("packed.h5", "r+") as file:
        file["images/orientation"][7] = 99
    rows = damage("packed.h5")
    clpipe("repair", "packed.h5", "-o", "saved.h5", code=1)
    with h5py.File("saved.h5", "r") as file:
        assert numpy.array_equal(file["features/wide"][:], numpy.delete(rows, [7, 8, 9], 0))


@pytest.mark.deep
def test_verify_of_a_clustering_of_a_damaged_chunk(place):
    """verify reports the clustering and continues."""
    clpipe("cluster", "packed.h5", "-k", "2", "--feature", "wide", "--name", "groups")
    clpipe("similar", "packed.h5", "--all", "-n", "2", "--feature", "wide")
    damage("packed.h5")
    broken = clpipe("verify", "packed.h5", code=1).splitlines()
    assert any(line.startswith("/clusters/groups: ") and "the chunk of row 9 " in line for line in broken)

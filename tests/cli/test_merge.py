"""A merged file equals one ingest of all sources, or it is not written."""

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import time

import h5py
import numpy
import pytest

from conftest import ALL, CLPIPE, SEED, check_one_error, digest, draw_photos, run_clpipe, spoil

FEATURES = ["--feature", "rgb:bins=8x8x8", "--feature", "counts=gray:bins=16,normalize=none",
            "--thumbnails", "64"]
SHARDS = 5
WAYS = pytest.mark.parametrize("way", ([], ["--copy"]), ids=("virtual", "copied"))


def ok(result, *codes):
    assert result.returncode in (codes or (0,)), result.stderr
    return result


@pytest.fixture(scope="module")
def made(program, tmp_path_factory):
    """a.h5 and b.h5 from two directories, all.h5 from both, c.h5 with other options, and shards of a list."""
    place = tmp_path_factory.mktemp("parts")
    draw_photos(place / "a")
    spoil(place / "a")
    draw_photos(place / "b", 7)
    os.rename(place / "b" / "red" / "03.jpg", os.fsencode(place / "b") + b"/caf\xe9.jpg")
    (place / "b" / os.fsdecode(b"\xff.jpg")).write_bytes(b"no picture" * 9)
    for out, *sources in ("a.h5", "a"), ("b.h5", "b"), ("all.h5", "a", "b"):
        ok(run_clpipe("ingest", *sources, "-o", out, *FEATURES, cwd=place), 0, 1)
    ok(run_clpipe("ingest", "b", "-o", "c.h5", *FEATURES, "--alpha", "drop", cwd=place), 1)
    (place / "note.txt").write_text("somebody's")
    (place / "shards").mkdir()
    ok(subprocess.run([CLPIPE.parent / "merge_bench", place / "shards", str(SHARDS), "300"],
                      capture_output=True, text=True))
    return place


@pytest.fixture
def place(made, tmp_path):
    shutil.copytree(made, tmp_path / "parts")
    return tmp_path / "parts"


def shards(place):
    return sorted((place / "shards").glob("*.h5"))


def members(file):
    """All datasets, by name, that a single ingest would also have written."""
    found = {}
    file.visititems(lambda name, item: found.update({name: item}) if isinstance(item, h5py.Dataset)
                    and name.split("/")[0] in ("images", "features", "failures", "thumbnails") else None)
    return found


@WAYS
def test_equals_one_ingest(clpipe, place, way):
    told = ok(clpipe("merge", "a.h5", "b.h5", "-o", "m.h5", *way, "--json", "-", cwd=place))
    report = json.loads(told.stdout)
    assert (report["images"], report["parts"], report["copied"]) == (21, 2, bool(way))
    assert digest(place / "m.h5") == digest(place / "all.h5")
    assert "no problems" in ok(clpipe("verify", "m.h5", cwd=place)).stdout
    with h5py.File(place / "m.h5") as merged, h5py.File(place / "all.h5") as whole:
        ours, theirs = members(merged), members(whole)
        assert set(ours) == set(theirs)
        for name, dataset in theirs.items():
            assert ours[name].dtype == dataset.dtype and (ours[name][...] == dataset[...]).all(), name
        virtual = {name for name, dataset in ours.items() if dataset.is_virtual}
        assert virtual == (set() if way else
                           {name for name in ours if name.startswith(("images/", "features/"))} -
                           {"images/path", "images/source", "images/sources", "images/directories"} | {"thumbnails/data"})


@pytest.mark.deep
@WAYS
def test_all_commands_accept_merged_files(clpipe, place, way):
    """Commands print and store the same for the merged file as for a file of one ingest."""
    ok(clpipe("merge", "a.h5", "b.h5", "-o", "m.h5", *way, cwd=place))
    numpy.save(place / "x.npy", numpy.random.default_rng(SEED).random((21, 5), "f4"))
    for command in (["import", "F", "x=x.npy"], ["cluster", "F", "--feature", "rgb_8x8x8", "-k", "3"],
                    ["cluster", "F", "--feature", "x", "-k", "2", "--name", "own"],
                    ["similar", "F", "--all", "-n", "4", "--feature", "counts"], ["assign", "all.h5", "F",
                     "--name", "own", "--force"], ["remove", "F", "clusters/own"],
                    ["export", "F", "--what", "features", "--feature", "counts"],
                    ["export", "F", "--what", "images"], ["export", "F", "--what", "failures"],
                    ["export", "F", "--what", "labels"], ["info", "F", "--failures"],
                    ["similar", "F", "row:17", "--feature", "rgb_8x8x8"],
                    ["duplicates", "F", "--format", "csv"], ["info", "F", "--digest"]):
        outputs = []
        for file in "all.h5", "m.h5":
            result = ok(clpipe(*[file if word == "F" else word for word in command], cwd=place))
            outputs.append(result.stdout)
        if command[0] in ("export", "info", "duplicates") or "row:17" in command:
            assert outputs[0] == outputs[1] != "", command
    ok(clpipe("verify", "m.h5", cwd=place))
    ok(clpipe("report", "m.h5", "-o", "pages", cwd=place))
    assert digest(place / "m.h5") == digest(place / "all.h5")


def test_shards_in_any_order(clpipe, place):
    files = shards(place)
    ok(clpipe("merge", *files, "-o", "one.h5", "--copy", cwd=place))
    ok(clpipe("merge", *reversed(files), "-o", "other.h5", cwd=place))
    assert digest(place / "one.h5") == digest(place / "other.h5")
    ok(clpipe("verify", "other.h5", cwd=place))
    with h5py.File(place / "other.h5") as file:
        assert file["images/path"].asstr()[300 * 3 + 5] == "00003/000005.jpg"
        assert (file["images/bytes"][600:900] == numpy.arange(500000, 500300)).all()
        assert file["parts/path"].asstr()[1] == "shards/shard-00001.h5"
        assert not [name for name in file.attrs if "shard" in name]
    check_one_error(clpipe("merge", *files[:2], *files[3:], "-o", "x.h5", cwd=place), 2, "1 of 5",
                    "shard 2/5")
    check_one_error(clpipe("merge", *files, files[2], "-o", "x.h5", cwd=place), 2, "both are shard 2/5")
    for first, word in (301, "gap"), (299, "overlap"):
        with h5py.File(files[1], "r+") as file:
            file.attrs["shard_first"] = first
        check_one_error(clpipe("merge", *files, "-o", "x.h5", cwd=place), 2, word, files[0].name)
    with h5py.File(files[1], "r+") as file:
        file.attrs["list_digest"] = "another"
    check_one_error(clpipe("merge", *files, "-o", "x.h5", cwd=place), 2, "different lists")
    assert not (place / "x.h5").exists()


def peak_memory(*args, cwd, descriptors=4096):
    """Returns the peak memory, in MiB, of a run with a limited number of open files."""
    process = subprocess.Popen([CLPIPE, *args], cwd=cwd, stderr=subprocess.PIPE, preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_NOFILE, (descriptors, descriptors)))
    with process.stderr:
        text = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, text
    return usage.ru_maxrss / 1024


@pytest.mark.deep
def test_memory_does_not_grow_with_parts(program, tmp_path):
    for count in 2, 200:
        (tmp_path / str(count)).mkdir()
        ok(subprocess.run([CLPIPE.parent / "merge_bench", tmp_path / str(count), str(count), str(20000 // count)],
                          capture_output=True, text=True))
    few, many = (sorted((tmp_path / str(count)).glob("*.h5")) for count in (2, 200))
    less = peak_memory("merge", *few, "-o", "few.h5", "--copy", cwd=tmp_path)
    assert peak_memory("merge", *many, "-o", "many.h5", "--copy", cwd=tmp_path) < less + 15
    # If descriptors run short, parts are closed and opened again.
    for name, way, descriptors in (("none.h5", ["--copy"], 150), ("some.h5", ["--copy"], 400), ("shown.h5", [], 150)):
        peak_memory("merge", *many, "-o", name, *way, cwd=tmp_path, descriptors=descriptors)
        assert digest(tmp_path / name) == digest(tmp_path / "many.h5")
    with h5py.File(tmp_path / "many.h5") as file:
        assert file["images/path"].shape == (20000,)


@pytest.mark.parametrize("words, code, parts", [
    (["a.h5", "c.h5", "-o", "x.h5"], 2, ["alpha", "white", "drop"]),
    (["a.h5", "a.h5", "-o", "x.h5"], 2, ["both have the source a"]),
    (["a.h5", "none.h5", "-o", "x.h5"], 2, ["no file none.h5"]),
    (["a.h5", "shards/shard-00000.h5", "-o", "x.h5"], 2, ["only one of them has the feature counts"]),
    (["a.h5", "b.h5", "-o", "b.h5", "--force"], 2, ["b.h5", "one of the files"]),
    (["a.h5", "b.h5", "-o", "all.h5"], 3, ["all.h5 exists", "--force"]),
    (["a.h5", "b.h5", "-o", "note.txt", "--force"], 3, ["note.txt is not a clpipe file"]),
    (["a.h5", "b.h5", "-o", "a/x.h5"], 2, ["a.h5 is not below", "--copy"]),
    (["a.h5", "a/notes.txt", "-o", "x.h5"], 3, ["a/notes.txt is not an HDF5 file"]),
    (["a.h5", "b.h5"], 2, ["-o ALL.h5"]),
])
def test_refused(clpipe, place, words, code, parts):
    before = {path: path.stat().st_mtime_ns for path in place.glob("*")}
    check_one_error(clpipe("merge", *words, cwd=place), code, *parts)
    assert before == {path: path.stat().st_mtime_ns for path in place.glob("*")}


def test_says_what_a_replaced_file_had(clpipe, place):
    """Clusterings, selections and neighbours of the output are named; data of other programs stays."""
    ok(clpipe("merge", "a.h5", "b.h5", "-o", "m.h5", cwd=place))
    for words in (["cluster", "m.h5", "-k", 3, "--feature", "counts"], ["select", "m.h5", 5],
                  ["similar", "m.h5", "--all", "--feature", "counts"]):
        ok(clpipe(*words, cwd=place))
    with h5py.File(place / "m.h5", "r+") as file:
        file["theirs/rows"] = numpy.arange(21)
        file["clusters/kmeans"].attrs["theirs"] = 3
    said = ok(clpipe("merge", "a.h5", "b.h5", "-o", "m.h5", "--force", cwd=place)).stderr.splitlines()
    assert [line for line in said if "notice" in line] == [
        "clpipe: notice: m.h5 had clusters/kmeans, neighbours/counts, selections/selection, which a merge does not "
        "keep", "clpipe: notice: 1 item of other programs in m.h5 could not be kept"]
    with h5py.File(place / "m.h5") as file:
        assert file["theirs/rows"][:].tolist() == list(range(21)) and "clusters" not in file
    ok(clpipe("verify", "m.h5", cwd=place))
    assert "notice" not in ok(clpipe("merge", "a.h5", "b.h5", "-o", "m.h5", "--force", cwd=place)).stderr


def test_replaces_a_file_with_damaged_clusters(clpipe, place):
    ok(clpipe("merge", "a.h5", "b.h5", "-o", "m.h5", cwd=place))
    ok(clpipe("cluster", "m.h5", "-k", 3, "--feature", "counts", cwd=place))
    with h5py.File(place / "m.h5", "r+") as file:
        file["clusters/kmeans"].attrs["feature"] = "x" * 100
    check_one_error(clpipe("info", "m.h5", cwd=place), 3, "'feature' is longer than it can be")
    said = ok(clpipe("merge", "a.h5", "b.h5", "-o", "m.h5", "--force", cwd=place)).stderr
    assert "m.h5 had clusters/kmeans, which a merge does not keep" in said
    ok(clpipe("verify", "m.h5", cwd=place))


@pytest.mark.deep
def test_codebooks_must_agree(clpipe, place):
    for name in "a", "b":
        ok(clpipe("ingest", name, "-o", f"{name}w.h5", "--feature", "w=dct:words=8", cwd=place), 1)
    check_one_error(clpipe("merge", "aw.h5", "bw.h5", "-o", "x.h5", cwd=place), 2, "codebook")
    ok(clpipe("ingest", "b", "-o", "bg.h5", "--feature", "w=dct:words=8,codebook=aw.h5", cwd=place), 1)
    ok(clpipe("merge", "aw.h5", "bg.h5", "-o", "x.h5", cwd=place))
    ok(clpipe("verify", "x.h5", cwd=place))
    ok(clpipe("ingest", "a", "b", "-o", "y.h5", "--feature", "w=dct:words=8,codebook=aw.h5", cwd=place), 1)
    assert digest(place / "x.h5") == digest(place / "y.h5")


def test_a_lost_or_changed_part(clpipe, place):
    """A missing or changed part is named before anything is read; other programs see impossible values."""
    ok(clpipe("merge", "a.h5", "b.h5", "-o", "m.h5", cwd=place))
    os.rename(place / "b.h5", place / "elsewhere.h5")
    for command in ["info"], ["verify"], ["cluster", "-k", "2"], ["export", "--what", "features"]:
        check_one_error(clpipe(command[0], "m.h5", *command[1:], cwd=place), 3, "b.h5 is missing", "merge")
    with h5py.File(place / "m.h5") as file:
        assert numpy.isnan(file["features/rgb_8x8x8"][13:]).all()
        assert (file["features/counts"][13:] == 2**32 - 1).all()
        assert (file["images/mtime_ns"][13:] == 2**63 - 1).all() and file["images/path"][20]
    shutil.copy(place / "c.h5", place / "b.h5")
    check_one_error(clpipe("info", "m.h5", cwd=place), 3, "b.h5 has changed")
    os.rename(place / "elsewhere.h5", place / "b.h5")
    with h5py.File(place / "b.h5") as file:
        offset = file["features/counts"].id.get_offset() + 4 * 16 * 3
    with open(place / "b.h5", "r+b") as file:
        file.seek(offset)
        file.write(b"\x7f")
    result = clpipe("verify", "m.h5", cwd=place)
    assert result.returncode == 1 and "b.h5: /features/counts: something in rows 0 to 7" in result.stdout
    shutil.move(place / "m.h5", place / "a" / "m.h5")
    check_one_error(clpipe("info", "a/m.h5", cwd=place), 3, "a.h5 is missing (and 1 more of its 2 parts)")


def test_links_and_other_directories(clpipe, place):
    """Paths of parts are relative to the merged file, whatever the working directory; symbolic links are not
    resolved."""
    (place / "deep").mkdir()
    os.rename(place / "a.h5", place / "deep" / "a.h5")
    (place / "linked").symlink_to(place / "deep")
    ok(clpipe("merge", "linked/a.h5", "b.h5", "-o", "m.h5", cwd=place))
    with h5py.File(place / "m.h5") as file:
        assert file["parts/path"].asstr()[:].tolist() == ["linked/a.h5", "b.h5"]
    (place / "deep" / "name.h5").symlink_to("../m.h5")
    assert digest(place / "deep" / "name.h5") == digest(place / "all.h5")


@pytest.mark.parametrize("name", ["/etc/passwd", "../a.h5", "x/../../a.h5", ""])
def test_a_manifest_that_leads_elsewhere(clpipe, place, name):
    ok(clpipe("merge", "a.h5", "b.h5", "-o", "m.h5", cwd=place))
    with h5py.File(place / "m.h5", "r+") as file:
        file["parts/path"][0] = name
    check_one_error(clpipe("info", "m.h5", cwd=place), 3, "damaged", "row 0 leads elsewhere")


def test_a_manifest_without_parts(clpipe, place):
    ok(clpipe("merge", "a.h5", "b.h5", "-o", "m.h5", cwd=place))
    with h5py.File(place / "m.h5", "r+") as file:
        for name in list(file["parts"]):
            dtype = file["parts"][name].dtype
            del file["parts"][name]
            file["parts"].create_dataset(name, (0,), dtype)
    check_one_error(clpipe("info", "m.h5", cwd=place), 3, "/parts has an impossible size")


def test_mapping_and_manifest_must_agree(clpipe, place):
    ok(clpipe("merge", "a.h5", "b.h5", "-o", "m.h5", cwd=place))
    with h5py.File(place / "m.h5", "r+") as file:
        file["parts/rows"][:] = [12, 9]
    check_one_error(clpipe("info", "m.h5", cwd=place), 3, "as the manifest says")


def test_a_part_that_is_the_merged_file(clpipe, place):
    """Such a file would contain itself."""
    ok(clpipe("merge", "a.h5", "b.h5", "-o", "m.h5", cwd=place))
    with h5py.File(place / "m.h5", "r+") as file:
        for name in [name for name, dataset in members(file).items() if dataset.is_virtual]:
            shape, kind, attributes = file[name].shape, file[name].dtype, dict(file[name].attrs)
            layout = h5py.VirtualLayout(shape=shape, dtype=kind)
            layout[...] = h5py.VirtualSource("./m.h5", f"/{name}", shape=shape)
            del file[name]
            again = file.create_virtual_dataset(name, layout)
            for key in attributes.keys() - {"DIMENSION_LIST", "REFERENCE_LIST"}:
                again.attrs[key] = attributes[key]
        manifest = {"path": b"./m.h5", "identity": file["checksums"].attrs["identity"], "rows": 21,
                    "thumbnail_bytes": file["thumbnails/data"].size, "bytes": 0}
        for name, value in manifest.items():
            kind = "S6" if name == "path" else file[f"parts/{name}"].dtype
            del file[f"parts/{name}"]
            file.create_dataset(f"parts/{name}", data=[value], dtype=kind)
    with h5py.File(place / "m.h5", "r+") as file:
        file["parts/bytes"][0] = (place / "m.h5").stat().st_size
    check_one_error(clpipe("info", "m.h5", cwd=place), 3, "is not what was merged")


@WAYS
def test_thumbnails_that_end_early(clpipe, place, way):
    with h5py.File(place / "a.h5", "r+") as file:
        file["thumbnails/end"][-1] -= 9
    check_one_error(clpipe("merge", "a.h5", "b.h5", "-o", "m.h5", *way, cwd=place), 3, "a.h5 is damaged",
                    "/thumbnails/end ends at")
    assert not list(place.glob("m.h5*"))


@pytest.mark.deep
def test_several_files_as_one(clpipe, place):
    """Several files without merging give the same clusters, tables and neighbours, and leave no other files."""
    feature = ["--feature", "rgb_8x8x8"]
    for out, files in ("one.h5", ["all.h5"]), ("two.h5", ["a.h5", "b.h5"]):
        ok(clpipe("cluster", *files, *feature, "-k", "3", "-o", out, cwd=place))
        ok(clpipe("assign", out, *files, "-o", f"labels-{out}", cwd=place))
    for name in "%s", "labels-%s":
        assert digest(place / (name % "one.h5")) == digest(place / (name % "two.h5"))
    for command in (["export", "F", "--what", "features", *feature], ["export", "F", "--what", "failures"],
                    ["similar", "F", "row:20", place / "a" / "red" / "00.png", *feature]):
        one, two = (ok(clpipe(*[word for part in command for word in (files if part == "F" else [part])],
                              cwd=place, env={"TMPDIR": place / "shards"}))
                    for files in (["all.h5"], ["a.h5", "b.h5"]))
        assert one.stdout == two.stdout != ""
    left = list((place / "shards").glob("[!c]*")) + list((place / "shards").glob("clpipe-cache-*/*"))
    assert len(left) == SHARDS, left  # the directory of PoCL is empty
    check_one_error(clpipe("cluster", "a.h5", "b.h5", "-k", "3", cwd=place), 2, "give -o")
    check_one_error(clpipe("similar", "a.h5", "b.h5", "--all", cwd=place), 2, "clpipe merge")
    check_one_error(clpipe("export", "a.h5", "note.txt", "--what", "images", cwd=place), 2, "note.txt")
    check_one_error(clpipe("export", "a.h5", "c.h5", "--what", "images", cwd=place), 2, "alpha")
    check_one_error(clpipe("export", "a.h5", "b.h5", "--what", "labels", cwd=place), 3, "a.h5 (and 1 more)")


@pytest.mark.deep
def test_updates(clpipe, place):
    """A merged file that refers to other files has no rows of its own to update, but a copy has."""
    ok(clpipe("merge", "a.h5", "b.h5", "-o", "m.h5", cwd=place))
    check_one_error(clpipe("ingest", "a", "-o", "m.h5", "--relocate", "a", cwd=place), 2, "2 other files", "--copy")
    check_one_error(clpipe("repair", "m.h5", cwd=place), 2, "merge again")
    check_one_error(clpipe("merge", "m.h5", "c.h5", "-o", "x.h5", cwd=place), 2, "itself merged")
    ok(clpipe("merge", "a.h5", "b.h5", "-o", "copy.h5", "--copy", cwd=place))
    shutil.copy(place / "a" / "red" / "00.png", place / "a" / "new.png")
    for file in "all.h5", "copy.h5":
        for source in "a", "b":
            ok(clpipe("ingest", source, "-o", file, "--relocate", source, cwd=place), 1)
    assert digest(place / "all.h5") == digest(place / "copy.h5")


@pytest.mark.deep
@WAYS
def test_killed_at_any_time(clpipe, place, way):
    """The final name never has a partial file, and the next run removes all leftovers."""
    moments = random.Random(SEED)
    files = shards(place)
    started = time.monotonic()
    ok(clpipe("merge", *files, "-o", "m.h5", *way, cwd=place))
    longest, wanted = time.monotonic() - started, digest(place / "m.h5")
    killed = 0
    for _ in range(50 if ALL else 10):
        (place / "m.h5").unlink(missing_ok=True)
        process = subprocess.Popen([str(CLPIPE), "merge", *map(str, files), "-o", "m.h5", "-q", *way],
                                   cwd=place)
        try:
            process.wait(moments.uniform(0, longest))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        killed += process.wait() != 0
        longest *= 1.02 if killed else 0.8
        if (place / "m.h5").exists():
            ok(clpipe("verify", "m.h5", cwd=place))
    ok(clpipe("merge", *files, "-o", "m.h5", "--force", *way, cwd=place))
    assert killed and digest(place / "m.h5") == wanted
    assert not list(place.glob("m.h5.*"))

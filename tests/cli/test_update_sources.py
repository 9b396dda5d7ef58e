"""Updates identify sources by place, and use the file's values for everything that the command omits."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tarfile
import time

import h5py
import pytest

from conftest import CLPIPE, check_one_error, digest, draw_photos, log_records, run_clpipe

RGB, HSV, GRAY = "rgb:bins=8x8x8", "hsv:bins=8x4x4", "gray:bins=16"


@pytest.fixture
def place(tmp_path, monkeypatch, program):
    """The working directory, with p1 (13 images in nested folders), p2 (5) and p3 (3)."""
    draw_photos(tmp_path / "p1")
    for name, count in [("p2", 4), ("p3", 2)]:
        draw_photos(tmp_path / name, count)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    return tmp_path


def ingest(*args, code=0, command="ingest"):
    result = run_clpipe(command, *args, "--json", "-")
    assert result.returncode == code, result.stderr
    return json.loads(result.stdout), result.stderr


def fresh(*args, output="fresh.h5"):
    """The identity of a file that is made in one run."""
    ingest(*args, "-o", output, "--fresh")
    return digest(output)


def sources(path="x.h5"):
    with h5py.File(path, "r") as file:
        return [text.decode() for text in file["images/sources"][:]]


def rows(path="x.h5"):
    with h5py.File(path, "r") as file:
        return list(zip(file["images/source"][:].tolist(),
                        [text.decode() for text in file["images/path"][:]]))


def stamp(path="x.h5"):
    state = os.stat(path)
    return state.st_ino, state.st_mtime_ns, state.st_size


# --- places ---------------------------------------------------------------------------------------

@pytest.mark.deep
@pytest.mark.parametrize("again", ["p1", "p1/", "./p1", "p1//", ".//./p1/", "p1/.", "p2/../p1",
                                   "{}/p1", "{}/p1/", "link", "link/", "./link", "p1 p1/", "p1 link"])
def test_one_place(place, again):
    """Other spellings of a source add nothing and do not change the file."""
    (place / "link").symlink_to("p1")
    ingest("p1", "-o", "x.h5")
    before = stamp()
    report, _ = ingest(*again.format(place).split(), "-o", "x.h5")
    assert report["images_unchanged"] == 13 and stamp() == before and sources() == ["p1"]


@pytest.mark.variations
@pytest.mark.parametrize("given, stored", [
    ("p1/", "p1"), ("./p1", "p1"), (".//p1//", "p1"), ("./.", "."), ("{}//p1/", "{}/p1"),
    ("p1/red/../red", "p1/red/../red"), ("p1/red/00.png", "p1/red/00.png"), ("./@odd", "./@odd"),
    ("@./list", "@list"), ("@.//list", "@list")])
def test_stored_sources(place, given, stored):
    draw_photos(place / "@odd", 2)
    (place / "list").write_text("p1/red/00.png\n")
    ingest(given.format(place), "-o", "x.h5")
    assert sources() == [stored.format(place)]


@pytest.mark.deep
def test_from_another_directory(place, monkeypatch):
    """A relative source is found from any directory, and another directory with the same name is not confused
    with it."""
    ingest("p1", "-o", "x.h5")
    before = stamp()
    (place / "elsewhere").mkdir()
    (place / "away").symlink_to("elsewhere")
    monkeypatch.chdir(place / "away")
    for again in place / "p1", "../p1", "../elsewhere/../p1":
        report, _ = ingest(again, "-o", "../x.h5")
        assert report["images_unchanged"] == 13 and stamp("../x.h5") == before
    shutil.copytree(place / "p1", "p1")
    for args in ["p1"], ["p1", "../p1"], ["p1", "--drop-source", "../p2"]:
        result = run_clpipe("ingest", *args, "-o", "../x.h5")
        assert result.returncode == 2
    check_one_error(run_clpipe("ingest", "p1", "-o", "../x.h5"), 2, f"p1 leads to {place}/elsewhere/p1 here",
                    f"but to {place}/p1 in the file", "--relocate p1")
    assert stamp("../x.h5") == before
    # With its absolute path, the other directory is another source.
    ingest(place / "elsewhere/p1", "-o", "../x.h5")
    assert sources("../x.h5") == ["p1", f"{place}/elsewhere/p1"]
    report, _ = ingest("p1", "../p1", "-o", "../x.h5")
    assert report["images_unchanged"] == 26
    # The source's name in the file suffices to drop it.
    ingest("-o", "../x.h5", "--drop-source", f"{place}/elsewhere/p1")
    (place / "p1").rename(place / "gone")
    shutil.rmtree("p1")
    check_one_error(run_clpipe("ingest", "-o", "../x.h5", "--drop-source", "p1"), 2, "no source would be left")


@pytest.mark.deep
def test_moved_sources(place, monkeypatch):
    """The images of a moved source and results made from them are kept; identity and places are those of a
    new file."""
    ingest("p1", "p2", "-o", "x.h5")
    os.mkdir("new")
    os.rename("p1", "new/p1")
    monkeypatch.chdir(place / "new")
    check_one_error(run_clpipe("ingest", "p1", "-o", "../x.h5"), 2, "--relocate p1")
    for args, part in [(["p1", "--relocate", "p4"], "no source p4"), (["p1", "../p2"], "--relocate p1"),
                       (["../p2", "--relocate", "p1"], "give the SOURCE that p1 has become"),
                       (["p1", "../p3", "--relocate", "p1"], "no other that the file lacks"),
                       (["--relocate", "p1"], "SOURCE")]:
        check_one_error(run_clpipe("ingest", *args, "-o", "../x.h5"), 2, part)
    report, _ = ingest("p1", "-o", "../x.h5", "--relocate", "p1")
    assert report["images_unchanged"] == 18 and sources("../x.h5") == ["p1", "p2"]
    before = stamp("../x.h5")
    monkeypatch.chdir(place)
    report, _ = ingest("new/p1", "p2", "-o", "x.h5")
    assert report["images_unchanged"] == 18 and stamp() == before
    os.rename("new/p1", "p9")
    report, _ = ingest("p9", "-o", "x.h5", "--relocate", "new/p1")
    assert report["images_unchanged"] == 18 and sources() == ["p9", "p2"]
    assert digest("x.h5") == fresh("p9", "p2")
    with h5py.File("x.h5") as file:
        assert file["images/directories"].asstr()[:].tolist() == [str(place)] * 2
    # A source that was moved out of the tree is named as in the file.
    os.rename("p2", "new/p2")
    ingest("new/p2", "-o", "x.h5", "--relocate", str(place / "p2"))
    assert sources() == ["p9", "new/p2"]


def test_nothing_but_the_directory_has_changed(place, monkeypatch):
    """The file stores the new name, whether it is shorter or longer."""
    shutil.move("p2", "b/p2")
    monkeypatch.chdir(place / "b")
    ingest("p2", "-o", "../x.h5")
    for before, after in ("b", "a"), ("a", "c"):
        shutil.move(place / before, place / after)
        monkeypatch.chdir(place / after)
        report, _ = ingest("p2", "-o", "../x.h5", "--relocate", "p2")
        assert report["images_unchanged"] == 5
        with h5py.File("../x.h5") as file:
            assert file["images/directories"].asstr()[:].tolist() == [str(place / after)]


@pytest.mark.deep
def test_lists_from_another_directory(place, monkeypatch):
    """Paths in a list are relative to where the list was first given."""
    (place / "l").write_text("p1/red/00.png\np2/red/00.png\n")
    ingest("@l", "-o", "x.h5")
    with open("l") as lines:
        run_clpipe("ingest", "-", "-o", "y.h5", stdin=lines)
    before = stamp("x.h5"), stamp("y.h5")
    (place / "sub").mkdir()
    shutil.copytree("p2", "sub/p1")
    monkeypatch.chdir(place / "sub")
    report, _ = ingest("@../l", "-o", "../x.h5")
    assert report["images_unchanged"] == 2
    with open("../l") as lines:
        assert run_clpipe("ingest", "-", "-o", "../y.h5", stdin=lines).returncode == 0
    assert before == (stamp("../x.h5"), stamp("../y.h5"))
    # Adding a feature reads all sources.
    shutil.copy("../x.h5", "../z.h5")
    ingest("../p3", "-o", "../z.h5", "--add", "--feature", GRAY)
    assert len(rows("../z.h5")) == 5
    (place / "sub/l").write_text("p1/red/00.png\n")
    check_one_error(run_clpipe("ingest", "@l", "-o", "../x.h5"), 2, "@l leads to")
    exported = run_clpipe("export", "../x.h5", "--what", "images", "--absolute-paths").stdout
    assert f"{place}/p1/red/00.png" in exported
    os.rename(place / "p1", "q1")
    os.rename(place / "p2", "p2")
    (place / "sub/l").write_text("q1/red/00.png\np2/red/00.png\n")
    monkeypatch.chdir(place)
    shutil.move("sub", "moved")
    monkeypatch.chdir(place / "moved")
    report, _ = ingest("@l", "-o", "../x.h5", "--relocate", "@l")
    assert report["images_unchanged"] == 1 and len(rows("../x.h5")) == 2


def test_resuming_uses_no_other_source_of_that_name(place, monkeypatch):
    """Nor does it use rows of its log for files of another directory."""
    (place / "p2/red/zz.png").write_bytes(b"\x89PNG\r\n")
    result = run_clpipe("ingest", "p2", "-o", "x.h5", "--strict", "--threads", "1")
    assert result.returncode == 1 and os.path.exists("x.h5.partial")
    (place / "sub").mkdir()
    shutil.copytree("p2", "sub/p2")
    monkeypatch.chdir(place / "sub")
    check_one_error(run_clpipe("ingest", "p2", "-o", "../x.h5"), 2, "p2 leads to")
    report, _ = ingest("../p2", "-o", "../x.h5", "--allow-failures", "1")
    assert sources("../x.h5") == ["p2"]
    with h5py.File("../x.h5") as file:
        assert file["images/directories"].asstr()[0] == str(place)


@pytest.mark.deep
def test_merging_sources_of_one_name(place, monkeypatch):
    """Files made from sources with the same name in two places can be merged, but not two of the same place."""
    for name, source in ("a", "p1"), ("b", "p2"):
        shutil.copytree(place / source, place / name / "photos")
        monkeypatch.chdir(place / name)
        ingest("photos", "-o", "x.h5")
    monkeypatch.chdir(place)
    for copy in [], ["--copy"]:
        result = run_clpipe("merge", "a/x.h5", "b/x.h5", "-o", f"all{len(copy)}.h5", *copy)
        assert result.returncode == 0, result.stderr
        assert "no problems" in run_clpipe("verify", f"all{len(copy)}.h5").stdout
    assert sources("all1.h5") == ["photos", "photos"] and digest("all0.h5") == digest("all1.h5")
    report, _ = ingest("a/photos", "b/photos", "-o", "all1.h5")
    assert report["images_unchanged"] == 18
    exported = run_clpipe("export", "all1.h5", "--what", "images", "--absolute-paths").stdout
    assert f"{place}/a/photos/" in exported and f"{place}/b/photos/" in exported
    check_one_error(run_clpipe("ingest", "-o", "all1.h5", "--drop-source", "photos"), 2, "no single source")
    ingest("-o", "all1.h5", "--drop-source", "b/photos")
    assert len(rows("all1.h5")) == 13
    shutil.copy("a/x.h5", "again.h5")
    check_one_error(run_clpipe("merge", "a/x.h5", "again.h5", "-o", "no.h5"), 2, "both have the source photos")


@pytest.mark.deep
def test_lists(place):
    """A list is identified by its file, not by its contents; standard input is one place."""
    (place / "l").write_text("p1/red/00.png\np2/red/00.png\n")
    (place / "m").write_text("p3/red/00.png\n")
    ingest("@l", "-o", "x.h5")
    before = stamp()
    ingest("@./l", "-o", "x.h5")
    ingest(f"@{place}/l", "-o", "x.h5")
    assert stamp() == before
    # Another list is another source; images that a list no longer contains are removed.
    ingest("@m", "-o", "x.h5")
    assert sources() == ["@l", "@m"] and len(rows()) == 3
    (place / "l").write_text("p2/red/00.png\n")
    ingest("@l", "-o", "x.h5")
    assert rows() == [(0, "p2/red/00.png"), (1, "p3/red/00.png")]
    for listed in ["p1/red/00.png\n", "p2/green/01.jpg\n"]:
        result = run_clpipe("ingest", "-", "-o", "x.h5", "--allow-removal", input=listed, stdin=None)
        assert result.returncode == 0, result.stderr
    assert rows()[2:] == [(2, "p2/green/01.jpg")] and sources() == ["@l", "@m", "-"]
    # A directory with the name of a list is not a list.
    shutil.copytree("p3", "dir")
    (place / "@dir").write_text("p1/red/00.png\n")
    ingest("dir", "@@dir", "-o", "y.h5")
    assert sources("y.h5") == ["dir", "@@dir"]


def test_many_sources(place):
    """As from a shell pattern, each file is a source; then half of them, and then with ./ in front."""
    names = sorted(str(path) for path in (place / "p1").rglob("*.*"))
    ingest(*names, "-o", "x.h5")
    before = stamp()
    ingest(*["./" + os.path.relpath(name) for name in names[::2]], "-o", "x.h5")
    assert stamp() == before and len(sources()) == 13


# --- sources that come and go ----------------------------------------------------------------------

def test_a_source_is_added(place):
    ingest("p1", "-o", "x.h5", "--feature", RGB)
    report, said = ingest("p2", "-o", "x.h5")
    assert (report["images_ok"], report["images_unchanged"]) == (18, 13)
    assert "p2 is added to x.h5; p1 stays as it is" in said
    assert sources() == ["p1", "p2"] and digest("x.h5") == fresh("p1", "p2", "--feature", RGB)
    assert run_clpipe("verify", "x.h5").returncode == 0
    before = stamp()
    for again in [["p1"], ["p2"], ["p2", "p1"], ["p1", "p2"]]:
        report, _ = ingest(*again, "-o", "x.h5")
        assert report["images_unchanged"] == 18 and stamp() == before
    # In any order: existing sources keep their order, and new ones are added at the end.
    ingest("p3", "p2", "-o", "x.h5")
    assert digest("x.h5") == fresh("p1", "p2", "p3", "--feature", RGB)


@pytest.mark.deep
def test_run_in_one_directory(place):
    """Both runs write clpipe.h5."""
    ingest("p1", "-k", 3, command="run")
    report, said = ingest("p2", "-k", 3, command="run")
    assert report["ingest"]["images_ok"] == 18 and "p2 is added to clpipe.h5" in said
    assert report["cluster"]["n"] == 18
    report, _ = ingest("p2", "-k", 3, command="run")
    assert report["ingest"]["images_unchanged"] == 18


@pytest.mark.deep
def test_unnamed_sources_are_not_read(place):
    ingest("p1", "p2", "-o", "x.h5")
    shutil.rmtree("p1")
    (place / "p2" / "red" / "new.png").write_bytes((place / "p3" / "red" / "00.png").read_bytes())
    report, _ = ingest("p2", "-o", "x.h5")
    assert report["images_unchanged"] == 18 and report["images_ok"] == 19
    # If it is named, its absence is an error.
    check_one_error(run_clpipe("ingest", "p1", "-o", "x.h5"), 2, "p1")
    (place / "p1").mkdir()
    (place / "p1" / "text").write_text("no image")
    report, _ = ingest("p1", "-o", "x.h5", "--allow-removal")
    assert report["images_ok"] == 6


@pytest.mark.deep
def test_failures_of_unnamed_sources_are_kept(place):
    (place / "p1" / "bad.jpg").write_bytes(b"no picture")
    (place / "p1" / "gone.jpg").symlink_to("nowhere.jpg")
    ingest("p1", "-o", "x.h5", code=1)
    ingest("p2", "-o", "x.h5", "--retry-failed", code=1)
    with h5py.File("x.h5") as file:
        assert [t.decode() for t in file["failures/path"][:]] == ["bad.jpg", "gone.jpg"]
        assert file["failures/source"][:].tolist() == [0, 0]
    both, _ = ingest("p1", "p2", "-o", "y.h5", code=1)
    assert digest("x.h5") == digest("y.h5") and both["images_failed"] == 2


@pytest.mark.deep
@pytest.mark.parametrize("drop, left", [
    (["p1"], ["p2", "p3"]), (["p2/"], ["p1", "p3"]), (["./p3"], ["p1", "p2"]),
    (["{}/p1", "p3"], ["p2"])])
def test_drop_source(place, drop, left):
    ingest("p1", "p2", "p3", "-o", "x.h5")
    options = [f"--drop-source={name.format(place)}" for name in drop]
    shutil.rmtree("p2") if "p2" not in left else None  # the directory need not exist
    ingest("-o", "x.h5", *options)
    assert sources() == left and digest("x.h5") == fresh(*left)
    assert run_clpipe("verify", "x.h5").returncode == 0


def test_drop_and_add(place):
    """For a renamed directory, the old source is dropped and the new one added."""
    ingest("p1", "p2", "-o", "x.h5")
    os.rename("p1", "q1")
    ingest("q1", "-o", "x.h5", "--drop-source", "p1")
    assert sources() == ["p2", "q1"] and digest("x.h5") == fresh("p2", "q1")


@pytest.mark.variations
@pytest.mark.parametrize("args, parts", [
    (["--drop-source", "p3"], ["no source p3 to drop", "its sources: p1, p2"]),
    (["p1", "--drop-source", "./p1"], ["given and to be dropped"]),
    (["--drop-source", "p1", "--drop-source", "p2"], ["no source would be left"]),
    (["--drop-source", "p1", "--fresh"], ["no source p1 to drop"]),
    ([], ["SOURCE is missing"])])
def test_invalid_drops(place, args, parts):
    ingest("p1", "p2", "-o", "x.h5")
    before = stamp()
    check_one_error(run_clpipe("ingest", "-o", "x.h5", *args), 2, *parts)
    assert stamp() == before and not os.path.exists("x.h5.partial")


def test_dropping_leaves_no_image(place):
    (place / "text").mkdir()
    (place / "text" / "note.txt").write_text("no image\n")
    ingest("p1", "text", "-o", "x.h5")
    before = stamp()
    check_one_error(run_clpipe("ingest", "-o", "x.h5", "--drop-source", "p1"), 3, "no image is left")
    assert stamp() == before and not os.path.exists("x.h5.partial")


@pytest.mark.deep
def test_repeated_nested_and_overlapping_sources(place):
    """A source given twice counts once; directories inside a source, and lists of its files, are separate sources."""
    _, said = ingest("p1", "./p1", "p1/", "-o", "x.h5")
    assert sources() == ["p1"] and "counts once" in said
    ingest("p1/red", "-o", "x.h5")
    (place / "list").write_text("p1/red/00.png\n")
    ingest("@list", "-o", "x.h5")
    assert sources() == ["p1", "p1/red", "@list"] and len(rows()) == 13 + 5 + 1
    assert digest("x.h5") == fresh("p1", "p1/red", "@list")
    ingest("-o", "x.h5", "--drop-source", "p1")
    assert digest("x.h5") == fresh("p1/red", "@list")


# --- what the file says ---------------------------------------------------------------------------

MADE = ["--feature", HSV, "--feature", RGB, "--normalize", "none", "--alpha", "black",
        "--decode-scale", "2", "--max-pixels", "100000", "--exclude", "*.gif", "--hidden"]


@pytest.mark.deep
@pytest.mark.parametrize("options", [
    [], ["--feature", RGB], ["--feature", RGB, "--feature", HSV], ["--feature", f"{HSV},normalize=none"],
    ["--feature", "hsv"], ["--normalize", "none"], ["--alpha", "black"], ["--decode-scale=2"],
    ["--max-pixels", "100000"], ["--exclude", "*.gif"], ["--hidden"], ["--blur", "off"], MADE,
    ["--feature", RGB, "--add"]], ids=lambda options: " ".join(options) or "nothing")
def test_options_come_from_the_file(place, options):
    """Omitted options keep their values; given options have the same effect in any order."""
    ingest("p1", "-o", "x.h5", *MADE)
    before = stamp()
    report, _ = ingest("p1", "-o", "x.h5", *options)
    assert report["images_unchanged"] == 13 and stamp() == before
    ingest("p2", "-o", "x.h5", *options)
    assert digest("x.h5") == fresh("p1", "p2", *MADE)


@pytest.mark.deep
@pytest.mark.parametrize("options, parts", [
    (["--alpha", "white"], ["--alpha is black there and white here"]),
    (["--decode-scale", "1"], ["--decode-scale is 2 there and 1 here"]),
    (["--max-pixels", "1000"], ["--max-pixels is 100000 there and 1000 here"]),
    (["--alpha", "drop", "--max-scans", "7"],
     ["--alpha is black there and drop here, --max-scans is 100 there and 7 here"]),
    (["--normalize", "l1"], ["--normalize", "hsv_8x4x4 is hsv:bins=8x4x4,grid=1x1,normalize=none"]),
    (["--blur", "3"], ["--blur"]),
    (["--feature", f"rgb_8x8x8={GRAY}"], ["the feature rgb_8x8x8 of x.h5 is rgb:bins=8x8x8"]),
    (["--feature", f"{RGB},normalize=l1"], ["normalize=none", "normalize=l1"]),
])
def test_differing_options_are_refused(place, options, parts):
    """One line shows the difference; nothing is changed."""
    ingest("p1", "-o", "x.h5", *MADE)
    before = stamp()
    result = run_clpipe("ingest", "p1", "p2", "-o", "x.h5", *options)
    check_one_error(result, 2, "x.h5", *parts)
    assert "exclude" not in result.stderr and "sources" not in result.stderr
    assert stamp() == before and not os.path.exists("x.h5.partial")


@pytest.mark.deep
def test_message_proposes_a_command(place):
    """If the file lacks a feature, the line ends with a command that adds it."""
    ingest("p1", "p2", "-o", "x.h5", "--feature", RGB)
    result = run_clpipe("ingest", "p2", "-o", "x.h5", "--feature", GRAY, "--feature", RGB)
    check_one_error(result, 2, "x.h5 does not have the feature gray_16; to add it: clpipe ingest")
    command = shlex.split(re.search(r"to add it: (clpipe .*)", result.stderr).group(1))
    assert run_clpipe(*command[1:]).returncode == 0
    # p1 was not named but has the new feature, too; and the earlier command is valid again.
    assert digest("x.h5") == fresh("p1", "p2", "--feature", RGB, "--feature", GRAY)
    before = stamp()
    for options in [["--feature", RGB], ["--feature", GRAY], []]:
        assert ingest("p1", "-o", "x.h5", *options)[0]["images_unchanged"] == 18
    assert stamp() == before


@pytest.mark.parametrize("spoil, parts", [("p2", ["the source p2 does not exist", "--drop-source"]),
                                          ("-", ["--add", "source -", "give - as well"])])
def test_add_needs_all_sources(place, spoil, parts):
    if spoil == "-":
        assert run_clpipe("ingest", "p1", "-", "-o", "x.h5", "--feature", RGB,
                          input="p2/red/00.png\n", stdin=None).returncode == 0
    else:
        ingest("p1", "p2", "-o", "x.h5", "--feature", RGB)
        shutil.rmtree("p2")
    before = stamp()
    check_one_error(run_clpipe("ingest", "p1", "-o", "x.h5", "--feature", GRAY, "--add"), 2, *parts)
    assert stamp() == before


@pytest.mark.deep
def test_data_of_all_images_reads_all_sources(place):
    """Codes and thumbnails are made for all images, even if only one source is named."""
    ingest("p1", "p2", "-o", "x.h5")
    with h5py.File("x.h5", "a") as file:
        del file["images/code"], file["checksums"]
    ingest("p2", "-o", "x.h5", "--add-codes")
    ingest("p1", "-o", "x.h5", "--thumbnails", 64)
    with h5py.File("x.h5") as file:
        assert file["images/code"].shape == (18, 32)
        assert len(set(file["thumbnails/end"][:].tolist())) == 18
    shutil.rmtree("p2")
    check_one_error(run_clpipe("ingest", "p1", "-o", "x.h5", "--feature", GRAY, "--add"), 2, "p2")
    ingest("p1", "-o", "x.h5", "--thumbnails", 32)
    with h5py.File("x.h5") as file:
        assert len(set(file["thumbnails/end"][:].tolist())) in (13, 14)  # the thumbnails of p2 are gone


@pytest.mark.deep
def test_limits_may_be_raised(place):
    """Files that a limit excluded are read, and all others stay; limits cannot be lowered."""
    ingest("p1", "p2", "-o", "x.h5", "--max-pixels", 3000, code=1)
    assert 0 < len(rows()) < 18
    report, _ = ingest("p2", "-o", "x.h5", "--max-pixels", 100000)
    assert report["images_failed"] == 0
    assert digest("x.h5") == fresh("p1", "p2", "--max-pixels", 100000)
    before = stamp()
    check_one_error(run_clpipe("ingest", "p1", "-o", "x.h5", "--max-pixels", 3000), 2,
                    "--max-pixels is 100000 there and 3000 here")
    ingest("p1", "-o", "x.h5")
    assert stamp() == before


@pytest.mark.deep
def test_file_selection_may_change(place):
    """The new selection applies from then on to the named sources."""
    ingest("p1", "-o", "x.h5", "--include", "*.png")
    assert all(name.endswith(".png") for _, name in rows())
    ingest("p1", "p2", "-o", "x.h5", "--include", "*.png", "--include", "*.jpg", "--exclude", "red/*",
           "--allow-removal")
    options = ["--include", "*.png", "--include", "*.jpg", "--exclude", "red/*"]
    assert digest("x.h5") == fresh("p1", "p2", *options)
    ingest("p3", "-o", "x.h5")
    assert digest("x.h5") == fresh("p1", "p2", "p3", *options)


@pytest.mark.deep
def test_limit(place):
    """--limit limits the files that are read and never removes existing images."""
    ingest("p1", "-o", "x.h5", "--limit", 4)
    assert len(rows()) == 4
    ingest("p1", "-o", "x.h5", "--limit", 6)
    assert len(rows()) == 6 and digest("x.h5") == fresh("p1", "--limit", 6)
    ingest("p1", "-o", "x.h5", "--limit", 2)
    assert len(rows()) == 6
    ingest("p2", "-o", "x.h5", "--limit", 2)
    assert len(rows()) == 8
    ingest("p1", "p2", "-o", "x.h5")
    assert digest("x.h5") == fresh("p1", "p2")
    before = stamp()
    ingest("p1", "-o", "x.h5", "--limit", 3)
    assert stamp() == before


# --- interrupted, killed, refused -----------------------------------------------------------------

def interrupt(*command):
    """Stops a run once it has logged something; returns False if it finished before."""
    process = subprocess.Popen([str(CLPIPE), *map(str, command), "-q"])
    while process.poll() is None:
        if log_records("x.h5.partial")[0]:
            process.send_signal(signal.SIGKILL)
        time.sleep(0.001)
    return process.returncode != 0


def grow(directory, count):
    original = directory / "red" / "00.png"
    for i in range(count):
        os.link(original, directory / f"{i:05}.png")


@pytest.mark.deep
def test_killed_updates_continue(place):
    """The run is killed repeatedly while it adds a source, spelled differently each time."""
    grow(place / "p2", 2000)
    ingest("p1", "-o", "x.h5")
    before = stamp()
    for spelling in ["p2", "p2/", "./p2"]:
        if not interrupt("ingest", spelling, "-o", "x.h5"):
            break
        assert stamp() == before
    report, _ = ingest(place / "p2", "-o", "x.h5")
    assert report["images_ok"] == 2018
    assert sorted(sources()) == ["p1", "p2"] and digest("x.h5") == fresh("p1", "p2")


@pytest.mark.deep
def test_first_run_continues_with_other_spelling(place):
    grow(place / "p2", 2000)
    killed = interrupt("ingest", "p2/", "-o", "x.h5", "--feature", GRAY, "--alpha", "drop",
                       "--feature", RGB)
    report, _ = ingest(place / "p2", "-o", "x.h5", "--feature", RGB, "--feature", GRAY,
                       *([] if killed else ["--alpha", "drop"]))
    assert not killed or report["images_resumed"] > 0
    options = ["--feature", GRAY, "--feature", RGB, "--alpha", "drop"]
    assert digest("x.h5") == fresh("p2", *options)


@pytest.mark.deep
def test_unfinished_work_of_another_command(place):
    """An update from other sources does not use the unfinished work; a message says what to do."""
    grow(place / "p2", 2000)
    ingest("p1", "-o", "x.h5")
    if interrupt("ingest", "p2", "-o", "x.h5"):
        result = run_clpipe("ingest", "p3", "-o", "x.h5")
        check_one_error(result, 2, "unfinished work of another command", "p2")
    assert ingest("p2", "-o", "x.h5")[0]["images_ok"] == 2018


def test_read_only_directory(place):
    ingest("p1", "-o", "x.h5")
    os.mkdir("out")
    shutil.move("x.h5", "out/x.h5")
    os.chmod("out", 0o555)
    try:
        before = stamp("out/x.h5")
        if not os.access("out", os.W_OK):  # not for root
            check_one_error(run_clpipe("ingest", "p2", "-o", "out/x.h5"), 3, "out/x.h5")
        assert stamp("out/x.h5") == before
    finally:
        os.chmod("out", 0o755)


def test_dry_run_of_an_update(place):
    ingest("p1", "-o", "x.h5")
    before = stamp()
    report, _ = ingest("p2", "-o", "x.h5", "--dry-run")
    assert report["images_ok"] == 5 and stamp() == before


# --- what may go -----------------------------------------------------------------------------------

@pytest.fixture
def large(tmp_path, monkeypatch, program):
    """The directory q with 100 small images: 60 in a, 37 in b, 3 in c; and x.h5 made from it."""
    draw_photos(tmp_path / "p", 1)
    picture = next((tmp_path / "p").rglob("*.png"))
    for name, count in [("a", 60), ("b", 37), ("c", 3)]:
        (tmp_path / "q" / name).mkdir(parents=True)
        for i in range(count):
            shutil.copy(picture, tmp_path / "q" / name / f"{i:02}.png")
    monkeypatch.chdir(tmp_path)
    ingest("q", "-o", "x.h5")
    return tmp_path


def removed(report):
    return {why: count for why, count in report.get("removed", {}).items() if count}


def refused(*args, command="ingest"):
    """Returns {reason: count} and the message of an update that must be refused and leave no files."""
    before = stamp()
    report, said = ingest(*args, code=2, command=command)
    assert stamp() == before and report["error"]["message"] in said and "--allow-removal" in said
    return removed(report["error"]), said


@pytest.mark.deep
def test_few_images_may_be_removed(large):
    """They are reported with the reasons."""
    for i in range(7):
        (large / "q" / "a" / f"{i:02}.png").unlink()
    for i in range(7, 10):
        (large / "q" / "a" / f"{i:02}.png").write_bytes(b"no picture")
    report, _ = ingest("q", "-o", "x.h5", "--exclude", "b/0*.png", code=1)
    assert removed(report) == {"gone": 7, "failed": 3, "excluded": 10} and len(rows()) == 80
    (large / "q" / "a" / "11.png").unlink()
    told = run_clpipe("ingest", "q", "-o", "x.h5")
    assert "removed     1 gone or not mounted\n" in told.stdout
    assert "removed" not in ingest("q", "-o", "x.h5", code=1)[0]


@pytest.mark.deep
@pytest.mark.parametrize("command", ["ingest", "run"])
def test_too_many_removals_are_refused(large, command):
    """21 of 100 images: missing, no longer included, or no longer images."""
    more = ["--no-report"] if command == "run" else []
    assert refused("q", "-o", "x.h5", "--exclude", "a/[01]*", "--exclude", "a/20.png",
                   *more, command=command)[0] == {"excluded": 21}
    for i in range(10):
        (large / "q" / "a" / f"{i:02}.png").unlink()
    for i in range(10, 21):
        (large / "q" / "a" / f"{i:02}.png").write_bytes(b"")
    why, said = refused("q", "-o", "x.h5", *more, command=command)
    assert why == {"gone": 10, "failed": 11} and "21 of 100 images of x.h5" in said
    ingest("q", "-o", "x.h5", "--allow-removal", *more, code=1, command=command)
    assert len(rows()) == 79


@pytest.mark.deep
def test_removing_a_whole_directory_or_source_is_refused(large):
    """Even if there are only three images, or the source is empty; dropping a source is allowed."""
    draw_photos(large / "r", 3)
    ingest("r", "-o", "x.h5")
    shutil.move("q/c", "c")
    why, said = refused("q", "r", "-o", "x.h5")
    assert why == {"gone": 3} and "all of c/ in q" in said
    os.mkdir("q/c")
    refused("q", "-o", "x.h5")
    # The refused update does not block the right command.
    shutil.copy("q/a/00.png", "q/a/new.png")
    refused("q", "-o", "x.h5", "--exclude", "b/*")
    os.rmdir("q/c")
    shutil.move("c", "q/c")
    assert ingest("q", "-o", "x.h5")[0]["images_ok"] == 105
    shutil.rmtree("r")
    os.mkdir("r")
    count = sum(source == 1 for source, _ in rows())
    assert refused("r", "-o", "x.h5")[0] == {"gone": count}
    report, _ = ingest("-o", "x.h5", "--drop-source", "r")
    assert removed(report) == {"dropped_source": count} and len(rows()) == 101
    for name in ("a", "b", "c"):
        shutil.rmtree(f"q/{name}")
    assert refused("q", "-o", "x.h5")[0] == {"gone": 101}
    check_one_error(run_clpipe("ingest", "q", "-o", "x.h5", "--allow-removal"), 3, "no image under q")


@pytest.mark.deep
def test_lists_and_archives_that_lose_images(large):
    names = sorted(str(path) for path in (large / "q").rglob("*.png"))
    (large / "l").write_text("\n".join(names))
    ingest("@l", "-o", "x.h5", "--fresh")
    (large / "l").write_text("\n".join(names[22:]))
    os.unlink(names[0])
    assert refused("@l", "-o", "x.h5")[0] == {"gone": 1, "not_listed": 21}
    with tarfile.open("t.tar", "w") as archive:
        for name in names[1:]:
            archive.add(name, os.path.relpath(name, large))
    ingest("t.tar", "-o", "t.h5")
    os.truncate("t.tar", os.path.getsize("t.tar") // 2)
    before = stamp("t.h5")
    report, said = ingest("t.tar", "-o", "t.h5", code=2)
    assert stamp("t.h5") == before and set(removed(report["error"])) <= {"archive", "failed"}
    assert report["error"]["removed"]["archive"] > 21


@pytest.mark.deep
def test_shards_move_images_and_lose_none(large):
    """Images that are now in another shard are not lost."""
    for i in range(2):
        ingest("q", "-o", f"s{i}.h5", "--shard", f"{i}/2")
    for i in range(15):
        (large / "q" / "a" / f"{i:02}.png").unlink()
    reports = [ingest("q", "-o", f"s{i}.h5", "--shard", f"{i}/2")[0] for i in range(2)]
    assert [removed(report) for report in reports] == [{"gone": 15}, {}]
    assert len(rows("s0.h5")) + len(rows("s1.h5")) == 85
    for i in range(15, 40):
        (large / "q" / "a" / f"{i:02}.png").unlink()
    report, _ = ingest("q", "-o", "s0.h5", "--shard", "0/2", code=2)
    assert removed(report["error"]) == {"gone": 25}

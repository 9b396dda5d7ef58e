"""Which files a run reads, and in which order, as shown by /images and /failures."""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile

import h5py
import pytest

from conftest import CLPIPE, draw_photos, error_lines, run_clpipe


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def rows(output):
    """Returns (paths of /images in order, {path: reason} of /failures)."""
    with h5py.File(output) as file:
        images = [text(path) for path in file["images/path"][()]]
        paths = [text(path) for path in file["failures/path"][()]]
        failures = dict(zip(paths, map(text, file["failures/reason"][()])))
        assert len(failures) == len(paths)
        return images, failures


@pytest.fixture
def ingest(clpipe, tmp_path):
    """Ingests sources and returns rows(); the exit code must agree with the failures."""
    def run(*args, **kwargs):
        output = tmp_path / "walked.h5"
        result = clpipe("ingest", *args, "-o", output, "--fresh", "--feature", "gray:bins=4",
                        **kwargs)
        assert output.exists(), result.stderr
        images, failures = rows(output)
        failed = any(reason != "not-an-image" for reason in failures.values())
        assert result.returncode == (1 if failed else 0), result.stderr
        return images, failures
    return run


@pytest.fixture
def picture(photos):
    """The contents of a small JPEG."""
    return (photos / "green" / "01.jpg").read_bytes()


def put(directory, content, *names):
    for name in names:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def test_paths_are_in_byte_order(ingest, tmp_path, picture):
    names = ["a/z.jpg", "a.jpg", "a-b.jpg", "a0.jpg", "B.jpg", "\u00e4.jpg", "a/b/c.jpg", " .jpg",
             "new\nline.jpg", "a/b0.jpg", "n" * 251 + ".jpg"]
    put(tmp_path / "photos", picture, *names, ".dot.jpg", ".hidden/x.jpg")
    images, failures = ingest("photos")
    assert images == sorted(names, key=os.fsencode)
    assert failures == {}
    images, _ = ingest("photos", "--hidden")
    assert images == sorted(names + [".dot.jpg", ".hidden/x.jpg"], key=os.fsencode)


def test_names_that_are_not_utf8(ingest, tmp_path, picture):
    directory = os.fsencode(tmp_path) + b"/photos"
    os.mkdir(directory)
    for name in (b"caf\xe9.jpg", b"cafe.jpg", b"\xff\xfe.jpg"):
        with open(directory + b"/" + name, "wb") as file:
            file.write(picture)
    images, _ = ingest("photos")
    assert images == ["cafe.jpg", r"caf\xe9.jpg", r"\xff\xfe.jpg"]


def test_several_sources_in_their_order(ingest, tmp_path, picture):
    put(tmp_path, picture, "two/b.jpg", "two/a.jpg", "one/c.jpg", "single.jpg")
    images, _ = ingest("two", "single.jpg", "one", "two/")
    assert images == ["a.jpg", "b.jpg", "single.jpg", "c.jpg"]  # a source given twice counts once
    with h5py.File(tmp_path / "walked.h5") as file:
        assert list(file["images/source"][()]) == [0, 0, 1, 2]
        assert [text(source) for source in file["images/sources"][()]] == \
            ["two", "single.jpg", "one"]


@pytest.mark.variations
@pytest.mark.parametrize("separator", ["\n", "\0"])
@pytest.mark.parametrize("through", ["file", "stdin", "pipe"])
def test_lists(ingest, tmp_path, picture, separator, through):
    put(tmp_path, picture, "d/b.jpg", "d/a.jpg", "c d.jpg")
    content = separator.join(["d/b.jpg", "./c d.jpg", "", "d//b.jpg", "d", "gone", "d/a.jpg"])
    (tmp_path / "list").write_text(content + separator)
    if through == "file":
        images, failures = ingest("@list")
    elif through == "stdin":
        with open(tmp_path / "list", "rb") as stdin:
            images, failures = ingest("-", stdin=stdin)
    else:
        with subprocess.Popen(["cat", tmp_path / "list"], stdout=subprocess.PIPE) as cat:
            images, failures = ingest("-", stdin=cat.stdout)
    assert images == ["d/b.jpg", "c d.jpg", "d/a.jpg"]
    assert failures == {"d": "not-an-image", "gone": "unreadable"}


def test_find_print0(ingest, tmp_path, picture):
    names = ["x\ny.jpg", "z.jpg", "w/v.jpg"]
    put(tmp_path / "photos", picture, *names)
    with subprocess.Popen(["find", "photos", "-type", "f", "-print0"], stdout=subprocess.PIPE,
                          cwd=tmp_path) as find:
        images, _ = ingest("-", stdin=find.stdout)
    assert sorted(images) == sorted("photos/" + name for name in names)


@pytest.mark.deep
def test_globs(ingest, tmp_path, picture):
    put(tmp_path / "photos", picture, "a.jpg", "a.png", "raw/b.jpg", "old/raw/c.jpg", "old/d.jpg")
    assert ingest("photos", "--exclude", "raw")[0] == ["a.jpg", "a.png", "old/d.jpg"]
    assert ingest("photos", "--exclude", "/raw/")[0] == \
        ["a.jpg", "a.png", "old/d.jpg", "old/raw/c.jpg"]
    assert ingest("photos", "--include", "*.jpg", "--exclude", "old/*.jpg")[0] == \
        ["a.jpg", "old/raw/c.jpg", "raw/b.jpg"]
    assert ingest("photos", "--include", "**/raw/*")[0] == ["old/raw/c.jpg", "raw/b.jpg"]
    assert ingest("photos", "--include", "raw/")[0] == ["old/raw/c.jpg", "raw/b.jpg"]


def test_limit(ingest, tmp_path, picture):
    put(tmp_path / "photos", picture, *(f"{i}.jpg" for i in range(9)))
    assert ingest("photos", "--limit", "4")[0] == ["0.jpg", "1.jpg", "2.jpg", "3.jpg"]


@pytest.mark.deep
def test_links_and_special_files(ingest, tmp_path, picture):
    photos = tmp_path / "photos"
    put(photos, picture, "a.jpg", "d/b.jpg")
    (photos / "dangling.jpg").symlink_to("nowhere")
    (photos / "dangling").symlink_to("nowhere")
    (photos / "loop.jpg").symlink_to("loop.jpg")
    (photos / "null.jpg").symlink_to("/dev/null")
    (photos / "d" / "up").symlink_to("..")
    (photos / "same").symlink_to("d")
    os.mkfifo(photos / "fifo.jpg")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(photos / "socket"))
        images, failures = ingest("photos")
        assert images == ["a.jpg", "d/b.jpg"]
        assert failures == {"dangling.jpg": "unreadable", "dangling": "not-an-image",
                            "loop.jpg": "unreadable", "null.jpg": "not-an-image",
                            "fifo.jpg": "not-an-image", "socket": "not-an-image"}
        assert ingest("photos", "--follow-symlinks")[0] == ["a.jpg", "d/b.jpg", "same/b.jpg"]
    (tmp_path / "link").symlink_to("photos/d")
    assert ingest("link")[0] == ["b.jpg"]


def test_skipped_links_are_reported(clpipe, tmp_path, picture):
    put(tmp_path / "photos", picture, "a.jpg", "d/b.jpg")
    (tmp_path / "photos" / "link").symlink_to("d")
    result = clpipe("ingest", "photos", "--dry-run")
    assert result.returncode == 0
    assert any("--follow-symlinks" in line for line in error_lines(result))


def test_paths_beyond_path_max(ingest, tmp_path, picture):
    name = "d" * 200
    (tmp_path / "photos").mkdir()
    at = os.open(tmp_path / "photos", os.O_RDONLY)
    for _ in range(30):
        os.mkdir(name, dir_fd=at)
        below = os.open(name, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    file = os.open("x.jpg", os.O_WRONLY | os.O_CREAT, dir_fd=at)
    os.write(file, picture)
    os.close(file)
    os.close(at)
    try:
        assert ingest("photos") == ([(name + "/") * 30 + "x.jpg"], {})
    finally:
        subprocess.run(["rm", "-rf", tmp_path / "photos"], check=True)


@pytest.fixture
def open_directory():
    """A directory of an unprivileged user, who cannot enter pytest's directories."""
    with tempfile.TemporaryDirectory(prefix="clpipe-test-") as directory:
        os.chmod(directory, 0o755)
        if os.geteuid() == 0:
            os.chown(directory, 65534, 65534)
        yield pathlib.Path(directory)


@pytest.mark.deep
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody without permission")
def test_unreadable_directories(open_directory, picture):
    put(open_directory, picture, "photos/a.jpg", "photos/closed/b.jpg", "photos/c.jpg")
    (open_directory / "photos" / "closed").chmod(0)
    (open_directory / "photos" / "c.jpg").chmod(0)
    nobody = {"user": 65534, "group": 65534, "extra_groups": []}
    home = {"HOME": open_directory, "XDG_CACHE_HOME": open_directory}
    if subprocess.run(["test", "-x", CLPIPE], **nobody, check=False).returncode != 0:
        pytest.skip(f"{CLPIPE} is closed to others")
    result = run_clpipe("ingest", "photos", "-o", "f.h5", cwd=open_directory, env=home,
                        **nobody)
    assert result.returncode == 1, result.stderr
    assert rows(open_directory / "f.h5") == \
        (["a.jpg"], {"closed/": "unreadable", "c.jpg": "unreadable"})

    result = run_clpipe("ingest", "photos/closed", "-o", "g.h5", cwd=open_directory, env=home,
                        **nobody)
    assert result.returncode == 3
    assert "photos/closed" in error_lines(result)[0]
    assert not (open_directory / "g.h5").exists()


def test_output_within_the_source(clpipe, tmp_path):
    draw_photos(tmp_path)
    for _ in range(2):
        result = clpipe("ingest", ".", "-o", "f.h5")
        assert result.returncode == 0, result.stderr
        images, failures = rows(tmp_path / "f.h5")
        assert len(images) == 13
        assert failures == {}


@pytest.mark.parametrize("source, part", [
    ("missing", "missing"), ("@missing", "missing"), ("photos/a.jpg/x", "photos/a.jpg/x")])
def test_missing_sources(clpipe, tmp_path, picture, source, part):
    put(tmp_path / "photos", picture, "a.jpg")
    result = clpipe("ingest", "photos", source, "-o", "f.h5")
    assert result.returncode == 2
    assert part in error_lines(result)[0]
    assert not (tmp_path / "f.h5").exists()


def test_dry_run_walks(clpipe, tmp_path, picture):
    put(tmp_path / "photos", picture, "a.jpg", "d/b.jpg", "notes.txt.jpg")
    (tmp_path / "photos" / "readme").write_text("no picture")
    result = clpipe("ingest", "photos", "--dry-run", "--json", "-")
    report = json.loads(result.stdout)
    assert result.returncode == 0
    assert (report["images_ok"], report["images_failed"], report["files_not_images"]) == (3, 0, 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["photos"]


def test_times_out_of_range(clpipe, ingest, tmp_path, picture):
    """File systems store times before 1677 and after 2262: lists contain them and can be read."""
    put(tmp_path / "p", picture, "a.jpg", "b.jpg", "c.jpg")
    for name, when in (("a.jpg", 10413792000), ("b.jpg", 9000000001), ("c.jpg", -2000000000)):
        os.utime(tmp_path / "p" / name, (when, when))
    assert clpipe("list", "p", "-o", "l").returncode == 0
    assert ingest("@l", cwd=tmp_path) == (["p/a.jpg", "p/b.jpg", "p/c.jpg"], {})
    (tmp_path / "l").write_bytes(b"clpipe list 1\0" + b"".join(
        b"f %d %d.0000000000 p/%s\0" % (len(picture), when, name)
        for name, when in ((b"a.jpg", 10413792000), (b"c.jpg", -2000000000))))
    assert ingest("@l", cwd=tmp_path) == (["p/a.jpg", "p/c.jpg"], {})


def test_names_that_look_alike(clpipe, ingest, tmp_path, picture):
    """A byte that is not UTF-8 is shown as \\xHH, and a name may contain these characters: each text
    identifies one file."""
    put(tmp_path / "p", picture, os.fsdecode(b"d\xff/1.jpg"), "d\\xff/1.jpg", "d\\xff/2.jpg",
        os.fsdecode(b"\xfe.jpg"))
    assert ingest("p", cwd=tmp_path) == (["d\\x5cxff/1.jpg", "d\\x5cxff/2.jpg", "d\\xff/1.jpg", "\\xfe.jpg"], {})
    (tmp_path / "l").write_bytes(b"p/d\xff/1.jpg\np/d\\xff/1.jpg\n")
    assert ingest("@l", cwd=tmp_path) == (["p/d\\xff/1.jpg", "p/d\\x5cxff/1.jpg"], {})


@pytest.mark.deep
def test_sources_that_look_alike(clpipe, tmp_path, picture):
    other, text = tmp_path / os.fsdecode(b"s\xff"), tmp_path / "s\\xff"
    put(other, picture, "1.jpg")
    put(text, picture, "2.jpg")
    assert clpipe("ingest", other.name, "-o", "f.h5").returncode == 0
    assert clpipe("ingest", text.name, "-o", "f.h5").returncode == 0
    before = (tmp_path / "f.h5").read_bytes()
    for source in other.name, text.name, text:
        assert "nothing new" in clpipe("ingest", source, "-o", "f.h5").stdout
    assert (tmp_path / "f.h5").read_bytes() == before
    assert rows(tmp_path / "f.h5") == (["1.jpg", "2.jpg"], {})
    assert clpipe("ingest", "-o", "f.h5", "--drop-source", other.name).returncode == 0
    assert rows(tmp_path / "f.h5") == (["2.jpg"], {})
    with h5py.File(tmp_path / "f.h5") as file:
        assert file["images/sources"][:].tolist() == [b"s\\x5cxff"]
        assert file["images/directories"].asstr()[0] == str(tmp_path.resolve())


def test_stat_columns_and_places(clpipe, tmp_path, picture):
    """The inode and change time of each file that was opened, or of a member's archive; and the directory of
    each source."""
    put(tmp_path / "p", picture, "a.jpg", "b.jpg")
    (tmp_path / "p" / "c.jpg").write_bytes(b"no picture")
    assert clpipe("ingest", "p", "-o", "f.h5").returncode == 1
    with h5py.File(tmp_path / "f.h5") as file:
        for table, names in ("images", ["a.jpg", "b.jpg"]), ("failures", ["c.jpg"]):
            stats = [(tmp_path / "p" / name).stat() for name in names]
            assert file[table]["inode"][:].tolist() == [stat.st_ino for stat in stats]
            assert file[table]["ctime_ns"][:].tolist() == [stat.st_ctime_ns for stat in stats]
        places = file["images/directories"].asstr()[:].tolist()
        identity = file["checksums"].attrs["identity"]
    # They are not part of the identity, and not a reason to write.
    (tmp_path / "else").mkdir()
    os.rename(tmp_path / "p", tmp_path / "else" / "p")
    for name in "a.jpg", "c.jpg":
        file = tmp_path / "else" / "p" / name
        stat = file.stat()
        shutil.copy2(file, tmp_path / "copy")
        os.replace(tmp_path / "copy", file)
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    shutil.copy(tmp_path / "f.h5", tmp_path / "g.h5")
    before = (tmp_path / "g.h5").read_bytes()
    again = clpipe("ingest", "p", "-o", "../g.h5", cwd=tmp_path / "else")
    assert again.returncode == 2 and (tmp_path / "g.h5").read_bytes() == before
    assert clpipe("ingest", "p", "-o", "h.h5", cwd=tmp_path / "else").returncode == 1
    with h5py.File(tmp_path / "else" / "h.h5") as file:
        assert places == [str(tmp_path.resolve())]
        assert file["images/directories"].asstr()[:].tolist() == [str(tmp_path.resolve() / "else")]
        assert file["checksums"].attrs["identity"] == identity


@pytest.mark.deep
def test_own_output_is_skipped(clpipe, tmp_path, picture):
    """Reports, trees and leftovers of unfinished runs are skipped, with their marker files or copied without them."""
    source = tmp_path / "p"
    draw_photos(source, 6)
    images = sorted(str(path.relative_to(source)) for path in source.rglob("*.*"))
    assert clpipe("run", ".", "-o", "photos.h5", "-k", 2, cwd=source).returncode == 0
    again = clpipe("run", ".", "-o", "photos.h5", "-k", 2, "--json", "run.json", cwd=source)
    assert again.returncode == 0 and "1 directory that clpipe wrote in . left out (photos-report/)" in again.stderr
    assert rows(source / "photos.h5") == (images, {})
    for tree, *link in [("tree",), ("deep/copies", "--link", "copy")]:
        (source / tree).parent.mkdir(exist_ok=True)
        assert clpipe("export", "photos.h5", "--what", "tree", "--to", tree, *link,
                      cwd=source).returncode == 0
    shutil.copytree(source / "photos-report", source / "old")
    (source / "old" / ".clpipe-report").unlink()
    shutil.copytree(source / "deep" / "copies", source / "old tree")
    (source / "old tree" / ".clpipe-tree").unlink()
    shutil.copytree(source / "deep" / "copies", source / "t.tmp-clpipe-123")
    put(source, picture, "x.h5.partial/lock", "x.h5.partial/a.jpg", "data/a.jpg", "sheets/b.jpg")
    images = sorted(images + ["data/a.jpg", "sheets/b.jpg"])
    for more in ((), ("--hidden", "--follow-symlinks")):
        made = clpipe("ingest", ".", "-o", "other.h5", "--fresh", *more, cwd=source)
        assert "7 directories that clpipe wrote" in made.stderr, made.stderr
        assert rows(source / "other.h5")[0] == images
    listed = clpipe("list", "p", "-o", "l")
    assert listed.returncode == 0 and "7 directories that clpipe wrote" in listed.stderr
    assert b"sheets/0" not in (tmp_path / "l").read_bytes()
    # If such a directory is named, it is read.
    assert clpipe("ingest", "p/tree", "-o", "tree.h5").returncode == 0
    assert len(rows(tmp_path / "tree.h5")[0]) == len(images) - 2
    assert clpipe("ingest", *(source / "deep" / "copies").iterdir(), "-o", "c.h5").returncode == 0

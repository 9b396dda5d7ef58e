"""Archives as sources: the results equal those of the same files when unpacked."""
import csv
import gzip
import io
import json
import os
import shutil
import subprocess
import tarfile
import zipfile

import h5py
import pytest
from conftest import check_one_error, draw_photos, error_lines, run_clpipe, spoil
from archives import add, flip, made_archives, made_bombs
from PIL import Image, ImageOps
from test_duplicates import scene

pytestmark = pytest.mark.skipif("not built in" in run_clpipe("--version").stdout.split(
    "archives")[-1].split("\n")[0], reason="this build has no libarchive")


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Pictures and broken files, some with names longer than 100 bytes or with non-ASCII characters."""
    directory = tmp_path_factory.mktemp("unpacked") / "t"
    directory.mkdir()
    draw_photos(directory)
    spoil(directory)
    picture = (directory / "green" / "01.jpg").read_bytes()
    for name in ("l" * 120 + "/" + "m" * 130 + ".jpg", "caf\u00e9/\u00fc.jpg"):
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_bytes(picture)
    (directory / ".hidden.jpg").write_bytes(picture)
    return directory


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def rows(path):
    """{path: (digest, feature row)} and {path: reason} of a result."""
    with h5py.File(path) as file:
        feature = next(iter(file["features"].values()))
        return ({text(name): (tuple(digest), tuple(row)) for name, digest, row in
                 zip(file["images/path"][()], file["images/digest"][()], feature[()])},
                {text(name): text(reason) for name, reason in
                 zip(file["failures/path"][()], file["failures/reason"][()])})


def pack(kind, directory, path):
    """Packs the content of `directory`."""
    formats = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}
    if kind.startswith("zip"):
        method = zipfile.ZIP_DEFLATED if kind == "zip-deflated" else zipfile.ZIP_STORED
        with zipfile.ZipFile(path, "w", method) as archive:
            for top, folders, names in os.walk(directory):
                for name in sorted(folders) + sorted(names):
                    whole = os.path.join(top, name)
                    archive.write(whole, os.path.relpath(whole, directory))
        return
    if kind == "zst":
        subprocess.run(["bsdtar", "-caf", path, "-C", directory, "."], check=True)
        return
    mode = {"gz": "w:gz", "xz": "w:xz", "bz2": "w:bz2"}.get(kind, "w")
    with tarfile.open(path, mode, format=formats.get(kind, tarfile.GNU_FORMAT)) as archive:
        archive.add(directory, ".")


KINDS = {"ustar": "tar", "gnu": "tar", "pax": "tar", "gz": "tar.gz", "xz": "txz", "bz2": "tar.bz2",
         "zst": "tar.zst", "zip-stored": "zip", "zip-deflated": "ZIP"}


@pytest.mark.variations
@pytest.mark.parametrize("kind", KINDS)
def test_equals_the_unpacked_files(clpipe, tmp_path, tree, kind):
    if kind == "zst" and not shutil.which("bsdtar"):
        pytest.skip("bsdtar is not installed")
    directory = tree
    if kind == "ustar":  # names are limited to 100 bytes after a prefix of 155 bytes
        directory = tmp_path / "short"
        shutil.copytree(tree, directory, ignore=shutil.ignore_patterns("l" * 120))
    archive = f"a.{KINDS[kind]}"
    pack(kind, directory, tmp_path / archive)
    extra = ["--isolate"] if kind in ("pax", "gz") else []
    assert clpipe("ingest", directory, "-o", "d.h5", "-q").returncode == 1
    assert clpipe("ingest", archive, "-o", "a.h5", "-q", *extra).returncode == 1
    images, failures = rows(tmp_path / "d.h5")
    assert rows(tmp_path / "a.h5") == ({f"{archive}/{name}": row for name, row in images.items()},
                                       {f"{archive}/{name}": why for name, why in failures.items()})
    assert clpipe("verify", "a.h5").returncode == 0
    again = clpipe("ingest", archive, "-o", "a.h5")
    assert "nothing new" in again.stdout


@pytest.mark.deep
def test_directories_with_archives(clpipe, tmp_path, tree):
    """In a directory, an archive is sorted like a directory of its name, and its members keep the archive's order."""
    put = tmp_path / "all"
    put.mkdir()
    shutil.copytree(tree / "red", put / "a")
    shutil.copytree(tree / "blue", put / "b.tar.d")
    with tarfile.open(put / "b.tar", "w") as archive:
        for name in ("05.jpg", "02.jpg"):
            archive.add(tree / "blue" / name, name)
    with tarfile.open(put / "c.tgz", "w:gz") as archive:
        for name in ("10.jpg", "01.jpg", "07.jpg"):
            archive.add(tree / "green" / name, "x/" + name)
    shutil.copy(put / "c.tgz", put / "b.tar.tgz")
    plain = clpipe("ingest", "all", "-o", "plain.h5")
    assert plain.returncode == 0
    assert any("3 archives in directories were not opened (use --archives)" in line
               for line in error_lines(plain))
    result = clpipe("ingest", "all", "--archives", "-o", "all.h5", "--exclude", "02.jpg")
    assert result.returncode == 0 and not error_lines(result), result.stderr
    paths = list(rows(tmp_path / "all.h5")[0])
    head = sorted(f"a/{name}" for name in os.listdir(put / "a"))
    blue = sorted(f"b.tar.d/{name}" for name in os.listdir(put / "b.tar.d") if name != "02.jpg")
    assert paths == head + blue + [f"b.tar.tgz/x/{n}.jpg" for n in ("10", "01", "07")] + \
        ["b.tar/05.jpg"] + [f"c.tgz/x/{n}.jpg" for n in ("10", "01", "07")]
    assert clpipe("verify", "all.h5").returncode == 0
    # An update after one archive has gained a member and another has been removed.
    with tarfile.open(put / "b.tar", "a") as archive:
        archive.add(tree / "red" / "00.png", "new.png")
    os.remove(put / "c.tgz")
    result = clpipe("ingest", "all", "-o", "all.h5", "--allow-removal")
    assert result.returncode == 0, result.stderr
    assert list(rows(tmp_path / "all.h5")[0]) == [p for p in paths if not p.startswith("c.tgz")] + \
        ["b.tar/new.png"]
    assert clpipe("verify", "all.h5").returncode == 0
    # A list names archives and files.
    (tmp_path / "list").write_text("all/b.tar\nall/a/00.png\n")
    assert clpipe("ingest", "@list", "-o", "list.h5", "-q").returncode == 0
    assert list(rows(tmp_path / "list.h5")[0]) == ["all/b.tar/05.jpg", "all/b.tar/02.jpg",
                                                  "all/b.tar/new.png", "all/a/00.png"]


@pytest.mark.deep
def test_an_interrupted_run_is_continued(clpipe, tmp_path, tree):
    for kind in ("gz", "gnu"):
        archive = f"{kind}.{KINDS[kind]}"
        pack(kind, tree, tmp_path / archive)
        assert clpipe("ingest", archive, "-o", f"{kind}.h5", "-q").returncode == 1
        first = clpipe("ingest", archive, "-o", f"{kind}2.h5", "-q", "--limit", "5")
        assert first.returncode in (0, 1)
        assert clpipe("ingest", archive, "-o", f"{kind}2.h5", "-q").returncode == 1
        assert rows(tmp_path / f"{kind}.h5") == rows(tmp_path / f"{kind}2.h5")


def test_hostile_members(clpipe, tmp_path, tree):
    picture = (tree / "green" / "01.jpg").read_bytes()
    with tarfile.open(tmp_path / "evil.tar", "w") as archive:
        add(archive, "good.jpg", picture)
        add(archive, "/absolute.jpg", picture)
        add(archive, "../up.jpg", picture)
        add(archive, "a/../b.jpg", picture)
        add(archive, "good.jpg", picture)
        add(archive, "link.jpg", type=tarfile.SYMTYPE, linkname="good.jpg")
        add(archive, "hard.jpg", type=tarfile.LNKTYPE, linkname="good.jpg")
        add(archive, "readme", type=tarfile.SYMTYPE, linkname="good.jpg")
        add(archive, "pipe", type=tarfile.FIFOTYPE)
        add(archive, "inner.tar", (b"x" * 512))
        add(archive, "empty.jpg")
        add(archive, "last.jpg", picture)
    result = clpipe("ingest", "evil.tar", "-o", "e.h5", "-q")
    assert result.returncode == 1, result.stderr
    images, failures = rows(tmp_path / "e.h5")
    assert list(images) == ["evil.tar/good.jpg", "evil.tar/last.jpg"]
    with h5py.File(tmp_path / "e.h5") as file:
        table = [(text(p), text(r)) for p, r in zip(file["failures/path"][()],
                                                   file["failures/reason"][()])]
    assert table == [("evil.tar//absolute.jpg", "unsupported"), ("evil.tar/../up.jpg", "unsupported"),
                     ("evil.tar/a/../b.jpg", "unsupported"), ("evil.tar/good.jpg", "unsupported"),
                     ("evil.tar/link.jpg", "unsupported"), ("evil.tar/hard.jpg", "unsupported"),
                     ("evil.tar/readme", "not-an-image"), ("evil.tar/pipe", "not-an-image"),
                     ("evil.tar/inner.tar", "not-an-image"), ("evil.tar/empty.jpg", "empty")]
    assert clpipe("verify", "e.h5").returncode == 0


@pytest.mark.variations
@pytest.mark.parametrize("kind", ["gnu", "gz", "zip-stored", "zip-deflated"])
def test_damaged_archives(clpipe, tmp_path, tree, kind):
    """Members before the damage are read; the rest is recorded as a failure with a reason."""
    pack(kind, tree / "red", tmp_path / "whole")
    content = (tmp_path / "whole").read_bytes()
    put = tmp_path / "d"
    put.mkdir()
    (put / "good.png").write_bytes((tree / "red" / "00.png").read_bytes())
    ending = KINDS[kind]
    damaged = {"cut": content[:len(content) // 4], "head": flip(content, 3),
               "middle": flip(content, len(content) // 2), "text": b"no archive at all\n" * 99,
               "empty": b"", "zeros": bytes(10240), "end": content[:-30]}
    for name, spoiled in damaged.items():
        (put / f"{name}.{ending}").write_bytes(spoiled)
    result = clpipe("ingest", "d", "--archives", "-o", "d.h5", "-q", timeout=60)
    assert result.returncode == 1, result.stderr
    images, failures = rows(tmp_path / "d.h5")
    assert "good.png" in images
    assert failures[f"empty.{ending}/"] == "empty"
    assert failures[f"text.{ending}/"] in ("corrupt", "truncated")
    assert any(path.startswith("cut.") for path in failures)
    assert set(failures.values()) <= {"empty", "corrupt", "truncated", "unsupported", "unknown-format",
                                      "not-an-image", "changed"}
    assert clpipe("verify", "d.h5").returncode == 0


def test_sparse_members(clpipe, tmp_path):
    with open(tmp_path / "holes.bmp", "wb") as file:
        file.seek(1 << 20)
        file.write(b"end")
    subprocess.run(["tar", "--sparse", "-cf", "sparse.tar", "holes.bmp"], cwd=tmp_path, check=True)
    check_one_error(clpipe("ingest", "sparse.tar", "-o", "s.h5", "-q"), 3, "unsupported 1")


@pytest.mark.slow  # reads 257 MiB of zeros twice from each archive
def test_bombs(clpipe, tmp_path, tree):
    picture = (tree / "red" / "00.png").read_bytes()
    for name, bomb in made_bombs(picture).items():
        (tmp_path / name).write_bytes(bomb)
        assert len(bomb) < 1 << 20
    names = sorted(path.name for path in tmp_path.iterdir())
    result = clpipe("ingest", *names, "-o", "b.h5", "-q", "--json", "b.json", "--memory", "64M")
    assert result.returncode == 1, result.stderr
    images, failures = rows(tmp_path / "b.h5")
    assert sorted(images) == [f"{name}/b.png" for name in names]
    assert failures == {f"{name}/a.png": "too-large" for name in names}
    assert json.loads((tmp_path / "b.json").read_text())["peak_rss_bytes"] < 300 << 20


def test_changed_while_read(clpipe, tmp_path, tree):
    """If an archive changes between listing and reading, no picture is decoded from the wrong bytes."""
    pack("gnu", tree, tmp_path / "a.tar")
    os.mkfifo(tmp_path / "wait")
    # The program reads @wait after listing the archive. The writer of the FIFO first changes the archive.
    with subprocess.Popen(["sh", "-c", "exec 3> wait; printf x >> a.tar; echo good.png >&3"],
                          cwd=tmp_path):
        shutil.copy(tree / "red" / "00.png", tmp_path / "good.png")
        result = clpipe("ingest", "a.tar", "@wait", "-o", "c.h5", "-q")
    assert result.returncode == 1, result.stderr
    images, failures = rows(tmp_path / "c.h5")
    assert list(images) == ["good.png"]
    assert len(failures) > 10 and set(failures.values()) == {"changed"}


def test_without_a_picture(clpipe, tmp_path):
    with tarfile.open(tmp_path / "none.tar", "w") as archive:
        add(archive, "notes", b"text")
    check_one_error(clpipe("ingest", "none.tar", "-o", "n.h5", "-q"), 3, "no image")


def test_no_files_to_link_to(clpipe, tmp_path, tree):
    pack("gnu", tree / "red", tmp_path / "a.tar")
    assert clpipe("run", "a.tar", "-k", "2", "-o", "r.h5", "-q").returncode == 0
    assert (tmp_path / "r-report" / "index.html").exists()
    check_one_error(clpipe("export", "r.h5", "--what", "tree", "--to", "t", "-q"), 3,
                    "the images are in archives")


@pytest.fixture(scope="module")
def copies(tmp_path_factory):
    """Scenes, and copies that can be recognised only by comparing pixels."""
    directory = tmp_path_factory.mktemp("copies") / "t"
    directory.mkdir()
    for seed in range(8):
        scene(seed).save(directory / f"scene{seed}.png")
    scene(1).save(directory / "one.bmp")
    exif = Image.Exif()
    exif[0x0112] = 6
    scene(1).transpose(Image.ROTATE_90).save(directory / "one-turned.png", exif=exif)
    ImageOps.mirror(scene(3)).save(directory / "three-mirrored.png")
    scene(4).crop((30, 0, 300, 220)).resize((540, 440)).save(directory / "four-cropped.png")
    return directory


def groups_of(file, prefix=""):
    """The groups of duplicates as sets of (path, kind). Every path must begin with `prefix`, which is removed."""
    result = run_clpipe("duplicates", file, "--format", "csv")
    assert result.returncode == 0, result.stderr
    groups = {}
    for row in csv.DictReader(result.stdout.splitlines()):
        assert row["path"].startswith(prefix)
        groups.setdefault(row["group"], set()).add((row["path"][len(prefix):], row["kind"]))
    return {frozenset(group) for group in groups.values()}, error_lines(result)


def thumbnails_missing(file, tmp_path):
    result = run_clpipe("report", file, "-o", tmp_path / "report", "--json", "-")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)["without_thumbnail"], error_lines(result)


@pytest.mark.deep
@pytest.mark.parametrize("kind", ["gnu", "gz", "zip-stored", "zip-deflated"])
def test_members_are_decoded_again(clpipe, tmp_path, copies, kind, monkeypatch):
    archive = f"a.{KINDS[kind]}"
    pack(kind, copies, tmp_path / archive)
    assert clpipe("ingest", archive, "-o", "a.h5", "-q").returncode == 0
    assert clpipe("ingest", copies, "-o", "d.h5", "-q").returncode == 0
    expected = groups_of(tmp_path / "d.h5")
    assert len(expected[0]) == 3 and not expected[1]
    monkeypatch.chdir(tmp_path)  # the source is stored as a relative path
    assert groups_of("a.h5", archive + "/") == expected
    # With little memory, members are held one at a time and the planes in few slots.
    little = run_clpipe("duplicates", "a.h5", "--memory", "16M", "--threads", "1", "--format", "csv")
    assert little.stdout == run_clpipe("duplicates", "a.h5", "--format", "csv").stdout
    assert thumbnails_missing("a.h5", tmp_path) == (0, [])
    # A changed or missing archive is reported once, not once per picture.
    os.utime(archive, (1, 1))
    for why in ("has changed", "no longer exists"):
        missing, lines = thumbnails_missing("a.h5", tmp_path)
        assert missing == 12 and len(lines) == 1 and archive in lines[0] and why in lines[0], lines
        lines = groups_of("a.h5", archive + "/")[1]
        assert sum(archive in line for line in lines) == 1 and len(lines) == 3, lines
        if why == "has changed":
            os.remove(archive)


def test_members_and_files_are_decoded_again(clpipe, tmp_path, copies, monkeypatch):
    """Archives in a directory, a directory named like an archive, and members of a damaged archive."""
    put = tmp_path / "all"
    (put / "dir.tar").mkdir(parents=True)
    shutil.copy(copies / "one.bmp", put / "dir.tar" / "one.bmp")
    pack("gz", copies, put / "b.tgz")
    pack("gnu", copies, put / "c.tar")
    with open(put / "c.tar", "r+b") as file:
        file.truncate(os.path.getsize(put / "c.tar") - 40000)
    shutil.copy(copies / "scene0.png", put / "zero.png")
    assert clpipe("ingest", "all", "--archives", "-o", "a.h5", "-q").returncode == 1
    monkeypatch.chdir(tmp_path)
    assert thumbnails_missing("a.h5", tmp_path) == (0, [])
    groups, lines = groups_of("a.h5")
    assert not lines
    one = next(group for group in groups if ("dir.tar/one.bmp", "bytes") in group)
    assert {"b.tgz/one.bmp", "b.tgz/one-turned.png", "c.tar/one.bmp"} <= {path for path, _ in one}
    os.remove("all/b.tgz")
    os.remove("all/c.tar")
    lines = thumbnails_missing("a.h5", tmp_path)[1]
    assert len(lines) == 1 and "2 archives" in lines[0]


def test_codebooks_are_learned_from_compressed_archives(clpipe, tmp_path, tree):
    """The sample is drawn from all members, up to the last; ingest then reads them again."""
    spec = ["--feature", "patch:words=8", "--device", "cpu", "-q"]
    for name, kind in (("plain", "gnu"), ("packed", "gz")):
        (tmp_path / name).mkdir()
        for top in ("green", "red"):  # the plain tars get the same names, so the sample is the same
            pack(kind, tree / top, tmp_path / name / f"{top}.tar.gz")
    sources = ["green.tar.gz", "red.tar.gz"]
    result = clpipe("ingest", *sources, "-o", "r.h5", *spec, cwd=tmp_path / "packed")
    assert result.returncode == 0, result.stderr
    assert clpipe("codebook", *sources, "-o", "c.h5", *spec,
                  cwd=tmp_path / "plain").returncode == 0
    good, failed = rows(tmp_path / "packed/r.h5")
    assert len(good) == sum(len(os.listdir(tree / top)) for top in ("green", "red")) and not failed
    with h5py.File(tmp_path / "packed/r.h5") as packed, h5py.File(tmp_path / "plain/c.h5") as plain:
        digests = [[text(group.attrs["digest"]) for group in file["codebooks"].values()]
                   for file in (packed, plain)]
    assert digests[0] == digests[1] and digests[0]


def test_a_table_of_archives(clpipe, tmp_path, tree):
    picture = (tree / "red" / "00.png").read_bytes()
    table = made_archives(picture)
    put = tmp_path / "d"
    put.mkdir()
    for name, (content, _, _) in table.items():
        (put / name).write_bytes(content)
    result = clpipe("ingest", "d", "--archives", "-o", "d.h5", "-q", timeout=60)
    assert result.returncode == 1 and not error_lines(result), result.stderr
    assert clpipe("verify", "d.h5").returncode == 0
    images, _ = rows(tmp_path / "d.h5")
    with h5py.File(tmp_path / "d.h5") as file:
        failures = [(text(path), f"{text(reason)}: {text(message)}") for path, reason, message in
                    zip(*(file[f"failures/{key}"][()] for key in ("path", "reason", "message")))]
    wrong = {}
    for name, (_, good, bad) in table.items():
        here = [path[len(name) + 1:] for path in images if path.startswith(name + "/")]
        failed = {None if path == name else path[len(name) + 1:]: why for path, why in failures
                  if path == name or path.startswith(name + "/")}
        if here != good or failed.keys() != bad.keys() or any(
                not failed[path].startswith(why) for path, why in bad.items()):
            wrong[name] = (here, failed)
    assert not wrong
    assert len({row for row in images.values()}) == 1
    # A list that gives the positions of the members leads to the same result.
    assert clpipe("list", "d", "--archives", "-o", "l", "-q").returncode == 0
    assert clpipe("ingest", "@l", "-o", "l.h5", "-q").returncode == 1
    listed = {path: row for path, row in rows(tmp_path / "l.h5")[0].items()}
    assert listed == {f"d/{path}": row for path, row in images.items()}


@pytest.mark.deep
def test_zip_entries_with_the_same_offset(clpipe, tmp_path, tree):
    """A zip whose directory has many entries for one member."""
    picture = (tree / "green" / "01.jpg").read_bytes()
    for count in (5, 70000):
        path = tmp_path / f"{count}.zip"
        with zipfile.ZipFile(path, "w") as made:
            made.writestr("a.jpg", picture)
            first = made.infolist()[0]
            for i in range(1, count):
                again = zipfile.ZipInfo(f"{i}.jpg", first.date_time)
                for field in ("CRC", "compress_size", "file_size", "header_offset", "external_attr"):
                    setattr(again, field, getattr(first, field))
                made.filelist.append(again)
            made.comment = b"PK\5\6 is no end"
        result = clpipe("ingest", path, "-o", "o.h5", "--fresh")
        assert result.returncode == 1
        assert list(rows(tmp_path / "o.h5")[0]) == [f"{count}.zip/a.jpg"]
        shown = clpipe("info", "o.h5", "--failures").stdout
        assert f"{count}.zip/\tcorrupt\t{count - 1} of {count} entries are missing, or have the place of another" in shown


@pytest.mark.slow
def test_an_archive_that_expands_forever(clpipe, tmp_path, tree):
    """A member with a stated size of 1 TiB, of which only the beginning exists."""
    picture = (tree / "green" / "01.jpg").read_bytes()
    zeros = gzip.compress(bytes(64 << 20))
    with open(tmp_path / "x.tar.gz", "wb") as out:
        info = tarfile.TarInfo("b.jpg")
        info.size = 1 << 40
        head = io.BytesIO()
        with tarfile.open(fileobj=head, mode="w") as archive:
            add(archive, "a.jpg", picture)
        first = head.getvalue()[:512 + len(picture) + -len(picture) % 512]
        out.write(gzip.compress(first + info.tobuf(tarfile.GNU_FORMAT)))
        for _ in range(20):
            out.write(zeros)
    assert clpipe("ingest", "x.tar.gz", "-o", "o.h5").returncode == 1
    assert list(rows(tmp_path / "o.h5")[0]) == ["x.tar.gz/a.jpg"]
    assert "x.tar.gz/\ttoo-large\t" in clpipe("info", "o.h5", "--failures").stdout

"""Lists of duplicates for removal: after everything listed is removed, each group still has a readable copy.
Tested with several paths of one file, changed files, archives, chains of near copies and mounts; also
--check, and other commands that open the file of an image."""
import csv
import json
import os
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
from PIL import Image

from conftest import check_one_error, run_clpipe
from test_duplicates import scene


def ingest(file, *sources, cwd=None):
    result = run_clpipe("ingest", *sources, "-o", file, cwd=cwd)
    assert result.returncode == 0, result.stderr
    return result.stderr


def listed(file, to, *options, cwd=None):
    """Returns the listed paths, and the messages."""
    result = run_clpipe("duplicates", file, "--to-list", to, "--force", *options, cwd=cwd)
    assert result.returncode == 0, result.stderr
    paths = to.read_bytes().split(b"\0")
    assert paths.pop() == b"" and all(path.startswith(b"/") for path in paths)
    return sorted(os.fsdecode(path) for path in paths), result.stdout + result.stderr


def remove(to):
    subprocess.run("xargs -0r rm --", shell=True, stdin=open(to), check=True)


def contents(*directories):
    """The contents of all files that any path leads to."""
    return {path.read_bytes() for directory in directories
            for path in Path(directory).rglob("*") if path.is_file()}


def removes_copies_only(file, to, *directories, options=(), cwd=None, expect=None):
    """Checks that removing the listed files loses no contents and leaves no dangling links."""
    before = contents(*directories)
    paths, said = listed(file, to, *options, cwd=cwd)
    if expect is not None:
        assert paths == sorted(str(path) for path in expect)
    if paths:
        check = run_clpipe("duplicates", "--check", to, file, cwd=cwd)
        assert check.returncode == 0, check.stdout + check.stderr
    remove(to)
    assert contents(*directories) == before
    for directory in directories:
        for path in Path(directory).rglob("*"):
            assert path.exists(), f"{path} leads nowhere"
    return said


@pytest.fixture
def place(tmp_path):
    (tmp_path / "p" / "z").mkdir(parents=True)
    for i in range(2):
        scene(i).save(tmp_path / "p" / "z" / f"{i}.png")
    return tmp_path


def test_a_symbolic_link_that_sorts_first(place):
    (place / "p" / "a").mkdir()
    os.symlink("../z/0.png", place / "p" / "a" / "0.png")
    os.symlink(place / "p" / "a" / "0.png", place / "p" / "a" / "chain.png")
    ingest(place / "f.h5", place / "p")
    said = removes_copies_only(place / "f.h5", place / "l", place / "p", expect=[])
    assert "left out: 2 images: the same file" in said and "removing it frees nothing" in said
    # With a copy, one file can be removed; all links to the other are kept.
    shutil.copy(place / "p" / "z" / "0.png", place / "p" / "z" / "copy.png")
    ingest(place / "f.h5", place / "p")
    removes_copies_only(place / "f.h5", place / "l", place / "p", expect=[place / "p/z/copy.png"])


def test_links_to_removed_files_are_listed(place):
    """The file that sorts first is kept; all names of the other one are listed."""
    (place / "p" / "m").mkdir()
    shutil.copy(place / "p" / "z" / "0.png", place / "p" / "a.png")
    os.symlink("../z/0.png", place / "p" / "m" / "link.png")
    os.link(place / "p" / "z" / "0.png", place / "p" / "m" / "hard.png")
    ingest(place / "f.h5", place / "p")
    for keep in ("best", "first"):
        paths, said = listed(place / "f.h5", place / "l", "--keep", keep)
        assert paths == [str(place / "p" / name) for name in ("m/hard.png", "m/link.png", "z/0.png")]
        assert "3 images (0 B)" in said
    removes_copies_only(place / "f.h5", place / "l", place / "p")


def test_followed_links_to_directories(place):
    os.symlink("z", place / "p" / "a")
    ingest(place / "f.h5", place / "p", "--follow-symlinks")
    removes_copies_only(place / "f.h5", place / "l", place / "p", expect=[])
    os.symlink(place / "p", place / "q")
    said = ingest(place / "g.h5", place / "p", place / "q" / "a", "--follow-symlinks")
    removes_copies_only(place / "g.h5", place / "l", place / "p", expect=[])


@pytest.mark.deep
def test_a_directory_and_its_parent(place):
    shutil.copy(place / "p" / "z" / "1.png", place / "p" / "z" / "2.png")
    os.symlink("p", place / "link")
    for sources in (("p", "p/z"), ("p/z", "link"), ("p", "p/z/0.png", "p/z")):
        said = ingest(place / "f.h5", *sources, "--fresh", cwd=place)
        assert "lies below" in said, sources
        removes_copies_only(place / "f.h5", place / "l", place / "p", cwd=place,
                            expect=[place / "p/z/2.png"])
        shutil.copy(place / "p" / "z" / "1.png", place / "p" / "z" / "2.png")
        (place / "f.h5").unlink()
    assert "lies below" not in ingest(place / "g.h5", "p", cwd=place)
    (place / "p-q").mkdir()
    scene(5).save(place / "p-q" / "5.png")
    assert "lies below" not in ingest(place / "g.h5", "p", "p-q", cwd=place)


def test_dots_in_a_list(place):
    names = ["p/z/0.png", "p/../p/z/0.png", "p/z/../z/1.png", "./p/z//1.png", str(place / "p/z/1.png")]
    (place / "names").write_text("".join(name + "\n" for name in names))
    ingest(place / "f.h5", "@names", cwd=place)
    said = removes_copies_only(place / "f.h5", place / "l", place / "p", cwd=place, expect=[])
    assert "the same file" in said


def test_hard_links(place):
    os.link(place / "p" / "z" / "0.png", place / "p" / "0.png")
    ingest(place / "f.h5", place / "p")
    said = removes_copies_only(place / "f.h5", place / "l", place / "p", expect=[])
    assert "0 images (0 B) could go" in said and "frees nothing" in said
    report = json.loads(run_clpipe("duplicates", place / "f.h5", "--json", "-").stdout)
    assert (report["others"], report["others_bytes"], report["left_out"]["same-file"]) == (0, 0, 1)


def test_changed_files_are_left_out(place):
    """Files that were removed, overwritten, or replaced: by the same bytes with another time, by a directory,
    a FIFO or a link, or by other bytes with the same size and time."""
    p = place / "p"
    originals = {}
    for i in range(8):
        scene(20 + i).save(p / f"a{i}.bmp")
        shutil.copy2(p / f"a{i}.bmp", p / f"b{i}.bmp")
        originals[i] = (p / f"a{i}.bmp").read_bytes()
    ingest(place / "f.h5", p)
    assert len(listed(place / "f.h5", place / "l")[0]) == 8
    state = os.stat(p / "a5.bmp")
    (p / "a0.bmp").unlink()
    (p / "a1.bmp").write_bytes(originals[2])
    (p / "a2.bmp").write_bytes(originals[2])
    (p / "a3.bmp").unlink(), (p / "a3.bmp").mkdir()
    (p / "b4.bmp").unlink(), os.mkfifo(p / "b4.bmp")
    (p / "a5.bmp").write_bytes(originals[6])
    os.utime(p / "a5.bmp", ns=(state.st_atime_ns, state.st_mtime_ns))
    (p / "a6.bmp").unlink(), os.symlink("b6.bmp", p / "a6.bmp")
    check = run_clpipe("duplicates", "--check", place / "l", place / "f.h5")
    assert check.returncode == 1 and "1 of 8 paths" in check.stdout
    paths, said = listed(place / "f.h5", place / "l")
    assert paths == [str(p / "b7.bmp")]
    report = json.loads(run_clpipe("duplicates", place / "f.h5", "--keep", "best", "--json", "-").stdout)
    out = report["left_out"]
    assert out["gone"] == 1 and out["changed"] >= 5 and out["same-file"] == 1
    keeps = {image["path"]: image["keep"] for group in report["groups"] for image in group["images"]}
    assert [path for path, keep in keeps.items() if keep is False] == ["b7.bmp"]
    remove(place / "l")
    for i in (0, 1, 2, 3, 4, 5, 6, 7):
        assert any((p / f"{x}{i}.bmp").is_file() and (p / f"{x}{i}.bmp").read_bytes() == originals[i] for x in "ab")


def test_relative_sources_in_another_directory(tmp_path):
    """Relative sources are found where they were first given. If they no longer exist, the working directory
    may have other files with these names and times: the bytes are compared."""
    for name in ("one", "two"):
        (tmp_path / name / "p").mkdir(parents=True)
    for i in range(3):
        scene(1).save(tmp_path / "one" / "p" / f"{i}.bmp")
        scene(i + 7).save(tmp_path / "two" / "p" / f"{i}.bmp")
        for name in ("one", "two"):
            os.utime(tmp_path / name / "p" / f"{i}.bmp", (10**9, 10**9))
    file, to = tmp_path / "f.h5", tmp_path / "l"
    ingest(file, "p", cwd=tmp_path / "one")
    for name in "one", "two", ".":
        assert len(listed(file, to, cwd=tmp_path / name)[0]) == 2
    (tmp_path / "one").rename(tmp_path / "moved")
    assert run_clpipe("duplicates", file, "--check", to, cwd=tmp_path / "two").returncode == 1
    assert listed(file, to, cwd=tmp_path / "two")[0] == []
    paths, said = listed(file, to, cwd=tmp_path)
    assert paths == [] and "3 images: gone" in said
    (tmp_path / "moved").rename(tmp_path / "one")
    assert len(listed(file, to, cwd=tmp_path / "two")[0]) == 2
    remove(to)
    assert len(contents(tmp_path / "one")) == 1


@pytest.mark.deep
def test_members_of_archives(place):
    """Members of archives are listed separately; a file is kept whatever archives contain."""
    p = place / "p"
    shutil.copy(p / "z" / "0.png", p / "z" / "copy.png")
    with zipfile.ZipFile(p / "a.zip", "w") as archive:
        for name in ("0.png", "1.png"):
            archive.write(p / "z" / name, "in/" + name)
    with tarfile.open(p / "b.tar.gz", "w:gz") as archive:
        archive.add(p / "z" / "1.png", "1.png")
    os.symlink("a.zip", p / "c.zip")
    ingest(place / "f.h5", p, "--archives")
    for keep in ("best", "first", "newest"):
        paths, said = listed(place / "f.h5", place / "l", "--to-list-members", place / "m", "--keep", keep)
        assert len(paths) == 1 and Path(paths[0]).name in ("0.png", "copy.png")
        members = sorted((place / "m").read_bytes().decode().split("\0"))[1:]
        assert members == [str(p / name) for name in ("a.zip/in/0.png", "a.zip/in/1.png", "b.tar.gz/1.png")]
        assert "3 members of archives" in said
        piped = run_clpipe("duplicates", place / "f.h5", "--to-list", "-", "--keep", keep)
        assert piped.returncode == 0 and piped.stdout.split("\0") == [*paths, ""], piped.stdout
        assert "copies" in piped.stderr
        for other in ("--json", "-"), ("--format", "csv"):
            mixed = run_clpipe("duplicates", place / "f.h5", "--to-list", "-", *other)
            assert mixed.returncode == 2 and "cannot both use standard output" in mixed.stderr
        for to in ("l", "m"):
            assert run_clpipe("duplicates", "--check", place / to, place / "f.h5").returncode == 0
    os.utime(p / "a.zip")
    listed(place / "f.h5", place / "l", "--to-list-members", place / "m")
    assert (place / "m").read_bytes() == os.fsencode(p / "b.tar.gz/1.png") + b"\0"
    assert run_clpipe("duplicates", "--check", place / "m", place / "f.h5").returncode == 0
    # With archives only, one member is kept.
    ingest(place / "g.h5", p / "a.zip", p / "b.tar.gz")
    assert listed(place / "g.h5", place / "l", "--to-list-members", place / "m")[0] == []
    assert len((place / "m").read_bytes().split(b"\0")) == 2


def chain(directory):
    """Makes x.png and two smaller copies of it that are not copies of each other: one has more contrast, one less."""
    directory.mkdir()
    whole = scene(3, 600, 400).point(lambda value: 60 + value // 4)
    whole.save(directory / "x.png")
    for name, gain in (("b.png", 1.6), ("c.png", 1 / 1.6)):
        whole.resize((300, 200)).point(lambda value: 92 + (value - 92) * gain).save(directory / name)
    os.utime(directory / "c.png", (2 * 10**9, 2 * 10**9))
    file = directory.parent / "f.h5"
    ingest(file, directory)
    return file


@pytest.mark.variations
@pytest.mark.parametrize("keep", ["best", "first", "newest"])
def test_removed_files_are_copies_of_kept_ones(tmp_path, keep):
    directory = tmp_path / "p"
    file = chain(directory)
    result = run_clpipe("duplicates", file, "--format", "csv", "--keep", keep, "--to-list", tmp_path / "l")
    rows = list(csv.DictReader(result.stdout.splitlines()))
    assert len(rows) == 3 and {row["kind"] for row in rows} == {"near"}
    kept = {"best": "x.png", "first": "b.png", "newest": "c.png"}[keep]
    keeps = {"x.png": "0", "b.png": "0", "c.png": "0"}
    if keep != "best":
        keeps |= {"b.png": "", "c.png": ""}  # of these, one is not a copy of the other
    assert {row["path"]: row["keep"] for row in rows} == {**keeps, kept: "1"}
    said = run_clpipe("duplicates", file, "--keep", keep).stdout
    assert ("1 image: not proven to be a copy" in said) == (keep != "best")
    assert (tmp_path / "l").read_bytes() == b"".join(
        os.fsencode(directory / path) + b"\0" for path in ("x.png", "b.png", "c.png")
        if path != kept and keeps[path] == "0")
    assert run_clpipe("duplicates", "--check", tmp_path / "l", file).returncode == 0


def test_codes_alone_prove_nothing(tmp_path):
    (tmp_path / "p").mkdir()
    scene(1).save(tmp_path / "p" / "a.png")
    scene(1).save(tmp_path / "p" / "b.jpg", quality=20)
    shutil.copy(tmp_path / "p" / "a.png", tmp_path / "p" / "c.png")
    ingest(tmp_path / "f.h5", tmp_path / "p")
    assert len(listed(tmp_path / "f.h5", tmp_path / "l")[0]) == 2
    paths, said = listed(tmp_path / "f.h5", tmp_path / "l", "--no-compare")
    assert [Path(path).name for path in paths] == ["c.png"] and "not proven to be a copy" in said


@pytest.mark.deep
def test_files_with_more_than_one_picture(tmp_path):
    """Animations and multi-page files have contents that no other file has."""
    from PIL import features
    frames = [scene(i).quantize(64).convert("RGB") for i in (1, 2, 3)]
    kinds = ["tif", "gif", "png"] + (["webp"] if features.check("webp_anim") else [])
    for kind in kinds:
        (tmp_path / kind).mkdir()
        lossless = {"webp": {"lossless": True}}.get(kind, {})
        frames[0].save(tmp_path / kind / "a.bmp")
        frames[0].save(tmp_path / kind / f"b.{kind}", **lossless)
        for name in "cd":
            frames[0].save(tmp_path / kind / f"{name}.{kind}", save_all=True, append_images=frames[1:],
                           duration=100, loop=0, **lossless)
        ingest(tmp_path / f"{kind}.h5", tmp_path / kind)
        keep = listed(tmp_path / f"{kind}.h5", tmp_path / "l", "--keep", "first")
        assert [Path(path).name for path in keep[0]] == [f"b.{kind}"], (kind, keep[1])
        (tmp_path / kind / "a.bmp").unlink(), (tmp_path / kind / f"b.{kind}").unlink()
        keep = listed(tmp_path / f"{kind}.h5", tmp_path / "l", "--keep", "first")
        assert [Path(path).name for path in keep[0]] == [f"d.{kind}"], (kind, keep[1])


def test_check(place):
    p = place / "p" / "z"
    for name in "abc":
        shutil.copy(p / "0.png", p / f"{name}.png")
    file = place / "f.h5"
    ingest(file, place / "p")

    def check(names, *options):
        (place / "names").write_bytes(b"".join(os.fsencode(place / name) + b"\0" for name in names))
        result = run_clpipe("duplicates", "--check", place / "names", file, *options)
        assert result.returncode in (0, 1), result.stderr
        return result.returncode, result.stdout

    copies = ["p/z/0.png", "p/z/a.png", "p/z/b.png", "p/z/c.png"]
    for stays in copies:
        assert check([name for name in copies if name != stays])[0] == 0
    assert check(["p/z/../z/a.png", "p/z/a.png"])[0] == 0
    code, said = check(copies)
    assert code == 1 and said.count("no copy is kept") == 4 and "0 of 4" in said
    code, said = check(["p/z/a.png", "p/z/1.png", "p/z/none.png", "f.h5"], "--to-list", place / "safe")
    assert code == 1 and "1 of 4" in said and "none.png: gone" in said
    assert "1.png: not an image of the file that has copies" in said
    assert (place / "safe").read_bytes() == os.fsencode(p / "a.png") + b"\0"
    assert check([])[0] == 0
    # The file that would be kept is a link to the listed one, another name of it, or a link to that link.
    (p / "c.png").unlink(), (p / "b.png").unlink(), (p / "a.png").unlink()
    os.symlink("0.png", p / "a.png"), os.link(p / "0.png", p / "b.png"), os.symlink("a.png", p / "c.png")
    ingest(file, place / "p")
    for name in copies:
        assert check([name])[0] == 1
    report = run_clpipe("duplicates", "--check", place / "names", file, "--json", "-")
    report = json.loads(report.stdout)
    assert report["paths"] == 1 and report["safe"] == 0 and report["unsafe"][0]["path"] == str(p / "c.png")
    check_one_error(run_clpipe("duplicates", "--check", place / "none", file), 2)
    check_one_error(run_clpipe("duplicates", "--check", place / "names", file, "--keep", "first"), 2, "--check")


def test_check_of_relative_names_and_lines(place):
    shutil.copy(place / "p" / "z" / "0.png", place / "p" / "0.png")
    ingest(place / "f.h5", "p", cwd=place)
    for name, code in (("p/0.png", 0), ("0.png", 1), ("p/z/0.png", 0), ("p/z/1.png", 1)):
        (place / "name").write_text(name + "\n")
        result = run_clpipe("duplicates", "--check", "name", "f.h5", cwd=place)
        assert result.returncode == code, (name, result.stdout, result.stderr)


def mounted(*command, point):
    if not shutil.which(command[0]):
        pytest.skip(f"{command[0]} is not installed")
    if subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip(f"{command[0]} cannot mount here")
    return point


@pytest.fixture
def unmounts():
    points = []
    yield points
    for point in reversed(points):
        subprocess.run(["umount", "-l", point], check=False)


def test_a_directory_that_is_mounted_twice(place, unmounts):
    (place / "again").mkdir()
    mounted("mount", "--bind", place / "p", place / "again", point=place / "again")
    unmounts.append(place / "again")
    ingest(place / "f.h5", place / "p", place / "again")
    removes_copies_only(place / "f.h5", place / "l", place / "p", place / "again", expect=[])


@pytest.mark.deep
def test_file_systems_without_inode_numbers(place, unmounts):
    """With FUSE, two copies in one mount are different files; but a file in a mount and one outside may be
    the same file, and so may files in two mounts or in one that is mounted twice."""
    for name in ("one", "two", "bound"):
        (place / name).mkdir()
    for name in ("one", "two"):
        mounted("bindfs", place / "p", place / name, point=place / name)
        unmounts.append(place / name)
    mounted("mount", "--bind", place / "one", place / "bound", point=place / "bound")
    unmounts.append(place / "bound")
    every = [place / name for name in ("p", "one", "two", "bound")]
    for pair in (("p", "one"), ("one", "p"), ("one", "two"), ("one", "bound"), ("one/z", "one")):
        ingest(place / "f.h5", *pair, "--fresh", cwd=place)
        said = removes_copies_only(place / "f.h5", place / "l", *every, cwd=place, expect=[])
        assert "perhaps the same file" in said or pair == ("one/z", "one")
        (place / "f.h5").unlink()
    report = run_clpipe("duplicates", "--json", "-", "f.h5", cwd=place)
    shutil.copy(place / "p" / "z" / "0.png", place / "p" / "z" / "copy.png")
    ingest(place / "f.h5", place / "one")
    removes_copies_only(place / "f.h5", place / "l", *every, expect=[place / "one/z/copy.png"])


def test_a_tree_has_the_files_that_were_read(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name / "p").mkdir(parents=True)
    for i in range(6):
        scene(i, 40 + i, 30).save(tmp_path / "one" / "p" / f"{i}.png")
        scene(i + 9, 40 + i, 30).save(tmp_path / "two" / "p" / f"{i}.png")
    file = tmp_path / "f.h5"
    assert run_clpipe("run", "p", "-o", file, "--no-report", "-k", "2", cwd=tmp_path / "one").returncode == 0
    # Exporting from any directory does not use files with the same names there.
    there = run_clpipe("export", file, "--what", "tree", "--to", "tree", cwd=tmp_path / "two")
    assert there.returncode == 0, there.stderr
    found = {path.resolve().parent for path in (tmp_path / "two" / "tree").rglob("*.png")}
    assert found == {(tmp_path / "one" / "p").resolve()}
    scene(30).save(tmp_path / "one" / "p" / "3.png")
    made = run_clpipe("export", file, "--what", "tree", "--to", "tree", cwd=tmp_path / "one")
    assert made.returncode == 1 and "1 image is missing or changed since" in made.stderr
    entries = [path for path in (tmp_path / "one" / "tree").rglob("*.png")]
    assert len(entries) == 5 and not any(path.name.endswith("_3.png") for path in entries)


def test_similar_to_the_file_that_was_read(tmp_path):
    """If a name now leads to another picture, that picture is meant."""
    for name in ("one", "two"):
        (tmp_path / name / "p").mkdir(parents=True)
    for i in range(5):
        scene(i).save(tmp_path / "one" / "p" / f"{i}.png")
    shutil.copy(tmp_path / "one" / "p" / "4.png", tmp_path / "two" / "p" / "0.png")
    file = tmp_path / "f.h5"
    ingest(file, "p", "--feature", "hsv", cwd=tmp_path / "one")

    def nearest(name, cwd):
        result = run_clpipe("similar", file, name, "-n", "1", "--format", "csv", cwd=cwd)
        assert result.returncode == 0, result.stderr
        return next(csv.DictReader(result.stdout.splitlines()))["path"], result.stderr

    assert nearest("p/0.png", tmp_path / "one")[0] != "0.png"  # an image is not its own neighbour
    found, said = nearest("p/0.png", tmp_path / "two")
    assert found == "4.png" and "row:0 is the image" in said
    assert nearest("p/0.png", tmp_path) == nearest("p/0.png", tmp_path / "one")  # only a name
    shutil.copy(tmp_path / "one" / "p" / "3.png", tmp_path / "one" / "p" / "0.png")
    found, said = nearest("p/0.png", tmp_path / "one")
    assert found == "3.png" and "row:0 is the image" in said

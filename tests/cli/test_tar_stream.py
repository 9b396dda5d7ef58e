"""A tar archive on standard input gives the same rows as the file, even if it has to be sent several times."""
import gzip
import os
import random
import signal
import subprocess
import tarfile
import time

import h5py
import pytest
from archives import made_archives, made_tar
from conftest import CLPIPE, check_one_error, digest, draw_photos, error_lines, run_clpipe, spoil
from test_archives import pack, pytestmark, rows, text, tree  # noqa: F401

FEATURE = ("--feature", "rgb:bins=8x8x8")


@pytest.fixture(scope="module")
def packed(tmp_path_factory, tree):  # noqa: F811
    """A tar archive, and the results of ingesting it as a file and as a stream."""
    place = tmp_path_factory.mktemp("stream")
    pack("gnu", tree, place / "t.tar")
    for source, output in (("t.tar", "file.h5"), ("tar:-", "stream.h5")):
        with open(place / "t.tar") as stream:
            result = run_clpipe("ingest", source, "-o", output, *FEATURE, cwd=place, stdin=stream)
        assert result.returncode == 1 and not error_lines(result), result.stderr
    return place


def send(clpipe, data, *args, **kwargs):
    """Runs a command with `data` on standard input."""
    path = kwargs["cwd"] / "sent" if "cwd" in kwargs else None
    path.write_bytes(data)
    with open(path) as stream:
        return clpipe(*args, stdin=stream, **kwargs)


def of_archive(found, name="t.tar/"):
    return tuple({path.removeprefix(name): row for path, row in part.items()} for part in found)


def test_equals_the_file(clpipe, packed):
    assert rows(packed / "stream.h5") == of_archive(rows(packed / "file.h5"))
    assert list(rows(packed / "stream.h5")[0]) == list(of_archive(rows(packed / "file.h5"))[0])
    with h5py.File(packed / "stream.h5") as stream, h5py.File(packed / "file.h5") as file:
        for name in ("bytes", "code", "digest", "format", "width", "height"):
            assert (stream["images"][name][()] == file["images"][name][()]).all(), name
    assert clpipe("verify", "stream.h5", cwd=packed).returncode == 0


def test_compressed_and_several_streams(clpipe, packed, tmp_path):
    data = (packed / "t.tar").read_bytes()
    other = made_tar([("behind/a.jpg", b"no picture")])
    for name, stream in {"gz": gzip.compress(data, 1), "two": data + other}.items():
        result = send(clpipe, stream, "ingest", "tar:-", "-o", f"{name}.h5", *FEATURE, cwd=tmp_path)
        assert result.returncode == 1, result.stderr
        images, failures = rows(tmp_path / f"{name}.h5")
        assert images == rows(packed / "stream.h5")[0]
        assert ("behind/a.jpg" in failures) == (name == "two")


@pytest.mark.deep
def test_a_table_of_tars(clpipe, tmp_path, tree):  # noqa: F811
    """Names, links and sparse members: the results are the same as from the file."""
    picture = (tree / "red" / "00.png").read_bytes()
    checked = 0
    for name, (content, good, bad) in made_archives(picture).items():
        if not name.endswith(".tar") or not good or name == "garbage.tar" or any(
                why.startswith(("corrupt", "truncated")) for why in bad.values()):
            continue
        if not bad and name not in ("pax-long.tar", "utf8.tar", "latin1.tar", "binary.tar", "dots.tar"):
            continue
        result = send(clpipe, content, "ingest", "tar:-", "-o", "t.h5", *FEATURE, "--fresh", cwd=tmp_path)
        if result.returncode == 3 and "its end is missing" in result.stderr:
            continue
        assert result.returncode in (0, 1), (name, result.stderr)
        assert list(rows(tmp_path / "t.h5")[0]) == good, name
        checked += 1
        (tmp_path / "t.h5").unlink()
    assert checked > 5


@pytest.mark.deep
def test_ends_early(clpipe, packed, tmp_path):
    """The stream ends at any point, even between two members: one error line and no result; sending the whole
    stream then gives the rest."""
    data = (packed / "t.tar").read_bytes()
    whole = made_tar([("a.jpg", (packed / "t.tar").read_bytes()[:0])])
    end = len(data.rstrip(b"\0")) + 511 & ~511
    places = [0, 300, len(data) // 3, len(data) // 2, end - 512, end]
    for place in places:
        result = send(clpipe, data[:place], "ingest", "tar:-", "-o", "cut.h5", *FEATURE, cwd=tmp_path)
        check_one_error(result, 3, "standard input")
        assert not (tmp_path / "cut.h5").exists()
    result = send(clpipe, data, "ingest", "tar:-", "-o", "cut.h5", *FEATURE, cwd=tmp_path)
    assert result.returncode == 1, result.stderr
    assert digest(tmp_path / "cut.h5") == digest(packed / "stream.h5")
    result = send(clpipe, gzip.compress(data)[:5000], "ingest", "tar:-", "-o", "g.h5", *FEATURE, cwd=tmp_path)
    check_one_error(result, 3, "truncated gzip input")
    for junk, why in ((b"", "it is empty"), (b"GIF89a" * 99, "not a tar"), (whole[1024:], "no image under tar:-")):
        check_one_error(send(clpipe, junk, "ingest", "tar:-", "-o", "j.h5", *FEATURE, cwd=tmp_path), 3, why)


@pytest.mark.variations
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_killed_while_it_waits(clpipe, packed, tmp_path, how):
    """With a slow producer, the program is killed or stopped immediately; the same stream then gives the same
    file."""
    data, moments = (packed / "t.tar").read_bytes(), random.Random(5)
    for _ in range(3):
        process = subprocess.Popen([CLPIPE, "ingest", "tar:-", "-o", "k.h5", *FEATURE], cwd=tmp_path,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdin.write(data[:moments.randrange(len(data))])
        process.stdin.flush()
        time.sleep(moments.uniform(0.1, 0.6))
        process.send_signal(how)
        assert process.wait(20) != 0
        process.stdin.close()
    result = send(clpipe, data, "ingest", "tar:-", "-o", "k.h5", *FEATURE, cwd=tmp_path)
    assert result.returncode == 1, result.stderr
    assert digest(tmp_path / "k.h5") == digest(packed / "stream.h5")


def test_repeated_streams(clpipe, packed, tmp_path):
    """Sending the same stream again changes nothing; also with a limit, and between other sources."""
    data = (packed / "t.tar").read_bytes()
    (tmp_path / "s.h5").write_bytes((packed / "stream.h5").read_bytes())
    result = send(clpipe, data, "ingest", "tar:-", "-o", "s.h5", cwd=tmp_path)
    assert result.returncode == 1 and "unchanged" in result.stdout, result.stderr
    draw_photos(tmp_path / "one")
    draw_photos(tmp_path / "two")
    result = send(clpipe, data, "ingest", "one", "tar:-", "two", "-o", "m.h5", *FEATURE, cwd=tmp_path)
    assert result.returncode == 1, result.stderr
    with h5py.File(tmp_path / "m.h5") as file:
        paths = [text(path) for path in file["images/path"][()]]
    plain = list(rows(packed / "stream.h5")[0])
    assert paths[13:-13] == plain and paths[:13] == paths[-13:]
    assert clpipe("verify", "m.h5").returncode == 0
    # Only the given source is read.
    assert clpipe("ingest", "two", "-o", "m.h5").returncode == 1
    assert send(clpipe, data, "ingest", "tar:-", "-o", "m.h5", cwd=tmp_path).returncode == 1
    result = send(clpipe, data, "ingest", "tar:-", "-o", "l.h5", "--limit", 5, *FEATURE, cwd=tmp_path)
    assert result.returncode in (0, 1), result.stderr
    images, failures = rows(tmp_path / "l.h5")
    assert len(images) + len(failures) <= 5


@pytest.mark.parametrize("args, why", [
    (("ingest", "-", "tar:-", "-o", "x.h5"), "SOURCE - can be given only once"),
    (("ingest", "tar:-", "-o", "x.h5", "--preset", "good"), "--codebook"),
    (("ingest", "tar:-", "-o", "x.h5", "--sidecar"), "--sidecar"),
    (("ingest", "tar:-", "-o", "x.h5", "--shard", "0/2"), "cannot share"),
    (("list", "tar:-", "-o", "x.list"), "files"),
    (("codebook", "tar:-", "--feature", "sift:fisher=4", "-o", "c.h5"), "sample")])
def test_refused_commands(clpipe, packed, tmp_path, args, why):
    result = send(clpipe, (packed / "t.tar").read_bytes(), *args, cwd=tmp_path)
    assert result.returncode in (2, 3)
    assert len(error_lines(result)) == 1 and why in result.stderr, result.stderr


def test_run_and_the_pictures_afterwards(clpipe, packed, tmp_path):
    """Thumbnails are made from the stream. Commands that need the pictures ask for a directory where they
    were unpacked."""
    data = (packed / "t.tar").read_bytes()
    result = send(clpipe, data, "run", "tar:-", "-o", "r.h5", *FEATURE, "-k", 3, cwd=tmp_path)
    assert result.returncode == 1, result.stderr
    assert (tmp_path / "r-report" / "index.html").exists() and "missing" not in result.stdout
    result = clpipe("export", "r.h5", "--what", "shards", "--to", "out")
    assert "unpack the tar to a directory D" in result.stderr and result.returncode == 1
    assert clpipe("select", "r.h5", 5, "--to-list", "five").returncode == 0
    names = (tmp_path / "five").read_bytes().split(b"\0")[:-1]
    with tarfile.open(tmp_path / "sent", encoding="utf-8", errors="surrogateescape") as tar:
        assert set(map(os.fsdecode, names)) <= {member.name.removeprefix("./") for member in tar}
    subprocess.run(["tar", "xf", "sent", "--one-top-level=d"], cwd=tmp_path, check=True)
    result = clpipe("ingest", "d", "-o", "r.h5", "--relocate", "tar:-", "--hidden")
    assert result.returncode in (0, 1), result.stderr
    result = clpipe("select", "r.h5", 9, "--within", "five", "--name", "again")
    assert result.returncode == 0 and "5 of 5 images" in result.stdout, result.stderr
    result = clpipe("export", "r.h5", "--what", "shards", "--to", "all")
    assert result.returncode == 0 and "notice" not in result.stderr, result.stderr

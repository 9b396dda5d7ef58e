"""A file that changes while it is read is recorded as a failure `changed`, with or without isolated decoders. Old
and new content are never mixed, and the content is never called corrupt. The next run reads the file again."""

import os
import signal
import subprocess
import time

import numpy
import pytest
from PIL import Image

from conftest import CLPIPE, FEATURE, draw_photos, run_clpipe


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """A PNG with 20 MB of uncompressed data, which takes tenths of a second to read."""
    path = tmp_path_factory.mktemp("drawn") / "large.png"
    pixels = numpy.random.default_rng(11).integers(0, 256, (2500, 2800, 3), dtype="uint8")
    Image.fromarray(pixels).save(path, compress_level=0)
    return path


def is_open(pid, path):
    try:
        return any(os.readlink(f"/proc/{pid}/fd/{name}") == str(path)
                   for name in os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return False


def bytes_read(pid):
    """Bytes read so far by a process and its children."""
    try:
        with open(f"/proc/{pid}/io") as io:
            count = int(io.readline().split()[1])
        with open(f"/proc/{pid}/task/{pid}/children") as children:
            return count + sum(map(bytes_read, children.read().split()))
    except OSError:
        return 0


def stop_inside(place, path, *options):
    """Starts an ingest of `photos` and stops the process in the middle of a file. Returns None if that fails."""
    size = os.stat(path).st_size
    process = subprocess.Popen([str(CLPIPE), "ingest", "photos", *FEATURE, "-o", "x.h5", "--threads", "1",
                                *options, "-q", "--fresh"], cwd=place, start_new_session=True)
    start = None
    while process.poll() is None:
        if start is None:
            start = bytes_read(process.pid) if is_open(process.pid, path) else None
        elif 1000000 < bytes_read(process.pid) - start < size // 2:
            os.killpg(process.pid, signal.SIGSTOP)
            # After this time, reads that had begun before the stop are complete.
            time.sleep(0.05)
            if is_open(process.pid, path) and bytes_read(process.pid) - start < size - 4000000:
                return process
            os.killpg(process.pid, signal.SIGCONT)
            break
    process.wait(60)
    return None


def other_bytes(path, count):
    """Overwrites the last bytes without changing the size."""
    with open(path, "r+b") as file:
        file.seek(-count, os.SEEK_END)
        file.write(b"\xa5" * count)


def replace(path):
    Image.new("RGB", (2800, 2500), (20, 90, 10)).save(path.with_suffix(".new"), format="PNG")
    os.rename(path.with_suffix(".new"), path)


CHANGES = {
    "grows": lambda path: open(path, "ab").write(b"more"),
    "shrinks": lambda path: os.truncate(path, os.stat(path).st_size - 2000000),
    "is written to": lambda path: other_bytes(path, 3000000),
    "is replaced": replace,
    "is removed": os.unlink,
}


@pytest.mark.variations
@pytest.mark.parametrize("isolated", [[], ["--isolate"]], ids=["", "isolated"])
@pytest.mark.parametrize("change", list(CHANGES))
def test_file_that_changes_while_it_is_read(program, drawn, tmp_path, change, isolated):
    photos = tmp_path / "photos"
    draw_photos(photos, 3)
    path = photos / "large.png"
    for _ in range(20):
        path.write_bytes(drawn.read_bytes())
        process = stop_inside(tmp_path, path, *isolated)
        if process:
            break
    assert process, "the program was never stopped while it read the file"
    CHANGES[change](path)
    os.killpg(process.pid, signal.SIGCONT)
    assert process.wait(60) == 1
    listed = run_clpipe("info", "x.h5", "--failures", cwd=tmp_path)
    rows = [line.split("\t")[:2] for line in listed.stdout.splitlines()]
    assert rows == [["large.png", "changed"]], listed.stdout
    if isolated:
        return
    # The next run reads the file again and has the same result as a run from scratch.
    again = run_clpipe("ingest", "photos", "-o", "x.h5", cwd=tmp_path)
    assert again.returncode == (1 if change in ("shrinks", "is written to") else 0), again.stderr
    whole = run_clpipe("ingest", "photos", "-o", "new.h5", cwd=tmp_path)
    assert whole.returncode == again.returncode
    digests = {run_clpipe("info", "--digest", name, cwd=tmp_path).stdout
               for name in ("x.h5", "new.h5")}
    assert len(digests) == 1

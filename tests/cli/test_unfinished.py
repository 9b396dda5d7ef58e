"""clpipe info of an unfinished run: its progress, which process works on it, and the command that resumes it."""

import fcntl
import json
import os
import shutil
import subprocess

import pytest

from conftest import check_one_error, log_bytes, logs_of

INGEST = ("ingest", "photos", "-o", "f x.h5", "--feature", "gray:bins=4")


@pytest.fixture
def stopped(clpipe, photos, tmp_path):
    """An unfinished run over thirteen pictures, stopped by one that fails."""
    shutil.copytree(photos, tmp_path / "photos")
    (tmp_path / "photos" / "zzz.jpg").write_bytes(b"no picture\n" * 9)
    assert clpipe(*INGEST, "--strict").returncode == 1
    assert sorted(os.listdir(tmp_path)) == ["f x.h5.partial", "photos"]
    return tmp_path / "f x.h5.partial"


def test_before_the_file_exists(clpipe, stopped, tmp_path):
    result = clpipe("info", "f x.h5")
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0] == "f x.h5   does not exist yet: a run is unfinished"
    assert lines[1].split(maxsplit=1) == ["partial", "14 files done: 13 images, 1 failure, 0 skipped"]
    assert "f x.h5.partial, last written 20" in lines[2]
    assert lines[3].split(maxsplit=2)[2] == "no process"
    assert lines[4].split(maxsplit=1)[1] == \
        "clpipe ingest photos -o 'f x.h5' --feature gray:bins=4 --strict"
    found = json.loads(clpipe("info", "f x.h5", "--json", "-").stdout)["unfinished"]
    assert (found["files"], found["images"], found["failed"]) == (14, 13, 1)
    assert (found["in_use"], found["process"], found["runs"]) == (False, None, 1)
    assert found["log_bytes"] == log_bytes(stopped)
    assert found["working_directory"] == str(tmp_path)
    check_one_error(clpipe("info", "none.h5"), 2, "there is no file none.h5")


def test_the_command_resumes(clpipe, stopped, tmp_path, program):
    """Runs the proposed command in a shell, in another directory."""
    from conftest import CLPIPE
    text = clpipe("info", stopped.with_suffix(""), cwd="/").stdout
    command = text.splitlines()[-1].split(maxsplit=1)[1].replace(" --strict", "")
    assert command.startswith(f"cd {tmp_path} && clpipe ingest")
    env = os.environ | {"PATH": f"{CLPIPE.parent}:{os.environ['PATH']}"}
    assert subprocess.run(["bash", "-c", command], cwd="/", env=env, capture_output=True).returncode == 1
    assert sorted(os.listdir(tmp_path)) == ["f x.h5", "photos"]
    assert "partial" not in clpipe("info", "f x.h5").stdout
    assert json.loads(clpipe("info", "f x.h5", "--json", "-").stdout)["unfinished"] is None


def test_unfinished_update(clpipe, photos, tmp_path):
    shutil.copytree(photos, tmp_path / "photos")
    assert clpipe(*INGEST).returncode == 0
    shutil.copytree(photos / "red", tmp_path / "photos" / "more")
    (tmp_path / "photos" / "zzz.jpg").write_bytes(b"no picture\n" * 9)
    assert clpipe(*INGEST, "--strict").returncode == 1
    text = clpipe("info", "f x.h5").stdout
    assert "images    13" in text and "resume    clpipe ingest" in text
    assert json.loads(clpipe("info", "f x.h5", "--json", "-").stdout)["unfinished"]["failed"] == 1


def test_process_at_work(clpipe, stopped):
    """The lock shows whether a process is at work; the line in the file only names it."""
    with open(stopped / "lock", "r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4711 elsewhere boot\n")
        lock.truncate()
        lock.flush()
        text = clpipe("info", "f x.h5").stdout
        assert "at work   process 4711 on elsewhere\n" in text
        assert "resume" not in text
        fcntl.flock(lock, fcntl.LOCK_UN)
        text = clpipe("info", "f x.h5").stdout
        assert "at work   perhaps process 4711 on elsewhere\n" in text
        assert "resume" in text


def test_info_changes_nothing(clpipe, stopped):
    def state():
        return {name: (stopped / name).read_bytes() for name in os.listdir(stopped)}
    before = state()
    clpipe("info", "f x.h5")
    assert state() == before
    # A truncated block is not counted, and files that are needed only for resuming may be missing.
    log, = logs_of(stopped)
    os.unlink(stopped / "command")
    text = clpipe("info", "f x.h5").stdout
    assert "14 files done" in text and "run the same command again" in text
    for length in (4096 + 600, 32):
        log.write_bytes(before[log.name][:length])
        assert ("0 files done" in clpipe("info", "f x.h5").stdout) == (length > 32)
    log.write_bytes(b"no log at all" * 9)
    assert clpipe("info", "f x.h5").returncode in (2, 3)


def test_clusterings(clpipe, photos, tmp_path):
    """Checkpoints of clusterings are next to the file; similarly named files are ignored."""
    assert clpipe("ingest", photos, "-o", "x.h5").returncode == 0
    assert "continues from it" not in clpipe("info", "x.h5").stdout
    for name in ["x.h5.kmeans.checkpoint", "x.h5.by colour.checkpoint", "x.h5.checkpoint", "xah5.a.checkpoint"]:
        (tmp_path / name).write_bytes(b"state")
    (tmp_path / "link.h5").symlink_to("x.h5")
    for name in ["x.h5", tmp_path / "link.h5"]:
        said = [line.strip() for line in clpipe("info", name).stdout.splitlines() if "continues from it" in line]
        assert [line.split(", state")[0] for line in said] == ["partial   clusters by colour",
                                                              "partial   clusters kmeans"]
    report = json.loads(clpipe("info", "x.h5", "--json", "-").stdout)
    assert [one["name"] for one in report["unfinished_clusters"]] == ["by colour", "kmeans"]

"""Failures of the environment: each gives one clear line and the documented exit code, leaves nothing half-written
and overwrites no other files."""

import json
import os
import resource
import shutil
import subprocess
import stat
from pathlib import Path

import numpy
import pytest

from conftest import (CLPIPE, LONG, as_nobody, check_one_error, digest, draw_photos, error_lines, open_to_nobody,
                      run_clpipe)


def contents(directory):
    """{path: bytes} of a directory, to compare its content before and after."""
    found = {}
    for folder, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(folder, name)
            if stat.S_ISREG(os.lstat(path).st_mode):
                with open(path, "rb") as file:
                    found[os.path.relpath(path, directory)] = file.read()
    return found


def last_line(result, code, *parts):
    """Asserts the exit code, an empty standard output, and a single error line, not counting notices, that
    contains all of `parts`."""
    assert result.returncode == code, result.stderr
    errors = [line for line in error_lines(result) if not line.startswith("clpipe: notice: ")]
    assert len(errors) == 1, result.stderr
    for part in parts:
        assert str(part) in errors[0]
    assert result.stdout == ""


COMPUTE = [["ingest", "-o", "x.h5"], ["run", "--no-report", "-k", "3", "-o", "x.h5"]]


# --- devices ------------------------------------------------------------------------------------

@pytest.mark.parametrize("command", COMPUTE)
def test_no_opencl_platform(clpipe, photos, tmp_path, command):
    (tmp_path / "vendors").mkdir()
    result = clpipe(*command, photos, env={"OCL_ICD_VENDORS": tmp_path / "vendors",
                                           "OCL_ICD_FILENAMES": None})
    last_line(result, 3, "OpenCL")
    assert os.listdir(tmp_path) == ["vendors"]


def test_devices_without_a_platform(clpipe, tmp_path):
    empty = {"OCL_ICD_VENDORS": tmp_path, "OCL_ICD_FILENAMES": None}
    last_line(clpipe("devices", env=empty), 3, "OpenCL")
    version = clpipe("--version", env=empty)
    assert version.returncode == 0 and "no platform" in version.stdout
    assert clpipe("formats", env=empty).returncode == 0
    result = clpipe("devices", "--json", "-", env=empty)
    assert result.returncode == 3 and result.stdout.strip() == "[]"


@pytest.mark.variations
@pytest.mark.parametrize("selector", ["no such device", "99", "accelerator of nobody"])
@pytest.mark.parametrize("command", COMPUTE)
def test_unknown_device(clpipe, photos, tmp_path, command, selector):
    last_line(clpipe(*command, photos, "--device", selector), 3, selector)
    assert os.listdir(tmp_path) == []


# --- outputs ------------------------------------------------------------------------------------

@pytest.mark.parametrize("command", ["ingest", "run"])
def test_output_directory_missing(clpipe, photos, tmp_path, command):
    last_line(clpipe(command, photos, "-o", "no/such/x.h5"), 3, "no/such")
    assert os.listdir(tmp_path) == []


@pytest.fixture
def everybody(tmp_path, photos):
    """A world-readable directory with photos and with a directory that is not writable."""
    open_to_nobody(tmp_path)
    shutil.copytree(photos, tmp_path / "photos")
    os.chmod(tmp_path / "photos", 0o755)
    (tmp_path / "locked").mkdir(mode=0o555)
    # PoCL provides no platform without a directory for its cache.
    (tmp_path / "home").mkdir()
    os.chmod(tmp_path / "home", 0o777)
    yield tmp_path
    os.chmod(tmp_path / "locked", 0o755)


@pytest.mark.parametrize("command", ["ingest", "run"])
def test_output_directory_not_writable(program, everybody, command):
    result = as_nobody(everybody, command, "photos", "-o", "locked/x.h5")
    last_line(result, 3, "locked", "ermission")
    assert os.listdir(everybody / "locked") == []


@pytest.mark.deep
def test_export_where_nothing_may_be_written(program, everybody):
    assert run_clpipe("run", "--no-report", "photos", "-k", 3, "-o", "r.h5", cwd=everybody).returncode == 0
    os.chmod(everybody / "r.h5", 0o644)
    for target in [["--what", "labels", "-o", "locked/labels.csv"],
                   ["--what", "tree", "--to", "locked/tree"]]:
        last_line(as_nobody(everybody, "export", "r.h5", *target), 3, "locked")
    assert os.listdir(everybody / "locked") == []


@pytest.mark.deep
def test_unreadable_files_are_failures(program, everybody):
    os.chmod(everybody / "photos" / "red" / "00.png", 0)
    (everybody / "open").mkdir()
    os.chmod(everybody / "open", 0o777)
    result = as_nobody(everybody, "ingest", "photos", "-o", "open/x.h5")
    assert result.returncode == 1, result.stderr
    assert "unreadable 1" in result.stdout


@pytest.mark.deep
@pytest.mark.parametrize("command", ["ingest", "run"])
def test_output_is_a_device_node(clpipe, photos, tmp_path, command):
    for device in ["/dev/null", "/dev/full"]:
        before = os.stat(device)
        last_line(clpipe(command, photos, "-o", device), 3, device)
        after = os.stat(device)
        assert stat.S_ISCHR(after.st_mode)
        assert (before.st_ino, before.st_rdev) == (after.st_ino, after.st_rdev)
    os.mkfifo(tmp_path / "fifo")
    last_line(clpipe(command, photos, "-o", "fifo"), 3, "fifo")
    (tmp_path / "directory").mkdir()
    last_line(clpipe(command, photos, "-o", "directory"), 3, "directory")
    assert sorted(os.listdir(tmp_path)) == ["directory", "fifo"]
    assert os.listdir(tmp_path / "directory") == []


@pytest.mark.variations
@pytest.mark.parametrize("fresh", [[], ["--fresh"]])
@pytest.mark.parametrize("command", ["ingest", "run"])
def test_output_is_a_file_of_another_program(clpipe, photos, tmp_path, command, fresh):
    import h5py
    (tmp_path / "thesis.h5").write_text("years of work\n")
    with h5py.File(tmp_path / "foreign.h5", "w") as file:
        file["data"] = [1, 2, 3]
    before = contents(tmp_path)
    for name in ["thesis.h5", "foreign.h5"]:
        last_line(clpipe(command, photos, "-o", name, *fresh), 3, name)
    assert contents(tmp_path) == before
    assert sorted(os.listdir(tmp_path)) == ["foreign.h5", "thesis.h5"]


def test_output_made_with_other_parameters(clpipe, photos, tmp_path):
    assert clpipe("ingest", photos, "-o", "x.h5").returncode == 0
    before = contents(tmp_path)
    last_line(clpipe("ingest", photos, "-o", "x.h5", "--alpha", "black"), 2, "x.h5", "alpha")
    assert contents(tmp_path) == before
    assert os.listdir(tmp_path) == ["x.h5"]


def test_json_overwrites_nothing(clpipe, photos, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work\n")
    (tmp_path / "old.json").write_text('{"old": 1}\n')
    assert clpipe("ingest", photos, "-o", "x.h5").returncode == 0
    before = contents(tmp_path)
    check = ["ingest", photos, "-o", "y.h5", "--json"]
    last_line(clpipe(*check, "thesis.txt"), 3, "thesis.txt", "not JSON")
    last_line(clpipe(*check, "x.h5"), 2, "x.h5")
    last_line(clpipe(*check, "y.h5"), 2, "y.h5")
    last_line(clpipe(*check, "no/report.json"), 3, "no/")
    last_line(clpipe("info", "x.h5", "--json", "x.h5"), 2, "x.h5")
    last_line(clpipe("ingest", photos, "-o", "y.h5", "--profile", "thesis.txt"), 3, "thesis.txt")
    assert contents(tmp_path) == before
    assert clpipe("info", "x.h5", "--json", "old.json").returncode == 0
    assert '"images": 13' in (tmp_path / "old.json").read_text()
    assert clpipe("info", "x.h5", "--json", "/dev/null").returncode == 0


# --- sources --------------------------------------------------------------------------------------

@pytest.mark.deep
@pytest.mark.parametrize("command", ["ingest", "run"])
def test_no_images(clpipe, tmp_path, command):
    (tmp_path / "empty").mkdir()
    (tmp_path / "texts" / "deep").mkdir(parents=True)
    (tmp_path / "texts" / "deep" / "notes.txt").write_text("no picture\n")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "x.jpg").write_bytes(b"")
    before = contents(tmp_path)
    for name in ["empty", "texts", "broken"]:
        last_line(clpipe(command, name, "-o", "x.h5"), 3, "no image", name)
    assert contents(tmp_path) == before
    assert sorted(os.listdir(tmp_path)) == ["broken", "empty", "texts"]


def test_missing_source(clpipe, photos, tmp_path):
    check_one_error(clpipe("run", "--no-report", photos, "not here"), 2, "not here")
    check_one_error(clpipe("run", "--no-report", photos / "red" / "00.png" / "x"), 2, "00.png/x")
    assert os.listdir(tmp_path) == []


# --- a full disk ----------------------------------------------------------------------------------

@pytest.fixture
def small_disk(tmp_path):
    """A file system of 192 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=192k", "tmpfs", place],
                             capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("mounting is not allowed here")
    yield place
    subprocess.run(["umount", place], check=True)


@pytest.mark.deep
def test_full_disk(program, small_disk, photos, tmp_path):
    features = [f"--feature=rgb:bins=8x8x8,grid={n}x{n}" for n in (4, 5, 6)]
    assert run_clpipe("ingest", photos, "-o", tmp_path / "whole.h5", *features).returncode == 0
    whole = run_clpipe("info", "--digest", tmp_path / "whole.h5").stdout
    result = run_clpipe("ingest", photos, "-o", small_disk / "x.h5", *features)
    last_line(result, 3, "free")
    assert not (small_disk / "x.h5").exists()
    # With a little more space each time, the run gets further and keeps its finished work.
    for size in range(256, 8192, 128):
        subprocess.run(["mount", "-o", f"remount,size={size}k", small_disk], check=True)
        result = run_clpipe("ingest", photos, "-o", small_disk / "x.h5", *features, "--json",
                            tmp_path / "report.json")
        if result.returncode == 0:
            break
        last_line(result, 3, "free")
        assert os.listdir(small_disk) == ["x.h5.partial"]
    assert result.returncode == 0, result.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["images_resumed"] > 0
    assert os.listdir(small_disk) == ["x.h5"]
    assert run_clpipe("info", "--digest", small_disk / "x.h5").stdout == whole


@pytest.mark.deep
def test_a_result_that_does_not_fit_is_finished_on_another_disk(program, small_disk, photos, tmp_path):
    """The disk has space for the log or for the result, but not for both: it has 1.5 times the size of the result."""
    features = [f"--feature=rgb:bins=8x8x8,grid={n}x{n}" for n in (4, 5, 6)]
    assert run_clpipe("ingest", photos, "-o", tmp_path / "whole.h5", *features).returncode == 0
    size = (tmp_path / "whole.h5").stat().st_size
    subprocess.run(["mount", "-o", f"remount,size={size * 3 // 2}", small_disk], check=True)
    result = run_clpipe("ingest", photos, "-o", small_disk / "x.h5", *features)
    last_line(result, 3, "free some", f"move {small_disk / 'x.h5.partial'} to another disk")
    assert "need up to" in result.stderr
    shutil.move(small_disk / "x.h5.partial", tmp_path / "x.h5.partial")
    result = run_clpipe("ingest", photos, "-o", tmp_path / "x.h5", *features, "--json", tmp_path / "report.json")
    assert result.returncode == 0, result.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["images_resumed"] == report["images_ok"]
    assert run_clpipe("info", "--digest", tmp_path / "x.h5").stdout == \
        run_clpipe("info", "--digest", tmp_path / "whole.h5").stdout


SIZES = 20 if LONG else 2  # sizes of the disk for each command


@pytest.mark.slow
def test_full_disks_of_many_sizes(program, small_disk, photos, tmp_path, capsys):
    """Runs each writing command with less space than it needs. The old output is intact, no other file is left,
    and the same command succeeds once there is more space."""
    place, inputs = small_disk, tmp_path / "inputs"
    features = [f"--feature=rgb:bins=8x8x8,grid={n}x{n}" for n in (4, 5, 6)]
    codebook = ["--feature", "dct:words=8"]

    def resize(size):
        subprocess.run(["mount", "-o", f"remount,size={size}", place], check=True)

    def begin(*names):
        for path in place.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for name in names:
            shutil.copyfile(inputs / name, place / name)

    resize("64m")
    inputs.mkdir()
    numpy.save(inputs / "rows.npy", numpy.random.default_rng(1).random((13, 4000), "f4"))
    for made, *command in (("x.h5", "ingest", photos, *features, "--thumbnails"),
                           ("part.h5", "ingest", photos / "red", *features),
                           ("last.h5", "ingest", photos / "blue", *features)):
        assert run_clpipe(*command, "-o", inputs / made).returncode == 0
    assert run_clpipe("cluster", inputs / "x.h5", "-k", 3, "--feature", "rgb_8x8x8_4x4").returncode == 0
    tried = failed = 0
    for names, output, command, share in (
            ([], "x.h5", ["ingest", photos, "-o", "x.h5", *features, "--thumbnails"], 2.2),
            (["part.h5"], "part.h5", ["ingest", photos / "blue", "-o", "part.h5"], 2.2),
            (["x.h5"], "x.h5", ["cluster", "x.h5", "-k", "4", "--feature", "rgb_8x8x8_5x5", "--name", "other"], 1.1),
            (["x.h5"], "x.h5", ["import", "x.h5", f"rows={inputs / 'rows.npy'}"], 1.1),
            (["x.h5"], "x.h5", ["similar", "x.h5", "--all", "-n", "2", "--feature", "rgb_8x8x8_4x4"], 1.1),
            (["x.h5"], "x.h5", ["select", "x.h5", "5"], 1.1),
            (["x.h5"], "x.h5", ["rename", "x.h5", "kmeans", "other"], 1.1),
            (["part.h5", "last.h5"], "all.h5", ["merge", "part.h5", "last.h5", "-o", "all.h5", "--copy"], 1.1),
            (["part.h5", "last.h5"], "all.h5", ["merge", "part.h5", "last.h5", "-o", "all.h5"], 1.1),
            ([], "c.h5", ["codebook", photos, "-o", "c.h5", *codebook], 1.1),
            (["x.h5"], "x.csv", ["export", "x.h5", "--what", "features", "--feature", "rgb_8x8x8_4x4", "-o",
                                 "x.csv"], 1.1)):
        content = digest if output.endswith(".h5") else Path.read_bytes
        resize("64m")
        begin(*names)
        before = content(place / output) if output in names else None
        assert run_clpipe(*command, cwd=place).returncode == 0
        whole, size = content(place / output), (place / output).stat().st_size
        for number in range(SIZES):
            resize("64m")
            begin(*names)
            used = os.statvfs(place)
            resize(((used.f_blocks - used.f_bfree) * used.f_frsize + int(size * share * number / SIZES)) // 4096 * 4096
                   or 4096)
            result = run_clpipe(*command, cwd=place)
            tried += 1
            failed += result.returncode != 0
            if result.returncode != 0:
                last_line(result, 3)
                assert (content(place / output) if (place / output).exists() else None) == before, result.stderr
                assert not [path for path in place.iterdir() if ".tmp-clpipe" in path.name]
                resize("64m")
                assert run_clpipe(*command, cwd=place).returncode == 0
            assert content(place / output) == whole
            assert not output.endswith(".h5") or run_clpipe("verify", output, cwd=place).returncode == 0
            assert set(os.listdir(place)) == {*names, output}
    with capsys.disabled():
        print(f"[the disk was full in {failed} of {tried} sizes] ", end="")
    assert failed > tried // 2


def test_an_unfinished_run_of_clpipe_02_is_refused(program, photos, tmp_path):
    work = tmp_path / "x.h5.partial"
    work.mkdir()
    for name in ("records", "handover", "result"):
        (work / name).write_bytes(b"of before")
    before = contents(work)
    for command in ["ingest", photos, "-o"], ["info"], ["repair"]:
        last_line(run_clpipe(*command, tmp_path / "x.h5"), 2, "x.h5.partial/records", "clpipe 0.2")
        assert contents(work).items() >= before.items()
    assert run_clpipe("ingest", photos, "-o", tmp_path / "x.h5", "--fresh").returncode == 0
    assert os.listdir(tmp_path) == ["x.h5"]


def test_full_disk_keeps_the_old_result(program, small_disk, photos):
    output = small_disk / "x.h5"
    assert run_clpipe("ingest", photos, "-o", output).returncode == 0
    before = output.read_bytes()
    (small_disk / "filler").write_bytes(b"\0" * (small_disk_free(small_disk) - 8192))
    result = run_clpipe("cluster", output, "-k", 3)
    last_line(result, 3, "free")
    assert output.read_bytes() == before
    assert sorted(os.listdir(small_disk)) == ["filler", "x.h5"]
    result = run_clpipe("export", output, "--what", "features", "-o", small_disk / "t.csv")
    last_line(result, 3, "t.csv", "disk is full")
    result = run_clpipe("export", output, "--what", "tree", "--link", "copy", "--to",
                        small_disk / "tree")
    assert result.returncode == 3
    assert sorted(os.listdir(small_disk)) == ["filler", "x.h5"]


def small_disk_free(place):
    status = os.statvfs(place)
    return status.f_bavail * status.f_frsize


@pytest.mark.variations
@pytest.mark.parametrize("limit", [0, 4096, 65536, 400000])
def test_file_size_limit(program, photos, tmp_path, limit):
    """Simulates a full disk where mounting is not allowed: every write beyond the limit fails."""
    def confine():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    command = ["ingest", str(photos), "-o", "x.h5",
               *(f"--feature=rgb:bins=8x8x8,grid={n}x{n}" for n in (4, 5, 6))]
    # Fills the cache of kernels first, since the compiler in the OpenCL runtime would be killed by the limit.
    (tmp_path / "warm").mkdir()
    assert run_clpipe(*command, cwd=tmp_path / "warm").returncode == 0
    shutil.rmtree(tmp_path / "warm")
    result = subprocess.run([str(CLPIPE), *command], cwd=tmp_path, capture_output=True, text=True,
                            preexec_fn=confine, timeout=60)
    last_line(result, 3)
    assert not (tmp_path / "x.h5").exists()
    again = run_clpipe(*command, cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert os.listdir(tmp_path) == ["x.h5"]


# --- environment ----------------------------------------------------------------------------------

def test_closed_standard_streams(program, photos, tmp_path):
    """An opened file must not get the descriptor of a closed standard stream."""
    result = subprocess.run(["bash", "-c", f"'{CLPIPE}' ingest '{photos}' -o x.h5 >&- 2>&- <&-"],
                            cwd=tmp_path, timeout=60)
    assert result.returncode == 0
    assert run_clpipe("verify", "x.h5", cwd=tmp_path).returncode == 0
    result = subprocess.run(["bash", "-c", f"'{CLPIPE}' info x.h5 >&-"], cwd=tmp_path, text=True,
                            capture_output=True, timeout=60)
    assert result.returncode == 3 and "standard output" in result.stderr


@pytest.mark.deep
def test_cache_that_cannot_be_written(clpipe, photos, tmp_path):
    (tmp_path / "file").write_text("")
    result = clpipe("ingest", photos, "-o", "x.h5", env={"CLPIPE_CACHE_DIR": tmp_path / "file" / "x"})
    assert result.returncode == 0, result.stderr


def test_strange_names(clpipe, tmp_path):
    draw_photos(tmp_path / "plain", 3)
    directory = os.fsencode(tmp_path) + b"/od\xffd \n'name"
    os.rename(tmp_path / "plain", directory)
    os.rename(directory + b"/red/00.png", directory + b"/red/\xfe\t.png")
    result = clpipe("run", "--no-report", os.fsdecode(directory), "-k", 2, "-o", "x.h5")
    assert result.returncode == 0, result.stderr
    assert "\t" not in result.stderr.replace("\n", "")
    result = clpipe("export", "x.h5", "--what", "tree", "--to", "tree")
    assert result.returncode == 0, result.stderr
    names = [name for _, _, names in os.walk(os.fsencode(tmp_path / "tree")) for name in names]
    assert any(name.endswith(b"_red___.png") for name in names)
    assert clpipe("info", "x.h5").returncode == 0

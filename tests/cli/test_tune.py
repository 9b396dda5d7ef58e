"""clpipe tune and how ingest uses it: the cache of winners; and kernels that do not build or that miscount
are not used (tests/miscount simulates them)."""

import hashlib
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import time

import pytest

from conftest import CLPIPE, LONG, check_one_error, error_lines, run_clpipe

LIBRARY = CLPIPE.parent / "tests" / "miscount.so"
SMALL = ["--device", "cpu", "--bytes", "1M", "--rounds", 1]
FEATURES = ["--feature", "rgb:bins=256", "--feature", "gray:bins=64,grid=2x3", "--feature",
            "hsv:bins=8x4x4"]


def notices(result):
    return [line for line in error_lines(result) if line.startswith("clpipe: notice: ")]


def runner(place, cache):
    """Returns a function that runs clpipe in a directory with a cache; `miscount` makes kernels fail."""
    def run(*args, miscount=None, **kwargs):
        env = {"CLPIPE_CACHE_DIR": cache, **kwargs.pop("env", {})}
        if miscount:
            if not LIBRARY.exists():
                pytest.skip(f"{LIBRARY} is not built")
            env.update(LD_PRELOAD=LIBRARY, CLPIPE_MISCOUNT=miscount)
        return run_clpipe(*args, cwd=place, env=env, **kwargs)
    run.cache = cache
    return run


@pytest.fixture
def cached(tmp_path, program):
    """A cache for this test only, in which no kernel has been built or proven."""
    return runner(tmp_path, tmp_path / "cache")


@pytest.fixture(scope="module")
def once_tuned(tmp_path_factory, program):
    """Prepares one tuned cache for tests that change only its winners; also returns the winners and the
    report of tune."""
    place = tmp_path_factory.mktemp("tuned")
    run = runner(place, place / "cache")
    result = run("tune", *SMALL, "--feature", "gray:bins=64", "--json", "-")
    assert result.returncode == 0, result.stderr
    (path,) = (run.cache / "tuning").iterdir()
    return run.cache, path.name, path.read_bytes(), json.loads(result.stdout)


@pytest.fixture
def tuned(once_tuned, tmp_path):
    """The runner after tuning gray; .report is the JSON report."""
    cache, name, content, report = once_tuned
    shutil.rmtree(cache / "tuning")
    (cache / "tuning").mkdir()
    (cache / "tuning" / name).write_bytes(content)
    run = runner(tmp_path, cache)
    run.report = report
    return run


@pytest.fixture(scope="module")
def identity(photos, tmp_path_factory, program):
    """The digest of the pictures' FEATURES, computed without tuning."""
    output = tmp_path_factory.mktemp("plain") / "x.h5"
    assert run_clpipe("ingest", photos, "-o", output, "--device", "cpu", *FEATURES).returncode == 0
    return run_clpipe("info", "--digest", output).stdout


def ingest(cached, photos, *options, **kwargs):
    return cached("ingest", photos, "-o", "x.h5", "--fresh", "--device", "cpu", *FEATURES, *options,
                  **kwargs)


def check_identity(cached, result, identity):
    assert result.returncode == 0, result.stderr
    assert cached("info", "--digest", "x.h5").stdout == identity


# --- kernels that fail ------------------------------------------------------------------------

@pytest.mark.slow
@pytest.mark.parametrize("miscount, by", [
    ("wrong:histogram_private", ["'replicated' is used instead of 'private': kernel histogram_private gives "
                                 "wrong"]),
    ("unbuilt:histogram_private", ["'replicated' is used instead of 'private': kernel histogram_private does "
                                   "not build"]),
    ("wrong:histogram_private unbuilt:histogram_replicated",
     ["'replicated' is used instead of 'private'", "'local' is used instead of 'replicated'"]),
    ("wrong:histogram_private wrong:histogram_replicated unbuilt:histogram_local",
     ["'replicated' is used instead of 'private'", "'local' is used instead of 'replicated'",
      "'global' is used instead of 'local'"]),
])
def test_failing_kernels_are_skipped(cached, photos, identity, miscount, by):
    result = ingest(cached, photos, miscount=miscount)
    check_identity(cached, result, identity)
    lines = notices(result)
    # The features are counted in two passes.
    assert len(lines) == 2 * len(by), result.stderr
    assert "--device" not in result.stderr
    for part in by:
        assert sum(part in line for line in lines) == 2
    # A wrong kernel is not remembered as proven.
    assert len(notices(ingest(cached, photos, miscount=miscount))) == len(lines)
    assert notices(ingest(cached, photos)) == []


@pytest.mark.slow
def test_a_requested_variant_is_not_replaced(cached, photos):
    for how, part in [("wrong", "gives wrong counts"), ("unbuilt", "does not build")]:
        result = ingest(cached, photos, "--histogram-variant", "local",
                        miscount=f"{how}:histogram_local")
        check_one_error(result, 3, f"kernel histogram_local {part}", "--device")
    assert not (cached.cache.parent / "x.h5").exists()


@pytest.mark.slow
def test_no_kernel_left(cached, photos):
    result = ingest(cached, photos, miscount=" ".join(
        f"wrong:histogram_{name}" for name in ["private", "replicated", "local", "global"]))
    assert result.returncode == 3
    errors = [line for line in error_lines(result) if line not in notices(result)]
    assert len(errors) == 1 and "gives wrong counts" in errors[0], result.stderr


@pytest.mark.deep
def test_a_wrong_blur_is_not_used(cached, photos):
    result = cached("ingest", photos, "-o", "x.h5", "--device", "cpu", "--blur", "3",
                    miscount="wrong:blur_slot")
    check_one_error(result, 3, "blur_slot blurs wrong")


@pytest.mark.deep
def test_missing_writes_are_detected(tmp_path, program):
    """Zeros are checked like other values, except for words that are zeroed in advance (codes, quality, words
    of descriptors)."""
    kernels = ["blur_slot", "scale_slot", "jpeg_pixels", "jpeg_entropy", "thumbnail_slot", "patch_slot", "sift_slot"]
    result = run_clpipe("self-test", "--device", "cpu", cwd=tmp_path, timeout=400, env={
        "LD_PRELOAD": LIBRARY, "CLPIPE_MISCOUNT": " ".join(f"sparing:{kernel}" for kernel in kernels)})
    lines = re.findall(r"^(.*?) +\d+ \w+ compared, (\d+) differ$", result.stdout, re.MULTILINE)
    assert {name for name, differ in lines if differ != "0"} == {
        "blur 3x3", "scaled pixels", "JPEG pixels", "JPEG streams", "pixels of thumbnails", "descriptors patch",
        "descriptors sift", "descriptors opsift"}, result.stdout
    assert result.returncode == 1 and "wrong values" in result.stderr


@pytest.mark.deep
def test_kernels_are_proven_once(cached, photos, identity):
    for first in [True, False]:
        result = ingest(cached, photos, "--profile", "trace.json")
        check_identity(cached, result, identity)
        trace = json.loads((cached.cache.parent / "trace.json").read_text())
        names = {event["args"].get("name") for event in trace["traceEvents"]
                 if event["ph"] == "M" and event["name"] == "thread_name"}
        assert ("self-test" in names) == first, names
    # Other features need another kernel, and without a cache nothing is remembered.
    for more, env in [(["--feature", "gray:bins=7"], {}), ([], {"CLPIPE_NO_CACHE": "1"})]:
        assert ingest(cached, photos, *more, "--profile", "trace.json", env=env).returncode == 0
        assert '"self-test"' in (cached.cache.parent / "trace.json").read_text()


# --- the cache of winners ---------------------------------------------------------------------

def entry(cached):
    (path,) = (cached.cache / "tuning").iterdir()
    return path


def seal(lines, title="clpipe tuning 1"):
    """Makes an entry as the program writes it."""
    text = "\n".join([title, "a device", *lines, ""]).encode()
    return b"clpipe-binary-1\n" + struct.pack("<Q", len(text)) + hashlib.sha256(text).digest() + text


@pytest.mark.slow
def test_measurements_are_stored_and_used(tuned, photos, identity):
    (device,) = tuned.report
    tried = device["tried"]
    assert {trial["variant"] for trial in tried} >= {"private", "local", "replicated", "staged"}
    assert all(trial["outcome"] in ("measured", "slow") for trial in tried)
    assert all(trial["bytes_per_second"] > 0 for trial in tried if trial["outcome"] == "measured")
    best = {row["feature"]: row for row in device["tuned"]}
    assert list(best) == ["rgb", "joint", "joint-large", "gray", "hsv", "hsv-large"]
    assert [name for name, row in best.items() if row["measured"]] == ["gray"]
    assert best["gray"]["gain"] >= 1 and best["rgb"]["variant"] == "private"

    shown = tuned("tune", "--device", "cpu", "--show", "--json", "-")
    assert shown.returncode == 0 and json.loads(shown.stdout)[0]["tuned"] == device["tuned"]
    table = tuned("tune", "--device", "cpu", "--show").stdout
    assert sum("not measured" in line for line in table.splitlines()) == 5
    assert sum("x usual" in line for line in table.splitlines()) == 1
    assert "clpipe tuning 1" in entry(tuned).read_bytes().decode("latin-1")

    # The winner of another class is kept.
    entry(tuned).write_bytes(seal(["hsv local 64 1 16384 1500"]))
    assert tuned("tune", *SMALL, "--feature", "gray:bins=64").returncode == 0
    table = tuned("tune", "--device", "cpu", "--show").stdout
    assert table.count("x usual") == 2 and table.count("not measured") == 4
    entry(tuned).write_bytes(seal(["gray local 64 1 16384 1500"]))
    result = ingest(tuned, photos, "-v")
    check_identity(tuned, result, identity)
    assert "local (tuned)" in result.stderr
    asked = ingest(tuned, photos, "-v", "--histogram-variant", "global")
    check_identity(tuned, asked, identity)
    assert "tuned" not in asked.stderr

    forgotten = tuned("tune", "--device", "cpu", "--forget")
    assert forgotten.returncode == 0 and "discarded" in forgotten.stdout
    assert list((tuned.cache / "tuning").iterdir()) == []
    assert "nothing was stored" in tuned("tune", "--device", "cpu", "--forget").stdout
    assert "tuned" not in ingest(tuned, photos, "-v").stderr


CHOICES = ["private 1 1 2048", "private 1 1 1048576", "local 16 1 2048", "local 1024 1 147456",
           "replicated 32 32 2048", "replicated 256 4 65536", "packed 256 1 2048",
           "packed 1024 1 193536", "partial 64 2 4096", "staged 16 1 8192", "staged 256 1 65536",
           "global 512 1 32768"]


@pytest.mark.slow
@pytest.mark.parametrize("choice", CHOICES if LONG else CHOICES[::2])
def test_no_winner_changes_results(tuned, photos, identity, choice):
    """No entry of the cache changes the result, even if its variant cannot count the feature."""
    entry(tuned).write_bytes(seal([f"{name} {choice} 2000" for name in ["rgb", "gray", "hsv"]]))
    result = ingest(tuned, photos, "-v")
    check_identity(tuned, result, identity)
    assert notices(result) == [] and "(tuned)" in result.stderr


@pytest.mark.slow
def test_a_wrong_winner_is_skipped(tuned, photos, identity):
    entry(tuned).write_bytes(seal(["rgb packed 1024 1 193536 9000"]))
    result = ingest(tuned, photos, miscount="wrong:histogram_packed")
    check_identity(tuned, result, identity)
    (line,) = notices(result)
    assert "'private' is used instead of 'packed': kernel histogram_packed gives wrong counts" in line


def damage(path, how):
    content = path.read_bytes()
    if how == "directory":
        path.unlink()
        path.mkdir()
    elif isinstance(how, tuple):
        path.write_bytes(seal(*how))
    else:
        path.write_bytes({"empty": b"", "cut": content[:-5], "longer": content + b"x",
                          "flipped": content[:-3] + bytes([content[-3] ^ 1]) + content[-2:],
                          "text": b"gray local 64 1 16384 1500\n"}[how])


@pytest.mark.parametrize("how", [
    "empty", "cut", "longer", "flipped", "text", "directory",
    (["gray local 64 1 16384 1500"], "clpipe tuning 2"), (["gray local 48 1 16384 1500"],),
    (["gray local 4096 1 16384 1500"],), (["gray local 64 2 16384 1500"],),
    (["gray local 64 1 100 1500"],), (["gray local 64 1 4294967280 1500"],),
    (["gray fastest 64 1 16384 1500"],), (["gray auto 64 1 16384 1500"],),
    (["grey local 64 1 16384 1500"],), (["gray local 64 1 16384 1500 7"],), (["gray local 64"],),
    (["gray private 64 1 16384 1500"],), ([""],),
], ids=str)
@pytest.mark.slow
def test_a_damaged_cache_is_ignored(tuned, photos, identity, how):
    damage(entry(tuned), how)
    shown = tuned("tune", "--device", "cpu", "--show")
    assert shown.returncode == 0 and shown.stdout.count("not measured") == 6
    assert len(notices(shown)) == 1 and "are damaged and not used" in shown.stderr
    if how in ("flipped", "directory"):
        result = ingest(tuned, photos)
        check_identity(tuned, result, identity)
        (line,) = notices(result)
        assert "clpipe tune" in line
    if how == "flipped":
        assert tuned("tune", *SMALL, "--feature", "gray:bins=64").returncode == 0
        assert tuned("tune", "--device", "cpu", "--show").stdout.count("not measured") == 5


@pytest.mark.slow
def test_concurrent_tuning(tuned):
    """Each replaces the other's winners completely."""
    jobs = [subprocess.Popen([CLPIPE, "tune", *map(str, SMALL), "--feature", "gray:bins=64"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             env={**os.environ, "CLPIPE_CACHE_DIR": str(tuned.cache)})
            for _ in range(2)]
    while any(job.poll() is None for job in jobs):
        shown = tuned("tune", "--device", "cpu", "--show")
        assert (shown.returncode, shown.stderr) == (0, "")
    assert [(job.wait(), job.stderr.read()) for job in jobs] == [(0, b"")] * 2
    assert "not measured" in tuned("tune", "--device", "cpu", "--show").stdout
    entry(tuned)


@pytest.mark.slow
def test_failing_variants_do_not_win(cached):
    result = cached("tune", *SMALL, "--feature", "gray:bins=64", "--json", "-",
                    miscount="wrong:histogram_private unbuilt:histogram_local")
    assert result.returncode == 1, result.stderr
    assert "miscounted" in error_lines(result)[-1]
    (device,) = json.loads(result.stdout)
    outcome = {}
    for trial in device["tried"]:
        outcome.setdefault(trial["variant"], trial["outcome"])
    assert outcome["private"] == "wrong" and outcome["local"] == "unusable"
    assert "does not build" in next(trial["reason"] for trial in device["tried"]
                                    if trial["variant"] == "local")
    (best,) = [row for row in device["tuned"] if row["measured"]]
    assert best["variant"] not in ("private", "local") and "gain" not in best
    assert "the usual one fails" in cached("tune", "--device", "cpu", "--show").stdout


@pytest.mark.deep
def test_interrupted(cached):
    job = subprocess.Popen([CLPIPE, "tune", "--device", "cpu"], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True,
                           env={**os.environ, "CLPIPE_CACHE_DIR": str(cached.cache)})
    job.stdout.readline()
    time.sleep(0.2)
    job.send_signal(signal.SIGINT)
    out, err = job.communicate(timeout=60)
    assert job.returncode == 4, err
    assert err.splitlines()[-1] == "clpipe: interrupted; run the same command again"


def test_no_cache_directory(cached, tmp_path):
    check_one_error_beside_the_head(cached("tune", *SMALL, env={"CLPIPE_NO_CACHE": "1"}),
                                    "CLPIPE_NO_CACHE")
    (tmp_path / "file").write_text("")
    check_one_error_beside_the_head(
        cached("tune", *SMALL, env={"CLPIPE_CACHE_DIR": tmp_path / "file" / "x"}), "file/x")
    # With --show and --forget, having no cache is not an error.
    for option in ["--show", "--forget"]:
        assert cached("tune", "--device", "cpu", option,
                      env={"CLPIPE_NO_CACHE": "1"}).returncode == 0


def check_one_error_beside_the_head(result, part):
    """Checks for one error after the line about the device."""
    assert result.returncode == 3
    (line,) = result.stderr.splitlines()
    assert part in line
    assert len(result.stdout.splitlines()) <= 2


def test_misuse(cached):
    check_one_error(cached("tune", "--show", "--forget"), 2, "--show and --forget")
    check_one_error(cached("tune", "--show", "--rounds", 3), 2, "--show cannot be combined with")
    check_one_error(cached("tune", "--forget", "--feature", "gray"), 2, "--forget cannot be combined with")
    check_one_error(cached("tune", "--feature", "luv"), 2, "luv")
    check_one_error(cached("tune", "--feature", "gray:bins=8,blur=3"), 2, "blur")
    check_one_error(cached("tune", "photos"), 2, "photos")

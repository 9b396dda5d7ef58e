"""Users without a usable home directory: users in a container, daemons, users with a full or read-only home."""

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from conftest import CLPIPE, FEATURE, check_one_error, run_clpipe, with_feature

NOBODY_KNOWN = 54321  # a user ID without an account
POCL = Path("/etc/OpenCL/vendors/pocl.icd")
CACHE = f"clpipe-cache-{NOBODY_KNOWN if os.geteuid() == 0 else os.geteuid()}"

pytestmark = pytest.mark.skipif(not POCL.exists(), reason="PoCL is not installed")


@pytest.fixture
def place(tmp_path, photos):
    """A directory that belongs to the user of as_stranger, with photos and an empty, world-writable directory for
    temporary files."""
    if os.geteuid() == 0:
        for parent in CLPIPE.parents:
            if not os.stat(parent).st_mode & stat.S_IXOTH:
                pytest.skip(f"{parent} is closed to other users")
        # Opens all parents, since another pytest process may close the common one again.
        for parent in (tmp_path, *tmp_path.parents):
            if not os.stat(parent).st_mode & stat.S_IXOTH:
                os.chmod(parent, 0o755)
    shutil.copytree(photos, tmp_path / "photos")
    (tmp_path / "vendors").mkdir()  # only PoCL, whatever else is installed
    shutil.copy(POCL, tmp_path / "vendors")
    (tmp_path / "temporary").mkdir()
    os.chmod(tmp_path / "temporary", 0o1777)
    if os.geteuid() == 0:
        for path in (tmp_path, tmp_path / "photos"):
            os.chown(path, NOBODY_KNOWN, NOBODY_KNOWN)
            os.chmod(path, 0o755)
    others = [Path(base, CACHE) for base in ("/tmp", "/dev/shm") if not os.path.exists(f"{base}/{CACHE}")]
    yield tmp_path
    for path in others:
        shutil.rmtree(path, ignore_errors=True)


def as_stranger(place, *args, **variables):
    """Runs the program, as a user without an account if the tests run as root; a variable that is None is unset."""
    def give_up():
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY_KNOWN)
            os.setuid(NOBODY_KNOWN)
    args = with_feature(list(map(str, args)), FEATURE, place)
    environment = {"HOME": None, "XDG_CACHE_HOME": None, "POCL_CACHE_DIR": None,
                   "CLPIPE_CACHE_DIR": None, "TMPDIR": str(place / "temporary"),
                   "OCL_ICD_VENDORS": str(place / "vendors"), **variables}
    environment = {k: str(v) for k, v in {**os.environ, **environment}.items() if v is not None}
    return subprocess.run([str(CLPIPE), *map(str, args)], cwd=place, capture_output=True, text=True,
                          preexec_fn=give_up, timeout=300, stdin=subprocess.DEVNULL, env=environment)


@pytest.mark.slow
def test_a_user_without_a_home(program, place):
    (place / "locked").mkdir(mode=0o555)
    cache = place / "temporary" / CACHE
    compiled = None
    for home in (None, "", "/nonexistent", "/proc", place / "locked", "not/absolute"):
        result = as_stranger(place, "run", "--no-report", "photos", "-k", 3, "-o", "x.h5", "--fresh", HOME=home)
        assert result.returncode == 0, result.stderr
        assert stat.S_IMODE(os.stat(cache).st_mode) == 0o700
        assert any((cache / "programs").iterdir()) and not list(cache.glob("pocl*"))
        # The later runs use the kernels of the first run and compile no others.
        kernels = {path: path.stat().st_mtime_ns for path in (cache / "kernels").iterdir()}
        assert kernels and (compiled is None or kernels == compiled)
        compiled = kernels
    assert not os.path.exists("/nonexistent") and not (place / "not").exists()
    assert list((place / "locked").iterdir()) == []


@pytest.mark.slow
def test_directories_of_others_are_not_used(program, place):
    """Programs are loaded from the cache, so it must not be writable by others."""
    trap = place / "temporary" / CACHE
    trap.mkdir()
    os.chmod(trap, 0o777)
    result = as_stranger(place, "ingest", "photos", "-o", "x.h5")
    assert result.returncode == 0, result.stderr
    assert list(trap.iterdir()) == []
    trap.rmdir()
    (place / "elsewhere").mkdir(mode=0o700)
    trap.symlink_to(place / "elsewhere")
    result = as_stranger(place, "ingest", "photos", "-o", "y.h5")
    assert result.returncode == 0, result.stderr
    assert list((place / "elsewhere").iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("options", ["size=200k", "size=64m,noexec", "size=64m,ro"])
def test_a_home_on_an_unsuitable_disk(program, place, options):
    home = place / "home"
    home.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"mode=700,uid={NOBODY_KNOWN},{options}", "tmpfs", home],
                             capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("mounting is not allowed here")
    try:
        result = as_stranger(place, "ingest", "photos", "-o", "x.h5", HOME=home)
        assert result.returncode == 0, result.stderr
        # Programs are never loaded directly from the cache, so it may be on a disk mounted with noexec.
        used = home / ".cache" / "clpipe" if "noexec" in options else place / "temporary" / CACHE
        assert any((used / "programs").iterdir())
        assert not (home / ".cache" / "pocl").exists()
    finally:
        subprocess.run(["umount", home], check=True)


@pytest.mark.slow
def test_a_good_home_is_used(program, place):
    (place / "home").mkdir()
    if os.geteuid() == 0:
        os.chown(place / "home", NOBODY_KNOWN, NOBODY_KNOWN)
    result = as_stranger(place, "ingest", "photos", "-o", "x.h5", HOME=place / "home")
    assert result.returncode == 0, result.stderr
    assert [path.name for path in (place / "home" / ".cache").iterdir()] == ["clpipe"]
    assert [path.name for path in (place / "temporary").iterdir()] == [CACHE]
    assert list((place / "temporary" / CACHE).iterdir()) == []


def test_a_requested_cache_that_cannot_be_used(place, program):
    result = as_stranger(place, "ingest", "photos", "-o", "x.h5", POCL_CACHE_DIR="/proc/none")
    check_one_error(result, 3, "PoCL", "/proc/none", "POCL_CACHE_DIR")
    # Without PoCL, its cache is not mentioned.
    result = run_clpipe("devices", cwd=place, env={"OCL_ICD_VENDORS": place / "temporary"})
    check_one_error(result, 3, "no OpenCL platform is installed")


@pytest.mark.deep
def test_compiling_for_another_process(tmp_path):
    """A program with an error does not affect the other programs."""
    source = "__kernel void f(__global int *out) { out[0] = A; }"
    text = "\0".join(["0", source, "-DA=1", "-DA=", "-DA=2", ""])
    environment = {**os.environ, "OCL_ICD_VENDORS": str(POCL), "CLPIPE_CACHE_DIR": str(tmp_path / "cache")}
    result = subprocess.run([str(CLPIPE), "--try-to-compile"], input=text.encode(), env=environment, timeout=300)
    assert result.returncode == 0
    assert len(list((tmp_path / "cache" / "programs").glob("*.bin"))) == 2

"""Processes without sufficient descriptors, memory, PATH, environment, signals or temporary directory, and
caches that are damaged or writable by others: each command gives the right result, or fails with one line in
a state that can be resumed."""

import atexit
import hashlib
import os
import resource
import shutil
import signal
import struct
import subprocess
from pathlib import Path

import pytest

from conftest import CLPIPE, digest, error_lines, run_clpipe
from test_home import place  # noqa: F401 (a fixture)

POCL = Path("/etc/OpenCL/vendors/pocl.icd")
STRANGER, ATTACKER = 54321, 54323
# Removed at exit, because tests of other workers may use it.
atexit.register(shutil.rmtree, f"/dev/shm/clpipe-cache-{STRANGER}", ignore_errors=True)
FEATURE = ["--feature", "rgb:bins=8x8x8"]

pytestmark = pytest.mark.skipif(not POCL.exists(), reason="PoCL is not installed")


def limited(number, value):
    return lambda: resource.setrlimit(number, (value, value))


def ignore_children():
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def close_all():
    for fd in range(3):
        os.close(fd)


# What is missing: environment variables, and changes before the program starts.
LACKS = {
    "no PATH": ({"PATH": None}, None),
    "an empty PATH": ({"PATH": ""}, None),
    "a PATH without programs": ({"PATH": "/nonexistent:.::"}, None),
    "no environment": (None, None),
    "SIGCHLD ignored": ({}, ignore_children),
    "no HOME": ({"HOME": None}, None),
    "TMPDIR is not there": ({"TMPDIR": "/nonexistent"}, None),
    "12 descriptors": ({}, limited(resource.RLIMIT_NOFILE, 12)),
    "16 descriptors": ({}, limited(resource.RLIMIT_NOFILE, 16)),
    "28 descriptors": ({}, limited(resource.RLIMIT_NOFILE, 28)),
    "few, but more if asked for": ({}, lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (14, 4096))),
    "150 MB of addresses": ({}, limited(resource.RLIMIT_AS, 150 << 20)),
    "350 MB of addresses": ({}, limited(resource.RLIMIT_AS, 350 << 20)),
    "600 MB of addresses": ({}, limited(resource.RLIMIT_AS, 600 << 20)),
    "a stack of 128 kB": ({}, limited(resource.RLIMIT_STACK, 128 << 10)),
    "files of 64 kB": ({}, limited(resource.RLIMIT_FSIZE, 64 << 10)),
    "umask 777": ({}, lambda: os.umask(0o777)),
}
# In these cases the program succeeds.
MENDED = {"no PATH", "an empty PATH", "a PATH without programs", "no environment", "SIGCHLD ignored", "no HOME",
          "TMPDIR is not there", "few, but more if asked for", "a stack of 128 kB", "28 descriptors", "umask 777"}


def run_in(directory, args, variables=None, before=None, home=None, user=None, threads="2"):
    """Runs the program, with an empty environment if `variables` is None."""
    def prepare():
        if before:
            before()
        if user is not None and os.geteuid() == 0:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
    keep = {"OCL_ICD_VENDORS": str(POCL.parent)}
    environment = keep if variables is None else {
        **os.environ, "HOME": str(home or directory / "home"), **keep,
        **{"XDG_CACHE_HOME": None, "CLPIPE_CACHE_DIR": None, "POCL_CACHE_DIR": None}, **variables}
    environment = {k: str(v) for k, v in environment.items() if v is not None}
    return subprocess.run([str(CLPIPE), *map(str, args)], cwd=directory, env=environment, text=True,
                          capture_output=True, stdin=subprocess.DEVNULL, preexec_fn=prepare, timeout=200)


COMMANDS = {
    "ingest": ["ingest", "photos", "-o", "new.h5", *FEATURE, "--threads", "2"],
    "run": ["run", "photos", "-o", "new.h5", *FEATURE, "-k", "3", "--no-report"],
    "codebook": ["codebook", "photos", "-o", "new.h5", "--feature", "dct:words=8"],
    "list": ["list", "photos", "-o", "new.list"],
    "cluster": ["cluster", "old.h5", "-k", "3", "--seed", "5", "--name", "again"],
    "assign": ["assign", "old.h5", "red.h5"],
    "evaluate": ["evaluate", "old.h5"],
    "similar": ["similar", "old.h5", "photos/red/00.png"],
    "similar, of all": ["similar", "old.h5", "--all", "-n", "5"],
    "duplicates": ["duplicates", "old.h5"],
    "report": ["report", "old.h5", "-o", "pages"],
    "export": ["export", "old.h5", "--what", "clusters", "-o", "new.csv"],
    "info": ["info", "old.h5"],
    "verify": ["verify", "old.h5"],
    "merge": ["merge", "red.h5", "blue.h5", "-o", "new.h5", "--copy"],
    "devices": ["devices"],
}


@pytest.fixture(scope="module")
def warm(tmp_path_factory, photos, program):
    """A directory with pictures, a result, and a HOME whose cache is complete."""
    base = tmp_path_factory.mktemp("warm")
    shutil.copytree(photos, base / "photos")
    (base / "home").mkdir(mode=0o700)
    for args in (["run", "photos", "-o", "old.h5", "-k", "3", "--no-report"],
                 ["ingest", "photos/red", "-o", "red.h5"], ["ingest", "photos/blue", "-o", "blue.h5"]):
        made = run_in(base, [*args, *FEATURE], {})
        assert made.returncode == 0, made.stderr
    return base


@pytest.fixture
def fresh(warm, tmp_path):
    """Copies of that directory, which tests may change."""
    def copy(name):
        directory = tmp_path / name
        shutil.copytree(warm, directory, symlinks=True)
        return directory
    return copy


def products(directory):
    """What a command has written: identities of results, and contents of other files."""
    found = {}
    for path in sorted(directory.iterdir()):
        if path.suffix == ".h5":
            found[path.name] = digest(path)
        elif path.suffix in (".csv", ".list"):
            found[path.name] = path.read_bytes()
        elif path.name not in ("home", "photos"):
            found[path.name] = path.is_dir()
    return found


def check(result, directory, args, expected, mended):
    """Checks for the right result, or for one line after which the same command succeeds in a normal environment."""
    said = [line for line in error_lines(result) if not line.startswith("clpipe: notice:")]
    if mended or result.returncode == 0:
        assert result.returncode == 0 and said == [], result.stderr
    else:
        assert result.returncode == 3 and len(said) == 1, (result.returncode, result.stderr)
        again = run_in(directory, args, {})
        assert again.returncode == 0, again.stderr
    assert products(directory) == expected


@pytest.mark.deep
@pytest.mark.parametrize("lack", LACKS)
def test_an_ingest_that_lacks_something(fresh, lack):
    variables, before = LACKS[lack]
    directory, args = fresh("lacking"), COMMANDS["ingest"]
    result = run_in(directory, args, variables, before)
    plain = fresh("plain")
    assert run_in(plain, args, {}).returncode == 0
    check(result, directory, args, products(plain), lack in MENDED)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_that_lacks_something(fresh, name):
    args, plain = COMMANDS[name], fresh("plain")
    first = run_in(plain, args, {})
    assert first.returncode == 0, first.stderr
    expected = products(plain)
    for number, lack in enumerate(LACKS):
        variables, before = LACKS[lack]
        directory = fresh(f"lacking-{number}")
        result = run_in(directory, args, variables, before)
        check(result, directory, args, expected, lack in MENDED and lack != "umask 777")
        shutil.rmtree(directory)


@pytest.mark.slow
@pytest.mark.parametrize("lack", ["no PATH", "no environment", "SIGCHLD ignored", "16 descriptors",
                                  "600 MB of addresses", "files of 64 kB", "a stack of 128 kB"])
def test_an_ingest_that_lacks_something_and_compiles(fresh, lack):
    variables, before = LACKS[lack]
    directory, args = fresh("lacking"), COMMANDS["ingest"]
    shutil.rmtree(directory / "home")
    (directory / "home").mkdir(mode=0o700)
    result = run_in(directory, args, variables, before)
    plain = fresh("plain")
    assert run_in(plain, args, {}).returncode == 0
    check(result, directory, args, products(plain), lack in MENDED)


@pytest.mark.deep
@pytest.mark.waits
@pytest.mark.skipif(os.geteuid() != 0, reason="other users can be taken by root only")
@pytest.mark.parametrize("most", [3, 6, 9, 40])
def test_few_processes(fresh, tmp_path, place, most):  # noqa: F811
    directory = place / "place"
    shutil.copytree(fresh("few"), directory)
    for path in [directory, *directory.rglob("*")]:
        os.chown(path, STRANGER, STRANGER)
    result = run_in(directory, COMMANDS["ingest"], {}, limited(resource.RLIMIT_NPROC, most), user=STRANGER)
    said = [line for line in error_lines(result) if not line.startswith("clpipe: notice:")]
    assert (result.returncode, len(said)) in [(0, 0), (3, 1)], result.stderr
    if most == 40:
        assert result.returncode == 0
    again = run_in(directory, COMMANDS["ingest"], {}, user=STRANGER)
    assert again.returncode == 0, again.stderr


@pytest.mark.deep
def test_too_few_descriptors_do_not_fail_a_picture(fresh):
    """28 descriptors for 16 threads: files wait for each other."""
    directory = fresh("few")
    for i in range(60):
        shutil.copy(directory / "photos/red/00.png", directory / f"photos/{i}.png")
    result = run_in(directory, ["ingest", "photos", "-o", "new.h5", *FEATURE, "--threads", "16"], {},
                    limited(resource.RLIMIT_NOFILE, 28))
    assert result.returncode == 0, result.stderr
    assert len([line for line in error_lines(result) if "waiting for" not in line]) == 0
    listed = run_clpipe("info", directory / "new.h5", "--failures")
    assert listed.stdout.count("\n") <= 1 and "unreadable" not in listed.stdout


def test_max_time_of_zero(fresh):
    directory = fresh("late")
    result = run_in(directory, [*COMMANDS["ingest"], "--max-time", "0"], {})
    assert result.returncode == 4 and "--max-time has passed" in result.stderr
    assert "\n0 images" in result.stdout and not (directory / "new.h5").exists()
    assert run_in(directory, COMMANDS["ingest"], {}).returncode == 0


# --- caches -----------------------------------------------------------------------------------------------


def entries(home):
    found = [path for path in (home / ".cache" / "clpipe").rglob("*") if path.is_file()]
    assert len(found) > 6
    return found


def each_entry(change):
    def damage(home):
        for path in entries(home):
            change(path)
    return damage


def replace(make):
    def change(path):
        path.unlink()
        make(path)
    return change


def driver_leftovers(home):
    """Leftovers in PoCL's directory, as after a node crash."""
    for name in ("AA/B/k/0-0-0/k.so", "AA/B/program.bc", "tempfile_1"):
        path = home / ".cache/pocl/kcache" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")


def turn_into_file(home):
    shutil.rmtree(home / ".cache")
    (home / ".cache").write_bytes(b"")


def lead_nowhere(home):
    shutil.rmtree(home / ".cache")
    (home / ".cache").symlink_to("/nonexistent/cache")


def foreign_folders(home):
    for path in (home / ".cache" / "clpipe").iterdir():
        os.chown(path, 0, 0)
        os.chmod(path, 0o500)


def lock_up(home):
    shutil.rmtree(home / ".cache")
    os.chmod(home, 0o555)


DAMAGES = {
    "entries of 0 bytes": each_entry(lambda path: path.write_bytes(b"")),
    "entries cut in half": each_entry(lambda path: os.truncate(path, path.stat().st_size // 2)),
    "entries of other bytes": each_entry(lambda path: path.write_bytes(os.urandom(path.stat().st_size))),
    "entries with one bit flipped": each_entry(lambda path: path.write_bytes(
        path.read_bytes()[:-9] + bytes([path.read_bytes()[-9] ^ 4]) + path.read_bytes()[-8:])),
    "directories for entries": each_entry(replace(lambda path: path.mkdir())),
    "FIFOs for entries": each_entry(replace(os.mkfifo)),
    "links to nothing for entries": each_entry(replace(lambda path: path.symlink_to("/nonexistent"))),
    "entries that nobody may read": each_entry(lambda path: os.chmod(path, 0)),
    "what a driver has left": driver_leftovers,
    "a file for the directory": turn_into_file,
    "a link to nothing for the directory": lead_nowhere,
    "folders of root": foreign_folders,
    "a HOME without the right to write": lock_up,
}


def as_user(directory):
    """Gives the directory to another user if the tests run as root; returns the user that owns it."""
    if os.geteuid() == 0:
        for path in [directory, *directory.rglob("*")]:
            os.chown(path, STRANGER, STRANGER, follow_symlinks=False)
    return STRANGER


def damaged(fresh, place, name, args):  # noqa: F811
    directory = place / "place"
    shutil.copytree(fresh(name), directory)
    user = as_user(directory)
    DAMAGES[name](directory / "home")
    result = run_in(directory, args, {"TMPDIR": place / "temporary"}, user=user)
    assert result.returncode == 0 and error_lines(result) == [], (name, result.stderr)
    found = products(directory)
    again = run_in(directory, ["verify", "old.h5"], {"TMPDIR": place / "temporary"}, user=user)
    assert again.returncode == 0, again.stderr
    os.chmod(directory / "home", 0o700)
    shutil.rmtree(directory)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_cache_does_not_end_a_run(fresh, place, name):  # noqa: F811
    plain = fresh("plain")
    assert run_in(plain, COMMANDS["ingest"], {}).returncode == 0
    assert damaged(fresh, place, name, COMMANDS["ingest"]) == products(plain)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["run", "cluster", "similar", "duplicates", "evaluate", "report", "info"])
def test_damaged_caches_and_every_command(fresh, place, name):  # noqa: F811
    plain = fresh("plain")
    assert run_in(plain, COMMANDS[name], {}).returncode == 0
    for damage in ("entries of 0 bytes", "entries cut in half", "folders of root", "FIFOs for entries"):
        assert damaged(fresh, place, damage, COMMANDS[name]) == products(plain)


@pytest.mark.deep
@pytest.mark.parametrize("options", ["nr_inodes=3", "size=64k"])
def test_a_full_home(fresh, tmp_path, options):
    directory = fresh("full")
    home = tmp_path / "small"
    home.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"mode=700,{options}", "tmpfs", home],
                      capture_output=True).returncode != 0:
        pytest.skip("mounting is not allowed here")
    try:
        result = run_in(directory, COMMANDS["ingest"], {"TMPDIR": tmp_path}, home=home)
        assert result.returncode == 0 and error_lines(result) == [], result.stderr
        cache = tmp_path / f"clpipe-cache-{os.geteuid()}"
        assert any((cache / "programs").iterdir())
    finally:
        subprocess.run(["umount", home], check=True)


# --- other users ------------------------------------------------------------------------------------------


def entry(data):
    """A valid entry of clpipe's cache."""
    return b"clpipe-binary-1\n" + struct.pack("<Q", len(data)) + hashlib.sha256(data).digest() + data


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="other users can be taken by root only")
@pytest.mark.parametrize("how", ["others may write", "a directory above", "a link", "an entry", "the temporary one"])
def test_a_planted_library_is_not_loaded(fresh, place, how):  # noqa: F811
    """Another user puts a library into the cache; it must not be run as the victim."""
    if not shutil.which("cc"):
        pytest.skip("there is no C compiler")
    directory, proof = place / "place", place / "temporary" / "proof"
    shutil.copytree(fresh("victim"), directory)
    as_user(directory)
    source = place / "evil.c"
    source.write_text('#include <fcntl.h>\n__attribute__((constructor)) static void run(void)\n'
                      f'{{ open("{proof}", O_CREAT | O_WRONLY, 0644); }}\n')
    subprocess.run(["cc", "-shared", "-fPIC", "-o", place / "evil.so", source], check=True)
    evil = (place / "evil.so").read_bytes()
    shared = place / "shared"
    shutil.copytree(directory / "home/.cache", shared / "cache")
    planted = [*shared.rglob("kernels/*"), *shared.rglob("*.so")]  # in clpipe's cache and in PoCL's
    for path in planted:
        path.write_bytes(evil if path.suffix == ".so" and path.parent.name != "kernels" else entry(evil))
    assert planted
    os.chmod(shared, 0o755)
    for path in [shared / "cache", *(shared / "cache").rglob("*")]:
        os.chown(path, STRANGER, STRANGER)
        os.chmod(path, 0o755)
    cache, variables = shared / "cache", {"TMPDIR": place / "temporary"}
    if how == "others may write":
        os.chmod(shared / "cache" / "clpipe", 0o777)
    elif how == "a directory above":
        os.chmod(shared, 0o777)
    elif how == "a link":
        os.chown(shared, ATTACKER, ATTACKER)
        cache = place / "link"
        cache.symlink_to(shared / "cache")
        os.chown(cache, STRANGER, STRANGER, follow_symlinks=False)
    elif how == "an entry":
        for path in (cache / "clpipe").rglob("*"):
            os.chmod(path, 0o666 if path.is_file() else 0o755)
    else:
        trap = place / "temporary" / f"clpipe-cache-{STRANGER}"
        shutil.copytree(cache / "clpipe", trap)
        for path in [trap, *trap.rglob("*")]:
            os.chown(path, ATTACKER, ATTACKER)
            os.chmod(path, 0o777)
        cache = place / "nowhere"
    result = run_in(directory, COMMANDS["ingest"], {**variables, "XDG_CACHE_HOME": cache}, user=STRANGER)
    assert not proof.exists()
    assert result.returncode == 0, result.stderr
    notices = [line for line in error_lines(result) if "others can change" in line]
    assert len(notices) == (how in ("others may write", "a directory above", "a link")), result.stderr


@pytest.mark.deep
def test_root_uses_no_cache_of_a_user(fresh):
    if os.geteuid() != 0:
        pytest.skip("only root can take what belongs to a user")
    directory = fresh("sudo")
    for path in [directory / "home", *(directory / "home").rglob("*")]:
        os.chown(path, STRANGER, STRANGER)
    before = {path: path.stat().st_mtime_ns for path in (directory / "home").rglob("*")}
    result = run_in(directory, COMMANDS["ingest"], {"CLPIPE_NO_CACHE": "0"})
    assert result.returncode == 0 and "others can change" in result.stderr
    assert {path: path.stat().st_mtime_ns for path in (directory / "home").rglob("*")} == before


@pytest.mark.skipif(not shutil.which("nm"), reason="needs nm")
def test_libraries_call_their_own_functions():
    """If the program exported functions, libraries that have functions with the same name would call them."""
    lines = subprocess.run(["nm", "-D", "--defined-only", CLPIPE], capture_output=True, text=True).stdout
    assert [line for line in lines.splitlines() if line.split()[-2] in "Tt"] == []

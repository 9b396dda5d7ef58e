"""Fixtures and helpers of the whole-program tests: the program, functions to run it, and small sets of images."""

import os
import signal
import stat
import struct
import subprocess
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CLPIPE = Path(os.environ.get("CLPIPE", "build/release/clpipe"))
if not CLPIPE.is_absolute():
    CLPIPE = ROOT / CLPIPE
# In a build, the library is beside the program; in the wheel, it is in clpipe/lib.
LIBRARY = next((path for path in (CLPIPE.parent / "libclpipe.so.1", CLPIPE.parents[1] / "lib" / "libclpipe.so.1")
                if path.exists()), CLPIPE.parent / "libclpipe.so.1")

# Set by tools/check --long and --all, which use more kills, more faults and larger data.
LONG = bool(os.environ.get("CLPIPE_LONG"))
ALL = LONG or bool(os.environ.get("CLPIPE_ALL"))
# Set by tools/check for the core tests (neither slow nor deep), which inject fewer faults.
CORE = bool(os.environ.get("CLPIPE_CORE"))
# The processor seconds that a core test may use; most use at most 2.
CORE_SECONDS = 10
HANG_SECONDS = 30
# The seed of all random numbers.
SEED = int(os.environ.get("CLPIPE_SEED") or 1)
NOBODY = 65534


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Marks all cases but the first of each test with the mark `variations` as deep."""
    seen = set()
    for item in items:
        if item.get_closest_marker("variations"):
            if item.function in seen:
                item.add_marker(pytest.mark.deep)
            seen.add(item.function)


def restore_signals():
    """Restores signals that a shell or a background build ignores or blocks, since the program would inherit this."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1,
                   signal.SIGUSR2, signal.SIGCHLD):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT
                          else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


restore_signals()


def logs_of(work):
    """The logs of an unfinished run."""
    return sorted(Path(work).glob("log-*"))


def log_bytes(work):
    return sum(log.stat().st_size for log in logs_of(work))


def log_blocks(data):
    """Yields the complete blocks of a log: the offset of the block, and the (offset, size) of its columns."""
    align = 4096
    at = (32 + struct.unpack_from("<I", data, 12)[0] + align - 1) // align * align if len(data) >= 32 else len(data)
    while at + 32 <= len(data):
        _, columns, mark, _, _, size = struct.unpack_from("<IIQIIQ", data, at)
        first = at + 32 + 8 * columns
        if mark != struct.unpack_from("<Q", data, 24)[0] or first + size > len(data):
            break
        where, begin = [], first
        for c in range(columns):
            length, = struct.unpack_from("<I", data, at + 32 + 8 * c)
            where.append((begin, length))
            begin += length
        yield at, where
        at = (begin + align - 1) // align * align


LOG_ROW, LOG_END = 152, 136  # size of struct log_row (result/records.h), offset of its field `end`


def log_records(work):
    """The paths in the complete records of the logs, as two lists: images, and everything else."""
    paths = [], []
    for log in logs_of(work):
        data = log.read_bytes()
        for _, column in log_blocks(data):
            for to, rows, texts in zip(paths, (0, 1), (2, 4)):
                last = 0
                for row in range(column[rows][0], sum(column[rows]), LOG_ROW):
                    end, = struct.unpack_from("<I", data, row + LOG_END)
                    to.append(data[column[texts][0] + last:column[texts][0] + end])
                    last = end
    return paths


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"seed {SEED} (CLPIPE_SEED)")
    seconds = sorted(((dict(report.user_properties).get("processor seconds", 0), report.nodeid)
                      for reports in terminalreporter.stats.values() for report in reports
                      if getattr(report, "when", None) == "teardown"), reverse=True)
    if seconds:
        terminalreporter.write_line(f"{sum(s for s, _ in seconds):.1f} s of processor time; the longest tests:")
    for taken, name in seconds[:15]:
        terminalreporter.write_line(f"{taken:8.1f} s  {name}")


def processor_seconds():
    return sum(os.times()[:4])


def descendants():
    """{pid: processor ticks} of all descendants of this process."""
    parents, ticks = {}, {}
    for entry in os.listdir("/proc"):
        try:
            fields = Path(f"/proc/{entry}/stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue
        if entry.isdigit():
            parents[int(entry)] = int(fields[1])
            ticks[int(entry)] = sum(map(int, fields[11:15]))
    found = {os.getpid()}
    while True:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        if not more:
            return {pid: ticks[pid] for pid in found - {os.getpid()}}
        found |= more


@pytest.fixture(autouse=True)
def limits(request):
    """Fails a test that uses no processor time for 30 seconds (90 with the mark `waits`) and kills its processes.
    Also fails a core test that exceeds CORE_SECONDS."""
    seen, idle = -1.0, 0
    hang_seconds = HANG_SECONDS * (3 if request.node.get_closest_marker("waits") else 1)

    def look(number, frame):
        nonlocal seen, idle
        now = processor_seconds() + sum(descendants().values()) / os.sysconf("SC_CLK_TCK")
        idle = idle + 1 if now - seen < 0.1 else 0
        seen = now
        if idle < 3:
            return
        signal.setitimer(signal.ITIMER_REAL, 0)
        for pid in descendants():
            os.kill(pid, signal.SIGKILL)
        pytest.fail(f"hangs: no processor time in {hang_seconds} s")

    watched = threading.current_thread() is threading.main_thread()
    begun = processor_seconds()
    if watched:
        before = signal.signal(signal.SIGALRM, look)
        signal.setitimer(signal.ITIMER_REAL, 1, hang_seconds / 3)
    yield
    if watched:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    taken = processor_seconds() - begun
    request.node.user_properties.append(("processor seconds", taken))
    marked = any(request.node.get_closest_marker(mark) for mark in ("slow", "deep"))
    if CORE and not marked and taken > CORE_SECONDS:
        pytest.fail(f"{taken:.1f} s of processor time: mark it deep or slow (docs/development.md)")


# The feature of a new file if a test names none. The default would learn a codebook, or fail because there are too
# few images.
FEATURE = ["--feature", "rgb:bins=8x8x8"]


def with_feature(args, feature, cwd):
    given = [arg.partition("=")[0] for arg in args]
    if not feature or args[:1] not in (["ingest"], ["run"]) or {
            "--feature", "--preset", "--help"} & set(given):
        return args
    at = given.index("-o") if "-o" in given[:-1] else None
    output = args[at + 1] if at else "clpipe.h5"
    output = Path(cwd or ".", output)
    if not {"--fresh"} & set(given) and (output.exists() or Path(f"{output}.partial").exists()):
        return args
    return [args[0], *feature, *args[1:]]


def run_clpipe(*args, cwd=None, env=None, timeout=120, feature=FEATURE, **kwargs):
    """Runs the program in the environment of this process with the changes in `env` (None removes a variable)."""
    args = with_feature(list(map(str, args)), feature, cwd)
    environment = dict(os.environ)
    for key, value in (env or {}).items():
        if value is None:
            environment.pop(key, None)
        else:
            environment[key] = str(value)
    kwargs.setdefault("capture_output", True)
    kwargs.setdefault("stdin", subprocess.DEVNULL)
    result = subprocess.run([str(CLPIPE), *args], cwd=cwd, env=environment, text=True,
                            timeout=timeout, **kwargs)
    if args[:1] == ["verify"] and result.returncode == 0 and len(args) == 2 and args[1][:1] != "-":
        import meaning  # not at the top: importing numpy is slow

        meaning.check(Path(cwd or ".", args[1]))
    return result


def error_lines(result):
    """The lines that begin with the program's name."""
    return [line for line in result.stderr.splitlines() if line.startswith("clpipe: ")]


def check_one_error(result, code, *parts):
    """Asserts the exit code, an empty standard output, and a single error line that contains all of `parts`."""
    assert result.returncode == code, result.stderr
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("clpipe: ")
    for part in parts:
        assert str(part) in lines[0]
    assert result.stdout == ""


def digest(path):
    """The digest of a result, from `clpipe info --digest`."""
    result = run_clpipe("info", "--digest", path)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def as_nobody(cwd, *args):
    """Runs the program as an unprivileged user: as nobody if the tests run as root, else as the current user."""
    def give_up():
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
    home = Path(cwd, "home")
    if os.geteuid() == 0 and home.is_dir():
        os.chown(home, NOBODY, NOBODY)
        os.chmod(home, 0o755)
    return subprocess.run([str(CLPIPE), *map(str, args)], cwd=cwd, capture_output=True, text=True,
                          preexec_fn=give_up, timeout=60, stdin=subprocess.DEVNULL,
                          env={**os.environ, "HOME": str(home)})


def open_to_nobody(directory):
    """Gives unprivileged users access to a directory of the tests."""
    if os.geteuid() == 0:
        for parent in [CLPIPE, *CLPIPE.parents]:
            if not os.stat(parent).st_mode & stat.S_IXOTH:
                pytest.skip(f"{parent} is closed to other users")
        parent = Path(directory)
        while parent != parent.parent and parent.owner() == "root" and parent != parent.root:
            if not os.stat(parent).st_mode & stat.S_IXOTH:
                os.chmod(parent, 0o755)
            parent = parent.parent


@pytest.fixture(scope="session")
def program():
    if not os.access(CLPIPE, os.X_OK):
        pytest.skip(f"{CLPIPE} is not built")


@pytest.fixture
def clpipe(tmp_path, program):
    """run_clpipe, with the test's temporary directory as the working directory."""
    def run(*args, cwd=tmp_path, **kwargs):
        return run_clpipe(*args, cwd=cwd, **kwargs)
    return run


def draw_photos(directory, count=12):
    """Draws small JPEG and PNG pictures in three colours and copies one of them; returns the relative paths."""
    import numpy
    from PIL import Image
    random = numpy.random.default_rng(7)
    tints = {"red": (200, 40, 30), "green": (30, 180, 60), "blue": (40, 60, 210)}
    names = []
    for i in range(count):
        name, tint = list(tints.items())[i % 3]
        height, width = 40 + i, 60 + 3 * i
        pixels = numpy.clip(numpy.array(tint) + random.normal(0, 12, (height, width, 3)), 0, 255)
        path = Path(directory) / name / f"{i:02}.{'png' if i % 4 == 0 else 'jpg'}"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.astype("uint8")).save(path)
        names.append(str(path.relative_to(directory)))
    copy = Path(directory) / "red" / "copy of 00.png"
    copy.write_bytes((Path(directory) / "red" / "00.png").read_bytes())
    names.append(str(copy.relative_to(directory)))
    return sorted(names, key=os.fsencode)


def spoil(directory):
    """Adds files that cannot be decoded and one that is not an image; returns {path: reason}."""
    directory = Path(directory)
    jpeg = (directory / "green" / "01.jpg").read_bytes()
    files = {
        "bad/cut.jpg": (jpeg[:len(jpeg) // 2], "truncated"),
        "bad/empty.png": (b"", "empty"),
        "bad/text.jpg": (b"this is no picture at all\n" * 20, "unknown-format"),
        "bad/with, comma and \"quotes\".png": (b"neither is this\n" * 20, "unknown-format"),
        "notes.txt": (b"to be skipped\n", "not-an-image"),
    }
    (directory / "bad").mkdir()
    for name, (content, _) in files.items():
        (directory / name).write_bytes(content)
    return {name: reason for name, (_, reason) in files.items()}


@pytest.fixture(scope="session")
def photos(tmp_path_factory):
    """Thirteen valid pictures. Tests must not change them."""
    directory = tmp_path_factory.mktemp("photos")
    draw_photos(directory)
    return directory


@pytest.fixture(scope="session")
def mixed(tmp_path_factory):
    """The same pictures plus broken files. Tests must not change them."""
    directory = tmp_path_factory.mktemp("mixed")
    draw_photos(directory)
    spoil(directory)
    return directory


@pytest.fixture(scope="session")
def finished(mixed, tmp_path_factory, program):
    """A result of `mixed` with two features and a clustering. Tests must not change it."""
    output = tmp_path_factory.mktemp("finished") / "result.h5"
    ingest = run_clpipe("ingest", mixed, "-o", output, "--feature", "rgb:bins=8x8x8",
                        "--feature", "counts=gray:bins=100,normalize=none")
    assert ingest.returncode == 1, ingest.stderr
    cluster = run_clpipe("cluster", output, "-k", 3, "--feature", "rgb_8x8x8")
    assert cluster.returncode == 0, cluster.stderr
    return output

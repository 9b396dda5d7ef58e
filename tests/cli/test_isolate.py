"""--isolate: a decoder in a separate process can affect only one file."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from conftest import CLPIPE, FEATURE, ROOT, check_one_error, digest

# A libpng that misbehaves for pictures of certain widths as soon as it has read their header.
WRONG_LIBPNG = """
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <errno.h>
    #include <fcntl.h>
    #include <png.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/mman.h>
    #include <sys/socket.h>
    #include <unistd.h>

    static void (*real)(png_structrp, png_inforp);

    __attribute__((constructor)) static void find(void)
    {
        *(void **)&real = dlsym(RTLD_NEXT, "png_read_info");
    }

    static int escaped(void)
    {
        return open("/etc/passwd", O_RDONLY) >= 0 || socket(AF_INET, SOCK_STREAM, 0) >= 0 ||
               creat("escaped", 0600) >= 0 || kill(getppid(), 0) == 0 || fork() >= 0 ||
               mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
                   MAP_FAILED;
    }

    void png_read_info(png_structrp png, png_inforp info)
    {
        real(png, info);
        switch (png_get_image_width(png, info)) {
        case 201: *(volatile int *)8 = 1; break;
        case 202: abort();
        case 203: for (;;) __asm__ volatile("");
        case 204: _exit(7);
        case 205: {
            char *much = malloc(1u << 30);
            if (!much)
                png_error(png, "out of memory");
            memset(much, 1, 1u << 20);
            free(much);
            break;
        }
        case 206:
            if (escaped())
                png_error(png, "got out");
        }
    }
"""


@pytest.fixture(scope="session")
def wrong_libpng(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        pytest.skip("there is no C compiler")
    if any(name in CLPIPE.read_bytes() for name in (b"__asan_init", b"__tsan_init")):
        pytest.skip("the sanitizers must be loaded first, and they lift the limits")
    folder = tmp_path_factory.mktemp("libpng")
    source, library = folder / "wrong.c", folder / "wrong.so"
    source.write_text("#include <signal.h>\n" + textwrap.dedent(WRONG_LIBPNG))
    flags = subprocess.run(["pkg-config", "--cflags", "libpng"], capture_output=True, text=True)
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", *flags.stdout.split(), "-o", library,
                    source, "-ldl"], check=True)
    return {"LD_PRELOAD": library}


def picture(path, width):
    image = pytest.importorskip("PIL.Image")
    path.parent.mkdir(parents=True, exist_ok=True)
    image.new("RGB", (width, 20), (width % 256, 90, 10)).save(path)


@pytest.fixture
def pictures(tmp_path):
    """A function that draws a dozen valid pictures around one of each bad width that is given."""
    def draw(*widths):
        folder = tmp_path / "pictures"
        for i in range(12):
            picture(folder / f"{i:02}.png", 100 + i)
        for i, width in enumerate(widths):
            picture(folder / f"{5 + i:02}-{width}.png", width)
        return folder
    return draw


def report(tmp_path):
    return json.loads((tmp_path / "report.json").read_text())


def failures(clpipe, output):
    listed = clpipe("info", output, "--failures")
    assert listed.returncode == 0, listed.stderr
    return {line.split("\t")[0]: line.split("\t")[1:] for line in listed.stdout.splitlines()}


def children(parent):
    """(pid, name, processor seconds) of all descendants of a process."""
    by_parent, seen, found = {}, [parent], []
    for entry in os.listdir("/proc"):
        try:
            text = open(f"/proc/{entry}/stat").read() if entry.isdigit() else ""
        except OSError:
            continue
        if text:
            name, rest = text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2:]
            fields = rest.split()
            seconds = int(fields[11]) / os.sysconf("SC_CLK_TCK")
            by_parent.setdefault(int(fields[1]), []).append((int(entry), name, seconds))
    while seen:
        for child in by_parent.get(seen.pop(), []):
            found.append(child)
            seen.append(child[0])
    return found


def start(tmp_path, env, *arguments, **options):
    return subprocess.Popen([str(CLPIPE), *map(str, arguments)], cwd=tmp_path, text=True,
                            env={**os.environ, **{k: str(v) for k, v in env.items()}},
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, **options)


def wait_for_hang(process):
    """Waits for a worker that hangs, and returns its pid."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        for pid, name, seconds in children(process.pid):
            if name == "clpipe-decode" and seconds > 0.3:
                return pid
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    raise AssertionError("no worker is busy")


def wait_until_gone(pids):
    end = time.monotonic() + 10
    while any(os.path.exists(f"/proc/{pid}") for pid in pids):
        assert time.monotonic() < end, "processes are left"
        time.sleep(0.05)


# --- same results as without --isolate ------------------------------------------------------------

@pytest.mark.variations
@pytest.mark.parametrize("options", [["--threads", 1], ["--threads", 3],
                                     ["--memory", "16M", "--threads", 2]])
def test_identity(clpipe, mixed, tmp_path, options):
    assert clpipe("ingest", mixed, "-o", "a.h5").returncode == 1
    result = clpipe("ingest", mixed, "-o", "b.h5", "--isolate", "--json", "report.json", *options)
    assert result.returncode == 1, result.stderr
    assert digest(tmp_path / "a.h5") == digest(tmp_path / "b.h5") != ""
    assert failures(clpipe, "a.h5") == failures(clpipe, "b.h5")
    assert report(tmp_path)["bytes_read"] > 0


@pytest.mark.deep
def test_every_format(clpipe, tmp_path):
    """The seeds of the fuzz targets are pictures of every format, most of them intact."""
    sys.path.insert(0, str(ROOT / "tests" / "fuzz"))
    import seeds
    drawn = seeds.Seeds(str(tmp_path / "seeds"))
    for draw in (seeds.draw_png, seeds.draw_jpeg, seeds.draw_bmp, seeds.draw_gif,
                 seeds.draw_netpbm, seeds.draw_tiff, seeds.draw_heif,
                 seeds.draw_jxl):
        draw(drawn)
    plain = clpipe("ingest", "seeds/decode", "-o", "a.h5", "--json", "report.json")
    isolated = clpipe("ingest", "seeds/decode", "-o", "b.h5", "--isolate")
    assert plain.returncode == isolated.returncode == 1, isolated.stderr
    assert digest(tmp_path / "a.h5") == digest(tmp_path / "b.h5") != ""
    assert failures(clpipe, "a.h5") == failures(clpipe, "b.h5")
    assert report(tmp_path)["images_ok"] > 60


def test_rows_that_the_shared_memory_cannot_hold(clpipe, tmp_path):
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "wide").mkdir()
    stripes = bytes(range(251)) * 3 * 4000
    for i, width in enumerate((90000, 1000000)):
        image.frombytes("RGB", (width, 3), (stripes * 4)[i:i + width * 9]).save(
            tmp_path / "wide" / f"{i}.png", compress_level=1)
        data = (tmp_path / "wide" / f"{i}.png").read_bytes()
        (tmp_path / "wide" / f"{i} cut.png").write_bytes(data[:len(data) * 2 // 3])
    assert clpipe("ingest", "wide", "-o", "a.h5", "--memory", "16M").returncode == 1
    result = clpipe("ingest", "wide", "-o", "b.h5", "--memory", "16M", "--threads", 4, "--isolate")
    assert result.returncode == 1, result.stderr
    assert digest(tmp_path / "a.h5") == digest(tmp_path / "b.h5") != ""


def test_few_descriptors(clpipe, tmp_path):
    """Files that are given to decoders together do not exhaust the file descriptors of the process."""
    for i in range(300):
        picture(tmp_path / "pictures" / f"{i:03}.png", 20 + i % 30)
    result = clpipe("ingest", "pictures", "-o", "a.h5", "--isolate", "--threads", 16,
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (120, 120)))
    assert result.returncode == 0, result.stderr


def test_update_and_run(clpipe, photos, tmp_path):
    shutil.copytree(photos, tmp_path / "photos")
    assert clpipe("run", "--no-report", "photos", "-k", 3, "-o", "a.h5", "--isolate").returncode == 0
    again = clpipe("run", "--no-report", "photos", "-k", 3, "-o", "a.h5", "--json", "report.json")
    assert again.returncode == 0
    assert report(tmp_path)["ingest"]["images_unchanged"] == 13


def test_dry_run(clpipe, mixed):
    plain = clpipe("ingest", mixed, "--dry-run", "--json", "-")
    isolated = clpipe("ingest", mixed, "--dry-run", "--json", "-", "--isolate")
    assert isolated.returncode == plain.returncode == 1
    for key in ("images_ok", "images_failed", "files_not_images", "pixels"):
        assert json.loads(plain.stdout)[key] == json.loads(isolated.stdout)[key]


# --- codecs that misbehave ------------------------------------------------------------------------

def test_without_isolation_a_crash_ends_the_run(clpipe, pictures, wrong_libpng):
    result = clpipe("ingest", pictures(201), "-o", "a.h5", env=wrong_libpng)
    assert result.returncode in (3, -11) and "clpipe: ended by signal 11" in result.stderr


def test_crashes_are_recorded(clpipe, pictures, wrong_libpng, tmp_path):
    folder = pictures(201, 202, 204)
    for output in ("a.h5", "b.h5"):
        result = clpipe("ingest", folder, "-o", output, "--isolate", env=wrong_libpng)
        assert result.returncode == 1, result.stderr
    rows = failures(clpipe, "a.h5")
    assert {name: row[0] for name, row in rows.items()} == dict.fromkeys(
        ("05-201.png", "06-202.png", "07-204.png"), "decoder-crashed")
    assert "signal 11" in rows["05-201.png"][1]
    assert "signal 6" in rows["06-202.png"][1]
    assert "status 7" in rows["07-204.png"][1]
    assert digest(tmp_path / "a.h5") == digest(tmp_path / "b.h5")
    assert clpipe("verify", "a.h5").returncode == 0
    # With a correct codec, the files are decoded.
    result = clpipe("ingest", folder, "-o", "a.h5", "--retry-failed", "--json", "report.json")
    assert result.returncode == 0, result.stderr
    assert report(tmp_path)["images_ok"] == 15


def test_child_signals_ignored(clpipe, pictures, wrong_libpng):
    """Some supervisors ignore SIGCHLD. The program still notices how a worker ended."""
    result = clpipe("ingest", pictures(201), "-o", "a.h5", "--isolate", env=wrong_libpng,
                    preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert result.returncode == 1, result.stderr
    assert "signal 11" in failures(clpipe, "a.h5")["05-201.png"][1]


@pytest.mark.deep
def test_crashes_among_small_files(clpipe, tmp_path, wrong_libpng):
    """Several files are sent to a decoder together, with large files in between. Each crash affects only one file,
    whatever its neighbours are."""
    image = pytest.importorskip("PIL.Image")
    bad = set()
    for i in range(120):
        path = tmp_path / "pictures" / f"{i:03}.png"
        width = 201 if i % 7 == 3 else 202 if i % 11 == 5 else 100 + i % 40
        picture(path, width)
        if i % 29 == 8:
            image.effect_noise((900, 700), 90).save(path)
        elif width > 200:
            bad.add(path.name)
    (tmp_path / "pictures" / "060 no.png").write_text("no picture")
    for output, threads in (("a.h5", 1), ("b.h5", 3)):
        result = clpipe("ingest", "pictures", "-o", output, "--isolate", "--threads", threads,
                        env=wrong_libpng)
        assert result.returncode == 1, result.stderr
        rows = failures(clpipe, output)
        assert rows.pop("060 no.png")[0] == "unknown-format"
        assert set(rows) == bad and {row[0] for row in rows.values()} == {"decoder-crashed"}
    assert digest(tmp_path / "a.h5") == digest(tmp_path / "b.h5")
    # The result of the valid files is the same as without --isolate.
    for name in bad:
        os.unlink(tmp_path / "pictures" / name)
    assert clpipe("ingest", "pictures", "-o", "c.h5").returncode == 1
    assert clpipe("ingest", "pictures", "-o", "a.h5", "--json", "report.json").returncode == 1
    assert report(tmp_path)["images_unchanged"] == report(tmp_path)["images_ok"] == 120 - len(bad)
    assert digest(tmp_path / "a.h5") == digest(tmp_path / "c.h5")


def test_every_file_crashes(clpipe, tmp_path, wrong_libpng):
    for i in range(40):
        picture(tmp_path / "pictures" / f"{i}.png", 201)
    result = clpipe("ingest", "pictures", "-o", "a.h5", "--isolate", env=wrong_libpng)
    assert result.returncode == 3
    assert "decoder-crashed 40" in result.stderr


@pytest.mark.deep
def test_time_limit(clpipe, pictures, wrong_libpng, tmp_path):
    began = time.monotonic()
    result = clpipe("ingest", pictures(203), "-o", "a.h5", "--isolate", "--max-decode-seconds", 3,
                    env=wrong_libpng)
    assert result.returncode == 1, result.stderr
    assert time.monotonic() - began < 30
    rows = failures(clpipe, "a.h5")
    assert list(rows) == ["05-203.png"] and rows["05-203.png"][0] == "timeout"
    assert "--max-decode-seconds" in rows["05-203.png"][1]
    # The limit affects the rows, so it is a parameter of the file and is taken from there.
    before = (tmp_path / "a.h5").read_bytes()
    assert clpipe("ingest", "pictures", "-o", "a.h5").returncode == 1
    assert (tmp_path / "a.h5").read_bytes() == before


def test_time_limit_needs_isolation(clpipe, photos, tmp_path):
    check_one_error(clpipe("ingest", photos, "-o", "a.h5", "--max-decode-seconds", 5), 2,
                    "--max-decode-seconds", "--isolate", "--help")
    assert os.listdir(tmp_path) == []


def test_memory_limit(clpipe, pictures, wrong_libpng):
    folder = pictures(205)
    assert clpipe("ingest", folder, "-o", "a.h5", env=wrong_libpng).returncode == 0
    assert clpipe("ingest", folder, "-o", "b.h5", "--isolate", env=wrong_libpng).returncode == 1
    assert failures(clpipe, "b.h5")["05-205.png"][0] == "out-of-memory"


def test_a_decoder_cannot_escape(clpipe, pictures, wrong_libpng, tmp_path):
    folder = pictures(206)
    assert clpipe("ingest", folder, "-o", "a.h5", env=wrong_libpng).returncode == 1
    assert "got out" in failures(clpipe, "a.h5")["05-206.png"][1]
    (tmp_path / "escaped").unlink(missing_ok=True)
    result = clpipe("ingest", folder, "-o", "b.h5", "--isolate", env=wrong_libpng)
    if result.returncode == 1 and "Seccomp:" not in open("/proc/self/status").read():
        pytest.skip("this kernel has no filter of system calls")
    assert result.returncode == 0, failures(clpipe, "b.h5")
    assert not (tmp_path / "escaped").exists()


# --- processes ------------------------------------------------------------------------------------

def test_a_worker_is_killed(pictures, wrong_libpng, tmp_path, clpipe):
    process = start(tmp_path, wrong_libpng, "ingest", *FEATURE, pictures(203), "-o", "a.h5", "--isolate")
    os.kill(wait_for_hang(process), signal.SIGKILL)
    assert process.wait(30) == 1, process.stderr.read()
    rows = failures(clpipe, "a.h5")
    assert list(rows) == ["05-203.png"] and rows["05-203.png"][0] == "decoder-crashed"
    assert "SIGKILL" in rows["05-203.png"][1]


@pytest.mark.deep
def test_the_process_that_starts_workers_is_killed(pictures, wrong_libpng, tmp_path, clpipe):
    folder = pictures(203)
    process = start(tmp_path, wrong_libpng, "ingest", *FEATURE, folder, "-o", "a.h5", "--isolate")
    hung = wait_for_hang(process)
    template = [pid for pid, name, _ in children(process.pid) if name == "clpipe-isolate"]
    assert len(template) == 1
    os.kill(template[0], signal.SIGKILL)
    assert process.wait(30) == 3
    assert "clpipe: " in process.stderr.read()
    wait_until_gone([hung] + template)
    # No file is at fault, so none is recorded as a failure.
    result = clpipe("ingest", folder, "-o", "a.h5", "--isolate", "--json", "report.json")
    assert result.returncode == 0, result.stderr


@pytest.mark.deep
def test_descriptors_and_limits(pictures, wrong_libpng, tmp_path):
    secret = os.open(tmp_path / "secret", os.O_RDWR | os.O_CREAT)
    folder = pictures(203)
    process = start(tmp_path, wrong_libpng, "ingest", *FEATURE, folder, "-o", "a.h5", "--isolate",
                    pass_fds=[secret])
    try:
        worker = wait_for_hang(process)
        template = [pid for pid, name, _ in children(process.pid) if name == "clpipe-isolate"][0]
        kinds = {}
        # Small files are sent together, and those that are done must be closed. On a busy machine, a worker may
        # need a long time for them.
        end, before = time.monotonic() + 10, [""]
        while before and time.monotonic() < end:
            for pid in (worker, template):
                try:
                    folder_of = f"/proc/{pid}/fd"
                    links = [os.readlink(f"{folder_of}/{fd}") for fd in os.listdir(folder_of)]
                except PermissionError:
                    pytest.skip("only root may look at the worker's descriptors")
                kinds[pid] = sorted(link.split(":")[0] for link in links)
            pictures_open = [link for link in kinds[worker] if link.startswith(str(folder))]
            before = [link for link in pictures_open if link < str(folder / "05-203.png")]
            time.sleep(0.1 if before else 0)
        assert kinds[template] == ["/dev/null"] * 3 + ["socket"]
        assert str(folder / "05-203.png") in pictures_open and not before
        assert sorted(set(kinds[worker]) - set(pictures_open)) == \
            ["/dev/null", f"/proc/{worker}/statm", "socket"]
        status = open(f"/proc/{worker}/status").read().split("\n")
        values = dict(line.split(":\t", 1) for line in status if ":\t" in line)
        assert values["NoNewPrivs"].strip() == "1"
        assert values.get("Seccomp", "2").strip() == "2"
        limits = {line[:26].strip(): line[26:].split()[0]
                  for line in open(f"/proc/{worker}/limits")}
        assert limits["Max core file size"] == "0" and limits["Max file size"] == "0"
        assert int(limits["Max data size"]) < 1 << 30
    finally:
        descendants = [pid for pid, _, _ in children(process.pid)]
        process.kill()
        process.wait()
        os.close(secret)
    # A killed program leaves no process behind, not even one that is stuck in a codec.
    assert worker in descendants
    wait_until_gone(descendants)


@pytest.mark.deep
def test_a_job_is_ended(pictures, wrong_libpng, tmp_path, clpipe):
    """Schedulers signal every process of a job; the decoders continue until the program is done."""
    folder = pictures(203)
    process = start(tmp_path, wrong_libpng, "ingest", *FEATURE, folder, "-o", "a.h5", "--isolate",
                    "--max-decode-seconds", 3, start_new_session=True)
    wait_for_hang(process)
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(30) == 4, process.stderr.read()
    result = clpipe("ingest", folder, "-o", "a.h5", "--isolate", "--max-decode-seconds", 3,
                    env=wrong_libpng)
    assert result.returncode == 1, result.stderr
    assert list(failures(clpipe, "a.h5")) == ["05-203.png"]


@pytest.mark.deep
def test_stop_while_a_decoder_hangs(pictures, wrong_libpng, tmp_path, clpipe):
    """The program does not wait long for the decoder; the work of the others is done and sealed."""
    folder = pictures(203)
    process = start(tmp_path, wrong_libpng, "ingest", *FEATURE, folder, "-o", "a.h5", "--isolate",
                    "--threads", 2)
    hung = wait_for_hang(process)
    process.terminate()
    assert process.wait(30) == 4, process.stderr.read()
    wait_until_gone([hung])
    result = clpipe("ingest", folder, "-o", "a.h5", "--json", "report.json")
    assert result.returncode == 0, result.stderr
    assert report(tmp_path)["images_ok"] == 13
    # Five pictures come before it; one that the device does not finish within a second is left for the next run.
    assert report(tmp_path)["images_resumed"] >= 3


def test_no_process_is_left(clpipe, photos, tmp_path):
    output = tmp_path / "nobody.h5"
    assert clpipe("ingest", photos, "-o", output, "--isolate").returncode == 0
    for entry in os.listdir("/proc"):
        try:
            line = open(f"/proc/{entry}/cmdline", "rb").read() if entry.isdigit() else b""
        except OSError:
            continue
        assert os.fsencode(output) not in line

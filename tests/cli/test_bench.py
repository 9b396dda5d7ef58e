"""clpipe bench measures every variant and checks its counts. Also tests tools/bench and the other benchmarks in
tools/."""

import json
import os
import re
import runpy
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import CLPIPE, LONG, ROOT, check_one_error, draw_photos, spoil

# Like `private`, these variants count any feature.
ANY = ["local", "replicated", "partial", "staged", "global"]
SMALL = ["--device", "cpu", "--bytes", "1M", "--rounds", 1]


@pytest.mark.slow
def test_every_variant(clpipe):
    result = clpipe("bench", *SMALL, "--fill", "all", "--feature", "rgb:bins=256", "--feature",
                    "hsv,grid=2x3", "--json", "-")
    assert result.returncode == 0, result.stderr
    (device,) = json.loads(result.stdout)
    rows = device["measured"]
    counted = [row for row in rows if row["what"] not in ("read only", "upload", "plain C")]
    any_feature = ["private", *ANY]
    assert {row["what"] for row in counted} == {*any_feature, "packed"}
    assert {row["fill"] for row in rows} == {"constant", "two", "natural", "random", "sorted"}
    # The packed variant counts only features with separate channels.
    assert len(counted) == (2 * len(any_feature) + 1) * 5
    for row in rows:
        assert row["seconds"] > 0 and row["wrong"] == 0
        assert 0.5e6 < row["bytes"] <= 1 << 20
        assert abs(row["bytes_per_second"] * row["seconds"] / row["bytes"] - 1) < 1e-9
    assert [row for row in rows if row["what"] == "plain C"]
    # The plain loop counts only rgb:bins=256, so no other feature is compared with it.
    assert {row["feature"] for row in counted if row.get("plain_ratio", 0) > 0} == {"rgb:bins=256"}
    assert sum("plain_ratio" in row for row in counted) == (len(any_feature) + 1) * 5


@pytest.mark.slow
def test_features_that_a_variant_cannot_count_are_passed_over(clpipe):
    result = clpipe("bench", *SMALL, "--fill", "all", "--feature", "hsv")
    assert result.returncode == 0, result.stderr
    (over,) = [line for line in result.stdout.splitlines() if "passed over" in line]
    assert over.startswith("packed") and "rgb:bins=B" in over
    result = clpipe("bench", *SMALL, "--feature", "hsv", "--variant", "packed")
    assert result.returncode == 2 and len(result.stderr.splitlines()) == 1
    assert "'packed' cannot count hsv_8x4x4" in result.stderr


def test_shapes(clpipe):
    result = clpipe("bench", *SMALL, "--shape", "all", "--fill", "random", "--variant", "auto",
                    "--feature", "gray")
    assert result.returncode == 0, result.stderr
    lines = [line.split() for line in result.stdout.splitlines()[2:]]
    assert [line[2] for line in lines if line[0] == "auto"] == ["large", "512x384", "224x224"]
    assert all(line[-1] == "%" for line in lines if line[0] == "auto")
    assert all(float(line[5]) > 0 and float(line[6]) > 0 for line in lines)


@pytest.mark.slow
def test_device_memory_bounds_the_pixels(clpipe):
    result = clpipe("bench", "--device", "cpu", "--bytes", "64M", "--device-memory", "4M", "--rounds",
                    1, "--fill", "constant", "--feature", "gray", "--json", "-")
    assert result.returncode == 0, result.stderr
    (device,) = json.loads(result.stdout)
    assert all(1e6 < row["bytes"] <= 2 << 20 for row in device["measured"])


def test_misuse(clpipe):
    check_one_error(clpipe("bench", "--fill", "blue"), 2, "--fill blue", "natural")
    check_one_error(clpipe("bench", "--shape", "9x9"), 2, "--shape 9x9", "224x224")
    check_one_error(clpipe("bench", "--variant", "fastest"), 2, "fastest", "private, local")
    check_one_error(clpipe("bench", "--feature", "luv"), 2, "luv")
    check_one_error(clpipe("bench", "--rounds", "0"), 2, "--rounds")
    check_one_error(clpipe("bench", "photos"), 2, "photos")


# --- tools ------------------------------------------------------------------------------------

def tool(name, *args, interpreter=()):
    return subprocess.run([*interpreter, ROOT / "tools" / name, *map(str, args)], text=True,
                          capture_output=True, stdin=subprocess.DEVNULL, timeout=100)


@pytest.mark.deep
def test_whole_process_bench(tmp_path, program):
    """Broken files and names that are not valid text are left out; the counts are compared."""
    if not os.access(ROOT / "build" / "release" / "decode_floor", os.X_OK):
        pytest.skip("build/release/decode_floor is not built")
    images, work = tmp_path / "images", tmp_path / "work"
    images.mkdir()
    work.mkdir()
    good = [name for name in draw_photos(images) if name.endswith(".jpg")]
    spoil(images)
    (images / os.fsdecode(b"\xff.jpg")).write_bytes((images / good[0]).read_bytes())
    result = tool("bench", images, "--rounds", 2, "--threads", 2, "--device", "cpu", "--no-peer",
                  "--work", work, "--json", tmp_path / "report.json")
    assert result.returncode == 0, result.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["files"] == report["report"]["images_ok"] == len(good)
    assert report["left_out"] == 3 and "3 files skipped" in result.stdout
    assert report["same_counts"] and "counted the same" in result.stdout
    assert {name: len(values) for name, values in report["processor_seconds"].items()} == \
        {"decode": 2, "floor": 2, "clpipe": 2}
    assert list(work.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [0, 3])
def test_histograms_compared_with_a_peer(program, tmp_path, monkeypatch, wrong):
    """nvcc and the program that it builds are fakes that report 0.5 GB/s and the given number of wrong counts."""
    numbers = "".join(f"{what} {shape} {fill} 1000000 0.002 {wrong}\n" for what in ("rgb", "bytes")
                      for shape in ("large", "512x384", "224x224")
                      for fill in ("constant", "two", "natural", "random", "sorted"))
    nvcc = tmp_path / "nvcc"
    nvcc.write_text("#!/bin/sh\nwhile [ \"$1\" != -o ]; do shift; done\n"
                    f"printf '%s\\n' '#!/bin/sh' 'cat {tmp_path}/numbers' > \"$2\"; chmod +x \"$2\"\n")
    nvcc.chmod(0o755)
    (tmp_path / "numbers").write_text(numbers)
    monkeypatch.setenv("NVCC", str(nvcc))
    command = ["bench-histogram", "--device", "cpu", "--bytes", 1 << 20, "--rounds", 1, "--json",
               tmp_path / "report.json"]
    result = tool(*command)
    assert result.returncode == (1 if wrong else 0), result.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert len(report["bytes_per_second"]) == 15 and report["wrong"] == 30 * wrong
    assert all(row["cub"] == 5e8 and row["clpipe"] > 0 for row in report["bytes_per_second"])
    monkeypatch.setenv("NVCC", str(tmp_path / "none"))
    result = tool(*command)
    assert result.returncode == 0 and "CUB skipped: there is no nvcc" in result.stdout


@pytest.mark.slow
def test_bench_of_isolation(program, photos, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    result = tool("bench", photos, "--isolate", "--rounds", "1", "--threads", "2", "--work", work,
                  "--json", tmp_path / "report.json")
    assert result.returncode == 0, result.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert {name: found["files"] for name, found in report.items()} == \
        {"photographs": 9, "thumbnails": 90}
    assert all(found["same"] for found in report.values())
    assert len(report["thumbnails"]["isolated"]["processor_seconds"]) == 1
    assert "photographs" in result.stdout and list(work.iterdir()) == []


@pytest.mark.slow
def test_kmeans_compared_with_peers(program, tmp_path, monkeypatch):
    """Missing peers are reported."""
    pytest.importorskip("sklearn")
    pytest.importorskip("h5py")
    (tmp_path / "torch.py").write_text("class cuda:\n    is_available = staticmethod(bool)\n")
    (tmp_path / "faiss.py").write_text("raise ImportError('no faiss today')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    # 50 rows in 40 clusters converge quickly.
    command = [sys.executable, ROOT / "tools" / "bench-kmeans", "--shapes", "3000x8x16,50x2x40",
               "--rounds", "2", "--iterations", "8", "--device", "cpu", "--peers",
               "lloyd,faiss,torch,torch-tf32,flash,flash-fp16", "--json", tmp_path / "report.json"]
    result = subprocess.run(command, text=True, capture_output=True, timeout=100)
    assert result.returncode == 0, result.stderr
    assert [line for line in result.stderr.splitlines() if "skipped" in line] == [
        "bench-kmeans: faiss skipped: no faiss today",
        *(f"bench-kmeans: {peer} skipped: torch has no CUDA device"
          for peer in ("torch", "torch-tf32", "flash", "flash-fp16"))]
    long, short = json.loads((tmp_path / "report.json").read_text())
    assert long["iterations"] == 8 and long["assignments"] == {"clpipe": 9, "lloyd": 9}
    assert short["iterations"] < 8
    assert short["assignments"] == {name: short["iterations"] for name in ("clpipe", "lloyd")}
    for report in long, short:
        assert report["labels_that_differ"] == {"lloyd": 0} and set(report["ratio"]) == {"lloyd"}
        for name, count in report["assignments"].items():
            each = report["milliseconds_per_assignment"][name]
            assert each > 0 and abs(report["seconds"][name] / count * 1e3 - each) < 1e-3
            assert f"{count:3} assignments of {each:8.2f} ms" in result.stdout


def test_rows_for_kmeans(monkeypatch):
    """The rows do not depend on the number of threads. In a mixture, each is the sum of a centre and noise."""
    numpy = pytest.importorskip("numpy")
    make = runpy.run_path(str(ROOT / "tools" / "bench-kmeans"))["make"]
    monkeypatch.setitem(make.__globals__, "BLOCK", 1 << 12)
    rows, first = make(20001, 8, 5, "mixture")
    assert {tuple(row) for row in first} <= {tuple(row) for row in rows}
    assert len(numpy.unique(rows, axis=0)) == len(rows)
    noise, _ = make(20001, 8, 5, "noise")
    assert abs(noise.mean()) < 0.02 and abs(noise.std() - 1.5) < 0.02
    assert (numpy.diff(numpy.sort((rows - noise)[:, 0])) > 1e-3).sum() == 4
    monkeypatch.setitem(make.__globals__, "ThreadPoolExecutor", lambda: ThreadPoolExecutor(1))
    assert numpy.array_equal(make(20001, 8, 5, "mixture")[0], rows)


@pytest.mark.deep
def test_bench_of_streamed_rows(program, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    command = [sys.executable, ROOT / "tools" / "bench-kmeans", "--streamed", "4M", "--memory", "1M",
               "--rounds", "2", "--iterations", "2", "--work", work, "--json",
               tmp_path / "report.json"]
    result = subprocess.run(command, text=True, capture_output=True, timeout=100)
    assert result.returncode == 0, result.stderr
    (report,) = json.loads((tmp_path / "report.json").read_text())
    assert report["bytes"] == 4 << 20 and report["memory"] == "1M" and not report["warm"]
    assert report["ratio"] > 0 and all(seconds > 0 for seconds in report["seconds"].values())
    assert "of the larger" in result.stdout and list(work.iterdir()) == []


@pytest.mark.parametrize("name, arguments, part", [
    ("bench", ["no-such-directory"], "no JPEG under no-such-directory"),
    ("bench", [".", "--work", "no-such-directory"], "cannot work in no-such-directory"),
    ("gpu-check", ["--device"], "--device wants a value"),
    ("gpu-check", ["--rounds", "0"], "--rounds wants a number from 1"),
    ("gpu-check", ["--fast"], "unknown option --fast"),
    ("gpu-check", ["no-such-directory"], "no-such-directory"),
    ("gpu-check", [".", "."], "one argument too many"),
])
def test_misuse_of_tools(program, name, arguments, part):
    result = tool(name, *arguments)
    assert result.returncode == (1 if name == "bench" else 2)
    assert part in result.stderr and len(result.stderr.splitlines()) == 1
    assert result.stdout == ""


@pytest.mark.slow
def test_soak(program, tmp_path):
    """All rows are present. With --long, there are 100,000 files, and memory and descriptors are checked."""
    pytest.importorskip("PIL")
    long = LONG
    result = subprocess.run([sys.executable, ROOT / "tools" / "soak", "--isolate", "--work", tmp_path,
                             "--json", tmp_path / "report.json",
                             *([] if long else ["--files", "1000"])],
                            text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=1500)
    if "is not built" in result.stderr or "a kind of file is missing" in result.stderr:
        pytest.skip(result.stderr)
    assert result.returncode == 0, result.stdout + result.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert set(report) == {"cold", "warm", "isolated"}
    for run in report.values():
        assert run["images_failed"] == (5000 if long else 50)
        assert not long or run["steady_bytes_a_file"] is not None
    assert os.listdir(tmp_path) == ["report.json"]


@pytest.mark.deep
def test_series_of_two_builds(program, tmp_path):
    draw_photos(tmp_path / "photos", 6)
    result = tool("ab", "--pairs", 1, "--work", tmp_path, CLPIPE, CLPIPE, "--series", tmp_path / "photos" / "red",
                  tmp_path / "photos")
    assert result.returncode == 0, result.stderr
    found = [line.split()[:2] for line in result.stdout.splitlines()[1:]]
    assert {name for name, _ in found} == {"small", "large", "archives", "update", "merge", "verify", "export"}
    assert {metric for _, metric in found} == {"user+sys", "wall", "memory", "disk"}
    assert os.listdir(tmp_path) == ["photos"]


@pytest.mark.deep
def test_bench_of_ingest(program, tmp_path):
    draw_photos(tmp_path / "photos", 12)
    made = tool("bench-ingest", "--make", tmp_path / "made", "--count", 5, "--bytes", 30000,
                tmp_path / "photos", interpreter=[sys.executable])
    assert made.returncode == 0, made.stderr
    assert made.stdout.startswith("5 files, ")
    result = tool("bench-ingest", "--files", 12, "--rounds", 1, "--device", "cpu", "--no-peer",
                  "--threads", 2, "--memory-dir", tmp_path, "--json", tmp_path / "report.json",
                  tmp_path / "made", interpreter=[sys.executable])
    assert result.returncode == 0, result.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert {"host", "coefficients", "device"} < set(report) and report["files"] == 12
    assert sum(report["device"]["jpeg"].values()) >= 12
    small = tool("bench-ingest", "--small", 32, "--files", 12, "--rounds", 1, "--threads", 2,
                 "--memory-dir", tmp_path, tmp_path / "made", interpreter=[sys.executable])
    assert small.returncode == 0, small.stderr
    assert re.match(r"12 files of 32 x 32 pixels, 2 threads, .*: [0-9.]+ times their sum$", small.stdout)
    rates = tool("bench-ingest", "--rates", "cpu:1", "--files", 20, "--rounds", 1, "--memory-dir", tmp_path,
                 tmp_path / "made", interpreter=[sys.executable])
    assert rates.returncode == 0, rates.stderr
    assert re.search(r"cpu:1: floor .*\n.*start .*\n.*\n.*fast, thumbnails .*\n.*best, .*\n.* of the floor's rate$", rates.stdout)
    assert sorted(os.listdir(tmp_path)) == ["made", "photos", "report.json"]

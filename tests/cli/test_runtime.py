"""Features of ONNX models: rows are what ONNX Runtime computes from the exact scaled picture, whatever the
model's interface; missing information is requested; rows of other versions are refused; and failures that a
model causes in the runtime are reported in one line."""
import os
import signal
import subprocess
import sys

import h5py
import numpy
import pytest
from conftest import CLPIPE, check_one_error, digest, run_clpipe
from PIL import Image
from test_net_feature import SIZES, scaled

os.environ["ORT_DISABLE_TELEMETRY"] = "1"
pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
import onnx_graphs  # noqa: E402

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
HOW = "fit=squash,mean=0.485/0.456/0.406,std=0.229/0.224/0.225"
MADE_BY = f"onnxruntime-{onnxruntime.__version__}-cpu"


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLPIPE_ONNXRUNTIME", onnxruntime.__path__[0])
    monkeypatch.setenv("CLPIPE_MODELS", str(tmp_path / "models"))
    os.mkdir("p")
    random = numpy.random.default_rng(1)
    for height, width in SIZES:
        Image.fromarray(random.integers(0, 256, (height, width, 3), dtype="u1")).save(f"p/{height}x{width}.png")


def ingest(spec, *options, source="p", output="x.h5", **others):
    return run_clpipe("ingest", source, "-o", output, "--feature", spec, *options, **others)


def wanted(path, picture, side=16, crop=0, output="rows", nhwc=False):
    """The row of a picture, computed with the runtime's Python package."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    pixels = scaled(numpy.asarray(Image.open(picture)), side, side, crop)
    kind = session.get_inputs()[0].type
    if kind != "tensor(uint8)":
        pixels = ((pixels.astype("f8") / 255 - numpy.array(MEAN)) / numpy.array(STD)).astype("f4")
        pixels = pixels.astype("f2") if kind == "tensor(float16)" else pixels
    x = pixels[None] if nhwc else pixels.transpose(2, 0, 1)[None]
    return session.run([output], {"x": numpy.ascontiguousarray(x)})[0][0].astype("f4")


def unit(row):
    return (row / numpy.sqrt((row.astype("f8") ** 2).sum())).astype("f4")


@pytest.mark.parametrize("kind, batch, nhwc", [
    ("float32", "n", False), ("float32", 1, False), ("float32", 3, True), ("float16", "n", True), ("uint8", "n", False)])
def test_rows(place, kind, batch, nhwc):
    onnx_graphs.write("a.onnx", batch=batch, kind=kind, nhwc=nhwc)
    how = "fit=squash" if kind == "uint8" else HOW
    assert ingest(f"net:model=a.onnx,{how},normalize=none").returncode == 0
    single = onnx_graphs.write("single.onnx", batch=1, kind=kind, nhwc=nhwc)
    with h5py.File("x.h5") as file:
        assert file["features/net"].attrs["model_runtime"] == MADE_BY
        assert f"layout={'nhwc' if nhwc else 'nchw'}" in file["features/net"].attrs["spec"]
        for row, path in zip(file["features/net"][:], file["images/path"].asstr()[:]):
            assert numpy.allclose(row, wanted(single, f"p/{path}", nhwc=nhwc), rtol=2e-6, atol=1e-6), path
    assert run_clpipe("verify", "x.h5").returncode == 0


@pytest.mark.deep
def test_tokens_crops_and_sizes(place):
    onnx_graphs.write("a.onnx", side="s", tokens=True)
    for name, spec, crop, pool in (("cls", "pool=cls", 875, lambda t: t[0]),
                                   ("mean", "pool=mean", 875, lambda t: t.astype("f8").mean(axis=0).astype("f4"))):
        how = HOW.replace("fit=squash", "crop=0.875")
        assert ingest(f"{name}=net:model=a.onnx,output=tokens,size=24,{spec},{how}", output=f"{name}.h5").returncode == 0
        with h5py.File(f"{name}.h5") as file:
            for row, path in zip(file[f"features/{name}"][:], file["images/path"].asstr()[:]):
                tokens = wanted("a.onnx", f"p/{path}", side=24, crop=crop, output="tokens")
                assert numpy.allclose(row, unit(pool(tokens)), atol=2e-6), path


def test_missing_options_are_requested_together(place):
    onnx_graphs.write("a.onnx", side="s", tokens=True)
    refused = ingest("net:model=a.onnx")
    check_one_error(refused, 2, "does not say", "fit=squash or crop=C", "mean=R/G/B, std=R/G/B", "size=WIDTHxHEIGHT",
                    "output=NAME of rows, tokens")
    assert not os.path.exists("x.h5")
    onnx_graphs.write("b.onnx", side=3, kind="uint8")  # 3 x 3 x 3: the layout is ambiguous
    check_one_error(ingest("net:model=b.onnx,fit=squash"), 2, "does not say layout=nchw or nhwc, size=WIDTHxHEIGHT: give it")


@pytest.mark.parametrize("options, words", [
    (HOW + ",output=none", "no output none; it has rows, tokens"), (HOW + ",output=tokens", "pool=cls or mean"),
    (HOW.replace("0.485", "123.7"), "divide those of bytes by 255"), (HOW + ",output=rows,size=20", "20"),
    (HOW + ",output=rows,pool=max", "cls or mean"), (HOW + ",output=rows,provider=tpu", "cpu or cuda"),
    (HOW + ",output=rows,provider=cuda", "without CUDA"), (HOW.replace("std", "grid"), "no grid=|grid="),
    (HOW + ",output=rows,pool=cls", "output 0 has 2 dimensions"), ("fit=crop,mean=0.5,std=0.5,output=rows", "crop=C")])
def test_refused(place, options, words):
    onnx_graphs.write("a.onnx", tokens=True)
    result = ingest(f"net:model=a.onnx,{options}")
    assert any(word in result.stderr for word in words.split("|")), result.stderr
    check_one_error(result, 2)


def test_missing_or_wrong_library(place, monkeypatch):
    onnx_graphs.write("a.onnx")
    how = f"net:model=a.onnx,{HOW}"
    monkeypatch.delenv("CLPIPE_ONNXRUNTIME")
    if "libonnxruntime" not in subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout:
        check_one_error(ingest(how), 2, "pip install onnxruntime", "--onnxruntime")
    check_one_error(ingest(how, "--onnxruntime", "p"), 2, "no libonnxruntime.so in p")
    check_one_error(ingest(how, "--onnxruntime", "a.onnx"), 2, "cannot be opened")
    assert ingest(how, "--onnxruntime", onnxruntime.__path__[0]).returncode == 0


# A CUDA library with only the functions that are called before a model is read; WHY selects how it fails.
STUB = r"""
static const char *message(const void *status) { return status; }
static void *fine(void) { return 0; }
static void *wrong(void) { return (void *)WHY; }
static void release(void *status) { (void)status; }
static const void *entries[256];
static const void *table(unsigned version)
{
    (void)version;
    for (int i = 0; i < 256; i++)
        entries[i] = (const void *)fine;
    entries[2] = (const void *)message;
    entries[93] = (const void *)release;
    entries[206] = (const void *)wrong;
    return entries;
}
static const char *version(void) { return "1.99.0"; }
const void *OrtGetApiBase(void)
{
    static const void *base[2];
    base[0] = (const void *)table;
    base[1] = (const void *)version;
    return base;
}
"""


@pytest.mark.parametrize("why, told", [
    ("/src/bridge.cc:1988 Provider& Get() [ONNXRuntimeError] : 1 : FAIL : Failed to load library /o/libonnxruntime_"
     "providers_cuda.so with error: libcudnn.so.9: cannot open shared object file\\n",
     "Failed to load library /o/libonnxruntime_providers_cuda.so with error: libcudnn.so.9: cannot open shared object file"),
    ("/src/call.cc:154 void CudaCall() CUDA failure 100: no CUDA-capable device is detected ; GPU=-1 ; file=/src/x.cc",
     "CUDA failure 100: no CUDA-capable device is detected"), ("anything else", "anything else")])
def test_cuda_errors_are_one_line(place, why, told):
    onnx_graphs.write("a.onnx")
    with open("stub.c", "w") as file:
        file.write(STUB)
    subprocess.run(["cc", "-shared", "-fPIC", f'-DWHY="{why}"', "-o", "libonnxruntime.so.1", "stub.c"], check=True)
    refused = ingest(f"net:model=a.onnx,{HOW},provider=cuda", "--onnxruntime", os.path.abspath("libonnxruntime.so.1"))
    check_one_error(refused, 2)
    assert refused.stderr.rstrip("\n").endswith(f"the network a.onnx: {told}")


def test_nothing_is_left_in_the_home_directory(place, tmp_path, monkeypatch):
    onnx_graphs.write("a.onnx")
    for name in ("HOME", "XDG_CACHE_HOME"):
        os.mkdir(name)
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.delenv("ORT_DISABLE_TELEMETRY")
    assert ingest(f"net:model=a.onnx,{HOW}", "--dry-run").returncode == 0  # this loads the model
    assert not [f for name in ("HOME", "XDG_CACHE_HOME") for _, _, files in os.walk(name) for f in files
                if "onnx" in f.lower() or "device" in f.lower()]


def test_the_sandbox_of_the_model(place):
    onnx_graphs.write("a.onnx")
    process = subprocess.Popen([CLPIPE, "ingest", "p", "-o", "x.h5", "--isolate", "--feature", f"net:model=a.onnx,{HOW}"],
                               stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    seen = set(), set()
    while process.poll() is None:
        for child in children(process.pid):
            try:
                with open(f"/proc/{child}/status") as file:
                    status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
                if status["Name"] == "clpipe-network":
                    seen[0].add(status["Seccomp"].strip())
                    seen[1].update(os.listdir(f"/proc/{child}/fd") if "2" in status["Seccomp"] else [])
            except OSError:
                pass
    assert process.returncode == 0 and "2" in seen[0] and seen[1] <= {"0", "1", "2", "3"}, seen  # 3: statm


def test_same_rows_for_threads_shards_updates_and_isolation(place):
    os.mkdir("models")
    onnx_graphs.write("models/small.onnx")
    spec = f"net:model=small,{HOW}"
    for name, options in (("one", ["--threads", 1]), ("seven", ["--threads", 7]), ("isolated", ["--isolate"]),
                          ("small", ["--memory", "16M"])):
        told = ingest(spec, *options, output=f"{name}.h5")
        assert told.returncode == 0 and f"network     {MADE_BY}" in told.stdout and "beside --memory" in told.stdout
    for index in range(2):
        assert ingest(spec, "--shard", f"{index}/2", output=f"s{index}.h5").returncode == 0
    for copy, name in ((["--copy"], "copied"), ([], "merged")):
        assert run_clpipe("merge", "s0.h5", "s1.h5", "-o", f"{name}.h5", *copy).returncode == 0
        assert run_clpipe("verify", f"{name}.h5").returncode == 0
    names = ("one", "seven", "isolated", "small", "copied", "merged")
    assert len({digest(f"{name}.h5") for name in names}) == 1
    Image.new("RGB", (40, 30), (200, 10, 90)).save("p/new.png")
    assert run_clpipe("ingest", "p", "-o", "one.h5").returncode == 0  # the model is found by its digest
    assert ingest(spec, output="again.h5").returncode == 0
    assert digest("one.h5") == digest("again.h5")
    Image.new("RGB", (40, 30), (190, 20, 80)).save("outside.png")
    outside = run_clpipe("similar", "one.h5", "outside.png", "-n", 1)
    assert outside.returncode == 0 and "new.png" in outside.stdout
    os.rename("models/small.onnx", "elsewhere.onnx")
    check_one_error(run_clpipe("ingest", "p", "-o", "one.h5", "--retry-failed"), 2, "needs its model", "NAME.onnx")


def test_rows_of_two_versions_are_not_mixed(place):
    onnx_graphs.write("a.onnx")
    spec = f"net:model=a.onnx,{HOW}"
    os.mkdir("models")
    os.symlink(os.path.abspath("a.onnx"), "models/a.onnx")
    assert ingest(spec).returncode == 0
    other = spec + ",runtime=onnxruntime-1.11.0-cpu"
    check_one_error(ingest(other, output="y.h5"), 2, "computed by onnxruntime-1.11.0-cpu", MADE_BY, "--onnxruntime")
    with h5py.File("x.h5", "r+") as file:  # as if another version had computed it
        for holder, name in ((file, "parameters"), (file["features/net"], "spec"), (file["features/net"], "model_runtime")):
            text = holder.attrs[name].replace(MADE_BY, "onnxruntime-1.11.0-cpu")
            del holder.attrs[name]
            holder.attrs[name] = text
    check_one_error(ingest(spec), 2, "onnxruntime-1.11.0-cpu")
    Image.new("RGB", (40, 30), (200, 10, 90)).save("p/new.png")
    check_one_error(run_clpipe("ingest", "p", "-o", "x.h5"), 2, "computed by onnxruntime-1.11.0-cpu", MADE_BY)
    check_one_error(run_clpipe("similar", "x.h5", "p/new.png"), 2, "computed by onnxruntime-1.11.0-cpu")
    os.remove("p/new.png")
    os.rename("p", "q")
    assert ingest(spec, source="q", output="y.h5").returncode == 0
    check_one_error(run_clpipe("merge", "x.h5", "y.h5", "-o", "z.h5"), 2, "onnxruntime-1.11.0-cpu", MADE_BY)


def test_values_that_are_not_finite(place):
    onnx_graphs.write("a.onnx", nodes=[("Log", ["rows0"], ["rows"], {})])  # rows are rectified, so some are 0
    result = ingest(f"net:model=a.onnx,{HOW}")
    assert result.returncode == 0 and result.stderr.count("not finite") == 1
    with h5py.File("x.h5") as file:
        assert numpy.isfinite(file["features/net"][:]).all()


def test_hostile_files(place):
    with open(onnx_graphs.write("good.onnx"), "rb") as file:
        good = file.read()
    random = numpy.random.default_rng(2)
    for name, data in (("empty", b""), ("cut", good[:len(good) // 2]), ("noise", random.bytes(5000)), ("text", b"x" * 99)):
        with open(f"{name}.onnx", "wb") as file:
            file.write(data)
        check_one_error(ingest(f"net:model={name}.onnx,{HOW}"), 2, f"{name}.onnx")
    check_one_error(ingest(f"net:model=p.onnx,{HOW}"), 2, "p.onnx")
    onnx_graphs.write("huge.onnx", nodes=[
        ("ConstantOfShape", ["lots"], ["zeros"], {}), ("Constant", [], ["lots"], {"value_ints": [1 << 40, 12]}),
        ("ReduceSum", ["zeros"], ["sum"], {"keepdims": 0}), ("Add", ["rows0", "sum"], ["rows"], {})][1::-1] + [
        ("ReduceSum", ["zeros"], ["sum"], {"keepdims": 0}), ("Add", ["rows0", "sum"], ["rows"], {})])
    check_one_error(ingest(f"net:model=huge.onnx,{HOW}"), 2, "huge.onnx")
    onnx_graphs.write("channels.onnx", channels=4)
    check_one_error(ingest(f"net:model=channels.onnx,{HOW},layout=nchw"), 2, "channels.onnx")


@pytest.mark.slow
def test_flipped_bits(place):
    with open(onnx_graphs.write("good.onnx"), "rb") as file:
        good = file.read()
    random = numpy.random.default_rng(3)
    os.mkdir("one")
    Image.new("RGB", (40, 30)).save("one/a.png")
    for i in range(30):
        bad = bytearray(good)
        for at in random.integers(0, len(bad), 1 + i % 4):
            bad[at] ^= 1 << random.integers(0, 8)
        with open("bad.onnx", "wb") as file:
            file.write(bad)
        result = ingest(f"net:model=bad.onnx,{HOW}", "--fresh", source="one")
        assert result.returncode in (0, 2, 3), result.stderr
        if result.returncode:
            check_one_error(result, result.returncode, "net")


def children(pid):
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                if int(file.read().rpartition(")")[2].split()[1]) == pid:
                    found.append(int(name))
        except OSError:
            pass
    return found


@pytest.mark.deep
def test_a_killed_runtime_is_reported_and_can_be_resumed(place):
    onnx_graphs.write("a.onnx", side=256)
    for i in range(300):
        Image.new("RGB", (300, 300), (i % 256, i // 2, 7)).save(f"p/{i}.png")
    words = [CLPIPE, "ingest", "p", "-o", "x.h5", "--memory", "16M", "--feature", f"net:model=a.onnx,{HOW}"]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    while process.poll() is None and not os.path.exists("x.h5.partial"):
        pass
    for child in children(process.pid):
        os.kill(child, signal.SIGKILL)
    stderr = process.communicate()[1]
    assert process.returncode == 3 and "a.onnx" in stderr and "Killed, by a user or because memory ran out" in stderr, stderr
    resumed = run_clpipe(*words[1:])
    assert resumed.returncode == 0
    assert run_clpipe(*words[1:4], "y.h5", *words[5:]).returncode == 0
    assert digest("x.h5") == digest("y.h5")


def test_kill_and_resume(place):
    onnx_graphs.write("a.onnx")
    spec = f"net:model=a.onnx,{HOW}"
    process = subprocess.Popen([CLPIPE, "ingest", "p", "-o", "x.h5", "--feature", spec, "--max-time", "0"],
                               stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    assert process.wait() == 4
    assert ingest(spec).returncode == 0
    assert ingest(spec, output="y.h5").returncode == 0
    assert digest("x.h5") == digest("y.h5")


def test_python_names_its_own_runtime(place, monkeypatch):
    onnx_graphs.write("a.onnx")
    monkeypatch.delenv("CLPIPE_ONNXRUNTIME")
    code = f"import clpipe; print(clpipe.ingest('p', output='x.h5', feature='net:model=a.onnx,{HOW}')['network_runtime'])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={
        **os.environ, "CLPIPE": str(CLPIPE), "PYTHONPATH": str(CLPIPE.parents[2] / "tools" / "python")})
    assert told.returncode == 0 and told.stdout.startswith(MADE_BY), told.stderr

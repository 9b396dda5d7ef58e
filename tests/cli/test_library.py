"""Uses libclpipe.so from C and from Python's ctypes: runs the example in the documentation, compares results with
those of the program, and checks the errors of calls."""

import ctypes
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import h5py
import numpy
import pytest
from PIL import Image

from conftest import CLPIPE, LIBRARY, run_clpipe

ROOT = Path(__file__).resolve().parents[2]
OK, ARGUMENT, DATA, DEVICE, MEMORY, STOPPED, CLOSED, FORK = range(8)
PROGRESS = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint64)
READ = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.POINTER(ctypes.c_float))
TYPES = {"float32": 0, "float16": 1, "float64": 2, "uint8": 3}
P, U64, U32, I64, INT, F64 = (ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_int64, ctypes.c_int,
                              ctypes.c_double)

if not LIBRARY.exists():
    pytest.skip("the library is not built", allow_module_level=True)
if "asan" in str(CLPIPE) or "tsan" in str(CLPIPE):
    pytest.skip("Python does not load a library with sanitizers", allow_module_level=True)


class Sized(ctypes.Structure):
    def __init__(self, **members):
        super().__init__(size=ctypes.sizeof(self), **members)


class Error(Sized):
    _fields_ = [("size", ctypes.c_size_t), ("status", INT), ("text", ctypes.c_char * 1200)]


class Rows(Sized):
    _fields_ = [("size", ctypes.c_size_t), ("rows", U64), ("columns", U32), ("type", INT), ("values", P),
                ("row_stride", I64), ("column_stride", I64), ("read", READ), ("context", P)]


class Options(Sized):
    _fields_ = [("size", ctypes.c_size_t), ("device", ctypes.c_char_p), ("threads", ctypes.c_uint), ("memory", U64),
                ("device_memory", U64)]


class KMeans(Sized):
    _fields_ = [("size", ctypes.c_size_t), ("k", U32), ("metric", INT), ("init", INT), ("initial", P), ("weights", P),
                ("seed", U64), ("n_init", U32), ("max_iter", U32), ("tol", F64), ("mini_batch", U32)]


class Fit(Sized):
    _fields_ = [("size", ctypes.c_size_t), ("centroids", P), ("labels", P), ("distances", P), ("sizes", P),
                ("inertia", F64), ("iterations", U32), ("converged", INT)]


class Watch(Sized):
    _fields_ = [("size", ctypes.c_size_t), ("progress", PROGRESS), ("context", P)]


class Features(Sized):
    _fields_ = [("size", ctypes.c_size_t), ("specs", ctypes.POINTER(ctypes.c_char_p)), ("count", U32),
                ("preset", ctypes.c_char_p)]


class Picture(Sized):
    _fields_ = [("size", ctypes.c_size_t), ("path", ctypes.c_char_p), ("bytes", ctypes.c_char_p), ("length", U64),
                ("pixels", P), ("width", U32), ("height", U32), ("channels", U32), ("row_stride", I64),
                ("column_stride", I64), ("channel_stride", I64), ("status", INT), ("reason", ctypes.c_char * 24),
                ("message", ctypes.c_char * 200)]


def rows_of(array):
    rows = Rows(rows=len(array), columns=array.shape[1], type=TYPES[array.dtype.name], values=array.ctypes.data,
                row_stride=array.strides[0], column_stride=array.strides[1])
    rows.array = array  # keeps the array alive
    return rows


@pytest.fixture(scope="module")
def library():
    library = ctypes.CDLL(str(LIBRARY))
    library.clpipe_version.restype = ctypes.c_char_p
    return library


@pytest.fixture
def handle(library):
    handle, error = P(), Error()
    assert library.clpipe_open(ctypes.byref(handle), None, ctypes.byref(error)) == OK, error.text
    yield handle
    library.clpipe_close(ctypes.byref(handle))


def fit(library, handle, rows, watch=None, **options):
    error, labels = Error(), numpy.full(min(rows.rows, 10**6), -7, "int32")
    centroids = numpy.zeros((options["k"], rows.columns), "float32")
    out = Fit(labels=labels.ctypes.data, centroids=centroids.ctypes.data)
    code = library.clpipe_fit(ctypes.byref(out), handle, ctypes.byref(rows), ctypes.byref(KMeans(**options)),
                              ctypes.byref(watch) if watch else None, ctypes.byref(error))
    assert (code == OK) == (error.text == b"") and b"\n" not in error.text
    return code, labels, centroids, error.text.decode()


RANDOM = numpy.random.default_rng(5)
VALUES = RANDOM.normal(size=(700, 21)).astype("float32")


def test_example(tmp_path):
    source = re.search(r"```c\n(.*?)```", (ROOT / "docs" / "library.md").read_text(), re.S).group(1)
    (tmp_path / "example.c").write_text(source)
    for compiler in (["cc", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"],):
        subprocess.run([*compiler, "-I", ROOT / "pipeline" / "library", tmp_path / "example.c", "-o",
                        tmp_path / "example", LIBRARY, f"-Wl,-rpath,{LIBRARY.parent}"], check=True)
    run = subprocess.run([tmp_path / "example"], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.endswith("row 0 is in the cluster of row 33: 1; 2 pictures, 0 without features\n")


def test_exports_only_its_own_symbols():
    names = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout
    assert {line.split()[2].split("_")[0].lower() for line in names.splitlines()} == {"clpipe"}


def test_same_results_as_the_program(tmp_path, library, handle):
    numpy.save(tmp_path / "rows.npy", VALUES)
    run_clpipe("cluster", tmp_path / "rows.npy", "-k", "9", "--n-init", "1", "--tol", "0", "--seed", "3", "-o",
               tmp_path / "c.h5", check=True)
    with h5py.File(tmp_path / "c.h5") as file:
        group = file["clusters"][next(iter(file["clusters"]))]
        wanted = {name: group[name][...] for name in ("labels", "centroids")}
    code, labels, centroids, text = fit(library, handle, rows_of(VALUES), k=9, seed=3, max_iter=100)
    assert code == OK, text
    assert (labels == wanted["labels"]).all() and (centroids == wanted["centroids"]).all()


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "uint8"])
def test_types_and_strides(library, handle, dtype):
    packed = (VALUES * 40 + 128).clip(0, 255).astype(dtype)
    want = fit(library, handle, rows_of(packed.astype("float32")), k=4)
    wide = numpy.zeros((1400, 42), dtype)
    wide[::2, ::2] = packed
    for view in (packed, numpy.asfortranarray(packed), wide[::2, ::2], packed[::-1, ::-1].copy()[::-1, ::-1]):
        assert (view == packed).all()
        got = fit(library, handle, rows_of(view), k=4)
        assert got[0] == OK and (got[1] == want[1]).all() and (got[2] == want[2]).all(), got[3]


def test_callback_gives_rows(library, handle):
    def read(context, first, count, out):
        ctypes.memmove(out, VALUES[first:first + count].ctypes.data, int(count) * VALUES.shape[1] * 4)
        return 0

    want = fit(library, handle, rows_of(VALUES), k=5)
    got = fit(library, handle, Rows(rows=len(VALUES), columns=21, read=READ(read)), k=5)
    assert got[0] == OK and (got[1] == want[1]).all(), got[3]
    got = fit(library, handle, Rows(rows=len(VALUES), columns=21, read=READ(lambda *_: 9)), k=5)
    assert got[0] == ARGUMENT and "returned 9" in got[3]


def test_prediction_equals_the_fit(library, handle):
    for copies in (1, 120):  # on the host, and on the device
        rows, error = numpy.tile(VALUES, (copies, 1)), Error()
        _, labels, centroids, _ = fit(library, handle, rows_of(rows), k=40)
        again = numpy.zeros(len(rows), "int32")  # the buffer may hold anything, even valid labels
        code = library.clpipe_predict(P(again.ctypes.data), None, handle, ctypes.byref(rows_of(rows)),
                                      P(centroids.ctypes.data), 40, 0, None, ctypes.byref(error))
        assert code == OK and (again == labels).all(), error.text


class Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks",
                                                     "fsmblks", "uordblks", "fordblks", "keepcost")]


@pytest.mark.deep
def test_memory_of_many_fits(library, handle):
    if not hasattr(ctypes.CDLL(None), "mallinfo2"):
        pytest.skip("the C library has no mallinfo2")
    measure = ctypes.CDLL(None).mallinfo2
    measure.restype = Mallinfo
    rows = rows_of(VALUES)
    used = []
    for _ in range(4):
        for _ in range(60):
            assert fit(library, handle, rows, k=3, max_iter=2)[0] == OK
        info = measure()
        used.append(info.uordblks + info.hblkhd)
    assert used[3] - used[1] < 120 * 512, used


def test_progress_and_stop(library, handle):
    phases = []
    watch = Watch(progress=PROGRESS(lambda context, phase, done, total: phases.append(phase.decode()) or 0))
    assert fit(library, handle, rows_of(VALUES), watch, k=5)[0] == OK
    assert "iterations" in phases
    watch = Watch(progress=PROGRESS(lambda *_: 1))
    code, _, _, text = fit(library, handle, rows_of(VALUES), watch, k=5)
    assert code == STOPPED and text == "stopped by the caller"
    assert fit(library, handle, rows_of(VALUES), k=5)[0] == OK


def neighbors(library, handle, rows, queries=None, n=4, metric=0):
    count = (rows if queries is None else queries).rows
    error, found = Error(), numpy.full((min(count, 10**6), min(n, 999)), -7, "int64")
    distances = numpy.zeros(found.shape)
    code = library.clpipe_neighbors(P(found.ctypes.data), P(distances.ctypes.data), handle, ctypes.byref(rows),
                                    ctypes.byref(queries) if queries else None, U32(n), metric, None,
                                    ctypes.byref(error))
    assert (code == OK) == (error.text == b"") and b"\n" not in error.text
    return code, found, distances, error.text.decode()


@pytest.mark.parametrize("number, metric", enumerate(["euclidean", "cosine", "hellinger"]))
def test_same_neighbours_as_the_program(tmp_path, finished, library, handle, number, metric):
    file = shutil.copy(finished, tmp_path / "photos.h5")
    run_clpipe("similar", file, "--all", "-n", "5", "--feature", "rgb_8x8x8", "--metric", metric, check=True)
    with h5py.File(file) as f:
        values = f["features/rgb_8x8x8"][...]
        wanted = {name: f[f"neighbours/rgb_8x8x8/{name}"][...] for name in ("rows", "distances")}
    code, found, distances, text = neighbors(library, handle, rows_of(values), n=5, metric=number)
    assert code == OK, text
    assert (found == wanted["rows"]).all()
    assert (distances.astype("float32") == wanted["distances"]).all()
    # As queries, the rows are among their own neighbours, and the distances have the same bits.
    _, again, squared, _ = neighbors(library, handle, rows_of(values), rows_of(values[::-1]), 6, number)
    for i, (row, square) in enumerate(zip(again[::-1], squared[::-1])):
        others = row != i
        assert i in row and (row[others] == found[i]).all() and (square[others] == distances[i]).all()


def test_neighbours_in_little_memory(library):
    rows = rows_of(RANDOM.integers(0, 9, (2000, 30)).astype("uint8"))
    queries = rows_of(numpy.asfortranarray(RANDOM.integers(0, 9, (700, 30)).astype("float64")))
    answers = []
    for memory in (0, 1 << 18):
        handle, options = P(), Options(memory=memory, threads=2)
        assert library.clpipe_open(ctypes.byref(handle), ctypes.byref(options), None) == OK
        answers += [neighbors(library, handle, rows), neighbors(library, handle, rows, queries)]
        assert library.clpipe_close(ctypes.byref(handle)) == OK
    for wide, narrow in zip(answers[:2], answers[2:]):
        assert wide[0] == narrow[0] == OK, narrow[3]
        assert (wide[1] == narrow[1]).all() and (wide[2] == narrow[2]).all()
    x, y = queries.array, rows.array.astype("float64")
    squared = (x * x).sum(axis=1)[:, None] + (y * y).sum(axis=1) - 2 * x @ y.T  # whole numbers
    order = numpy.argsort(squared, axis=1, kind="stable")[:, :4]
    assert (wide[1] == order).all() and (wide[2] == numpy.take_along_axis(squared, order, 1)).all()


@pytest.mark.parametrize("rows, queries, n, metric, wanted, words", [
    (rows_of(VALUES), None, 0, 0, ARGUMENT, "n is 0"),
    (rows_of(VALUES), None, 700, 0, ARGUMENT, "699 rows"),
    (rows_of(VALUES), rows_of(VALUES), 701, 0, ARGUMENT, "700 rows"),
    (rows_of(VALUES), rows_of(VALUES[:, 1:]), 3, 0, ARGUMENT, "queries have 20 columns"),
    (rows_of(VALUES), None, 3, 3, ARGUMENT, "no metric 3"),
    (rows_of(VALUES), None, 3, 2, DATA, "row 0"),
    (rows_of(VALUES), Rows(rows=2, columns=21), 3, 0, ARGUMENT, "values or a callback"),
    (Rows(rows=0, columns=21), rows_of(VALUES), 1, 0, DATA, "0 rows"),
])
def test_neighbours_that_are_refused(library, handle, rows, queries, n, metric, wanted, words):
    code, found, _, text = neighbors(library, handle, rows, queries, n, metric)
    assert code == wanted and words in text and (found == -7).all(), text


def picture_of(source):
    """A Picture for a path, for bytes or for an array."""
    if isinstance(source, bytes):
        return Picture(bytes=source, length=len(source))
    if not isinstance(source, numpy.ndarray):
        return Picture(path=os.fsencode(source))
    channels = source.shape[2] if source.ndim == 3 else 1
    return Picture(pixels=source.ctypes.data, width=source.shape[1], height=source.shape[0], channels=channels,
                   row_stride=source.strides[0], column_stride=source.strides[1],
                   channel_stride=source.strides[2] if source.ndim == 3 else 0)


def describe(library, handle, sources, specs=(), preset=None, watch=None):
    error, columns = Error(), U32()
    pictures = (Picture * len(sources))(*[picture_of(source) for source in sources])
    wanted = Features(specs=(ctypes.c_char_p * len(specs))(*[spec.encode() for spec in specs]), count=len(specs),
                      preset=preset.encode() if preset else None)
    code = library.clpipe_features(None, ctypes.byref(columns), handle, None, U64(0), ctypes.byref(wanted), None,
                                   ctypes.byref(error))
    values = numpy.full((len(sources), columns.value), -7, "float32")
    if code == OK:
        code = library.clpipe_features(P(values.ctypes.data), ctypes.byref(columns), handle, pictures,
                                       U64(len(sources)), ctypes.byref(wanted),
                                       ctypes.byref(watch) if watch else None, ctypes.byref(error))
    assert (code == OK) == (error.text == b"") and b"\n" not in error.text
    return code, values, list(pictures), error.text.decode()


SPECS = ["a=rgb:bins=8x8x8", "b=gray:bins=100,normalize=none", "c=hsv:bins=16x4x4,store=uint8",
         "d=oplbp:store=float16", "e=hog:grid=4x4,normalize=hellinger", "f=lab:levels=1+2", "g=gradient:scale=32",
         "h=quality"]


@pytest.fixture(scope="module")
def ingested(tmp_path_factory, mixed, library):
    """{path: row of all SPECS as float32, or the reason of the failure} from an ingest."""
    file = tmp_path_factory.mktemp("ingested") / "f.h5"
    run_clpipe("ingest", mixed, "-o", file, *[word for spec in SPECS for word in ("--feature", spec)])
    with h5py.File(file) as f:
        found = dict(zip(f["failures/path"][...], map(bytes.decode, f["failures/reason"][...])))
        parts = [f["features"][spec[0]][...] for spec in SPECS]
        roots = (parts[2].astype("float64") - f["features/c"].attrs["zero"]) / f["features/c"].attrs["scale"]
        parts[2] = roots * abs(roots)
        found |= zip(f["images/path"][...], numpy.hstack([part.astype("float32") for part in parts]))
    return {os.fsdecode(path): what for path, what in found.items()}


def check_pictures(found, wanted, names):
    code, values, pictures, text = found
    assert code == OK, text
    for i, name in enumerate(names):
        what = wanted[name]
        if isinstance(what, str):
            assert (pictures[i].status, pictures[i].reason.decode()) == (DATA, what) and pictures[i].message
            assert numpy.isnan(values[i]).all()
        else:
            assert (pictures[i].status, pictures[i].reason) == (OK, b""), name
            assert (values[i] == what).all(), name


@pytest.mark.parametrize("way", [str, Path.read_bytes])
def test_same_features_as_the_program(mixed, library, handle, ingested, way):
    names = sorted(name for name in ingested if (mixed / name).stat().st_size > 0 or way is str)
    assert len(names) > 15
    wanted = {**ingested, **{name: "not-an-image" for name, what in ingested.items()
                             if isinstance(what, str) and what == "unknown-format" and way is not str}}
    check_pictures(describe(library, handle, [way(mixed / name) for name in names], SPECS), wanted, names)


def test_features_of_pixels(mixed, library, handle, ingested):
    names = sorted(name for name, what in ingested.items() if name.endswith(".png") and not isinstance(what, str))
    arrays = [numpy.array(Image.open(mixed / name)) for name in names]
    for view in (lambda x: x, numpy.asfortranarray, lambda x: numpy.ascontiguousarray(x.transpose(2, 0, 1)).transpose(1, 2, 0),
                 lambda x: numpy.ascontiguousarray(x[:, :, ::-1])[:, :, ::-1], lambda x: x[::-1].copy()[::-1]):
        views = [view(array) for array in arrays]
        check_pictures(describe(library, handle, views, SPECS), ingested, names)
    grey = [array[:, :, 1].copy() for array in arrays]
    want = describe(library, handle, [numpy.dstack([g, g, g]) for g in grey], SPECS)[1]
    assert (describe(library, handle, grey, SPECS)[1] == want).all()


def test_features_of_a_preset(tmp_path, photos, library, handle):
    # With few images, the preset uses the features for few images.
    run_clpipe("ingest", photos, "-o", tmp_path / "f.h5", "--preset", "fast", check=True)
    run_clpipe("export", tmp_path / "f.h5", "--what", "features", "--format", "npy", "-o", tmp_path / "f.npy", check=True)
    with h5py.File(tmp_path / "f.h5") as f:
        paths = [os.fsdecode(path) for path in f["images/path"][...]]
    code, values, _, text = describe(library, handle, [str(photos / path) for path in paths], preset="few")
    assert code == OK, text
    assert numpy.array_equal(values, numpy.load(tmp_path / "f.npy"))


def test_progress_of_features(library, handle):
    pixels, seen = numpy.zeros((50, 40, 3), "uint8"), []
    thread = threading.get_ident()
    watch = Watch(progress=PROGRESS(
        lambda context, phase, done, total: seen.append((phase, done, total, threading.get_ident() == thread)) or 0))
    assert describe(library, handle, [pixels] * 30, ["gray"], watch=watch)[0] == OK
    assert seen[-1] == (b"images", 30, 30, True) and all(there for *_, there in seen)
    watch = Watch(progress=PROGRESS(lambda *_: 1))
    assert describe(library, handle, [pixels] * 30, ["gray"], watch=watch)[0] == STOPPED


@pytest.mark.parametrize("picture, specs, preset, words", [
    ({"path": b"x"}, [], None, "1 to 16 specs"),
    ({"path": b"x"}, ["gray"], "color", "1 to 16 specs"),
    ({"path": b"x"}, ["gray"] * 17, None, "1 to 16 specs"),
    ({"path": b"x"}, ["grayish"], None, "grayish"),
    ({"path": b"x"}, ["gray", "gray"], None, "gray"),
    ({"path": b"x"}, ["dct:fisher=64"], None, "learns a codebook"),
    ({"path": b"x"}, [], "fast", "learns a codebook"),
    ({"path": b"x"}, [], "slow", "no preset 'slow'"),
    ({}, ["gray"], None, "picture 0 needs one of path, bytes and pixels"),
    ({"path": b"x", "bytes": b"y"}, ["gray"], None, "picture 0 needs one of"),
    ({"pixels": 16, "width": 3, "channels": 3}, ["gray"], None, "picture 0 is 3 x 0"),
    ({"pixels": 16, "width": 3, "height": 3, "channels": 2}, ["gray"], None, "of 2 channels"),
    ({"pixels": 16, "width": 3, "height": 3, "channels": 3, "row_stride": 1 << 62}, ["gray"], None, "strides"),
    ({"size": 8, "path": b"x"}, ["gray"], None, "picture 0"),
])
def test_features_that_are_refused(library, handle, picture, specs, preset, words):
    error, columns, values = Error(), U32(), (ctypes.c_float * 5000)()
    one = Picture()
    for name, value in picture.items():
        setattr(one, name, value)
    wanted = Features(specs=(ctypes.c_char_p * len(specs))(*[spec.encode() for spec in specs]), count=len(specs),
                      preset=preset.encode() if preset else None)
    code = library.clpipe_features(values, ctypes.byref(columns), handle, ctypes.byref(one), U64(1),
                                   ctypes.byref(wanted), None, ctypes.byref(error))
    assert code == ARGUMENT and words in error.text.decode(), error.text


def test_progress_of_several_devices(library):
    """Runs in a separate process, in which PoCL provides two devices."""
    program = f"""if True:
        import sys, threading, ctypes
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from test_library import *
        library, handle, name, seen = ctypes.CDLL({str(LIBRARY)!r}), P(), ctypes.create_string_buffer(200), []
        assert library.clpipe_open(ctypes.byref(handle), ctypes.byref(Options(device=b"all")), None) == OK
        library.clpipe_name(name, ctypes.c_size_t(200), handle, None)
        print(name.value.count(b" + "))
        watch = Watch(progress=PROGRESS(lambda *_: seen.append(threading.get_ident()) or 0))
        assert fit(library, handle, rows_of(numpy.tile(VALUES, (9, 1))), watch, k=5)[0] == OK
        assert seen and set(seen) == {{threading.get_ident()}}
    """
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                         env={**os.environ, "POCL_DEVICES": "pthread pthread"})
    assert run.returncode == 0, run.stderr
    if run.stdout.strip() != "1":
        pytest.skip("PoCL does not provide several devices")


def with_value(value):
    rows = VALUES.copy()
    rows[3, 4] = value
    return rows


@pytest.mark.parametrize("rows, options, wanted", [
    (rows_of(VALUES), {"k": 0}, ARGUMENT),
    (rows_of(VALUES), {"k": 701}, ARGUMENT),
    (rows_of(VALUES), {"k": 2, "metric": 9}, ARGUMENT),
    (rows_of(VALUES), {"k": 2, "init": 3}, ARGUMENT),
    (rows_of(VALUES), {"k": 2, "tol": float("nan")}, ARGUMENT),
    (Rows(rows=0, columns=3), {"k": 1}, DATA),
    (Rows(rows=4, columns=0, values=1), {"k": 1}, ARGUMENT),
    (Rows(rows=4, columns=3), {"k": 1}, ARGUMENT),
    (Rows(rows=4, columns=3, values=16, column_stride=3), {"k": 1}, ARGUMENT),
    (Rows(rows=4, columns=3, values=16, row_stride=1 << 62), {"k": 1}, ARGUMENT),
    (Rows(rows=1 << 50, columns=3, values=16), {"k": 1}, ARGUMENT),
])
def test_wrong_calls(library, handle, rows, options, wanted):
    code, _, _, text = fit(library, handle, rows, **options)
    assert code == wanted and text, text


def test_invalid_rows(library, handle):
    for value in (numpy.nan, numpy.inf):
        code, _, _, text = fit(library, handle, rows_of(with_value(value)), k=3)
        assert code == DATA and "row 3" in text
    code, _, _, text = neighbors(library, handle, rows_of(VALUES), rows_of(with_value(numpy.nan)))
    assert code == DATA and "query 3" in text
    code, _, _, text = fit(library, handle, rows_of(numpy.ones((9, 2), "float32")), k=3)
    assert code == DATA and "k is 3" in text
    code, _, _, text = fit(library, handle, rows_of(numpy.zeros((9, 2), "float32")), k=1, metric=1)
    assert code == DATA


def test_closed_handles(library, handle):
    closed, error = P(handle.value), Error()
    assert library.clpipe_close(ctypes.byref(handle)) == OK and not handle.value
    assert library.clpipe_close(ctypes.byref(handle)) == OK
    for pointer in (closed, P(), P(12345), P(id(error))):
        assert fit(library, pointer, rows_of(VALUES), k=2)[0] == CLOSED
        assert library.clpipe_stop(pointer) == CLOSED
    assert library.clpipe_close(ctypes.byref(closed)) == CLOSED
    assert library.clpipe_open(None, None, ctypes.byref(error)) == ARGUMENT


def test_fork(library, handle):
    process = os.fork()
    if process == 0:
        code, *_, text = fit(library, handle, rows_of(VALUES), k=2)
        os._exit(0 if code == FORK and text.startswith("fork") and library.clpipe_stop(handle) == FORK else 1)
    assert os.waitpid(process, 0)[1] == 0
    assert fit(library, handle, rows_of(VALUES), k=2)[0] == OK


def test_threads_share_a_handle(library, handle):
    want, got = fit(library, handle, rows_of(VALUES), k=6)[1], []
    threads = [threading.Thread(target=lambda: got.append(fit(library, handle, rows_of(VALUES), k=6))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 4 and all((labels == want).all() for _, labels, *_ in got)


def test_threads_with_their_own_handles(library, handle):
    want, got = fit(library, handle, rows_of(VALUES), k=6)[1], []

    def work():
        own = P()
        for _ in range(3):
            assert library.clpipe_open(ctypes.byref(own), None, None) == OK
            got.append(fit(library, own, rows_of(VALUES), k=6)[1])
            library.clpipe_close(ctypes.byref(own))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 12 and all((labels == want).all() for labels in got)

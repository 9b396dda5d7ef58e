"""tools/python: the estimators, which offer the library through the API of scikit-learn. Tests results, types of
rows, errors, threads, processes, signals, scikit-learn's own checks of estimators, and features of pictures."""

import ctypes
import doctest
import importlib
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy
import pytest

from conftest import CLPIPE, LIBRARY, ROOT, run_clpipe

PACKAGE = ROOT / "tools" / "python"
sys.path.insert(0, str(PACKAGE))
import clpipe as package  # noqa: E402

if not LIBRARY.exists():
    pytest.skip("the library is not built", allow_module_level=True)
if "asan" in str(CLPIPE) or "tsan" in str(CLPIPE):
    pytest.skip("Python does not load a library with sanitizers", allow_module_level=True)
sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed (tools/prepare --tests)")
os.environ["CLPIPE_LIBRARY"] = str(LIBRARY)

from sklearn.base import clone  # noqa: E402
from sklearn.cluster import KMeans as Peer  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.neighbors import NearestNeighbors as PeerNeighbors  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import MinMaxScaler  # noqa: E402

ROWS = numpy.random.default_rng(8).normal(size=(600, 7)).astype("float32")
ROWS[:200] += 3
# Checks that scikit-learn, depending on its version, expects to fail for its own KMeans and MiniBatchKMeans.
EXPECTED = {"check_sample_weight_equivalence_on_dense_data": "draws depend on the number of rows",
            "check_sample_weights_invariance": "draws depend on the number of rows"}


def python(code, **environment):
    """Runs code in a new Python process that can import the package; returns what it prints."""
    code = f"import sys; sys.path.insert(0, {str(PACKAGE)!r})\n" + code
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True,
                          env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_structs_match_the_header(tmp_path):
    from clpipe import _library
    structs = [one for one in vars(_library).values()
               if isinstance(one, type) and issubclass(one, _library._Sized) and one is not _library._Sized]
    names = {one: "clpipe_" + one.__name__[1:].lower() for one in structs}
    assert len(structs) == 7
    lines = [f'printf("%zu\\n", sizeof(struct {name}));' for name in names.values()]
    lines += [f'printf("%zu\\n", offsetof(struct {names[one]}, {field[0]}));' for one in structs for field in one._fields_]
    (tmp_path / "sizes.c").write_text("#include <clpipe.h>\n#include <stdio.h>\nint main(void) {" + "\n".join(lines) + "}")
    subprocess.run(["cc", "-I", ROOT / "pipeline" / "library", tmp_path / "sizes.c", "-o", tmp_path / "sizes"], check=True)
    printed = subprocess.run([tmp_path / "sizes"], capture_output=True, check=True).stdout.split()
    assert [int(number) for number in printed] == [ctypes.sizeof(one) for one in structs] + \
        [getattr(one, field[0]).offset for one in structs for field in one._fields_]


@pytest.mark.deep
def test_import_is_light():
    assert python("import clpipe; print('sklearn' in sys.modules)") == "False\n"
    code = "import clpipe\nsys.modules['sklearn'] = None\ntry:\n    clpipe.KMeans\nexcept ImportError as e:\n    print(e)"
    assert python(code) == "clpipe.KMeans requires scikit-learn: pip install scikit-learn\n"
    code = "import clpipe\ntry:\n    clpipe.KMeans(1).fit([[0]])\nexcept clpipe.Error as e:\n    print(e)"
    assert python(code, CLPIPE_LIBRARY="/none.so").startswith("the library /none.so, which CLPIPE_LIBRARY can name, cannot")


def test_kmeans_matches_scikit_learn():
    weights = numpy.random.default_rng(1).uniform(0.5, 2, len(ROWS)).astype("float32")
    for options in ({}, {"tol": 0}, {"max_iter": 3}):
        for given in (None, weights):
            mine = package.KMeans(6, init=ROWS[::100], n_init=1, **options).fit(ROWS, sample_weight=given)
            peer = Peer(6, init=ROWS[::100], n_init=1, **options).fit(ROWS, sample_weight=given)
            assert (mine.labels_ == peer.labels_).all() and mine.n_iter_ == peer.n_iter_
            assert numpy.allclose(mine.cluster_centers_, peer.cluster_centers_, atol=1e-5)
            assert numpy.isclose(mine.inertia_, peer.inertia_) and mine.labels_.dtype == numpy.int32
            assert numpy.isclose(mine.score(ROWS, sample_weight=given), -mine.inertia_) or mine.n_iter_ == 3
    assert (mine.predict(ROWS) == mine.labels_).all() and (mine.predict(ROWS[:1]) == mine.labels_[:1]).all()
    assert numpy.allclose(mine.transform(ROWS), peer.transform(ROWS), atol=1e-4)
    one = [package.KMeans(4, random_state=seed).fit(ROWS).inertia_ for seed in (3, 3, numpy.random.RandomState(3))]
    assert one[0] == one[1] != one[2]


def test_inits_and_metrics():
    for init in ("k-means||", "random", lambda X, k, random_state: X[random_state.permutation(len(X))[:k]]):
        assert package.KMeans(3, init=init, random_state=0).fit(ROWS).inertia_ < 4000
    shares = numpy.abs(ROWS) / numpy.abs(ROWS).sum(axis=1, keepdims=True)
    for metric, space in (("cosine", ROWS / numpy.linalg.norm(ROWS, axis=1, keepdims=True)),
                          ("hellinger", numpy.sqrt(shares))):
        rows = ROWS if metric == "cosine" else shares
        model = package.KMeans(4, metric=metric, random_state=0).fit(rows)
        distances = model.transform(rows)
        assert (distances.argmin(axis=1) == model.labels_).mean() > 0.99
        assert numpy.isclose((distances.min(axis=1).astype("f8") ** 2).sum(), model.inertia_, rtol=1e-4)
        mean = space[model.labels_ == 0].mean(axis=0)
        mean /= numpy.linalg.norm(mean) if metric == "cosine" else 1
        assert numpy.allclose(model.cluster_centers_[0], mean, atol=0.02)
    batches = package.MiniBatchKMeans(3, batch_size=100, max_iter=4, random_state=0).fit(ROWS)
    assert (batches.n_steps_, batches.n_iter_) == (24, 4)
    assert batches.inertia_ < 1.1 * package.KMeans(3, random_state=0).fit(ROWS).inertia_


class Tensor:
    """A tensor in the memory of a device, like those of torch and CuPy, which numpy cannot read."""

    def __init__(self, values, of_torch):
        self.values, self.dtype, self.shape = values, values.dtype, values.shape
        if of_torch:
            self.detach, self.cpu = lambda: self, lambda: values
        else:
            self.__cuda_array_interface__, self.get = {}, lambda: values

    def __array__(self, *unused):
        raise TypeError("on a device")


def test_rows_of_every_kind():
    """Rows of any type and container, strided or read-only, get the labels of contiguous float32 rows."""
    packed = (ROWS * 20 + 100).clip(0, 255).astype("uint8")
    wanted = package.KMeans(5, random_state=2).fit(packed.astype("float32")).labels_
    wide = numpy.zeros((1200, 14), "float32")
    wide[::2, ::2] = packed
    views = [packed, packed.astype("float16"), packed.astype("float64"), packed.astype("int64"), packed.tolist(),
             packed.astype(">f4"), numpy.asfortranarray(packed), wide[::2, ::2], packed[::-1].copy()[::-1],
             numpy.ma.masked_array(packed, False), Tensor(packed.astype("float32"), True), Tensor(packed, False)]
    odd = numpy.frombuffer(b"x" + packed.astype("float32").tobytes(), numpy.uint8)[1:].view("float32").reshape(600, 7)
    assert not odd.flags.aligned and not odd.flags.writeable
    for rows in [*views, odd]:
        assert (package.KMeans(5, random_state=2).fit(rows).labels_ == wanted).all(), type(rows)
    repeated = package.KMeans(2, random_state=0).fit(numpy.broadcast_to(ROWS[:, :1], (600, 7)))
    assert numpy.ptp(repeated.cluster_centers_, axis=1).max() == 0


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    tensor = torch.from_numpy(ROWS)
    wanted = package.KMeans(3, random_state=0).fit(ROWS).labels_
    for rows in (tensor, tensor.clone().requires_grad_(), tensor.T.contiguous().T):
        assert (package.KMeans(3, random_state=0).fit(rows).labels_ == wanted).all()
    assert package.KMeans(3, random_state=0).fit(tensor.bfloat16()).labels_.shape == (600,)


def test_wrong_arguments():
    model = package.KMeans(3, random_state=0)
    bad = ROWS.copy()
    bad[5, 2] = numpy.nan
    masked = numpy.ma.masked_array(ROWS, ROWS > 2)
    for rows, text in ((bad, "row 5 .*NaN"), (bad * numpy.inf, "inf|NaN"), (ROWS[0], "1D"), (ROWS[None], "dim"),
                       (ROWS[:2], "n_samples=2"), (ROWS[:, :0], "0 feature"), (masked, "masked values"),
                       (ROWS.astype("f8") * 1e200, "inf")):
        with pytest.raises(ValueError, match=text):
            model.fit(rows)
    for options, text in (({"n_clusters": 0}, "n_clusters is 0"), ({"n_clusters": 2.0}, "integer"), ({"tol": -1}, "tol"),
                          ({"init": "no"}, "k-means"), ({"metric": "l1"}, "hellinger"), ({"n_init": 0}, "n_init"),
                          ({"init": ROWS[:2]}, "match the number of clusters"), ({"max_iter": 0}, "max_iter")):
        with pytest.raises(ValueError, match=text):
            clone(model).set_params(**options).fit(ROWS)
    for weights, text in (([1, 2], "sample_weight"), (-ROWS[:, 0] ** 2, "weight"), (numpy.zeros(600), "zero|row is 0")):
        with pytest.raises(ValueError, match=text):
            model.fit(ROWS, sample_weight=weights)
    with pytest.raises(package.Error, match="matches 'none such'"):
        package.KMeans(3, device="none such").fit(ROWS)
    model.fit(ROWS)
    for rows, text in ((ROWS[:, :3], "3 features"), (bad, "NaN")):
        for method in (model.predict, model.transform, model.score):
            with pytest.raises(ValueError, match=text):
                method(rows)
    with pytest.raises(TypeError, match="[Ss]parse"):
        model.fit(pytest.importorskip("scipy.sparse").csr_matrix(ROWS))
    with pytest.raises(ValueError, match="negative"):
        package.KMeans(3, metric="hellinger").fit(ROWS)


def test_fewer_different_rows():
    rows, weights = numpy.repeat(ROWS[:4], 6, axis=0), numpy.repeat([1, 1, 1, 0], 6)
    one = numpy.repeat([1, 0, 0, 0], 6)
    for given, different in ((None, 4), (weights, 3), (one, 1)):
        with pytest.warns(sklearn.exceptions.ConvergenceWarning, match=rf"clusters \({different}\)"):
            model = package.KMeans(6, random_state=0).fit(rows, sample_weight=given)
        assert model.cluster_centers_.shape == (6, 7) and len(set(model.labels_)) == different
        assert (model.predict(rows) == model.labels_).all()


@pytest.mark.deep
def test_tools_of_scikit_learn():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS, columns=list("abcdefg"))
    line = make_pipeline(MinMaxScaler(), package.KMeans(3, random_state=0))
    assert len(set(line.fit_predict(frame))) == 3
    search = GridSearchCV(package.KMeans(random_state=0), {"n_clusters": [2, 3, 4]}, cv=2).fit(ROWS)
    assert search.best_params_ == {"n_clusters": 4}
    model = package.KMeans(2, random_state=0).set_output(transform="pandas").fit(frame)
    assert list(model.transform(frame).columns) == list(model.get_feature_names_out()) == ["kmeans0", "kmeans1"]
    assert list(model.feature_names_in_) == list("abcdefg") and model.n_features_in_ == 7
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(frame) == model.labels_).all() and not hasattr(clone(model), "labels_")


def test_neighbors_match_scikit_learn():
    queries = ROWS[:50] + 0.01
    for metric in ("euclidean", "sqeuclidean", "cosine"):
        mine = package.NearestNeighbors(n_neighbors=4, metric=metric).fit(ROWS)
        peer = PeerNeighbors(n_neighbors=4, metric=metric, algorithm="brute").fit(ROWS.astype("f8"))
        for given in (queries, None):
            distances, found = mine.kneighbors(given)
            wanted, rows = peer.kneighbors(given)
            assert (found == rows).mean() > 0.999 and numpy.allclose(distances, wanted, atol=1e-5)
            assert (mine.kneighbors(given, return_distance=False) == found).all() and found.dtype == numpy.int64
            for mode in ("connectivity", "distance"):
                difference = mine.kneighbors_graph(given, mode=mode) - peer.kneighbors_graph(given, mode=mode)
                assert abs(difference).max() < 1e-5
    assert (mine.kneighbors(ROWS, 1)[1].ravel() == numpy.arange(600)).all()
    for call, text in ((lambda: mine.kneighbors(n_neighbors=600), "599"), (lambda: mine.kneighbors(ROWS, 0), "is 0"),
                       (lambda: mine.kneighbors(ROWS[:, :2]), "2 features"),
                       (lambda: mine.fit(ROWS * numpy.nan), "NaN"), (lambda: mine.kneighbors(ROWS * numpy.nan), "NaN"),
                       (lambda: mine.kneighbors_graph(mode="x"), "mode"),
                       (lambda: package.NearestNeighbors(metric="minkowski").fit(ROWS), "euclidean")):
        with pytest.raises(ValueError, match=text):
            call()
    with pytest.raises(sklearn.exceptions.NotFittedError):
        package.NearestNeighbors().kneighbors()


def test_features(photos, tmp_path, caplog):
    """Features of paths, bytes and pixels equal those that ingest stores."""
    image = pytest.importorskip("PIL.Image")
    names = sorted(photos.rglob("*.png"))[:6]
    assert run_clpipe("ingest", *names, "-o", tmp_path / "f.h5", "--feature", "rgb:bins=2x2x2", "--feature",
                      "gray:bins=4").returncode == 0
    with package.open(tmp_path / "f.h5") as file:
        wanted = numpy.concatenate([file.feature("rgb_2x2x2"), file.feature("gray_4")], axis=1)
    pixels = [numpy.asarray(image.open(name).convert("RGB")) for name in names]
    forms = [names, [name.read_bytes() for name in names], pixels, [one[::-1].copy()[::-1] for one in pixels],
             [str(names[0]), bytearray(names[1].read_bytes()), *pixels[2:]]]
    for given in forms:
        assert (package.features(given, ["rgb:bins=2x2x2", "gray:bins=4"]) == wanted).all()
    bad = package.features([b"none", tmp_path / "no.png", pixels[0]], "gray:bins=4")
    assert numpy.isnan(bad[:2]).all() and (bad[2] == wanted[0, 8:]).all()
    assert [text.split(" has")[0] for text in caplog.messages] == ["picture 0", str(tmp_path / "no.png")]
    assert package.features([], preset="color").shape[0] == 0
    for given, options, text in ((pixels, {"feature": "no"}, "no"), (pixels, {}, "preset or"),
                                 ([pixels[0] / 2], {"feature": "gray:bins=4"}, "uint8"),
                                 ([numpy.zeros((2, 2, 4), "u1")], {"feature": "gray:bins=4"}, "picture 0")):
        with pytest.raises(ValueError, match=text):
            package.features(given, **options)
    with pytest.raises(TypeError, match="must be a list"):
        package.features(str(names[0]), "gray:bins=4")


def test_threads():
    results = []
    threads = [threading.Thread(target=lambda: results.append(package.KMeans(4, random_state=1).fit(ROWS).inertia_))
               for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 10 and len(set(results)) == 1


def test_forked_child():
    package.KMeans(2).fit(ROWS)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            package.KMeans(2).fit(ROWS)
        except BaseException as error:
            os.write(write, f"{type(error).__name__}: {error}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 1000).startswith(b"Error: fork: this process was forked")
    os.close(read), os.close(write)


def test_signals_end_a_fit():
    rows = numpy.random.default_rng(0).normal(size=(60000, 64)).astype("float32")
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        package.KMeans(500, tol=0, random_state=0, max_iter=10000, n_init=10000).fit(rows)
    assert time.monotonic() - start < 60
    assert package.KMeans(2, random_state=0).fit(ROWS).n_iter_ > 0  # the library still works


def test_doctests():
    for name in ("clpipe._estimators", "clpipe._library"):
        result = doctest.testmod(importlib.import_module(name), extraglobs={"clpipe": package})
        assert result.failed == 0 and result.attempted > 0


@pytest.mark.deep
@pytest.mark.parametrize("name", ["KMeans", "MiniBatchKMeans", "NearestNeighbors"])
def test_check_estimator(name):
    """All checks pass except those that scikit-learn expects to fail for its own class of the same name."""
    from sklearn.utils import estimator_checks
    expected, passed = {} if name == "NearestNeighbors" else EXPECTED, 0
    warnings.simplefilter("ignore")
    for model, check in estimator_checks.check_estimator(getattr(package, name)(), generate_only=True) \
            if sklearn.__version__ < "1.6" else estimator_checks.estimator_checks_generator(getattr(package, name)()):
        function = check.func if hasattr(check, "func") else check
        try:
            check(model)
            passed += 1
        except Exception as error:
            skipped = type(error).__name__ == "SkipTest"
            assert skipped or function.__name__ in expected, f"{function.__name__}: {error}"
    assert passed > 25


@pytest.mark.deep
def test_processes():
    """The estimators work in newly started processes of joblib and multiprocessing."""
    pytest.importorskip("joblib")
    package.KMeans(2).fit(ROWS)
    environment = {"PYTHONPATH": str(PACKAGE), "CLPIPE_LIBRARY": str(LIBRARY)}
    code = """
import multiprocessing, numpy, clpipe
from sklearn.model_selection import GridSearchCV
rows = numpy.random.default_rng(0).normal(size=(300, 4)).astype('f4')
clpipe.KMeans(2).fit(rows)
print(GridSearchCV(clpipe.KMeans(random_state=0), {'n_clusters': [2, 3]}, cv=2, n_jobs=2).fit(rows).best_score_ < 0)
with multiprocessing.get_context('spawn').Pool(1) as pool:
    print(len(pool.apply(clpipe.KMeans(2).fit_predict, (rows,))))
"""
    assert python(code, **environment) == "True\n300\n"


@pytest.mark.deep
def test_in_one_process_with_other_libraries(photos, tmp_path):
    """h5py, OpenCV, Pillow and torch work in the same process, loaded before or after clpipe, with equal results."""
    image, pictures = pytest.importorskip("PIL.Image"), sorted(photos.rglob("*.jpg"))[:3]
    for kind in ("png", "webp", "tiff", "gif"):
        image.open(pictures[0]).save(tmp_path / f"a.{kind}")
        if not numpy.isnan(package.features([tmp_path / f"a.{kind}"], "gray:bins=4")).any():
            pictures.append(tmp_path / f"a.{kind}")
    printed = [subprocess.run([sys.executable, ROOT / "tests" / "cli" / "one_process.py", order, *pictures], text=True,
                              capture_output=True, env={**os.environ, "PYTHONPATH": str(PACKAGE)})
               for order in ("alone", "before", "after")]
    assert [one.returncode for one in printed] == [0, 0, 0], printed
    found = [one.stdout.split() for one in printed]
    assert found[1] == found[2] and "h5py" in found[1] and found[1][-1:] == found[0]

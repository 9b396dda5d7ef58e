"""Estimators of scikit-learn on libclpipe.so.1."""

from __future__ import annotations

import inspect
import warnings
from numbers import Integral
from typing import Any, Tuple, Union

import numpy
import sklearn.neighbors
import sklearn.utils.validation
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from clpipe._errors import InvalidError
from clpipe._library import TYPES, CFit, CKMeans, Device, call, on_host, rows_of

INITS = ("k-means++", "k-means||", "random")
FINITE = next(name for name in inspect.signature(check_array).parameters if name.endswith("_all_finite"))
METRICS = {"euclidean": 0, "cosine": 1, "hellinger": 2}


class _Estimator(BaseEstimator):
    def _validated(self, X: Any, reset: bool, finite: bool = False) -> Any:
        """scikit-learn's checks of names, shape and type; the library finds NaN while it reads the rows."""
        if not reset:
            check_is_fitted(self)
        if isinstance(X, numpy.ma.MaskedArray) and X.mask.any():
            raise ValueError("the rows have masked values; fill them or leave their rows out")
        validate = getattr(sklearn.utils.validation, "validate_data", None) or type(self)._validate_data
        return validate(self, on_host(X), reset=reset, dtype=list(TYPES), **{FINITE: finite})

    def _chosen(self, name: str, known: Any) -> Any:
        value = getattr(self, name)
        if value not in known:
            raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(known)}")
        return value

    def _count(self, name: str, value: Any = None) -> int:
        value = getattr(self, name) if value is None else value
        if not isinstance(value, Integral) or isinstance(value, bool) or not 1 <= int(value) < 1 << 31:
            raise ValueError(f"{name} is {value!r}; it must be an integer and at least 1")
        return int(value)


class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, _Estimator):
    """Exact k-means, with the parameters of scikit-learn's KMeans.

    n_clusters: k. init: "k-means++", "k-means||", "random", k x n_features centres in the space of the rows, or
    a callable (X, n_clusters, random_state). n_init, max_iter, tol: as scikit-learn's. random_state: an integer is
    the seed of `clpipe cluster`, which finds the same. metric: "euclidean", "cosine", "hellinger". device: as of
    the commands. verbose, copy_x, algorithm: without effect; rows are not changed, and there is one answer.

    After fit: cluster_centers_ (k x n_features float32, in the space of the metric), labels_ (n_samples int32),
    inertia_ (sum of the squared distances, times weights), n_iter_, n_features_in_, feature_names_in_.

    >>> model = clpipe.KMeans(2, random_state=0).fit([[0, 1], [0, 2], [9, 1], [9, 2]])
    >>> model.inertia_, model.predict([[8, 8]]) == model.labels_[2]
    (1.0, array([ True]))
    """

    cluster_centers_: Any
    labels_: Any
    n_iter_: int
    _runs = 10  # of n_init="auto", from random rows or a callable

    def __init__(self, n_clusters: int = 8, *, init: Any = "k-means++", n_init: Union[int, str] = "auto",
                 max_iter: int = 300, tol: float = 1e-4, verbose: int = 0, random_state: Any = None,
                 copy_x: bool = True, algorithm: str = "lloyd", metric: str = "euclidean",
                 device: Device = None) -> None:
        self.n_clusters, self.init, self.n_init, self.max_iter, self.tol = n_clusters, init, n_init, max_iter, tol
        self.verbose, self.random_state, self.copy_x, self.algorithm = verbose, random_state, copy_x, algorithm
        self.metric, self.device = metric, device

    def _batch(self, rows: int) -> Tuple[int, int]:
        """Rows of a batch, 0: full iterations; iterations at most."""
        return 0, self._count("max_iter")

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Clusters n_samples x n_features rows. sample_weight: of the rows, at least 0."""
        X = self._validated(X, reset=True)
        k = self._n_features_out = self._count("n_clusters")
        weights = None if sample_weight is None else _check_sample_weight(
            on_host(sample_weight), X, dtype=numpy.float32)
        self._chosen("metric", METRICS)
        if len(X) < k:
            raise ValueError(f"n_samples={len(X)} should be >= n_clusters={k}.")
        random = check_random_state(self.random_state)
        given = {"weights": weights, "seed": int(
            self.random_state if isinstance(self.random_state, Integral) else random.randint(2**31 - 1))}
        named = isinstance(self.init, str) and bool(self._chosen("init", INITS))
        if isinstance(self.n_init, str) and self.n_init == "auto":
            self._n_init = self._runs if callable(self.init) or (named and self.init == "random") else 1
        else:
            self._n_init = self._count("n_init")
        if not named and not callable(self.init) and self._n_init > 1:
            warnings.warn(f"Explicit initial center position passed: performing only one init in "
                          f"{type(self).__name__} instead of n_init={self._n_init}.", RuntimeWarning, stacklevel=2)
            self._n_init = 1
        try:
            if named:
                best = self._run(X, k, init=INITS.index(self.init), n_init=self._n_init, **given)
            else:
                best = min((self._run(X, k, init=3, initial=self._initials(X, k, random), **given)
                            for _ in range(self._n_init)), key=lambda found: float(found[2]))
        except InvalidError as error:
            if "distinct row" not in str(error):
                raise
            best = self._few(X, k, weights)
        self.cluster_centers_, self.labels_, self.inertia_, self.n_iter_ = best
        return self

    def _initials(self, X: Any, k: int, random: Any) -> Any:
        found = self.init(X, k, random_state=random) if callable(self.init) else self.init
        found = numpy.ascontiguousarray(check_array(on_host(found), dtype=numpy.float32))
        for got, wanted, what in zip(found.shape, (k, X.shape[1]), ("clusters", "features of the data")):
            if got != wanted:
                raise ValueError(f"The shape of the initial centers {found.shape} does not match the number of "
                                 f"{what} {wanted}.")
        return found

    def _run(self, X: Any, k: int, **given: Any) -> Tuple[Any, Any, float, int]:
        batch, iterations = self._batch(len(X))
        centres, labels = numpy.empty((k, X.shape[1]), numpy.float32), numpy.empty(len(X), numpy.int32)
        fit = CFit(centroids=centres, labels=labels)
        call("fit", self.device, [fit], [rows_of(X), CKMeans(k=k, metric=METRICS[self.metric], max_iter=iterations,
                                                            tol=float(self.tol), mini_batch=batch, **given)])
        return centres, labels, fit.inertia, fit.iterations

    def _few(self, X: Any, k: int, weights: Any) -> Tuple[Any, Any, float, int]:
        """Fewer distinct rows than clusters: each is a centre, and the last one fills up the rest."""
        rows = numpy.unique(self._space(X if weights is None else X[weights > 0]), axis=0)
        warnings.warn(f"Number of distinct clusters ({len(rows)}) found smaller than n_clusters ({k}). Possibly due "
                      "to duplicate points in X.", ConvergenceWarning, stacklevel=3)
        centres = numpy.concatenate([rows, numpy.repeat(rows[-1:], k - len(rows), axis=0)])
        return centres, self._nearest(X, centres)[0], 0.0, 1

    def _nearest(self, X: Any, centres: Any) -> Tuple[Any, Any]:
        labels, squared = numpy.empty(len(X), numpy.int32), numpy.empty(len(X), numpy.float32)
        call("predict", self.device, [labels, squared], [rows_of(X), centres, len(centres), METRICS[self.metric]])
        return labels, squared

    def _space(self, X: Any) -> Any:
        """float32 rows in the space of the metric."""
        values = X if self.metric == "euclidean" else X.astype(numpy.float64)
        with numpy.errstate(invalid="ignore"):  # NaN is refused where distances are computed
            if self.metric == "hellinger":
                values = numpy.sqrt(values)
            elif self.metric == "cosine":
                values = values / numpy.sqrt((values * values).sum(axis=1, keepdims=True))
        return values.astype(numpy.float32, copy=False)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """The labels of fit, n_samples of int32."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def predict(self, X: Any) -> Any:
        """The nearest centre of each row, n_samples of int32."""
        return self._nearest(self._validated(X, reset=False), self.cluster_centers_)[0]

    def transform(self, X: Any) -> Any:
        """Distances to the centres in the space of the metric, n_samples x n_clusters float32; scikit-learn
        computes them on the host."""
        return euclidean_distances(self._space(self._validated(X, reset=False)), self.cluster_centers_)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the sum of the squared distances to the nearest centres, times weights."""
        X = self._validated(X, reset=False)
        squared = self._nearest(X, self.cluster_centers_)[1].astype(float)
        return -float((squared * _check_sample_weight(on_host(sample_weight), X)).sum())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def _more_tags(self) -> Any:  # before scikit-learn 1.6
        return {"preserves_dtype": [numpy.float32]}


class MiniBatchKMeans(KMeans):
    """k-means by batches of random rows, approximate: parameters and results of KMeans, and these.

    batch_size: rows of a batch. max_iter: all batches together draw this multiple of the number of rows; only a tol
    above 0 ends earlier. n_steps_: batches; n_iter_: passes, as max_iter counts them.
    """

    _runs = 3

    def __init__(self, n_clusters: int = 8, *, init: Any = "k-means++", max_iter: int = 5, batch_size: int = 1024,
                 verbose: int = 0, random_state: Any = None, tol: float = 0.0, n_init: Union[int, str] = "auto",
                 metric: str = "euclidean", device: Device = None) -> None:
        super().__init__(n_clusters, init=init, max_iter=max_iter, verbose=verbose, random_state=random_state,
                         tol=tol, n_init=n_init, metric=metric, device=device)
        self.batch_size = batch_size

    def _batch(self, rows: int) -> Tuple[int, int]:
        batch = min(self._count("batch_size"), rows)
        return batch, max(self._count("max_iter") * rows // batch, 1)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Clusters n_samples x n_features rows. sample_weight: of the rows, at least 0."""
        super().fit(X, y, sample_weight)
        self.n_steps_, rows = self.n_iter_, len(self.labels_)
        self.n_iter_ = -(-self.n_steps_ * self._batch(rows)[0] // rows)
        return self


class NearestNeighbors(_Estimator):
    """The exact nearest rows, with the parameters of scikit-learn's NearestNeighbors that have a meaning here.

    metric: "euclidean", "sqeuclidean" (its square), "cosine" (one less the cosine) or "hellinger" (the Euclidean
    distance of square roots). device: as of the commands. algorithm, n_jobs: without effect. Rows are kept as they
    are given to fit, not copied, and read by each search.

    >>> model = clpipe.NearestNeighbors(n_neighbors=1).fit([[0], [3], [4]])
    >>> model.kneighbors([[1]]), model.kneighbors(return_distance=False).ravel()
    ((array([[1.]]), array([[0]])), array([1, 2, 1]))
    """

    _metrics = {**METRICS, "sqeuclidean": 0}

    def __init__(self, n_neighbors: int = 5, *, algorithm: str = "auto", metric: str = "euclidean",
                 n_jobs: Any = None, device: Device = None) -> None:
        self.n_neighbors, self.algorithm, self.metric, self.n_jobs = n_neighbors, algorithm, metric, n_jobs
        self.device = device

    def fit(self, X: Any, y: Any = None) -> Any:
        """Takes n_samples x n_features rows."""
        self._chosen("metric", self._metrics)
        self._count("n_neighbors")
        self._fit_X = self._validated(X, reset=True, finite=True)
        self.n_samples_fit_ = len(self._fit_X)
        return self

    def kneighbors(self, X: Any = None, n_neighbors: Any = None, return_distance: bool = True) -> Any:
        """Distances (float64) and numbers (int64) of the nearest rows of each query, n_queries x n_neighbors each,
        nearest first, rows at the same distance in their order. X: n_queries x n_features; None: the rows
        themselves, none of which is its own neighbour."""
        queries = self._fit_X if X is None and hasattr(self, "_fit_X") else self._validated(X, reset=False)
        n = self._count("n_neighbors", n_neighbors)
        found = numpy.empty((len(queries), n), numpy.int64)
        squared = numpy.empty((len(queries), n), numpy.float64)
        call("neighbors", self.device, [found, squared], [
            rows_of(self._fit_X), None if X is None else rows_of(queries), n, self._metrics[self.metric]])
        if not return_distance:
            return found
        return {"cosine": squared / 2, "sqeuclidean": squared}.get(self.metric, numpy.sqrt(squared)), found

    kneighbors_graph = sklearn.neighbors.NearestNeighbors.kneighbors_graph  # of what kneighbors finds

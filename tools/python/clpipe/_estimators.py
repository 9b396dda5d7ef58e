"""Estimators of scikit-learn on libclpipe.so.1."""

from __future__ import annotations

import inspect
import warnings
from numbers import Integral, Real
from typing import Any, Callable, List, Optional, Tuple, Union

import numpy
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted

from clpipe._errors import InvalidError
from clpipe._library import METRICS, TYPES, CFit, CKMeans, Device, call, on_host, rows_of

Array = "numpy.ndarray[Any, Any]"
INITS = ("k-means++", "k-means||", "random")


def _validated(estimator: Any, X: Any, reset: bool) -> Any:
    """scikit-learn's checks of names, shape and type; the library finds NaN while it reads the rows."""
    if isinstance(X, numpy.ma.MaskedArray) and X.mask.any():
        raise ValueError("the rows have masked values; fill them or leave their rows out")
    try:
        from sklearn.utils.validation import validate_data
    except ImportError:  # before 1.6
        validate_data = type(estimator)._validate_data
    name = "ensure_all_finite" if "ensure_all_finite" in inspect.signature(check_array).parameters else \
        "force_all_finite"
    return validate_data(estimator, on_host(X), reset=reset, dtype=list(TYPES), **{name: False})


def _integer(estimator: Any, name: str, least: int = 1) -> int:
    value = getattr(estimator, name)
    if not isinstance(value, Integral) or isinstance(value, bool) or not least <= int(value) < 1 << 31:
        raise ValueError(f"{name} is {value!r}; it must be an integer and at least {least}")
    return int(value)


def _metric(estimator: Any, known: Tuple[str, ...] = METRICS) -> int:
    if estimator.metric not in known:
        raise ValueError(f"metric is {estimator.metric!r}; it must be one of {', '.join(known)}")
    return known.index(estimator.metric)


class _KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    _runs = 10  # of n_init="auto", from random rows or a callable

    def _batch(self, rows: int) -> Tuple[int, int]:
        """Rows of a batch, 0: full iterations; iterations at most."""
        return 0, _integer(self, "max_iter")

    def _weights(self, sample_weight: Any, rows: int) -> Any:
        if sample_weight is None:
            return None
        weights = numpy.ascontiguousarray(check_array(on_host(sample_weight), dtype=numpy.float32, ensure_2d=False))
        if weights.ndim > 1 or weights.shape not in ((), (rows,)):
            raise ValueError(f"sample_weight has the shape {weights.shape}; it must be ({rows},)" if weights.ndim < 2
                             else "Sample weights must be 1D array or scalar")
        return numpy.full(rows, weights) if weights.ndim == 0 else weights

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Clusters n_samples x n_features rows. sample_weight: of the rows, at least 0."""
        X = _validated(self, X, reset=True)
        k, metric, initials = _integer(self, "n_clusters"), _metric(self), self.init
        weights, self._n_features_out = self._weights(sample_weight, len(X)), k
        if weights is not None and not weights.any():
            raise ValueError("every sample_weight is zero")
        if not isinstance(self.tol, Real) or not float(self.tol) >= 0:
            raise ValueError(f"tol is {self.tol!r}; it must be 0 or more")
        named, given = isinstance(self.init, str), not isinstance(self.init, str) and not callable(self.init)
        if named and self.init not in INITS:
            raise ValueError(f"init is {self.init!r}; it must be one of {', '.join(INITS)}, an array or a callable")
        if len(X) < k:
            raise ValueError(f"n_samples={len(X)} should be >= n_clusters={k}.")
        if isinstance(self.n_init, str) and self.n_init == "auto":
            self._n_init = self._runs if callable(self.init) or (named and self.init == "random") else 1
        else:
            self._n_init = _integer(self, "n_init")
        if given and self._n_init > 1:
            warnings.warn(f"Explicit initial center position passed: performing only one init in "
                          f"{type(self).__name__} instead of n_init={self._n_init}.", RuntimeWarning, stacklevel=2)
            self._n_init = 1
        random = check_random_state(self.random_state)
        seed = int(self.random_state if isinstance(self.random_state, Integral) else random.randint(2**31 - 1))
        try:
            if named:
                best = self._run(X, weights, k, metric, seed, init=INITS.index(self.init), n_init=self._n_init)
            else:
                found = []
                for _ in range(self._n_init):
                    initials = self.init if given else self.init(X, k, random_state=random)
                    initials = self._initials(initials, (k, X.shape[1]))
                    found.append(self._run(X, weights, k, metric, seed, init=3, initial=initials))
                best = min(found, key=lambda one: float(one[2]))
        except InvalidError as error:
            if "different rows" not in str(error):
                raise
            best = self._few(X, weights, k)
        self.cluster_centers_, self.labels_, self.inertia_, self.n_iter_ = best
        return self

    def _initials(self, initials: Any, shape: Tuple[int, int]) -> Any:
        initials = numpy.ascontiguousarray(check_array(on_host(initials), dtype=numpy.float32))
        for got, wanted, what in zip(initials.shape, shape, ("clusters", "features of the data")):
            if got != wanted:
                raise ValueError(f"The shape of the initial centers {initials.shape} does not match the number of "
                                 f"{what} {wanted}.")
        return initials

    def _run(self, X: Any, weights: Any, k: int, metric: int, seed: int, **more: Any) -> Tuple[Any, Any, float, int]:
        batch, iterations = self._batch(len(X))
        centres, labels = numpy.empty((k, X.shape[1]), numpy.float32), numpy.empty(len(X), numpy.int32)
        fit = CFit(centroids=centres, labels=labels)
        config = CKMeans(k=k, metric=metric, weights=weights, seed=seed, max_iter=iterations, tol=float(self.tol),
                         mini_batch=batch, **more)
        call("fit", self.device, [fit], [rows_of(X), config], self._told())
        return centres, labels, fit.inertia, fit.iterations

    def _few(self, X: Any, weights: Any, k: int) -> Tuple[Any, Any, float, int]:
        """Fewer different rows than clusters: each row is a centre, and the last one fills up the rest."""
        rows = numpy.unique(self._space(X if weights is None else X[weights > 0]), axis=0)
        warnings.warn(f"Number of distinct clusters ({len(rows)}) found smaller than n_clusters ({k}). Possibly due "
                      "to duplicate points in X.", ConvergenceWarning, stacklevel=3)
        centres = numpy.concatenate([rows, numpy.repeat(rows[-1:], k - len(rows), axis=0)])
        return centres, self._nearest(X, centres)[0], 0.0, 1

    def _told(self) -> Optional[Callable[[str, int, int], None]]:
        return (lambda phase, done, total: print(f"{phase}: {done} of {total}")) if self.verbose else None

    def _nearest(self, X: Any, centres: Any) -> Tuple[Any, Any]:
        labels, squared = numpy.empty(len(X), numpy.int32), numpy.empty(len(X), numpy.float32)
        call("predict", self.device, [labels, squared],
             [rows_of(X), centres, len(centres), _metric(self)], self._told())
        return labels, squared

    def _fitted(self, X: Any) -> Any:
        check_is_fitted(self)
        return _validated(self, X, reset=False)

    def _space(self, X: Any) -> Any:
        """float32 rows in the space of the metric."""
        if self.metric == "euclidean":
            return X.astype(numpy.float32, copy=False)
        values = X.astype(numpy.float64)
        with numpy.errstate(invalid="ignore"):  # NaN is refused where distances are computed
            values = numpy.sqrt(values) if self.metric == "hellinger" else \
                values / numpy.sqrt((values * values).sum(axis=1, keepdims=True))
        return values.astype(numpy.float32)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """The labels of fit, n_samples of int32."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def predict(self, X: Any) -> Any:
        """The nearest centre of each row, n_samples of int32."""
        X = self._fitted(X)
        return self._nearest(X, self.cluster_centers_)[0]

    def transform(self, X: Any) -> Any:
        """The distance of each row to each centre in the space of the metric, n_samples x n_clusters float32, which
        scikit-learn computes on the host."""
        return euclidean_distances(self._space(self._fitted(X)), self.cluster_centers_)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Less the sum of the squared distances of rows to their centres."""
        X = self._fitted(X)
        squared = self._nearest(X, self.cluster_centers_)[1].astype(numpy.float64)
        weights = self._weights(sample_weight, len(X))
        return -float(squared.sum() if weights is None else squared @ weights.astype(numpy.float64))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def _more_tags(self) -> Any:  # before scikit-learn 1.6
        return {"preserves_dtype": [numpy.float32]}


class KMeans(_KMeans):
    """Exact k-means, with the parameters of scikit-learn's KMeans.

    n_clusters: k. init: "k-means++", "k-means||", "random", k x n_features centres in the space of the rows, or
    a callable (X, n_clusters, random_state). n_init, max_iter, tol: as scikit-learn's. random_state: an integer is the
    seed of `clpipe cluster`, which finds the same. metric: "euclidean", "cosine", "hellinger". device: as of the
    commands. verbose: prints progress. copy_x, algorithm: have no effect, as rows are not changed and there is one
    answer.

    After fit: cluster_centers_ (k x n_features float32, in the space of the metric), labels_ (n_samples int32),
    inertia_ (the sum of squared distances, times weights), n_iter_, n_features_in_, feature_names_in_.

    >>> model = clpipe.KMeans(2, random_state=0).fit([[0, 1], [0, 2], [9, 1], [9, 2]])
    >>> model.inertia_, model.predict([[8, 8]]) == model.labels_[2:3]
    (1.0, array([ True]))
    """

    def __init__(self, n_clusters: int = 8, *, init: Any = "k-means++", n_init: Union[int, str] = "auto",
                 max_iter: int = 300, tol: float = 1e-4, verbose: int = 0, random_state: Any = None,
                 copy_x: bool = True, algorithm: str = "lloyd", metric: str = "euclidean",
                 device: Device = None) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.copy_x = copy_x
        self.algorithm = algorithm
        self.metric = metric
        self.device = device


class MiniBatchKMeans(_KMeans):
    """k-means by batches of random rows, approximate: parameters and results of KMeans, and these.

    batch_size: rows of a batch. max_iter: times that as many rows are drawn as there are; all of them are, but
    where tol is above 0 and ends them. n_steps_: batches; n_iter_: passes, as max_iter counts them.
    """

    _runs = 3

    def __init__(self, n_clusters: int = 8, *, init: Any = "k-means++", max_iter: int = 5, batch_size: int = 1024,
                 verbose: int = 0, random_state: Any = None, tol: float = 0.0, n_init: Union[int, str] = "auto",
                 metric: str = "euclidean", device: Device = None) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.verbose = verbose
        self.random_state = random_state
        self.tol = tol
        self.n_init = n_init
        self.metric = metric
        self.device = device

    def _batch(self, rows: int) -> Tuple[int, int]:
        batch = min(_integer(self, "batch_size"), rows)
        return batch, max(_integer(self, "max_iter") * rows // batch, 1)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Clusters n_samples x n_features rows. sample_weight: of the rows, at least 0."""
        super().fit(X, y, sample_weight)
        self.n_steps_ = self.n_iter_
        self.n_iter_ = -(-self.n_steps_ * self._batch(len(self.labels_))[0] // len(self.labels_))
        return self

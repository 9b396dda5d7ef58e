"""Runs clpipe, and reads and extends its files.

    report = clpipe.run("photos", output="photos.h5", k=20)
    with report.open() as f:
        f.images(); f.labels("kmeans"); f.feature()
    clpipe.write_feature("photos.h5", "clip", vectors)
    clpipe.FeatureDataset("photos.h5", labels="kmeans")     # of torch
    clpipe.KMeans(20).fit_predict(vectors)                  # an estimator of scikit-learn

Every command is a function with the options of the command; Common has those of all. Failed is raised if the
exit status is not 0.
"""

from typing import TYPE_CHECKING, Any

from clpipe import _commands
from clpipe._commands import *  # noqa: F403
from clpipe._errors import Error, Failed
from clpipe._library import features
from clpipe._reader import File, open
from clpipe._run import Common, Report, identity
from clpipe._writer import remove, rename, write_feature

if TYPE_CHECKING:
    from clpipe._estimators import KMeans, MiniBatchKMeans, NearestNeighbors
    from clpipe._torch import FeatureDataset, ThumbnailDataset

__all__ = [*_commands.__all__, "Common", "Error", "Failed", "FeatureDataset", "File", "KMeans",
           "MiniBatchKMeans", "NearestNeighbors", "Report", "ThumbnailDataset", "features", "identity", "open",
           "remove", "rename", "write_feature"]
__version__ = "0.3.0"


def __getattr__(name: str) -> Any:
    """The datasets need torch and the estimators scikit-learn, which take their time."""
    if name in ("KMeans", "MiniBatchKMeans", "NearestNeighbors"):
        try:
            import sklearn  # noqa: F401
        except ImportError as error:
            raise ImportError(f"clpipe.{name} requires scikit-learn: pip install scikit-learn") from error
        from clpipe import _estimators
        return getattr(_estimators, name)
    if name in ("FeatureDataset", "ThumbnailDataset"):
        from clpipe import _torch
        return getattr(_torch, name)
    raise AttributeError(f"module 'clpipe' has no attribute '{name}'")

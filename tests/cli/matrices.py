"""Matrices to cluster, each with initial centroids, for the tests of correct and of bit-identical results. All
are float32 and reproducible."""

import subprocess

import h5py
import numpy

from conftest import CLPIPE, ROOT, run_clpipe

PHOTOS = ROOT / ".." / "shared" / "data" / "photos" / "labelled"


def mixture(random, n, d, k, noise=1.5):
    centres = random.normal(0, 1, (k, d))
    return centres[random.integers(0, k, n)] + noise * random.normal(0, 1, (n, d))


def spread(rows, k):
    """Every n-th row, k rows in all."""
    return rows[:: len(rows) // k][:k]


def digits(random, n):
    """Images of 28 x 28 grey values: ten shapes made of strokes, shifted by at most two pixels, with noise."""
    y, x = numpy.mgrid[0:28, 0:28]
    shapes = numpy.zeros((10, 28, 28))
    for shape in shapes:
        points = random.uniform(5, 23, (6, 2))
        for a, b in zip(points, points[1:]):
            for t in numpy.linspace(0, 1, 30):
                at = a + t * (b - a)
                shape += 40 * numpy.exp(-((x - at[0]) ** 2 + (y - at[1]) ** 2) / 3)
    images = numpy.empty((n, 28, 28))
    for i, moved in enumerate(random.integers(-2, 3, (n, 2))):
        images[i] = numpy.roll(shapes[i % 10], moved, (0, 1))
    images *= random.uniform(0.6, 1.2, (n, 28, 28))
    return images.clip(0, 255).astype(int).reshape(n, 784)


def near_ties(random, n):
    """Integer rows with a known clustering. The centres come in pairs, a and a + D, and half of the rows lie
    near the midpoint of a pair. There, a row is moved by -1, 0 or 1 along one coordinate, in which D is 2, so
    its squared distances to the two centres, which exceed 2^34, differ by -4, 0 (a tie) or 4. Every row has a
    mirror image about its centre, so the mean of each cluster is its centre. The initial centroids are the
    centres, all moved by the same integer vector orthogonal to every D, which leaves the differences of squared
    distances within a pair unchanged. Sums of squares stay below 2^53. Returns the rows, the initial centroids, the
    labels and the centres."""
    pairs, d = 16, 12
    base = 2 * random.integers(-2**20, 2**20, (pairs, d))
    base[:, 0] = 2**19 * (numpy.arange(pairs) - pairs // 2)
    apart = 2 * random.integers(2**16, 2**17, (pairs, d))
    apart[:, 8:] = 0
    apart[:, 7] = 2
    centres = numpy.stack([base, base + apart], 1).reshape(2 * pairs, d)
    rows, labels = [], []
    for i in range(n // 2):
        pair = i % pairs
        row = base[pair] + apart[pair] // 2
        step = i // pairs % 3 - 1
        row[7] += step
        row[8:] += random.integers(-1000, 1001, d - 8)
        label = 2 * pair + (step > 0)
        rows += [row, 2 * centres[label] - row]
        labels += [label, label]
    first = centres.copy()
    first[:, 8:] += random.integers(-2**12, 2**12, d - 8)
    return numpy.array(rows), first, numpy.array(labels), centres


def photos(directory):
    """Joint colour histograms of the photographs in PHOTOS, or of generated images if that folder is missing."""
    folder = PHOTOS
    if not folder.is_dir():
        folder = directory / "sample"
        subprocess.run([CLPIPE.parent / "draw_sample", folder], check=True, capture_output=True)
    result = run_clpipe("ingest", folder, "-o", "photos.h5", "--feature", "rgb:bins=8x8x8",
                        cwd=directory)
    assert result.returncode <= 1, result.stderr
    with h5py.File(directory / "photos.h5", "r") as file:
        return file["features/rgb_8x8x8"][:]


def make(name, directory, large=False):
    """Returns the rows and the initial centroids of the named matrix."""
    random = numpy.random.default_rng(sum(name.encode()))
    n = 30000 if large else 2000
    k = 40 if large else 16
    if name == "photographs":
        rows = photos(directory)
        k = min(k, len(rows) // 8)
    elif name == "mixture":
        rows = mixture(random, n, 64, k)
    elif name == "noise":
        rows = random.normal(0, 1, (n, 24))
    elif name == "duplicates":
        rows = random.normal(0, 1, (n // 20, 10))[random.zipf(1.3, n) % (n // 20)]
        return rows.astype("f4"), spread(numpy.unique(rows, axis=0), k).astype("f4")
    elif name == "integers":
        rows = random.poisson(random.integers(1, 60, (k, 30))[random.integers(0, k, n)])
    elif name == "digits":
        rows, k = digits(random, min(n // 2, 5000)), 10
    elif name == "near ties":
        rows, first = near_ties(random, n)[:2]
        return rows.astype("f4"), first.astype("f4")
    elif name == "huge":
        rows = 1e30 * mixture(random, n, 20, k)
    elif name == "tiny":
        rows = 1e-30 * mixture(random, n, 20, k)
    elif name == "subnormal":
        rows = 1e-40 * mixture(random, n, 20, k)
    elif name == "far away":
        rows = 100 + mixture(random, n, 33, k)
    elif name == "scales":
        rows = mixture(random, n, 17, k) * numpy.geomspace(1e-4, 1e4, 17)
    elif name == "one column":
        rows = numpy.sort(random.normal(0, 1, (n, 1)) ** 3, axis=0)
    rows = rows.astype("f4")
    return rows, spread(rows, k)


NAMES = ["photographs", "mixture", "noise", "duplicates", "integers", "digits", "near ties", "huge",
         "tiny", "subnormal", "far away", "scales", "one column"]


def save(name, directory, large=False):
    """Writes rows.npy and first.npy to the directory; returns both arrays."""
    rows, first = make(name, directory, large)
    numpy.save(directory / "rows.npy", rows)
    numpy.save(directory / "first.npy", first)
    return rows, first

"""The features of docs/features.md in numpy: scaling, cells and levels, values."""
import numpy
from PIL import Image, ImageOps


def upright(path):
    return numpy.asarray(ImageOps.exif_transpose(Image.open(path)).convert("RGB"))


def weights(scaled, size):
    """What each scaled column shares with each column, in units of 1 / scaled columns."""
    x, i = numpy.arange(scaled)[:, None], numpy.arange(size)[None, :]
    low = numpy.maximum(i * scaled, x * size)
    high = numpy.minimum((i + 1) * scaled, (x + 1) * size)
    return numpy.maximum(0, high - low)


def scale(p, side):
    """The box filter: the longer side becomes `side`; never enlarged."""
    H, W = p.shape[:2]
    longer = max(H, W)
    if longer <= side:
        return p
    h, w = (max(1, (n * side + longer // 2) // longer) for n in (H, W))
    rows = numpy.tensordot(weights(h, H), p.astype(numpy.int64), 1)
    sums = numpy.tensordot(weights(w, W), rows, (1, 1)).transpose(1, 0, 2)
    return ((sums + H * W // 2) // (H * W)).astype(numpy.uint8)


def cells(values, rows, columns):
    """The parts of an array over the upright picture that lie in each cell, row by row."""
    h, w = values.shape[:2]
    y = numpy.arange(h) * rows // max(1, h)
    x = numpy.arange(w) * columns // max(1, w)
    for r in range(rows):
        for c in range(columns):
            yield values[y == r][:, x == c]


def histograms(bins, count, grids, weight=None):
    """Histograms of an array of bins, cell by cell, of each grid; bins[..., c] are those of channel c."""
    channels = bins.reshape(*bins.shape[:2], -1)
    weight = numpy.ones(bins.shape[:2], int) if weight is None else weight
    both = numpy.concatenate([channels, weight[..., None]], 2)
    return numpy.concatenate([
        numpy.bincount(cell[..., c].ravel(), cell[..., -1].ravel(), count).astype(numpy.uint64)
        for rows, columns in grids for cell in cells(both, rows, columns)
        for c in range(channels.shape[2])])


def values(words, bins, normalize):
    """What is stored of words: each one's share of its histogram of `bins` bins."""
    if normalize == "none":
        return words.astype(numpy.uint32)
    table = words.reshape(-1, bins).astype(float)
    sums = table.sum(1, keepdims=True)
    shares = numpy.divide(table, sums, where=sums > 0, out=numpy.zeros_like(table))
    return (numpy.sqrt(shares) if normalize == "hellinger" else shares).ravel().astype(numpy.float32)

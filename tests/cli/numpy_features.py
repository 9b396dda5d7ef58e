"""The features of docs/features.md in numpy: scaling, cells and levels, kinds, values."""
import numpy
from PIL import Image, ImageOps


def upright(path):
    return numpy.asarray(ImageOps.exif_transpose(Image.open(path)).convert("RGB"))


def weights(scaled, size):
    """The overlap of each scaled column with each original column, in units of 1 / `scaled`."""
    x, i = numpy.arange(scaled)[:, None], numpy.arange(size)[None, :]
    low = numpy.maximum(i * scaled, x * size)
    high = numpy.minimum((i + 1) * scaled, (x + 1) * size)
    return numpy.maximum(0, high - low)


def scale(p, side):
    """Scales with a box filter so that the longer side becomes `side`; never enlarges."""
    H, W = p.shape[:2]
    longer = max(H, W)
    if longer <= side:
        return p
    h, w = (max(1, (n * side + longer // 2) // longer) for n in (H, W))
    rows = numpy.tensordot(weights(h, H), p.astype(numpy.int64), 1)
    sums = numpy.tensordot(weights(w, W), rows, (1, 1)).transpose(1, 0, 2)
    return ((sums + H * W // 2) // (H * W)).astype(numpy.uint8)


def cells(values, rows, columns):
    """Yields the part of an array of pixels that belongs to each cell, row by row."""
    h, w = values.shape[:2]
    y = numpy.arange(h) * rows // max(1, h)
    x = numpy.arange(w) * columns // max(1, w)
    for r in range(rows):
        for c in range(columns):
            yield values[y == r][:, x == c]


def histograms(bins, count, grids, weight=None):
    """The histograms of an array of bins, for each cell of each grid; bins[..., c] belongs to channel c."""
    channels = bins if bins.ndim == 3 else bins[..., None]
    weight = numpy.ones(bins.shape[:2], int) if weight is None else weight
    both = numpy.concatenate([channels, weight[..., None]], 2)
    return numpy.concatenate([
        numpy.bincount(cell[..., c].ravel(), cell[..., -1].ravel(), count).astype(numpy.uint64)
        for rows, columns in grids for cell in cells(both, rows, columns)
        for c in range(channels.shape[2])])


def values(words, bins, normalize):
    """The values stored for histograms of `bins` bins each: by default, the share of each bin in its histogram."""
    if normalize == "none":
        return words.astype(numpy.uint32)
    table = words.reshape(-1, bins).astype(float)
    sums = table.sum(1, keepdims=True)
    shares = numpy.divide(table, sums, where=sums > 0, out=numpy.zeros_like(table))
    return (numpy.sqrt(shares) if normalize == "hellinger" else shares).ravel().astype(numpy.float32)


# --- kinds: the bins and weights of the counted pixels, and the number of bins ---------------------

def rgb(p, bins):
    return p.astype(int) * bins >> 8, bins, None


def luma(p):
    p = p.astype(int)
    return 77 * p[..., 0] + 150 * p[..., 1] + 29 * p[..., 2] + 128 >> 8


def gray(p, bins):
    return luma(p) * bins >> 8, bins, None


def lab(p, bins):
    c = numpy.arange(256) / 255
    linear = numpy.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    r, g, b = numpy.moveaxis(numpy.floor(4095 * linear + 0.5).astype(int)[p], 2, 0)
    roots = numpy.floor(1024 * numpy.cbrt(numpy.arange(4096) / 4096) + 1e-9).astype(int)
    roots[:37] = numpy.arange(37) * 1993 + 144630 >> 10
    x, y, z = (roots[i * r + j * g + k * b + 2048 >> 12] for i, j, k in
               ((1777, 1541, 778), (871, 2929, 296), (73, 448, 3575)))
    l = numpy.clip((116 * y - 16384) * 655 >> 18, 0, 255)
    a = numpy.clip(128 + (1000 * (x - y) >> 10), 0, 255)
    b = numpy.clip(128 + (400 * (y - z) >> 10), 0, 255)
    return (((l * bins[0] >> 8) * bins[1] + (a * bins[1] >> 8)) * bins[2] + (b * bins[2] >> 8),
            bins[0] * bins[1] * bins[2], None)


def around(v, dy, dx):
    """For every pixel that has eight neighbours, the value dy below and dx to the right of it."""
    h, w = max(0, v.shape[0] - 2), max(0, v.shape[1] - 2)
    return v[1 + dy:, 1 + dx:][:h, :w]


CLOCKWISE = [(-1, -1), (-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1)]


def lbp_codes(v):
    codes = numpy.zeros_like(around(v, 0, 0))
    for dy, dx in CLOCKWISE:
        codes = 2 * codes + (around(v, dy, dx) >= around(v, 0, 0))
    return codes


def uniform_classes():
    classes = numpy.full(256, 58)
    for ones in range(1, 8):
        for lowest in range(8):
            classes[sum(1 << (lowest + i) % 8 for i in range(ones))] = 8 * (ones - 1) + lowest
    classes[0], classes[255] = 56, 57
    return classes


def lbp(p, _):
    return uniform_classes()[lbp_codes(luma(p))], 59, None


def oplbp(p, _):
    r, g, b = (p[..., c].astype(int) for c in range(3))
    codes = [lbp_codes(v) for v in (luma(p), r - g, r + g - 2 * b)]
    return uniform_classes()[numpy.stack(codes, 2)], 59, None


def difference(v):
    return around(v, 0, 1) - around(v, 0, -1), around(v, 1, 0) - around(v, -1, 0)


def sobel(v):
    weight = {-1: 1, 0: 2, 1: 1}
    return (sum(weight[i] * (around(v, i, 1) - around(v, i, -1)) for i in weight),
            sum(weight[i] * (around(v, 1, i) - around(v, -1, i)) for i in weight))


BORDERS = {18: [(12698, 2239), (13775, 7953), (2013, 2399), (3766, 10347), (0, 1), (-3766, 10347),
                (-2013, 2399), (-13775, 7953), (-12698, 2239)],
           8: [(13860, 5741), (5741, 13860), (-5741, 13860), (-13860, 5741)]}


def direction(gx, gy, n):
    """The nearest of n directions."""
    lower = (gy < 0) | (gy == 0) & (gx < 0)
    x, y = numpy.where(lower, -gx, gx), numpy.where(lower, -gy, gy)
    return (sum((a * y >= b * x).astype(int) for a, b in BORDERS[n]) + lower * (n // 2)) % n


def hog(p, _):
    gx, gy = difference(luma(p))
    return direction(gx, gy, 18), 18, numpy.sqrt(gx * gx + gy * gy).astype(int)


def gradient(p, _):
    gx, gy = sobel(luma(p))
    k = sum((gx * gx + gy * gy >= least * least).astype(int) for least in (8, 16, 32, 64, 128))
    return numpy.where(k == 0, 40, 8 * (k - 1) + direction(gx, gy, 8)), 41, None


def hsv(p):
    r, g, b = (p[..., c].astype(int) for c in range(3))
    M, d = p.max(2).astype(int), p.max(2).astype(int) - p.min(2)
    s = numpy.where(M == 0, 0, (255 * d + M // 2) // numpy.maximum(M, 1))
    D = numpy.maximum(d, 1)
    h = numpy.where(r == M, 60 * (g - b) // D,
                    numpy.where(g == M, 120 + 60 * (b - r) // D, 240 + 60 * (r - g) // D)) % 360
    return numpy.where(d == 0, 0, h), s, M


def coledge(p, _):
    h, s, v = (around(plane, 0, 0) for plane in hsv(p))
    zone = numpy.where(v < 32, 0, numpy.where(
        s < 51, 1 + (v >= 107) + (v >= 182), 4 + h * 8 // 360 * 4 + 2 * (s >= 128) + (v >= 153)))
    gx, gy = sobel(luma(p))
    n = gx * gx + gy * gy
    edge = numpy.where(n < 32 * 32, 0, 1 + 4 * (n >= 96 * 96) + direction(gx, gy, 8) % 4)
    return 9 * zone + edge, 324, None


KINDS = {function.__name__: function for function in
         (rgb, gray, lab, lbp, oplbp, hog, gradient, coledge)}


def grids_of(text):
    if "x" in text:
        return [tuple(int(n) for n in text.split("x"))]
    return [(int(n), int(n)) for n in text.split("+")]


def feature(p, spec):
    """The row that is stored for an upright picture and a canonical spec."""
    kind, options = spec.split(":", 1)
    options = dict(option.split("=", 1) for option in options.split(","))
    if "scale" in options:
        p = scale(p, int(options["scale"]))
    bins = [int(n) for n in options.get("bins", "0").split("x")]
    bins, count, weight = KINDS[kind](p, bins if len(bins) > 1 else bins[0])
    words = histograms(bins, count, grids_of(options.get("levels") or options["grid"]), weight)
    return values(words, count, options["normalize"])

"""The descriptors of docs/features.md and their encoding with a codebook, in numpy."""
import numpy

from numpy_features import luma, scale

KINDS = {  # sides of squares, step
    "dct": ([8], 8), "sift": ([10, 16, 25, 37], 5), "opsift": ([19], 7), "patch": ([6], 3)}


def places(size, side, step):
    """The positions of the squares along an axis of `size` pixels."""
    if size < side:
        return numpy.zeros(0, int)
    return (size - side) % step // 2 + step * numpy.arange((size - side) // step + 1)


def root(q):
    r = numpy.sqrt(q.astype(float)).astype(numpy.int64)
    return r - (r * r > q) + ((r + 1) ** 2 <= q)


def squares(p, side, step):
    """The squares of an array of pixels, row by row, as (number, side, side, channels)."""
    y, x = (places(n, side, step)[:, None] + numpy.arange(side) for n in p.shape[:2])
    return p[y[:, None, :, None], x[None, :, None, :]].reshape(-1, side, side, p.shape[2])


def dct(p):
    t = numpy.array([[181] * 8, [251, 213, 142, 50, -50, -142, -213, -251],
                     [237, 98, -98, -237, -237, -98, 98, 237],
                     [213, -50, -251, -142, 142, 251, 50, -213]])
    y = luma(p)
    planes = numpy.stack([y - 128, p[..., 2] - y, p[..., 0] - y], 2)
    c = numpy.einsum("vj,njik,ui->nkvu", t, squares(planes, 8, 8), t)
    low = [(0, 0), (0, 1), (1, 0), (2, 0), (1, 1), (0, 2), (0, 3), (1, 2), (2, 1), (3, 0)]
    kept = numpy.stack([c[:, k, v, u] for k in range(3) for v, u in (low if k == 0 else low[:3])], 1)
    return 128 + numpy.sign(kept) * numpy.minimum(127, root(numpy.abs(kept) >> 14))


def patch(p):
    return squares(p, 6, 3).reshape(-1, 108)


def differences(v):
    """The differences between the horizontal and between the vertical neighbours; border pixels are repeated."""
    w = numpy.pad(v.astype(int), 1, mode="edge")
    return w[1:-1, 2:] - w[1:-1, :-2], w[2:, 1:-1] - w[:-2, 1:-1]


def directions(v):
    """The components of each gradient along the nearest two of eight directions."""
    dx, dy = differences(v)
    across, down = numpy.abs(dx), numpy.abs(dy)
    more, less = numpy.maximum(across, down), numpy.minimum(across, down)
    straight = numpy.where(across >= down, numpy.where(dx >= 0, 0, 4), numpy.where(dy >= 0, 2, 6))
    slant = numpy.where(dx >= 0, numpy.where(dy >= 0, 1, 7), numpy.where(dy >= 0, 3, 5))
    d = numpy.arange(8)
    return (numpy.where(straight[..., None] == d, (more - less)[..., None], 0) +
            numpy.where(slant[..., None] == d, numpy.minimum(255, 181 * less >> 7)[..., None], 0))


def cells(gradients, side, step):
    """Sums over the 4x4 cells of every square, as (number of squares, 16 * length of the last axis)."""
    b, size = (side - 1) // 3, gradients.shape[:2]
    first = [places(n, side, step) for n in size]
    down, across = (
        numpy.maximum(0, b - numpy.abs(numpy.arange(n) - (at[:, None] + b * numpy.arange(4))[..., None]))
        for n, at in zip(size, first))
    sums = numpy.einsum("rjy,cix,yxd->rcjid", down, across, gradients, optimize=True)
    return sums.reshape(len(first[0]) * len(first[1]), 16 * gradients.shape[2])


def roots_of_shares(v):
    total = v.sum(1)
    shift = numpy.array([int(n).bit_length() - 16 if n else 0 for n in total], int)
    right, left = numpy.maximum(shift, 0), numpy.maximum(-shift, 0)
    r = numpy.where(total > 0, (65025 << 15) // numpy.maximum(1, total >> right << left), 0)
    return root((v >> right[:, None] << left[:, None]) * r[:, None] >> 15)


def sift(p):
    gradients = directions(luma(p))
    return numpy.concatenate([roots_of_shares(cells(gradients, side, 5)) for side in KINDS["sift"][0]])


def opsift(p):
    r, g, b = (p[..., c].astype(int) for c in range(3))
    channels = luma(p), r - g + 256 >> 1, r + g - 2 * b + 512 >> 2
    return numpy.concatenate([roots_of_shares(cells(directions(v), 19, 7)) for v in channels], 1)


def describe(kind, p):
    sides, step = KINDS[kind]
    if not any(len(places(p.shape[0], s, step)) and len(places(p.shape[1], s, step)) for s in sides):
        return None
    return globals()[kind](p)


def nearest(codebook, descriptors):
    """The projected descriptors and their words. All numbers are integers, so float64 is exact."""
    p = descriptors.astype(float) @ codebook["matrix"].T + codebook["offset"]
    p = numpy.clip(numpy.floor(p / 2.0 ** codebook["shift"][0]), -127, 127)
    w = codebook["word"].astype(float)
    return p, numpy.argmin((w * w).sum(1) - 2 * p @ w.T, 1)


def fisher(codebook, p, words):
    m, d, w = codebook["mean"], codebook["deviation"], numpy.sqrt(codebook["share"])[:, None]
    own = (words == numpy.arange(len(m))[:, None]).astype(float)
    n, S, Q = own.sum(1)[:, None], own @ p, own @ (p * p)
    N = float(len(p))
    f = numpy.concatenate([(S - n * m) / (N * d * w),
                           ((Q - 2 * m * S + n * m * m) / (d * d) - n) / (N * w * numpy.sqrt(2.0))]).ravel()
    length = numpy.sqrt(numpy.add.accumulate(numpy.abs(f))[-1])
    return (numpy.copysign(numpy.sqrt(numpy.abs(f)), f) / length if length > 0 else 0 * f).astype(numpy.float32)


def row(picture, spec, codebook):
    """The row that is stored for an upright picture and a feature with this spec."""
    kind, rest = spec.split(":")
    options = dict(option.split("=") for option in rest.split(","))
    k = len(codebook["word"])
    descriptors = describe(kind, scale(picture, int(options["scale"])))
    if descriptors is None:
        return numpy.zeros(codebook["word"].size * 2 if "fisher" in options else k,
                           numpy.uint32 if options["normalize"] == "none" else numpy.float32)
    p, words = nearest(codebook, descriptors)
    if "fisher" in options:
        return fisher(codebook, p, words)
    counts = numpy.bincount(words, minlength=k)
    if options["normalize"] == "none":
        return counts.astype(numpy.uint32)
    shares = counts / counts.sum()
    return (numpy.sqrt(shares) if options["normalize"] == "hellinger" else shares).astype(numpy.float32)

"""Real photographs: each stored value equals that of Pillow and numpy, bit for bit."""
import csv
import hashlib
import os
import subprocess

import h5py
import numpy as np
import pytest
from PIL import Image, ImageOps

CLPIPE = os.environ.get("CLPIPE", "build/release/clpipe")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PHOTOS = os.path.join(ROOT, "..", "shared", "data", "photos")

pytestmark = pytest.mark.skipif(not os.path.isdir(PHOTOS), reason="no photographs beside the project")


def clpipe(*args, expect=0, **options):
    done = subprocess.run([CLPIPE, *map(str, args)], capture_output=True, text=True, cwd=ROOT,
                          timeout=300, **options)
    assert done.returncode == expect, done.stderr
    return done


def manifest():
    with open(os.path.join(PHOTOS, "manifest.tsv"), encoding="utf-8") as file:
        return {row["path"]: row for row in csv.DictReader(file, delimiter="\t")}


MANIFEST = manifest() if os.path.isdir(PHOTOS) else {}


def paths(h5):
    return [p.decode() if isinstance(p, bytes) else p for p in h5["images/path"][:]]


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    """A result with the counts of all photographs."""
    out = tmp_path_factory.mktemp("photos") / "counts.h5"
    clpipe("ingest", PHOTOS, "-o", out, "--feature", "rgb:bins=256", "--normalize", "none")
    with h5py.File(out, "r") as h5:
        yield h5


@pytest.mark.slow
def test_all_files_are_in_order(counts):
    expected = sorted(MANIFEST, key=lambda p: p.encode())
    assert paths(counts) == expected
    bad = [r for r in counts["failures/reason"][:] if r != b"not-an-image"]
    assert bad == []


def test_counts_equal_the_manifest(counts):
    rows = counts["features/rgb_256"][:]
    compared = 0
    for path, row in zip(paths(counts), rows):
        wanted = MANIFEST[path]["hist_sha256"]
        if wanted == "-":
            continue
        assert hashlib.sha256(row.astype("<u4").tobytes()).hexdigest() == wanted, path
        compared += 1
    assert compared == 835


def test_sizes_are_upright(counts):
    for path, width, height in zip(paths(counts), counts["images/width"][:], counts["images/height"][:]):
        row = MANIFEST[path]
        stored = int(row["width"]), int(row["height"])
        turned = row["orientation"] in ("5", "6", "7", "8")
        assert (width, height) == (stored[::-1] if turned else stored), path


def planes(path):
    with Image.open(os.path.join(PHOTOS, path)) as image:
        upright = ImageOps.exif_transpose(image)
        return np.asarray(upright.convert("RGB")).astype(np.int64)


def bin_numbers(pixels, kind, bins):
    """Returns the bin of each pixel and the number of bins; rgb per channel has three planes."""
    r, g, b = pixels[..., 0], pixels[..., 1], pixels[..., 2]
    if kind == "rgb" and len(bins) == 1:
        n = bins[0]
        return np.stack([(c * n >> 8) + i * n for i, c in enumerate((r, g, b))], -1), 3 * n
    if kind == "rgb":
        a, m, c = bins
        return (((r * a >> 8) * m + (g * m >> 8)) * c + (b * c >> 8))[..., None], a * m * c
    if kind == "gray":
        return ((77 * r + 150 * g + 29 * b + 128 >> 8) * bins[0] >> 8)[..., None], bins[0]
    most, least = pixels.max(-1), pixels.min(-1)
    d = most - least
    s = np.where(most == 0, 0, (255 * d + most // 2) // np.maximum(most, 1))
    safe = np.maximum(d, 1)
    hue = np.where(r == most, 60 * (g - b) // safe,
                   np.where(g == most, 120 + 60 * (b - r) // safe, 240 + 60 * (r - g) // safe))
    hue = np.where(d == 0, 0, hue) % 360
    a, m, c = bins
    return ((hue * a // 360 * m + (s * m >> 8)) * c + (most * c >> 8))[..., None], a * m * c


def expected(pixels, kind, bins, grid, normalize):
    rows, columns = grid
    height, width = pixels.shape[:2]
    numbers, per_cell = bin_numbers(pixels, kind, bins)
    cell = (np.arange(height) * rows // height)[:, None] * columns + np.arange(width) * columns // width
    flat = cell[..., None] * per_cell + numbers
    count = np.bincount(flat.ravel(), minlength=rows * columns * per_cell)
    if normalize == "none":
        return count.astype(np.uint32)
    inside = np.bincount(cell.ravel(), minlength=rows * columns).repeat(per_cell)
    share = np.divide(count, inside, out=np.zeros(count.shape), where=inside > 0)
    return (np.sqrt(share) if normalize == "hellinger" else share).astype(np.float32)


FEATURES = [
    ("rgb_12", "rgb", (12,), (1, 1), "l1"),
    ("rgb_100_3x3", "rgb", (100,), (3, 3), "none"),
    ("rgb_8x8x8", "rgb", (8, 8, 8), (1, 1), "hellinger"),
    ("rgb_5x7x3_2x5", "rgb", (5, 7, 3), (2, 5), "l1"),
    ("gray_10", "gray", (10,), (1, 1), "none"),
    ("gray_256_4x4", "gray", (256,), (4, 4), "hellinger"),
    ("hsv_8x4x4", "hsv", (8, 4, 4), (1, 1), "l1"),
    ("hsv_12x3x5_3x2", "hsv", (12, 3, 5), (3, 2), "none"),
]


@pytest.mark.slow
def test_every_feature_equals_numpy(tmp_path):
    """Several features from one upload, of ordinary, large and rotated photographs."""
    chosen = [p for p in MANIFEST if p.startswith("oriented/")]
    labelled = [p for p in MANIFEST if p.startswith("labelled/")]
    chosen += labelled[::40]
    chosen += ["large/flower-440.jpg", "large/flower-grey.jpg", "large/astronaut.png",
               "large/coffee-palette.png", "large/dog-phone-orientation6.jpg"]
    listing = tmp_path / "list"
    listing.write_text("".join(os.path.join(PHOTOS, p) + "\n" for p in chosen))
    out = tmp_path / "f.h5"
    specs = []
    for name, kind, bins, grid, normalize in FEATURES:
        specs += ["--feature", "%s:bins=%s,grid=%dx%d,normalize=%s" %
                  (kind, "x".join(map(str, bins)), *grid, normalize)]
    clpipe("ingest", "@%s" % listing, "-o", out, "--memory", "64M", *specs)
    with h5py.File(out, "r") as h5:
        assert len(paths(h5)) == len(chosen)
        for i, path in enumerate(chosen):
            pixels = planes(path)
            for name, kind, bins, grid, normalize in FEATURES:
                wanted = expected(pixels, kind, bins, grid, normalize)
                stored = h5["features/" + name][i]
                assert stored.dtype == wanted.dtype
                assert stored.tobytes() == wanted.tobytes(), (path, name)


def test_identity_is_the_same_for_any_threads_and_memory(tmp_path):
    source = os.path.join(PHOTOS, "labelled", "daisy")
    digests = set()
    for i, options in enumerate((["--threads", 1], ["--threads", 2, "--memory", "16M"],
                                 ["--threads", 7, "--memory", "512M"])):
        out = tmp_path / ("%d.h5" % i)
        clpipe("ingest", source, "-o", out, *options, env=dict(os.environ, SOURCE_DATE_EPOCH="0"))
        digests.add(clpipe("info", out, "--digest").stdout.strip())
    assert len(digests) == 1

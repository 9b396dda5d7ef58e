"""The kind quality: all numbers compared with numpy, flags, and the commands that show them."""
import csv
import json

import h5py
import numpy
import pytest
from PIL import Image, ImageDraw, ImageFilter

from conftest import check_one_error, draw_photos, run_clpipe
from numpy_features import scale, upright

NAMES = ("p1 p5 p50 p95 p99 contrast entropy detail saturation coloured black white edges sharpness "
         "sharpness_coarse left top right bottom").split()


def luma_of(p):
    return (77 * p[..., 0] + 150 * p[..., 1] + 29 * p[..., 2] + 128) >> 8


def entropy(count, without, everything):
    count = numpy.where(without, 0, count)
    n = count.sum()
    share = count[count > 0] / n if n else numpy.zeros(0)
    return -(share * numpy.log2(share)).sum() * 1000 if 50 * n >= everything else 0


def sharpness(luma, apart):
    """Edges in rows and columns of groups of nine rows: their number, the number of spans, and steps divided
    by spans."""
    spans, steps = [], []
    for y in range(4, len(luma) - 4, 24):
        across = [luma[y, i * apart:luma.shape[1] - (4 - i) * apart] for i in range(5)] if luma.shape[1] > 4 * apart else []
        down = [luma[y + (i - 2) * apart] for i in range(5)]
        for taps in filter(len, (across, down)):
            taps = numpy.array(taps)
            spans.append(abs(taps[4] - taps[0]))
            steps.append(abs(numpy.diff(taps, axis=0)).max(0))
    spans, steps = (numpy.concatenate(both) if both else numpy.zeros(0, int) for both in (spans, steps))
    value = 0
    for least in (16, 32, 64):
        edge = spans >= least
        if edge.sum() >= 12 and edge.sum() * 400 >= len(spans):
            value = steps[edge].sum() * 1000 // spans[edge].sum()
    return (spans >= 16).sum() * 10000 // max(1, len(spans)), value


def border(p):
    """The number of lines from the top that equal the first pixel."""
    differs = (abs(luma_of(p) - luma_of(p[0, 0])) > 8) | (abs(p - p[0, 0]).max(-1) > 40)
    n = 0
    while n < len(p) and not differs[n].any():
        n += 1
    return n if n + 3 < len(p) and 2 * differs[n + 3].sum() >= p.shape[1] else 0


def quality(p):
    p = scale(p, 256).astype(int)
    some = p[::4]
    luma, chroma = luma_of(some), some.max(-1) - some.min(-1)
    n = luma.size
    count = numpy.bincount(luma.ravel(), minlength=256)
    tones = numpy.arange(256)
    spread = n * (luma ** 2).sum() - luma.sum() ** 2
    edges, fine = sharpness(luma_of(p), 1)
    turned = p.transpose(1, 0, 2)
    sides = [border(turned), border(p), border(turned[::-1]), border(p[::-1])]
    return [*(numpy.argmax(100 * count.cumsum() >= hundredths * n) for hundredths in (1, 5, 50, 95, 99)),
            int(numpy.sqrt(10000 * spread // n ** 2)), entropy(count, tones < 0, n),
            entropy(count, abs(tones - count.argmax()) <= 4, n), chroma.sum() * 100 // n,
            (chroma >= 16).sum() * 10000 // n, count[:2].sum() * 10000 // n, count[254:].sum() * 10000 // n,
            edges, fine, sharpness(luma_of(p), 2)[1],
            *(side * 1000 // size for side, size in zip(sides, [p.shape[1], p.shape[0]] * 2))]


def noise(shape, seed=0):
    return Image.fromarray(numpy.random.default_rng(seed).integers(0, 256, (*shape, 3), "uint8"))


def scene(size=(480, 360)):
    """Discs and boxes of many colours with some texture."""
    image, numbers = Image.new("RGB", size, (120, 150, 90)), numpy.random.default_rng(1)
    for i in range(80):
        x, y, r = numbers.integers(0, size[0]), numbers.integers(0, size[1]), numbers.integers(8, 50)
        colour = tuple(int(v) for v in numbers.integers(0, 256, 3))
        (ImageDraw.Draw(image).ellipse if i % 2 else ImageDraw.Draw(image).rectangle)((x, y, x + r, y + r), fill=colour)
    texture = numpy.random.default_rng(2).integers(-20, 21, (size[1], size[0], 1))
    return Image.fromarray((numpy.asarray(image).astype(int) + texture).clip(0, 255).astype("uint8"))


def flags_of(path):
    table = run_clpipe("export", path, "--what", "quality").stdout
    return {row["path"]: set(row["flags"].split()) for row in csv.DictReader(table.splitlines())}


@pytest.fixture(scope="module")
def flagged(tmp_path_factory):
    """One picture for each flag, and some that only resemble such pictures."""
    where = tmp_path_factory.mktemp("flagged")
    (where / "p").mkdir()
    plain = scene()
    night = Image.new("RGB", (480, 360), (5, 5, 7))
    night.paste(plain.resize((120, 90)), (300, 120))
    paper = Image.new("RGB", (480, 360), (255, 255, 255))
    mask = Image.new("L", (160, 160))
    ImageDraw.Draw(mask).ellipse((0, 0, 159, 159), fill=255)
    paper.paste(plain.crop((0, 0, 160, 160)), (100, 80), mask)
    sky = Image.new("RGB", (480, 360), (150, 190, 230))
    sky.paste(plain.crop((0, 0, 480, 150)), (0, 210))
    framed = Image.new("RGB", (480, 360), (250, 250, 250))
    framed.paste(plain.crop((0, 0, 440, 320)), (20, 20))
    pictures = {"plain": plain, "dark": plain.point(lambda v: v * 0.25), "light": plain.point(lambda v: 245 + v // 26),
                "low-contrast": plain.point(lambda v: 110 + v // 12), "blurry": plain.filter(ImageFilter.GaussianBlur(6)),
                "low-information": Image.new("RGB", (480, 360), (90, 120, 200)), "grey": plain.convert("L").convert("RGB"),
                "bordered": framed, "odd-aspect": plain.crop((0, 0, 480, 100)), "odd-size": plain.resize((48, 36)),
                "night": night, "paper": paper, "sky": sky}
    for name, image in pictures.items():
        image.save(where / "p" / f"{name}.png")
    for i in range(8):
        plain.rotate(5 * i).crop((60, 60, 420, 300)).resize((480, 360)).save(where / "p" / f"more-{i}.png")
    assert run_clpipe("ingest", where / "p", "-o", where / "q.h5", "--feature", "rgb", "--quality", "-q").returncode == 0
    return where


def test_every_number_equals_numpy(tmp_path):
    (tmp_path / "p").mkdir()
    shapes = [(1, 1), (1, 300), (300, 1), (9, 5), (8, 40), (33, 4), (40, 61), (200, 257), (400, 901), (512, 384)]
    for i, shape in enumerate(shapes):
        image = noise(shape, i) if i % 2 else scene(shape[::-1]).filter(ImageFilter.GaussianBlur(i))
        if i in (6, 9):
            frame = Image.new("RGB", (image.width + 30, image.height + 44), (20, 200, 30))
            frame.paste(image, (12, 22))
            image = frame
        image.save(tmp_path / "p" / f"{i}.png", exif=Image.Exif() if i < 9 else b"Exif\0\0MM\0*\0\0\0\b\0\1\1\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0")
    assert run_clpipe("ingest", tmp_path / "p", "-o", tmp_path / "q.h5", "--feature", "quality", "-q").returncode == 0
    with h5py.File(tmp_path / "q.h5") as file:
        rows, paths = file["features/quality"][:], file["images/path"].asstr()[:]
        assert rows.dtype == "u4"
        for path, row in zip(paths, rows):
            wanted = quality(upright(tmp_path / "p" / path))
            for name, got, want in zip(NAMES, row, wanted):
                slack = 2 if name in ("entropy", "detail") else 0  # a logarithm with 16 bits
                assert abs(int(got) - want) <= slack, (path, name, got, want)
        assert rows[-1][-4:].all() and paths[-1] == "9.png"


def test_pictures_have_only_their_flag(flagged):
    flags = flags_of(flagged / "q.h5")
    implied = {"dark": {"low-contrast"}, "light": {"low-contrast", "low-information", "grey"},
               "low-contrast": {"low-information", "grey"}, "low-information": {"low-contrast"}}
    for path, found in flags.items():
        name = path[:-4]
        if name in NAMES or name in implied or name in ("blurry", "grey", "bordered", "odd-aspect", "odd-size"):
            assert name in found and found <= {name} | implied.get(name, set()), path
        else:
            assert not found, path


def test_thresholds(tmp_path):
    """Pictures one unit below and above each threshold, where such pictures can be drawn."""
    def shaded(low, high, size=(200, 200)):
        """Half of the pixels have each tone, so that these are percentiles 5 and 95."""
        return Image.fromarray(numpy.repeat([[low] * (size[0] // 2) + [high] * (size[0] // 2)], size[1], axis=0).astype("u1"))
    pictures = {  # name: picture, flag, whether it has the flag
        "dark-83": (shaded(0, 83), "dark", True), "dark-84": (shaded(0, 84), "dark", False),
        "light-239": (shaded(239, 255), "light", True), "light-238": (shaded(238, 255), "light", False),
        "contrast-39": (shaded(100, 139), "low-contrast", True), "contrast-40": (shaded(100, 140), "low-contrast", False),
        "aspect-69": (shaded(50, 200, (200, 69)), "odd-aspect", True),
        "aspect-70": (shaded(50, 200, (200, 70)), "odd-aspect", False),
        "aspect-high": (shaded(50, 200, (68, 200)), "odd-aspect", True),
        "aspect-less-high": (shaded(50, 200, (70, 200)), "odd-aspect", False)}
    for name, (image, _, _) in pictures.items():
        image.convert("RGB").save(tmp_path / f"{name}.png")
    assert run_clpipe("ingest", tmp_path, "-o", tmp_path / "q.h5", "--feature", "quality", "-q").returncode == 0
    flags = flags_of(tmp_path / "q.h5")
    for name, (_, flag, has) in pictures.items():
        assert (flag in flags[f"{name}.png"]) == has, (name, flags[f"{name}.png"])


def test_commands_that_show_flags(flagged):
    file = flagged / "q.h5"
    info = run_clpipe("info", file).stdout
    assert "1 odd-aspect" in info and "1 blurry" in info
    counts = json.loads(run_clpipe("info", file, "--json", "-").stdout)["flags"]
    assert counts["odd-size"] == 1 and "outlier" not in counts
    chosen = run_clpipe("select", file, "100", "--method", "random", "--without", "dark,blurry", "--json", "-")
    report = json.loads(chosen.stdout)
    assert report["flagged"] == 2 and report["chosen"] == report["images"] - 2
    listed = run_clpipe("export", file, "--what", "selection").stdout
    assert "dark.png" not in listed and "blurry.png" not in listed and "grey.png" in listed


def test_missing_or_unknown_flags(flagged, tmp_path):
    file = flagged / "q.h5"
    check_one_error(run_clpipe("select", file, "5", "--method", "random", "--without", "outlier"), 2, "similar --all")
    check_one_error(run_clpipe("select", file, "5", "--method", "random", "--without", "dim"), 2, "'dim'", "dark")
    draw_photos(tmp_path / "p", 3)
    assert run_clpipe("ingest", tmp_path / "p", "-o", tmp_path / "f.h5", "--feature", "rgb", "-q").returncode == 0
    check_one_error(run_clpipe("select", tmp_path / "f.h5", "5", "--method", "random", "--without", "dark"), 2,
                    "--add --quality")
    check_one_error(run_clpipe("ingest", tmp_path / "p", "-o", tmp_path / "g.h5", "--quality", "--decode-scale", "2"), 2,
                    "--decode-scale 2")
    check_one_error(run_clpipe("ingest", tmp_path / "p", "-o", tmp_path / "f.h5", "--add"), 2,
                    "--add requires --feature, --preset or --quality")
    added = run_clpipe("ingest", tmp_path / "p", "-o", tmp_path / "f.h5", "--quality", "--add")
    assert added.returncode == 0 and "next        clpipe cluster " in added.stdout, added.stderr
    assert "dark" in run_clpipe("info", tmp_path / "f.h5", "--json", "-").stdout


def test_an_unfinished_run_with_quality_is_resumed(tmp_path):
    draw_photos(tmp_path / "p", 3)
    (tmp_path / "p" / "z.png").write_bytes(b"none")
    command = ["ingest", tmp_path / "p", "-o", tmp_path / "f.h5", "--feature", "rgb", "--quality", "-q"]
    assert run_clpipe(*command, "--strict").returncode == 1
    resumed = run_clpipe(*command)
    assert resumed.returncode == 1 and (tmp_path / "f.h5").exists(), resumed.stderr
    with h5py.File(tmp_path / "f.h5") as file:
        assert set(file["features"]) == {"rgb_256", "quality"}
    # An update may repeat options that quality does not have.
    update = ["ingest", tmp_path / "p", "-o", tmp_path / "f.h5", "-q", "--normalize"]
    assert run_clpipe(*update, "l1").returncode == 1
    check_one_error(run_clpipe(*update, "hellinger"), 2, "--normalize differs", "rgb_256 is rgb:")


def test_quality_is_not_used_for_comparison(flagged):
    file = flagged / "q.h5"
    assert run_clpipe("similar", file, flagged / "p" / "plain.png").returncode == 0
    assert run_clpipe("export", file, "--what", "features").stdout.startswith("path,source,rgb_256_0,")
    clustered = run_clpipe("cluster", file, "-k", "2", "-o", flagged / "c.h5", "--json", "-")
    assert json.loads(clustered.stdout)["feature"] == "rgb_256"


@pytest.mark.deep
def test_outliers_by_stored_neighbours(tmp_path):
    (tmp_path / "p").mkdir()
    for i in range(12):
        scene().rotate(3 * i).crop((80, 80, 400, 280)).save(tmp_path / "p" / f"{i:02}.png")
    Image.new("RGB", (320, 200), (255, 0, 255)).save(tmp_path / "p" / "99.png")
    assert run_clpipe("ingest", tmp_path / "p", "-o", tmp_path / "f.h5", "--feature", "rgb", "-q").returncode == 0
    assert run_clpipe("similar", tmp_path / "f.h5", "--all", "-q").returncode == 0
    assert [path for path, flags in flags_of(tmp_path / "f.h5").items() if "outlier" in flags] == ["99.png"]

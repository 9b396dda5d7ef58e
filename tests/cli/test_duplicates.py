"""clpipe duplicates and its perceptual codes, which numpy reproduces with the formula of docs/features.md. Tests
groups of equal bytes, of equal pixels and of near copies, the choice of the picture to keep, hostile names, missing
pictures and files without codes."""
import csv
import json
import os
import re
import shutil
from pathlib import Path

import h5py
import numpy
import pytest
from PIL import Image, ImageDraw, ImageFilter, ImageOps

from conftest import ROOT, check_one_error, run_clpipe


def formula():
    """The function `code` from the documentation."""
    text = (Path(ROOT) / "docs" / "features.md").read_text()
    block = re.search(r"## Perceptual codes.*?```python\n(.*?)```", text, re.S).group(1)
    names = {"numpy": numpy}
    exec(block, names)
    return names["code"]


def scene(seed, width=300, height=220):
    """A picture with distinct structure at every scale."""
    random = numpy.random.default_rng(seed)
    image = Image.new("RGB", (width, height), tuple(random.integers(60, 160, 3).tolist()))
    draw = ImageDraw.Draw(image)
    for i in range(60):
        x, y = random.integers(0, width), random.integers(0, height)
        r = int(random.integers(6, 70 - i))
        colour = tuple(random.integers(0, 230, 3).tolist())
        if i % 2:
            draw.ellipse((x - r, y - r, x + r, y + r), fill=colour)
        else:
            draw.rectangle((x - r, y - r // 2, x + r, y + r // 2), fill=colour)
    return image


def ingest(directory, *options):
    output = directory.parent / (directory.name + ".h5")
    result = run_clpipe("ingest", directory, "-o", output, "-q", *options)
    assert result.returncode == 0, result.stderr
    return output


def table(file, *options, expect=0):
    result = run_clpipe("duplicates", file, "--format", "csv", *options)
    assert result.returncode == expect, result.stderr
    groups = {}
    for row in csv.DictReader(result.stdout.splitlines()):
        groups.setdefault(int(row["group"]), []).append(row)
    return groups


def paths(groups):
    return [[row["path"] for row in group] for _, group in sorted(groups.items())]


@pytest.fixture(scope="module")
def album(tmp_path_factory):
    """A few scenes with copies of the first ones, and their result."""
    directory = tmp_path_factory.mktemp("duplicates") / "album"
    directory.mkdir()
    for seed in range(6):
        scene(seed).save(directory / f"scene{seed}.png")
    shutil.copy(directory / "scene0.png", directory / "zero bytes.png")
    scene(1).save(directory / "one.bmp")
    turned = scene(1).transpose(Image.ROTATE_90)
    exif = Image.Exif()
    exif[0x0112] = 6
    turned.save(directory / "one-turned.png", exif=exif)
    scene(2).save(directory / "two.jpg", quality=60)
    ImageOps.mirror(scene(3)).save(directory / "three-mirrored.png")
    scene(4).crop((30, 0, 300, 220)).resize((540, 440)).save(directory / "four-cropped.png")
    return directory, ingest(directory)


def test_numpy_reproduces_codes(tmp_path):
    directory = tmp_path / "pictures"
    directory.mkdir()
    random = numpy.random.default_rng(1)
    for i, (h, w) in enumerate([(1, 1), (1, 400), (300, 1), (33, 47), (128, 64), (700, 901)]):
        pixels = random.integers(0, 256, (h, w, 3), dtype=numpy.uint8)
        Image.fromarray(pixels).save(directory / f"{i}.png")
    Image.new("RGB", (50, 40), (255, 255, 255)).save(directory / "white.png")
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        scene(orientation).save(directory / f"turned{orientation}.jpg", exif=exif)
    code = formula()
    for options in ([], ["--memory", "16M", "--slot-size", "512K", "--feature", "gray:blur=3"],
                    ["--jpeg-pixels", "device", "--feature", "hsv"]):
        output = tmp_path / f"{len(options)}.h5"
        assert run_clpipe("ingest", directory, "-o", output, "-q", *options).returncode == 0
        with h5py.File(output) as file:
            for path, got in zip(file["images/path"].asstr()[:], file["images/code"][:]):
                with Image.open(directory / path) as picture:
                    upright = ImageOps.exif_transpose(picture).convert("RGB")
                assert numpy.array_equal(code(numpy.asarray(upright)), got), (options, path)


def test_groups(album):
    directory, file = album
    groups = table(file)
    assert paths(groups) == [["four-cropped.png", "scene4.png"],
                             ["one.bmp", "one-turned.png", "scene1.png"],
                             ["scene0.png", "zero bytes.png"],
                             ["scene2.png", "two.jpg"] if os.path.getsize(directory / "scene2.png")
                             > os.path.getsize(directory / "two.jpg") else ["two.jpg", "scene2.png"],
                             ["scene3.png", "three-mirrored.png"]
                             if os.path.getsize(directory / "scene3.png")
                             >= os.path.getsize(directory / "three-mirrored.png")
                             else ["three-mirrored.png", "scene3.png"]]
    kinds = [sorted({row["kind"] for row in group}) for _, group in sorted(groups.items())]
    assert kinds == [["near"], ["pixels"], ["bytes"], ["near"], ["near"]]
    rows = [int(row["row"]) for group in groups.values() for row in group]
    with h5py.File(file) as h5:
        names = h5["images/path"].asstr()[:]
    for group in groups.values():
        assert [names[int(row["row"])] for row in group] == [row["path"] for row in group]
        assert group[0]["distance"] == "0"
    assert len(rows) == len(set(rows))


def test_near_0_finds_only_exact_copies(album):
    groups = table(album[1], "--near", "0")
    assert sorted({row["kind"] for g in groups.values() for row in g}) == ["bytes", "pixels"]
    assert paths(groups) == [["one.bmp", "one-turned.png", "scene1.png"],
                             ["scene0.png", "zero bytes.png"]]


def test_threads_and_memory_change_nothing(album):
    first = run_clpipe("duplicates", album[1], "--format", "jsonl", "--threads", "1").stdout
    again = run_clpipe("duplicates", album[1], "--format", "jsonl", "--threads", "5", "--memory",
                       "16M").stdout
    assert first == again and len(first.splitlines()) == 11


def test_keep_and_list(album, tmp_path):
    directory, file = album
    newest = directory / "scene1.png"
    for rule, kept in (("best", "one.bmp"), ("first", "one-turned.png")):
        others = tmp_path / rule
        groups = table(file, "--keep", rule, "--to-list", others)
        for group in groups.values():
            assert [row["keep"] for row in group].count("1") == 1
        assert [row["path"] for row in groups[1] if row["keep"] == "1"] == [kept]
        listed = others.read_bytes().split(b"\0")
        assert listed.pop() == b""
        assert sorted(listed) == sorted(os.fsencode(directory / row["path"]) for g in groups.values()
                                        for row in g if row["keep"] == "0")
    assert newest.exists()
    check_one_error(run_clpipe("duplicates", file, "--to-list", tmp_path / "best"), 3, "exists")


def test_newest_is_kept(tmp_path):
    directory = tmp_path / "times"
    directory.mkdir()
    for i, name in enumerate(["a.png", "b.png", "c.png"]):
        scene(7).save(directory / name)
        os.utime(directory / name, (1000 + (i == 1) * 500, 1000 + (i == 1) * 500))
    groups = table(ingest(directory), "--keep", "newest")
    assert [(row["path"], row["keep"]) for row in groups[0]] == [("a.png", "0"), ("b.png", "1"),
                                                                 ("c.png", "0")]


def test_summary_and_json(album, tmp_path):
    result = run_clpipe("duplicates", album[1], "--json", tmp_path / "report.json")
    assert result.returncode == 0
    assert "5 groups of 11 images: 1 of the same bytes, 1 of the same pixels, 3 with near copies" \
        in result.stdout
    assert "(mirrored)" in result.stdout
    report = json.loads((tmp_path / "report.json").read_text())
    assert [len(group["images"]) for group in report["groups"]] == [2, 3, 2, 2, 2]
    assert (report["groups_bytes"], report["groups_pixels"], report["groups_near"]) == (1, 1, 3)
    alone = run_clpipe("duplicates", album[1], "--json", "-")
    assert json.loads(alone.stdout)["others"] == 6


def test_hostile_names(tmp_path):
    directory = tmp_path / "names"
    directory.mkdir()
    names = [b"new\nline.png", b"quote\",comma.png", b"not utf8 \xff.png"]
    for name in names:
        scene(9).save(tmp_path / "x.png")
        shutil.copy(tmp_path / "x.png", os.path.join(os.fsencode(directory), name))
    file = ingest(directory)
    others = tmp_path / "others"
    result = run_clpipe("duplicates", file, "--format", "jsonl", "--to-list", others)
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert sorted(line["path"] for line in lines) == ["new\nline.png", "not utf8 \\xff.png",
                                                      "quote\",comma.png"]
    listed = others.read_bytes().split(b"\0")[:-1]
    assert len(listed) == 2 and all(os.path.exists(path) for path in listed)
    assert {os.path.basename(path) for path in listed} < set(names)


def test_pictures_that_are_gone(tmp_path):
    directory = tmp_path / "gone"
    directory.mkdir()
    scene(1).save(directory / "a.png")
    scene(1).save(directory / "b.bmp")
    scene(4).save(directory / "c.png")
    scene(4).crop((30, 0, 300, 220)).save(directory / "d.png")
    file = ingest(directory)
    assert len(table(file)) == 2
    shutil.rmtree(directory)
    result = run_clpipe("duplicates", file, "--format", "csv")
    assert result.returncode == 0
    assert "whether 2 images have the same pixels as another is not known" in result.stderr
    assert "2 pairs of similar codes were not compared" in result.stderr
    # Equal codes alone do not prove that pictures are copies.
    assert list(csv.DictReader(result.stdout.splitlines())) == []


def test_without_codes(tmp_path, album):
    old = tmp_path / "old.h5"
    shutil.copy(album[1], old)
    with h5py.File(old, "a") as file:
        del file["images/code"]
        if "checksums/images/code" in file:
            del file["checksums/images/code"]
    check_one_error(run_clpipe("duplicates", old), 3, "no perceptual codes", "--add-codes")
    assert run_clpipe("ingest", album[0], "-o", old, "-q", "--add-codes").returncode == 0
    assert paths(table(old)) == paths(table(album[1]))
    with h5py.File(old) as a, h5py.File(album[1]) as b:
        for name in ("images/code", "features/rgb_8x8x8"):
            assert numpy.array_equal(a[name][:], b[name][:])


def test_misuse(album, tmp_path):
    check_one_error(run_clpipe("duplicates", album[1], "--near", "200"), 2, "--near")
    both = run_clpipe("duplicates", album[1], "--format", "csv", "--json", "-")
    assert both.returncode == 2 and "standard output" in both.stderr
    check_one_error(run_clpipe("duplicates", tmp_path / "none.h5"), 2)


def page(seed, entries=None):
    """A page of words made of strokes. If given, `entries` is the seed of the text in every fifth line."""
    image = Image.new("RGB", (620, 877), (255, 255, 255))
    draw = ImageDraw.Draw(image)
    for line in range(40):
        mine = entries is not None and line % 5 == 2
        random = numpy.random.default_rng([entries if mine else seed, line])
        x, y = 60, 60 + 19 * line
        while x < (320 if line % 7 == 6 else 540):
            for _ in range(int(random.integers(2, 9))):
                box = (x, y + int(random.integers(0, 6)), x + int(random.integers(1, 5)), y + 11)
                draw.rectangle(box, fill=(0, 0, 0))
                x += 7
            x += 8
    return image


def wall(seed):
    random = numpy.random.default_rng(seed)
    image = Image.new("RGB", (480, 360), (170, 165, 160))
    draw = ImageDraw.Draw(image)
    for row in range(16):
        for column in range(-1, 9):
            x, shade = 60 * column + 30 * (row % 2), random.uniform(0.7, 1.3)
            draw.rectangle((x + 2, 24 * row + 2, x + 58, 24 * row + 22),
                           fill=tuple(int(c * shade) for c in (150, 80, 60)))
    return image


def mug(colour):
    image = Image.new("RGB", (400, 400), (250, 250, 250))
    draw = ImageDraw.Draw(image)
    draw.ellipse((250, 140, 360, 280), outline=colour, width=20)
    for i in range(10):
        draw.rectangle((80 + 20 * i, 100, 100 + 20 * i, 320),
                       fill=tuple(c * (14 - i) // 14 for c in colour))
    draw.rectangle((120, 180, 220, 240), fill=(250, 250, 250))
    for i in range(6):
        draw.rectangle((125 + 15 * i, 190 + 5 * (i % 3), 133 + 15 * i, 230), fill=(20, 20, 20))
    return image


COLOURS = [(200, 30, 40), (40, 150, 60), (40, 70, 190), (235, 195, 30), (130, 50, 150), (35, 35, 38)]
ALIKE = {"pages": [page(i) for i in range(5)], "forms": [page(9, i) for i in range(5)],
         "walls": [wall(i) for i in range(5)], "mugs": [mug(c) for c in COLOURS]}


@pytest.mark.deep
@pytest.mark.parametrize("kind", ALIKE)
def test_similar_pictures_are_not_copies(tmp_path, kind):
    """Merely similar pictures are not grouped; a copy is in the group of its original."""
    directory = tmp_path / "alike"
    directory.mkdir()
    pictures = ALIKE[kind]
    for i, picture in enumerate(pictures):
        picture.save(directory / f"{i}.png")
    pictures[0].resize((pictures[0].width // 2, pictures[0].height // 2), Image.LANCZOS).save(
        directory / "0 half.png")
    pictures[1].save(directory / "1 again.jpg", quality=40)
    width, height = pictures[2].size
    pictures[2].rotate(0.7, Image.BICUBIC, fillcolor=(250, 250, 250)).crop(
        (6, 6, width - 6, height - 6)).save(directory / "2 scanned.jpg", quality=80)
    pictures[3].convert("L").save(directory / "3 grey.png")
    groups = paths(table(ingest(directory)))
    assert sorted(sorted(group) for group in groups) == [
        ["0 half.png", "0.png"], ["1 again.jpg", "1.png"], ["2 scanned.jpg", "2.png"],
        ["3 grey.png", "3.png"]]


def test_a_page_with_a_different_line_is_not_listed(tmp_path):
    """Two pages that differ in one line are near copies, but neither is listed for removal. Blank pages are not
    copies."""
    directory, others = tmp_path / "line", tmp_path / "others"
    directory.mkdir()
    page(1).save(directory / "page.png")
    changed = page(1)
    changed.paste(page(2).crop((50, 418, 570, 437)), (50, 418))
    changed.save(directory / "line.png")
    for name in ("blank.png", "empty.png"):
        sheet = Image.effect_noise((620, 877), 3 + len(name)).point(lambda value: value // 8 + 230)
        sheet.save(directory / name)
    groups = table(ingest(directory), "--keep", "best", "--to-list", others)
    assert paths(groups) in ([["page.png", "line.png"]], [["line.png", "page.png"]])
    assert sorted(row["keep"] for row in groups[0]) == ["", "1"] and others.read_bytes() == b""


def invoice(seed, other=None):
    """Lines of numbers in Pillow's built-in font; in the line `other`, the order number differs."""
    random = numpy.random.default_rng(seed)
    image = Image.new("RGB", (620, 877), (255, 255, 255))
    draw = ImageDraw.Draw(image)
    for line in range(36):
        number = int(random.integers(10**6, 10**7))
        texts = ["%d pieces, order %d" % (random.integers(1, 100), number + 7 * (line == other)),
                 "%.2f" % random.uniform(1, 1000)]
        for x, text in zip((60, 480), texts):
            draw.text((x, 60 + 21 * line), text, (0, 0, 0))
        draw.line((60, 75 + 21 * line, 560, 75 + 21 * line), (190, 190, 190))
    return image


@pytest.mark.deep
def test_a_copy_with_a_different_digit_is_not_listed(tmp_path):
    """However a page is copied, a copy with a different digit is not listed for removal; other copies are."""
    copies = {
        "again.jpg": lambda i: i, "grey.jpg": lambda i: i.convert("L"),
        "brighter.jpg": lambda i: i.point(lambda value: min(255, value * 5 // 4)),
        "scanned.jpg": lambda i: i.rotate(0.4, Image.BICUBIC, fillcolor=(255, 255, 255)).filter(
            ImageFilter.GaussianBlur(0.6)),
    }
    for other in (None, 17):
        directory, others = tmp_path / f"with {other}", tmp_path / "others"
        directory.mkdir()
        invoice(5).save(directory / "0.png")
        for name, copy in copies.items():
            copy(invoice(5, other)).save(directory / name, quality=70)
        groups = table(ingest(directory), "--keep", "first", "--to-list", others, "--force")
        assert [len(group) for group in paths(groups)] == [5]
        listed = {Path(os.fsdecode(path)).name for path in others.read_bytes().split(b"\0")[:-1]}
        assert listed == set() if other else listed >= {"again.jpg", "grey.jpg", "brighter.jpg"}


def test_a_grey_object_is_not_a_copy_of_a_coloured_one(tmp_path):
    """The two objects are about equally bright."""
    directory = tmp_path / "things"
    directory.mkdir()
    mug((40, 70, 190)).save(directory / "blue.png")
    mug((54, 54, 54)).save(directory / "grey.png")
    assert paths(table(ingest(directory))) == []


@pytest.mark.deep
def test_grey_copies_of_objects_in_different_colours(tmp_path):
    """A grey copy is grouped only with its own object, although the objects are about equally bright."""
    directory = tmp_path / "things"
    directory.mkdir()
    for i, colour in enumerate(((200, 30, 40), (130, 50, 150), (40, 70, 190))):
        mug(colour).save(directory / f"{i}.png")
        mug(colour).convert("L").save(directory / f"{i} grey.jpg", quality=85)
    assert sorted(sorted(group) for group in paths(table(ingest(directory)))) == [
        [f"{i} grey.jpg", f"{i}.png"] for i in range(3)]


def test_a_caption_over_either_picture(tmp_path):
    """The copy with the bar is found whether it or the original comes first."""
    directory = tmp_path / "captions"
    directory.mkdir()
    for i in range(4):
        picture = wall(i)
        picture.save(directory / f"{i}.png")
        ImageDraw.Draw(picture).rectangle((0, 324, 480, 360), fill=(0, 0, 0))
        picture.save(directory / f"{i} barred.jpg", quality=90)
    assert sorted(sorted(group) for group in paths(table(ingest(directory)))) == [
        [f"{i} barred.jpg", f"{i}.png"] for i in range(4)]

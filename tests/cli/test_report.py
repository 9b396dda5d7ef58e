"""clpipe report: the pages in a browser, what they must not reveal, and what can go wrong."""

import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path
from urllib.parse import quote

import h5py
import numpy
import pytest

from browser import Browser, require
from conftest import CLPIPE, ROOT, check_one_error, draw_photos, run_clpipe, spoil

SHOTS = ROOT / "build" / "check" / "report"

# Names that would attack a page that inserts them as markup.
ATTACKS = [
    b"<img src=x onerror=window.hacked=1>.png",
    b"</script><script>window.hacked=1</script>.png".replace(b"/", b"\xe2\x88\x95"),
    b"\"'><svg onload=window.hacked=1>.png",
    b"'; window.hacked = 1; '.png",
    b"line\nbreak\r\ttab.png",
    "separators \u2028 and \u2029.png".encode(),
    "turned \u202egnp.exe".encode() + b".png", "marks \u061c\u00ad\U000e0041".encode() + b".png",
    b"not UTF-8 \xff\xfe\x80.png",
    b"back\\slash ${window.hacked=1} {{1}} %3Cb%3E.png",
    b"__proto__.png",
]


def draw_set(directory, groups=10, each=5):
    """Draws folders of pictures with one tint each, which clustering finds again."""
    from PIL import Image
    random = numpy.random.default_rng(11)
    for group in range(groups):
        tint = random.integers(30, 225, 3)
        for i in range(each):
            height, width = (60, 90) if i % 2 else (90, 64)
            pixels = numpy.clip(tint + random.normal(0, 14, (height, width, 3)), 0, 255)
            path = Path(directory) / f"folder {group}" / f"picture {i}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels.astype("uint8")).save(path, quality=90)


def data_of(report, kind, number=None):
    """Returns the value in a data file of a report."""
    name = f"{kind}.js" if number is None else f"{kind}-{number}.js"
    text = (Path(report) / "data" / name).read_text(encoding="utf-8")
    match = re.fullmatch(r'clpipe\("(\w+)",(\d+),(.*)\);\n', text, re.S)
    assert match and match[1] == kind and int(match[2]) == (number or 0)
    return json.loads(match[3])


def address(report, p):
    """The address of the picture with this number."""
    return f"#/picture/{data_of(report, 'images', p // 1000)['id'][p % 1000]}"


def group_address(report, label):
    groups = data_of(report, "summary")["groups"]
    return "#/group/" + next(group["id"] for group in groups if group["label"] == label)


@pytest.fixture(scope="module")
def result(tmp_path_factory, program):
    """A file with 50 pictures in ten folders, ten clusters, some failures and awkward names."""
    directory = tmp_path_factory.mktemp("report")
    draw_set(directory / "pictures")
    first = (directory / "pictures" / "folder 0" / "picture 0.jpg").read_bytes()
    (directory / "pictures" / "folder 0" / "copy.jpg").write_bytes(first)
    for name, content in [("cut.jpg", first[:len(first) // 2]), ("empty.png", b""),
                          ("text.jpg", b"no picture\n" * 9), ("notes.txt", b"skipped\n")]:
        (directory / "pictures" / name).write_bytes(content)
    ingest = run_clpipe("ingest", "pictures", "-o", "set.h5", "--feature", "rgb:bins=8x8x8",
                        cwd=directory)
    assert ingest.returncode == 1, ingest.stderr
    cluster = run_clpipe("cluster", "set.h5", "-k", 10, "--n-init", 5, cwd=directory)
    assert cluster.returncode == 0, cluster.stderr
    return directory / "set.h5"


@pytest.fixture(scope="module")
def report(result):
    made = run_clpipe("report", result.name, cwd=result.parent)
    assert made.returncode == 0, made.stderr
    assert made.stdout.splitlines()[-1].split() == ["open", "set-report/index.html"]
    return result.parent / "set-report"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    require()
    window = Browser(tmp_path_factory.mktemp("chromium"))
    yield window
    window.close()


def in_view(browser, selector):
    """The number of matching elements that are entirely inside the window."""
    return browser.run("""
        return [...document.querySelectorAll(arguments[0])].filter(e => {
            const r = e.getBoundingClientRect();
            return r.width > 0 && r.top >= 0 && r.left >= 0 && r.bottom <= innerHeight && r.right <= innerWidth;
        }).length""", selector)


# --- what is shown ------------------------------------------------------------------------------

def test_the_first_page_shows_every_cluster(browser, report, result):
    browser.open(report)
    browser.wait("return document.querySelectorAll('.card .thumb').length >= 30")
    with h5py.File(result) as file:
        sizes = sorted(file["clusters/kmeans/sizes"][:], reverse=True)
        images = len(file["images/path"])
    cards = browser.find(".card")
    assert len(cards) == 10
    counts = browser.run("return [...document.querySelectorAll('.card .size')].map(e => parseInt(e.textContent))")
    assert counts == sizes and sum(counts) == images
    for i in range(1, 11):
        card = f".cards > .card:nth-child({i})"
        assert in_view(browser, f"{card} .thumb") >= 3
        assert in_view(browser, f"{card} .swatch") == 1
        assert in_view(browser, f"{card} .folders") == 1
    text = browser.find("main")[0].text
    for part in ("51 pictures", "10 clusters", "3 files failed", "truncated", "empty", "JPEG",
                 "rgb_8x8x8", "hellinger"):
        assert part in text
    browser.shot(SHOTS / "overview.png")
    browser.check()


@pytest.mark.deep
def test_thumbnails_are_of_the_pictures(browser, report, result):
    """The colour at the centre of a tile is that of the file."""
    from io import BytesIO
    from PIL import Image
    summary = data_of(report, "summary")
    browser.open(report)
    browser.wait("return [...document.querySelectorAll('.card .thumb')].every(e => e.style.backgroundImage)")
    time.sleep(0.4)
    screen = numpy.asarray(Image.open(BytesIO(browser.driver.get_screenshot_as_png())).convert("RGB")).astype(int)
    for card, group in enumerate(summary["groups"]):
        for tile, (name, _, _, _) in enumerate(group["strip"][:3]):
            box = browser.run("""const r = document.querySelectorAll('.cards > .card')[arguments[0]]
                .querySelectorAll('.thumb')[arguments[1]].getBoundingClientRect();
                return [r.left, r.top, r.right, r.bottom].map(Math.round)""", card, tile)
            seen = screen[box[1] + 8:box[3] - 8, box[0] + 8:box[2] - 8].mean((0, 1))
            there = numpy.asarray(Image.open(result.parent / "pictures" / name).convert("RGB")).mean((0, 1))
            assert numpy.abs(seen - there).max() < 12, name
    browser.check()


@pytest.mark.deep
def test_a_cluster_shows_all_members_by_distance(browser, report, result):
    with h5py.File(result) as file:
        labels = file["clusters/kmeans/labels"][:]
        distances = file["clusters/kmeans/distances"][:]
        paths = file["images/path"].asstr()[:]
    largest = int(numpy.bincount(labels).argmax())
    rows = numpy.flatnonzero(labels == largest)
    expected = [paths[i] for i in sorted(rows, key=lambda i: (distances[i], i))]
    browser.open(report)
    browser.find(".card h2 a")[0].click()
    browser.wait("return location.hash.startsWith('#/group/')")
    browser.wait("return document.querySelectorAll('.gallery .tile').length === arguments[0]", len(rows))
    assert browser.run("return [...document.querySelectorAll('.gallery .tile')].map(e => e.title)") == expected
    assert f"Cluster {largest}" == browser.find("h1")[0].text
    browser.shot(SHOTS / "cluster.png")
    browser.find(".crumbs a[rel=next]")[0].click()
    browser.wait("return document.querySelector('h1').textContent !== arguments[0]", f"Cluster {largest}")
    browser.check()


@pytest.mark.deep
def test_a_picture_shows_its_data_and_the_most_similar(browser, report, result):
    browser.open(report)
    browser.find(".card .tile")[0].click()
    browser.wait("return document.querySelectorAll('#picture .similar .tile').length > 0")
    summary = data_of(report, "summary")
    images = data_of(report, "images", 0)
    similar = data_of(report, "similar", 0)[0]
    text = browser.find("#picture")[0].text
    for part in (images["name"][0].split("/")[-1], f"{images['width'][0]} × {images['height'][0]} pixels",
                 f"Cluster {summary['groups'][0]['label']}", "JPEG", "rgb_8x8x8"):
        assert part in text
    shown = browser.run("return [...document.querySelectorAll('#picture .similar .tile')].map(e => e.getAttribute('href'))")
    assert shown == [address(report, p) for p, _ in similar]
    browser.shot(SHOTS / "picture.png")
    # The neighbours are those of the feature values.
    with h5py.File(result) as file:
        roots = numpy.sqrt(file["features/rgb_8x8x8"][:].astype("f8"))
    row = images["row"][0]
    squared = ((roots - roots[row]) ** 2).sum(1)
    squared[row] = numpy.inf
    nearest = numpy.sqrt(numpy.sort(squared)[:len(similar)])
    assert numpy.allclose([d for _, d in similar], nearest, rtol=2e-3, atol=2e-4)
    browser.find("#picture .similar .tile")[0].click()
    browser.wait("return location.hash === arguments[0]", shown[0])
    browser.press("ESCAPE")
    browser.wait("return !document.getElementById('picture').open && location.hash === '#/'")
    browser.check()


@pytest.mark.deep
def test_the_map_shows_every_picture(browser, report):
    positions = data_of(report, "map")
    assert len(positions["x"]) == len(positions["y"]) == 51
    browser.open(report, "#/map")
    browser.wait("return document.querySelector('canvas') && document.querySelector('canvas').width > 300")
    time.sleep(0.6)

    def colours():
        from io import BytesIO
        from PIL import Image
        shot = Image.open(BytesIO(browser.find("canvas")[0].screenshot_as_png)).convert("RGB")
        return len(set(shot.resize((300, 200)).getdata()))
    assert colours() > 100
    browser.shot(SHOTS / "map.png")
    before = colours()
    browser.run("document.querySelector('canvas').focus()")
    browser.press("+", "+", "+", "+", "ARROW_LEFT")
    time.sleep(0.4)
    assert colours() != before
    browser.press("0", "ENTER")
    browser.wait("return document.getElementById('picture').open")
    browser.press("ESCAPE")
    browser.wait("return !document.getElementById('picture').open && location.hash === '#/map'")
    assert len(browser.find(".legend button")) == 10
    browser.find(".legend button")[3].click()
    assert browser.find(".legend button[aria-pressed=true]")
    browser.check()


@pytest.mark.deep
def test_flags_of_quality(browser, tmp_path):
    """Each flag has a page with the pictures that clpipe info counts; shards have flags, too."""
    from io import BytesIO

    from PIL import Image
    draw_set(tmp_path / "set", groups=2, each=3)
    for i in range(3):
        Image.new("RGB", (80, 60), (i, 2, 3)).save(tmp_path / "set" / f"night {i}.png")
    made = run_clpipe("ingest", "set", "-o", "q.h5", "--quality", "--feature", "rgb:bins=8x8x8", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    told = json.loads(run_clpipe("info", "q.h5", "--json", "-", cwd=tmp_path).stdout)["flags"]
    assert told["dark"] == 3
    assert run_clpipe("report", "q.h5", cwd=tmp_path).returncode == 0
    assert data_of(tmp_path / "q-report", "summary")["quality"] == told
    browser.open(tmp_path / "q-report")
    browser.find("#nav a[href='#/quality']")[0].click()
    browser.wait("return document.querySelectorAll('.gallery .tile').length > 0")
    for width in 1280, 390:
        browser.open(tmp_path / "q-report", "#/quality/dark", width=width)
        browser.wait("return document.querySelectorAll('.gallery .tile').length === 3")
        assert sorted(browser.run("return [...document.querySelectorAll('.gallery .tile')].map(e => e.title)")) == [
            f"night {i}.png" for i in range(3)]
        chips = browser.run("return [...document.querySelectorAll('.chips a')].map(e => e.lastChild.textContent)")
        assert chips == [str(n) for n in told.values() if n]
        browser.shot(SHOTS / f"quality-{width}.png")
        for tile in browser.find(".gallery .thumb"):
            shot = Image.open(BytesIO(tile.screenshot_as_png)).convert("L").resize((9, 9))
            assert numpy.asarray(shot)[1:-1, 1:-1].max() < 40, width
        browser.check()
    assert run_clpipe("export", "q.h5", "--what", "shards", "--to", "s", cwd=tmp_path).returncode == 0
    with tarfile.open(tmp_path / "s" / "shard-000000.tar") as tar:
        samples = [json.load(tar.extractfile(name)) for name in tar.getnames() if name.endswith(".json")]
    assert [sample["path"] for sample in samples if "dark" in sample["flags"]] == [f"night {i}.png" for i in range(3)]


@pytest.mark.deep
def test_levels_open_and_close(browser, result, tmp_path):
    """Levels open from the coarsest clusters down to cards of the finest, whatever the numbering, and remain
    open when the page is shown again."""
    (tmp_path / "l.h5").write_bytes(result.read_bytes())
    made = run_clpipe("cluster", "l.h5", "--levels", "8,4,2", "--force", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert run_clpipe("report", "l.h5", cwd=tmp_path).returncode == 0
    folder = tmp_path / "l-report"
    with h5py.File(tmp_path / "l.h5") as file:
        sizes = [file["clusters"][name]["sizes"][:].tolist() for name in ("kmeans", "kmeans-2", "kmeans-3")]
        parents = [file["clusters"][name]["parents"][:] for name in ("kmeans", "kmeans-2")]
    heads = """return [...document.querySelectorAll(arguments[0] + " > .head")].map(e =>
        [e.querySelector("h2").textContent, parseInt(e.querySelector(".size").textContent.split(" · ").at(-2))])"""
    for width in 1280, 390:
        browser.open(folder, width=width)
        browser.wait("return document.querySelectorAll('.branch .thumb').length > 2")
        top = browser.run(heads, ".columns .cards > .branch")
        order = sorted(range(2), key=lambda i: (-sizes[2][i], i))
        assert top == [[f"Cluster {i} of level 3", sizes[2][i]] for i in order]
        for _ in range(2):
            browser.run("[...document.querySelectorAll('.branch h2 button[aria-expanded=false]')].forEach(e => e.click())")
        browser.wait("return document.querySelectorAll('.branch .branch .card:not(.branch) .thumb').length > 8")
        assert sorted(name for name, _ in browser.run(heads, ".branch .branch") if "level" in name) == [
            f"Cluster {i} of level 2" for i in range(4)]
        leaves = browser.run("""return [...document.querySelectorAll(".branch .branch .card:not(.branch)")].map(e =>
            [e.parentElement.closest(".branch").querySelector("h2").textContent, e.querySelector("h2").textContent])""")
        assert sorted(leaves) == sorted([f"Cluster {parents[0][i]} of level 2", f"Cluster {i}"] for i in range(8))
        assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
        browser.shot(SHOTS / f"levels-{width}.png")
        browser.go("#/map")
        browser.go("#/")
        browser.wait("return document.querySelectorAll('.branch .branch .card:not(.branch)').length === 8")
        browser.find(".branch h2 button")[0].click()
        browser.wait("return document.querySelectorAll('.branch h2 button[aria-expanded=false]').length === 1")
        assert browser.run("return document.querySelector('.branch .branch').getBoundingClientRect().height") == 0
        browser.check()


@pytest.mark.deep
def test_failures_can_be_filtered_and_sorted(browser, report):
    browser.open(report, "#/failures")
    rows = lambda: browser.run("return [...document.querySelectorAll('.failures tbody tr')].map(r => [...r.cells].map(c => c.firstChild.textContent))")
    assert [(row[0], row[1]) for row in rows()] == [
        ("cut.jpg", "truncated"), ("empty.png", "empty"), ("text.jpg", "unknown-format")]
    browser.find(".failures th button")[3].click()
    assert [row[0] for row in rows()] == ["empty.png", "text.jpg", "cut.jpg"]
    browser.find(".failures th button")[3].click()
    assert [row[0] for row in rows()] == ["cut.jpg", "text.jpg", "empty.png"]
    assert browser.find("th[aria-sort=descending]")
    browser.find("#filter")[0].send_keys("TEXT")
    assert [row[0] for row in rows()] == ["text.jpg"]
    browser.run("const i = document.getElementById('filter'); i.value = ''; i.dispatchEvent(new Event('input'))")
    browser.run("const s = document.getElementById('reason'); s.value = 'empty'; s.dispatchEvent(new Event('change'))")
    assert [row[0] for row in rows()] == ["empty.png"]
    browser.shot(SHOTS / "failures.png")
    browser.check()


@pytest.mark.deep
def test_duplicates_are_shown_in_groups(browser, report):
    groups = data_of(report, "duplicates")
    same = [group for group in groups if group["kind"] == "bytes"]
    assert len(same) == 1
    images = data_of(report, "images", 0)
    assert sorted(images["name"][member[0]] for member in same[0]["members"]) == ["folder 0/copy.jpg", "folder 0/picture 0.jpg"]
    browser.open(report, "#/duplicates")
    browser.wait("return document.querySelectorAll('.groups .card').length === arguments[0]", len(groups))
    assert browser.run("return document.querySelectorAll('.groups .tile').length") == sum(len(group["members"]) for group in groups)
    assert "folder 0/copy.jpg" in browser.find("main")[0].text
    browser.shot(SHOTS / "duplicates.png")
    browser.check()


# --- how it is used -----------------------------------------------------------------------------

def test_the_keyboard_reaches_everything(browser, report):
    browser.open(report)
    browser.press("TAB")
    assert browser.focused().text == "Skip to the pictures"
    browser.run("document.querySelector('.card h2 a').focus()")
    browser.press("TAB")
    first = browser.focused().get_attribute("href")
    assert "#/picture/" in first
    browser.press("ARROW_RIGHT")
    assert browser.focused().get_attribute("href") != first
    browser.press("ENTER")
    browser.wait("return document.getElementById('picture').open")
    second = browser.run("return location.hash")
    browser.press("ARROW_RIGHT")
    browser.wait("return location.hash !== arguments[0] && document.getElementById('picture').open", second)
    browser.press("ESCAPE")
    browser.wait("return !document.getElementById('picture').open")
    assert browser.focused().get_attribute("class") == "tile", "the focus was not restored"
    browser.run("document.querySelector('.card h2 a').focus()")
    browser.press("ENTER")
    browser.wait("return location.hash.startsWith('#/group/') && document.activeElement.tagName === 'H1'")
    browser.press("ESCAPE")
    browser.wait("return location.hash === '#/'")
    browser.check()


@pytest.mark.deep
def test_the_dialog_keeps_the_focus_and_names_itself(browser, report):
    browser.open(report, address(report, 3))
    browser.wait("return document.querySelectorAll('#picture .similar .tile').length > 0")
    for _ in range(12):
        browser.press("TAB")
        assert browser.run("return document.activeElement === document.body || document.getElementById('picture').contains(document.activeElement)")
    assert browser.run("return document.getElementById(document.getElementById('picture').getAttribute('aria-labelledby')).textContent")
    browser.check()


@pytest.mark.deep
def test_screen_readers_get_names_headings_and_landmarks(browser, report):
    for view in ("#/", group_address(report, 0), address(report, 1), "#/map", "#/failures"):
        browser.open(report, view)
        time.sleep(0.3)
        assert browser.run("return document.documentElement.lang") == "en"
        assert browser.run("return document.querySelectorAll('main').length") == 1
        assert browser.run("return document.querySelectorAll('main h1').length") == 1
        assert browser.run("return document.querySelectorAll('header nav[aria-label]').length") == 1
        unnamed = browser.run("""return [...document.querySelectorAll("[role=img], button, a, canvas, input, select")].filter(e =>
            !(e.getAttribute('aria-label') || e.textContent.trim() || e.querySelector('[aria-label]') || (e.id && document.querySelector(`label[for=${e.id}]`)))).length""")
        assert unnamed == 0
    names = browser.run("location.hash = '#/'; return 1")
    assert names
    browser.wait("return document.querySelectorAll('.card [role=img].thumb').length > 20")
    assert browser.run("return [...document.querySelectorAll('.card .thumb')].every(e => e.getAttribute('aria-label').endsWith('.jpg'))")


@pytest.mark.deep
def test_dark_and_light(browser, report):
    background = "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)"
    browser.open(report)
    assert min(browser.run(background)) > 200
    browser.open(report, dark=True)
    assert max(browser.run(background)) < 60
    browser.shot(SHOTS / "dark.png")
    browser.find("#theme")[0].click()
    assert min(browser.run(background)) > 200
    browser.driver.refresh()
    browser.wait("return document.querySelector('main h1') !== null")
    assert min(browser.run(background)) > 200, "the choice was not kept"
    browser.run("localStorage.removeItem('clpipe-theme')")
    browser.check()


@pytest.mark.deep
@pytest.mark.parametrize("view", ["#/", "group", "picture", "#/map", "#/failures", "#/duplicates", "#/none"])
def test_pages_fit_on_a_phone(browser, report, view):
    names = {"group": group_address(report, 0), "picture": address(report, 1)}
    browser.open(report, names.get(view, view), width=360, height=740)
    time.sleep(0.3)
    assert browser.run("return document.documentElement.scrollWidth") <= 360
    if view == "picture":
        assert browser.run("const d = document.getElementById('picture'); return d.scrollWidth - d.clientWidth") <= 0
    browser.shot(SHOTS / f"phone{view.replace('#', '').replace('/', '-')}.png")
    browser.check()


@pytest.mark.deep
def test_many_pictures_load_while_scrolling(browser, tmp_path, program):
    """A group of 400 pictures is not laid out at once, but scrolling to the end shows all of them."""
    from PIL import Image
    (tmp_path / "many").mkdir()
    for i in range(400):
        Image.new("RGB", (8, 6), (i % 256, 100, 50)).save(tmp_path / "many" / f"{i:03}.png")
    assert run_clpipe("ingest", "many", "-o", "m.h5", cwd=tmp_path).returncode == 0
    made = run_clpipe("report", "m.h5", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    browser.open(tmp_path / "m-report", "#/group/all", height=300)
    browser.wait("return document.querySelectorAll('.gallery .tile').length >= 120")
    assert browser.run("return document.querySelectorAll('.gallery .tile').length") < 400
    for _ in range(6):
        browser.run("scrollTo(0, document.body.scrollHeight)")
        time.sleep(0.15)
    browser.wait("return document.querySelectorAll('.gallery .tile').length === 400")
    browser.check()


# --- addresses ----------------------------------------------------------------------------------

NOT_HERE = "that is not in this report"


def opened(browser, folder, view):
    """Returns the address, the heading, the note or the name of the open picture, and its folder."""
    browser.open(folder, view)
    browser.wait("return App.shownView && (document.querySelector('.note') || "
                 "!location.hash.startsWith('#/picture/') || document.querySelector('#picture dl'))")
    return browser.run("""const d = document.getElementById('picture');
        return [location.hash, document.querySelector('h1').textContent, document.querySelector('.note')?.textContent ?? '',
            d.open ? d.querySelector('h2').textContent : '', d.open ? d.querySelector('dd').textContent : '']""")


@pytest.mark.deep
def test_addresses_survive_a_new_report(browser, tmp_path, program):
    """Addresses still work after a new report with another order, other clusters, more pictures and one
    picture less."""
    draw_set(tmp_path / "p", groups=3, each=4)
    report = tmp_path / "f-report"

    def make(k, *options):
        assert run_clpipe("ingest", "p", "-o", "f.h5", "--feature", "rgb:bins=8x8x8", cwd=tmp_path).returncode == 0
        assert run_clpipe("cluster", "f.h5", "-k", k, *options, cwd=tmp_path).returncode == 0
        assert run_clpipe("report", "f.h5", cwd=tmp_path).returncode == 0

    make(3)
    images, groups = data_of(report, "images", 0), data_of(report, "summary")["groups"]
    pictures = {name: f"#/picture/{one}" for name, one in zip(images["name"], images["id"])}
    centres = {group["label"]: group["strip"][0][0] for group in groups}
    links = {group["label"]: f"#/group/{group['id']}" for group in groups}
    (tmp_path / "p" / "a first folder").mkdir()
    for i in range(9):
        shutil.copy(tmp_path / "p" / "folder 1" / f"picture {i % 4}.jpg", tmp_path / "p" / "a first folder" / f"{i}.jpg")
    (tmp_path / "p" / "folder 2" / "picture 3.jpg").unlink()
    gone = pictures.pop("folder 2/picture 3.jpg")
    make(4, "--force")
    assert data_of(report, "images", 0)["name"] != images["name"]
    for name, link in pictures.items():
        there, _, note, shown, folder = opened(browser, report, link)
        assert (there, f"{folder}/{shown}", note) == (link, name, "")
    by_name = {one["strip"][0][0]: one for one in data_of(report, "summary")["groups"]}
    for label, link in links.items():
        if f"#/picture/{link[8:]}" == gone:
            continue
        browser.open(report, link)
        browser.wait("return document.querySelectorAll('.gallery .tile').length")
        assert centres[label] in browser.run("return [...document.querySelectorAll('.gallery .tile')].map(e => e.title)")
    assert by_name
    # Addresses that do not exist: pictures and clusters that are gone, and numbers as in earlier versions.
    for link in (gone, gone.replace("picture", "map"), gone.replace("picture", "group"), "#/picture/3", "#/group/0", "#/map/7",
                 "#/picture/", "#/group", "#/picture/constructor", "#/picture/0000000000000000"):
        there, heading, note, shown, _ = opened(browser, report, link)
        assert there == "#/" and "pictures in 4 clusters" in heading and NOT_HERE in note and not shown, link
    # The map marks the picture.
    name, link = next(iter(pictures.items()))
    assert opened(browser, report, link.replace("picture", "map"))[1:3] == ["Map", ""]
    # Back and forward in the history.
    browser.open(report)
    browser.go(link)
    browser.wait("return document.querySelector('#picture dl')")
    browser.driver.back()
    browser.wait("return !document.getElementById('picture').open")
    browser.driver.forward()
    browser.wait("return document.getElementById('picture').open && document.querySelector('#picture dl')")
    assert browser.run("return document.querySelector('#picture h2').textContent") == name.split("/")[-1]
    browser.check()


@pytest.mark.deep
def test_addresses_distinguish_sources(browser, tmp_path, program):
    """Equal paths in two sources of a merged file, in either order, and folders with their paths."""
    for name, seed in (("one", 0), ("two", 1)):
        draw_set(tmp_path / name, groups=2, each=2)
        (tmp_path / name / "folder 1" / f"only in {name}.jpg").write_bytes(
            (tmp_path / name / "folder 0" / f"picture {seed}.jpg").read_bytes())
        assert run_clpipe("ingest", name, "-o", f"{name}.h5", cwd=tmp_path).returncode == 0
    seen = []
    for order in (("one.h5", "two.h5"), ("two.h5", "one.h5")):
        assert run_clpipe("merge", *order, "-o", f"m-{order[0]}", cwd=tmp_path).returncode == 0
        assert run_clpipe("report", f"m-{order[0]}", "-o", "r", cwd=tmp_path).returncode == 0
        summary, images = data_of(tmp_path / "r", "summary"), data_of(tmp_path / "r", "images", 0)
        sources = [name for name, _ in summary["sources"]]
        seen.append({one: (sources[source], name) for one, source, name in zip(images["id"], images["source"], images["name"])})
        assert summary["grouping"] == "folders"
        seen.append({group["id"]: sorted(sources[images["source"][p]] + "/" + images["name"][p] for p in range(group["first"], group["first"] + group["size"]))
                     for group in summary["groups"]})
    assert seen[0] == seen[2] and seen[1] == seen[3]
    assert len(seen[0]) == 10 and len(seen[1]) == 4
    for one, (source, name) in list(seen[0].items())[::3]:
        there, _, _, shown, _ = opened(browser, tmp_path / "r", f"#/picture/{one}")
        assert (there, shown) == (f"#/picture/{one}", name.split("/")[-1])
        assert source in browser.run("return document.getElementById('picture').innerText")
    for one, members in seen[1].items():
        browser.open(tmp_path / "r", f"#/group/{one}")
        browser.wait("return document.querySelectorAll('.gallery .tile').length === arguments[0]", len(members))
    browser.check()


@pytest.mark.deep
def test_missing_pages(browser, report, tmp_path, program):
    from PIL import Image
    for view in ("#/constructor", "#/__proto__", "#/toString", "#/hasOwnProperty/x", "#/Map", "#elsewhere"):
        there, heading, note, _, _ = opened(browser, report, view)
        assert there == "#/" and "51 pictures" in heading and NOT_HERE in note, view
        assert browser.find(".card")
    # The note disappears on the next page.
    browser.go("#/failures")
    assert not browser.find(".note")
    for view in ("#/duplicates/constructor", "#/failures/__proto__"):
        assert opened(browser, report, view)[2] == ""
    assert browser.find(".failures tbody tr")
    browser.check()
    (tmp_path / "p").mkdir()
    for i in range(2):
        Image.new("RGB", (30, 20), (100 * i, 9, 99)).save(tmp_path / "p" / f"{i}.png")
    assert run_clpipe("ingest", "p", "-o", "f.h5", cwd=tmp_path).returncode == 0
    assert run_clpipe("report", "f.h5", cwd=tmp_path).returncode == 0
    browser.open(tmp_path / "f-report", "#/map")
    assert "without a map" in browser.find("main")[0].text and "missing" not in browser.find("main")[0].text
    browser.check()


# --- paper and high contrast ---------------------------------------------------------------------

def pictures_of_pdf(data):
    """The mean colours of the pictures in a PDF."""
    from io import BytesIO
    from PIL import Image
    import zlib
    means = []
    for head, body in re.findall(rb"obj\s*<<(.*?)>>\s*stream\r?\n(.*?)endstream", data, re.S):
        if b"/Subtype /Image" not in head or b"/DeviceGray" in head:
            continue
        if b"DCTDecode" in head:
            pixels = numpy.asarray(Image.open(BytesIO(body)).convert("RGB")).reshape(-1, 3)
        else:
            pixels = numpy.frombuffer(zlib.decompressobj().decompress(body), "u1").reshape(-1, 3)
        means.append(pixels.mean(0))
    return numpy.array(means).reshape(-1, 3)


def printed(browser, background=False):
    import base64
    made = browser.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": background})
    return pictures_of_pdf(base64.b64decode(made["data"]))


@pytest.mark.deep
def test_printed_pages_have_their_pictures(browser, tmp_path, program):
    """Including pictures that were never near the window, and groups that were not yet added."""
    from PIL import Image
    random = numpy.random.default_rng(4)
    colours = random.permutation(numpy.stack(numpy.meshgrid([20, 100, 180, 250], [20, 120, 230], [30, 130, 240]), -1).reshape(-1, 3))[:30]
    for i, colour in enumerate(colours):
        (tmp_path / "p" / f"{i:02}").mkdir(parents=True)
        for name in "ab":
            Image.new("RGB", (90, 60), tuple(int(c) for c in colour)).save(tmp_path / "p" / f"{i:02}" / f"{name}.png")
    assert run_clpipe("ingest", "p", "-o", "f.h5", cwd=tmp_path).returncode == 0
    assert run_clpipe("report", "f.h5", cwd=tmp_path).returncode == 0
    report = tmp_path / "f-report"
    for dark in (False, True):
        browser.open(report, width=800, height=600, dark=dark)
        assert len(browser.find(".card")) < 30
        means = printed(browser)
        assert len(means) >= 60
        for colour in colours:
            assert (numpy.abs(means - colour).max(1) < 12).any(), colour
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": [
        {"name": "prefers-color-scheme", "value": "dark"}]})
    colour_of = "return getComputedStyle(document.querySelector(arguments[0])).color.match(/\\d+/g).slice(0, 3).map(Number)"
    assert max(browser.run(colour_of, "h1")) < 60 and max(browser.run(colour_of, "h2")) < 60
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    # An open picture is printed with similar ones, and a map with its legend.
    browser.open(report, address(report, 3))
    browser.wait("return document.querySelectorAll('#picture .similar .tile').length > 3")
    assert len(printed(browser)) >= 13
    browser.open(report, "#/map")
    browser.wait("return document.querySelectorAll('.legend button').length === 30")
    assert len(printed(browser)) >= 1
    browser.check()


@pytest.mark.deep
def test_meaningful_colours_are_kept_in_high_contrast(browser, report):
    colour = "return [...document.querySelectorAll(arguments[0])].map(e => getComputedStyle(e).backgroundColor)"
    for view, selector in (("#/", ".card .swatch span"), ("#/map", ".legend .dot")):
        browser.open(report, view)
        browser.wait("return document.querySelectorAll(arguments[0]).length >= 10", selector)
        before = browser.run(colour, selector)
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "forced-colors", "value": "active"}]})
        assert browser.run("return matchMedia('(forced-colors: active)').matches")
        assert browser.run(colour, selector) == before and len(set(before)) >= 10
        assert browser.run("return getComputedStyle(document.querySelector('[aria-current]')).outlineStyle") == "solid"
    browser.check()


@pytest.mark.deep
def test_the_legend_has_every_cluster(browser, tmp_path, program):
    from PIL import Image
    random = numpy.random.default_rng(5)
    (tmp_path / "p").mkdir()
    for i in range(150):
        Image.fromarray(random.integers(0, 256, (9, 12, 3)).astype("u1")).save(tmp_path / "p" / f"{i:03}.png")
    assert run_clpipe("run", "p", "-k", 90, "-o", "f.h5", cwd=tmp_path).returncode == 0
    browser.open(tmp_path / "f-report", "#/map")
    browser.wait("return document.querySelectorAll('.legend button').length === 90")
    assert "90 clusters" in browser.find(".legend")[0].text
    browser.run("document.querySelectorAll('.legend button')[89].click()")
    assert browser.run("return [...document.querySelectorAll('.legend button')].findIndex(e => e.ariaPressed === 'true')") == 89
    browser.check()


# --- attacks and secrets ------------------------------------------------------------------------

def test_names_do_no_harm(browser, tmp_path, program):
    from PIL import Image
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for i, name in enumerate(ATTACKS):
        path = os.fsencode(pictures) + b"/" + name
        with open(path, "wb") as file:
            Image.new("RGB", (20 + i, 20), (20 * i, 90, 200 - 9 * i)).save(file, "PNG")
        with open(os.fsencode(pictures) + b"/bad " + name, "wb") as file:
            file.write(b"no picture at all")
    folder = os.fsencode(pictures) + b"/<b onclick=window.hacked=1>"
    os.mkdir(folder)
    with open(folder + b"/x.png", "wb") as file:
        Image.new("RGB", (9, 9), (1, 2, 3)).save(file, "PNG")
    name = "<script>window.hacked=1<-script>.h5"
    assert run_clpipe("ingest", pictures, "-o", tmp_path / name).returncode == 1
    assert run_clpipe("cluster", tmp_path / name, "-k", 3).returncode == 0
    made = run_clpipe("report", tmp_path / name, "-o", tmp_path / "out")
    assert made.returncode == 0, made.stderr
    for path in (tmp_path / "out").rglob("*.js"):
        if path.parent.name == "data":
            text = path.read_bytes()
            assert b"<" not in text and "\u2028".encode() not in text
            text.decode("utf-8")
    browser.open(tmp_path / "out")
    seen = ""
    views = ["#/", "#/failures", "#/map"] + [group_address(tmp_path / "out", i) for i in range(3)] + \
            [address(tmp_path / "out", i) for i in range(len(ATTACKS) + 1)]
    for view in views:
        browser.go(view)
        time.sleep(0.25)
        seen += browser.run("return document.body.innerText + [...document.querySelectorAll('[title], [aria-label]')].map(e => e.title + e.ariaLabel).join()")
        assert browser.run("return window.hacked") is None
        assert browser.run("return document.querySelectorAll('main img, main script, main svg[onload], main b, dialog img, dialog script').length") == 0
    for part in ("<img src=x onerror=window.hacked=1>.png", "line␊break␍␉tab.png", "not UTF-8 \\xff\\xfe\\x80.png",
                 "separators \\u2028 and \\u2029.png", "turned \\u202egnp.exe.png", "marks \\u061c\\u00ad\\ue0041.png", "bad __proto__.png"):
        assert part in seen
    browser.check()


def test_pages_reveal_no_secrets(tmp_path, program):
    """Absolute paths of lists and sources, the user, the host and camera metadata do not appear."""
    from PIL import Image
    home = tmp_path / "home" / "anna-example" / "My secret folder"
    home.mkdir(parents=True)
    exif = Image.Exif()
    exif[0x010F] = "Secret Camera"
    exif.get_ifd(0x8825)[1] = "N"
    for i in range(4):
        Image.new("RGB", (50, 40), (60 * i, 9, 99)).save(home / f"{i}.jpg", exif=exif)
    (home / "cut.jpg").write_bytes((home / "1.jpg").read_bytes()[:500])
    (tmp_path / "list").write_text("".join(f"{path}\n" for path in sorted(home.iterdir())))
    for source in (f"@{tmp_path / 'list'}", home):
        shutil.rmtree(tmp_path / "r", ignore_errors=True)
        assert run_clpipe("ingest", source, "-o", tmp_path / "f.h5", "--fresh").returncode == 1
        made = run_clpipe("report", tmp_path / "f.h5", "-o", tmp_path / "r")
        assert made.returncode == 0, made.stderr
        secrets = [b"anna-example", b"Secret Camera", b"Exif\0\0", bytes(tmp_path),
                   os.fsencode(socket.gethostname()), b"/home/", b"GPS"]
        for path in (tmp_path / "r").rglob("*"):
            content = path.read_bytes() if path.is_file() else b""
            assert [s for s in secrets if s in content] == [], path
        assert [name.split("/")[-1] for name in sorted(data_of(tmp_path / "r", "images", 0)["name"])] == [f"{i}.jpg" for i in range(4)]


@pytest.mark.deep
def test_originals_are_linked_on_request(browser, tmp_path, program):
    from PIL import Image
    pictures = tmp_path / "my pictures #1"
    pictures.mkdir()
    for i, name in enumerate([b"a b?.png", b"c%41.png", b"not UTF-8 \xff.png", b"<d>.png"]):
        with open(os.fsencode(pictures) + b"/" + name, "wb") as file:
            Image.new("RGB", (300 + i, 200), (60 * i, 50, 99)).save(file, "PNG")
    assert run_clpipe("ingest", pictures, "-o", tmp_path / "f.h5").returncode == 0
    made = run_clpipe("report", tmp_path / "f.h5", "-o", tmp_path / "r", "--link-originals")
    assert made.returncode == 0, made.stderr
    for p in range(4):
        browser.open(tmp_path / "r", address(tmp_path / "r", p))
        size = browser.wait("const i = document.querySelector('#picture img.original'); return i && i.complete && i.naturalWidth")
        assert size == data_of(tmp_path / "r", "images", 0)["width"][p]
        complaints, asked = browser.logs()
        assert complaints == []
        assert all(url.startswith(("file://" + quote(str(tmp_path)), "data:")) for url in asked)


def test_only_the_original_is_linked(clpipe, tmp_path):
    """There are no links to files of that name in other directories, replaced files or members of archives."""
    from PIL import Image
    for name in ("a", "b"):
        (tmp_path / name / "p").mkdir(parents=True)
    for i in range(4):
        Image.new("RGB", (20 + i, 20), (60 * i, 50, 99)).save(tmp_path / "a" / "p" / f"{i}.png")
        Image.new("RGB", (20 + i, 20), (60 * i, 99, 50)).save(tmp_path / "b" / "p" / f"{i}.png")
    with zipfile.ZipFile(tmp_path / "a" / "p" / "z.zip", "w") as archive:
        archive.write(tmp_path / "a" / "p" / "0.png", "0.png")
    shutil.copytree(tmp_path / "a" / "p", tmp_path / "a" / "sub" / "q")
    os.symlink("sub/q", tmp_path / "a" / "link")
    file = tmp_path / "f.h5"
    assert clpipe("ingest", "p", "link/../q", "--archives", "-o", file, cwd=tmp_path / "a").returncode == 0

    def links(directory):
        made = clpipe("report", file, "-o", tmp_path / "r", "--link-originals", cwd=directory)
        assert made.returncode == 0, made.stderr
        images = data_of(tmp_path / "r", "images", 0)
        return dict(zip(zip(images["source"], images["name"]), images["link"])), made.stderr

    found, said = links(tmp_path / "a")
    assert "no link to the original of 2 images" in said
    for (source, name), link in found.items():
        place = tmp_path / "a" / ("sub/q" if source else "p") / name.split("/", 1)[-1]
        assert link == (None if ".zip" in name else "file://" + quote(str(place))), name
    assert links(tmp_path / "b")[0] == found  # the file stores where it was read
    Image.new("RGB", (20, 20), (1, 2, 3)).save(tmp_path / "a" / "p" / "1.png")
    (tmp_path / "a" / "p" / "2.png").unlink()
    found, said = links(tmp_path / "a")
    assert sum(link is None for link in found.values()) == 4


# --- files of several kinds ---------------------------------------------------------------------

def test_without_clusters_pictures_are_shown_by_folder(photos, clpipe, tmp_path):
    assert clpipe("ingest", photos, "-o", "f.h5").returncode == 0
    assert clpipe("report", "f.h5").returncode == 0
    summary = data_of(tmp_path / "f-report", "summary")
    assert summary["grouping"] == "folders" and "clustering" not in summary
    assert sorted(group["title"] for group in summary["groups"]) == ["blue", "green", "red"]
    assert sum(group["size"] for group in summary["groups"]) == summary["images"] == 13


@pytest.mark.deep
def test_a_file_without_codes(browser, finished, clpipe, tmp_path):
    """It has no thumbnails either: the page says what is omitted and why."""
    shutil.copy(finished, tmp_path / "f.h5")
    with h5py.File(tmp_path / "f.h5", "r+") as file:
        del file["images/code"]
        for name in ("thumbnails", "checksums"):
            if name in file:
                del file[name]
    assert clpipe("report", "f.h5").returncode == 0
    summary = data_of(tmp_path / "f-report", "summary")
    assert "duplicates" not in summary and summary["sheets"]["missing"] == 0
    browser.open(tmp_path / "f-report")
    assert "--add-codes" in browser.find("aside")[0].text
    assert browser.run("return document.querySelectorAll('nav a[href=\"#/duplicates\"]').length") == 0
    browser.check()


@pytest.mark.deep
def test_images_without_values(browser, photos, clpipe, tmp_path):
    """Clusters of an imported feature and images that were added later, which are shown without neighbours."""
    shutil.copytree(photos, tmp_path / "p")
    later = (tmp_path / "p" / "red" / "copy of 00.png").read_bytes()
    (tmp_path / "p" / "red" / "copy of 00.png").unlink()
    assert clpipe("ingest", "p", "-o", "f.h5").returncode == 0
    numpy.save(tmp_path / "rows.npy", numpy.random.default_rng(3).normal(size=(12, 5)).astype("f4"))
    assert clpipe("import", "f.h5", "clip=rows.npy").returncode == 0
    assert clpipe("cluster", "f.h5", "-k", 3, "--feature", "clip").returncode == 0
    (tmp_path / "p" / "red" / "copy of 00.png").write_bytes(later)
    assert clpipe("ingest", "p", "-o", "f.h5").returncode == 0
    made = clpipe("report", "f.h5")
    assert made.returncode == 0, made.stderr
    summary = data_of(tmp_path / "f-report", "summary")
    assert [(group["label"], group["size"]) for group in summary["groups"]][-1] == (-1, 1)
    assert summary["similar"]["feature"] == "clip" and summary["map"] and summary["notes"] == []
    similar = data_of(tmp_path / "f-report", "similar", 0)
    assert [len(row) for row in similar] == [11] * 12 + [0]
    assert all(p != 12 for row in similar for p, _ in row)
    browser.open(tmp_path / "f-report")
    assert "Not in a cluster" in browser.find("main")[0].text
    browser.go(address(tmp_path / "f-report", 12))
    browser.wait("return document.getElementById('picture').innerText.includes('no values')")
    browser.go("#/map")
    browser.wait("return document.querySelector('canvas').width > 100")
    browser.check()


def test_stored_neighbours_are_used(finished, clpipe, tmp_path):
    """Neighbours stored by `similar --all` are not searched again: a modified distance is shown."""
    shutil.copy(finished, tmp_path / "f.h5")
    assert clpipe("similar", "f.h5", "--all", "-n", 12, "--feature", "rgb_8x8x8").returncode == 0
    assert clpipe("report", "f.h5", "-o", "a").returncode == 0
    with h5py.File(tmp_path / "f.h5", "r+") as file:
        distances = file["neighbours/rgb_8x8x8/distances"]
        distances[...] = distances[...] * 4
    assert clpipe("report", "f.h5", "-o", "b").returncode == 0
    first, second = data_of(tmp_path / "a", "similar", 0), data_of(tmp_path / "b", "similar", 0)
    assert [[p for p, _ in row] for row in first] == [[p for p, _ in row] for row in second]
    assert all(abs(y[1] - 2 * x[1]) <= 2e-3 * y[1] for a, b in zip(first, second) for x, y in zip(a, b))


def test_one_of_several_clusterings_is_chosen(finished, clpipe, tmp_path):
    shutil.copy(finished, tmp_path / "f.h5")
    for name, k in (("fine", 4), ("finer", 5)):
        assert clpipe("cluster", "f.h5", "-k", k, "--name", name, "--feature", "counts").returncode == 0
    assert clpipe("report", "f.h5").returncode == 0
    assert data_of(tmp_path / "f-report", "summary")["clustering"]["name"] == "kmeans"
    assert clpipe("report", "f.h5", "--name", "finer", "-o", "other").returncode == 0
    summary = data_of(tmp_path / "other", "summary")
    assert summary["clustering"]["name"] == "finer" and len(summary["groups"]) == 5
    assert summary["clustering"]["others"] == ["fine", "kmeans"]
    # Grey values have no colours, so thumbnails provide the swatches.
    assert all(group["colours"] for group in summary["groups"])
    check_one_error(clpipe("report", "f.h5", "--name", "coarse"), 2, "coarse", "finer")


@pytest.mark.deep
def test_the_chart_of_k(browser, photos, clpipe, tmp_path):
    assert clpipe("ingest", photos, "-o", "f.h5").returncode == 0
    assert clpipe("cluster", "f.h5", "-k", "2:6").returncode == 0
    assert clpipe("report", "f.h5").returncode == 0
    browser.open(tmp_path / "f-report")
    assert len(browser.find(".sweep figure svg")) >= 4
    assert "Why k = " in browser.find(".sweep")[0].text
    browser.check()


def test_rows_without_images_are_refused(clpipe, tmp_path):
    numpy.save(tmp_path / "rows.npy", numpy.random.default_rng(0).random((40, 3), "f4"))
    assert clpipe("cluster", "rows.npy", "-k", 3, "-o", "rows.h5").returncode == 0
    check_one_error(clpipe("report", "rows.h5"), 3, "rows.h5 has no images")
    assert not (tmp_path / "rows-report").exists()


@pytest.mark.deep
def test_missing_pictures(browser, clpipe, tmp_path):
    draw_photos(tmp_path / "p")
    assert clpipe("ingest", "p", "-o", "f.h5").returncode == 0
    assert clpipe("cluster", "f.h5", "-k", 3).returncode == 0
    shutil.rmtree(tmp_path / "p")
    made = clpipe("report", "f.h5")
    assert made.returncode == 0, made.stderr
    assert "13 images without a thumbnail" in made.stdout
    browser.open(tmp_path / "f-report")
    assert len(browser.find(".card")) == 3
    assert browser.run("return document.querySelectorAll('.thumb.gone').length") >= 9
    assert browser.run("return [...document.querySelectorAll('.swatch')].length") == 3
    browser.go(address(tmp_path / "f-report", 0))
    browser.wait("return document.querySelectorAll('#picture .similar .tile').length > 0")
    browser.check()


# --- what goes wrong ----------------------------------------------------------------------------

def leftovers(directory):
    return [name for name in os.listdir(directory) if ".tmp-clpipe-" in name]


def test_only_a_report_is_replaced(finished, clpipe, tmp_path):
    shutil.copy(finished, tmp_path / "f.h5")
    assert clpipe("report", "f.h5").returncode == 0
    (tmp_path / "f-report" / "index.html").write_text("older")
    assert clpipe("report", "f.h5").returncode == 0
    assert "older" not in (tmp_path / "f-report" / "index.html").read_text()
    (tmp_path / "f-report" / "mine.txt").write_text("keep me")
    check_one_error(clpipe("report", "f.h5"), 3, "f-report holds mine.txt")
    assert (tmp_path / "f-report" / "mine.txt").read_text() == "keep me"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "index.html").write_text("a page of mine")
    check_one_error(clpipe("report", "f.h5", "-o", "other"), 3, "other was not written by clpipe")
    (tmp_path / "file").write_text("mine")
    check_one_error(clpipe("report", "f.h5", "-o", "file"), 3, "file exists and is not a directory")
    (tmp_path / "empty").mkdir()
    assert clpipe("report", "f.h5", "-o", "empty/").returncode == 0
    check_one_error(clpipe("report", "f.h5", "-o", "no/such"), 3, "no/such", "must exist")
    check_one_error(clpipe("report", "f.h5", "-o", "."), 3, "name a directory in it")
    os.symlink("empty", tmp_path / "link")
    assert clpipe("report", "f.h5", "-o", "link").returncode == 0
    assert (tmp_path / "link").is_symlink() and (tmp_path / "empty" / "index.html").exists()
    assert leftovers(tmp_path) == []


def test_a_full_disk_leaves_nothing(finished, clpipe, tmp_path):
    """A file size limit simulates the full disk."""
    shutil.copy(finished, tmp_path / "f.h5")
    assert clpipe("report", "f.h5").returncode == 0
    before = (tmp_path / "f-report" / "data" / "summary.js").read_bytes()
    for limit in (1000, 8000, 20000):
        failed = clpipe("report", "f.h5", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        assert failed.returncode == 3, failed.stderr
        assert len(failed.stderr.splitlines()) == 1
        assert leftovers(tmp_path) == []
        assert (tmp_path / "f-report" / "data" / "summary.js").read_bytes() == before


def test_a_read_only_directory(finished, clpipe, tmp_path):
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        shutil.copy(finished, directory)
        for name in (None, "r"):
            def drop():  # root may write everywhere
                if os.geteuid() == 0:
                    os.setuid(65534)
                else:
                    os.chmod(directory, 0o555)
            output = () if name is None else ("-o", name)
            check_one_error(clpipe("report", "result.h5", *output, cwd=directory, preexec_fn=drop),
                            3, "result-report" if name is None else "r", "EACCES")
        os.chmod(directory, 0o755)
        assert os.listdir(directory) == ["result.h5"]


def test_a_killed_report_leaves_nothing_under_its_name(tmp_path, program):
    draw_set(tmp_path / "p", groups=6, each=20)
    assert run_clpipe("ingest", tmp_path / "p", "-o", tmp_path / "f.h5").returncode == 0
    for delay in (0.02, 0.06, 0.12):
        process = subprocess.Popen([CLPIPE, "report", tmp_path / "f.h5"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if (tmp_path / "f-report").exists():
            assert (tmp_path / "f-report" / "index.html").exists()
    assert run_clpipe("report", tmp_path / "f.h5").returncode == 0
    assert leftovers(tmp_path) == []
    process = subprocess.Popen([CLPIPE, "report", tmp_path / "f.h5", "-o", tmp_path / "r"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    process.wait()
    assert process.returncode in (0, 4, -signal.SIGINT)  # the last one if the handler was not yet installed
    assert (tmp_path / "r").exists() == (process.returncode == 0)
    assert leftovers(tmp_path) == []


def test_json(finished, clpipe, tmp_path):
    shutil.copy(finished, tmp_path / "f.h5")
    made = clpipe("report", "f.h5", "--json", "-")
    assert made.returncode == 0
    told = json.loads(made.stdout)
    assert told["images"] == 13 and told["groups"] == 3 and told["failed"] == 4
    on_disk = sum(p.stat().st_size for p in (tmp_path / "f-report").rglob("*") if p.is_file() and p.name != ".clpipe-report")
    assert told["bytes"] == on_disk


# --- run ----------------------------------------------------------------------------------------

@pytest.mark.deep
def test_run_writes_the_report_by_default(photos, clpipe, tmp_path):
    made = clpipe("run", photos, "-k", 3, "-o", "f.h5")
    assert made.returncode == 0, made.stderr
    assert made.stdout.splitlines()[-1].split() == ["open", "f-report/index.html"]
    summary = data_of(tmp_path / "f-report", "summary")
    assert summary["images"] == 13 and summary["clustering"]["k"] == 3
    # If nothing has changed, neither do the pages.
    before = os.stat(tmp_path / "f-report" / "index.html")
    again = clpipe("run", photos, "-k", 3, "-o", "f.h5", "--json", "told.json")
    assert again.returncode == 0 and again.stdout.splitlines()[-1] == made.stdout.splitlines()[-1]
    after = os.stat(tmp_path / "f-report" / "index.html")
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert json.loads((tmp_path / "told.json").read_text())["report"]["written"] is False
    # With other clusters the pages are written again.
    assert clpipe("run", photos, "-k", 4, "-o", "f.h5", "--force").returncode == 0
    assert data_of(tmp_path / "f-report", "summary")["clustering"]["k"] == 4
    bare = clpipe("run", photos, "-k", 3, "-o", "g.h5", "--no-report")
    assert bare.returncode == 0 and "index.html" not in bare.stdout
    assert sorted(os.listdir(tmp_path)) == ["f-report", "f.h5", "g.h5", "told.json"]
    with h5py.File(tmp_path / "g.h5") as file:
        assert "thumbnails" not in file


def test_run_checks_the_report_before_working(photos, clpipe, tmp_path):
    (tmp_path / "f-report").mkdir()
    (tmp_path / "f-report" / "mine").write_text("mine")
    failed = clpipe("run", photos, "-k", 3, "-o", "f.h5")
    check_one_error(failed, 3, "f-report holds mine", "--no-report")
    assert not (tmp_path / "f.h5").exists()

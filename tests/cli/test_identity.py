"""The contents of a file do not depend on threads, slots, memory or the device, and are the same in every run."""

import json
import os
import shutil
import subprocess

import h5py
import numpy
import pytest
from PIL import Image

from conftest import CLPIPE, ROOT, check_one_error, digest, draw_photos, run_clpipe, spoil

PHOTOS = ROOT.parent / "shared" / "data" / "photos"

FEATURES = ["--feature", "rgb:bins=256", "--feature", "rgb:bins=8x8x8,grid=3x3",
            "--feature", "gray:bins=100,normalize=none", "--feature", "hsv,grid=2x5",
            "--feature", "rgb:bins=7,normalize=hellinger"]
# A strip is at most half a slot, and a slot is at least 1 MiB. A row of `wide.png` does not fit into half of that,
# and `large.jpg` passes through in 34 strips.
SLOTS = [["--slot-size", "1M", "--slots", "2"], ["--slot-size", "3M", "--slots", "5"],
         ["--slot-size", "64M", "--slots", "2", "--memory", "1G"], ["--memory", "16M"],
         ["--device-memory", "8M"]]


def noise(random, height, width):
    """A picture that is smooth on the left and random on the right, so that a misplaced strip changes the counts."""
    ramp = numpy.linspace(0, 255, height)[:, None, None] + numpy.zeros((1, width, 3))
    ramp[:, width // 2:] = random.integers(0, 256, (height, width - width // 2, 3))
    return Image.fromarray(ramp.astype("uint8"))


def oriented(image, path, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    image.save(path, exif=exif)


@pytest.fixture(scope="module")
def album(tmp_path_factory):
    """Small, large, wide, rotated and damaged pictures, and photographs if available. Tests must
    not change it."""
    directory = tmp_path_factory.mktemp("album")
    draw_photos(directory, 60)
    spoil(directory)
    random = numpy.random.default_rng(11)
    noise(random, 1900, 2900).save(directory / "large.jpg")
    noise(random, 800, 900).save(directory / "progressive.jpg", progressive=True)
    noise(random, 3, 200001).save(directory / "wide.png")
    noise(random, 70001, 1).save(directory / "tall.png")
    for orientation in range(1, 9):
        oriented(noise(random, 397, 601), directory / f"turned {orientation}.jpg", orientation)
    for name in ("dog-phone-orientation6.jpg", "flower-grey.jpg", "coffee-palette.png"):
        if (PHOTOS / "large" / name).exists():
            shutil.copy(PHOTOS / "large" / name, directory)
    return directory


def ingest(clpipe, name, *arguments, code=1, **kwargs):
    result = clpipe("ingest", "-o", name, "-q", *arguments, **kwargs)
    assert result.returncode == code, result.stderr
    return name


@pytest.fixture(scope="module")
def expected(program, album, tmp_path_factory):
    """The result of the album, computed with default options."""
    path = tmp_path_factory.mktemp("expected") / "expected.h5"
    result = run_clpipe("ingest", album, "-o", path, "-q", *FEATURES)
    assert result.returncode == 1, result.stderr
    with h5py.File(path, "r") as file:
        assert len(file["images/path"]) >= 60 + 1 + 4 + 8
    return path


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2, 7])
def test_any_threads_and_slots(clpipe, album, expected, tmp_path, threads):
    for number, slots in enumerate([[], *SLOTS]):
        name = ingest(clpipe, f"{number}.h5", album, "--threads", threads, *FEATURES, *slots)
        assert digest(tmp_path / name) == digest(expected), slots


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["private", "local", "replicated", "partial", "staged",
                                     "global"])
def test_any_variant(clpipe, album, expected, tmp_path, variant):
    name = ingest(clpipe, "v.h5", album, *FEATURES, "--histogram-variant", variant)
    assert digest(tmp_path / name) == digest(expected)


@pytest.mark.deep
@pytest.mark.parametrize("options", [[], ["--slot-size", "1M"], ["--blur", "3"],
                                     ["--decode-scale", "2"], ["--isolate"]])
def test_jpeg_pixels_anywhere(clpipe, album, expected, tmp_path, options):
    """JPEG pixels are the same from the host and from the device, which gets coefficients or entropy-coded data."""
    digests = []
    for where in ("host", "coefficients", "device"):
        name = ingest(clpipe, f"{where}.h5", album, *FEATURES, *options, "--jpeg-pixels", where)
        digests.append(digest(tmp_path / name))
    assert digests[0] == digests[1] == digests[2]
    assert (digests[0] == digest(expected)) == (options in ([], ["--slot-size", "1M"], ["--isolate"]))


@pytest.mark.slow
def test_the_packed_variant_needs_separate_channels(clpipe, album, tmp_path):
    features = ["--feature", "rgb:bins=256", "--feature", "rgb:bins=7,grid=3x2"]
    plain = ingest(clpipe, "plain.h5", album, *features)
    packed = ingest(clpipe, "packed.h5", album, *features, "--histogram-variant", "packed")
    assert digest(tmp_path / plain) == digest(tmp_path / packed)
    result = clpipe("ingest", album, "-o", "hsv.h5", "--feature", "hsv", "--histogram-variant",
                    "packed")
    check_one_error(result, 2, "'packed'", "hsv_8x4x4", "rgb:bins=B")
    assert not (tmp_path / "hsv.h5").exists()
    check_one_error(clpipe("ingest", album, "-o", "x.h5", "--histogram-variant", "best"), 2,
                    "--histogram-variant best", "private, local, replicated")


@pytest.mark.deep
def test_clusters_of_any_threads_and_memory(clpipe, expected, tmp_path):
    digests = set()
    for number, options in enumerate((["--threads", 1], ["--threads", 7], ["--memory", "16M"])):
        copy = tmp_path / f"{number}.h5"
        shutil.copy(expected, copy)
        result = clpipe("cluster", copy, "-k", 5, "--feature", "rgb_256", "-q", *options)
        assert result.returncode == 0, result.stderr
        digests.add(digest(copy))
    assert len(digests) == 1 and digests != {digest(expected)}


def test_the_digest_depends_on_the_pictures(clpipe, album, expected, tmp_path):
    """The tests above would also pass with a constant digest."""
    copy = tmp_path / "album"
    shutil.copytree(album, copy)
    with Image.open(copy / "wide.png") as image:
        changed = image.copy()
    changed.putpixel((200000, 2), tuple(255 - c for c in image.getpixel((200000, 2))))
    status = os.stat(copy / "wide.png")
    changed.save(copy / "wide.png")
    os.utime(copy / "wide.png", ns=(status.st_atime_ns, status.st_mtime_ns))
    ingest(clpipe, "x.h5", copy, *FEATURES)
    assert digest(tmp_path / "x.h5") != digest(expected)


# --- from run to run ----------------------------------------------------------------------------

def attributes(item):
    """Everything about the attributes of an object: names in order, types, shapes, bytes."""
    found = []
    for name in item.attrs:
        attribute = h5py.h5a.open(item.id, name.encode())
        value = item.attrs[name]
        if name in ("DIMENSION_LIST", "REFERENCE_LIST"):  # references are compared by the names of the scales
            value = len(value)
        found.append((name, attribute.get_type().encode(), attribute.shape,
                      numpy.asarray(value).tobytes()))
    return found


def structure(path):
    """The names of all objects, and {name: everything that HDF5 says about it} for those not under /runs."""
    found = {}

    def visit(name, item):
        if name == "runs" or name.startswith("runs/"):
            return
        about = [type(item), attributes(item)]
        if isinstance(item, h5py.Dataset):
            data = item[()]
            about += [item.id.get_type().encode(), item.shape, item.maxshape, item.chunks,
                      item.compression, item.id.get_create_plist().get_layout(),
                      item.id.get_offset(), item.id.get_storage_size(), item.dims[0].label,
                      [scale.name for axis in item.dims for scale in axis.values()],
                      data.tolist() if data.dtype.hasobject else data.tobytes()]
        else:
            about += [list(item)]
        found[name] = about

    with h5py.File(path, "r") as file:
        visit("/", file)
        file.visititems(visit)
        names = []
        file.visit(names.append)
    return names, found


def test_two_runs_differ_only_in_runs(clpipe, album, tmp_path):
    results = []
    for name, threads in (("first.h5", 7), ("second.h5", 2)):
        result = clpipe("run", "--no-report", album, "-o", name, "-k", 4, "-q", "--threads", threads, *FEATURES,
                        env={"SOURCE_DATE_EPOCH": "1234567890"})
        assert result.returncode == 1, result.stderr
        results.append(structure(tmp_path / name))
    assert results[0][0] == results[1][0]
    first, second = results[0][1], results[1][1]
    assert {"/", "images/path", "failures/message", "clusters/kmeans/labels", "feature_rgb_256",
            "features/rgb_8x8x8_3x3"} <= set(first)
    assert [name for name in first if first[name] != second[name]] == []
    assert set(first) == set(second)
    created, = [value for name, _, _, value in first["/"][1] if name == "created"]
    assert "2009-02-13T23:31:30Z" in created.decode("utf-32-le", "replace")


# --- order --------------------------------------------------------------------------------------

def rows(path):
    """[(path, source, all other columns and the features)] of the rows, in the order of the file."""
    with h5py.File(path, "r") as file:
        columns = [file["images"][name][:] for name in
                   ("width", "height", "orientation", "channels", "bytes", "digest", "format")]
        columns += [file["features"][name][:] for name in sorted(file["features"])]
        return [(file["images/path"].asstr()[row], int(file["images/source"][row]),
                 [column[row].tobytes() for column in columns])
                for row in range(len(file["images/path"]))]


@pytest.mark.deep
def test_a_list_keeps_its_order(clpipe, album, expected, tmp_path):
    whole = rows(expected)
    assert [path for path, _, _ in whole] == sorted((path for path, _, _ in whole), key=os.fsencode)
    backwards = [f"{album}/{path}" for path, _, _ in reversed(whole)]
    (tmp_path / "list").write_text("\n".join(backwards + backwards[:3]) + "\n")
    for name, options in (("a.h5", ["--threads", 1]), ("b.h5", ["--threads", 7, *SLOTS[0]])):
        ingest(clpipe, name, "@list", *FEATURES, *options, code=0)
        assert rows(tmp_path / name) == \
            [(f"{album}/{path}", 0, values) for path, _, values in reversed(whole)]
    assert digest(tmp_path / "a.h5") == digest(tmp_path / "b.h5") != digest(expected)
    # The same list on standard input is another source with the same rows.
    with open(tmp_path / "list") as stdin:
        ingest(clpipe, "c.h5", "-", *FEATURES, code=0, stdin=stdin)
    assert rows(tmp_path / "c.h5") == rows(tmp_path / "a.h5")


def test_sources_keep_the_given_order(clpipe, album, expected, tmp_path):
    by_colour = {colour: [(path.split("/", 1)[1], values) for path, _, values in rows(expected)
                          if path.startswith(colour + "/")] for colour in ("red", "green", "blue")}
    for name, order in (("a.h5", ("red", "green", "blue")), ("b.h5", ("green", "blue", "red"))):
        ingest(clpipe, name, *(album / colour for colour in order), *FEATURES, code=0)
        assert rows(tmp_path / name) == \
            [(path, source, values) for source, colour in enumerate(order)
             for path, values in by_colour[colour]]
    assert digest(tmp_path / "a.h5") != digest(tmp_path / "b.h5")


# --- other devices ------------------------------------------------------------------------------

@pytest.mark.deep
def test_several_devices_at_once(clpipe, album, expected, tmp_path):
    """PoCL provides the CPU as any number of devices."""
    for name in ("pthread", "cpu"):
        several = {"POCL_DEVICES": " ".join([name] * 3)}
        devices = clpipe("devices", "--json", "-", env=several)
        if len(json.loads(devices.stdout or "[]")) == 3:
            break
    else:
        pytest.skip("PoCL does not provide several devices")
    for slots in SLOTS[:2]:
        ingest(clpipe, "several.h5", album, "--fresh", "--device", "all", *FEATURES, *slots,
               env=several)
        with h5py.File(tmp_path / "several.h5", "r") as file:
            assert file["runs/0"].attrs["device"].count(" + ") == 2
        assert digest(tmp_path / "several.h5") == digest(expected)


@pytest.mark.slow
def test_the_same_in_a_simulator(clpipe, program, tmp_path):
    if not shutil.which("oclgrind"):
        pytest.skip("oclgrind is not installed")
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    random = numpy.random.default_rng(5)
    for orientation, (height, width) in enumerate([(41, 67), (1, 1), (2, 301), (90, 64)], 5):
        oriented(noise(random, height, width), pictures / f"{orientation}.jpg", orientation)
    noise(random, 390, 457).save(pictures / "in strips.png")
    features = ["--feature", "rgb:bins=256", "--feature", "gray:bins=100", "--feature", "hsv",
                "--feature", "gray:bins=10,grid=3x3,normalize=none"]
    command = ["ingest", "pictures", "-q", "--slot-size", "1M", *features]
    simulated = subprocess.run(["oclgrind", str(CLPIPE), *command, "-o", "simulated.h5"],
                               cwd=tmp_path, capture_output=True, text=True, timeout=120)
    # The simulator reports problems on standard error.
    assert (simulated.returncode, simulated.stderr) == (0, "")
    with h5py.File(tmp_path / "simulated.h5", "r") as file:
        assert "Oclgrind" in file["runs/0"].attrs["device"]
        assert sum(file["images/width"][:].astype(int) * file["images/height"][:]) < 2e6
    assert clpipe(*command, "-o", "here.h5").returncode == 0
    assert digest(tmp_path / "simulated.h5") == digest(tmp_path / "here.h5")

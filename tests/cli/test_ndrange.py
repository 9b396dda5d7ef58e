"""Ranges that are not a multiple of the work-group size: how PoCL and Oclgrind handle them, and the blur of a
picture over such ranges compared with numpy."""
import json
import shutil
import subprocess

import numpy
import pytest
from PIL import Image, ImageOps

from conftest import CLPIPE, check_one_error

CORNERS = ["top left", "top right", "bottom left", "bottom right"]


def blurred(picture):
    """The 3x3 box blur of the interior, rounded down."""
    p = numpy.asarray(picture.convert("RGB")).astype(int)
    h, w = p.shape[0] - 2, p.shape[1] - 2
    return sum(p[y:y + h, x:x + w] for y in range(3) for x in range(3)) // 9


def draw(path, height, width, orientation=1):
    noise = numpy.random.default_rng(7).integers(0, 256, (height, width, 3), dtype=numpy.uint8)
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(noise).save(path, exif=exif)
    return path


def probe(*arguments, simulator=False, cwd):
    wrapper = ["oclgrind"] if simulator else []
    done = subprocess.run([*wrapper, str(CLPIPE), "ndrange", "--json", "-", *map(str, arguments)],
                          cwd=cwd, capture_output=True, text=True, timeout=120)
    # The simulator prints its findings to standard error.
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def check_ids(case, width, height):
    assert [c["corner"] for c in case["corners"]] == CORNERS
    assert [c["global_id"] for c in case["corners"]] == [
        [0, 0], [width - 1, 0], [0, height - 1], [width - 1, height - 1]]


def check_cases(answer, width, height):
    """Checks what all devices have in common."""
    assert answer["global"] == [width, height]
    later = answer["cases"][2]["opencl_c"]
    assert later in ("2.0", "3.0")  # devices with OpenCL 3 need not support 2.0
    assert [(case["opencl_c"], case["local"] is None) for case in answer["cases"]] == [
        ("1.2", True), ("1.2", False), (later, True), (later, False)]
    for case in answer["cases"]:
        if case["launched"]:
            check_ids(case, width, height)
            enqueued = [c["enqueued_local_size"] for c in case["corners"]]
            assert (enqueued == [None] * 4) == (case["opencl_c"] == "1.2")


def check_refused(case):
    assert not case["launched"]
    assert (case["error"], case["code"]) == ("CL_INVALID_WORK_GROUP_SIZE", -54)
    assert "not a multiple" in case["reason"]


@pytest.mark.deep
def test_device_with_uniform_groups_only(program, tmp_path):
    answer = probe("638x478", "--local", "16x16", cwd=tmp_path)
    if answer["non_uniform_groups"]:
        pytest.skip("the device takes non-uniform work-groups")
    check_cases(answer, 638, 478)
    chosen, refused, chosen_2, refused_2 = answer["cases"]
    check_refused(refused)
    check_refused(refused_2)
    assert "OpenCL C 1.2" in refused["reason"] and "the device" in refused_2["reason"]
    for case in (chosen, chosen_2):
        sizes = {tuple(corner["local_size"]) for corner in case["corners"]}
        assert len(sizes) == 1
        x, y = sizes.pop()
        assert 638 % x == 0 and 478 % y == 0
    # All devices accept a range of complete work-groups.
    for case in probe("640x480", cwd=tmp_path)["cases"][1::2]:
        check_ids(case, 640, 480)
        assert {tuple(corner["local_size"]) for corner in case["corners"]} == {(16, 16)}


@pytest.mark.slow
def test_simulator_with_non_uniform_groups(program, tmp_path):
    if not shutil.which("oclgrind"):
        pytest.skip("oclgrind is not installed")
    answer = probe(simulator=True, cwd=tmp_path)  # its default is 638x478
    assert answer["non_uniform_groups"]
    check_cases(answer, 638, 478)
    check_refused(answer["cases"][1])  # OpenCL C 1.2 does not allow it
    corners = answer["cases"][3]["corners"]
    assert [c["local_size"] for c in corners] == [[16, 16], [14, 16], [16, 14], [14, 14]]
    assert [c["enqueued_local_size"] for c in corners] == [[16, 16]] * 4


@pytest.mark.deep
@pytest.mark.parametrize("simulator", [False, True], ids=["here", "oclgrind"])
def test_blur_of_a_picture(program, tmp_path, simulator):
    if simulator and not shutil.which("oclgrind"):
        pytest.skip("oclgrind is not installed")
    path = draw(tmp_path / "turned.jpg", 37, 52, orientation=6)
    answer = probe("--image", path, "--out", "blurred", simulator=simulator, cwd=tmp_path)
    check_cases(answer, 50, 35)
    wanted = blurred(ImageOps.exif_transpose(Image.open(path)))
    assert wanted.shape == (50, 35, 3)
    launched = [i for i, case in enumerate(answer["cases"]) if case["launched"]]
    assert launched == ([0, 2, 3] if simulator or answer["non_uniform_groups"] else [0, 2])
    assert sorted(p.name for p in tmp_path.glob("*.bmp")) == [f"blurred_{i}.bmp" for i in launched]
    for i in launched:
        assert answer["cases"][i]["equals_plain_c"] is True
        assert answer["cases"][i]["image"] == f"blurred_{i}.bmp"
        assert (numpy.asarray(Image.open(tmp_path / f"blurred_{i}.bmp")) == wanted).all()


@pytest.mark.variations
@pytest.mark.parametrize("orientation", [2, 3, 4, 5, 7, 8])
def test_pictures_are_written_upright(clpipe, tmp_path, orientation):
    path = draw(tmp_path / "turned.png", 5, 9, orientation)
    result = clpipe("ndrange", "--image", path, "--out", "b", "--local", "1x1")
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("equal to plain C") == 4
    wanted = blurred(ImageOps.exif_transpose(Image.open(path)))
    for i in range(4):
        assert (numpy.asarray(Image.open(tmp_path / f"b_{i}.bmp")) == wanted).all()


def test_pictures_that_cannot_be_blurred(clpipe, tmp_path):
    draw(tmp_path / "small.png", 2, 50)
    check_one_error(clpipe("ndrange", "--image", "small.png", "--out", "b"), 2, "50 x 2", "at least 3 x 3")
    draw(tmp_path / "b_3.png", 8, 8).rename(tmp_path / "b_3.bmp")
    check_one_error(clpipe("ndrange", "--image", "b_3.bmp", "--out", "b"), 2, "overwrite the image")
    check_one_error(clpipe("ndrange", "--image", "b_3.bmp", "--out", "c", "8x8"), 2, "leave out 8x8")
    check_one_error(clpipe("ndrange", "--image", "none.png", "--out", "b"), 2, "none.png")
    (tmp_path / "text.jpg").write_text("no picture")
    check_one_error(clpipe("ndrange", "--image", "text.jpg", "--out", "b"), 3, "text.jpg",
                    "unknown-format")
    result = clpipe("ndrange", "--image", "b_3.bmp", "--out", "no-such-directory/c")
    assert result.returncode == 3 and "no-such-directory" in result.stderr

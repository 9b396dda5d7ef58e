"""Codebooks are learned once, depend only on the pictures, are stored in the log and in the result, can be shared by
results, and are renewed on request. Errors are reported."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import h5py
import numpy
import pytest
from PIL import Image

from conftest import CLPIPE, ROOT, check_one_error, digest, log_bytes, run_clpipe

FISHER = ["--feature", "f=dct:fisher=4"]
WORDS = ["--feature", "w=dct:words=8"]


def draw(directory, first, count):
    """Draws pictures whose descriptors differ."""
    directory.mkdir(exist_ok=True)
    for i in range(first, first + count):
        random = numpy.random.default_rng(i)
        coarse = random.integers(0, 256, (6, 8, 3))
        pixels = numpy.kron(coarse, numpy.ones((8, 8, 1))) + random.normal(0, 3 + i % 40, (48, 64, 3))
        Image.fromarray(pixels.clip(0, 255).astype("uint8")).save(directory / f"{i:04}.png")


def ok(result):
    assert result.returncode == 0, result.stderr
    return result


def codebooks(path):
    """{name: digest} of the codebooks in a file."""
    info = json.loads(ok(run_clpipe("info", path, "--json", "-")).stdout)
    return {book["name"]: book["digest"] for book in info["codebooks"]}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    directory = tmp_path_factory.mktemp("codebooks") / "pictures"
    draw(directory, 0, 90)
    (directory / "cut.png").write_bytes((directory / "0000.png").read_bytes()[:300])
    return directory


@pytest.fixture(scope="module")
def made(pictures, tmp_path_factory, program):
    """A result with both kinds of aggregation. Tests must not change it."""
    output = tmp_path_factory.mktemp("made") / "made.h5"
    assert run_clpipe("ingest", pictures, "-o", output, *FISHER, *WORDS,
                      "-q").returncode == 1
    assert os.listdir(output.parent) == ["made.h5"]  # the work directory has been removed
    return output


@pytest.mark.deep
def test_identity_depends_on_the_files_alone(clpipe, pictures, made, tmp_path):
    for i, options in enumerate((["--threads", "1"], ["--threads", "5", "--memory", "16M"],
                                 ["--slots", "2", "--slot-size", "64K"], ["--isolate"])):
        output = tmp_path / f"{i}.h5"
        assert clpipe("ingest", pictures, "-o", output, *FISHER, *WORDS,
                      *options).returncode == 1
        assert digest(output) == digest(made)
    ok(clpipe("verify", made))
    books = codebooks(made)
    with h5py.File(made) as file:
        for name, words in ("f", 4), ("w", 8):
            assert file["features"][name].attrs["spec"].endswith(f",codebook={books[name]}")
            group = file["codebooks"][name]
            assert group.attrs["digest"] == books[name]
            assert group["word"].shape[0] == words
            assert group["share"][:].sum() == pytest.approx(1, abs=1e-3)
            assert [dimension[0].name for dimension in group["word"].dims] == [
                f"/codebook_row_{words}", "/codebook_value_16"]
        assert "codebook=" not in file.attrs["parameters"]
        assert numpy.isfinite(file["features/f"][:]).all()
    assert len(set(books.values())) == 2


def test_documented_identity_covers_codebooks_and_presets(clpipe, pictures, made, tmp_path):
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from identity import identity
    finally:
        sys.path.pop(0)
    assert identity(made) == digest(made)
    assert clpipe("ingest", pictures, "-o", "p.h5", "--preset", "color").returncode == 1
    assert identity(tmp_path / "p.h5") == digest(tmp_path / "p.h5")


@pytest.mark.parametrize("other", [False, True])
def test_verify_reports_a_missing_codebook(clpipe, made, tmp_path, other):
    """The codebook has been deleted or replaced by another one."""
    shutil.copy(made, tmp_path / "x.h5")
    with h5py.File(tmp_path / "x.h5", "r+") as file:
        del file["codebooks/w"]
        if other:
            file.copy("codebooks/f", file["codebooks"], "w")
    verified = clpipe("verify", "x.h5")
    assert verified.returncode == 1 and "/features/w: its codebook is not in the file" in verified.stdout
    assert "/features/f: its codebook" not in verified.stdout


@pytest.mark.deep
def test_a_killed_run_continues_with_its_codebooks(pictures, made, tmp_path, program):
    """The run is killed after it has learned its codebooks. Then pictures are added, from which other codebooks
    would be learned."""
    place = tmp_path / "pictures"
    shutil.copytree(pictures, place)
    command = [str(CLPIPE), "ingest", "pictures", "-o", "x.h5", *FISHER, *WORDS, "-q"]
    killed = False
    for patience in range(200):
        process = subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.DEVNULL)
        while process.poll() is None and not (tmp_path / "x.h5.partial/learned").exists():
            time.sleep(0.001)
        while process.poll() is None and log_bytes(tmp_path / "x.h5.partial") == 0:
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.wait()
        killed = not (tmp_path / "x.h5").exists()
        if killed:
            break
        os.remove(tmp_path / "x.h5")
    assert killed
    draw(place, 500, 60)
    assert run_clpipe("ingest", "pictures", "-o", "x.h5", *FISHER, *WORDS,
                      cwd=tmp_path).returncode == 1
    assert codebooks(tmp_path / "x.h5") == codebooks(made)
    assert not (tmp_path / "x.h5.partial").exists()
    ok(run_clpipe("verify", "x.h5", cwd=tmp_path))


@pytest.mark.deep
def test_an_update_keeps_codebooks_and_retrain_renews_them(clpipe, tmp_path):
    draw(tmp_path / "in", 0, 70)
    ok(clpipe("ingest", "in", "-o", "x.h5", *FISHER, "--feature", "gray:bins=8"))
    ok(clpipe("cluster", "x.h5", "-k", 3, "--feature", "f", "--name", "mine"))
    ok(clpipe("cluster", "x.h5", "-k", 3, "--feature", "gray_8", "--name", "other"))
    ok(clpipe("similar", "x.h5", "--all", "-n", 3, "--feature", "f"))
    before = codebooks(tmp_path / "x.h5")
    shutil.copy(tmp_path / "x.h5", tmp_path / "first.h5")
    draw(tmp_path / "in", 300, 40)
    ok(clpipe("ingest", "in", "-o", "x.h5"))
    assert codebooks(tmp_path / "x.h5") == before
    # A single run over all pictures with that codebook gives the same values.
    ok(clpipe("ingest", "in", "-o", "given.h5", "--feature", "f=dct:fisher=4,codebook=first.h5",
              "--feature", "gray:bins=8"))
    with h5py.File(tmp_path / "x.h5") as one, h5py.File(tmp_path / "given.h5") as other:
        assert (one["features/f"][:] == other["features/f"][:]).all()
        assert one["features/f"].attrs["spec"] == other["features/f"].attrs["spec"]
    # Without clusterings and neighbours, the files are equal.
    for name in "clusters/mine", "clusters/other", "neighbours/f":
        shutil.copy(tmp_path / "x.h5", tmp_path / "bare.h5") if name == "clusters/mine" else None
        ok(clpipe("remove", "bare.h5", name, "--force"))
    assert digest(tmp_path / "bare.h5") == digest(tmp_path / "given.h5")

    renewed = ok(clpipe("ingest", "in", "-o", "x.h5", "--retrain"))
    assert "clusters/mine is removed" in renewed.stderr
    assert "neighbours/f is removed" in renewed.stderr
    assert "other" not in renewed.stderr
    assert codebooks(tmp_path / "x.h5") != before
    with h5py.File(tmp_path / "x.h5") as file:
        assert list(file["clusters"]) == ["other"]
        assert (file["clusters/other/labels"][:] >= 0).all()
    ok(clpipe("ingest", "in", "-o", "fresh.h5", *FISHER, "--feature", "gray:bins=8"))
    ok(clpipe("remove", "x.h5", "clusters/other"))
    assert digest(tmp_path / "x.h5") == digest(tmp_path / "fresh.h5")
    ok(clpipe("verify", "x.h5"))
    # The codebook of another file replaces the one that would be learned.
    check_one_error(clpipe("ingest", "in", "-o", "x.h5", "--feature",
                           "f=dct:fisher=4,codebook=first.h5"), 2, "other than that of the command", "--retrain")
    ok(clpipe("ingest", "in", "-o", "x.h5", "--feature", "f=dct:fisher=4,codebook=first.h5",
              "--retrain"))
    assert codebooks(tmp_path / "x.h5") == before
    ok(clpipe("ingest", "in", "-o", "plain.h5", "--feature", "gray:bins=8"))
    check_one_error(clpipe("ingest", "in", "-o", "plain.h5", "--retrain"), 2, "no codebooks")


def test_files_share_a_codebook(clpipe, pictures, made, tmp_path):
    """`clpipe codebook` learns the same codebook as ingest. With a shared codebook, the rows of parts equal those
    of the whole."""
    told = clpipe("codebook", pictures, "-o", "c,1.h5", *FISHER, *WORDS, "--json", "-")
    assert ok(told) and json.loads(told.stdout)["images"] == 90
    assert codebooks(tmp_path / "c,1.h5") == codebooks(made)
    ok(clpipe("verify", "c,1.h5"))
    assert "codebooks f " in clpipe("info", "c,1.h5").stdout.replace("  ", " ")
    check_one_error(clpipe("codebook", pictures, "-o", "c,1.h5", *FISHER), 3, "exists", "--force")
    shutil.copy(made, tmp_path / "images.h5")
    check_one_error(clpipe("codebook", pictures, "-o", "images.h5", *FISHER, "--force"), 2,
                    "images.h5 holds images, so it is not overwritten")
    assert digest(tmp_path / "images.h5") == digest(made)
    few = json.loads(ok(clpipe("codebook", pictures, "-o", "c,1.h5", *FISHER, *WORDS, "--sample", 20,
                               "--force", "--json", "-")).stdout)
    assert few["images"] == 20 and codebooks(tmp_path / "c,1.h5") != codebooks(made)

    for part, pattern in ("even", "*[02468].png"), ("odd", "*[13579].png"):
        ok(clpipe("ingest", pictures, "-o", f"{part}.h5", "--include", pattern,
                  "--feature", f"f=dct:fisher=4,codebook={made}"))
    with h5py.File(made) as whole:
        rows = dict(zip(whole["images/path"].asstr()[:], whole["features/f"][:]))
        for part in "even", "odd":
            with h5py.File(tmp_path / f"{part}.h5") as file:
                assert file["features/f"].attrs["spec"] == whole["features/f"].attrs["spec"]
                for path, row in zip(file["images/path"].asstr()[:], file["features/f"][:]):
                    assert (row == rows[path]).all()


def test_the_same_command_finds_its_codebooks(clpipe, pictures, tmp_path):
    """A repeated command, as after a kill between the rename and the end, finds its codebooks. A command for other
    codebooks does not replace them."""
    command = ["codebook", "in", "-o", "c.h5", *WORDS, *FISHER]
    shutil.copytree(pictures, tmp_path / "in")
    ok(clpipe(*command))
    written = (tmp_path / "c.h5").read_bytes()
    again = ok(clpipe(*command, "--json", "report.json"))
    assert "up to date" in again.stdout + again.stderr
    assert [book["digest"] for book in json.loads((tmp_path / "report.json").read_text())["codebooks"]] == [
        codebooks(tmp_path / "c.h5")[name] for name in "wf"]
    nowhere = ["codebook", "nowhere", "-o", "c.h5", *WORDS, *FISHER]
    for other in (["codebook", "in", "-o", "c.h5", *WORDS], [*command, "--feature", "dct:words=2"],
                  *([*nowhere, *option] for option in (["--sample", "20"], ["--alpha", "black"], ["--icc", "apply"],
                                                       ["--decode-scale", "2"]))):
        check_one_error(clpipe(*other), 3, "c.h5 exists", "--force")
    draw(tmp_path / "in", 700, 1)
    check_one_error(clpipe(*command), 3, "c.h5 exists", "--force")
    assert (tmp_path / "c.h5").read_bytes() == written
    ok(clpipe(*command, "--force"))
    assert (tmp_path / "c.h5").read_bytes() != written


def test_files_that_cannot_be_read_are_told(clpipe, pictures, tmp_path):
    """They are not in the sample, so the codebook may be a different one when they can be read."""
    paths = "".join(f"{path}\n" for path in sorted(pictures.iterdir()))
    for name, text in (("whole", paths), ("lacking", paths + "gone.png\n")):
        (tmp_path / name).write_text(text)
        told = clpipe("codebook", f"@{name}", "-o", f"{name}.h5", *WORDS)
        assert told.returncode == (name == "lacking")
        assert ("1 of the files and directories" in told.stderr) == (name == "lacking")
    assert codebooks(tmp_path / "whole.h5") == codebooks(tmp_path / "lacking.h5")


def murmur3(data):
    """MurmurHash3_x64_128, seed 0: h1 and h2."""
    mask, c1, c2 = (1 << 64) - 1, 0x87c37b91114253d5, 0x4cf5ad432745937f

    def turn(x, n):
        return ((x << n) | (x >> (64 - n))) & mask

    def mix(x):
        x = ((x ^ x >> 33) * 0xff51afd7ed558ccd) & mask
        x = ((x ^ x >> 33) * 0xc4ceb9fe1a85ec53) & mask
        return x ^ x >> 33
    h1 = h2 = 0
    for at in range(0, len(data), 16):
        block = data[at:at + 16]
        k1, k2 = (int.from_bytes(block[i:i + 8], "little") for i in (0, 8))
        k1, k2 = turn(k1 * c1 & mask, 31) * c2 & mask, turn(k2 * c2 & mask, 33) * c1 & mask
        if len(block) < 16:
            h1, h2 = h1 ^ k1, h2 ^ k2
            break
        h1 = ((turn(h1 ^ k1, 27) + h2) * 5 + 0x52dce729) & mask
        h2 = ((turn(h2 ^ k2, 31) + h1) * 5 + 0x38495ab5) & mask
    h1, h2 = h1 ^ len(data), h2 ^ len(data)
    h1 = (h1 + h2) & mask
    h2 = (h2 + h1) & mask
    h1, h2 = mix(h1), mix(h2)
    return (h1 + h2) & mask, (h1 + 2 * h2) & mask


@pytest.mark.deep
def test_the_sample_is_chosen_by_the_documented_rule(clpipe, pictures, tmp_path):
    """The codebook of a sample of 7 equals that of a directory with only these 7. Files that cannot be decoded are
    skipped, and files without an image extension come last."""
    place = tmp_path / "in"
    shutil.copytree(pictures, place)
    shutil.copy(place / "0001.png", place / "no promise")
    names = sorted((p.name for p in pictures.iterdir()), key=lambda name: murmur3(name.encode())[0])
    cut = names.index("cut.png")
    for sample in 7, cut + 1:
        chosen = [name for name in names if name != "cut.png"][:sample]
        ok(clpipe("codebook", place, "-o", f"{sample}.h5", *FISHER, "--sample", sample))
        (tmp_path / f"only{sample}").mkdir()
        for name in chosen:
            shutil.copy(place / name, tmp_path / f"only{sample}" / name)
        ok(clpipe("codebook", f"only{sample}", "-o", f"only{sample}.h5", *FISHER, "--sample", sample))
        assert codebooks(tmp_path / f"{sample}.h5") == codebooks(tmp_path / f"only{sample}.h5")


@pytest.mark.deep
def test_unsuitable_codebooks_are_refused(clpipe, pictures, made, tmp_path):
    def refused(spec, code, *parts):
        check_one_error(clpipe("ingest", pictures, "-o", "no.h5", "--feature", spec), code, *parts)
        assert not (tmp_path / "no.h5").exists()
    refused("dct:fisher=4,codebook=none.h5", 2, "none.h5")
    refused("dct:fisher=5,codebook=" + str(made), 2, "no codebook of", "f: dct:fisher=4")
    refused("sift:fisher=4,codebook=" + str(made), 2, "no codebook of")
    refused("rgb:bins=4,codebook=" + str(made), 2, "rgb needs no codebook")
    refused("dct:fisher=4,codebook=", 2, "needs a file")
    (tmp_path / "text.h5").write_text("no file of codebooks")
    refused("dct:fisher=4,codebook=text.h5", 3, "text.h5")
    ok(clpipe("ingest", pictures, "-o", "plain.h5", "--feature", "gray", "--exclude", "cut.png"))
    refused("dct:fisher=4,codebook=plain.h5", 2, "plain.h5", "no codebook")
    check_one_error(clpipe("codebook", pictures, "-o", "c.h5", "--feature", "gray"), 2,
                    "gray needs no codebook")
    check_one_error(clpipe("codebook", pictures, "-o", "c.h5"), 2, "--feature")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty/notes.txt").write_text("no image")
    check_one_error(clpipe("codebook", "empty", "-o", "c.h5", *FISHER), 3, "no image")
    check_one_error(clpipe("ingest", "empty", "-o", "c.h5", *FISHER), 3, "no image")
    # A damaged codebook is refused by an update and as codebook=FILE, found by verify, and left out by repair.
    shutil.copy(made, tmp_path / "bad.h5")
    with h5py.File(tmp_path / "bad.h5", "r+") as file:
        file["codebooks/f/word"][0, 0] += 1
    check_one_error(clpipe("ingest", pictures, "-o", "bad.h5"), 3, "codebooks/f", "--retrain")
    refused("f=dct:fisher=4,codebook=bad.h5", 3, "codebooks/f")
    broken = clpipe("verify", "bad.h5")
    assert broken.returncode == 1 and "/codebooks/f" in broken.stdout
    repaired = clpipe("repair", "bad.h5")
    assert repaired.returncode == 1 and "1 codebook" in repaired.stdout
    with h5py.File(tmp_path / "bad.h5") as file, h5py.File(made) as good:
        assert list(file["codebooks"]) == ["w"]
        assert (file["features/f"][:] == good["features/f"][:]).all()
    assert clpipe("ingest", pictures, "-o", "bad.h5", "--retrain").returncode == 1
    assert digest(tmp_path / "bad.h5") == digest(made)


def test_query_pictures_are_described_with_the_codebook_of_the_file(clpipe, pictures, made, tmp_path):
    shutil.copy(pictures / "0007.png", tmp_path / "elsewhere.png")
    found = ok(clpipe("similar", made, "elsewhere.png", "-n", 2, "--feature", "f", "--format",
                      "jsonl"))
    first = json.loads(found.stdout.splitlines()[0])
    assert first["path"] == "0007.png" and first["distance"] == 0


@pytest.mark.deep
def test_hostile_pictures(clpipe, tmp_path):
    """Pictures that are flat, grey or too small for a descriptor give rows without NaN, even if there are fewer
    descriptors than words."""
    place = tmp_path / "in"
    place.mkdir()
    for i, (width, height) in enumerate([(1, 1), (1, 300), (300, 1), (7, 7), (8, 8), (9, 30)]):
        Image.new("RGB", (width, height), (i * 40, 10, 10)).save(place / f"flat{i}.png")
    Image.new("L", (32, 32), 128).save(place / "grey.png")
    kinds = ("dct", "sift", "opsift", "patch")
    ok(clpipe("ingest", "in", "-o", "x.h5", *[o for kind in kinds for o in
                                             ("--feature", f"{kind}:fisher=8",
                                              "--feature", f"{kind}:words=64")]))
    ok(clpipe("verify", "x.h5"))
    with h5py.File(tmp_path / "x.h5") as file:
        for name, values in file["features"].items():
            assert numpy.isfinite(values[:]).all(), name
        assert (file["features/dct_words64" if "dct_words64" in file["features"] else "features/dct_64"]
                [0] == 0).all()


def preset_of(path):
    with h5py.File(path) as file:
        return json.loads(file.attrs["preset"]), sorted(file["features"])


@pytest.mark.deep
def test_presets(clpipe, pictures, tmp_path):
    (tmp_path / "none").mkdir()
    for name, features in ("color", ["hsv"]), ("fast", ["dct", "hog", "oplbp"]):
        made = clpipe("ingest", pictures, "-o", f"{name}.h5", "--preset", name, "--threads", "2")
        assert made.returncode == 1 and "notice" not in made.stderr
        preset, there = preset_of(tmp_path / f"{name}.h5")
        assert preset["name"] == name and there == features
        assert sorted(f["name"] for f in preset["features"]) == features
        assert preset["metric"] == "euclidean" and preset["rows"] == "unit"
    ok(clpipe("verify", "fast.h5"))
    # An update keeps the preset, with and without the option; another preset has other features.
    before = digest(tmp_path / "fast.h5")
    for options in [], ["--preset", "fast"]:
        assert clpipe("ingest", pictures, "-o", "fast.h5", *options).returncode == 1
    assert digest(tmp_path / "fast.h5") == before
    assert clpipe("ingest", pictures, "-o", "one.h5", "--preset", "fast", "--threads", "1"
                  ).returncode == 1
    assert digest(tmp_path / "one.h5") == before
    check_one_error(clpipe("ingest", pictures, "-o", "fast.h5", "--preset", "good"), 2, "--add")
    check_one_error(clpipe("ingest", pictures, "-o", "x.h5", "--preset", "fast", "--feature", "gray"),
                    2, "cannot be combined")


@pytest.mark.deep
def test_preset_of_flat_pictures(clpipe, tmp_path):
    """With the default preset, 70 flat pictures have equal rows, which cluster reports."""
    (tmp_path / "in").mkdir()
    for i in range(70):
        Image.new("L", (40 + i, 30), 128).save(tmp_path / "in" / f"{i}.png")
    ok(clpipe("ingest", "in", "-o", "x.h5", feature=None))
    ok(clpipe("verify", "x.h5"))
    assert preset_of(tmp_path / "x.h5")[1] == ["dct", "hog", "oplbp"]
    with h5py.File(tmp_path / "x.h5") as file:
        for name, values in file["features"].items():
            assert numpy.isfinite(values[:]).all() and (values[:] == values[0]).all(), name
    result = clpipe("cluster", "x.h5", "-k", "2")
    assert result.returncode == 3 and "all rows are equal: they have no principal components" in result.stderr
    assert "k is 2, but there is only 1 distinct row" in result.stderr
    ok(clpipe("cluster", "x.h5", "-k", "1", "--pca", "0"))


@pytest.mark.deep
@pytest.mark.parametrize("preset", ["fast", "good", "best"])
def test_the_type_that_a_preset_stores(clpipe, tmp_path, preset):
    """A preset with codebooks stores float16 unless --store says otherwise; an update keeps the type of the file."""
    draw(tmp_path / "in", 0, 64)
    for name, options, kind in ("a.h5", [], "f2"), ("b.h5", ["--store", "float32"], "f4"), ("c.h5", ["--store", "uint8"], "u1"):
        ok(clpipe("ingest", "in", "-o", name, "--preset", preset, *options))
        with h5py.File(tmp_path / name) as file:
            assert {values.dtype.str[1:] for values in file["features"].values()} == {kind}
    check_one_error(clpipe("ingest", "in", "-o", "a.h5", "--preset", preset, "--store", "float32"), 2, "--store differs")
    draw(tmp_path / "in", 64, 1)
    ok(clpipe("ingest", "in", "-o", "b.h5", "--preset", preset))
    with h5py.File(tmp_path / "b.h5") as file:
        assert {values.dtype.str[1:] for values in file["features"].values()} == {"f4"}
        assert all(len(values) == 65 for values in file["features"].values())


def test_parts_of_one_codebook_in_two_types_are_not_merged(clpipe, tmp_path):
    """The line names the types, not codebooks, which are the same."""
    draw(tmp_path / "in", 0, 64)
    ok(clpipe("codebook", "in", "-o", "c.h5", "--feature", "dct:words=4"))
    for name, store in ("a.h5", "float32"), ("b.h5", "float16"):
        ok(clpipe("ingest", "in", "-o", name, "--feature", f"dct:words=4,normalize=l1,store={store},codebook=c.h5"))
    merged = clpipe("merge", "a.h5", "b.h5", "-o", "m.h5")
    check_one_error(merged, 2, "a.h5 and b.h5 cannot be merged: the feature dct_words4 is dct:words=4,", " in one, dct:", "store=float16")
    assert "codebooks differ" not in merged.stderr


@pytest.mark.deep
def test_few_pictures_have_presets_without_codebooks(clpipe, tmp_path):
    draw(tmp_path / "in", 0, 63)
    few = ok(clpipe("ingest", "in", "-o", "few.h5", "--preset", "best"))
    assert "63 images are too few" in few.stderr
    preset, features = preset_of(tmp_path / "few.h5")
    assert features == ["hog", "hsv", "oplbp"]
    assert {f["name"]: f["weight"] for f in preset["features"]} == {"oplbp": 1, "hsv": .5, "hog": .5}
    with h5py.File(tmp_path / "few.h5") as file:
        assert "codebooks" not in file
    before = digest(tmp_path / "few.h5")
    ok(clpipe("ingest", "in", "-o", "few.h5", "--preset", "best"))
    assert digest(tmp_path / "few.h5") == before
    draw(tmp_path / "in", 63, 1)
    check_one_error(clpipe("ingest", "in", "-o", "few.h5", "--preset", "best"), 2, "few.h5 has the features for few",
                    "--preset best --add")
    ok(clpipe("ingest", "in", "-o", "few.h5"))
    assert preset_of(tmp_path / "few.h5") == (preset, features)
    enough = ok(clpipe("ingest", "in", "-o", "few.h5", "--preset", "fast", "--fresh"))
    assert "too few" not in enough.stderr
    assert preset_of(tmp_path / "few.h5")[1] == ["dct", "hog", "oplbp"]


def test_pictures_too_small_to_learn_from(clpipe, tmp_path):
    (tmp_path / "in").mkdir()
    for i in range(70):
        Image.new("RGB", (1, 1), (i, 0, 0)).save(tmp_path / "in" / f"{i}.png")
    check_one_error(clpipe("ingest", "in", "-o", "a.h5", "--feature", "sift:words=4"), 2,
                    "the images of the sample (70) are too small")
    assert not (tmp_path / "a.h5").exists()
    without = ok(clpipe("ingest", "in", "-o", "p.h5", "--preset", "fast"))
    assert "the images are too small or too much alike to learn codebooks from" in without.stderr
    (tmp_path / "one").mkdir()
    shutil.copy(tmp_path / "in/0.png", tmp_path / "one")
    assert "1 image is too few" in ok(clpipe("ingest", "one", "-o", "o.h5", "--preset",
                                             "fast")).stderr

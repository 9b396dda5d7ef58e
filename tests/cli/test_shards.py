"""Ingesting shares of a list with --shard."""
import json
import os
import resource
import shutil
import subprocess

import h5py
import pytest
from conftest import CLPIPE, check_one_error, digest, logs_of

FEATURE = ["--feature", "gray:bins=8", "--device", "cpu"]
NO_LAUNCHER = {name: None for name in os.environ
               if name.startswith(("SLURM_", "OMPI_", "PMI", "MV2_"))}


def table(path):
    """Rows and failures of a result as lists."""
    with h5py.File(path) as file:
        return ([(name, tuple(row)) for name, row in zip(file["images/path"][()],
                                                         file["features/gray_8"][()])],
                list(zip(file["failures/path"][()], file["failures/reason"][()])))


def share(path):
    with h5py.File(path) as file:
        return {name: value for name, value in file.attrs.items() if name.startswith(("shard", "list"))}


@pytest.mark.deep
def test_shards_make_up_the_whole(clpipe, mixed, tmp_path):
    assert clpipe("ingest", mixed, "-o", "all.h5", "-q", *FEATURE).returncode == 1
    images, failures = table(tmp_path / "all.h5")
    assert share(tmp_path / "all.h5") == {}
    for count in (1, 3, 20):
        rows, failed, position, digests = [], [], 0, set()
        for i in range(count):
            result = clpipe("ingest", mixed, "-o", "s-{shard}.h5", "--shard", f"{i}/{count}", "-q",
                            *FEATURE, "--fresh")
            assert result.returncode in (0, 1), result.stderr
            path = tmp_path / (f"s-{i:02}.h5" if count > 10 else f"s-{i}.h5")
            assert clpipe("verify", path).returncode == 0
            about = share(path)
            assert (about["shard_index"], about["shard_count"]) == (i, count)
            assert about["shard_first"] == position
            assert about["list_count"] == len(images) + len(failures)
            position = about["shard_last"]
            digests.add(about["list_digest"])
            part = table(path)
            assert len(part[0]) + len(part[1]) == position - about["shard_first"]
            rows += part[0]
            failed += part[1]
        assert position == len(images) + len(failures) and len(digests) == 1
        assert rows == images and failed == failures


def test_an_updated_shard_remains_a_shard(clpipe, photos, tmp_path):
    shutil.copytree(photos, tmp_path / "t")
    assert clpipe("ingest", "t", "-o", "s.h5", "--shard", "1/2", "-q", *FEATURE).returncode == 0
    before, about = digest(tmp_path / "s.h5"), share(tmp_path / "s.h5")
    again = clpipe("ingest", "t", "-o", "s.h5")
    assert "nothing new" in again.stdout and "1/2" in again.stdout
    assert "shard     1/2: files" in clpipe("info", "s.h5").stdout
    # A new file that only the other shard has changes the list.
    shutil.copy(tmp_path / "t/red/00.png", tmp_path / "t/aaa.png")
    assert clpipe("ingest", "t", "-o", "s.h5", "-q").returncode == 0
    assert share(tmp_path / "s.h5")["list_digest"] != about["list_digest"]
    assert share(tmp_path / "s.h5")["list_count"] == about["list_count"] + 1
    os.remove(tmp_path / "t/aaa.png")
    assert clpipe("ingest", "t", "-o", "s.h5", "-q").returncode == 0
    assert digest(tmp_path / "s.h5") == before
    check_one_error(clpipe("ingest", "t", "-o", "s.h5", "--shard", "0/2"), 2,
                    "s.h5 is shard 1/2", "asks for shard 0/2")
    assert clpipe("ingest", "t", "-o", "all.h5", "-q", *FEATURE).returncode == 0
    check_one_error(clpipe("ingest", "t", "-o", "all.h5", "--shard", "0/2"), 2, "no shard")


@pytest.mark.deep
def test_an_interrupted_shard_continues(clpipe, mixed, tmp_path):
    for extra in (["--strict"], []):
        first = clpipe("ingest", mixed, "-o", "s.h5", "--shard", "0/2", "-q", *FEATURE, *extra)
        if extra and logs_of(tmp_path / "s.h5.partial"):
            check_one_error(clpipe("ingest", mixed, "-o", "s.h5", "--shard", "1/2", *FEATURE), 2,
                            "shard 0/2")
        assert first.returncode == 1
    assert clpipe("ingest", mixed, "-o", "t.h5", "--shard", "0/2", "-q", *FEATURE).returncode == 1
    assert digest(tmp_path / "s.h5") == digest(tmp_path / "t.h5")


@pytest.mark.parametrize("shard,env,said", [
    ("slurm/8", {"SLURM_ARRAY_TASK_ID": "3"}, (3, 8)),
    ("slurm/8", {"SLURM_ARRAY_TASK_ID": "17", "SLURM_ARRAY_TASK_COUNT": "2"}, "0 to 7"),
    ("slurm/8", {}, "not a task of a Slurm array"),
    ("slurm/8", {"SLURM_ARRAY_TASK_ID": "x"}, "task is x"),
    ("mpi", {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4"}, (2, 4)),
    ("mpi", {"PMI_RANK": "0", "PMI_SIZE": "1"}, (0, 1)),
    ("mpi", {"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"}, (1, 2)),
    ("mpi", {"SLURM_PROCID": "0", "SLURM_NTASKS": "2"}, "no MPI launcher"),  # a batch script
    ("mpi", {"PMI_RANK": "0", "PMI_SIZE": "0"}, "PMI_RANK is 0 and PMI_SIZE is 0"),
    ("mpi", {}, "no MPI launcher"),
    ("8/8", {}, "I is 0 to 7"), ("0/0", {}, "I/N"), ("0/65537", {}, "N from 1 to 65536"), ("-1/2", {}, "0 to 1"), ("3", {}, "I/N"),
    ("/", {}, "I/N"), ("1/2/3", {}, "I/N")])
def test_sources_of_the_shard_number(clpipe, photos, shard, env, said):
    result = clpipe("ingest", photos, "--dry-run", "--shard", shard, env={**NO_LAUNCHER, **env})
    if isinstance(said, str):
        check_one_error(result, 2, "--shard", said)
    else:
        assert result.returncode == 0, result.stderr
        assert f"{said[0]}/{said[1]}:" in result.stdout


def test_a_single_shard(clpipe, photos):
    assert clpipe("ingest", photos, "-o", "s.h5", "--shard", "0/1", "-q", *FEATURE).returncode == 0
    assert "shard     0/1: files 0 to 13 of 13\n" in clpipe("info", "s.h5").stdout
    told = json.loads(clpipe("info", "s.h5", "--json", "-").stdout)["shard"]
    assert [told[key] for key in ("index", "count", "first", "last", "list_count")] == [0, 1, 0, 13, 13]


def test_shards_need_given_codebooks(clpipe, photos):
    check_one_error(clpipe("ingest", photos, "-o", "s.h5", "--shard", "0/2", "--feature",
                           "dct:words=8"), 2, "clpipe codebook", "--feature dct_words8=dct:words=8")
    for preset in (["--preset", "good"], []):
        check_one_error(clpipe("ingest", photos, "-o", "s.h5", "--shard", "0/2", *preset,
                               feature=None), 2,
                        "clpipe codebook", f"--preset {preset[-1] if preset else 'fast'}",
                        "--codebook C.h5")
    check_one_error(clpipe("ingest", photos, "-o", "s.h5", "--shard", "0/2", "--limit", "3"), 2,
                    "--shard and --limit")


@pytest.mark.deep
def test_a_preset_with_given_codebooks(clpipe, tmp_path, photos):
    """A share has the same values as the whole."""
    assert clpipe("codebook", photos, "-o", "c.h5", "--preset", "fast", "-q").returncode == 0
    given = ["--preset", "fast", "--codebook", "c.h5", "-q"]
    assert clpipe("ingest", photos, "-o", "all.h5", *given).returncode == 0
    assert clpipe("ingest", photos, "-o", "s.h5", "--shard", "1/2", *given).returncode == 0
    with h5py.File(tmp_path / "all.h5") as whole, h5py.File(tmp_path / "s.h5") as part:
        first = part.attrs["shard_first"]
        assert whole.attrs["preset"] == part.attrs["preset"]
        assert list(whole["features"]) == list(part["features"]) and whole["codebooks"]
        for name in whole["features"]:
            assert (whole["features"][name][first:] == part["features"][name][()]).all()
    check_one_error(clpipe("ingest", photos, "-o", "n.h5", "--codebook", "c.h5", "--feature", "gray"),
                    2, "no feature needs one")


@pytest.fixture(scope="module")
def collection(tmp_path_factory, mixed):
    """A directory with damaged files and strange names, and archives of it."""
    top = tmp_path_factory.mktemp("collection")
    shutil.copytree(mixed, top / "t")
    shutil.copy(mixed / "red/00.png", top / "t/new\nline.png")
    shutil.copy(mixed / "red/00.png", os.fsencode(top / "t") + b"/\xff.png")
    os.symlink("nowhere", top / "t/broken.jpg")
    for kind in ("tar", "gztar", "zip"):
        shutil.make_archive(top / "all", kind, mixed)
    return top


@pytest.mark.deep
def test_a_list_equals_its_sources(clpipe, collection, tmp_path):
    sources = ["t", "all.tar", "all.tar.gz", "all.zip"]
    run = dict(cwd=collection)
    made = clpipe("list", *sources, "-o", tmp_path / "L", "--json", "-", **run)
    assert made.returncode == 0, made.stderr
    about = json.loads(made.stdout)
    assert about["archives"] == 3 and about["failed"] >= 1
    assert clpipe("ingest", *sources, "-o", tmp_path / "d.h5", "-q", *FEATURE, **run).returncode == 1
    assert clpipe("ingest", f"@{tmp_path}/L", "-o", tmp_path / "l.h5", "-q", *FEATURE,
                  **run).returncode == 1
    assert clpipe("verify", "l.h5").returncode == 0

    def named(result):  # adds the directory to names that come from it
        with h5py.File(tmp_path / f"{result}.h5") as file:
            first = [b"t/" if result == "d" and source == 0 else b""
                     for source in file["images/source"][()]]
        images, failures = table(tmp_path / f"{result}.h5")
        return [(b + name, row) for b, (name, row) in zip(first, images)], [r for _, r in failures]
    assert named("l") == named("d")
    assert "nothing new" in clpipe("ingest", f"@{tmp_path}/L", "-o", tmp_path / "l.h5", **run).stdout
    # A list made from a list is the same; its digest identifies the shares.
    assert clpipe("list", f"@{tmp_path}/L", "-o", tmp_path / "M", "-q", **run).returncode == 0
    assert (tmp_path / "L").read_bytes() == (tmp_path / "M").read_bytes()
    dry = clpipe("ingest", f"@{tmp_path}/L", "--dry-run", "--shard", "1/3", "--json", "-", **run)
    assert json.loads(dry.stdout)["shard"]["list_digest"] == about["list_digest"]
    check_one_error(clpipe("list", "t", "-o", tmp_path / "L", **run), 3, "exists")


@pytest.mark.deep
def test_shards_do_not_split_compressed_archives(clpipe, collection, tmp_path):
    assert clpipe("list", "all.tar", "all.tar.gz", "-o", tmp_path / "L", "-q",
                  cwd=collection).returncode == 0
    home = [set(), set()]
    for i in range(7):
        assert clpipe("ingest", f"@{tmp_path}/L", "-o", tmp_path / "s{shard}.h5", "-q", "--shard",
                      f"{i}/7", *FEATURE, cwd=collection).returncode in (0, 1)
        for name, _ in table(tmp_path / f"s{i}.h5")[0]:
            home[name.startswith(b"all.tar.gz")].add(i)
    assert len(home[0]) > 3 and len(home[1]) == 1
    assert clpipe("ingest", f"@{tmp_path}/L", "-o", tmp_path / "one.h5", "-q", *FEATURE,
                  cwd=collection).returncode == 1
    assert clpipe("merge", *(f"s{i}.h5" for i in range(7)), "-o", "all.h5").returncode in (0, 1)
    assert digest(tmp_path / "all.h5") == digest(tmp_path / "one.h5")


def test_a_list_made_by_find(clpipe, photos, tmp_path):
    made = subprocess.run("printf 'clpipe list 1\\0'; find . -name '*.jpg' -printf 'f %s %T@ %p\\0' | sort -z -k4",
                          shell=True, cwd=photos, capture_output=True, check=True).stdout
    (tmp_path / "L").write_bytes(made)
    result = clpipe("ingest", f"@{tmp_path}/L", "-o", tmp_path / "l.h5", "-q", *FEATURE, cwd=photos)
    assert result.returncode == 0, result.stderr
    assert [name.decode() for name, _ in table(tmp_path / "l.h5")[0]] == \
        sorted(str(p.relative_to(photos)) for p in photos.rglob("*.jpg"))


def test_disk_space_of_a_share(clpipe, tmp_path):
    """A share of a list of 40,000 missing files may write at most a megabyte to disk."""
    (tmp_path / "H").write_bytes(b"clpipe list 1\0" + b"".join(
        b"f %d 1.5 pictures/%08d.jpg\0" % (1000 + i % 9, i) for i in range(40000)))
    assert clpipe("list", "@H", "-o", "L", "-q").returncode == 0

    def run(*sources):
        return subprocess.run([str(CLPIPE), "ingest", *sources, "--dry-run", "--shard", "699/1000", "--json",
                               "report.json", *FEATURE], cwd=tmp_path, capture_output=True, text=True,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)))
    assert run("@L").returncode == 1
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["shard"]["list_count"] == 40000 and 27900 < report["shard"]["first"] < 28100
    assert 0 < report["images_failed"] < 100
    # Other sources need the space of the whole list.
    check_one_error(run("@H"), 3, "temporary file")


def listed_blocks():
    """Samples, files and members of archives that do not exist: 5 blocks, none of them with exactly 4,096 items."""
    for i in range(5000):
        yield b"f %d 1.5 t/%05d.%s" % (i * 7919 % 1000, i // 2, b"cls" if i % 2 else b"jpg")
    yield b"z 700000 2 whole.tgz"
    yield from (b"c %d %d %d.jpg" % (i, i, i) for i in range(6000))
    yield b"a 9000000 3 plain.tar"
    yield from (b"m %d %d %d.jpg" % (i % 600, 512 + 1000 * i, i) for i in range(8000))
    yield b"x unreadable 13 0 0.0 2 no t/z"


@pytest.mark.deep
def test_blocks_of_a_list(clpipe, tmp_path):
    """A share is read from its first block; the result is the same as reading everything (--include)."""
    (tmp_path / "H").write_bytes(b"clpipe list 1\0" + b"".join(line + b"\0" for line in listed_blocks()))
    assert clpipe("list", "@H", "-o", "L", "-q").returncode == 0
    written = (tmp_path / "L").read_bytes()
    assert [r.split()[2] for r in written.split(b"\0") if r.startswith(b"p ")] == [b"0", b"4096", b"11000", b"15096"]
    assert clpipe("list", "@L", "-o", "M", "-q").returncode == 0
    assert (tmp_path / "M").read_bytes() == written

    def dry(i, count, *more, name="L"):
        return clpipe("ingest", f"@{name}", "--dry-run", "--shard", f"{i}/{count}", *more)

    def share(*args, name="L"):
        return json.loads(dry(*args, "--json", "-", name=name).stdout)

    for count in 2, 7:
        for i in range(count):
            ours, whole = share(i, count), share(i, count, "--include", "*")
            assert ours["shard"] == whole["shard"] and ours["images_failed"] == whole["images_failed"] > 0
    for i in range(0, 1000, 97):
        assert share(i, 1000)["shard"] == share(i, 1000, name="H")["shard"]
    # A truncated list, even if cut between two records, is not mistaken for one made by hand.
    ends = [i + 1 for i, byte in enumerate(written) if byte == 0]
    for end in ends[0], ends[1], ends[len(ends) // 2], ends[-2]:
        (tmp_path / "C").write_bytes(written[:end])
        check_one_error(dry(0, 7, name="C"), 3, "the list C is cut off")
    # Changes are detected by the shares that read the changed block.
    at = written.index(b"m 5 5512 5.jpg")
    (tmp_path / "C").write_bytes(written[:at] + b"m 6" + written[at + 3:])
    assert share(0, 7, name="C")["images_failed"] > 0
    check_one_error(dry(5, 7, name="C"), 3, "C is not a list", "has been changed")
    (tmp_path / "C").write_bytes(written[:at] + b"m 15" + written[at + 3:])
    check_one_error(dry(0, 7, name="C"), 3, "C is not a list")


def test_a_path_that_is_listed_twice(clpipe, photos, tmp_path):
    """Such a path is a single row in all kinds of lists and in overlapping sources."""
    shutil.copytree(photos, tmp_path / "t")
    names = ["t/red/00.png", "./t/blue/02.jpg", "t/blue/02.jpg", "t/green/01.jpg", "t//red/00.png"]
    (tmp_path / "plain").write_text("\n".join(names))
    (tmp_path / "H").write_bytes(b"clpipe list 1\0" + b"".join(
        b"f %d %d.%09d %s\0" % (st.st_size, *divmod(st.st_mtime_ns, 10**9), name.encode())
        for name in names for st in [(tmp_path / name).stat()]))
    tables = []
    for name in "plain", "H":
        result = clpipe("ingest", f"@{name}", "-o", f"{name}.h5", *FEATURE)
        assert result.returncode == 0 and "counts once: 2 repetitions left out" in result.stderr
        assert clpipe("list", f"@{name}", "-o", f"{name}.list").returncode == 0
        tables.append(table(tmp_path / f"{name}.h5"))
    assert [name for name, _ in tables[0][0]] == [b"t/red/00.png", b"t/blue/02.jpg", b"t/green/01.jpg"]
    assert tables[0] == tables[1]
    assert (tmp_path / "plain.list").read_bytes() == (tmp_path / "H.list").read_bytes()
    shards = [clpipe("ingest", "@H", "--dry-run", "--shard", f"{i}/2", "--json", "-") for i in range(2)]
    assert sum(json.loads(shard.stdout)["images_ok"] for shard in shards) == 3
    result = clpipe("list", "t", "t/red", "./t", "-o", "twice")
    assert result.returncode == 0 and "counts once" in result.stderr
    assert clpipe("list", "t", "-o", "once", "-q").returncode == 0
    assert (tmp_path / "twice").read_bytes() == (tmp_path / "once").read_bytes()


def test_changes_since_the_list(clpipe, photos, tmp_path):
    shutil.copytree(photos, tmp_path / "t")
    shutil.make_archive(tmp_path / "a", "tar", photos)
    assert clpipe("list", "t", "a.tar", "-o", "L", "-q").returncode == 0
    os.remove(tmp_path / "t/red/00.png")
    shutil.copy(tmp_path / "t/green/01.jpg", tmp_path / "t/blue/02.jpg")
    os.utime(tmp_path / "a.tar")
    assert clpipe("ingest", "@L", "-o", "l.h5", "-q", *FEATURE).returncode == 1
    images, failures = table(tmp_path / "l.h5")
    reasons = {name.decode(): reason.rstrip(b"\0").decode() for name, reason in failures}
    assert reasons["t/red/00.png"] == "vanished" and reasons["t/blue/02.jpg"] == "changed"
    assert {r for name, r in reasons.items() if name.startswith("a.tar")} == {"changed"}
    assert len(images) == 11


GOOD = b"clpipe list 1\0f 2 1.5 a.jpg\0a 9000 1 x.tar\0m 5 512 b.jpg\0x unreadable 13 0 0.0 2 no c.jpg\0"


@pytest.mark.deep
@pytest.mark.parametrize("content,said", [
    (GOOD + b"e 4 00000000000000000000000000000000\0", "earlier version"),
    (GOOD + b"e 4 00000000000000000000000000000000 9 90\0", "does not agree"),
    (GOOD + b"e 4 00000000000000000000000000000000 9 91\0", "does not say where"),
    (GOOD + b"p 14 0 0\0e 4 00000000000000000000000000000000 9 90\0", "p OFFSET"),
    (GOOD + b"p 14 0 0 00000000000000000000000000000000\0e 4 00000000000000000000000000000000 9 90\0",
     "has been changed"),
    (GOOD + b"p 13 0 0 00000000000000000000000000000000\0e 4 00000000000000000000000000000000 9 90\0",
     "does not follow"),
    (GOOD + b"f 2 1 cut", "is cut off"), (GOOD + b"f x 1 a\0", "f BYTES"), (GOOD + b"f 1 y a\0", "f BYTES"),
    (GOOD + b"f 1 1 \0", "f BYTES"), (GOOD + b"f 99999999999999999999999 1 a\0", "f BYTES"),
    (GOOD + b"q 1\0", "no known kind"), (GOOD + b"\0", "no known kind"),
    (GOOD + b"m 5 8998 z.jpg\0", "outside"), (GOOD + b"c 5 99999999999999999 z.jpg\0", "outside"),
    (GOOD + b"m -1 0 z.jpg\0", "m BYTES"), (GOOD + b"x nothing 0 0 0 0  a\0", "x REASON"),
    (GOOD + b"x unreadable 0 0 0 999 t a\0", "x REASON"), (GOOD + b"a 99999999999999999 1 x.tar\0", "GiB"),
    (b"clpipe list 1\0m 5 0 b.jpg\0", "before any archive"), (GOOD + b"f 1 1 " + b"n" * (1 << 20) + b"\0", "1 MiB")],
                         ids=range(21))
def test_damaged_lists(clpipe, tmp_path, content, said):
    (tmp_path / "L").write_bytes(content)
    check_one_error(clpipe("ingest", "@L", "--dry-run"), 3, "L is not a list" if "GiB" != said else "list", said)


@pytest.mark.variations
@pytest.mark.parametrize("shard, name", [("0/1", "0"), ("9/10", "9"), ("9/11", "09"), ("10/11", "10"), ("7/101", "007")])
def test_shard_numbers_are_padded(clpipe, photos, tmp_path, shard, name):
    assert clpipe("ingest", photos, "--shard", shard, "-o", "s-{shard}.h5", "-q").returncode in (0, 3)
    made = [path.name for path in tmp_path.iterdir() if path.suffix == ".h5"]
    assert made in ([f"s-{name}.h5"], [])
    if not made:  # a shard without files
        assert f"s-{name}.h5" in clpipe("ingest", photos, "--shard", shard, "-o", "s-{shard}.h5", "-q").stderr

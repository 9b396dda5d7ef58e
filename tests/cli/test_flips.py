"""Changed bytes in a file: verify finds every change that makes another program read something else or nothing,
and no command is killed by a signal."""

import concurrent.futures
import faulthandler
import os
import random
import resource
import shutil
import subprocess
import sys

import h5py
import numpy
import pytest

from conftest import LONG, ROOT, SEED, draw_photos, run_clpipe

sys.path.insert(0, str(ROOT / "tools"))

import identity  # noqa: E402
import network_numpy  # noqa: E402
from shown import shown as recorded  # noqa: E402
from test_networks import small  # noqa: E402


@pytest.fixture(scope="module")
def rich(program, tmp_path_factory):
    """A small file with one of everything that clpipe stores, and the pictures that it was made from."""
    place = tmp_path_factory.mktemp("rich")
    draw_photos(place / "photos")
    (place / "photos" / "cut.jpg").write_bytes(b"\xff\xd8\xff")
    (place / "photos" / "red" / "00.txt").write_text("a text")
    numpy.save(place / "x.npy", numpy.random.default_rng(1).random((13, 8), "f4"))
    (place / "small.net").write_bytes(network_numpy.write(small()))
    features = ["--thumbnails", "16", "--sidecar", "--quality", "--add-codes"]
    for feature in ("rgb:bins=2x2x2", "counts=gray:bins=10,normalize=none", "hsv:bins=2x2x2,store=uint8",
                    "gray:bins=4,store=float16", "dct:words=3,codebook=c.h5", "net:model=small.net"):
        features += ["--feature", feature]
    (place / "photos" / "red" / "00.png").rename(place / "later.png")
    assert run_clpipe("codebook", "photos", "-o", "c.h5", "--feature", "dct:words=3", cwd=place).returncode == 0
    assert run_clpipe("ingest", "photos", "-o", "f.h5", *features, cwd=place).returncode == 1
    (place / "later.png").rename(place / "photos" / "red" / "00.png")
    for command in (["ingest", "photos", "-o", "f.h5", *features],
                    ["ingest", "photos/red", "-o", "other.h5", *features],
                    ["import", "f.h5", "x=x.npy"],
                    ["similar", "f.h5", "--all", "-n", "3", "--feature", "x"],
                    ["cluster", "f.h5", "--feature", "counts", "-k", "2:4"],
                    ["cluster", "f.h5", "--feature", "hsv_2x2x2", "--levels", "5,2", "--pca", "3", "--name", "tree"],
                    ["select", "f.h5", "--semantic", "0.5", "--clusters", "kmeans"]):
        result = run_clpipe(*command, cwd=place)
        assert result.returncode in (0, 1), result.stderr
    return place / "f.h5"


def type_of(dtype):
    """Everything that h5py shows of a type except the byte order."""
    text, reference, items = h5py.check_string_dtype(dtype), h5py.check_ref_dtype(dtype), h5py.check_vlen_dtype(dtype)
    if text:
        return text.encoding, text.length
    if reference:
        return str(reference)
    if items is not None:
        return "list", type_of(numpy.dtype(items))
    if dtype.names:
        return [(name, type_of(dtype.fields[name][0]), dtype.fields[name][1]) for name in dtype.names], dtype.itemsize
    return dtype.kind, dtype.itemsize, h5py.check_enum_dtype(dtype)


def value_of(value):
    value = numpy.asarray(value)
    return value.shape, (value.tolist() if value.dtype.hasobject
                         else value.astype(value.dtype.newbyteorder("<")).tobytes())


def shown(path):
    """Everything that h5py shows of a file except how values are stored. A reference is shown as the address of its
    target."""
    found = {}

    def address(item):
        return h5py.h5o.get_info(item.id).addr

    with h5py.File(path, "r") as file:
        def attributes(item):
            for name in sorted(item.attrs):
                low = item.attrs.get_id(name)
                yield name, type_of(low.dtype), low.shape
                if name == "DIMENSION_LIST":
                    yield [[address(file[reference]) for reference in axis] for axis in item.attrs[name]]
                elif name == "REFERENCE_LIST":
                    yield sorted((address(file[entry[0]]), int(entry[1])) for entry in item.attrs[name])
                else:
                    yield value_of(item.attrs[name])

        def look(name, item):
            found[name] = [type(item), address(item), *attributes(item)]
            if isinstance(item, h5py.Dataset):
                found[name] += [type_of(item.dtype), item.shape, item.maxshape, item.is_virtual, item.external,
                                h5py.h5ds.is_scale(item.id), value_of(item.fillvalue),
                                [(axis.label, [address(scale) for scale in axis.values()]) for axis in item.dims],
                                value_of(item[()] if item.size else 0)]
                if h5py.check_string_dtype(item.dtype) and item.size:
                    found[name].append(item.asstr()[()].tolist())
            else:
                found[name].append([(member, type(item.get(member, getlink=True))) for member in sorted(item)])

        look("/", file)
        file.visititems(look)
    return found


def limit():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))


def apart(work):
    """Whether `work` returns a true value in a child process; None if it dies, fails or uses 20 processor seconds."""
    child = os.fork()
    if child == 0:
        code = 2
        try:
            limit()
            resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
            faulthandler.disable()
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            code = 0 if work() else 1
        except BaseException:
            pass
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return {0: True, 256: False}.get(status)


def draw_flip(path, rng, metadata):
    """Draws an offset and the new byte, which differs in one bit or is random. Half of the offsets are metadata."""
    data = path.read_bytes()
    at = rng.choice(metadata) if rng.random() < 0.5 else rng.randrange(len(data))
    return at, data[at] ^ 1 << rng.randrange(8) if rng.random() < 0.5 else rng.randrange(256)


def write_flip(path, copy, at, new):
    data = bytearray(path.read_bytes())
    data[at] = new
    copy.write_bytes(data)


def metadata_of(path):
    """The offsets of bytes that are neither values of datasets nor padding."""
    used = set()
    with h5py.File(path, "r") as file:
        def look(name, item):
            if isinstance(item, h5py.Dataset) and item.id.get_offset() is not None:
                used.update(range(item.id.get_offset(), item.id.get_offset() + item.nbytes))

        file.visititems(look)
    data = open(path, "rb").read()
    return [at for at in range(len(data)) if at not in used and any(data[max(0, at - 8):at + 9])]


def look_at(rich, copy, flip):
    """Changes a byte of a copy. Returns its offset and new value, whether h5py shows the same (see apart), and the
    exit status and output of verify."""
    number, at, new = flip
    copy = copy.with_name(f"{number}.h5")
    write_flip(rich, copy, at, new)
    same = apart(lambda: shown(copy) == shown_before)
    result = run_clpipe("verify", copy)
    copy.unlink()
    return at, new, same, result.returncode, result.stdout + result.stderr


def try_flips(rich, tmp_path, count):
    """Tries `count` flips on all processors; returns how many of them change what h5py shows."""
    global shown_before
    rng = random.Random(SEED)
    metadata = metadata_of(rich)
    shown_before = shown(rich)
    flips = [(number, *draw_flip(rich, rng, metadata)) for number in range(count)]
    with concurrent.futures.ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        looks = list(pool.map(look_at, *zip(*[(rich, tmp_path / "copy.h5", flip) for flip in flips])))
    assert [look for look in looks if look[3] not in (0, 1, 2, 3) or (look[3] and not look[4].strip())] == []
    assert [look for look in looks if look[2] is not True and look[3] == 0] == []
    changed = sum(look[2] is not True for look in looks)
    assert changed > count // 5
    return changed


def remove_and_add(file):
    file["images/mine"] = numpy.arange(len(file["images/width"]))
    file["images/mine"].dims[0].attach_scale(file["image"])
    del file["images/mine"]


def put_anew(file, name, **creation):
    """Replaces a dataset with one that has the same values and scales but other creation properties."""
    values, attributes, axes = file[name][:], dict(file[name].attrs), [axis[0] for axis in file[name].dims]
    values = values.astype(creation.pop("dtype", values.dtype))
    del file[name]
    made = file.create_dataset(name, data=values, **creation)
    made.attrs.update({key: value for key, value in attributes.items() if key != "DIMENSION_LIST"})
    for axis, scale in zip(made.dims, axes):
        axis.attach_scale(scale)


@pytest.mark.parametrize("change, finding", [
    (remove_and_add, None),
    (lambda file: file["runs"].attrs.pop("shown"), "no attribute 'shown'"),
    (lambda file: file["checksums"].attrs.pop("shown"), "no attribute 'shown'"),
    (lambda file: file["runs/1/row_map"].attrs.pop("root"), "/runs/1/row_map: "),
    (lambda file: file["runs/1/row_map"].write_direct(numpy.array([5]), None, numpy.s_[2:3]), "/runs/1/row_map: it has changed"),
    (lambda file: file["runs/0"].attrs.modify("seconds", 1.0), "/runs: "),
    (lambda file: file["images/width"].dims[0].detach_scale(file["image"]), "/images/width: "),
    (lambda file: put_anew(file, "images/width", fillvalue=7), "images/width has a value for missing rows"),
    (lambda file: put_anew(file, "images/width", maxshape=(None,)), "images/width has a maximal size"),
    (lambda file: put_anew(file, "images/path", dtype="S64"), "images/path "),
    (lambda file: file.move("runs", "walks"), "/runs: it is missing")])
def test_changes_by_another_program(rich, tmp_path, change, finding):
    shutil.copyfile(rich, tmp_path / "f.h5")
    with h5py.File(tmp_path / "f.h5", "r+") as file:
        change(file)
    result = run_clpipe("verify", tmp_path / "f.h5")
    assert result.returncode == (1 if finding else 0) and (finding or "") in result.stdout, result.stdout


def test_python_computes_the_same(rich):
    with h5py.File(rich) as file:
        for name, runs in (("checksums", False), ("runs", True)):
            assert file[name].attrs["shown"] == recorded(file, runs)
        data = file["runs/1/row_map"]
        assert data.attrs["root"] == identity.root(data.name, data)


COMMANDS = (["info", "copy.h5"],
            ["export", "copy.h5", "--what", "images", "-o", "images.csv"],
            ["export", "copy.h5", "--what", "features", "--feature", "x", "-o", "x.npy"],
            ["similar", "copy.h5", "row:1", "--feature", "x"],
            ["duplicates", "copy.h5"],
            ["evaluate", "copy.h5", "--feature", "x"],
            ["select", "copy.h5", "3", "--method", "random", "--name", "other"],
            ["report", "copy.h5", "-o", "pages"],
            ["cluster", "copy.h5", "--feature", "x", "-k", "2", "--name", "other"],
            ["import", "copy.h5", "y=../x.npy"],
            ["merge", "copy.h5", "../other.h5", "--copy", "-o", "all.h5"],
            ["ingest", "../photos", "-o", "copy.h5", "--feature", "net=net:model=../small.net"],
            ["remove", "copy.h5", "neighbours/x"])


def meet(path, command, **environment):
    """Runs a command with limited memory on a copy of a file. Asserts that the exit status is one of those in the
    guide."""
    work = path.parent / "met"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    shutil.copyfile(path, work / "copy.h5")
    result = run_clpipe(*command, cwd=work, preexec_fn=limit, **environment)
    assert result.returncode in (0, 1, 2, 3), (command, result.returncode, result.stderr)
    failed = [line for line in result.stderr.splitlines() if line.startswith("clpipe: ") and
              not line.startswith(("clpipe: notice: ", "clpipe: warning: "))]
    if result.returncode == 3:
        assert len(failed) == 1 and "copy.h5" in failed[0], (command, result.stderr)
    if "ended by signal" in result.stderr:
        assert "clpipe verify copy.h5 tells whether it is damaged" in failed[0], (command, result.stderr)
    return result


def test_a_library_that_crashes(rich, tmp_path):
    """verify reports the crash and continues; other commands end with a line that names the file."""
    (tmp_path / "crash.c").write_text("#include <signal.h>\nlong H5Dopen2(long a, const char *b, long c)\n"
                                      "{ (void)a; (void)b; (void)c; raise(SIGSEGV); return -1; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "crash.so", tmp_path / "crash.c"], check=True)
    crashing = {"env": {"LD_PRELOAD": tmp_path / "crash.so"}}
    result = run_clpipe("verify", rich, **crashing)
    assert result.returncode == 1 and "SIGSEGV" in result.stdout, (result.stdout, result.stderr)
    assert "1 check failed" in result.stdout + result.stderr
    for command in COMMANDS:
        result = meet(rich, command, **crashing)
        assert result.returncode == 3 and "ended by signal 11" in result.stderr, (command, result.stderr)


@pytest.mark.slow
def test_commands_on_files_with_flips(rich):
    rng = random.Random(SEED)
    metadata = metadata_of(rich)
    for command in COMMANDS:
        result = meet(rich, command)
        assert result.returncode in (0, 1), (command, result.stderr)
    for _ in range(6):
        flip = draw_flip(rich, rng, metadata)
        print(flip)
        write_flip(rich, rich.parent / "flipped.h5", *flip)
        for command in COMMANDS:
            meet(rich.parent / "flipped.h5", command)


@pytest.mark.deep
def test_some_flips(rich, tmp_path):
    try_flips(rich, tmp_path, 30)


@pytest.mark.slow
def test_a_thousand_flips(rich, tmp_path, capsys):
    """There are only 200 flips unless CLPIPE_LONG is set."""
    count = 1000 if LONG else 200
    changed = try_flips(rich, tmp_path, count)
    with capsys.disabled():
        print(f"[{changed} of {count} flips change what h5py reads, all found] ", end="")


def test_a_damaged_length(rich, tmp_path):
    """HDF5 would fill 14 GB of memory."""
    data = bytearray(rich.read_bytes())
    at = data.rindex(b"DIMENSION_LIST") + 48
    while data[at:at + 4] != b"\x01\0\0\0" or b"GCOL" != data[(heap := int.from_bytes(data[at + 4:at + 12], "little")):heap + 4]:
        at += 4
    data[at + 3] = 110
    (tmp_path / "f.h5").write_bytes(data)
    result = run_clpipe("verify", tmp_path / "f.h5")
    assert result.returncode in (1, 3) and "DIMENSION_LIST" in result.stdout + result.stderr, result
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 5 << 20


def test_a_damaged_byte_in_a_text_type(rich, tmp_path):
    """HDF5 2.0 refuses such a type; HDF5 1.10 does not check it."""
    data = bytearray(rich.read_bytes())
    data[data.index(bytes((0x10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0)), data.index(b"driver\0\0")) + 8] = 32
    (tmp_path / "f.h5").write_bytes(data)
    result = run_clpipe("verify", tmp_path / "f.h5")
    assert result.returncode == 1 and "driver is an attribute of a kind" in result.stdout, result.stderr

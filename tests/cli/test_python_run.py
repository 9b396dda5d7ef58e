"""tools/python: functions that run the program support its options, errors, signals and progress."""

import concurrent.futures
import doctest
import importlib
import inspect
import json
import logging
import multiprocessing
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time

import numpy
import pytest

from conftest import CLPIPE, ROOT, log_records, run_clpipe

PACKAGE = ROOT / "tools" / "python"
sys.path.insert(0, str(PACKAGE))
import clpipe as package  # noqa: E402

TABLES = json.loads(subprocess.run([CLPIPE, "--help", "--json"], capture_output=True, check=True).stdout)
COMMANDS = {command["name"]: [option for group in command["groups"] for option in group["options"]]
            for command in TABLES["commands"] if command["name"] not in ("remove", "rename")}
COMMON = [option for group in TABLES["common"] for option in group["options"]]
VALUES = {"flag": (True, None), "text": ("a b", "a b"), "texts": (["x", "-y"], "x"), "integer": (3, "3"),
          "integers": ("2:4", "2:4"), "integer?": (64, "64"), "size": ("1M", "1M"), "seconds": (1.5, "1.5"),
          "real": (0.25, "0.25"), "share": ("5%", "5%")}


@pytest.fixture(autouse=True)
def program_by_environment(monkeypatch, program):
    monkeypatch.setenv("CLPIPE", str(CLPIPE))


def function(command):
    return getattr(package, "import_" if command == "import" else command.replace("-", "_"))


def word(option):
    return option.replace("-", "_") + "_" * (option == "class")


def fake(tmp_path, monkeypatch, text):
    """Replaces the clpipe program by a script."""
    (tmp_path / "fake").write_text(text)
    (tmp_path / "fake").chmod(0o755)
    monkeypatch.setenv("CLPIPE", str(tmp_path / "fake"))


def test_commands_are_generated(tmp_path):
    """_commands.py and options.json are up to date with the option tables, as tools/generate_docs.py writes them."""
    subprocess.run([sys.executable, ROOT / "tools" / "generate_docs.py", CLPIPE, tmp_path / "_commands.py"], check=True)
    for name in ("_commands.py", "options.json"):
        assert (tmp_path / name).read_text() == (PACKAGE / "clpipe" / name).read_text()


def test_every_command_is_a_function():
    assert sorted(map(function, COMMANDS), key=str) == sorted(
        (value for name, value in vars(package).items() if name in package._commands.__all__), key=str)
    for common in COMMON:
        if common["name"] != "json":
            assert common["name"].replace("-", "_") in package.Common.__annotations__


@pytest.mark.parametrize("command", COMMANDS)
def test_defaults(command):
    """The program chooses defaults; the docstring states them in the words of --help."""
    parameters = inspect.signature(function(command)).parameters
    text = " ".join(function(command).__doc__.split())
    wanted = {option["name"]: option for option in COMMANDS[command]
              if option["name"] not in [common["name"] for common in COMMON]}
    assert [name for name, parameter in parameters.items() if parameter.kind == parameter.KEYWORD_ONLY] == \
        list(map(word, wanted))
    for name, option in wanted.items():
        assert parameters[word(name)].default is (False if option["type"] == "flag" else None)
        default = f" [{option['default']}]" if option.get("default") else ""
        assert " ".join(f"{word(name)}: {option['help']}{default}".split()) in text
        if option["type"] == "choice":
            for choice in option["value"].split("|"):
                assert (choice if choice.isdigit() else repr(choice)) in str(parameters[word(name)].annotation).replace('"', "'")


@pytest.mark.variations
@pytest.mark.parametrize("command", COMMANDS)
def test_options(command, tmp_path, monkeypatch):
    """Each option is passed to the program with its name and value."""
    fake(tmp_path, monkeypatch, f"#!{sys.executable}\nimport json, sys\nprint(json.dumps({{'argv': sys.argv[1:]}}))\n")
    own = [option["name"] for option in COMMANDS[command]]
    common = [option for option in COMMON if option["name"] not in (*own, "json", "progress")]
    given, expected = {}, []
    for option in COMMANDS[command] + common:
        choice = option.get("value", "").split("|")[0]
        value, text = VALUES.get(option["type"], (choice, choice))
        given[word(option["name"])] = value
        flag = "--" + option["name"]
        expected += [flag + "=x", flag + "=-y"] if option["type"] == "texts" else \
            [flag if text is None else f"{flag}={text}"]
    takes = any(parameter.kind == inspect.Parameter.VAR_POSITIONAL for parameter in
                inspect.signature(function(command)).parameters.values())
    report = function(command)(*["-odd", "b"] if takes else [], **given)
    argv = json.loads(report.text)["argv"] if report.text else report["argv"]
    assert argv[0] == command and argv[-1 - 2 * takes:] == ["--", *["-odd", "b"] * takes]
    assert sorted(word for word in argv[1:-1 - 2 * takes] if word != "--json=-") == sorted(expected)
    with pytest.raises(TypeError, match="unexpected keyword argument 'no_such'"):
        function(command)(no_such=1)


@pytest.mark.parametrize("command", [pytest.param(name, marks=[pytest.mark.deep] * (len(options) > 12))
                                     for name, options in COMMANDS.items()])
def test_errors_of_options(command, tmp_path, monkeypatch):
    """An option that the program refuses raises an exception with its message and exit status."""
    monkeypatch.chdir(tmp_path)
    common = COMMON if command == "info" else []
    for name in [option["name"] for option in COMMANDS[command] + common if option["name"] not in ("json", "progress")]:
        value = "" if name == "threads" else "?"
        shell = run_clpipe(command, f"--{name}={value}", "--threads=none", "--json=-", "--", feature=None)
        with pytest.raises(package.Failed) as error:
            function(command)(**{word(name): value, **({} if name == "threads" else {"threads": "none"})})
        assert (error.value.code, f"clpipe: {error.value}") == (2, shell.stderr.strip()) and shell.returncode == 2
    assert os.listdir() == []


def test_run(photos, tmp_path, monkeypatch):
    """From photographs to a file, its report, data frames and pages; failed files raise an exception that has
    the report."""
    monkeypatch.chdir(tmp_path)
    report = package.run(photos, output="f.h5", feature=["gray:bins=4", "rgb:bins=2x2x2"], k=2, cluster_feature="gray_4")
    assert report["ingest"]["images_ok"] == 13 and report["cluster"]["k"] == 2 and report.output == "f.h5"
    assert (tmp_path / "f-report" / "index.html").exists()
    with report.open() as f:
        assert len(f) == 13 and set(f.label_rows()) == {0, 1}
    near = package.similar("f.h5", "row:0", neighbours=3, feature="gray_4")
    assert [row["rank"] for row in near["neighbours"]] == [1, 2, 3]
    assert package.export("f.h5", what="labels").text.startswith("path,source,label")
    assert package.identity("f.h5") == run_clpipe("info", tmp_path / "f.h5", "--digest", check=True).stdout.strip()
    with pytest.raises(package.Error, match="no list 'none': there are neighbours"):
        near.frame("none")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "a.png").write_bytes((photos / "red" / "00.png").read_bytes()[:60])
    with pytest.raises(package.Failed) as error:
        package.ingest("bad", photos, output="g.h5", feature="gray:bins=4")
    assert error.value.code == 1 and error.value.report["images_failed"] == 1
    assert package.ingest("bad", photos, output="g.h5", allow_failures=1)["images_unchanged"] == 13
    pytest.importorskip("pandas")
    assert list(near.frame("neighbours")["rank"]) == [1, 2, 3]


def test_levels_and_a_selection(photos, tmp_path):
    """Numbers are accepted as operands; of several levels, the finest is the default."""
    file = tmp_path / "f.h5"
    package.ingest(photos, output=file, feature="gray:bins=16")
    with package.open(file) as f:
        for read in (f.labels, f.clusters, f.words, f.centroids):
            with pytest.raises(package.Error, match="there are none"):
                read()
        numpy.save(tmp_path / "rows.npy", f.feature())
    package.cluster(tmp_path / "rows.npy", k=2, output=tmp_path / "rows.h5")
    with package.open(tmp_path / "rows.h5") as f, pytest.raises(package.Error, match="there are none"):
        f.feature()
    package.cluster(file, levels="4,2")
    assert package.select(file, 5)["chosen"] == 5
    shards = package.export(file, what="shards", selection="selection", to=tmp_path / "shards")
    assert shards["rows"] == 5 and shards.output == str(tmp_path / "shards")
    with package.open(file) as f:
        assert numpy.array_equal(f.label_rows(), f.label_rows("kmeans")) and len(f.words()) == 4
        assert f.centroids("kmeans-2").shape == (2, 16) and f.centroids().shape == (4, 16)
        with pytest.raises(IndexError, match="masked"):
            f.feature(rows=numpy.ma.masked_array([1, 2], [False, True]))
    package.rename(file, "kmeans-2", "above")
    package.cluster(file, k=3, name="other")
    with package.open(file) as f, pytest.raises(package.Error, match="name one clustering.*above, kmeans, other"):
        f.label_rows()


def test_names_that_are_not_utf8(photos, tmp_path):
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/r\xe9d")
    shutil.copytree(photos / "red", odd)
    report = package.ingest(odd, output=odd + ".h5", feature="gray:bins=4")
    assert report.output == odd + ".h5"
    with report.open() as f:
        assert len(f) == len(os.listdir(odd))
    with pytest.raises(package.Failed, match="no file or directory"):
        package.ingest(odd + "x", output=odd + "2.h5")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals(number, tmp_path, monkeypatch):
    """The command receives each signal once and exits by itself; then Python handles the signal."""
    fake(tmp_path, monkeypatch, "#!/bin/sh\ntrap 'echo stopped >> left; exit 4' INT TERM\ntouch begun\n"
         "while :; do sleep 0.05; done\n")
    code = f"import sys; sys.path.insert(0, {str(PACKAGE)!r}); import clpipe; clpipe.verify('x')"
    process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stderr=subprocess.PIPE)
    while not (tmp_path / "begun").exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(number)
    stderr = process.communicate(timeout=30)[1]
    assert (tmp_path / "left").read_text() == "stopped\n"
    assert process.returncode == -number and (b"KeyboardInterrupt" in stderr) == (number == signal.SIGINT)


@pytest.mark.deep
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_ingest_goes_on(number, tmp_path, monkeypatch):
    """The program leaves its finished work, and calling it again continues from there."""
    from PIL import Image
    (tmp_path / "many").mkdir()
    noise = numpy.random.default_rng(5).integers(0, 256, (1200, 1600, 3), dtype=numpy.uint8)
    Image.fromarray(noise).save(tmp_path / "many" / "0.jpg", quality=95)
    for i in range(1, 150):
        os.link(tmp_path / "many" / "0.jpg", tmp_path / "many" / f"{i}.jpg")
    call = {"output": "x.h5", "feature": "rgb:bins=256,grid=8x8", "threads": 1}
    code = f"import sys; sys.path.insert(0, {str(PACKAGE)!r}); import clpipe; clpipe.ingest('many', **{call})"
    process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stderr=subprocess.PIPE)
    while process.poll() is None and not log_records(tmp_path / "x.h5.partial")[0]:
        time.sleep(0.01)
    process.send_signal(number)
    stderr = process.communicate(timeout=120)[1]
    assert process.returncode == -number, stderr
    assert sorted(os.listdir(tmp_path)) == ["many", "x.h5.partial"]
    monkeypatch.chdir(tmp_path)
    report = package.ingest("many", **call)
    assert report["images_ok"] == 150 and report["images_resumed"] > 0 and sorted(os.listdir(tmp_path)) == ["many", "x.h5"]


def fails(name):
    return package.info(name)


def test_threads_and_processes(finished):
    """Ten runs at the same time, in threads and in a forked pool; exceptions are pickled."""
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        assert [report["images"] for report in pool.map(package.info, [finished] * 10)] == [13] * 10
    with multiprocessing.get_context("fork").Pool(2) as processes:
        assert [report["images"] for report in processes.map(package.info, [finished] * 4)] == [13] * 4
        with pytest.raises(package.Failed, match="there is no file none.h5") as error:
            processes.apply(fails, ("none.h5",))
        assert error.value.code == 2 and error.value.report["error"]["exit_code"] == 2


def test_progress_and_log(tmp_path, monkeypatch, caplog):
    """A bar is shown if tqdm is installed; messages go to the logger, and an error only to the exception."""
    (tmp_path / "tqdm").mkdir()
    (tmp_path / "tqdm" / "__init__.py").touch()
    (tmp_path / "tqdm" / "auto.py").write_text(
        "seen = []\nclass tqdm:\n    def __init__(self, **options): pass\n"
        "    def set_description(self, text, refresh): self.text = text\n"
        "    def refresh(self): seen.append((self.text, self.n, self.total))\n    def close(self): pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    fake(tmp_path, monkeypatch, "#!/bin/sh\ncase $* in *--progress=always*) ;; *) exit 9 ;; esac\n"
         "echo ' 42 %  317/1,800 files  273 images/s' >&2; echo 'clpipe: notice: one' >&2; echo plain >&2\n"
         "echo 'clpipe: it failed' >&2; exit 3\n")
    with caplog.at_level(logging.INFO, "clpipe"), pytest.raises(package.Failed, match="^it failed$"):
        package.verify("x", progress=True)
    assert importlib.import_module("tqdm.auto").seen == [("files", 317, 1800)]
    assert [record.getMessage() for record in caplog.records] == ["plain", "notice: one"]
    monkeypatch.setenv("CLPIPE", str(tmp_path / "none"))
    with pytest.raises(package.Error, match="cannot run .*none: No such file"):
        package.verify("x")


def test_doctests(finished, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(finished, "photos.h5")
    for name in ("_run", "_reader", "_writer"):
        module = importlib.import_module("clpipe." + name)
        result = doctest.testmod(module, extraglobs={"clpipe": package})
        assert result.failed == 0 and (result.attempted or name != "_run")


@pytest.mark.deep
def test_datasets(photos, tmp_path):
    """Rows and pictures as tensors, also in worker processes of a data loader."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("PIL")
    package.run(photos, output=tmp_path / "f.h5", feature="gray:bins=4", k=2, thumbnails=32)
    rows = package.FeatureDataset(tmp_path / "f.h5", labels="kmeans")
    values, label = rows[-1]
    assert len(rows) == 13 and values.shape == (4,) and values.dtype == torch.float32 and label in (0, 1)
    loader = torch.utils.data.DataLoader
    batches = list(loader(rows, batch_size=4, num_workers=2))  # forked while the file is open in this process
    with package.open(tmp_path / "f.h5") as f:
        assert numpy.array_equal(torch.cat([batch[0] for batch in batches]).numpy(), f.feature())
        assert torch.cat([batch[1] for batch in batches]).tolist() == list(f.label_rows("kmeans"))
    pictures = package.ThumbnailDataset(tmp_path / "f.h5", transform=lambda image: image.resize((4, 2)).size)
    assert len(list(loader(pictures, batch_size=5, num_workers=2))) == 3 and pictures[-13] == (4, 2)
    assert package.ThumbnailDataset(tmp_path / "f.h5")[0].shape[0] == 3
    assert torch.equal(pickle.loads(pickle.dumps(rows))[3][0], rows[3][0])  # as in a spawned process
    with pytest.raises(IndexError):
        rows[13]

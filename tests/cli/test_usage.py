"""The command line: help, misuse, and options in the man page and the completions."""

import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import unicodedata

import pytest

from conftest import CLPIPE, ROOT, check_one_error, draw_photos, error_lines

# The commands in order, and the least arguments that each of them needs.
SOURCES = {path.name: path.read_text() for path in (ROOT / "pipeline" / "cli").glob("*.c")}
TABLE = {symbol: (name, body) for text in SOURCES.values() for symbol, name, body in re.findall(
    r'const struct command (command_\w+) = \{\s*\.name = "([a-z-]+)",(.*?)\.run = ', text, re.S)}
TABLE = [TABLE["command_" + name] for name in re.findall(
    r"\bCOMMAND\((\w+)\)", (ROOT / "pipeline" / "cli" / "commands.h").read_text())]
COMMANDS = [name for name, _ in TABLE]
OPERANDS = {name: ["x"] * int((re.search(r"\.min_operands = (\d+)", body) or [0, 0])[1])
            for name, body in TABLE}
MACHINE = {"device", "threads", "memory", "device-memory", "profile"}


def options_in_help(text):
    """{option: help, with the value's name and default} from the text of --help."""
    found = {}
    name = None
    for line in text.splitlines():
        match = re.match(r"  (?:-\w, |    |)--([a-z-]+)(.*)", line)
        if match:
            name = match[1]
            found[name] = match[2]
        elif name and line.startswith(" " * 20):
            found[name] += " " + line.strip()
        else:
            name = None
        if line.startswith("  --device --"):
            found.update({word[2:]: "" for word in line.split()})
    return found


@pytest.fixture(scope="module")
def help_options(program):
    from conftest import run_clpipe
    return {command: set(options_in_help(run_clpipe(command, "--help").stdout))
            for command in COMMANDS}


# --- help -------------------------------------------------------------------------------------

def test_help_lists_the_commands(clpipe):
    result = clpipe("--help")
    assert result.returncode == 0
    assert result.stderr == ""
    assert re.findall(r"^  ([a-z-]+) +[a-zA-Z]", result.stdout, re.M)[:len(COMMANDS)] == COMMANDS
    assert all(len(line) <= 80 for line in result.stdout.splitlines())


@pytest.mark.deep
def test_help_as_a_command(clpipe):
    assert clpipe("help").stdout == clpipe("--help").stdout == clpipe("help", "--help").stdout
    for command in COMMANDS:
        result = clpipe("help", command)
        assert result.returncode == 0
        assert result.stdout == clpipe(command, "--help").stdout
    check_one_error(clpipe("help", "predict"), 2, "unknown command 'predict'")
    check_one_error(clpipe("help", "rum"), 2, "did you mean run?")
    check_one_error(clpipe("help", "run", "ingest"), 2, "takes one command")


def test_version_by_any_name(clpipe):
    assert clpipe("-V").stdout == clpipe("version").stdout == clpipe("--version").stdout


def test_help_for_no_command(clpipe):
    """If an unknown word printed the help, scripts would take it for a valid command."""
    check_one_error(clpipe("predict", "--help"), 2, "unknown command 'predict'")
    check_one_error(clpipe("ingets", "-h"), 2, "did you mean ingest?")


def test_device_names_ignore_case(clpipe):
    chosen = [clpipe("devices", "--device", word).stdout for word in ("cpu", "CPU", "Cpu")]
    assert chosen[0] == chosen[1] == chosen[2]
    check_one_error(clpipe("ndrange", "--device", "abacus"), 3, "no usable OpenCL device matches",
                    "'abacus'", "available: #0 ", "choose another device with --device")


def test_no_command(clpipe):
    result = clpipe()
    assert result.returncode == 2
    assert result.stdout == ""
    assert error_lines(result) == ["clpipe: no command given"]
    assert "clpipe run" in result.stderr and "clpipe --help" in result.stderr


@pytest.mark.variations
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["x", "--unknown", "-h"],
                                       ["--json", "--help"]])
def test_help_of_a_command(clpipe, command, arguments):
    result = clpipe(command, *arguments)
    assert result.returncode == 0
    assert result.stderr == ""
    assert result.stdout.startswith(f"clpipe {command}: ")
    assert f"usage: clpipe {command}" in result.stdout
    options = options_in_help(result.stdout)
    assert MACHINE | {"progress", "json", "quiet", "verbose", "help"} <= set(options)
    assert all(len(line) <= 80 for line in result.stdout.splitlines())


def test_descriptions_of_options_begin_in_one_column(clpipe):
    """The description is next to its term if there is room for two spaces, otherwise below it."""
    lengths = set()
    for command in COMMANDS:
        lines = clpipe(command, "--help").stdout.splitlines()
        for line, below in zip(lines, lines[1:] + [""]):
            if not re.match(r"  (-\w, |    )--\w", line):
                continue
            term, text = re.fullmatch(r"(.{4,6}--\S+(?: [^\s]+)?)(?:  +(\S.*))?", line).groups()
            lengths.add(len(term))
            assert line == f"{term:26}{text}" and len(term) <= 24 if text else len(term) > 24, line
            assert text or re.match(" {26}\\S", below) or "|" in term, line
    assert {24, 25} <= lengths


def test_help_after_the_end_of_options_is_an_operand(clpipe):
    check_one_error(clpipe("info", "--", "--help"), 2, "--help")


def test_documented_defaults(clpipe):
    options = options_in_help(clpipe("run", "--help").stdout)
    defaults = {name: match[1] for name, text in options.items()
                if (match := re.search(r"\[default: (.*)\]$", text))}
    assert {name: defaults[name] for name in [
        "output", "feature", "normalize", "alpha", "max-pixels", "memory", "progress", "name",
        "init", "seed", "n-init", "max-iter", "tol", "decode-scale", "preset"]} == {
        "output": "clpipe.h5", "feature": "those of --preset", "normalize": "l1", "alpha": "white",
        "max-pixels": "268435456", "progress": "auto", "name": "kmeans",
        "init": "kmeans++", "seed": "0", "n-init": "10 if rows x values x k is at most 2^31, else 1",
        "max-iter": "100", "tol": "1e-4",
        "memory": "256M, or 16M per thread of an ingest if that is more; up to 1G with a GPU that decodes JPEG",
        "decode-scale": "1", "preset": "fast; for an existing file, its own"}
    assert defaults["k"].startswith("10")


def test_help_with_a_closed_pipe(clpipe):
    read, write = os.pipe()
    os.close(read)
    result = clpipe("--help", capture_output=False, stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert (result.returncode, result.stderr) == (0, "")


def test_help_on_a_full_device(clpipe):
    with open("/dev/full", "w") as full:
        result = clpipe("--help", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert result.returncode == 3
    assert "standard output: the disk is full" in result.stderr


def test_version(clpipe):
    result = clpipe("--version")
    assert result.returncode == 0, result.stderr
    assert re.match(r"clpipe \d+\.\d+\.\d+\n", result.stdout)
    for part in ["HDF5", "zlib", "jpeg", "png", "libjpeg-turbo", "OpenCL"]:
        assert part in result.stdout
    assert result.stderr == ""


# --- misuse -----------------------------------------------------------------------------------

@pytest.mark.variations
@pytest.mark.parametrize("arguments, parts", [
    (["unknown"], ["unknown command 'unknown'", "see clpipe --help"]),
    (["ignest"], ["did you mean ingest?", "see clpipe --help"]),
    (["repair"], ["F.h5 is missing", "see clpipe repair --help"]),
    (["-v", "run"], ["the command comes first", "see clpipe --help"]),
    (["--version", "x"], ["takes no arguments", "see clpipe --help"]),
    (["run"], ["SOURCE is missing", "see clpipe run --help"]),
    (["run", ""], ["given for SOURCE is empty", "see clpipe run --help"]),
    (["ingest", "-o", "x.h5"], ["SOURCE is missing", "see clpipe ingest --help"]),
    (["cluster"], ["INPUT is missing", "see clpipe cluster --help"]),
    (["cluster", "a", "b", "-k", "3"], ["'b'", "unexpected argument"]),
    (["cluster", "a"], ["give -k K", "see clpipe cluster --help"]),
    (["assign", "a"], ["INPUT is missing", "see clpipe assign --help"]),
    (["info"], ["F.h5 is missing", "see clpipe info --help"]),
    (["info", "x", "--failures", "--digest"], ["--failures and --digest", "see clpipe info"]),
    (["ndrange", "638"], ["the range must be WxH", "see clpipe ndrange --help"]),
    (["ndrange", "0x5"], ["the range must be WxH"]),
    (["ndrange", "99999x99999"], ["at most 268435456"]),
    (["ndrange", "--local", "16x"], ["--local must be AxB"]),
    (["ndrange", "--image", "x.png"], ["--image and --out must be given together"]),
    (["ndrange", "--out", "x"], ["--image and --out must be given together"]),
    (["devices", "x"], ["unexpected argument", "see clpipe devices --help"]),
    (["run", "x", "--thread", "3"], ["--thread", "did you mean --threads?", "see clpipe run"]),
    (["run", "x", "--what", "y"], ["is an option of clpipe export"]),
    (["run", "x", "--zzz"], ["unknown option --zzz", "see clpipe run --help"]),
    (["run", "x", "--jobs", "3"], ["unknown option --jobs (did you mean --threads?)"]),
    (["run", "x", "-j", "3"], ["unknown option -j", "(did you mean --threads?)"]),
    (["cluster", "x", "--n-clusters=3"], ["--n-clusters (did you mean -k?)"]),
    (["run", "x", "--recursive"], ["directories are read with everything below them"]),
    (["info", "x", "--recursive"], ["unknown option --recursive; see"]),
    (["run", "x", "-Z"], ["unknown option -Z", "see clpipe run --help"]),
    (["run", "x", "-qZ"], ["unknown option -Z", "-qZ"]),
    (["run", "x", "--strict=yes"], ["--strict takes no value"]),
    (["run", "x", "-k"], ["-k requires a value"]),
    (["run", "x", "--memory"], ["--memory requires a value"]),
    (["run", "x", "--json="], ["--json has an empty value"]),
    (["run", "x", "-k", "0"], ["-k expects a number from 1"]),
    (["run", "x", "-k", "-1"], ["-k expects a number from 1"]),
    (["run", "x", "-k", "64:2"], ["-k expects a number from 1", "A:B"]),
    (["run", "x", "-k3x"], ["-k expects a number", "'3x'"]),
    (["run", "x", "--threads", "0"], ["--threads expects a number from 1"]),
    (["run", "x", "--threads", "99999999999999999999"], ["--threads expects a number"]),
    (["run", "x", "--memory", "many"], ["--memory expects a size such as"]),
    (["run", "x", "--max-time", "soon"], ["--max-time expects a time such as"]),
    (["run", "x", "--tol", "-1"], ["--tol expects a number of at least 0"]),
    (["run", "x", "--metric", "manhattan"], ["--metric must be one of euclidean|cosine|hellinger"]),
    (["run", "x", "--alpha", "grey"], ["--alpha must be one of white|black|drop", "'grey'"]),
    (["run", "x", "--decode-scale", "3"], ["--decode-scale must be one of 1|2|4|8"]),
    (["run", "x", "--normalize", "L1"], ["--normalize must be one of"]),
    (["run", "x", "--progress", "yes"], ["--progress must be one of auto|always|never"]),
    (["ingest", "."], ["give -o F.h5", "see clpipe ingest --help"]),
    (["run", ".", "--cluster-feature", "hsv_8x4x4"], ["hsv_8x4x4", "rgb_8x8x8"]),
    (["run", "-", "-"], ["SOURCE - can be given only once"]),
    (["export", "x"], ["give one of features|labels|failures|"]),
    (["export", "x", "--what", "tree"], ["--to DIR"]),
    (["export", "x", "--what", "tree", "--to", "d", "-o", "f"], ["--to, not -o"]),
    (["export", "x", "--what", "images", "--to", "d"], ["--what tree"]),
    (["export", "x", "--what", "images", "--format", "npy"], ["csv, tsv or jsonl"]),
    (["export", "x", "--what", "images", "--format", "xml"], ["csv|tsv|jsonl|npy"]),
    (["export", "x", "--what", "images", "--feature", "f"], ["--feature requires --what features or shards"]),
    (["export", "x", "--what", "features", "--name", "n"], ["--name requires --what labels or centroids or clusters"]),
    (["export", "x", "--what", "centroids", "--absolute-paths"], ["--absolute-paths requires --what features or"]),
    (["export", "x", "--what", "labels", "-o", "l.npy", "--absolute-paths"], ["a .npy file holds no paths"]),
    (["export", "x", "--what", "tree", "--to", "t", "--link", "copy", "--absolute-paths"], ["symbolic links"]),
    (["export", "x", "--what", "images", "--link", "copy"], ["--link requires --what tree"]),
    (["export", "x", "--what", "images", "--force"], ["--force requires -o FILE"]),
    (["export", "x", "--what", "images", "--seed", "3"], ["--seed requires --what shards"]),
    (["export", "x", "--what", "shards", "--to", "t", "--seed", "3"], ["--seed requires --shuffle"]),
    (["select", "x", "5", "--feature", "f"], ["--feature requires --semantic or --method diverse"]),
    (["select", "x", "5", "--semantic", "0.9", "--metric", "cosine"], ["--metric requires --method diverse"]),
    (["select", "x", "5", "--method", "diverse", "--seed", "3"], ["chooses nothing at random: leave out --seed"]),
    (["duplicates", "x", "--force"], ["--force requires -o, --to-list or --to-list-members FILE"]),
    (["similar", "x", "row:1", "--force"], ["--force requires --all or -o FILE"]),
    (["remove", "x", "--force"], ["--force requires a NAME"]),
    (["ingest", ".", "-o", "x.h5", "--feature", "gray:normalize=none", "--normalize", "l1"],
     ["--normalize l1: every feature has another of its own"]),
    (["ingest", ".", "-o", "x.h5", "--preset", "color", "--normalize", "none"], ["--normalize none: every feature"]),
    (["ingest", ".", "-o", "x.h5", "--feature", "gray:store=uint8", "--store", "float16"],
     ["--store float16: every feature has another"]),
    (["ingest", ".", "-o", "x.h5", "--feature", "gray:blur=3", "--blur", "off"], ["--blur off: every feature has another"]),
    (["export", "x", "--what", "labels", "-o", "l.json"],
     ["-o l.json: the formats are csv|tsv|jsonl|npy, not json; --format chooses one"]),
    (["export", "x", "--what", "labels", "-o", "d.json/l.ndjson"], ["not ndjson"]),
    (["export", "x", "--what", "features", "-o", "f.parquet"], ["not parquet"]),
    (["export", "x", "--what", "images", "-o", "i.XLSX"], ["not xlsx"]),
    (["export", "x", "--what", "images", "-o", "i.csv.gz"], ["not gz"]),
    (["export", "x", "--what", "images", "-o", "i.hdf5"], ["not h5"]),
    (["similar", "x", "row:1", "-o", "s.json"], ["csv|tsv|jsonl|npy, not json"]),
    (["duplicates", "x", "-o", "d.json"], ["csv|tsv|jsonl, not json"]),
    (["duplicates", "x", "-o", "d.npy"], ["csv|tsv|jsonl, not npy"]),
    (["duplicates", "x", "--to-list", "d.csv"], ["--to-list d.csv: the file is a list of paths, not csv"]),
    (["list", "x", "-o", "files.json"], ["-o files.json: the file is a list of paths, not json"]),
    (["cluster", "x", "-k", "2", "--plot", "k.png"], ["--plot k.png: the file is svg, not png"]),
    (["cluster", "x", "-k", "2", "-o", "labels.csv"], ["-o labels.csv: the file is h5, not csv"]),
    (["assign", "x", "y", "-o", "labels.npy"], ["the file is h5, not npy"]),
    (["run", "x", "-o", "photos.csv"], ["the file is h5, not csv"]),
    (["ingest", "x", "-o", "photos.json"], ["the file is h5, not json"]),
    (["merge", "x", "y", "-o", "all.zip"], ["the file is h5, not zip"]),
    (["codebook", "x", "-o", "c.npz"], ["the file is h5, not npz"]),
    (["repair", "x", "-o", "c.tar.gz"], ["the file is h5, not gz"]),
    (["info", "x", "--json", "i.csv"], ["--json i.csv: the file is json, not csv"]),
    (["run", "x", "--profile", "t.json.gz"], ["the file is json, not gz"]),
    (["run", "x", "--max-time", "1-25:00:00"], ["--max-time expects a time such as", "1-12:00:00"]),
    (["run", "x", "--allow-failures", "few"], ["a number or a percentage such as 0.5%"]),
    (["run", "x", "--allow-failures", "101%"], ["a number or a percentage such as 0.5%"]),
    (["run", ".", "--strict", "--allow-failures", "3"], ["cannot be combined"]),
])
def test_misuse(clpipe, arguments, parts):
    result = clpipe(*arguments)
    check_one_error(result, 2, *parts)
    assert re.search(r"; see clpipe ([a-z-]+ )?--help$", result.stderr.rstrip("\n"))


@pytest.mark.parametrize("arguments, parts", [
    (["run", ".", "--name", "a/b"], ["letters", "'a/b' cannot be the name of a clustering", "--name"]),
    (["run", ".", "--name", "n" * 64], ["'nnn", "use 1 to 63 letters", "--name"]),
    (["run", ".", "--name", ".."], ["'..' cannot be the name of a clustering", "--name"]),
    (["run", "no-such-directory"], ["no-such-directory"]),
    (["run", "@no-such-list"], ["list", "no-such-list"]),
    (["ingest", "no-such-directory", "-o", "x.h5"], ["no-such-directory"]),
    (["ingest", ".", "-o", "x.h5", "--feature", "rbg"], ["rbg"]),
    (["ingest", ".", "-o", "x.h5", "--feature", "rgb:bins=0"], ["bins"]),
    (["ingest", ".", "-o", "x.h5", "--feature", "rgb", "--feature", "rgb"], ["rgb_256"]),
    (["cluster", "no-such-file.npy", "-k", "3"], ["no-such-file.npy"]),
])
def test_invalid_operands(clpipe, tmp_path, arguments, parts):
    check_one_error(clpipe(*arguments), 2, *parts)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.variations
@pytest.mark.parametrize("command", [
    ["info"], ["info", "--digest"], ["verify"], ["export", "--what", "images"], ["repair"],
    ["repair", "--dry-run"], ["cluster", "-k", "2"], ["assign", "there.h5"], ["run"],
    ["ingest", "-o", "x.h5"]])
def test_missing_file(clpipe, photos, tmp_path, command):
    assert clpipe("run", photos, "-k", 2, "-o", "there.h5", "-q", "--no-report").returncode == 0
    for name in ["missing.h5"] + ["there.h5/below"] * (command[0] != "repair"):
        check_one_error(clpipe(*command, name), 2, "there is no file", name)
    assert os.listdir(tmp_path) == ["there.h5"]


def error_object(text):
    """The message and the exit code of a report that contains only an error."""
    report = json.loads(text)
    assert set(report) == {"error"} and set(report["error"]) == {"message", "exit_code"}
    return report["error"]


@pytest.mark.variations
@pytest.mark.parametrize("arguments, code", [
    (["info", "missing.h5"], 2), (["run", "missing"], 2), (["run", ".", "--bogus"], 2),
    (["run", ".", "-k", "0"], 2), (["run"], 2), (["cluster", "text.h5", "-k", "2"], 3),
    (["verify", "text.h5"], 3), (["ingest", ".", "-o", "none/x.h5"], 3)])
def test_an_error_as_json(clpipe, tmp_path, arguments, code):
    (tmp_path / "text.h5").write_text("this is no HDF5 file\n" * 100)
    for option in [["--json", "-"], ["--json=-"]]:
        result = clpipe(*arguments, *option)
        assert result.returncode == code
        error = error_object(result.stdout)
        assert error["exit_code"] == code
        assert error_lines(result)[-1] == f"clpipe: {error['message']}"
    result = clpipe(*arguments, "--json", "e.json")
    assert result.returncode == code and result.stdout == ""
    assert error_object((tmp_path / "e.json").read_text())["exit_code"] == code


def test_an_error_as_json_replaces_no_other_file(clpipe, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "list.json").write_text("[]")
    for arguments in [["run", ".", "--bogus", "--json", "notes.txt"],
                      ["run", "list.json", "--bogus", "--json", "list.json"]]:
        assert clpipe(*arguments).returncode == 2
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert (tmp_path / "list.json").read_text() == "[]"


def test_a_summary_on_a_full_device(clpipe, photos, tmp_path):
    with open("/dev/full", "w") as full:
        result = clpipe("run", photos, "-k", 2, capture_output=False, stdout=full,
                        stderr=subprocess.PIPE)
    assert result.returncode == 3
    assert "cannot write the summary: the disk is full" in result.stderr
    assert clpipe("verify", "clpipe.h5").returncode == 0
    # It is not an error if the reader closes the pipe.
    read, write = os.pipe()
    os.close(read)
    result = clpipe("run", photos, "-k", 2, capture_output=False, stdout=write,
                    stderr=subprocess.PIPE)
    os.close(write)
    assert result.returncode == 0, result.stderr


def test_control_characters_do_not_reach_the_terminal(clpipe):
    result = clpipe("run", "no\033[2Jsuch\nfile")
    assert result.returncode == 2
    assert "\033" not in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_invisible_characters_in_names(clpipe, photos, tmp_path):
    """Characters that reverse or hide text, so that a name looks like another one, are shown escaped; but not
    in tables and JSON."""
    hidden = [chr(c) for c in range(1, 0x110000) if unicodedata.category(chr(c)) in ("Cc", "Cf", "Zl", "Zp")]
    shown = "\u00e9\u4e2d\u05d0\u0634\u200a\u0301\ufe0f\U0001f600"
    os.mkdir(tmp_path / "p\u202eq")
    for i, character in enumerate([*hidden, shown]):
        (tmp_path / "p\u202eq" / f"{i}{character}.jpg").touch()
    shutil.copy(photos / "red" / "00.png", tmp_path / "p\u202eq" / "a\u202egnp.png")
    said = clpipe("ingest", "p\u202eq", "-o", "f.h5")
    assert said.returncode == 1
    printed = [said.stdout, said.stderr]
    for arguments in (["info", "f.h5", "--failures"], ["info", "f.h5"], ["verify", "f.h5"],
                      ["info", "p\u202eq"], ["cluster", "f.h5", "-k", 1], ["ingest", "p\u202eq/none", "-o", "x.h5"],
                      ["ingest", "p\u202eq", "-o", "f.h5", "--feature", "a\u2066b"]):
        result = clpipe(*arguments)
        printed += [result.stdout, result.stderr]
    everything = "".join(printed)
    assert not set(everything) & set(hidden) - {"\n", "\t"}
    assert all(f"{i}{''.join(f'{chr(92)}x{byte:02x}' for byte in character.encode())}.jpg" in everything
               for i, character in enumerate(hidden))
    assert f"{shown}.jpg" in everything
    table = clpipe("export", "f.h5", "--what", "failures", "--format", "jsonl").stdout
    assert {json.loads(line)["path"] for line in table.rstrip("\n").split("\n")} == {
        f"{i}{character}.jpg" for i, character in enumerate([*hidden, shown])}
    assert "a\u202egnp.png,p\u202eq," in clpipe("export", "f.h5", "--what", "images").stdout


def test_formats_and_names_of_tables(clpipe, finished, tmp_path):
    """An extension in upper or lower case selects a format; --format selects one for any name, with a message."""
    for name, start in (("a.TSV", "path\tsource"), ("b.txt", "path,source"), ("c.JsonL", '{"path":')):
        assert clpipe("export", finished, "--what", "images", "-o", name).returncode == 0
        assert (tmp_path / name).read_text().startswith(start)
    for command in (["export", finished, "--what", "images"], ["duplicates", finished],
                    ["similar", finished, "row:0", "--feature", "counts"]):
        result = clpipe(*command, "-o", "d.json", "--format", "jsonl", "--force")
        assert result.returncode == 0 and "notice: d.json is written as jsonl, as --format says" in result.stderr
    assert clpipe("info", finished, "--json", "/dev/null").returncode == 0


def test_ways_to_write_an_option(clpipe, photos, tmp_path):
    shapes = [["--threads", "1"], ["--threads=1"], ["-qv"], ["-q", "-v"]]
    for shape in shapes:
        result = clpipe("ingest", *shape, "--dry-run", photos)
        assert result.returncode == 0, result.stderr
    (tmp_path / "-odd").mkdir()
    draw_photos(tmp_path / "-odd", 3)
    result = clpipe("ingest", "--dry-run", "--json=-", "--", "-odd")
    assert result.returncode == 0, result.stderr
    assert '"images_ok": 4' in result.stdout


# --- the same options everywhere ----------------------------------------------------------------

def test_every_command_accepts_the_general_options(clpipe):
    for command in COMMANDS:
        result = clpipe(command, *OPERANDS[command], "--memory", "64M", "--threads", "1",
                        "--device-memory=1G", "-q", "-v", "--progress=never", "--zzz")
        check_one_error(result, 2, "unknown option --zzz")


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    """The generated completions and the man page."""
    folder = tmp_path_factory.mktemp("documents")
    subprocess.run([sys.executable, ROOT / "tools" / "generate_docs.py", CLPIPE,
                    ROOT / "docs" / "clpipe.1.in", folder], check=True)
    return folder


def test_man_page(help_options, documents):
    page = (documents / "clpipe.1").read_text().replace("\\-", "-")
    found = {command: {"help"} for command in COMMANDS}
    for section in re.split(r"^\.SS ", page.partition(".SH EXIT STATUS")[0], flags=re.M)[1:]:
        options = set(re.findall(r"^(?:\\fB-\w\\fR, )?\\fB--([a-z-]+)\\fR", section, re.M))
        names = re.match(r".* \((.*)\)", section)[1]
        for command in COMMANDS if names == "all commands" else names.split(", "):
            found[command] |= options
    assert found == help_options
    for command in COMMANDS:
        assert re.search(rf"^\\fBclpipe {command}\\fR ", page, re.M), command


def test_man_page_is_well_formed(documents):
    if not shutil.which("groff"):
        pytest.skip("groff is not installed")
    result = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", documents / "clpipe.1"],
                            capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")


def test_bash_completion(help_options, documents):
    script = documents / "clpipe.bash"

    def complete(*words):
        code = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _clpipe; ' \
               'printf "%s\\n" "${COMPREPLY[@]}"'
        result = subprocess.run(["bash", "-c", code, "bash", script, *words], text=True,
                                capture_output=True, check=True)
        assert result.stderr == ""
        return set(result.stdout.split())

    assert complete("clpipe", "") == set(COMMANDS) | {"--version", "--help"}
    for command in COMMANDS:
        assert complete("clpipe", command, "--") == {"--" + o for o in help_options[command]}
    assert complete("clpipe", "run", "--metric", "c") == {"cosine"}
    assert complete("clpipe", "run", "--metric", "=", "h") == {"hellinger"}
    assert complete("clpipe", "run", "--metric", "=") == {"euclidean", "cosine", "hellinger"}


COMPLETED = [
    ("info my", ["info", "my photos.h5"]), ("info my\\ ph", ["info", "my photos.h5"]),
    ("info 'my p", ["info", "my photos.h5"]), ('info "my p', ["info", "my photos.h5"]),
    ("info ./my", ["info", "./my photos.h5"]), ("info q", ["info", "q$u'o\"te&;.h5"]),
    ("ingest ~/my", ["ingest", "HOME/my photos.h5"]), ("ingest x -o my", ["ingest", "x", "-o", "my photos.h5"]),
    ("ingest x --codebook my", ["ingest", "x", "--codebook", "my photos.h5"]),
    ("ingest x --codebook=my", ["ingest", "x", "--codebook=my photos.h5"]),
    ("export f --to e", ["export", "f", "--to", "empty directory/"]),
    ("export f --to=e", ["export", "f", "--to=empty directory/"]),
    ("report f -o e", ["report", "f", "-o", "empty directory/"]), ("clu", ["cluster"]),
    ("run x --metr", ["run", "x", "--metric"]), ("run x --metric=c", ["run", "x", "--metric=cosine"]),
    ("ingest @al", ["ingest", "@all.list"]), ("ingest @d", ["ingest", "@d/"]),
    ("ingest @two\\ ", ["ingest", "@two lists"]), ("ingest @two\\ l", ["ingest", "@two lists"]),
    ("ingest x @d/", ["ingest", "x", "@d/in it"]), ("info two@", ["info", "two@2x.h5"]),
    ("cluster x -k 2 --paths al", ["cluster", "x", "-k", "2", "--paths", "all.list"])]


@pytest.mark.parametrize("breaks", ["", "COMP_WORDBREAKS=${COMP_WORDBREAKS//[@:]/}"])
def test_bash_completes_names(documents, tmp_path, breaks):
    """Completes words while they are typed in an interactive bash, with and without @ and : in COMP_WORDBREAKS."""
    for name in ("my photos.h5", "q$u'o\"te&;.h5", "all.list", "two lists", "two@2x.h5", "d/in it", "empty directory/one"):
        (tmp_path / "n" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "n" / name).touch()
    lines = [f"source {documents / 'clpipe.bash'}", breaks,
             f"clpipe() {{ printf '%s\\0' \"$@\" $'\\n' >> {tmp_path}/said; }}",
             *(f"clpipe {typed}\t" for typed, _ in COMPLETED), "cd d", "clpipe ingest @\t", "exit", ""]
    main, other = pty.openpty()
    shell = subprocess.Popen(["bash", "--norc", "--noprofile", "-i"], stdin=other, stdout=other, stderr=other,
                             cwd=tmp_path / "n", start_new_session=True,
                             env={**os.environ, "HOME": str(tmp_path / "n"), "TERM": "dumb", "INPUTRC": "/dev/null"})
    os.close(other)
    written = "\n".join(lines).encode()
    seen = b""
    while shell.poll() is None or select.select([main], [], [], 0)[0]:
        ready = select.select([main], [main] if written else [], [], 1)
        try:
            if ready[0]:
                seen += os.read(main, 65536)
            elif ready[1]:
                written = written[os.write(main, written[:100]):]
        except OSError:
            break
    shell.wait()
    os.close(main)
    said = [line.split("\0")[:-1] for line in (tmp_path / "said").read_text().replace("\0\n\0", "\0\n").splitlines()]
    wanted = [[word.replace("HOME", str(tmp_path / "n")) for word in words] for _, words in COMPLETED]
    assert said == [*wanted, ["ingest", "@in it"]], seen.decode(errors="replace")


def test_zsh_completion(help_options, documents):
    script = documents / "clpipe.zsh"
    found = {name: set(re.findall(r"^        '\*?--([a-z-]+)", body, re.M))
             for name, body in re.findall(r"^    ([a-z-]+)\) options=\((.*?);;", script.read_text(),
                                          re.M | re.S)}
    assert found == help_options
    if shutil.which("zsh"):
        subprocess.run(["zsh", "-n", script], check=True)


def test_fish_completion(help_options, documents):
    script = documents / "clpipe.fish"
    found = {command: {"help"} for command in COMMANDS}
    names = set()
    for line in script.read_text().splitlines():
        if match := re.match(r"complete -c clpipe -n \$first -a (\S+)", line):
            names.add(match[1])
        if match := re.match(r"complete -c clpipe -n '__clpipe_is (.*?)'.*? -l (\S+)", line):
            found[match[1]].add(match[2])
    assert names == set(COMMANDS)
    assert found == help_options
    if shutil.which("fish"):
        subprocess.run(["fish", "--no-execute", script], check=True)

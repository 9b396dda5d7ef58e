"""Ranks in several processes, started by the mpirun of each installed MPI: any number of ranks gives the bits
of one process. Kills, stops and errors of one rank end all ranks, and finished work is kept: the checkpoint
of a clustering, and the parts of an ingest.

Processes are killed at random times derived from CLPIPE_SEED, which is printed."""

import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import h5py
import numpy
import pytest

from conftest import CLPIPE, LONG, SEED, descendants, digest, run_clpipe

# The commands of each MPI, its name in the version text, and the options that let root start any number of
# processes.
MPIS = {
    "openmpi": (["mpirun.openmpi", "mpirun"], "Open MPI", ["--allow-run-as-root", "--oversubscribe"]),
    "mpich": (["mpirun.mpich", "mpiexec.hydra"], "HYDRA", []),
}
OTHER = {"openmpi": "mpich", "mpich": "openmpi"}
CASES = {
    "k-means||": ["-k", "24", "--init", "kmeans-parallel", "--metric", "cosine"],
    "n-init": ["-k", "20", "--n-init", "2"],
    "weights": ["-k", "8", "--weights", "weights.npy"],
    "sweep": ["-k", "2:5", "--max-iter", "9"],
    "mini-batch": ["-k", "12", "--mini-batch", "700", "--max-iter", "20"],
    "components": ["-k", "9", "--pca", "6", "--whiten", "0.5"],
    "levels": ["--levels", "24,6,2", "--metric", "cosine", "--resample", "5:2"],
    "split": ["--split", "6x5", "--metric", "cosine"],
    "split, mini-batch": ["--split", "6x5", "--mini-batch", "300", "--max-iter", "9"],
    "streamed": ["-k", "9", "--init", "random", "--memory", "1M", "--device-memory", "256K"],
}
STATE = "x.h5.kmeans.checkpoint"
LINGER = ["-k", "150", "--init", "random", "--max-iter", "400", "--tol", "0"]


def find_launcher(mpi):
    names, says, options = MPIS[mpi]
    for name in names:
        if shutil.which(name):
            version = subprocess.run([name, "--version"], capture_output=True, text=True)
            if says in version.stdout + version.stderr:
                return [name, *options]
    return None


@pytest.fixture(params=MPIS)
def mpirun(request, program):
    """Starts a command with a number of ranks; .mpi is the name of the MPI."""
    launcher = find_launcher(request.param)
    if not launcher or not (CLPIPE.parent / f"mpi-{request.param}.so").exists():
        pytest.skip(f"{request.param} is not installed (tools/prepare --tests), or was not built in")

    def command(ranks, *args):
        return [*launcher, "-n", str(ranks), str(CLPIPE), *map(str, args)]

    def run(ranks, *args, cwd, code=0):
        result = subprocess.run(command(ranks, *args), cwd=cwd, capture_output=True, text=True,
                                stdin=subprocess.DEVNULL, timeout=300, env={**os.environ, "TERM": "xterm"})
        assert result.returncode == code, (result.stdout, result.stderr)
        if ranks > 1:  # even if the launcher opens a terminal
            assert "\033" not in result.stdout + result.stderr
        return result

    run.command = command
    run.mpi = request.param
    return run


@pytest.fixture(scope="module")
def place(tmp_path_factory, program):
    """Rows in eight blocks, the last of them incomplete, for up to eight ranks."""
    place = tmp_path_factory.mktemp("ranks")
    values = numpy.random.default_rng(7)
    rows = values.normal(0, 1, (24, 17))[values.integers(0, 24, 2000)] + values.normal(0, 0.7, (2000, 17))
    numpy.save(place / "rows.npy", rows.astype("f4"))
    numpy.save(place / "weights.npy", values.uniform(0, 3, 2000).astype("f4"))
    numpy.save(place / "more.npy", values.normal(0, 1, (30000, 32)).astype("f4"))
    return place


@pytest.fixture(scope="module")
def wanted(place):
    """Returns the digest of a case's result from one process."""
    known = {}

    def find(case):
        if case not in known:
            result = run_clpipe("cluster", "rows.npy", *CASES[case], "-o", f"one-{case}.h5", cwd=place)
            assert result.returncode == 0, result.stderr
            known[case] = digest(place / f"one-{case}.h5")
        return known[case]

    return find


@pytest.mark.variations
@pytest.mark.parametrize("case, ranks, threads", [
    pytest.param(case, ranks, threads,
                 marks=[] if (case, ranks, threads) == ("k-means||", 2, 1) else pytest.mark.slow)
    for case in CASES for ranks in (1, 2, 4, 7) for threads in (1, 2)
    if threads == 1 or case in ("k-means||", "streamed")])
def test_same_bits(mpirun, place, wanted, case, ranks, threads):
    output = place / f"{mpirun.mpi}.h5"
    output.unlink(missing_ok=True)
    result = mpirun(ranks, "cluster", "rows.npy", *CASES[case], "--threads", threads, "-o", output, cwd=place)
    assert digest(output) == wanted(case)
    assert result.stdout.count("stored") == 1  # only the first rank reports it


@pytest.mark.slow
@pytest.mark.parametrize("options", ([], ["--mini-batch", 500]), ids=lambda options: options[0] if options else "lloyd")
def test_parts_beyond_memory(mpirun, place, tmp_path, options):
    """Each part takes almost 2 MB."""
    arguments = ["cluster", place / "more.npy", "--split", "2x5", "--max-iter", 5, *options]
    assert run_clpipe(*arguments, "-o", "one.h5", cwd=tmp_path).returncode == 0
    for ranks in (1, 3):
        mpirun(ranks, *arguments, "--memory", "1M", "-o", "x.h5", "--force", cwd=tmp_path)
        assert digest(tmp_path / "x.h5") == digest(tmp_path / "one.h5")


@pytest.mark.deep
def test_assign(mpirun, place, wanted):
    wanted("n-init")
    for name, run in (("a1", run_clpipe), ("a3", lambda *args, cwd: mpirun(3, *args, cwd=cwd))):
        output = place / f"{mpirun.mpi}-{name}.h5"
        run("assign", "one-n-init.h5", "rows.npy", "-o", output, cwd=place)
    assert digest(place / f"{mpirun.mpi}-a3.h5") == digest(place / f"{mpirun.mpi}-a1.h5")


def ranks_of(process):
    """The clpipe processes that a launcher has started."""
    def is_clpipe(pid):
        try:
            return Path(f"/proc/{pid}/comm").read_text().strip() == CLPIPE.name
        except OSError:
            return False
    return sorted(pid for pid in descendants() if pid != process.pid and is_clpipe(pid))


def start(mpirun, place, cwd, ranks, *args):
    """Starts a run that saves its state in every iteration; returns when it has saved it once or has ended."""
    process = subprocess.Popen(mpirun.command(ranks, "cluster", place / "more.npy", *args, "-o", "x.h5", "-q",
                                              "--checkpoint", "0.001"), cwd=cwd, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while process.poll() is None and not (cwd / STATE).exists():
        time.sleep(0.005)
    return process


@pytest.mark.slow
def test_killed(mpirun, place, tmp_path):
    """A rank is killed; any number of ranks, or one process, can continue from the checkpoint."""
    draw = random.Random(SEED)
    args = ["-k", "64", "--init", "random", "--max-iter", "60"]
    run_clpipe("cluster", place / "more.npy", *args, "-o", tmp_path / "whole.h5", "-q")
    for _ in range(30 if LONG else 2):
        for ranks in draw.sample([2, 3, 4], 2):
            process = start(mpirun, place, tmp_path, ranks, *args)
            time.sleep(draw.uniform(0, 0.3))
            ranks_now = ranks_of(process)
            if ranks_now:
                os.kill(draw.choice(ranks_now), signal.SIGKILL)
            output = process.communicate(timeout=60)[0]
            if process.returncode == 0:  # the run had already finished
                break
            # A rank may also die while it exits, or before it has connected to the others; Open MPI then says only that
            # one has failed.
            assert (tmp_path / "x.h5").exists() or "clpipe:" not in output or any(
                text in output for text in ("signal 9", "EXIT CODE: 9", "MPI_Init_thread")), output
            assert (tmp_path / STATE).exists() or (tmp_path / "x.h5").exists()  # or the run was complete
        if draw.random() < 0.5:
            result = run_clpipe("cluster", place / "more.npy", *args, "-o", "x.h5", cwd=tmp_path)
        else:
            result = mpirun(draw.randint(1, 4), "cluster", place / "more.npy", *args, "-o", "x.h5", cwd=tmp_path)
        assert result.returncode == 0, (SEED, result.stderr)
        assert digest(tmp_path / "x.h5") == digest(tmp_path / "whole.h5"), SEED
        assert not (tmp_path / STATE).exists()
        (tmp_path / "x.h5").unlink()


@pytest.mark.deep
def test_one_rank_is_stopped(mpirun, place, tmp_path):
    """All ranks exit with status 4 at the same iteration, and one of them prints a message."""
    recorded = ["sh", "-c", '"$0" "$@"; echo $? >> codes', *mpirun.command(3)[-1:]]
    command = [*mpirun.command(3)[:-1], *recorded, "cluster", str(place / "more.npy"), *LINGER, "-o", "x.h5", "-q",
               "--checkpoint", "0.001"]
    process = subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
    while process.poll() is None and not (tmp_path / STATE).exists():
        time.sleep(0.005)
    os.kill(random.Random(SEED).choice(ranks_of(process)), signal.SIGTERM)
    output = process.communicate(timeout=60)[0]
    assert (tmp_path / "codes").read_text().split() == ["4"] * 3, output
    assert output.count("clustering was interrupted after") == 1
    assert (tmp_path / STATE).exists()


@pytest.mark.deep
@pytest.mark.parametrize("clusters", [["-k", "40"], ["--split", "6x5"]], ids=lambda words: words[0])
def test_a_rank_that_waits_is_stopped(mpirun, place, tmp_path, clusters):
    """While the first rank computes mini-batches alone, it learns that another rank was stopped, and saves its
    state."""
    command = mpirun.command(3, "cluster", place / "more.npy", *clusters, "--mini-batch", "2000", "--max-iter", "2000000",
                             "-o", "x.h5", "-q", "--checkpoint", "0.001")
    process = subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
    while process.poll() is None and not (tmp_path / STATE).exists():
        time.sleep(0.005)
    rank_of = {int(line.split(b"=")[1]): pid for pid in ranks_of(process)
               for line in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
               if line.startswith((b"OMPI_COMM_WORLD_RANK=", b"PMI_RANK="))}
    os.kill(rank_of[2], signal.SIGTERM)
    try:
        output = process.communicate(timeout=20)[0]
    finally:
        process.kill()
    assert output.count("clustering was interrupted after") == 1, output
    assert (tmp_path / STATE).exists() and not (tmp_path / "x.h5").exists()


@pytest.mark.deep
def test_one_clear_line(mpirun, place, tmp_path):
    """Errors are reported once, and a module for an MPI other than the launcher's is refused."""
    result = subprocess.run(mpirun.command(2, "cluster", place / "rows.npy", "-k", 2100, "-o", "x.h5"),
                            cwd=tmp_path, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    lines = [line for line in result.stderr.splitlines() if line.startswith("clpipe")]
    assert result.returncode == 3 and len(lines) == 1, result.stderr
    assert "k is 2100, but there are only 2,000 rows" in lines[0]
    if not (CLPIPE.parent / f"mpi-{OTHER[mpirun.mpi]}.so").exists():
        return
    result = subprocess.run(mpirun.command(2, "cluster", place / "rows.npy", "-k", 3, "-o", "x.h5", "--mpi",
                                           OTHER[mpirun.mpi]),
                            cwd=tmp_path, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    lines = [line for line in result.stderr.splitlines() if line.startswith("clpipe")]
    assert result.returncode == 3 and len(lines) == 1, result.stderr
    assert "has started 2 processes" in lines[0] and "--mpi off" in lines[0]


def test_no_module(place, tmp_path):
    """Under a launcher a program without its MPI module reports an error; alone it needs no module."""
    program = tmp_path / "clpipe"
    program.write_bytes(CLPIPE.read_bytes())
    program.chmod(0o755)
    args = [program, "cluster", place / "rows.npy", "-k", "3", "-o", tmp_path / "x.h5", "-q"]
    alone = {name: text for name, text in os.environ.items() if not name.startswith(("SLURM_", "OMPI_", "PMI"))}
    mpich, mpich_of_one = {"PMI_RANK": "0", "PMI_SIZE": "2"}, {"PMI_RANK": "0", "PMI_SIZE": "1"}
    step, step_of_one = ({"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": tasks} for tasks in "31")
    pmix = {"PMIX_RANK": "0"}
    for env, words in ((mpich, "mpi-mpich.so: not built in"), (step, "srun --mpi=pmix (Open MPI)"),
                       (step | pmix, "srun --mpi=pmix has started this program, but its module mpi-openmpi.so"),
                       (step | pmix | mpich, "mpi-mpich.so: not built in"),  # MPICH's daemons run as a Slurm step
                       (step_of_one | pmix | mpich, "mpi-mpich.so: not built in"),  # in a shell of a Slurm step
                       (step | pmix | mpich_of_one, "mpi-openmpi.so: not built in")):
        result = subprocess.run(args, env={**alone, **env}, capture_output=True, text=True)
        assert result.returncode == 3 and words in result.stderr, result.stderr
    for env in (step_of_one, step_of_one | pmix, {"SLURM_PROCID": "0", "SLURM_NTASKS": "4"},
                step | pmix | {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"}):
        assert subprocess.run(args, env={**alone, **env}).returncode == 0, env
    assert subprocess.run([*args, "--mpi", "off"], env={**alone, **mpich}).returncode == 0


# --- processes that cannot share ------------------------------------------------------------------

def clpipe_lines(text):
    return [line for line in text.splitlines() if line.startswith("clpipe")]


ALONE = '[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 0 ] || exec sleep 200; exec "$@"'


@pytest.mark.deep
def test_one_rank_alone(mpirun, place, tmp_path):
    """The other process is not clpipe: an error is printed after a minute."""
    command = mpirun.command(2, "cluster", place / "rows.npy", "-k", 3, "-o", "x.h5")
    at = command.index(str(CLPIPE))
    process = subprocess.Popen([*command[:at], "sh", "-c", ALONE, "sh", *command[at:]], cwd=tmp_path, text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    line = process.stderr.readline
    lines = []
    reader = threading.Thread(target=lambda: lines.append(line()))
    reader.start()
    end = time.monotonic() + 180
    while reader.is_alive() and time.monotonic() < end:
        sum(range(1000000))  # a test that uses no processor time is considered hung
        time.sleep(0.1)
    for pid in descendants():
        os.kill(pid, signal.SIGKILL)
    process.communicate()
    assert lines and "for the other processes: all 2 that" in lines[0] and "--mpi off" in lines[0], lines


PARENT = """
#include <mpi.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    int rank, code = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        code = system(argv[1]);
    MPI_Bcast(&code, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return code >> 8;
}
"""


@pytest.mark.deep
def test_started_by_a_rank(mpirun, place, tmp_path):
    """An MPI program starts the command, which cannot join and says so; other commands work as usual."""
    compiler = shutil.which(f"mpicc.{mpirun.mpi}") or shutil.which("mpicc")
    if not compiler:
        pytest.skip("there is no mpicc")
    (tmp_path / "parent.c").write_text(PARENT)
    subprocess.run([compiler, "-o", tmp_path / "parent", tmp_path / "parent.c"], check=True)
    command = mpirun.command(2)
    command[command.index(str(CLPIPE)):] = [str(tmp_path / "parent")]
    for words, code in (("-k 3", 3), ("-k 3 --mpi off -q", 0)):
        result = subprocess.run([*command, f"{CLPIPE} cluster {place}/rows.npy -o x.h5 {words}"], cwd=tmp_path, text=True,
                                capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
        lines = clpipe_lines(result.stderr)
        assert result.returncode == code and len(lines) == (code != 0), result.stderr
        assert not lines or "is itself MPI rank 0" in lines[0] and "--mpi off" in lines[0]
    result = subprocess.run([*command, f"{CLPIPE} info x.h5 --digest"], cwd=tmp_path, text=True, capture_output=True,
                            stdin=subprocess.DEVNULL, timeout=60)
    assert result.returncode == 0 and len(result.stdout.split()) == 1, result.stderr


@pytest.mark.deep
def test_commands_that_do_not_share(photos, tmp_path):
    """If a launcher starts several processes of such a command, all are refused and the first one says why.
    Commands in scripts that a launcher starts, commands with --mpi off, and commands about the machine are
    not refused."""
    alone = {name: text for name, text in os.environ.items() if not name.startswith(("SLURM_", "OMPI_", "PMI"))}
    launchers = [({"OMPI_COMM_WORLD_RANK": "{}", "OMPI_COMM_WORLD_SIZE": "2"}, "mpirun of Open MPI"),
                 ({"PMI_RANK": "{}", "PMI_SIZE": "2"}, "mpiexec of MPICH"),
                 ({"SLURM_PROCID": "{}", "SLURM_STEP_NUM_TASKS": "2"}, "srun")]
    several = json.loads(run_clpipe("--help", "--json").stdout)["commands"]
    may = {"ingest", "cluster", "assign", "devices", "formats", "self-test", "bench", "tune", "ndrange"}
    for env, name in launchers:
        for command in several:
            if command["name"] in may:
                continue
            for rank in "01":
                result = subprocess.run([CLPIPE, command["name"], "a", "b", "c", "-q"][:5 if command["name"] == "rename" else
                                        4 if command["name"] in ("import", "merge") else 3], cwd=tmp_path, text=True,
                                        env={**alone, **{key: value.format(rank) for key, value in env.items()}},
                                        capture_output=True, stdin=subprocess.DEVNULL)
                assert result.returncode == 2 and not result.stdout
                lines = result.stderr.splitlines()
                assert len(lines) == (rank == "0"), (command["name"], lines)
                assert rank == "1" or f"does not share its work, and {name}" in lines[0] and "--mpi off" in lines[0]
    env = {**alone, "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"}
    for number, words in enumerate((["list", photos, "--mpi", "off", "-o", "1"], ["formats"])):
        assert subprocess.run([CLPIPE, *words], cwd=tmp_path, env=env, stdout=subprocess.DEVNULL).returncode == 0, number
    script = ["sh", "-c", '"$0" list "$1" -o 2; exit $?', CLPIPE, photos]
    assert subprocess.run(script, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL).returncode == 0
    (tmp_path / "x.h5.partial").mkdir()
    with open(tmp_path / "x.h5.partial" / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = subprocess.run([CLPIPE, "ingest", photos, "-o", "x.h5", *INGEST], cwd=tmp_path, env=env, text=True,
                                capture_output=True)
    assert result.returncode == 3 and "--shard mpi they share" in result.stderr


# --- what one rank lacks --------------------------------------------------------------------------

FAULTS = CLPIPE.parent / "tests" / "faults.so"
# Runs a command in which only one rank, given by the first argument, preloads a library.
FOR_RANK = ["sh", "-c", 'library=$1; [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" != $0 ] || export LD_PRELOAD="$library"; '
            'shift; exec "$@"']


def run_with_library(mpirun, library, ranks, *args, cwd, env=None, rank=1):
    """The run must not hang; returns its exit code and the lines that clpipe printed."""
    command = mpirun.command(ranks, *args)
    start = command.index(str(CLPIPE))
    result = subprocess.run([*command[:start], *FOR_RANK, str(rank), library, *command[start:]], cwd=cwd, text=True,
                            env={**os.environ, **(env or {})}, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
    return result.returncode, [line for line in result.stderr.splitlines() if line.startswith("clpipe")]


@pytest.mark.deep
@pytest.mark.parametrize("command", ["cluster", pytest.param("ingest", marks=pytest.mark.slow)])
def test_one_rank_out_of_memory(mpirun, place, photos, tmp_path, command):
    """Each allocation of rank 1 fails in a separate run: all ranks end, and one of them says why."""
    if not FAULTS.exists():
        pytest.skip("faults.so is not built in this variant")
    args = {"cluster": ["cluster", place / "rows.npy", "-k", "5", "-q", "-o", "x.h5"],
            "ingest": ["ingest", photos, "-q", "-o", "x.h5", "--shard", "mpi", *INGEST]}[command]
    assert run_with_library(mpirun, FAULTS, 3, *args, cwd=tmp_path,
                            env={"CLPIPE_FAULT_LIST": str(tmp_path / "sites")})[0] == 0
    whole = digest(tmp_path / "x.h5")
    sites = [site for kind, site, _ in map(str.split, (tmp_path / "sites").read_text().splitlines()) if kind == "memory"]
    module = [site for site in sites if site.startswith("mpi+")]
    others = sorted(set(sites) - set(module))
    assert len(module) > 2 and len(others) > 20
    for site in [*module, *(others if LONG else random.Random(SEED).sample(others, 2))]:
        for path in tmp_path.glob("x.h5*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        code, lines = run_with_library(mpirun, FAULTS, 3, *args, cwd=tmp_path, env={
            "CLPIPE_FAULT": f"memory {site} 1 12", "CLPIPE_FAULT_NOTE": str(tmp_path / "note")})
        assert (tmp_path / "note").exists(), site
        (tmp_path / "note").unlink()
        if code == 0:  # the result does not depend on this memory
            assert digest(tmp_path / "x.h5") == whole
        # 1: a picture failed, as in an ingest by one process.
        assert len(lines) == (code not in (0, 1)), (site, code, lines)
        assert not site.startswith("mpi+") or "out of memory" in lines[0], (site, lines)


@pytest.mark.deep
def test_the_first_rank_fails_alone(mpirun, place, tmp_path):
    """Each allocation that only rank 0 makes fails, including those for levels after the other ranks have
    finished."""
    if not FAULTS.exists():
        pytest.skip("faults.so is not built in this variant")
    args = ["cluster", place / "rows.npy", "--levels", "24,6", "--threads", "2", "-q", "-o", "x.h5"]
    sites = []
    for rank in (0, 1):
        (tmp_path / "x.h5").unlink(missing_ok=True)
        assert run_with_library(mpirun, FAULTS, 2, *args, cwd=tmp_path, rank=rank,
                                env={"CLPIPE_FAULT_LIST": str(tmp_path / f"sites{rank}")})[0] == 0
        sites.append({line.split()[1] for line in (tmp_path / f"sites{rank}").read_text().splitlines()
                      if line.startswith("memory clpipe")})
    assert len(sites[0] - sites[1]) > 20
    for site in sorted(sites[0] - sites[1]):
        (tmp_path / "x.h5").unlink(missing_ok=True)
        code, lines = run_with_library(mpirun, FAULTS, 2, *args, cwd=tmp_path, rank=0,
                                       env={"CLPIPE_FAULT": f"memory {site} 1 12"})
        assert code in (0, 3) and len(lines) == (code == 3), (site, code, lines)


@pytest.mark.deep
@pytest.mark.parametrize("kind, action", [("launch", -5), ("read", 5), ("thread", 11)])
def test_one_rank_fails_beyond_memory(mpirun, tmp_path, kind, action):
    """While all ranks divide a part that is clustered again, since it has only three distinct rows: rank 1 fails with
    an error that the others do not have."""
    if not FAULTS.exists():
        pytest.skip("faults.so is not built in this variant")
    random = numpy.random.default_rng(6)
    rows = numpy.vstack([random.normal(0, 1, (9000, 64)), 50 + numpy.eye(3, 64)[random.integers(0, 3, 9000)]])
    numpy.save(tmp_path / "rows.npy", rows[random.permutation(len(rows))].astype("f4"))
    args = ["cluster", "rows.npy", "--split", "2x5", "--memory", "1M", "-q", "-o", "x.h5"]
    assert run_with_library(mpirun, FAULTS, 2, *args, cwd=tmp_path,
                            env={"CLPIPE_FAULT_LIST": str(tmp_path / "sites")})[0] == 0
    with h5py.File(tmp_path / "x.h5") as file:
        assert sorted(numpy.bincount(file["clusters/kmeans/parents"])) == [3, 5]
    sites = map(str.split, (tmp_path / "sites").read_text().splitlines())
    calls = sum(int(count) for name, _, count in sites if name == kind)
    for part in 0.6, 0.75, 0.9:
        (tmp_path / "x.h5").unlink(missing_ok=True)
        code, lines = run_with_library(mpirun, FAULTS, 2, *args, cwd=tmp_path,
                                       env={"CLPIPE_FAULT": f"{kind} * {int(calls * part)} {action}"})
        assert code == 3 and len(lines) == 1 and "rank 1 on " in lines[0] and "distinct" not in lines[0], (code, lines)
        assert not (tmp_path / "x.h5").exists()


NO_THREADS = """
#include <mpi.h>
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int code = PMPI_Init_thread(argc, argv, required, provided);
    *provided = MPI_THREAD_SINGLE;
    return code;
}
"""
NO_GROUP = """
#include <mpi.h>
int MPI_Comm_split(MPI_Comm all, int color, int key, MPI_Comm *out)
{
    PMPI_Comm_split(all, color, key, out);
    return MPI_ERR_OTHER;
}
"""


@pytest.mark.deep
@pytest.mark.parametrize("source, words", [
    pytest.param(NO_THREADS, "does not provide MPI_THREAD_FUNNELED", id="threads"),
    pytest.param(NO_GROUP, "the ranks can no longer reach each other", id="group")])
def test_one_rank_with_a_faulty_mpi(mpirun, place, tmp_path, source, words):
    """The MPI of rank 1 lacks something: all ranks end, and one line says so."""
    compiler = shutil.which(f"mpicc.{mpirun.mpi}") or shutil.which("mpicc")
    if not compiler:
        pytest.skip("there is no mpicc")
    (tmp_path / "shim.c").write_text(source)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", tmp_path / "shim.so", tmp_path / "shim.c"], check=True)
    code, lines = run_with_library(mpirun, tmp_path / "shim.so", 2, "cluster", place / "rows.npy", "-k", 3, "-o",
                                   tmp_path / "x.h5", cwd=tmp_path)
    assert code != 0 and len(lines) == 1 and words in lines[0], (code, lines)
    assert not (tmp_path / "x.h5").exists()


# --- ingest --shard mpi ---------------------------------------------------------------------------

INGEST = ["--feature", "gray:bins=8", "--device", "cpu"]


@pytest.fixture(scope="module")
def collection(tmp_path_factory, mixed):
    """A directory with damaged files, archives of it, and the identity of a single ingest of everything."""
    top = tmp_path_factory.mktemp("collection")
    shutil.copytree(mixed, top / "t")
    for kind in ("tar", "gztar"):
        shutil.make_archive(top / "all", kind, mixed)
    args = ["ingest", top / "t", top / "all.tar", top / "all.tar.gz", *INGEST]
    assert run_clpipe(*args, "-o", top / "one.h5", "-q").returncode == 1
    return args, digest(top / "one.h5")


def look(directory):
    return {path: path.stat().st_mtime_ns for path in directory.glob("all.h5*/**/*.h5")}


@pytest.mark.variations
@pytest.mark.parametrize("ranks", [3] + [pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 4, 7)])
def test_ingest_merges(mpirun, collection, tmp_path, ranks):
    """Identity and exit status are those of one process; repeating the command then changes nothing."""
    args, whole = collection
    args = [*args, "-o", "all.h5", "--shard", "mpi"]
    result = mpirun(ranks, *args, "--json", "all.json", cwd=tmp_path, code=1)
    assert result.stdout.count("all.h5 (") == 1, result.stdout
    assert digest(tmp_path / "all.h5") == whole
    report = json.loads((tmp_path / "all.json").read_text())
    assert report.get("ranks") == (ranks if ranks > 1 else None)
    assert len(list(tmp_path.glob(f"all.h5.parts/shard-*-of-{ranks}.h5"))) == (ranks if ranks > 1 else 0)
    before = look(tmp_path)
    result = mpirun(ranks, *args, cwd=tmp_path, code=1)
    assert "nothing new" in result.stdout and look(tmp_path) == before
    (tmp_path / "all.h5").unlink()
    mpirun(ranks, *args, "--allow-failures", "100%", cwd=tmp_path)
    assert digest(tmp_path / "all.h5") == whole


@pytest.mark.deep
def test_counts_are_sums(mpirun, mixed, tmp_path):
    """The counts are those of one process, for a first ingest and for one that compares all files with the result."""
    def told(command, output):
        command("ingest", "t", *INGEST, "-o", output, "--json", f"{output}.json")
        report = json.loads((tmp_path / f"{output}.json").read_text())
        return {key: value for key, value in report.items()
                if key.startswith(("images_", "files_", "pixels", "bytes_read", "jpeg")) and "second" not in key}

    def both(*more):
        counts = told(lambda *args: mpirun(2, *args, *more, "--shard", "mpi", cwd=tmp_path, code=1), "all.h5")
        assert counts == told(lambda *args: run_clpipe(*args, *more, cwd=tmp_path), "one.h5")
        return counts

    shutil.copytree(mixed, tmp_path / "t")
    first = both()
    assert (first["images_ok"], first["images_failed"], first["files_not_images"]) == (13, 4, 1)
    pictures = sorted(path for path in (tmp_path / "t").rglob("*.*g") if path.parent.name != "bad")
    for path in pictures[0], pictures[-1]:
        before = path.stat()
        path.write_bytes(path.read_bytes()[:-1] + b"\0")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    second = both("--checksum")
    assert (second["files_compared"], second["files_differ"]) == (13, 2)


@pytest.mark.deep
def test_ingest_protects_the_output(mpirun, photos, tmp_path):
    """Results of other commands, foreign files and clusters are not overwritten, and one line says why."""
    def refused(ranks, code, *words, source=photos, output="all.h5"):
        result = subprocess.run(mpirun.command(ranks, "ingest", source, "-o", output, "--shard", "mpi", *INGEST),
                                cwd=tmp_path, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        lines = [line for line in result.stderr.splitlines() if line.startswith("clpipe")]
        assert result.returncode == code and len(lines) == 1, result.stderr
        assert all(word in lines[0] for word in words), lines

    shutil.copytree(photos, tmp_path / "t")
    (tmp_path / "x.h5").write_text("x")
    refused(2, 3, "not a clpipe file", output="x.h5")
    refused(2, 2, "there is no file or directory", source="nowhere")
    assert not (tmp_path / "x.h5.parts").exists()
    mpirun(3, "ingest", "t", "-o", "all.h5", "--shard", "mpi", *INGEST, cwd=tmp_path)
    refused(2, 2, "another result", "--fresh", source="t")
    run_clpipe("select", "all.h5", "3", "--method", "random", cwd=tmp_path)
    selected = (tmp_path / "all.h5").read_bytes()
    shutil.copy(next(photos.glob("*/*.png")), tmp_path / "t/yyy.png")
    refused(3, 2, "holds selections/selection", source="t")
    assert (tmp_path / "all.h5").read_bytes() == selected
    said = mpirun(3, "ingest", "t", "-o", "all.h5", "--shard", "mpi", "--fresh", *INGEST, cwd=tmp_path).stderr
    assert said.count("all.h5 had selections/selection, which a merge does not keep") == 1
    run_clpipe("cluster", "all.h5", "-k", "3", cwd=tmp_path)
    clustered = (tmp_path / "all.h5").read_bytes()
    mpirun(3, "ingest", "t", "-o", "all.h5", "--shard", "mpi", cwd=tmp_path)
    shutil.copy(next(photos.glob("*/*.png")), tmp_path / "t/zzz.png")
    refused(3, 2, "holds clusters/kmeans", source="t")
    assert (tmp_path / "all.h5").read_bytes() == clustered
    (tmp_path / "all.h5").rename(tmp_path / "old.h5")
    mpirun(3, "ingest", "t", "-o", "all.h5", "--shard", "mpi", cwd=tmp_path)
    run_clpipe("ingest", "t", "-o", "one.h5", *INGEST, cwd=tmp_path)
    assert digest(tmp_path / "all.h5") == digest(tmp_path / "one.h5")


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Enough pictures to decode for several seconds."""
    from PIL import Image
    top = tmp_path_factory.mktemp("many")
    values = numpy.random.default_rng(3)
    (top / "t").mkdir()
    for i in range(60):
        pixels = values.integers(100, 116, (700, 800 + i, 3), dtype="u1")
        Image.fromarray(pixels).save(top / f"t/{i:03}.png", compress_level=1)
    subprocess.run(["tar", "-C", top, "-czf", top / "t.tgz", "t"], check=True)
    args = ["ingest", top / "t", top / "t.tgz", "--feature", "rgb:bins=256,grid=4x4", "--device", "cpu"]
    assert run_clpipe(*args, "-o", top / "one.h5", "-q", "--allow-failures", "100%").returncode == 0
    return args, digest(top / "one.h5")


def start_ingest(mpirun, args, cwd):
    return subprocess.Popen(mpirun.command(3, *args, "-o", "all.h5", "--shard", "mpi", "--allow-failures", "100%"),
                            cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


@pytest.mark.slow
def test_ingest_killed(mpirun, many, tmp_path):
    """A rank is killed at random times until a run succeeds; the identity is that of a single ingest."""
    args, whole = many
    draw = random.Random(SEED)
    killed = 0
    while killed < (40 if LONG else 6):
        process = start_ingest(mpirun, args, tmp_path)
        time.sleep(draw.uniform(0, 2))
        ranks_now = ranks_of(process)
        if ranks_now:
            os.kill(draw.choice(ranks_now), signal.SIGKILL)
        process.communicate(timeout=60)
        if process.returncode != 0:  # Open MPI does not report the signal if the rank had not joined yet
            killed += 1
            assert not (tmp_path / "all.h5").exists() or digest(tmp_path / "all.h5") == whole
        if process.returncode == 0 or draw.random() < 0.25:
            mpirun(3, *args, "-o", "all.h5", "--shard", "mpi", "--allow-failures", "100%", cwd=tmp_path)
            assert digest(tmp_path / "all.h5") == whole, SEED
            assert sorted(path.name for path in tmp_path.iterdir()) == ["all.h5", "all.h5.parts"]
            assert len(list((tmp_path / "all.h5.parts").iterdir())) == 3
            shutil.rmtree(tmp_path / "all.h5.parts")
            (tmp_path / "all.h5").unlink()


@pytest.mark.deep
def test_ingest_stopped(mpirun, many, tmp_path):
    """If one rank is asked to stop, all stop, one prints a message, and the same command continues."""
    args, whole = many
    process = start_ingest(mpirun, args, tmp_path)
    while process.poll() is None and not list(tmp_path.glob("all.h5.parts/*.partial/log-*")):
        time.sleep(0.005)
    os.kill(random.Random(SEED).choice(ranks_of(process)), signal.SIGTERM)
    output = process.communicate(timeout=60)[0]
    assert process.returncode == 4, output
    assert output.count("run the same command again to resume") == 1, output
    mpirun(3, *args, "-o", "all.h5", "--shard", "mpi", "--allow-failures", "100%", cwd=tmp_path)
    assert digest(tmp_path / "all.h5") == whole


@pytest.mark.deep
def test_info_of_an_unfinished_ingest(mpirun, photos, tmp_path):
    """Ingests that were stopped by a failing picture or before merging, and with another number of ranks."""
    shutil.copytree(photos, tmp_path / "t")
    (tmp_path / "t" / "zzz.jpg").write_bytes(b"no picture\n" * 9)
    args = ["ingest", "t", "-o", "all.h5", "--shard", "mpi", *INGEST]

    def info(*more):
        return run_clpipe("info", "all.h5", *more, cwd=tmp_path)

    mpirun(2, *args, "--strict", cwd=tmp_path, code=1)
    lines = info().stdout.splitlines()
    assert lines[0] == "all.h5   does not exist yet: an ingest by 2 ranks is unfinished", lines
    assert lines[1].split(maxsplit=1)[1] in ("0 of 2 have finished their part", "1 of 2 have finished their part")
    found = json.loads(info("--json", "-").stdout)["unfinished"]
    logs = [json.loads(run_clpipe("info", path.with_suffix(""), "--json", "-", cwd=tmp_path).stdout)["unfinished"]
            for path in tmp_path.glob("all.h5.parts/*.partial")]
    assert 0 < len(logs) == found["ranks"] - found["ranks_done"]
    for name in ("files", "images", "failed", "log_bytes"):
        assert found[name] == sum(one[name] for one in logs)
    assert found["failed"] == 1 and not found["in_use"]
    assert lines[-1].split(maxsplit=1)[1].startswith("mpirun -n 2 clpipe ingest t -o all.h5 --shard mpi"), lines
    mpirun(2, *args, cwd=tmp_path, code=1)
    assert "ranks " not in info().stdout and json.loads(info("--json", "-").stdout)["unfinished"] is None
    (tmp_path / "all.h5").unlink()
    lines = info().stdout.splitlines()
    assert "2 of 2 have" in lines[1] and lines[-1].endswith("run the same command again with 2 ranks"), lines
    mpirun(3, *args, "--strict", "--fresh", cwd=tmp_path, code=1)
    assert "by 3 ranks" in info().stdout
    (tmp_path / "all.h5.parts").rename(tmp_path / "other")
    assert info().returncode == 2 and "there is no file all.h5" in info().stderr


@pytest.mark.variations
def test_ingest_stopped_while_rank_0_lists(mpirun, tmp_path):
    """Rank 1 is asked to stop while rank 0 waits for the end of a list."""
    os.mkfifo(tmp_path / "list")
    process = start_ingest(mpirun, ["ingest", "@list", *INGEST], tmp_path)
    with open(tmp_path / "list", "w"):
        while not (tmp_path / "all.h5.parts/shard-1-of-3.h5.partial").exists():
            time.sleep(0.01)
        for rank in ranks_of(process):
            if b"_RANK=1\0" in Path(f"/proc/{rank}/environ").read_bytes():
                os.kill(rank, signal.SIGTERM)
        output = process.communicate(timeout=60)[0]
    assert process.returncode == 4 and output.count("run the same command again to resume") == 1, output


@pytest.mark.deep
def test_ingest_of_nothing(mpirun, tmp_path):
    (tmp_path / "t").mkdir()
    result = mpirun(2, "ingest", "t", "-o", "all.h5", "--shard", "mpi", *INGEST, cwd=tmp_path, code=3)
    assert "no image under t; all.h5 is not written" in result.stderr
    assert not (tmp_path / "all.h5").exists()


@pytest.mark.deep
def test_removal_limits_count_all_ranks(mpirun, tmp_path, photos):
    """30 of 120 images are missing, but fewer than 20 from each rank; and a directory shared by two ranks."""
    picture = next(photos.rglob("*.png")).read_bytes()
    for i in range(120):
        path = tmp_path / "p" / ("a" if i < 60 else "b") / f"{i:03}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture)
    args = ["ingest", "p", "-o", "all.h5", "--shard", "mpi", "--feature", "gray"]
    mpirun(3, *args, cwd=tmp_path)
    before = digest(tmp_path / "all.h5")
    for i in range(0, 120, 4):
        (tmp_path / "p" / ("a" if i < 60 else "b") / f"{i:03}.png").unlink()
    for _ in range(2):
        result = mpirun(3, *args, "--json", "-", cwd=tmp_path, code=2)
        assert "30 of 120 images of all.h5" in result.stderr + result.stdout, result.stderr
    assert digest(tmp_path / "all.h5") == before
    result = mpirun(3, *args, "--allow-removal", cwd=tmp_path)
    assert "removed     30 gone or not mounted" in result.stdout
    assert run_clpipe("verify", tmp_path / "all.h5").returncode == 0

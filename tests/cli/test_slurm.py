"""tools/slurm with a Slurm of one node that the test starts: prepare, array, requeue, merge and cluster; and
processes started by srun with and without MPI. Logs are kept in build/slurm."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import h5py
import numpy
import pytest

from conftest import CLPIPE, ROOT, digest, draw_photos, run_clpipe

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel", "scontrol")
# The argument of srun --mpi= for each MPI.
STEPS = {"openmpi": "pmix", "mpich": "pmi2"}
INGEST = ("--feature", "gray:bins=8", "--device", "cpu")
SUBMIT = ROOT / "tools" / "slurm" / "submit"

CONFIGURATION = """ClusterName=clpipe
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={place}/munge/socket,cred_expire=5
CryptoType=crypto/munge
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
KillWait=2
SchedulerParameters=sched_interval=1,batch_sched_delay=0
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def installed(name):
    return shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """Starts Slurm; returns the environment for its commands."""
    missing = [name for name in PROGRAMS if not installed(name)]
    if missing or os.geteuid() != 0:
        pytest.skip(f"not installed: {', '.join(missing)}" if missing else "Slurm's daemons need root")
    place = tmp_path_factory.mktemp("slurm")
    for name in ("munge", "state", "spool"):
        (place / name).mkdir(mode=0o700)
    key = place / "munge" / "key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    conf = place / "slurm.conf"
    conf.write_text(CONFIGURATION.format(host=socket.gethostname(), ports=free_ports(2), place=place,
                                         cpus=os.cpu_count()))
    env = {**os.environ, "SLURM_CONF": str(conf), "CLPIPE": str(CLPIPE), "LC_ALL": "C.UTF-8",
           "SBATCH_OVERCOMMIT": "1", "SLURM_OVERCOMMIT": "1"}
    munge = place / "munge"
    options = {"env": env, "check": True, "stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL,
               "stderr": subprocess.DEVNULL}
    subprocess.run([installed("munged"), "--force", f"--key-file={key}", f"--socket={munge}/socket",
                    f"--pid-file={munge}/pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed"],
                   **options)
    daemons = [munge / "pid"]
    try:
        for name in ("slurmctld", "slurmd"):
            daemons.append(place / f"{name}.pid")
            subprocess.run([installed(name)], **options)
        for _ in range(300):
            if "idle" in command(env, "sinfo", "-h", "-o", "%T"):
                break
            time.sleep(0.1)
        yield env
    finally:
        subprocess.run(["scancel", "-u", "root"], env=env, stderr=subprocess.DEVNULL)
        kept = ROOT / "build" / "slurm"
        kept.mkdir(parents=True, exist_ok=True)
        for log in [*place.glob("slurm*.log"), *place.glob("job/*.log")]:
            shutil.copy(log, kept)
        for pid in reversed(daemons):
            if pid.exists():
                subprocess.run(["kill", pid.read_text().strip()])


def command(env, *words):
    return subprocess.run(words, env=env, text=True, capture_output=True).stdout


def wait_for(env, condition, what, seconds=300):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what}\n{command(env, 'squeue')}"
        sum(range(100000))  # a test that uses no processor time is considered hung
        time.sleep(0.05)


def why_no_step(env, mpi):
    """Says what srun or the build lacks for a step with this MPI; empty if nothing."""
    if not (CLPIPE.parent / f"mpi-{mpi}.so").exists():
        return f"clpipe was built without {mpi}"
    result = subprocess.run(["srun", f"--mpi={STEPS[mpi]}", "true"], env=env, text=True, capture_output=True, timeout=60)
    assert result.returncode == 0 or "Invalid MPI type" in result.stderr, result.stderr
    return "" if result.returncode == 0 else f"this Slurm has no --mpi={STEPS[mpi]} (tools/prepare --tests)"


def run_srun(env, kind, ranks, *args, cwd, code=0):
    result = subprocess.run(["srun", f"--mpi={kind}", "-n", str(ranks), "--kill-on-bad-exit", *map(str, args)], env=env,
                            cwd=cwd, text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=300)
    assert result.returncode == code, (result.stdout, result.stderr)
    return result


@pytest.fixture(scope="module")
def one(tmp_path_factory, photos, program):
    """The results of one process: rows, an ingest, and a clustering of the rows."""
    place = tmp_path_factory.mktemp("one")
    values = numpy.random.default_rng(7)
    numpy.save(place / "rows.npy", values.normal(0, 1, (2000, 17)).astype("f4"))
    numpy.save(place / "more.npy", values.normal(0, 1, (60000, 32)).astype("f4"))
    for args in (("cluster", "rows.npy", "-k", 9, "-o", "clusters.h5"), ("ingest", photos, "-o", "photos.h5", *INGEST)):
        result = run_clpipe(*args, cwd=place)
        assert result.returncode == 0, result.stderr
    return place


@pytest.mark.slow
@pytest.mark.parametrize("mpi", STEPS)
def test_srun_starts_ranks(slurm, one, photos, tmp_path, mpi):
    """Two and three ranks give the identities of one process; a step with one task needs no MPI."""
    lacks = why_no_step(slurm, mpi)
    if lacks:
        pytest.skip(lacks)
    for ranks in (1, 2, 3):
        place = tmp_path / str(ranks)
        place.mkdir()
        result = run_srun(slurm, STEPS[mpi], ranks, CLPIPE, "cluster", one / "rows.npy", "-k", 9, "-o", "clusters.h5",
                          cwd=place)
        assert (f", {ranks} ranks\n" in result.stdout) == (ranks > 1) and result.stdout.count("stored") == 1
        run_srun(slurm, STEPS[mpi], ranks, CLPIPE, "ingest", photos, "-o", "photos.h5", "--shard", "mpi", "--json",
                 "photos.json", *INGEST, cwd=place)
        assert json.loads((place / "photos.json").read_text()).get("ranks") == (ranks if ranks > 1 else None)
        assert len(list(place.glob("photos.h5.parts/*.h5"))) == (ranks if ranks > 1 else 0)
        for name in ("clusters.h5", "photos.h5"):
            assert digest(place / name) == digest(one / name)


def tasks_of(directory):
    """The clpipe processes that srun has started in this directory, by rank."""
    found = {}
    for process in Path("/proc").iterdir():
        try:
            if (process / "comm").read_text().strip() == CLPIPE.name and (process / "cwd").resolve() == directory:
                rank = re.search(rb"\0SLURM_PROCID=(\d+)\0", (process / "environ").read_bytes())
                found[int(rank[1])] = int(process.name)
        except OSError:
            pass
    return found


@pytest.mark.slow
@pytest.mark.parametrize("mpi", STEPS)
def test_srun_forwards_signals(slurm, one, tmp_path, mpi):
    """srun forwards SIGUSR1, as cluster.sbatch requires; killing a rank ends the others. The checkpoint is kept."""
    lacks = why_no_step(slurm, mpi)
    if lacks:
        pytest.skip(lacks)
    state = tmp_path / "x.h5.kmeans.checkpoint"
    args = [CLPIPE, "cluster", one / "more.npy", "-k", 150, "--init", "random", "--max-iter", 2000, "--tol", 0, "-q",
            "--checkpoint", 0.001, "-o", "x.h5"]
    for victim in (None, 0, 2):
        state.unlink(missing_ok=True)
        step = subprocess.Popen(["srun", f"--mpi={STEPS[mpi]}", "-n", "3", "--kill-on-bad-exit", *map(str, args)],
                                env=slurm, cwd=tmp_path, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)
        wait_for(slurm, lambda: state.exists() or step.poll() is not None, "there is no checkpoint")
        tasks = tasks_of(tmp_path)
        assert sorted(tasks) == [0, 1, 2]
        if victim is None:
            step.send_signal(signal.SIGUSR1)
        else:
            os.kill(tasks[victim], signal.SIGKILL)
        output = step.communicate(timeout=60)[0]
        assert step.returncode == (4 if victim is None else 137), output
        assert output.count("clustering was interrupted after") == (victim is None), output
        assert state.exists() and not tasks_of(tmp_path)


@pytest.mark.slow
def test_srun_without_mpi(slurm, one, photos, tmp_path):
    """One task works alone, and so do two tasks with separate outputs; tasks with a common output are told
    that MPI is missing."""
    def ingest(ranks, *args, code=0):
        return run_srun(slurm, "none", ranks, *args, cwd=tmp_path, code=code)

    ingest(1, CLPIPE, "ingest", photos, "-o", "alone.h5", "--shard", "mpi", *INGEST)
    ingest(2, "sh", "-c", '"$0" "$@" -o own-$SLURM_PROCID.h5', CLPIPE, "ingest", photos, *INGEST)
    ingest(2, CLPIPE, "ingest", photos, "-o", "s-{shard}.h5", "--shard", "mpi", *INGEST)
    result = run_clpipe("merge", "s-0.h5", "s-1.h5", "-o", "merged.h5", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    for name in ("alone", "own-0", "own-1", "merged"):
        assert digest(tmp_path / f"{name}.h5") == digest(one / "photos.h5")
    before = sorted(tmp_path.iterdir())
    for args in (("ingest", photos, "-o", "all.h5", "--shard", "mpi", *INGEST),
                 ("cluster", one / "rows.npy", "-k", 9, "-o", "all.h5")):
        result = ingest(2, CLPIPE, *args, code=3)
        assert result.stderr.count("srun has started 2 tasks without MPI") == 1, result.stderr
    command(slurm, "sbatch", "--wait", "-n", "2", "-o", tmp_path / "log", "-D", tmp_path, "--wrap",
            f"{CLPIPE} ingest {photos} -o all.h5 --shard mpi")
    assert "no MPI launcher has started this process" in (tmp_path / "log").read_text()
    assert sorted(tmp_path.iterdir()) == sorted([*before, tmp_path / "log"])


@pytest.mark.slow
def test_from_sources_to_clusters(program, slurm, tmp_path_factory, tmp_path):
    """Three tasks, one of which is stopped midway, give the identity of a single ingest; two ranks cluster it
    if srun can start them."""
    photos = tmp_path / "photos"
    photos.mkdir()
    count = len(draw_photos(photos, 240))
    job = Path(slurm["SLURM_CONF"]).parent / "job"
    learned = ["--feature", "sift:words=8"]
    result = run_clpipe("codebook", photos, "-o", tmp_path / "c.h5", "--sample", 20, *learned)
    assert result.returncode == 0, result.stderr
    options = [*learned, "--codebook", str(tmp_path / "c.h5")]
    kinds = [kind for mpi, kind in STEPS.items() if not why_no_step(slurm, mpi)]
    launcher = f"srun --mpi={kinds[0]} --kill-on-bad-exit" if kinds else "none"
    result = subprocess.run([SUBMIT, "-o", job, "-n", "3", "-c", "1", "-p", "none", "-k", "4", "-r", "2" if kinds else "1",
                             photos, "--", *options, "--threads", "1"],
                            env={**slurm, "CLPIPE_LAUNCHER": launcher}, text=True, capture_output=True)
    assert result.returncode == 0, result.stderr
    assert re.fullmatch(r"prepare \d+\nshards +\d+ \(3 tasks\)\nmerge +\d+\ncluster \d+\nresult  .*/all.h5\n",
                        result.stdout)
    begun = job / "shard-1.h5.partial" / "command"
    wait_for(slurm, lambda: begun.exists() or (job / "shard-1.h5").exists(), "shard 1 has not begun")
    assert begun.exists(), "shard 1 finished before it could be stopped"
    running = re.findall(r"^(\d+) \S*_1$", command(slurm, "squeue", "-h", "-r", "-o", "%A %i", "-t", "R"), re.M)
    for number in running:
        command(slurm, "scancel", "--batch", "--signal=USR1", number)
    wait_for(slurm, lambda: not command(slurm, "squeue", "-h").strip(), "the jobs have not ended")
    log = (job / "shard-1.log").read_text()
    assert len(running) == 1 and "run the same command again to resume" in log, log
    assert "shard 1 was stopped and is queued again" in log, log
    whole = job / "whole.h5"
    result = run_clpipe("ingest", "@list", "-o", whole, *options, cwd=job)
    assert result.returncode == 0, result.stderr
    again = run_clpipe("merge", *(job / f"shard-{i}.h5" for i in range(3)), "-o", job / "again.h5")
    assert again.returncode == 0, again.stderr
    assert digest(job / "again.h5") == digest(whole)
    log = next(job.glob("cluster-*.log")).read_text()
    assert (", 2 ranks\n" in log) == bool(kinds), log
    with h5py.File(job / "all.h5") as merged, h5py.File(whole) as one:
        assert (merged["features/sift_words8"][:] == one["features/sift_words8"][:]).all()
        assert len(merged["clusters/kmeans/labels"]) == count
        assert merged["clusters/kmeans/sizes"].shape == (4,)


def run_job(env, script, place, *options, start=None, **more):
    """Submits a script of tools/slurm in a directory with a list; `start` is called with the job number."""
    number = subprocess.run(["sbatch", "--parsable", "-D", place, *options, SUBMIT.parent / script, *INGEST], env={**env, **more},
                            text=True, capture_output=True, check=True).stdout.strip()
    if start:
        start(number)
    wait_for(env, lambda: not command(env, "squeue", "-h", "-j", number).strip(), "the job has not ended")


@pytest.fixture
def slow_program(tmp_path):
    """A program that exits with status 4 when it is stopped, without output."""
    program = tmp_path / "slow"
    program.write_text("""#!/bin/bash
[[ $1 == ingest ]] || exit 2
echo begun >> starts
trap 'exit 4' USR1 TERM
[[ ! ${ENDS_ITSELF:-} ]] || exit 4
while :; do read -rt 0.1 <> <(:); done
""")
    program.chmod(0o755)
    return program


@pytest.mark.slow
def test_a_cancelled_task_is_not_queued_again(slurm, slow_program, tmp_path):
    begun = tmp_path / "starts"

    def cancel(number):
        wait_for(slurm, begun.exists, "the task has not begun")
        command(slurm, "scancel", number)

    run_job(slurm, "shard.sbatch", tmp_path, "--array=0", start=cancel, CLPIPE=str(slow_program), CLPIPE_SHARDS="1",
            CLPIPE_PRESET="none")
    time.sleep(3)
    assert not command(slurm, "squeue", "-h").strip() and begun.read_text() == "begun\n"
    assert "is queued again" not in (tmp_path / "shard-0.log").read_text()


@pytest.mark.slow
def test_a_task_without_progress_is_not_queued_again(slurm, slow_program, tmp_path):
    run_job(slurm, "shard.sbatch", tmp_path, "--array=0", CLPIPE=str(slow_program), CLPIPE_SHARDS="1", CLPIPE_PRESET="none",
            ENDS_ITSELF="yes")
    log = (tmp_path / "shard-0.log").read_text()
    assert (tmp_path / "starts").read_text() == "begun\n" * 3
    assert log.count("is queued again") == 2 and log.count("is not queued again: give it more time") == 1, log


def test_merge_finds_all_shards(program, photos, tmp_path):
    """Also with more than ten shards."""
    args = [CLPIPE, "ingest", photos, "-o", "shard-{shard}.h5", "-q", *INGEST, "--shard"]
    for index in range(11):
        subprocess.run([*args, f"{index}/11"], cwd=tmp_path, check=True)
    result = subprocess.run(["bash", SUBMIT.parent / "merge.sbatch"], cwd=tmp_path, text=True, capture_output=True,
                            env={**os.environ, "CLPIPE": str(CLPIPE), "CLPIPE_SHARDS": "11"})
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "shard-00.h5").exists() and (tmp_path / "shard-10.h5").exists()
    with h5py.File(tmp_path / "all.h5") as merged:
        assert len(merged["images/path"]) == 13


@pytest.mark.deep
def test_invalid_jobs_are_not_submitted(slurm, photos, tmp_path):
    base = ["-o", tmp_path / "job", "-n", "2", "-c", "1", "-p", "none", photos]
    bad = tmp_path / "file"
    bad.write_text("")
    for words, env, said in [
            (["-c", str(os.cpu_count() + 1), *base[:4], "-p", "none", photos], {}, "prepare.sbatch: "),
            (base, {"SBATCH_PARTITION": "nowhere"}, "partition"),
            (base, {"SBATCH_MEM_PER_NODE": "900G"}, "prepare.sbatch: "),
            (base, {"SLURM_CONF": str(bad)}, "controller does not answer"),
            (base, {"CLPIPE": str(tmp_path / "none")}, "there is no program"),
            ([*base[:-1], tmp_path / "nothing"], {}, "there is no file or directory"),
            (["-o", bad / "job", *base[2:]], {}, "cannot be made"),
            ([*base[:6], "-p", "fast", photos, "--", "--feature", "gray"], {}, "--feature contradicts -p fast"),
            ([*base[:6], "-p", "fast", photos, "--", "--feature=gray"], {}, "--feature contradicts -p fast"),
            ([*base[:6], "-p", "quick", photos], {}, "not 'quick'")]:
        result = subprocess.run([SUBMIT, *map(str, words)], env={**slurm, **env}, text=True, capture_output=True)
        assert result.returncode == 2 and said in result.stderr and result.stderr.count("\n") <= 2, (words, result.stderr)
    assert not command(slurm, "squeue", "-h").strip()


def test_misuse(tmp_path):
    for words, said in [([], "-o DIR"), (["-o", tmp_path], "no SOURCE"), (["-n", "x", "-o", tmp_path, "a"], "'x'"),
                        (["-k"], "-k needs a value"), (["--quick"], "unknown option")]:
        result = subprocess.run([SUBMIT, *words], text=True, capture_output=True)
        assert result.returncode == 2 and said in result.stderr, result.stderr

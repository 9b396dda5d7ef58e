"""tools/slurm on a Slurm of one node that the test starts: prepare, array, requeue, merge, cluster. Logs stay in
build/slurm."""

import os
import re
import shutil
import socket
import subprocess
import time
from pathlib import Path

import h5py
import pytest

from conftest import CLPIPE, ROOT, digest, draw_photos, run_clpipe

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol")
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
    """Its environment."""
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
    env = {**os.environ, "SLURM_CONF": str(conf), "CLPIPE": str(CLPIPE), "LC_ALL": "C.UTF-8"}
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
        sum(range(100000))  # a test that uses no processor is taken for one that hangs
        time.sleep(0.05)


@pytest.mark.slow
def test_from_sources_to_clusters(program, slurm, tmp_path_factory, tmp_path):
    """Three tasks, of which one is stopped in the middle: the identity of one ingest; clusters of it."""
    photos = tmp_path / "photos"
    photos.mkdir()
    count = len(draw_photos(photos, 240))
    job = Path(slurm["SLURM_CONF"]).parent / "job"
    learned = ["--feature", "sift:words=8"]
    result = run_clpipe("codebook", photos, "-o", tmp_path / "c.h5", "--sample", 20, *learned)
    assert result.returncode == 0, result.stderr
    options = [*learned, "--codebook", str(tmp_path / "c.h5")]
    result = subprocess.run([SUBMIT, "-o", job, "-n", "3", "-c", "1", "-p", "none", "-k", "4", photos, "--",
                             *options, "--threads", "1"], env=slurm, text=True, capture_output=True)
    assert result.returncode == 0, result.stderr
    assert re.fullmatch(r"prepare \d+\nshards +\d+ \(3 tasks\)\nmerge +\d+\ncluster \d+\nresult  .*/all.h5\n",
                        result.stdout)
    begun = job / "shard-1.h5.partial" / "command"
    wait_for(slurm, lambda: begun.exists() or (job / "shard-1.h5").exists(), "shard 1 has not begun")
    assert begun.exists(), "shard 1 was done before it could be stopped"
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
    with h5py.File(job / "all.h5") as merged, h5py.File(whole) as one:
        assert (merged["features/sift_words8"][:] == one["features/sift_words8"][:]).all()
        assert len(merged["clusters/kmeans/labels"]) == count
        assert merged["clusters/kmeans/sizes"].shape == (4,)


def test_misuse(tmp_path):
    for words, said in [([], "-o DIR"), (["-o", tmp_path], "no SOURCE"), (["-n", "x", "-o", tmp_path, "a"], "'x'"),
                        (["-k"], "-k needs a value"), (["--quick"], "unknown option")]:
        result = subprocess.run([SUBMIT, *words], text=True, capture_output=True)
        assert result.returncode == 2 and said in result.stderr, result.stderr

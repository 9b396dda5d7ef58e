#!/usr/bin/env python3
"""Runs all fuzz targets on all cores of this machine for a given time.

    campaign.py SECONDS OUT [EXECUTIONS [TARGET...]]

Run it in a folder made by tools/fuzz --bundle; it needs only Python and a kernel. Each core runs one process,
which continues from the corpus of a target for at most CHUNK seconds; then the core takes the next target: an
idle one, or the one closest to EXECUTIONS (10 million). After a finding, new processes continue.

OUT gets table.md (executions, speed, coverage, findings by target), summary.json, findings.tar.xz
(inputs, and the logs of the processes that ended with them), corpus.tar.xz (a minimal set of inputs
with the full coverage) and logs.tar.xz (the last log of each target). The exit status is 1 after
findings.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CHUNK = 45  # seconds; less with few cores
GOAL = 10000000
MOST_FINDINGS = 20  # described for each target
MOST_BYTES = 15 << 20  # for each archive
OPTIONS = ["-rss_limit_mb=2048", "-malloc_limit_mb=512", "-timeout=10", "-print_final_stats=1",
           "-print_funcs=0"]


def environment(scratch):
    env = dict(os.environ)
    env["TMPDIR"] = scratch
    # A small quarantine fits into the processor's caches.
    env["ASAN_OPTIONS"] = ("allocator_may_return_null=1:intercept_tls_get_addr=0:quarantine_size_mb=8:"
                           "malloc_context_size=2:max_malloc_fill_size=0:symbolize=0")
    env["LSAN_OPTIONS"] = "suppressions=%s/lsan.supp:print_suppressions=0" % HERE
    env["UBSAN_OPTIONS"] = "print_stacktrace=1"
    return env


class Target:
    def __init__(self, name, work):
        self.name = name
        self.corpus = os.path.join(work, "corpus", name)
        self.artifacts = os.path.join(work, "findings", name)
        self.executions = self.running = self.processes = self.peak = 0
        self.seconds = 0.0
        self.coverage = self.features = self.inputs = 0
        self.found, self.findings = 0, []
        os.makedirs(self.corpus)
        os.makedirs(self.artifacts)
        with open(os.path.join(HERE, "targets", name, "options")) as file:
            self.options = file.read().split()
        for folder in ("seeds", "regression", "corpus"):
            source = os.path.join(HERE, "targets", name, folder)
            for entry in os.listdir(source) if os.path.isdir(source) else []:
                shutil.copy(os.path.join(source, entry),
                            os.path.join(self.corpus, folder + "-" + entry))

    def rate(self):
        return self.executions / self.seconds if self.seconds else 0


class Campaign:
    def __init__(self, seconds, out, goal, names, work):
        self.lock = threading.Lock()
        self.began = time.monotonic()
        self.cores = len(os.sched_getaffinity(0))
        self.chunk = max(1, min(CHUNK, seconds * self.cores / len(names) / 3))
        # Reserves time for minimising the corpora and for packing.
        self.fuzzing_ends = self.began + seconds - max(15, seconds * 0.08)
        self.ends = self.began + seconds
        self.out, self.goal, self.work = out, goal, work
        self.env = environment(os.path.join(work, "scratch"))
        os.makedirs(self.env["TMPDIR"])
        os.makedirs(os.path.join(work, "logs"))
        self.targets = [Target(name, work) for name in names]

    def command(self, target, *options):
        return [os.path.join(HERE, "fuzz"), "--target=" + target.name] + OPTIONS + \
            target.options + list(options)

    def run(self, target, log, seconds, *options):
        """Returns the exit status, or None if the process had to be terminated."""
        with open(log, "wb") as file:
            process = subprocess.Popen(self.command(target, *options), cwd=HERE, env=self.env,
                                       stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        try:
            return process.wait(max(1, seconds))
        except subprocess.TimeoutExpired:
            process.terminate()  # libFuzzer then prints its statistics
        try:
            process.wait(3)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        return None

    def pick(self):
        def lacks(target):
            # If several processes work on the target, each is expected to do an equal amount.
            pending = target.running * target.rate() * self.chunk
            left = max(0, self.goal - target.executions - pending)
            return left / target.rate() if target.rate() else float("inf")
        idle = [t for t in self.targets if t.running == 0]
        if idle:
            return min(idle, key=lambda t: (t.executions >= self.goal, t.executions))
        short = [t for t in self.targets if lacks(t) > 0]
        if short:
            return min(short, key=lacks)
        return min(self.targets, key=lambda t: t.executions / (t.running + 1))

    def account(self, target, log, status, seconds, number):
        with open(log, "rb") as file:
            text = file.read().decode(errors="replace")
        done = re.search(r"number_of_executed_units: (\d+)", text)
        # A process that printed no statistics executed at least the number in its last line.
        last = re.findall(r"^#(\d+)\t", text, re.M)
        peak = re.search(r"peak_rss_mb: *(\d+)", text)
        with self.lock:
            target.executions += int(done.group(1)) if done else int(last[-1]) if last else 0
            target.seconds += seconds
            target.processes += 1
            target.peak = max(target.peak, int(peak.group(1)) if peak else 0)
            for cov, features in re.findall(r" cov: (\d+) ft: (\d+)", text):
                target.coverage = max(target.coverage, int(cov))
                target.features = max(target.features, int(features))
            target.found += bool(status)
            if status and target.found <= MOST_FINDINGS:
                kind = re.findall(r"(?:SUMMARY|ERROR): (.*)", text)
                target.findings.append("exit %d, %s" % (status, kind[-1] if kind else text[-200:]))
                with open(os.path.join(target.artifacts, "log-%d" % number), "w") as file:
                    file.write(text[-60000:])
            elif not status:
                with open(os.path.join(self.work, "logs", target.name), "w") as file:
                    file.write(text[-20000:])
        os.unlink(log)
        return bool(status) and seconds < 2

    def worker(self, slot):
        number = slot
        while True:
            now = time.monotonic()
            left = self.fuzzing_ends - now
            if left < 4:
                return
            with self.lock:
                target = self.pick()
                target.running += 1
            number += self.cores
            length = int(min(self.chunk, left - 2)) or 1
            log = os.path.join(self.work, "log-%d" % slot)
            status = self.run(target, log, min(length + 30, left + 5),
                              "-max_total_time=%d" % length, "-seed=%d" % number,
                              "-artifact_prefix=%s/" % target.artifacts, target.corpus)
            failed = self.account(target, log, status, time.monotonic() - now, number)
            with self.lock:
                target.running -= 1
            if failed:
                time.sleep(1)

    def minimise(self, target):
        """Reduces the corpus to inputs that keep its coverage, or keeps all of it if time is short."""
        small = target.corpus + ".small"
        log = os.path.join(self.work, "logs", target.name + "-merge")
        os.makedirs(small)
        status = self.run(target, log, self.ends - time.monotonic() - 8, "-merge=1", small,
                          target.corpus)
        if status == 0:
            shutil.rmtree(target.corpus)
            os.rename(small, target.corpus)
        target.inputs = len(os.listdir(target.corpus))

    def pack(self, name, folder, leave_out=()):
        path = os.path.join(self.out, name + ".tar.xz")
        with tarfile.open(path, "w:xz", preset=1) as tar:
            for target in sorted(os.listdir(folder)):
                if target not in leave_out:
                    tar.add(os.path.join(folder, target), target)
        return os.path.getsize(path)

    def report(self):
        lines = ["| target | executions | processes | executions/s of a core | cov | ft | inputs "
                 "| MB | findings |", "|---|---|---|---|---|---|---|---|---|"]
        for t in self.targets:
            lines.append("| %s | %s | %d | %.0f | %d | %d | %d | %d | %d |" % (
                t.name, format(t.executions, ","), t.processes, t.rate(), t.coverage, t.features,
                t.inputs, t.peak, t.found))
        for t in self.targets:
            lines += ["", "%s:" % t.name] + sorted(set(t.findings)) if t.findings else []
        with open(os.path.join(self.out, "table.md"), "w") as file:
            file.write("\n".join(lines) + "\n")
        with open(os.path.join(self.out, "summary.json"), "w") as file:
            json.dump({t.name: {k: v for k, v in vars(t).items() if not isinstance(v, dict)}
                       for t in self.targets}, file, indent=1)
        print("\n".join(lines), flush=True)

    def go(self):
        def each(work, items):
            threads = [threading.Thread(target=work, args=(item,)) for item in items]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        each(self.worker, range(self.cores))
        self.report()  # in case the following steps fail
        each(self.minimise, self.targets)
        self.report()
        self.pack("findings", os.path.join(self.work, "findings"))
        self.pack("logs", os.path.join(self.work, "logs"))
        corpora = os.path.join(self.work, "corpus")
        if self.pack("corpus", corpora) > MOST_BYTES:
            self.pack("corpus", corpora, ("result", "matrix"))
        return 1 if any(t.findings for t in self.targets) else 0


def main(arguments):
    if len(arguments) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    names = arguments[4:] or sorted(os.listdir(os.path.join(HERE, "targets")))
    goal = int(arguments[3]) if len(arguments) > 3 else GOAL
    os.makedirs(arguments[2], exist_ok=True)
    where = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=where, prefix="campaign-") as work:
        return Campaign(float(arguments[1]), os.path.abspath(arguments[2]), goal, names, work).go()


if __name__ == "__main__":
    sys.exit(main(sys.argv))

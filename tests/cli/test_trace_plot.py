"""tools/trace-plot: its numbers from a synthetic trace, and the plot of a real run."""

import gzip
import json
import subprocess
import sys
import xml.etree.ElementTree as ET

from conftest import ROOT

PLOT = ROOT / "tools" / "trace-plot"


def plot(*args):
    return subprocess.run([sys.executable, str(PLOT), *map(str, args)], text=True,
                          capture_output=True, timeout=60)


def labels(path):
    return [text.text for text in ET.parse(path).iter("{http://www.w3.org/2000/svg}text")
            if text.get("class") == "end"]


def bars(path):
    return [bar.attrib for bar in ET.parse(path).iter("{http://www.w3.org/2000/svg}rect")
            if "class" in bar.attrib]


def made(spans):
    """Makes a trace of (process, thread, name, start, end) in milliseconds."""
    groups = list(dict.fromkeys(span[0] for span in spans))
    threads = list(dict.fromkeys(span[:2] for span in spans))
    events = [{"ph": "M", "name": "process_name", "pid": i, "args": {"name": name}}
              for i, name in enumerate(groups)]
    events += [{"ph": "M", "name": "thread_name", "pid": groups.index(group), "tid": i,
                "args": {"name": name}} for i, (group, name) in enumerate(threads)]
    events += [{"ph": "X", "name": name, "pid": groups.index(group), "tid":
                threads.index((group, track)), "ts": start * 1000, "dur": (end - start) * 1000}
               for group, track, name, start, end in spans]
    return json.dumps({"traceEvents": events})


def test_numbers(tmp_path):
    (tmp_path / "t.json").write_text(made([
        ("host", "walk", "walk", 0, 5),
        ("host", "decode 1", "decode", 10, 60), ("host", "decode 1", "decode", 60, 90),
        ("host", "decode 2", "decode", 10, 110),
        ("gpu", "compute", "zero counters", 20, 21), ("gpu", "upload", "upload pixels", 20, 40),
        ("gpu", "compute", "histogram_local", 40, 60), ("gpu", "upload", "upload pixels", 50, 75),
        ("gpu", "compute (2)", "zero counters", 55, 57),
        ("gpu", "read back", "read counters", 60, 62),
        ("gpu", "compute", "histogram_local", 75, 80), ("gpu", "read back", "read counters", 80, 82),
        ("host", "store", "put", 62, 72), ("host", "store", "write file", 111, 120)]))
    result = plot(tmp_path / "t.json", tmp_path / "t.svg", "--start", "0.010", "--window", "100")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        "decoding: 0.010 s to 0.110 s, 3 pictures, 2 threads busy 90.0%",
        "upload: busy 45.00%", "compute: busy 26.00%", "read back: busy 4.00%",
        "store: busy 10.00%",
        # The first slot is counted while the second one is uploaded; zeroing the second does not count as
        # computing.
        "upload + compute, different slots: 10.00%", "decode + upload, different slots: 45.00%",
        "decode + compute, different slots: 26.00%",
        "decode + upload + compute, different slots: 10.00%"]
    assert labels(tmp_path / "t.svg") == ["decode 1", "decode 2", "upload", "compute", "read back",
                                          "store"]
    colours = [bar["class"] for bar in bars(tmp_path / "t.svg")]
    assert colours == ["d0", "d1", "d0", "s1", "s2", "s1", "s1", "s2", "s2", "s1", "s2", "o"]
    widths = [float(bar["width"]) for bar in bars(tmp_path / "t.svg")[:3]]
    assert widths == [425, 255, 850]


def test_a_run(clpipe, photos, tmp_path):
    assert clpipe("ingest", photos, "-o", "x.h5", "--threads", 2, "--profile",
                  "t.json").returncode == 0
    (tmp_path / "t.json.gz").write_bytes(gzip.compress((tmp_path / "t.json").read_bytes()))
    result = plot(tmp_path / "t.json.gz", tmp_path / "t.svg")
    assert result.returncode == 0, result.stderr
    assert "13 pictures, " in result.stdout
    assert labels(tmp_path / "t.svg")[-4:] == ["upload", "compute", "read back", "store"]


def test_misuse(tmp_path):
    (tmp_path / "t.json").write_text("{}")
    for content in ("{}", "", "[1]", made([("host", "walk", "walk", 0, 5)])):
        (tmp_path / "t.json").write_text(content)
        result = plot(tmp_path / "t.json", tmp_path / "t.svg")
        assert result.returncode == 1 and result.stderr.startswith("trace-plot: "), content
    assert plot(tmp_path / "none", tmp_path / "t.svg").returncode == 1
    assert plot(tmp_path / "t.json", tmp_path / "t.svg", "--window", "0").returncode == 2

"""The commands in the guide's example with vectors run as shown and print the output shown."""

import os
import re
import subprocess
import sys

import pytest

from conftest import CLPIPE, ROOT


def section(title):
    text = (ROOT / "docs" / "guide.md").read_text()
    return re.search(rf"^## {title}\n(.*?)^## ", text, re.M | re.S).group(1)


def lines_of(text):
    """The lines of a text without the seconds and the device."""
    return [re.sub(r"^(  (?:wall )?time +).*", r"\1", line.rstrip()) for line in text.splitlines()]


@pytest.mark.slow
def test_vectors_of_your_own(tmp_path, program):
    blocks = re.findall(r"^```(python)?\n(.*?)^```$", section("Vectors of your own"), re.M | re.S)
    commands = 0
    env = os.environ | {"PATH": f"{CLPIPE.parent}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    for language, block in blocks:
        if language:
            subprocess.run([sys.executable, "-c", block], cwd=tmp_path, check=True)
            continue
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M):
            result = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=env, text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            assert result.returncode == 0, result.stdout
            printed, wanted = lines_of(result.stdout), lines_of(shown)
            if wanted[0] == "" and "" in printed:  # on a slow machine, progress is shown first
                printed = printed[printed.index(""):]
            assert printed == wanted, command
            commands += 1
    assert commands == 4
    assert len((tmp_path / "groups.csv").read_text().splitlines()) == 8001

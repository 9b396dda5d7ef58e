"""tools/wheel: errors that are reported before anything is downloaded."""

import subprocess

from conftest import ROOT


def wheel(tmp_path, text, *arguments):
    (tmp_path / "tools").mkdir(exist_ok=True)
    (tmp_path / "tools" / "wheel").write_text(text)
    done = subprocess.run(["bash", tmp_path / "tools" / "wheel", "--cache", tmp_path / "cache", *arguments],
                          capture_output=True, text=True)
    assert not (tmp_path / "cache").exists()
    return done.returncode, done.stderr


def test_licence_that_is_not_on_the_list(tmp_path):
    text = (ROOT / "tools" / "wheel").read_text()
    line = next(line for line in text.splitlines() if line.startswith("libwebp "))
    name, version, _, digest = line.split()
    other = text.replace(line, f"{name} {version} GPL-2.0 {digest}")
    assert wheel(tmp_path, other) == (1, "wheel: libwebp has the licence GPL-2.0, which is not on the list\n")
    assert wheel(tmp_path, text, "--jobs") == (2, "wheel: --jobs needs a value\n")
    assert wheel(tmp_path, text, "--fast") == (2, "wheel: unknown argument --fast\n")

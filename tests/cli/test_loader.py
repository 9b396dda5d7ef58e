"""The OpenCL loader is opened by name, and drivers that no .icd file lists are added."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import CLPIPE, LIBRARY, run_clpipe

POCL = Path("/etc/OpenCL/vendors/pocl.icd")
SYSTEM = Path("/usr/lib/x86_64-linux-gnu/libOpenCL.so.1")


def loaders(env, executable=None):
    """The loader that is listed for each device."""
    found = run_clpipe("devices", "--json", "-", env={"OCL_ICD_VENDORS": None, **env}, executable=executable)
    assert found.returncode == 0, found.stderr
    return [device["loader"] for device in json.loads(found.stdout)]


@pytest.fixture
def libraries(tmp_path):
    (tmp_path / "lib").mkdir()
    return tmp_path / "lib"


def test_own_loader(libraries, tmp_path, program):
    """The program and the library use the system's loader or else the bundled one; if there is neither, they report one
    error line."""
    (libraries / "libOpenCL.so.1").touch()  # is found first, and cannot be opened
    hidden = {"LD_LIBRARY_PATH": libraries, "OCL_ICD_VENDORS": None}
    none = run_clpipe("devices", env=hidden)
    assert none.returncode == 3 and "there is no OpenCL loader (libOpenCL.so.1)" in none.stderr
    if not SYSTEM.exists():
        pytest.skip("the system's loader is elsewhere")
    for folder in ("bin", "lib/clpipe"):
        (tmp_path / "wheel" / folder).mkdir(parents=True)
    own = tmp_path / "wheel" / "lib" / "clpipe" / "libOpenCL.so.1"
    shutil.copy(SYSTEM, own)
    shutil.copy(CLPIPE, tmp_path / "wheel" / "bin" / "clpipe")
    assert {os.path.realpath(name) for name in loaders(hidden, tmp_path / "wheel" / "bin" / "clpipe")} == {str(own)}
    assert str(own) not in loaders({}, tmp_path / "wheel" / "bin" / "clpipe")
    if "asan" in str(CLPIPE) or "tsan" in str(CLPIPE) or not LIBRARY.exists():
        pytest.skip("Python does not load a library with sanitizers")
    shutil.copy(LIBRARY, tmp_path / "wheel" / "lib")
    code = "import ctypes, sys; handle = ctypes.c_void_p(); print(ctypes.CDLL(sys.argv[1]).clpipe_open(ctypes.byref(" \
        "handle), None, None), sys.argv[2] in open('/proc/self/maps').read())"
    found = subprocess.run([sys.executable, "-c", code, tmp_path / "wheel" / "lib" / "libclpipe.so.1", own],
                           capture_output=True, text=True, env={**os.environ, "LD_LIBRARY_PATH": str(libraries)})
    assert found.stdout == "0 True\n", found.stderr


def test_driver_that_no_file_lists(libraries, tmp_path, program):
    """NVIDIA's library is opened by name, as in containers without nvidia.icd; the system's drivers remain."""
    if not POCL.exists():
        pytest.skip("PoCL is elsewhere")
    (libraries / "libnvidia-opencl.so.1").symlink_to(SYSTEM.parent / POCL.read_text().strip())
    (libraries / "pocl").symlink_to(SYSTEM.parent / "pocl")  # where PoCL looks for its parts
    (tmp_path / "temporary").mkdir()
    env = {"LD_LIBRARY_PATH": libraries, "TMPDIR": tmp_path / "temporary"}
    before, found = loaders({}), loaders(env)
    assert len(found) >= len(before) and all(name.endswith(", with libnvidia-opencl.so.1") for name in found)
    assert not [name for name in os.listdir(tmp_path / "temporary") if "vendors" in name]
    (tmp_path / "vendors").mkdir()
    shutil.copy(POCL, tmp_path / "vendors")
    assert loaders({**env, "OCL_ICD_VENDORS": tmp_path / "vendors"}) == before
    assert "loader: " in run_clpipe("devices").stdout

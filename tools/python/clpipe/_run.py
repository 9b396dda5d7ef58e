"""Starts the program: its options, signals, progress, errors and report."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import json
import logging
import os
import pkgutil
import re
import shutil
import signal
import subprocess
import sys
import threading
from types import FrameType
from typing import IO, TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Sequence, TypedDict, Union

from clpipe._errors import Error, Failed
from clpipe._reader import File, PathLike, open, pandas_library, printable

if TYPE_CHECKING:
    import pandas

# None: not given, so that the program chooses.
Text = Optional[PathLike]
Texts = Union[None, PathLike, Sequence[PathLike]]
Integer = Optional[int]
Number = Union[None, int, str]  # also "2:20" of k, "64M" of sizes, "5%" of shares
Seconds = Union[None, float, str]
log = logging.getLogger("clpipe")
_PROGRESS = re.compile(r"\s*\d+ %\s+([\d,]+)/([\d,]+) (\S[^\d]*?)(?:\s\s|$)")
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)


class Common(TypedDict, total=False):
    """Options of every command.

    device: "cpu", "gpu", "all", numbers of devices() ("0,2") or part of a name; the best one, GPU before CPU.
    threads: decode and host threads; the CPUs this process may use.
    memory, device_memory: bytes, or "256M"; limits on host buffers and on the buffers of each device.
    profile: a file for a timeline, for ui.perfetto.dev.
    mpi: "auto", "openmpi", "mpich" or "off".
    progress: a bar of tqdm, where it is installed; None: if standard error is a terminal; False: none.
    quiet, verbose: how much goes to the logger "clpipe".
    """

    device: Union[str, int]
    threads: int
    memory: Union[int, str]
    device_memory: Union[int, str]
    profile: PathLike
    mpi: str
    progress: Optional[bool]
    quiet: bool
    verbose: bool


class Report(Dict[str, Any]):
    """What a command reports: the object of its --json. `text` is what it printed as a table."""

    text = ""
    names: Sequence[str] = ()  # of files as they were given

    @property
    def output(self) -> Optional[str]:
        """The file that was written or read."""
        for part in (self, *self.values()):
            for key in ("output", "file"):
                if isinstance(part, dict) and isinstance(part.get(key), str):
                    # In the report, bytes that are not UTF-8 are \xHH.
                    return next((name for name in self.names if printable(name) == part[key]), str(part[key]))
        return None

    def open(self, root: Optional[PathLike] = None) -> File:
        """The file, opened for reading: arrays of numpy and frames of pandas.

        >>> with clpipe.info("photos.h5").open() as f:
        ...     len(f)
        13
        """
        if self.output is None:
            raise Error("the command has written no file", 2)
        return open(self.output, root)

    def frame(self, key: str) -> "pandas.DataFrame":
        """A list of the report as a data frame, such as "neighbours" of similar or "groups" of duplicates."""
        rows = self.get(key)
        if not isinstance(rows, list):
            there = ", ".join(name for name, value in self.items() if isinstance(value, list))
            raise Error(f"the report has no list '{key}': there are {there or 'none'}", 2)
        frame: "pandas.DataFrame" = pandas_library().DataFrame(rows)
        return frame


def program() -> str:
    """The program: $CLPIPE, else the wheel's program, else clpipe on the PATH."""
    own = os.path.join(os.path.dirname(__file__), "bin", "clpipe")
    found = os.environ.get("CLPIPE") or (own if os.path.exists(own) else shutil.which("clpipe"))
    if not found:
        raise Error("the program clpipe is not on the PATH; the environment variable CLPIPE can name it")
    return found


def _environment() -> Dict[str, str]:
    """Names the ONNX Runtime of this Python environment, unless the user has named one."""
    found = importlib.util.find_spec("onnxruntime")
    places = found.submodule_search_locations if found else None
    return {**({"CLPIPE_ONNXRUNTIME": places[0]} if places else {}), **os.environ}


def _words(options: Mapping[str, Any]) -> Iterator[bytes]:
    for name, value in options.items():
        option = os.fsencode("--" + name.rstrip("_").replace("_", "-"))
        if value is None or value is False:
            continue
        if value is True:
            yield option
        elif isinstance(value, (list, tuple)):
            yield from (option + b"=" + _bytes(part) for part in value)
        else:
            yield option + b"=" + _bytes(value)


def _bytes(value: Any) -> bytes:
    return os.fsencode(value) if isinstance(value, (str, bytes, os.PathLike)) else str(value).encode()


@contextlib.contextmanager
def _started(line: Sequence[bytes], report: IO[bytes]) -> Iterator["subprocess.Popen[bytes]"]:
    """The process, to which Python's main thread passes its signals on: it is in a session of its own. In other threads
    it gets those of the terminal itself."""
    main = threading.current_thread() is threading.main_thread()
    process: Optional["subprocess.Popen[bytes]"] = None
    seen: List[int] = []

    def pass_on(number: int, frame: Optional[FrameType]) -> None:
        seen.append(number)
        if process is not None and process.returncode is None:
            process.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in _SIGNALS
              if main and signal.getsignal(number) not in (signal.SIG_IGN, None)}
    try:
        try:
            process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=report, stderr=subprocess.PIPE,
                                       start_new_session=main, env=_environment())
        except OSError as error:
            raise Error(f"cannot run {os.fsdecode(line[0])}: {error.strerror}") from error
        for number in seen:
            process.send_signal(number)
        yield process
    finally:
        if process is not None and process.poll() is None:  # an exception of a handler or of tqdm
            process.send_signal(signal.SIGTERM)
            process.wait()
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in dict.fromkeys(seen):  # now that the command has ended
            signal.raise_signal(number)


def _follow(stream: IO[bytes], bar: Any) -> str:
    """Logs the lines of standard error but the last one of the program, which says what went wrong, if
    anything did."""
    last = ""
    for raw in stream:
        line = os.fsdecode(raw).rstrip("\n")
        step = _PROGRESS.match(line)
        if step and bar is not None:
            bar.set_description(step[3].strip(), refresh=False)
            bar.total = int(step[2].replace(",", ""))
            bar.n = int(step[1].replace(",", ""))
            bar.refresh()
        if line.startswith("clpipe: "):
            _warn(last)
            last = line[len("clpipe: "):]
        elif line:
            log.log(logging.DEBUG if step else logging.INFO, "%s", line)
    return last


def _warn(line: str) -> None:
    if line:
        log.warning("%s", line)


def _bar(wanted: Optional[bool]) -> Any:
    terminal = sys.stderr is not None and sys.stderr.isatty()
    if not (terminal if wanted is None else wanted) or importlib.util.find_spec("tqdm") is None:
        return None
    from tqdm.auto import tqdm
    return tqdm(total=0, unit="", leave=False)


def call(command: str, operands: Sequence[Union[PathLike, int]], options: Mapping[str, Any], words: Mapping[str, str] = {},
         ) -> Report:
    """Runs a command and returns its report. Raises Failed if its exit status is not 0, and KeyboardInterrupt after
    Ctrl-C; the command then has left what it leaves in a shell, so the same call resumes. words: what options named in
    messages are called in Python."""
    given = {name: value for name, value in options.items() if value is not operands and name != "common"}
    common = dict(options.get("common", {}))
    wrong = next((name for name in common if name not in Common.__annotations__), None)
    if wrong is not None:
        raise TypeError(f"{command}() got an unexpected keyword argument '{wrong}'")
    bar = _bar(common.pop("progress", None))
    table = command == "export" and options.get("output") is None and options.get("to") is None
    line = [os.fsencode(program()), command.encode(), *_words(given), *_words(common),
            *([] if table else [b"--json=-"]), *([b"--progress=always"] if bar is not None else []), b"--",
            *map(_bytes, operands)]
    with os.fdopen(os.memfd_create("clpipe-report"), "w+b") as report:
        with contextlib.nullcontext() if bar is None else contextlib.closing(bar), _started(line, report) as process:
            assert process.stderr is not None
            with process.stderr as stream:
                message = _follow(stream, bar)
            code = process.wait()
        report.seek(0)
        text = report.read().decode(errors="surrogateescape")
    found = Report()
    found.names = [os.fsdecode(_bytes(name)) for name in (options.get("output"), *operands) if name is not None]
    try:
        content = json.loads(text) if text and not table else {}
        found.update(content if isinstance(content, dict) else {command: content})
    except ValueError:
        table = True
    found.text = text if table else ""
    if code != 0:
        told = found.get("error")
        message = told["message"] if isinstance(told, dict) else message or (
            "some of it failed, as the report says (exit status 1)" if code == 1 else f"exit status {code}")
        for option, word in words.items():
            message = message.replace(option, word)
        raise Failed(message, code, found)
    _warn(message)
    return found


def identity(file: PathLike) -> str:
    """What `clpipe info --digest` prints: all values are read."""
    return str(call("info", (file,), {"digest": True})["digest"])


def document(functions: Mapping[str, Any]) -> None:
    """Completes the docstrings of commands: what they do, and their options with their defaults."""
    table = json.loads(pkgutil.get_data("clpipe", "options.json") or b"")
    for command, about in table["commands"].items():
        function = functions[command]
        texts = {name: text for name, text, *users in table["options"] if command in users}
        options = "\n".join(texts[name] for name in function.__kwdefaults__ or ())
        function.__doc__ = "\n\n".join(filter(None, (inspect.cleandoc(function.__doc__ or ""), about, options)))

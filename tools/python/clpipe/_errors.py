"""What goes wrong with a file or a command."""

from typing import Any, Dict


class Error(Exception):
    """One line that says what is wrong. `code` is the exit status of the program, if it was run."""

    def __init__(self, message: str, code: int = 3) -> None:
        super().__init__(message)
        self.code = code


class Failed(Error):
    """A command ended with the exit status `code`: 1: a part has failed, and the rest is done; 2:
    it was called wrongly; 3: it failed; 4: it was interrupted, and the same call resumes. `report` is what
    it reported nevertheless."""

    def __init__(self, message: str, code: int, report: Dict[str, Any]) -> None:
        super().__init__(message, code)
        self.report = report

    def __reduce__(self) -> Any:  # exceptions of a pool's processes are pickled
        return type(self), (str(self), self.code, self.report)


class RowError(Error, IndexError):
    """A number that no row has."""


class InvalidError(Error, ValueError):
    """Rows or options that the library refuses."""

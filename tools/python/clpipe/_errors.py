"""What goes wrong with a file."""


class Error(Exception):
    """One line that says what is wrong. `code` is the exit status of the program, where it was run."""

    def __init__(self, message: str, code: int = 3) -> None:
        super().__init__(message)
        self.code = code


class RowError(Error, IndexError):
    """A number that no row has."""

"""Datasets of torch over a file. Each worker process opens the file for itself."""

from __future__ import annotations

import io
import os
from typing import Any, Callable, Optional, Sequence

import numpy
import torch.utils.data

from clpipe._reader import File, PathLike, open

Transform = Optional[Callable[[Any], Any]]


class _Rows(torch.utils.data.Dataset):
    def __init__(self, file: PathLike, labels: Optional[str] = None, transform: Transform = None) -> None:
        self.file, self.transform = os.path.abspath(os.fspath(file)), transform
        self._opened: Optional[File] = None
        self._process = 0
        with open(self.file) as f:
            self._length = len(f)
            self.labels: Optional[Any] = None if labels is None else f.label_rows(labels).astype("i8")

    def __len__(self) -> int:
        return self._length

    def __getstate__(self) -> Any:
        return {**self.__dict__, "_opened": None}

    def _file(self) -> File:
        if self._opened is None or self._process != os.getpid():  # HDF5 does not survive a fork
            self._opened, self._process = open(self.file), os.getpid()
        return self._opened

    def _item(self, row: int, value: Any) -> Any:
        value = value if self.transform is None else self.transform(value)
        return value if self.labels is None else (value, int(self.labels[row]))

    def _check(self, row: int) -> int:
        if not -self._length <= row < self._length:
            raise IndexError(f"{self.file} has the rows 0 to {self._length - 1}, not {row}")
        return row % self._length


class FeatureDataset(_Rows):
    """Rows of a feature (None: the preset, joined, else the only one): float32 tensors of D values, or pairs
    of one and its label (-1: none) where `labels` names a clustering. transform: of the tensor."""

    def __init__(self, file: PathLike, name: Optional[str] = None, labels: Optional[str] = None,
                 transform: Transform = None) -> None:
        super().__init__(file, labels, transform)
        self.name = name

    def __getitem__(self, row: int) -> Any:
        return self.__getitems__([row])[0]

    def __getitems__(self, rows: Sequence[int]) -> Any:
        """A batch in one read; torch's loader calls this."""
        wanted = [self._check(row) for row in rows]
        values = torch.from_numpy(numpy.ascontiguousarray(
            self._file().feature(self.name, wanted).astype("f4", copy=False)))
        return [self._item(row, value) for row, value in zip(wanted, values)]


class ThumbnailDataset(_Rows):
    """Thumbnails: uint8 tensors of 3 x height x width, or what `transform` makes of the PIL image; in pairs
    with labels where `labels` names a clustering. Requires Pillow. Images without one are black, 1 x 1."""

    def __getitem__(self, row: int) -> Any:
        from PIL import Image
        row = self._check(row)
        content = self._file().thumbnail(row)
        image = Image.open(io.BytesIO(content)).convert("RGB") if content else Image.new("RGB", (1, 1))
        if self.transform is not None:
            return self._item(row, image)
        return self._item(row, torch.from_numpy(numpy.array(image)).permute(2, 0, 1).contiguous())

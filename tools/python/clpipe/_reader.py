"""A clpipe file, opened for reading."""

from __future__ import annotations

import json
import os
import re
from types import TracebackType
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional, Sequence, Type, Union

import h5py
import numpy
import numpy.typing

from clpipe._errors import Error, RowError

if TYPE_CHECKING:
    import pandas

PathLike = Union[str, "os.PathLike[str]"]
Array = numpy.typing.NDArray[Any]
Rows = Union[slice, int, Sequence[int], Array]

FORMAT = 3
TABLES = ("images", "failures", "labels", "clusters", "features", "neighbours", "runs")


def _unreadable(name: str, error: OSError) -> str:
    """The message of the program for this error."""
    if error.errno and not isinstance(error, BlockingIOError):
        return f"cannot read {name}: {os.strerror(error.errno)}"
    for sign, words in (("unable to lock file", "another program has it open for writing; close it there"),
                        ("h5clear", "a program that had it open for writing did not close it, or still has it "
                                    "open; if none has, h5clear -s makes it readable")):
        if sign in str(error):
            return f"cannot read {name}: {words}"
    return f"cannot read {name}: {error}" if h5py.is_hdf5(name) else f"{name} is not an HDF5 file"


def pandas_library() -> Any:
    """pandas, which is optional."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("data frames require pandas: pip install pandas") from error
    return pandas


def _names(names: Iterable[Any]) -> Any:
    """A column of file names as Python has them: pandas 3 takes no text with bytes that are not UTF-8."""
    return pandas_library().Series(names, dtype=object)


def _texts(dataset: Any) -> List[str]:
    return [os.fsdecode(text) if isinstance(text, bytes) else str(text) for text in dataset[:]]


def _names_of(dataset: Any) -> List[str]:
    """Names, as Python's open takes them: \\xHH in their texts stands for a byte."""
    return [os.fsdecode(re.sub(rb"\\x([0-9a-f]{2})", lambda found: bytes([int(found[1], 16)]), text))
            for text in dataset[:]]


def _attribute(item: Any, name: str) -> Any:
    value = item.attrs[name]
    if isinstance(value, bytes):
        return value.decode()
    return value.item() if isinstance(value, numpy.generic) else value


class File:
    """A file that clpipe wrote, opened for reading. Row i of every array is image i. Close it, or use it in a with
    statement. root: where relative sources are; None: where they were given, or, if they exist only there, the working
    directory."""

    def __init__(self, file: PathLike, root: Optional[PathLike] = None) -> None:
        self.name = os.fspath(file)
        self._root = None if root is None else os.path.abspath(os.fspath(root))
        try:
            self._opened = h5py.File(self.name, "r")
        except FileNotFoundError:
            raise Error(f"there is no file {self.name}", 2) from None
        except OSError as error:
            raise Error(_unreadable(self.name, error)) from error
        version = self._file.attrs.get("clpipe_format")
        wrong = f"{self.name} is an HDF5 file, but not a clpipe file" if version is None else \
            f"{self.name} has format {int(version)}; this package reads format {FORMAT}" \
            if int(version) != FORMAT else self._missing_part()
        if wrong:
            self.close()
            raise Error(wrong)
        self.format = int(version)

    def _missing_part(self) -> Optional[str]:
        """What is wrong with the parts of a merged file: HDF5 would give fill values for their rows."""
        if "parts" in self._file:
            for path, size in zip(_texts(self._file["parts/path"]), self._file["parts/bytes"][:]):
                part = os.path.join(os.path.dirname(self.name), path)
                if not os.path.isfile(part) or os.path.getsize(part) != size:
                    return f"{self.name} was merged from {part}, which is missing or has changed"
        return None

    @property
    def _file(self) -> Any:
        if not self._opened:
            raise Error(f"{self.name} is closed", 2)
        return self._opened

    def __enter__(self) -> "File":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def __len__(self) -> int:
        """The number of images."""
        return int(self._file["images/path"].shape[0]) if "images" in self._file else 0

    def __repr__(self) -> str:
        return f"<clpipe file {self.name!r}>"

    def close(self) -> None:
        self._opened.close()

    @property
    def hdf5(self) -> Any:
        """The open h5py.File, for everything else."""
        return self._file

    @property
    def parameters(self) -> Dict[str, Any]:
        """The options that shaped the content."""
        return dict(json.loads(_attribute(self._file, "parameters")))

    # --- paths ---------------------------------------------------------------------------------

    @property
    def sources(self) -> List[str]:
        """The SOURCE arguments, as given."""
        return _names_of(self._file["images/sources"]) if "images" in self._file else []

    def _locate(self, group: str) -> List[str]:
        """Absolute file names."""
        sources = self.sources
        places: List[str] = []
        here = os.getcwd()
        given = _names_of(self._file["images/directories"]) if "images/directories" in self._file else []
        for source, directory in zip(sources, given or [""] * len(sources)):
            in_list = source.startswith("@") or source == "-"
            name = "" if in_list else source
            root = self._root or directory or here
            if not self._root and not os.path.exists(os.path.join(root, name)) and \
                    (in_list or os.path.exists(os.path.join(here, name))):
                root = here
            places.append(os.path.join(root, name) if name else root)
        files = []
        single = [os.path.isfile(place) for place in places]
        for path, number in zip(_names_of(self._file[group]["path"]), self._file[group]["source"][:]):
            place = places[int(number)]
            files.append(place if single[int(number)] else os.path.join(place, path))
        return files

    def paths(self, absolute: bool = False) -> List[str]:
        """The path of each image, as Python's open takes it; relative to its source, or absolute."""
        if "images" not in self._file:
            return []
        return self._locate("images") if absolute else _names_of(self._file["images/path"])

    # --- tables --------------------------------------------------------------------------------

    def _columns(self, group: str, absolute: bool) -> Dict[str, Any]:
        """path, file if absolute, and source, of /images or /failures."""
        if group not in self._file:
            raise Error(f"{self.name} holds clusters of other data: it has no {group}", 2)
        columns: Dict[str, Any] = {"path": _texts(self._file[group]["path"])}
        if absolute:
            columns["file"] = _names(self._locate(group))
        sources = self.sources
        columns["source"] = [sources[int(i)] for i in self._file[group]["source"][:]]
        return columns

    def _table(self, group: str, absolute: bool) -> "pandas.DataFrame":
        columns, table = self._columns(group, absolute), self._file[group]
        for name in table:
            item = table[name]
            if isinstance(item, h5py.Group) and "end" in item:
                ends, data = [0, *item["end"][:]], item["data"][:].tobytes()
                columns[name] = [data[first:end].decode(errors="surrogateescape")
                                 for first, end in zip(ends, ends[1:])]
            if name in ("path", "source", "sources", "directories", "code") or \
                    not isinstance(item, h5py.Dataset) or item.shape[:1] != table["path"].shape:
                continue
            values = item[:]
            if name == "digest":
                columns[name] = [f"{high:016x}{low:016x}" for high, low in values]
            elif values.dtype.kind == "S":
                columns[name] = [text.rstrip(b"\0").decode() for text in values]
            elif values.ndim == 1:
                columns[name] = values
        if "mtime_ns" in columns:
            columns["mtime"] = pandas_library().to_datetime(columns.pop("mtime_ns"), utc=True)
        return pandas_library().DataFrame(columns)

    def images(self, absolute: bool = False) -> "pandas.DataFrame":
        """A row for each image. absolute: with a column `file`, its absolute path."""
        return self._table("images", absolute)

    def failures(self, absolute: bool = False) -> "pandas.DataFrame":
        """A row for each file that gave no image: reason and message say why."""
        return self._table("failures", absolute)

    def runs(self) -> "pandas.DataFrame":
        """A row for each run that wrote the file, with its command line."""
        runs = self._file.get("runs", {})
        names = sorted((name for name in runs if name.isdigit()), key=int)
        return pandas_library().DataFrame([
            {"run": int(name), **{key: _attribute(runs[name], key) for key in runs[name].attrs}} for name in names])

    # --- features ------------------------------------------------------------------------------

    @property
    def _stored_features(self) -> List[str]:
        return [name for name, item in self._file.get("features", {}).items() if "spec" in item.attrs]

    @property
    def feature_names(self) -> List[str]:
        """Those of clpipe, computed or imported, and "preset", which joins some of them; other programs'
        datasets have no `spec`."""
        stored = self._stored_features
        return [*stored, "preset"] if self.preset and "preset" not in stored else stored

    def _choose(self, kind: str, names: List[str], name: Optional[str]) -> str:
        if name is None and len(names) == 1:
            return names[0]
        if name is not None and name in names:
            return name
        there = f"there are {', '.join(names)}" if names else "there are none"
        raise Error(f"{self.name} holds no {kind} '{name}': {there}" if name is not None else
                    f"name one {kind} of {self.name}: {there}", 2)

    @property
    def preset(self) -> Optional[Dict[str, Any]]:
        """How features are joined if none is named: names, weights, components."""
        return json.loads(_attribute(self._file, "preset")) if "preset" in self._file.attrs else None

    def _read_rows(self, dataset: Any, rows: Optional[Rows]) -> Array:
        """Rows of a dataset, in the order asked for; h5py takes increasing numbers only."""
        masks: Any = numpy.ma
        if masks.is_masked(rows):
            raise RowError("row numbers are masked, and what lies under a mask is no number", 2)
        if rows is None or isinstance(rows, slice) and rows.step in (None, 1):
            return dataset[rows if rows is not None else slice(None)]
        try:
            wanted = numpy.arange(len(dataset))[rows]
        except IndexError as error:
            raise RowError(f"{self.name} has the rows 0 to {len(dataset) - 1}: {error}", 2) from None
        order, place = numpy.unique(wanted, return_inverse=True)
        return dataset[order][place.reshape(wanted.shape)]

    def _joined(self, rows: Optional[Rows]) -> Array:
        """The features of the preset side by side, in rows of length 1."""
        assert self.preset is not None
        parts, total = [], 0.0
        for feature in self.preset["features"]:
            part = self.feature(feature["name"], rows).astype(numpy.float64)
            if _attribute(self._file["features"][feature["name"]], "normalize") == "l1":
                part = numpy.sqrt(part)
            squares = numpy.cumsum(part * part, axis=-1)[..., -1:]
            scale = numpy.divide(feature["weight"], numpy.sqrt(squares), where=squares > 0,
                                 out=numpy.zeros_like(squares))
            parts.append(part * scale)
            total = total + feature["weight"] ** 2 * (squares > 0)
        return (numpy.hstack(parts) / numpy.sqrt(numpy.maximum(total, 1e-300))).astype(numpy.float32)

    def feature(self, name: Optional[str] = None, rows: Optional[Rows] = None) -> Array:
        """A feature (None: the preset, joined, else the only one), N x D: all rows, those of a slice, of
        numbers in any order or of a mask; of one number, D values. float32, whatever they are stored as, or
        uint32 counts."""
        if self.preset and name in (None, "preset") and "preset" not in self._stored_features:
            return self._joined(rows)
        stored = self._file[f"features/{self._choose('feature', self.feature_names, name)}"]
        found = self._read_rows(stored, rows)
        if "zero" in stored.attrs and found.dtype == "u1":
            root = (numpy.arange(256.0) - stored.attrs["zero"]) / stored.attrs["scale"]
            found = (root * abs(root)).astype("f4")[found]
        return found.astype("f4") if found.dtype == "f2" else found

    def features(self, name: Optional[str] = None, absolute: bool = False) -> "pandas.DataFrame":
        """A feature as a data frame: a column for each value, named NAME_0..., indexed by path."""
        library = pandas_library()
        values = self.feature(name)
        name = name or self.feature_names[-1]
        paths = self._locate("images") if absolute else _texts(self._file["images/path"])
        index = library.Index(paths, name="file" if absolute else "path", dtype=object if absolute else None)
        return library.DataFrame(values, index, [f"{name}_{i}" for i in range(values.shape[1])])

    def codes(self) -> Array:
        """The perceptual codes, N x 32 bytes; numpy.unpackbits gives their 256 bits."""
        if "images/code" not in self._file:
            raise Error(f"{self.name} holds no codes: clpipe ingest --add-codes adds them", 2)
        return self._file["images/code"][:]

    @property
    def codebook_names(self) -> List[str]:
        return [name for name, item in self._file.get("codebooks", {}).items()
                if "digest" in item.attrs]

    def codebook(self, name: Optional[str] = None) -> Dict[str, Array]:
        """The arrays of a codebook: word, matrix, offset, mean, ..."""
        chosen = self._choose("codebook", self.codebook_names, name)
        return {key: item[...] for key, item in self._file["codebooks"][chosen].items()}

    def thumbnail(self, row: int) -> bytes:
        """The JPEG file of an image's thumbnail; empty if there is none."""
        if "thumbnails" not in self._file:
            raise Error(f"{self.name} holds no thumbnails: clpipe ingest --thumbnails adds them", 2)
        group = self._file["thumbnails"]
        if not -len(self) <= row < len(self):
            raise RowError(f"{self.name} has the rows 0 to {len(self) - 1}, not {row}", 2)
        row %= len(self)
        start = int(group["end"][row - 1]) if row else 0
        return bytes(group["data"][start:int(group["end"][row])].tobytes())

    # --- clusters ------------------------------------------------------------------------------

    @property
    def clustering_names(self) -> List[str]:
        return [name for name, item in self._file.get("clusters", {}).items() if "k" in item.attrs]

    def _chosen_clustering(self, name: Optional[str]) -> str:
        """That of the name; None: the only one, or the finest of its levels."""
        names = self.clustering_names
        groups = self._file.get("clusters", {})
        above = {_attribute(groups[one], "parent") for one in names if "parent" in groups[one].attrs}
        finest = [one for one in names if one not in above]
        return finest[0] if name is None and len(finest) == 1 else self._choose("clustering", names, name)

    def _clustering(self, name: Optional[str]) -> Any:
        return self._file[f"clusters/{self._chosen_clustering(name)}"]

    def clusterings(self) -> "pandas.DataFrame":
        """A row for each clustering: feature, k, metric, inertia, ..."""
        groups = {name: self._file["clusters"][name] for name in self.clustering_names}
        return pandas_library().DataFrame([
            {"name": name, **{key: _attribute(group, key) for key in group.attrs
                              if key not in ("parameters", "content")}} for name, group in groups.items()])

    def centroids(self, name: Optional[str] = None) -> Array:
        """k x D, in the space of the metric."""
        return self._clustering(name)["centroids"][:]

    def label_rows(self, name: Optional[str] = None) -> Array:
        """The cluster of each image, N numbers of int32; -1: none."""
        return self._clustering(name)["labels"][:]

    def labels(self, name: Optional[str] = None, absolute: bool = False) -> "pandas.DataFrame":
        """A row for each image, with its label (-1: none) and its distance to the centroid: its length
        and its square in the space of the metric. Of data without paths, `row` stands for the path."""
        group = self._clustering(name)
        squared = group["distances"][:].astype(numpy.float64)
        columns = self._columns("images", absolute) if len(self) else {"row": numpy.arange(len(squared))}
        return pandas_library().DataFrame({**columns, "label": group["labels"][:], "distance": numpy.sqrt(squared),
                                           "squared_distance": squared})

    def clusters(self, name: Optional[str] = None, absolute: bool = False) -> "pandas.DataFrame":
        """A row for each cluster, the largest first: size, share of the images, and the three images nearest
        to its centroid (None where there are fewer; numbers of rows of data without paths)."""
        group = self._clustering(name)
        sizes = group["sizes"][:]
        names: List[Any] = []
        if len(self):
            names = self._locate("images") if absolute else _texts(self._file["images/path"])
        columns: Dict[str, Any] = {"cluster": numpy.arange(len(sizes)), "size": sizes,
                                   "share": sizes / max(int(sizes.sum()), 1)}
        for i, rows in enumerate(group["nearest"][:].T, 1):
            nearest = [None if row < 0 else names[row] if names else int(row) for row in rows]
            columns[f"nearest_{i}"] = _names(nearest) if absolute and names else nearest
        frame = pandas_library().DataFrame(columns)
        return frame.sort_values("size", ascending=False, kind="stable", ignore_index=True)

    def words(self, name: Optional[str] = None) -> List[List[Dict[str, Any]]]:
        """For each cluster, by its number, up to three classes or folders that set it apart, the best first:
        {"word": ..., "share": ...}. `clpipe info` computes them."""
        from clpipe import _commands
        chosen = self._chosen_clustering(name)
        found = next(one for one in _commands.info(self.name)["clusters"] if one["name"] == chosen)
        return list(found.get("words", []))

    # --- classes -------------------------------------------------------------------------------

    def class_names(self, feature: str) -> List[str]:
        """The classes of a feature of a network."""
        if f"classes/{feature}" not in self._file:
            raise Error(f"{self.name} holds no classes of '{feature}'", 2)
        return [text.decode() for text in self._file[f"classes/{feature}/name"][:]]

    def class_scores(self, feature: str, rows: Optional[Rows] = None) -> Array:
        """The scores of these classes, N x C, or C of one row."""
        self.class_names(feature)
        layer = self._file[f"classes/{feature}"]
        return self.feature(feature, rows) @ layer["matrix"][:].T.astype("f4") * layer["scale"][:] + layer["offset"][:]

    # --- neighbours ----------------------------------------------------------------------------

    @property
    def neighbour_names(self) -> List[str]:
        """The features whose neighbours are stored (clpipe similar --all)."""
        return [name for name, item in self._file.get("neighbours", {}).items() if "rows" in item]

    def neighbour_rows(self, name: Optional[str] = None) -> Array:
        """The nearest rows of each row, N x n; -1 where there are fewer."""
        chosen = self._choose("neighbours of feature", self.neighbour_names, name)
        return self._file["neighbours"][chosen]["rows"][:]

    def neighbours(self, name: Optional[str] = None, absolute: bool = False) -> "pandas.DataFrame":
        """A row for each image and rank (from 1): row, path, rank, neighbour, neighbour_path, distance
        and squared_distance."""
        chosen = self._choose("neighbours of feature", self.neighbour_names, name)
        group = self._file["neighbours"][chosen]
        rows, squared = group["rows"][:], group["distances"][:].astype(numpy.float64)
        count, depth = rows.shape
        paths = numpy.array(self._locate("images") if absolute else _texts(self._file["images/path"]),
                            dtype=object)
        own = numpy.repeat(numpy.arange(count), depth)
        rank = numpy.tile(numpy.arange(1, depth + 1), count)
        there = rows.ravel() >= 0
        neighbour, length = rows.ravel()[there], squared.ravel()[there]
        return pandas_library().DataFrame(
            {"row": own[there], "path": _names(paths[own[there]]), "rank": rank[there],
             "neighbour": neighbour, "neighbour_path": _names(paths[neighbour]),
             "distance": numpy.sqrt(length), "squared_distance": length})

    # --- Parquet -------------------------------------------------------------------------------

    def table(self, what: str, name: Optional[str] = None, absolute: bool = False) -> "pandas.DataFrame":
        """One of the tables by its name: images, failures, labels, clusters, features, neighbours,
        runs. name: of the clustering or feature."""
        if what not in TABLES:
            raise Error(f"there is no table '{what}': there are {', '.join(TABLES)}", 2)
        given = {"runs": (), "images": (absolute,), "failures": (absolute,)}.get(what, (name, absolute))
        return getattr(self, what)(*given)

    def to_parquet(self, file: PathLike, what: str, name: Optional[str] = None,
                   absolute: bool = False) -> None:
        """Writes a table as Parquet, which appears complete or not at all. Bytes of absolute paths that
        are not UTF-8 are written as \\xHH."""
        frame = self.table(what, name, absolute)
        for column in frame.columns[frame.dtypes == object]:
            frame[column] = [printable(value) for value in frame[column]]
        if frame.index.name == "file":
            frame.index = frame.index.map(printable)
        temporary = f"{os.fspath(file)}.tmp-{os.getpid()}"
        try:
            frame.to_parquet(temporary)
            os.replace(temporary, file)
        finally:
            if os.path.exists(temporary):
                os.unlink(temporary)


def printable(value: Any) -> Any:
    """File names as UTF-8; other values as they are."""
    return os.fsencode(value).decode(errors="backslashreplace") if isinstance(value, str) else value


open = File

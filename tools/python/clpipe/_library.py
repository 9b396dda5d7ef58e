"""libclpipe.so.1 by ctypes: where it is, its structs and errors, and a handle for each choice of devices."""

from __future__ import annotations

import concurrent.futures
import ctypes
import os
import threading
from ctypes import POINTER, c_char, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Callable, Dict, List, Optional, Tuple, Type, Union

import numpy

from clpipe._errors import Error, InvalidError

Device = Union[None, str, int]
METRICS = ("euclidean", "cosine", "hellinger")
ARGUMENT, DATA = 1, 2
TYPES = {numpy.dtype(name): i for i, name in enumerate(("float32", "float16", "float64", "uint8"))}
FUNCTIONS = ("version", "open", "stop", "fit", "predict")
READ = ctypes.CFUNCTYPE(c_int, c_void_p, c_uint64, c_uint64, POINTER(ctypes.c_float))
PROGRESS = ctypes.CFUNCTYPE(c_int, c_void_p, c_char_p, c_uint64, c_uint64)


class _Sized(ctypes.Structure):
    """Begins with its size, and keeps the arrays that it points to."""

    def __init__(self, **members: Any) -> None:
        self.kept = [value for value in members.values() if isinstance(value, numpy.ndarray)]
        super().__init__(size=ctypes.sizeof(self), **{
            name: value.ctypes.data if isinstance(value, numpy.ndarray) else value for name, value in members.items()})


class CError(_Sized):
    _fields_ = [("size", c_size_t), ("status", c_int), ("text", c_char * 1200)]


class COptions(_Sized):
    _fields_ = [("size", c_size_t), ("device", c_char_p), ("threads", c_uint32), ("memory", c_uint64),
                ("device_memory", c_uint64)]


class CWatch(_Sized):
    _fields_ = [("size", c_size_t), ("progress", PROGRESS), ("context", c_void_p)]


class CRows(_Sized):
    _fields_ = [("size", c_size_t), ("rows", c_uint64), ("columns", c_uint32), ("type", c_int),
                ("values", c_void_p), ("row_stride", c_int64), ("column_stride", c_int64), ("read", READ),
                ("context", c_void_p)]


class CKMeans(_Sized):
    _fields_ = [("size", c_size_t), ("k", c_uint32), ("metric", c_int), ("init", c_int), ("initial", c_void_p),
                ("weights", c_void_p), ("seed", c_uint64), ("n_init", c_uint32), ("max_iter", c_uint32),
                ("tol", c_double), ("mini_batch", c_uint32)]


class CFit(_Sized):
    _fields_ = [("size", c_size_t), ("centroids", c_void_p), ("labels", c_void_p), ("distances", c_void_p),
                ("sizes", c_void_p), ("inertia", c_double), ("iterations", c_uint32), ("converged", c_int)]


def on_host(values: Any) -> Any:
    """Tensors of a device as arrays of the host, by their own library, which waits for what computes them."""
    if hasattr(values, "detach") and hasattr(values, "cpu"):  # torch
        values = values.detach().cpu()
        return values.float() if str(values.dtype) == "torch.bfloat16" else values
    if hasattr(values, "__cuda_array_interface__") and hasattr(values, "get"):  # CuPy
        return values.get()
    return values


def rows_of(values: "numpy.ndarray[Any, Any]") -> CRows:
    """N x D values where they are; those that the library cannot read there (of other types, not aligned,
    repeated by strides of 0) as a copy in float32."""
    kind = TYPES.get(values.dtype)
    strides = [stride if length > 1 else 0 for stride, length in zip(values.strides, values.shape)]
    repeated = any(stride == 0 for stride, length in zip(strides, values.shape) if length > 1)
    if kind is None or repeated or not values.flags.aligned:
        return rows_of(numpy.array(values, "float32", order="C"))
    if values.flags.c_contiguous:
        strides = [0, 0]
    return CRows(rows=values.shape[0], columns=values.shape[1], type=kind, values=values, row_stride=strides[0],
                 column_stride=strides[1])


# --- the library --------------------------------------------------------------------------------

_lock = threading.Lock()
_handles: Dict[Device, Tuple[Any, c_void_p, threading.Lock]] = {}


def _forget() -> None:
    """In a forked child, where the library refuses to work, nobody holds a lock."""
    global _lock
    _lock = threading.Lock()
    _handles.clear()


os.register_at_fork(after_in_child=_forget)


def _load() -> Any:
    """$CLPIPE_LIBRARY, else that of the wheel, else that of the checkout, else the system's."""
    here = os.path.dirname(os.path.abspath(__file__))
    places = [os.path.join(here, "lib"), os.path.join(here, *[os.pardir] * 3, "build", "release")]
    names = [os.path.join(place, "libclpipe.so.1") for place in places]
    name = os.environ.get("CLPIPE_LIBRARY") or next((n for n in names if os.path.exists(n)), "libclpipe.so.1")
    try:
        library = ctypes.CDLL(name)
        library.clpipe_version.restype = c_char_p
        missing = next((f for f in FUNCTIONS if not hasattr(library, f"clpipe_{f}")), None)
    except (OSError, AttributeError) as error:
        raise Error(f"the library {name} cannot be loaded, which scons builds and the environment variable "
                    f"CLPIPE_LIBRARY can name: {error}") from error
    if missing:
        raise Error(f"the library {name} of clpipe {library.clpipe_version().decode()} has no clpipe_{missing}: "
                    "it is older than this package")
    return library


def _check(code: int, error: CError) -> None:
    if code:
        kind: Type[Error] = InvalidError if code in (ARGUMENT, DATA) else Error
        raise kind(error.text.decode(errors="replace"), 2 if code == ARGUMENT else 3)


def _opened(device: Device) -> Tuple[Any, c_void_p, threading.Lock]:
    with _lock:
        if device not in _handles:
            library, handle, error = _load(), c_void_p(), CError()
            options = COptions(device=None if device is None else str(device).encode())
            _check(library.clpipe_open(ctypes.byref(handle), ctypes.byref(options), ctypes.byref(error)), error)
            _handles[device] = (library, handle, threading.Lock())
        return _handles[device]


def call(name: str, device: Device, out: List[Any], given: List[Any],
         progress: Optional[Callable[[str, int, int], None]] = None) -> None:
    """Calls clpipe_NAME with the handle of a device: outputs, the handle, what is given. Calls for one device run
    one after another. Ctrl-C and what handlers of other signals raise end it: they run in Python's main thread,
    so the library gets another."""
    library, handle, lock = _opened(device)
    error = CError()

    def tell(context: Any, phase: bytes, done: int, total: int) -> int:
        if progress is not None:
            progress(phase.decode(), done, total)
        return 0

    watch = CWatch(progress=PROGRESS(tell)) if progress is not None else None
    arguments = [value.ctypes.data_as(c_void_p) if isinstance(value, numpy.ndarray) else
                 ctypes.byref(value) if isinstance(value, _Sized) else value for value in [*out, handle, *given]]
    arguments += [ctypes.byref(watch) if watch else None, ctypes.byref(error)]

    def run() -> int:
        return int(getattr(library, f"clpipe_{name}")(*arguments))

    with lock:
        if threading.current_thread() is not threading.main_thread():
            return _check(run(), error)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            running = pool.submit(run)
            try:
                code = running.result()
            except BaseException:
                while not running.done():
                    library.clpipe_stop(handle)
                    concurrent.futures.wait([running], 0.01)
                raise
    _check(code, error)

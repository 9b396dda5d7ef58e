"""libclpipe.so.1 by ctypes: where it is, its structs and errors, a handle for each choice of devices, and
features of pictures."""

from __future__ import annotations

import concurrent.futures
import ctypes
import logging
import os
import threading
from ctypes import POINTER, c_char, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy

from clpipe._errors import Error, InvalidError

Device = Union[None, str, int]
ARGUMENT, DATA = 1, 2
TYPES = {numpy.dtype(name): i for i, name in enumerate(("float32", "float16", "float64", "uint8"))}
log = logging.getLogger("clpipe")


class _Sized(ctypes.Structure):
    """A struct of clpipe.h, which begins with its size. Keeps the arrays that it points to."""

    def __init__(self, **members: Any) -> None:
        self.kept = [value for value in members.values() if isinstance(value, numpy.ndarray)]
        super().__init__(size=ctypes.sizeof(self), **{
            name: value.ctypes.data if isinstance(value, numpy.ndarray) else value for name, value in members.items()})


def _struct(name: str, **members: Any) -> Any:
    return type(name, (_Sized,), {"_fields_": [("size", c_size_t), *members.items()]})


CError = _struct("CError", status=c_int, text=c_char * 1200)
COptions = _struct("COptions", device=c_char_p, threads=c_uint32, memory=c_uint64, device_memory=c_uint64)
CRows = _struct("CRows", rows=c_uint64, columns=c_uint32, type=c_int, values=c_void_p, row_stride=c_int64,
                column_stride=c_int64, read=c_void_p, context=c_void_p)
CKMeans = _struct("CKMeans", k=c_uint32, metric=c_int, init=c_int, initial=c_void_p, weights=c_void_p, seed=c_uint64,
                  n_init=c_uint32, max_iter=c_uint32, tol=c_double, mini_batch=c_uint32)
CFit = _struct("CFit", centroids=c_void_p, labels=c_void_p, distances=c_void_p, sizes=c_void_p, inertia=c_double,
               iterations=c_uint32, converged=c_int)
CFeatures = _struct("CFeatures", specs=POINTER(c_char_p), count=c_uint32, preset=c_char_p)
CPicture = _struct("CPicture", path=c_char_p, bytes=c_void_p, length=c_uint64, pixels=c_void_p, width=c_uint32,
                   height=c_uint32, channels=c_uint32, row_stride=c_int64, column_stride=c_int64,
                   channel_stride=c_int64, status=c_int, reason=c_char * 24, message=c_char * 200)


def on_host(values: Any) -> Any:
    """Tensors of a device are brought to the host by their own library, after the work that computes them."""
    if hasattr(values, "detach") and hasattr(values, "cpu"):  # torch; numpy has no bfloat16
        values = values.detach().cpu()
        return values.float() if str(values.dtype) == "torch.bfloat16" else values
    return values.get() if hasattr(values, "__cuda_array_interface__") and hasattr(values, "get") else values  # CuPy


def rows_of(values: "numpy.ndarray[Any, Any]") -> Any:
    """N x D values where they are; a copy in float32 of those that the library cannot read there: of other
    types, not aligned, repeated by strides of 0."""
    long = [stride if length > 1 else None for stride, length in zip(values.strides, values.shape)]
    if values.dtype not in TYPES or 0 in long or not values.flags.aligned:
        return rows_of(numpy.array(values, "float32", order="C"))
    return CRows(rows=values.shape[0], columns=values.shape[1], type=TYPES[values.dtype], values=values,
                 row_stride=long[0] or 0, column_stride=long[1] or 0)


# --- the library --------------------------------------------------------------------------------

_lock = threading.RLock()
_handles: Dict[Tuple[int, Device], Tuple[Any, c_void_p, threading.Lock]] = {}  # by process
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


def _load() -> Any:
    """$CLPIPE_LIBRARY, else the wheel's library, else the checkout's, else the system's."""
    here = os.path.dirname(os.path.abspath(__file__))
    root = os.path.dirname(os.path.dirname(os.path.dirname(here)))
    names = [os.path.join(here, "lib", "libclpipe.so.1"), os.path.join(root, "build", "release", "libclpipe.so.1")]
    name = os.environ.get("CLPIPE_LIBRARY") or next((n for n in names if os.path.exists(n)), "libclpipe.so.1")
    try:
        library = ctypes.CDLL(name)
        library.clpipe_features  # the newest of its functions
    except (OSError, AttributeError) as error:
        raise Error(f"the library {name}, which CLPIPE_LIBRARY can name, cannot be used: {error}") from error
    return library


def _check(code: int, error: Any) -> None:
    if code:
        raise (InvalidError if code in (ARGUMENT, DATA) else Error)(
            error.text.decode(errors="replace"), 2 if code == ARGUMENT else 3)


def _opened(device: Device) -> Tuple[Any, c_void_p, threading.Lock]:
    key = os.getpid(), device
    with _lock:
        if key not in _handles:
            library, handle, error = _load(), c_void_p(), CError()
            options = COptions(device=None if device is None else str(device).encode())
            _check(library.clpipe_open(ctypes.byref(handle), ctypes.byref(options), ctypes.byref(error)), error)
            _handles[key] = (library, handle, threading.Lock())
        return _handles[key]


def call(name: str, device: Device, out: List[Any], given: List[Any]) -> None:
    """Calls clpipe_NAME with outputs, the handle of a device, and the given arguments. Calls for one device run one
    after another, each in a thread: Python handles signals in its main thread while that waits, so that Ctrl-C, and
    what a handler raises, stops the call."""
    library, handle, lock = _opened(device)
    error = CError()
    arguments = [value.ctypes.data_as(c_void_p) if isinstance(value, numpy.ndarray) else
                 ctypes.byref(value) if isinstance(value, _Sized) else value
                 for value in [*out, handle, *given, None, error]]
    with lock, concurrent.futures.ThreadPoolExecutor(1) as pool:
        running = pool.submit(getattr(library, f"clpipe_{name}"), *arguments)
        try:
            code = running.result()
        except BaseException:
            while not running.done():
                library.clpipe_stop(handle)
                concurrent.futures.wait([running], 0.01)
            raise
    _check(code, error)


# --- features -----------------------------------------------------------------------------------

def _picture(given: Any) -> Any:
    if isinstance(given, (str, os.PathLike)):
        return CPicture(path=os.fsencode(given))
    if isinstance(given, (bytes, bytearray, memoryview)):
        content = numpy.frombuffer(given, numpy.uint8)
        return CPicture(bytes=content, length=content.size)
    pixels = numpy.asarray(on_host(given))
    if pixels.dtype != numpy.uint8 or pixels.ndim not in (2, 3):
        raise InvalidError(f"a picture has the type {pixels.dtype} and the shape {pixels.shape}; it must be height x "
                           "width or height x width x 3 of uint8", 2)
    if 0 in pixels.strides:
        pixels = numpy.array(pixels, order="C")
    height, width, channels = (*pixels.shape, 1)[:3]
    rows, columns, planes = (*pixels.strides, 0)[:3]
    return CPicture(pixels=pixels, height=height, width=width, channels=channels, row_stride=rows,
                    column_stride=columns, channel_stride=planes)


def features(pictures: Sequence[Any], feature: Union[None, str, Sequence[str]] = None, *,
             preset: Optional[str] = None, device: Device = None) -> "numpy.ndarray[Any, Any]":
    """Features of pictures, N x D float32, the values that ingest stores: of paths, of the bytes of encoded images
    and of pixels (height x width, or height x width x 3 for RGB, uint8), also mixed. feature: "hog:grid=4x4", or
    several, side by side; preset: instead. Rows of pictures that cannot be read are NaN, and the logger "clpipe"
    says why.

    >>> clpipe.features([numpy.zeros((40, 30, 3), "u1")], "rgb:bins=2x2x2").round(1)
    array([[1., 0., 0., 0., 0., 0., 0., 0.]], dtype=float32)
    """
    if isinstance(pictures, (str, bytes, os.PathLike)):
        raise TypeError("pictures is one picture; it must be a list")
    structs = [_picture(one) for one in pictures]
    names = [feature] if isinstance(feature, str) else feature or []
    wanted = CFeatures(specs=(c_char_p * len(names))(*(name.encode() for name in names)), count=len(names),
                       preset=preset.encode() if preset else None)
    array, columns = (CPicture * len(structs))(*structs), c_uint32()
    call("features", device, [None, ctypes.byref(columns)], [array, c_uint64(len(array)), wanted])
    values = numpy.empty((len(array), columns.value), numpy.float32)
    call("features", device, [values, ctypes.byref(columns)], [array, c_uint64(len(array)), wanted])
    for number, (one, given) in enumerate(zip(array, pictures)):
        if one.status:
            name = given if isinstance(given, (str, os.PathLike)) else f"picture {number}"
            log.warning("%s has no features: %s", name, one.message.decode(errors="replace"))
    return values

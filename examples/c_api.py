"""Calls the installed libkith through its C API with ctypes alone: an index, a filtered search, an error.

    python examples/c_api.py PREFIX/lib/libkith.so
"""

import ctypes as c
import sys
from array import array


class Struct(c.Structure):
    """Its size comes first, and everything that is not given is 0: the default."""

    def __init__(self, **fields: object) -> None:
        super().__init__(struct_size=c.sizeof(self), **fields)


class Matrix(Struct):
    _fields_ = [("struct_size", c.c_size_t), ("data", c.c_void_p), ("rows", c.c_int64), ("cols", c.c_int64),
                ("row_stride", c.c_int64), ("dtype", c.c_int32), ("space", c.c_int32), ("cuda_index", c.c_int32),
                ("reserved", c.c_int32)]


class Neighbors(Struct):
    _fields_ = [("struct_size", c.c_size_t), ("ids", c.POINTER(c.c_int64)), ("distances", c.POINTER(c.c_float)),
                ("queries", c.c_int64), ("k", c.c_int64), ("space", c.c_int32), ("cuda_index", c.c_int32)]


class Filter(Struct):
    _fields_ = [("struct_size", c.c_size_t), ("data", c.c_void_p), ("size", c.c_int64), ("form", c.c_int32),
                ("reserved", c.c_int32)]


class SearchParams(Struct):
    _fields_ = [("struct_size", c.c_size_t), ("filter", c.POINTER(Filter)), ("probes", c.c_int64),
                ("refine", c.c_int64), ("beam", c.c_int64), ("width", c.c_int64), ("recall", c.c_double),
                ("filter_strict", c.c_int32), ("reserved", c.c_int32)]


kith = c.CDLL(sys.argv[1])
kith.kith_version.restype = kith.kith_last_message.restype = c.c_char_p


def check(status: int) -> None:
    if status != 0:
        raise RuntimeError(kith.kith_last_message().decode())


rows = array("f", [float(7919 * i % 1009) for i in range(1000 * 16)])
address, _ = rows.buffer_info()
base, queries = Matrix(data=address, rows=1000, cols=16), Matrix(data=address, rows=3, cols=16)
index = c.c_void_p()
check(kith.kith_index_new(b"Flat", None, c.byref(index)))
check(kith.kith_index_add(index, c.byref(base), None, c.c_int64(0), None))

ids, distances = (c.c_int64 * 15)(), (c.c_float * 15)()
out = Neighbors(ids=ids, distances=distances, queries=3, k=5)
check(kith.kith_index_search(index, c.byref(queries), None, c.byref(out), None))
assert ids[0] == 0 and ids[5] == 1 and distances[10] == 0
allowed = (c.c_int64 * 2)(7, 9)
kept = SearchParams(filter=c.pointer(Filter(data=c.addressof(allowed), size=2, form=3)))
check(kith.kith_index_search(index, c.byref(queries), c.byref(kept), c.byref(out), None))
assert sorted(ids[:3]) == [-1, 7, 9]
kith.kith_index_free(index)
try:
    check(kith.kith_index_new(b"Round", None, c.byref(index)))
except RuntimeError as error:
    print(f"kith {kith.kith_version().decode()} works by ctypes; an error reads: {error}")

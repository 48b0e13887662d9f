"""Reads and writes Kith's formats with numpy alone, so that the tests do not trust the code they test."""

import gzip

import numpy as np

# uint16 stands for the bits of bf16, which numpy lacks.
DTYPES = {
    ".fbin": np.float32,
    ".f16bin": np.float16,
    ".bf16bin": np.uint16,
    ".u8bin": np.uint8,
    ".i8bin": np.int8,
    ".ibin": np.int32,
    ".fvecs": np.float32,
    ".bvecs": np.uint8,
    ".ivecs": np.int32,
}


def write_matrix(path, matrix):
    """A file of the bin and vecs formats or .npy, by the path's ending. Returns the path."""
    if path.suffix == ".npy":
        np.save(path, matrix)
        return path
    matrix = np.ascontiguousarray(matrix, dtype=DTYPES[path.suffix])
    if path.suffix.endswith("vecs"):
        length = np.int32(matrix.shape[1]).tobytes()
        path.write_bytes(b"".join(length + row.tobytes() for row in matrix))
        return path
    with open(path, "wb") as file:
        np.array(matrix.shape, dtype=np.uint32).tofile(file)
        matrix.tofile(file)
    return path


def read_matrix(path):
    if path.suffix == ".npy":
        return np.load(path)
    if path.suffix.endswith("vecs"):
        content = path.read_bytes()
        cols = int(np.frombuffer(content, np.int32, 1)[0])
        dtype = np.dtype(DTYPES[path.suffix])
        rows = np.frombuffer(content, np.uint8).reshape(-1, 4 + cols * dtype.itemsize)
        assert (rows[:, :4].copy().view(np.int32) == cols).all()
        return rows[:, 4:].copy().view(dtype)
    with open(path, "rb") as file:
        rows, cols = np.fromfile(file, dtype=np.uint32, count=2)
        return np.fromfile(file, dtype=DTYPES[path.suffix]).reshape(rows, cols)


def write_images(path, matrix, pack=gzip.compress):
    """An IDX file of images one pixel high, compressed unless `pack` is something else. Returns the path."""
    rows, cols = matrix.shape
    path.write_bytes(pack(bytes([0, 0, 8, 3]) + np.array([rows, 1, cols], ">u4").tobytes() + matrix.tobytes()))
    return path


def nearest(queries, base, k, metric):
    """Ids and distances by brute force in float64; what is equal in float32 goes to the smaller row."""
    q, x = queries.astype(np.float64), base.astype(np.float64)
    if metric in ("l2", "sqeuclidean"):
        key = ((q[:, None, :] - x[None, :, :]) ** 2).sum(axis=2)
    elif metric == "inner_product":
        key = -(q @ x.T)
    else:
        key = 1 - (q @ x.T) / (np.linalg.norm(q, axis=1)[:, None] * np.linalg.norm(x, axis=1)[None, :])
    if metric == "l2":
        key = np.sqrt(key)
    ids = np.argsort(key.astype(np.float32), axis=1, kind="stable")[:, :k]
    key = np.take_along_axis(key, ids, axis=1)
    return ids, -key if metric == "inner_product" else key


def leftovers(folder, *known):
    """Names in a folder beside the known ones, temporary files included."""
    return sorted(path.name for path in folder.iterdir() if path not in known)

"""Collections on a GPU answer with the bytes of the CPU."""

from __future__ import annotations

import numpy as np
import pytest

import kith
from kith import _kith

pytestmark = [
    pytest.mark.skipif(not _kith.has_collections, reason="built without SQLite"),
    pytest.mark.skipif(not kith.info()["cuda_devices"], reason="no CUDA device, or a build without CUDA"),
]

ROWS, COLUMNS, TENANTS = 70_000, 12, 50


@pytest.fixture(scope="module", params=["Flat", "IVF64,SQ8", "Graph32"])
def opened(request, tmp_path_factory):
    """A collection with an indexed segment, one without an index, newest rows, and removed ones; and queries."""
    random = np.random.default_rng(3)
    path = tmp_path_factory.mktemp("gpu") / "c"
    with kith.open(path, COLUMNS, columns={"tenant": int}, index=request.param) as c:
        for rows in (ROWS, 3000, 200):
            c.add(random.standard_normal((rows, COLUMNS), dtype=np.float32), columns={"tenant": np.arange(rows) % TENANTS})
            if rows == ROWS:
                c.compact()
            elif rows > 1000:
                c.fold()
        c.create_index("tenant")
        c.remove(where="tenant = 7")
        yield c, random.standard_normal((40, COLUMNS), dtype=np.float32)


@pytest.mark.parametrize(
    "call",
    [
        {},
        {"where": "tenant < ?", "params": (20,)},
        {"where": "tenant = ?", "params": (3,)},
        {"where": "tenant = ?", "params": [(i % (TENANTS + 3),) for i in range(40)]},
        {"ids": list(range(0, 60_000, 7))},
        {"memory_limit": "512M"},
    ],
    ids=lambda call: next(iter(call), "all") + str(len(call)),
)
def test_searches(opened, call):
    c, queries = opened
    for several in (queries, queries[:1]):
        if isinstance(call.get("params"), list) and len(several) == 1:
            continue
        on_cpu, on_gpu = (c.search(several, k=12, device=device, **call) for device in ("cpu", "cuda"))
        assert (on_cpu.ids == on_gpu.ids).all() and (on_cpu.distances == on_gpu.distances).all()
        near = [c.range_search(several, 1.6, device=device, **call) for device in ("cpu", "cuda")]
        assert all((a == b).all() for a, b in zip(*near))


def test_queries_on_the_gpu(opened):
    torch = pytest.importorskip("torch")
    c, queries = opened
    found = c.search(torch.from_numpy(queries).cuda(), k=5)
    true = c.search(queries, k=5, device="cpu")
    assert (found.ids.cpu().numpy() == true.ids).all() and (found.distances.cpu().numpy() == true.distances).all()


def test_an_index_built_on_the_gpu(tmp_path, opened):
    c, queries = opened
    c.snapshot(tmp_path / "copy")
    with kith.open(tmp_path / "copy") as copy:
        copy.compact(device="cuda")
        again = copy.search(queries, k=5, device="cpu")
        assert (copy.search(queries, k=5, device="cuda").ids == again.ids).all()

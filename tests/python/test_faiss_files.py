"""FAISS's files and Kith, with FAISS itself as the judge. Skipped where faiss cannot be imported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import kith

faiss = pytest.importorskip("faiss")

GOLDEN = Path(__file__).parents[1] / "golden" / "faiss"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.faiss"))
OF_BYTES = {"ivf_direct", "sq8_direct", "sq8_direct_signed"}
ROUNDED_BY_FAISS = {"ivf_pq_fast", "ivf_pq_fast_plain", "pq_fast", "pq_fast_odd", "rq_norm_4_bits"}
ROUNDED_BY_FAISS |= {"ivf_rq_norm", "ivf_lsq_norm_levels"}
ROUNDED_BY_FAISS |= {"rabitq", "ivf_rabitq", "rr_rabitq", "refine_rabitq"}
"""FAISS's fast scans, its RaBitQ (queries of 4 bits), and norms that Kith has otherwise or not at all, round its
distances, and so their order."""


def queries() -> np.ndarray:
    return np.random.default_rng(3).standard_normal((20, 8), dtype=np.float32)


def assert_same_neighbours(ids: np.ndarray, distances: np.ndarray, other_ids: np.ndarray, other: np.ndarray) -> None:
    """Save among distances that are equal within rounding."""
    np.testing.assert_allclose(distances, other, rtol=1e-4, atol=1e-4)
    differ = ids != other_ids
    assert differ.mean() < 0.02, "more than ties"


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ROUNDED_BY_FAISS])
def test_kith_finds_what_faiss_finds(name: str) -> None:
    theirs = faiss.read_index(str(GOLDEN / f"{name}.faiss"))
    ours = kith.read_faiss(GOLDEN / f"{name}.faiss")
    assert len(ours) == theirs.ntotal
    if theirs.ntotal == 0 or "hnsw" in name or "nsg" in name:  # HNSW chooses lists roughly
        return
    k = min(5, theirs.ntotal)
    probes = None
    if "refine" in name and ours.info().lists > 1:  # Kith looks into more lists where these hold too few candidates
        probes = ours.info().lists
        faiss.extract_index_ivf(theirs).nprobe = probes
    other, other_ids = theirs.search(queries(), k)
    found = ours.search(queries(), k=k, probes=probes)
    missing = other_ids < 0  # Kith looks into more lists where these hold fewer than k
    assert_same_neighbours(
        np.where(missing, -1, found.ids), np.where(missing, other, found.distances), other_ids, other
    )


@pytest.mark.parametrize("name", [name for name in NAMES if name not in OF_BYTES])
def test_faiss_reads_what_kith_writes(name: str, tmp_path: Path) -> None:
    first = faiss.read_index(str(GOLDEN / f"{name}.faiss"))
    kith.write_faiss(kith.read_faiss(GOLDEN / f"{name}.faiss"), tmp_path / "again.faiss")
    again = faiss.read_index(str(tmp_path / "again.faiss"))
    assert again.ntotal == first.ntotal
    assert again.d == first.d
    if first.ntotal == 0 or name in ROUNDED_BY_FAISS or "hnsw" in name or "nsg" in name:
        return
    a, a_ids = first.search(queries(), 5)
    b, b_ids = again.search(queries(), 5)
    np.testing.assert_array_equal(a_ids, b_ids)
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", sorted(OF_BYTES))
def test_bytes_are_refused_with_a_reason(name: str, tmp_path: Path) -> None:
    with pytest.raises(NotImplementedError, match="vectors as they are"):
        kith.write_faiss(kith.read_faiss(GOLDEN / f"{name}.faiss"), tmp_path / "x.faiss")

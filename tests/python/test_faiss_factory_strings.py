"""FAISS's factory strings, 95 of them: each makes an index, or is answered by one sentence with Kith's nearest string."""

from __future__ import annotations

import re

import pytest

import kith

# What is taken as it stands: the same parts, or names that say how FAISS scans or finds centres and are read over.
TAKEN = """
Flat  IDMap,Flat  IDMap2,Flat  Flat,RFlat  SQ8  SQ6  SQ4  SQfp16  SQbf16  PQ16  PQ8  PQ16x8  PQ16x4  PQ16x4fs  PQ16x4fsr  PQ16np
PQ4x6  IVF64,Flat  IVF64,SQ8  IVF64,SQ4  IVF64,SQfp16  IVF64,PQ16  IVF64,PQ16x4  IVF64,PQ16x4fs  IVF64,PQ16x4fsr
IVF64,PQ16x4fsr,RFlat  IVF64,PQ16,RFlat  IVF64,PQ16,Refine(SQ8)  IVF64,Flat,RFlat  IVF1024_HNSW32,Flat  IVF1024_HNSW32,PQ16
IVF1024_HNSW,SQ8  OPQ16,PQ16  OPQ16_64,PQ16  OPQ16,IVF64,PQ16  OPQ16_64,IVF64,PQ16x4fsr  PCA32,Flat  PCAR32,Flat  PCA32,IVF64,SQ8
PCAR32,IVF64,PQ8  PCA64,PQ16  RR64,PQ16  L2norm,Flat  L2norm,IVF64,Flat  Pad96,PQ16  RaBitQ  IVF64,RaBitQ  LSQ8x8  LSQ8x8_Nfloat
RQ8x8  RQ8x8_Nqint8  IVF64,RQ8x8_Ncqint8
""".split()

# What Kith does not build, and the string that its answer names.
ANSWERED = {
    "SQ8_direct": "Flat", "SQ8_direct_signed": "Flat", "IVF64,SQ8_direct": "Flat", "PQ16x4fs_64": "PQ16x4", "IVF64,PQ16+8": "PQ16,Refine(PQ8)",
    "IVF64,FlatDedup": "Flat", "IVF1024_NSG32,Flat": "IVF1024", "IVF64(PQ8),Flat": "IVF64", "IVF64(Flat),PQ16": "IVF64",
    "IVF64(HNSW32),SQ8": "IVF64", "IMI2x6,PQ16": "IVF4096", "IMI2x8,Flat": "IVF65536", "RCQ1x6,SQ8": "IVF64", "Residual2x6,Flat": "RQ8x8",
    "PCAW32,Flat": "PCA32", "PCAWR32,Flat": "PCAR32", "ITQ32,LSH": "RaBitQ", "ITQ,LSH": "RaBitQ", "LSH": "RaBitQ", "LSHr": "RaBitQ",
    "LSHrt": "RaBitQ", "HNSW32": "Graph64", "HNSW32_SQ8": "Graph64", "HNSW32,Flat": "Graph64", "HNSW32,SQ8": "Graph64",
    "HNSW32,PQ16": "Graph64", "HNSW16_PQ8": "Graph32", "HNSW": "Graph64", "NSG32": "Graph32", "NSG32,Flat": "Graph32", "NSG,PQ16": "Graph32",
    "RaBitQfs": "RaBitQ", "IVF64,RaBitQ4": "RaBitQ", "RQ5x6x8": "RQ5x6", "PRQ2x4x8": "RQ8x8", "PLSQ2x4x4": "LSQ8x8", "IVF64,RQ4x4fs": "RQ4x4",
    "LSQ4x4fsr": "LSQ4x4", "ZnLattice3x10_6": "PQ16", "IVF64,ITQ32,LSH": "RaBitQ",
}  # fmt: skip
TOO_WIDE = ["PQ8x10", "PQ8x12", "IVF64,PQ16x12"]


def test_there_are_95() -> None:
    assert len(TAKEN) + len(ANSWERED) + len(TOO_WIDE) == 95


@pytest.mark.parametrize("string", TAKEN)
def test_taken(string: str) -> None:
    assert kith.Index(string).factory == string
    assert kith.Index(string.replace(",", " , ")).factory == string


@pytest.mark.parametrize("string, near", ANSWERED.items())
def test_answered_with_a_string_that_works(string: str, near: str) -> None:
    with pytest.raises(ValueError, match="Kith has no part") as refused:
        kith.Index(string)
    assert re.search(rf"\b{re.escape(near)}(?!\w)", str(refused.value)), refused.value
    assert "known are" not in str(refused.value)
    kith.Index(f"{near},Flat" if near.startswith(("IVF", "PCA")) else near)


@pytest.mark.parametrize("string", TOO_WIDE)
def test_codes_of_more_bits(string: str) -> None:
    with pytest.raises(ValueError, match="codes have 4 to 8"):
        kith.Index(string)

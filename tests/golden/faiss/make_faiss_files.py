"""Makes the FAISS files of this folder, and what they hold, as FAISS itself says it. Run once, with faiss-cpu 1.15:

    python make_faiss_files.py

NAME.faiss     the index, by faiss.write_index
NAME.rows.npy  its vectors as it reconstructs them, behind its transforms, by ascending id of the index that keeps them
NAME.ids.npy   the ids of these vectors, as a search gives them
NAME.in.npy    for indexes with transforms: some vectors,
NAME.out.npy   and the same transformed
NAME.queries.npy, NAME.distances.npy  for RaBitQ: queries, and their distances from all vectors by ascending id
"""

from __future__ import annotations

from pathlib import Path

import faiss
import numpy as np

FOLDER = Path(__file__).parent
COLS = 8
random = np.random.default_rng(15)
training = random.standard_normal((2000, COLS), dtype=np.float32)
vectors = random.standard_normal((70, COLS), dtype=np.float32)


def inner(index: faiss.Index) -> tuple[faiss.Index, np.ndarray | None]:
    """The index that keeps vectors, and the ids that one around it gives them."""
    ids = None
    while True:
        index = faiss.downcast_index(index)
        if isinstance(index, (faiss.IndexIDMap, faiss.IndexIDMap2)):
            ids = faiss.vector_to_array(index.id_map).copy()
            index = index.index
        elif isinstance(index, faiss.IndexRefine):
            index = index.base_index
        elif isinstance(index, faiss.IndexPreTransform):
            index = index.index
        else:
            return index, ids


def transformed(index: faiss.Index, rows: np.ndarray) -> np.ndarray | None:
    index = faiss.downcast_index(index)
    while isinstance(index, (faiss.IndexIDMap, faiss.IndexRefine)):
        index = faiss.downcast_index(index.index if isinstance(index, faiss.IndexIDMap) else index.base_index)
    if not isinstance(index, faiss.IndexPreTransform):
        return None
    for i in range(index.chain.size()):
        rows = index.chain.at(i).apply(rows)
    return rows


def save(name: str, index: faiss.Index) -> None:
    faiss.write_index(index, str(FOLDER / f"{name}.faiss"))
    keeper, outer_ids = inner(index)
    if isinstance(keeper, faiss.IndexIVF):
        lists = [
            faiss.rev_swig_ptr(keeper.invlists.get_ids(i), keeper.invlists.list_size(i)).copy()
            for i in range(keeper.nlist)
            if keeper.invlists.list_size(i) > 0
        ]
        ids = np.sort(np.concatenate([np.empty(0, np.int64), *lists]))
        keeper.set_direct_map_type(faiss.DirectMap.Hashtable)
        rows = np.array([keeper.reconstruct(int(i)) for i in ids], np.float32).reshape(-1, keeper.d)
    elif isinstance(keeper, faiss.IndexPQFastScan):  # its reconstruct is wrong where blocks have more than 32 vectors
        ids = np.arange(keeper.ntotal)
        rows = keeper.pq.decode(keeper.pq.compute_codes(vectors))
    else:
        ids = np.arange(keeper.ntotal)
        rows = keeper.reconstruct_n(0, keeper.ntotal)
    if outer_ids is not None:
        ids = outer_ids[ids]
    np.save(FOLDER / f"{name}.rows.npy", rows)
    np.save(FOLDER / f"{name}.ids.npy", ids)
    some = vectors[:5]
    after = transformed(index, some)
    if after is not None:
        np.save(FOLDER / f"{name}.in.npy", some)
        np.save(FOLDER / f"{name}.out.npy", after)


def make(name: str, index: faiss.Index | str, rows=vectors, ids=None, metric=faiss.METRIC_L2, before=None, change=None):
    if isinstance(index, str):
        index = faiss.index_factory(COLS, index, metric)
    if before is not None:
        before(index)
    index.train(np.abs(training) * 50 if "direct" in name else training)
    if ids is None:
        index.add(rows)
    else:
        index.add_with_ids(rows, np.asarray(ids))
    if change is not None:
        change(index)
    save(name, index)


own_ids = (np.arange(len(vectors)) * 37 + 1000) % 5003
whole = np.floor(np.abs(vectors) * 50).clip(0, 127)

make("flat_l2", "Flat")
make("flat_ip", "Flat", metric=faiss.METRIC_INNER_PRODUCT)
make("flat_l1", "Flat", metric=faiss.METRIC_L1)
make("flat_linf", "Flat", metric=faiss.METRIC_Linf)
make("flat_none", "Flat", rows=vectors[:0])
make("pq8", "PQ2")
make("pq6", "PQ4x6")
make("pq4_odd", faiss.IndexPQ(COLS, 1, 4))
make("pq_fast", faiss.IndexPQFastScan(COLS, 4, 4, faiss.METRIC_L2, 64))
make("pq_fast_odd", faiss.IndexPQFastScan(COLS, 1, 4, faiss.METRIC_INNER_PRODUCT, 32))
make("sq8", "SQ8")
make("sq6", "SQ6")
make("sq4", "SQ4")
make("sq_fp16", "SQfp16")
make("sq_bf16", "SQbf16")
make("sq8_uniform", faiss.IndexScalarQuantizer(COLS, faiss.ScalarQuantizer.QT_8bit_uniform))
make("sq4_uniform", faiss.IndexScalarQuantizer(COLS, faiss.ScalarQuantizer.QT_4bit_uniform))
make("sq8_direct", faiss.IndexScalarQuantizer(COLS, faiss.ScalarQuantizer.QT_8bit_direct), rows=whole)
make("sq8_direct_signed", faiss.IndexScalarQuantizer(COLS, faiss.ScalarQuantizer.QT_8bit_direct_signed), rows=-whole)
make("ivf_flat", "IVF4,Flat")
make("ivf_flat_ids", "IVF4,Flat", ids=own_ids)
make("ivf_flat_removed", "IVF4,Flat", change=lambda i: i.remove_ids(np.arange(5, 40, 3)))
make("ivf_flat_sparse", "IVF16,Flat", rows=vectors[:3])
make("ivf_flat_none", "IVF4,Flat", rows=vectors[:0])
make("ivf_flat_map", "IVF4,Flat", change=lambda i: i.set_direct_map_type(faiss.DirectMap.Hashtable))
make("ivf_flat_probes", "IVF4,Flat", change=lambda i: setattr(i, "nprobe", 3))
make("ivf_hnsw", "IVF4_HNSW4,Flat")
make("ivf_pq", "IVF4,PQ4x4np")
make("ivf_pq_ip", "IVF4,PQ4x5np", metric=faiss.METRIC_INNER_PRODUCT)
make("ivf_pq_plain", "IVF4,PQ4x4np", before=lambda i: setattr(i, "by_residual", False))
make("ivf_pq_fast", "IVF4,PQ4x4fsr", ids=own_ids)
make("ivf_pq_fast_plain", "IVF4,PQ2x4fs")
make("ivf_sq8", "IVF4,SQ8")
make("ivf_sq4", "IVF4,SQ4", metric=faiss.METRIC_INNER_PRODUCT)
make("ivf_sq_fp16", "IVF4,SQfp16")
make("ivf_direct", "IVF4,SQ8_direct", rows=whole, before=lambda i: setattr(i, "by_residual", False))
make("opq_ivf_pq", "OPQ2_4,IVF4,PQ2x4np", ids=own_ids)
make("pca", "PCA4,Flat")
make("pcar_sq8", "PCAR4,SQ8")
make("rr", "RR16,Flat")
make("l2norm", "L2norm,Flat", metric=faiss.METRIC_INNER_PRODUCT)
make("pad", "Pad12,SQ8")
make("centre", faiss.IndexPreTransform(faiss.CenteringTransform(COLS), faiss.IndexFlatL2(COLS)))
make("idmap_flat", "IDMap,Flat", ids=own_ids)
make("idmap2_pq", "IDMap2,PQ4x4np", ids=own_ids)
make("idmap_ivf", "IDMap,IVF4,Flat", ids=own_ids)
make("refine_flat", "IVF4,PQ4x4np,RFlat", change=lambda i: setattr(i, "k_factor", 4.0))
make("refine_sq8", "PQ4x4np,Refine(SQ8)")
make("idmap_refine", "IDMap,OPQ2_4,IVF4,PQ2x4np,RFlat", ids=own_ids)
make("lsq", "LSQ3x4")
make("rq", "RQ3x5")
make("rq_norm", "RQ3x4_Nqint8")
make("rq_norm_float", "RQ3x3_Nfloat")
make("lsq_norm_levels", "LSQ2x5_Ncqint8")
make("ivf_lsq_norm_levels", "IVF4,LSQ2x4_Ncqint8", ids=own_ids)
make("ivf_rq_norm", "IVF4,RQ2x8_Nqint8")
make("rq_norm_4_bits", "RQ3x4_Nqint4")
make("ivf_lsq", "IVF4,LSQ2x4", ids=own_ids)
make("ivf_rq_ip", "IVF4,RQ3x5", metric=faiss.METRIC_INNER_PRODUCT)
make("hnsw_sq8", "HNSW8,SQ8")
make("hnsw_pq", "HNSW8_PQ4")
make("nsg_flat", "NSG8,Flat", before=lambda i: (setattr(i, "GK", 16), setattr(i, "build_type", 0)))
make("nsg_sq8", "NSG8,SQ8", before=lambda i: (setattr(i, "GK", 16), setattr(i, "build_type", 0)))


def make_rabitq(name: str, factory: str, **more) -> None:
    made = []
    make(name, factory, change=made.append, **more)
    index = faiss.downcast_index(made[0])
    queries = vectors[:5] * 0.9 + 0.05
    if isinstance(index, faiss.IndexIVF):
        params = faiss.IVFRaBitQSearchParameters()
        params.nprobe = index.nlist
    else:
        params = faiss.RaBitQSearchParameters()
    params.qb = 0  # queries as they are
    distances, ids = index.search(queries, index.ntotal, params=params)
    np.save(FOLDER / f"{name}.queries.npy", queries)
    np.save(FOLDER / f"{name}.distances.npy", np.take_along_axis(distances, np.argsort(ids, 1), 1))


make_rabitq("rabitq", "RaBitQ")
make_rabitq("ivf_rabitq", "IVF4,RaBitQ", ids=own_ids)
make("rr_rabitq", "RR12,IVF4,RaBitQ")
make("refine_rabitq", "IVF4,RaBitQ,RFlat")

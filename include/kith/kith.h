/* Kith for C, and for every language that calls C (docs/c-api.md).
 *
 * Functions return a status; kith_last_message() says what was wrong, as Kith's C++ exceptions do. No exception leaves
 * this API. Handles are opaque and are given back by their ..._free(), which takes NULL too. Handles may be shared by
 * threads as the C++ objects behind them may: searches from any number of threads, and writers take turns.
 *
 * A struct begins with its size, `struct_size = sizeof(the struct)`: later versions add fields at the end, and a
 * program that was compiled with fewer goes on working. In parameters 0 or NULL is the default, so
 *
 *   kith_search_params params = {.struct_size = sizeof(params), .probes = 16};
 *
 * is complete, and NULL for a whole struct of parameters means all defaults. Switches are 0 (the default), KITH_ON or
 * KITH_OFF. Names (metrics, devices, factory strings) are those of C++, Python and the program. Memory stays the
 * caller's: nothing that is passed in is kept after the call.
 *
 * `resources` comes last and may be NULL: all threads, no memory limit, the device left to Kith. */
#ifndef KITH_KITH_H
#define KITH_KITH_H

#include <kith/version.h>

#include <stddef.h>
#include <stdint.h>

#define KITH_C_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* ---- status ------------------------------------------------------------------------------------------------------ */

typedef enum kith_status {
  KITH_OK = 0,
  KITH_INVALID_ARGUMENT = 1, /* a value, shape, dtype or name that the function does not accept; NULL among them */
  KITH_INVALID_STATE = 2,    /* the object is not ready for this call: an index that is not trained */
  KITH_UNSUPPORTED = 3,      /* a sensible request that this build or this device cannot serve */
  KITH_IO_ERROR = 4,
  KITH_CORRUPT_FILE = 5,
  KITH_OUT_OF_MEMORY = 6, /* kith_last_bytes_needed() names the limit that would do */
  KITH_DEVICE_ERROR = 7,
  KITH_CANCELLED = 8,
  KITH_INTERNAL_ERROR = 9 /* anything else; please report it */
} kith_status;

/* The message of this thread's last call that did not return KITH_OK; "" before one. Valid until the next such call. */
KITH_C_API const char* kith_last_message(void);
KITH_C_API int64_t kith_last_bytes_needed(void);             /* 0 unless that call returned KITH_OUT_OF_MEMORY */
KITH_C_API const char* kith_status_name(kith_status status); /* "KITH_OK" */

KITH_C_API const char* kith_version(void); /* "0.1.0", of the library that runs */

#define KITH_ON 1
#define KITH_OFF (-1)

/* ---- vectors ----------------------------------------------------------------------------------------------------- */

typedef enum kith_dtype {
  KITH_F32 = 0,
  KITH_F16 = 1,
  KITH_BF16 = 2,
  KITH_U8 = 3,
  KITH_I8 = 4,
  KITH_F64 = 5
} kith_dtype;

typedef enum kith_space { KITH_HOST = 0, KITH_PINNED = 1, KITH_MANAGED = 2, KITH_CUDA = 3 } kith_space;

/* Rows of vectors in the caller's memory. The columns of a row are contiguous. */
typedef struct kith_matrix {
  size_t struct_size;
  const void* data;
  int64_t rows;
  int64_t cols;
  int64_t row_stride; /* values from one row to the next; 0: cols */
  int32_t dtype;      /* kith_dtype */
  int32_t space;      /* kith_space */
  int32_t cuda_index; /* which GPU, for KITH_MANAGED and KITH_CUDA */
  int32_t reserved;   /* 0, as everywhere */
} kith_matrix;

/* The same where Kith writes. */
typedef struct kith_mutable_matrix {
  size_t struct_size;
  void* data;
  int64_t rows;
  int64_t cols;
  int64_t row_stride;
  int32_t dtype;
  int32_t space;
  int32_t cuda_index;
  int32_t reserved;
} kith_mutable_matrix;

/* Where a search writes: two row-major queries x k arrays of the caller's. Ids are -1 where there are fewer than k. */
typedef struct kith_neighbors {
  size_t struct_size;
  int64_t* ids;
  float* distances;
  int64_t queries;
  int64_t k;
  int32_t space;
  int32_t cuda_index;
} kith_neighbors;

/* Which rows may be found. In an index, KITH_FILTER_ROWS lists ids. */
typedef enum kith_filter_form {
  KITH_FILTER_NONE = 0,
  KITH_FILTER_MASK = 1, /* data: a byte for each row; not 0: kept */
  KITH_FILTER_BITS = 2, /* data: a bit for each row, the lowest of a byte first */
  KITH_FILTER_ROWS = 3  /* data: int64_t, the rows to keep, in any order */
} kith_filter_form;

typedef struct kith_filter {
  size_t struct_size;
  const void* data; /* host memory */
  int64_t size;     /* rows of a mask or of bits, or how many are listed */
  int32_t form;     /* kith_filter_form */
  int32_t reserved;
} kith_filter;

/* ---- resources --------------------------------------------------------------------------------------------------- */

typedef struct kith_resources kith_resources;

/* Callbacks run on the thread that called Kith. They must not throw, nor longjmp. */
typedef void (*kith_progress_callback)(const char* stage, int64_t done, int64_t total, void* context);
typedef int (*kith_cancel_callback)(void* context); /* not 0: the call ends with KITH_CANCELLED */
/* level: 0 debug, 1 info, 2 warning, 3 a warning that rounding f64 to f32 may change results. */
typedef void (*kith_log_callback)(int level, const char* text, void* context);

typedef struct kith_resource_options {
  size_t struct_size;
  const char* device;          /* "auto" (NULL), "cpu", "cuda" or "cuda:N"; several: "cuda:0,cuda:1", "cpu/4" */
  int64_t host_memory_limit;   /* bytes that Kith may allocate, results included; 0: no limit */
  int64_t device_memory_limit; /* the same on each GPU */
  void* stream;                /* a cudaStream_t; NULL: one of Kith's own */
  kith_progress_callback progress;
  kith_cancel_callback cancel;
  kith_log_callback log;
  void* context;   /* handed to all three */
  int32_t threads; /* 0: one per hardware thread */
  int32_t reserved;
} kith_resource_options;

KITH_C_API kith_status kith_resources_new(const kith_resource_options* options, kith_resources** out);
KITH_C_API void kith_resources_free(kith_resources* resources);

/* ---- exact search ------------------------------------------------------------------------------------------------ */

typedef struct kith_knn_params {
  size_t struct_size;
  const char* metric; /* "l2" (NULL), "sqeuclidean", "inner_product", "cosine", "l1", "linf", "chi_square", "hamming" */
  const kith_filter* filter;
  int32_t check_finite; /* refuse NaN and infinities; on unless KITH_OFF */
  int32_t reserved;
} kith_knn_params;

/* The out->k nearest rows of the base for each query, exactly. */
KITH_C_API kith_status kith_knn(const kith_matrix* queries, const kith_matrix* base, const kith_knn_params* params,
                                const kith_neighbors* out, const kith_resources* resources);

/* All rows within a radius, which is included. The result is Kith's: see it with kith_range_view_of(), then free it. */
typedef struct kith_range kith_range;

/* Query q found entries offsets[q] .. offsets[q + 1] - 1. Valid until the kith_range is freed. */
typedef struct kith_range_view {
  size_t struct_size;
  const int64_t* offsets; /* queries + 1 */
  const int64_t* ids;
  const float* distances;
  int64_t queries;
} kith_range_view;

KITH_C_API kith_status kith_range_search(const kith_matrix* queries, const kith_matrix* base, float radius,
                                         const kith_knn_params* params, kith_range** out,
                                         const kith_resources* resources);
KITH_C_API kith_status kith_range_view_of(const kith_range* range, kith_range_view* out);
KITH_C_API void kith_range_free(kith_range* range);

/* ---- indexes ----------------------------------------------------------------------------------------------------- */

typedef struct kith_index kith_index;

typedef struct kith_index_params {
  size_t struct_size;
  const char* metric;    /* NULL: "l2" */
  int64_t expected_rows; /* for "IVF" without a number; 0: the training rows */
  uint64_t seed;
  int32_t check_finite;
  int32_t prepare; /* keep a copy laid out for searches; on unless KITH_OFF */
} kith_index_params;

typedef struct kith_search_params {
  size_t struct_size;
  const kith_filter* filter;
  int64_t probes;        /* IVF: lists that are looked at */
  int64_t refine;        /* RFlat, Refine: refine * k candidates are compared again */
  int64_t beam;          /* Graph */
  int64_t width;         /* Graph */
  double recall;         /* instead of these: what tune() found for it */
  int32_t filter_strict; /* a listed id that the index does not have is refused; off unless KITH_ON: passed over */
  int32_t reserved;
} kith_search_params;

typedef struct kith_index_info {
  size_t struct_size;
  const char* factory; /* these two are valid while the index is */
  const char* metric;
  int64_t size; /* rows that are there */
  int64_t dimension;
  int64_t lists;      /* 0 without lists */
  int64_t code_bytes; /* of a vector */
  int64_t degree;     /* of a graph; 0 without one */
  int64_t host_bytes;
  int64_t device_bytes;
  int32_t trained; /* 0 or 1 */
  int32_t dtype;   /* of the vectors that were given first */
} kith_index_info;

/* factory: "Flat", "IVF4096,PQ32", "Graph32,SQ8", "OPQ16,IVF1024,PQ16,RFlat", ... (docs/indexes.md) */
KITH_C_API kith_status kith_index_new(const char* factory, const kith_index_params* params, kith_index** out);
KITH_C_API kith_status kith_index_load(const char* path, kith_index** out, const kith_resources* resources);
KITH_C_API kith_status kith_index_save(const kith_index* index, const char* path, const kith_resources* resources);
/* Another index with the same vectors, which both share; what is added to one is not seen by the other. */
KITH_C_API kith_status kith_index_clone(const kith_index* index, kith_index** out, const kith_resources* resources);
KITH_C_API void kith_index_free(kith_index* index);

KITH_C_API kith_status kith_index_train(kith_index* index, const kith_matrix* rows, const kith_resources* resources);
/* ids: one for each row, or NULL and 0: rows are numbered on. Rows are copied. */
KITH_C_API kith_status kith_index_add(kith_index* index, const kith_matrix* rows, const int64_t* ids, int64_t id_count,
                                      const kith_resources* resources);
/* From a file that may be larger than the memory limit. */
KITH_C_API kith_status kith_index_train_file(kith_index* index, const char* path, const kith_resources* resources);
KITH_C_API kith_status kith_index_add_file(kith_index* index, const char* path, const int64_t* ids, int64_t id_count,
                                           const kith_resources* resources);
/* removed: how many were there; may be NULL. Unknown ids are no error. */
KITH_C_API kith_status kith_index_remove(kith_index* index, const int64_t* ids, int64_t id_count, int64_t* removed,
                                         const kith_resources* resources);
KITH_C_API kith_status kith_index_compact(kith_index* index, const kith_resources* resources);

KITH_C_API kith_status kith_index_search(const kith_index* index, const kith_matrix* queries,
                                         const kith_search_params* params, const kith_neighbors* out,
                                         const kith_resources* resources);
/* Reads filter and probes of params; ignores the rest. */
KITH_C_API kith_status kith_index_range_search(const kith_index* index, const kith_matrix* queries, float radius,
                                               const kith_search_params* params, kith_range** out,
                                               const kith_resources* resources);
/* The vectors of these ids as the index keeps them: id_count x dimension. */
KITH_C_API kith_status kith_index_reconstruct(const kith_index* index, const int64_t* ids, int64_t id_count,
                                              const kith_mutable_matrix* out, const kith_resources* resources);
KITH_C_API kith_status kith_index_get_info(const kith_index* index, kith_index_info* out);

/* ---- k-means ----------------------------------------------------------------------------------------------------- */

typedef struct kith_kmeans kith_kmeans;

typedef struct kith_kmeans_params {
  size_t struct_size;
  const char* init;              /* "kmeans++" (NULL), "random", or "given": the centres that fit() is handed */
  int64_t clusters;              /* 0: 8 */
  int64_t iterations;            /* at most; 0: 25 */
  int64_t n_init;                /* 0: 1 */
  int64_t max_points_per_centre; /* train on a sample; 0: on all rows */
  int64_t batch_size;            /* of mini-batches; 0: Lloyd */
  double tol;                    /* 0: 1e-4; below 0: none */
  uint64_t seed;
  int32_t spherical;
  int32_t check_finite;
} kith_kmeans_params;

typedef struct kith_kmeans_info {
  size_t struct_size;
  int64_t clusters;
  int64_t dimension; /* 0 before the first fit */
  int64_t iterations;
  double objective;
  int32_t fitted; /* 0 or 1 */
} kith_kmeans_info;

KITH_C_API kith_status kith_kmeans_new(const kith_kmeans_params* params, kith_kmeans** out);
KITH_C_API void kith_kmeans_free(kith_kmeans* kmeans);
/* weights: one for each row, or NULL and 0. centres: clusters x cols for init "given", else NULL. */
KITH_C_API kith_status kith_kmeans_fit(kith_kmeans* kmeans, const kith_matrix* rows, const float* weights,
                                       int64_t weight_count, const kith_matrix* centres,
                                       const kith_resources* resources);
/* The nearest centre of each row and its distance, `count` (the rows) of each; either may be NULL. Host memory. */
KITH_C_API kith_status kith_kmeans_predict(const kith_kmeans* kmeans, const kith_matrix* rows, int32_t* labels,
                                           float* distances, int64_t count, const kith_resources* resources);
/* Copies them: f32, clusters x dimension, host memory. */
KITH_C_API kith_status kith_kmeans_centres(const kith_kmeans* kmeans, const kith_mutable_matrix* out);
KITH_C_API kith_status kith_kmeans_get_info(const kith_kmeans* kmeans, kith_kmeans_info* out);

/* ---- quantizers -------------------------------------------------------------------------------------------------- */

typedef struct kith_quantizer kith_quantizer;

typedef struct kith_quantizer_info {
  size_t struct_size;
  const char* name;   /* valid while the quantizer is */
  int64_t dimension;  /* 0 before training, and so is */
  int64_t code_bytes; /* of a vector */
  int32_t trained;    /* 0 or 1 */
} kith_quantizer_info;

/* name: "PQ16", "PQ32x4", "SQ8", "SQ6", "SQ4", "SQfp16", "LSQ8x8", "RQ8x8" (docs/quantizers.md) */
KITH_C_API kith_status kith_quantizer_new(const char* name, uint64_t seed, kith_quantizer** out);
KITH_C_API kith_status kith_quantizer_load(const char* path, kith_quantizer** out, const kith_resources* resources);
KITH_C_API kith_status kith_quantizer_save(const kith_quantizer* quantizer, const char* path,
                                           const kith_resources* resources);
KITH_C_API void kith_quantizer_free(kith_quantizer* quantizer);
KITH_C_API kith_status kith_quantizer_train(kith_quantizer* quantizer, const kith_matrix* rows,
                                            const kith_resources* resources);
/* codes: KITH_U8, rows x code_bytes. */
KITH_C_API kith_status kith_quantizer_encode(const kith_quantizer* quantizer, const kith_matrix* rows,
                                             const kith_mutable_matrix* codes, const kith_resources* resources);
/* out: KITH_F32, rows x dimension. */
KITH_C_API kith_status kith_quantizer_decode(const kith_quantizer* quantizer, const kith_matrix* codes,
                                             const kith_mutable_matrix* out, const kith_resources* resources);
KITH_C_API kith_status kith_quantizer_get_info(const kith_quantizer* quantizer, kith_quantizer_info* out);

/* ---- k-NN graphs ------------------------------------------------------------------------------------------------- */

typedef struct kith_graph kith_graph;

typedef struct kith_graph_params {
  size_t struct_size;
  const char* metric; /* NULL: "l2" */
  const char* method; /* "auto" (NULL), "exact", "cells", "nn_descent", "ggm" */
  int64_t k;          /* 0: 15 */
  double recall;      /* 0: 0.99 */
  uint64_t seed;
  int32_t check_finite;
  int32_t reserved;
} kith_graph_params;

typedef struct kith_graph_info {
  size_t struct_size;
  const char* method; /* these two are valid while the graph is; "given" for a graph that was loaded */
  const char* metric;
  int64_t rows;
  int64_t k;
  double recall;   /* estimated; -1: unknown */
  double seconds;  /* that it took */
  int32_t reached; /* the recall that was asked for: 0 or 1 */
} kith_graph_info;

/* Row i's neighbours are ids[i * k] .. ids[i * k + k - 1], nearest first. Valid until the graph is freed. */
typedef struct kith_graph_rows {
  size_t struct_size;
  const int64_t* ids;
  const float* distances;
  int64_t rows;
  int64_t k;
  int32_t space; /* kith_space: where the vectors lay */
  int32_t cuda_index;
} kith_graph_rows;

KITH_C_API kith_status kith_graph_new(const kith_matrix* rows, const kith_graph_params* params, kith_graph** out,
                                      const kith_resources* resources);
/* Two files, of ids and of distances, or a folder and NULL. A folder knows its metric: give NULL. */
KITH_C_API kith_status kith_graph_load(const char* ids_or_folder, const char* distances, const char* metric,
                                       kith_graph** out, const kith_resources* resources);
KITH_C_API kith_status kith_graph_save(const kith_graph* graph, const char* ids_or_folder, const char* distances,
                                       const kith_resources* resources);
KITH_C_API void kith_graph_free(kith_graph* graph);
KITH_C_API kith_status kith_graph_get_rows(const kith_graph* graph, kith_graph_rows* out);
KITH_C_API kith_status kith_graph_get_info(const kith_graph* graph, kith_graph_info* out);

/* ---- files ------------------------------------------------------------------------------------------------------- */

typedef struct kith_file_info {
  size_t struct_size;
  int64_t rows;
  int64_t cols;
  int64_t file_bytes;
  int32_t holds_ids; /* 1: ids, 0: vectors */
  char format[16];   /* "fbin", "npy", "hdf5", ... */
  char dtype[8];     /* as stored: "f32", "f16", "bf16", "u8", "i8"; "i32" or "i64" of ids */
} kith_file_info;

KITH_C_API kith_status kith_file_get_info(const char* path, kith_file_info* out);
/* Fills `out`, of the file's columns and host memory, with rows from `first` on, converted to its dtype. */
KITH_C_API kith_status kith_read_vectors(const char* path, int64_t first, const kith_mutable_matrix* out,
                                         const kith_resources* resources);
/* The extension says the format; written under a temporary name and renamed. */
KITH_C_API kith_status kith_write_vectors(const char* path, const kith_matrix* rows, const kith_resources* resources);
/* out: room for count x cols of the file. */
KITH_C_API kith_status kith_read_ids(const char* path, int64_t first, int64_t count, int64_t* out,
                                     const kith_resources* resources);

/* ---- in C, for short --------------------------------------------------------------------------------------------- */

/* Contiguous rows in host memory. */
static inline kith_matrix kith_rows(const void* data, kith_dtype dtype, int64_t rows, int64_t cols) {
  kith_matrix matrix = {sizeof(kith_matrix), data, rows, cols, 0, (int32_t)dtype, KITH_HOST, 0, 0};
  return matrix;
}
static inline kith_mutable_matrix kith_mutable_rows(void* data, kith_dtype dtype, int64_t rows, int64_t cols) {
  kith_mutable_matrix matrix = {sizeof(kith_mutable_matrix), data, rows, cols, 0, (int32_t)dtype, KITH_HOST, 0, 0};
  return matrix;
}
static inline kith_neighbors kith_neighbors_into(int64_t* ids, float* distances, int64_t queries, int64_t k) {
  kith_neighbors neighbors = {sizeof(kith_neighbors), ids, distances, queries, k, KITH_HOST, 0};
  return neighbors;
}

#ifdef __cplusplus
}
#endif

#endif

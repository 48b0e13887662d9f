/* Kith for C, and for every language that can call C (docs/c-api.md).
 *
 * Functions return a status; kith_last_message() explains a failure with the message of Kith's C++ exception. No
 * exception crosses this API. Handles are opaque and are released by their ..._free() functions, which accept NULL.
 * Threads may share handles: any number may search at once, and concurrent writers take turns.
 *
 * Every struct begins with its size, `struct_size = sizeof(the struct)`. Later versions add fields at the end, and
 * programs compiled with fewer fields keep working. In parameters, 0 or NULL is the default, so
 *
 *   kith_search_params params = {.struct_size = sizeof(params), .probes = 16};
 *
 * is complete, and NULL for a struct of parameters means all defaults. Switches are 0 (the default), KITH_ON or
 * KITH_OFF. Names (of metrics, devices, indexes) are those of C++, Python and the program. Kith keeps no pointer to the
 * caller's memory after a call.
 *
 * `resources` is the last argument and may be NULL: all threads, no memory limit, a device of Kith's choice. */
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
  KITH_INVALID_ARGUMENT = 1, /* a value, shape, dtype or name that the function does not accept, or NULL */
  KITH_INVALID_STATE = 2,    /* the object is not ready for this call: an untrained index, for instance */
  KITH_UNSUPPORTED = 3,      /* a valid request that this build or this device cannot serve */
  KITH_IO_ERROR = 4,
  KITH_CORRUPT_FILE = 5,
  KITH_OUT_OF_MEMORY = 6, /* kith_last_bytes_needed() is a limit that would be enough */
  KITH_DEVICE_ERROR = 7,
  KITH_CANCELLED = 8,
  KITH_INTERNAL_ERROR = 9 /* anything else; please report it */
} kith_status;

/* The message of this thread's last failed call; "" if there was none. Valid until the next failed call. */
KITH_C_API const char* kith_last_message(void);
KITH_C_API int64_t kith_last_bytes_needed(void);             /* 0 unless it returned KITH_OUT_OF_MEMORY */
KITH_C_API const char* kith_status_name(kith_status status); /* "KITH_OK" */

KITH_C_API const char* kith_version(void); /* of the running library: "0.1.0" */

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

/* The same for output. */
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

/* The caller's output arrays for a search, row-major, queries x k. If fewer than k are found, ids are -1 at the end. */
typedef struct kith_neighbors {
  size_t struct_size;
  int64_t* ids;
  float* distances;
  int64_t queries;
  int64_t k;
  int32_t space;
  int32_t cuda_index;
} kith_neighbors;

/* The rows that a search may return. For an index, KITH_FILTER_ROWS lists ids. */
typedef enum kith_filter_form {
  KITH_FILTER_NONE = 0,
  KITH_FILTER_MASK = 1, /* data: one byte per row; not 0: kept */
  KITH_FILTER_BITS = 2, /* data: one bit per row, the lowest of a byte first */
  KITH_FILTER_ROWS = 3  /* data: int64_t, the rows to keep, in any order */
} kith_filter_form;

typedef struct kith_filter {
  size_t struct_size;
  const void* data; /* host memory */
  int64_t size;     /* rows of a mask or of bits, or entries of a list */
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
  void* context;   /* passed to all three callbacks */
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

/* All rows within a radius, inclusive. Read the result through kith_range_view_of(), then free it. */
typedef struct kith_range kith_range;

/* The results of query q are entries offsets[q] .. offsets[q + 1] - 1. Valid until the kith_range is freed. */
typedef struct kith_range_view {
  size_t struct_size;
  const int64_t* offsets; /* queries + 1 values */
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
  int64_t expected_rows; /* sets the number of lists of "IVF" without a number; 0: the training rows */
  uint64_t seed;
  int32_t check_finite;
  int32_t prepare; /* keep a second copy laid out for faster searches; on unless KITH_OFF */
} kith_index_params;

typedef struct kith_search_params {
  size_t struct_size;
  const kith_filter* filter;
  int64_t probes;        /* IVF: how many lists to scan */
  int64_t refine;        /* RFlat, Refine: how many candidates to compare again, in multiples of k */
  int64_t beam;          /* Graph: see kith/index.hpp */
  int64_t width;         /* Graph: see kith/index.hpp */
  double recall;         /* instead of probes or beam: use the parameters that were measured to reach it */
  int32_t filter_strict; /* refuse listed ids that the index does not have; off unless KITH_ON: they are ignored */
  int32_t reserved;
} kith_search_params;

typedef struct kith_index_info {
  size_t struct_size;
  const char* factory; /* these two are valid as long as the index */
  const char* metric;
  int64_t size;       /* vectors that it holds */
  int64_t dimension;  /* 0 before the first training or add */
  int64_t lists;      /* 0 without lists */
  int64_t code_bytes; /* per vector */
  int64_t degree;     /* of the graph; 0 without one */
  int64_t host_bytes;
  int64_t device_bytes;
  int32_t trained; /* 0 or 1 */
  int32_t dtype;   /* of the first vectors added */
} kith_index_info;

/* factory: "Flat", "IVF4096,PQ32", "Graph32,SQ8", "OPQ16,IVF1024,PQ16,RFlat", ... (docs/indexes.md) */
KITH_C_API kith_status kith_index_new(const char* factory, const kith_index_params* params, kith_index** out);
KITH_C_API kith_status kith_index_load(const char* path, kith_index** out, const kith_resources* resources);
KITH_C_API kith_status kith_index_save(const kith_index* index, const char* path, const kith_resources* resources);
/* Another index that shares all vectors with this one; later changes to one do not affect the other. */
KITH_C_API kith_status kith_index_clone(const kith_index* index, kith_index** out, const kith_resources* resources);
KITH_C_API void kith_index_free(kith_index* index);

KITH_C_API kith_status kith_index_train(kith_index* index, const kith_matrix* rows, const kith_resources* resources);
/* ids: one per row, or NULL and 0 for consecutive ids. Rows are copied. */
KITH_C_API kith_status kith_index_add(kith_index* index, const kith_matrix* rows, const int64_t* ids, int64_t id_count,
                                      const kith_resources* resources);
/* From a file that may be larger than the memory limit. */
KITH_C_API kith_status kith_index_train_file(kith_index* index, const char* path, const kith_resources* resources);
KITH_C_API kith_status kith_index_add_file(kith_index* index, const char* path, const int64_t* ids, int64_t id_count,
                                           const kith_resources* resources);
/* removed: receives how many vectors were removed; may be NULL. Unknown ids are ignored. */
KITH_C_API kith_status kith_index_remove(kith_index* index, const int64_t* ids, int64_t id_count, int64_t* removed,
                                         const kith_resources* resources);
KITH_C_API kith_status kith_index_compact(kith_index* index, const kith_resources* resources);

KITH_C_API kith_status kith_index_search(const kith_index* index, const kith_matrix* queries,
                                         const kith_search_params* params, const kith_neighbors* out,
                                         const kith_resources* resources);
/* Uses filter and probes of params, and ignores the rest. */
KITH_C_API kith_status kith_index_range_search(const kith_index* index, const kith_matrix* queries, float radius,
                                               const kith_search_params* params, kith_range** out,
                                               const kith_resources* resources);
/* The stored vectors of these ids, decoded: id_count x dimension. */
KITH_C_API kith_status kith_index_reconstruct(const kith_index* index, const int64_t* ids, int64_t id_count,
                                              const kith_mutable_matrix* out, const kith_resources* resources);
KITH_C_API kith_status kith_index_get_info(const kith_index* index, kith_index_info* out);

/* ---- k-means ----------------------------------------------------------------------------------------------------- */

typedef struct kith_kmeans kith_kmeans;

typedef struct kith_kmeans_params {
  size_t struct_size;
  const char* init;              /* "kmeans++" (NULL), "random", or "given": the `centres` of kith_kmeans_fit() */
  int64_t clusters;              /* 0: 8 */
  int64_t iterations;            /* at most; 0: 25 */
  int64_t n_init;                /* 0: 1 */
  int64_t max_points_per_centre; /* train on a sample of this many rows per centre; 0: on all rows */
  int64_t batch_size;            /* rows per mini-batch; 0: whole passes (Lloyd) */
  double tol;                    /* 0: 1e-4; negative: none */
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
/* weights: one per row, or NULL and 0. centres: clusters x dimension for init "given", else NULL. */
KITH_C_API kith_status kith_kmeans_fit(kith_kmeans* kmeans, const kith_matrix* rows, const float* weights,
                                       int64_t weight_count, const kith_matrix* centres,
                                       const kith_resources* resources);
/* The nearest centre of each row and its distance, in arrays of `count` values (the number of rows) in host memory;
 * either may be NULL. */
KITH_C_API kith_status kith_kmeans_predict(const kith_kmeans* kmeans, const kith_matrix* rows, int32_t* labels,
                                           float* distances, int64_t count, const kith_resources* resources);
/* Copies the centres: f32 or f64, clusters x dimension, host memory. */
KITH_C_API kith_status kith_kmeans_centres(const kith_kmeans* kmeans, const kith_mutable_matrix* out);
KITH_C_API kith_status kith_kmeans_get_info(const kith_kmeans* kmeans, kith_kmeans_info* out);

/* ---- quantizers -------------------------------------------------------------------------------------------------- */

typedef struct kith_quantizer kith_quantizer;

typedef struct kith_quantizer_info {
  size_t struct_size;
  const char* name;   /* valid as long as the quantizer */
  int64_t dimension;  /* 0 before training */
  int64_t code_bytes; /* per vector; 0 before training */
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
  const char* method; /* these two are valid as long as the graph; "given" for a loaded graph */
  const char* metric;
  int64_t rows;
  int64_t k;
  double recall;   /* estimated; -1: unknown */
  double seconds;  /* of the build */
  int32_t reached; /* whether the requested recall was reached: 0 or 1 */
} kith_graph_info;

/* Row i's neighbours are ids[i * k] .. ids[i * k + k - 1], nearest first. Valid until the graph is freed. */
typedef struct kith_graph_rows {
  size_t struct_size;
  const int64_t* ids;
  const float* distances;
  int64_t rows;
  int64_t k;
  int32_t space; /* kith_space, that of the vectors */
  int32_t cuda_index;
} kith_graph_rows;

KITH_C_API kith_status kith_graph_new(const kith_matrix* rows, const kith_graph_params* params, kith_graph** out,
                                      const kith_resources* resources);
/* Files of ids and of distances, or a folder and NULL. metric: NULL for a folder, which stores its own. */
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
/* Fills `out`, with the file's columns and in host memory, with the rows from `first` on, converted to its dtype. */
KITH_C_API kith_status kith_read_vectors(const char* path, int64_t first, const kith_mutable_matrix* out,
                                         const kith_resources* resources);
/* The extension determines the format. Written under a temporary name and renamed. */
KITH_C_API kith_status kith_write_vectors(const char* path, const kith_matrix* rows, const kith_resources* resources);
/* out: room for count x (the file's columns) ids. */
KITH_C_API kith_status kith_read_ids(const char* path, int64_t first, int64_t count, int64_t* out,
                                     const kith_resources* resources);

/* ---- shorthands -------------------------------------------------------------------------------------------------- */

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

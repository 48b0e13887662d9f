#include "c_api_checks.h"

#include <kith/kith.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char wrong[2048];

static const char* failed(int line, const char* condition) {
  snprintf(wrong, sizeof wrong, "c_api_checks.c:%d: %s is false; the last message is: %s", line, condition,
           kith_last_message());
  return wrong;
}

#define CHECK(condition)                                   \
  do {                                                     \
    if (!(condition)) return failed(__LINE__, #condition); \
  } while (0)
#define CHECK_OK(call) CHECK((call) == KITH_OK)
/* The call is refused with this status, and its message has this text in it. */
#define CHECK_REFUSED(status, text, call)               \
  do {                                                  \
    CHECK((call) == (status));                          \
    CHECK(strstr(kith_last_message(), (text)) != NULL); \
  } while (0)

enum { ROWS = 600, COLS = 8, QUERIES = 7, K = 5 };

static float base[ROWS * COLS];
static float queries[QUERIES * COLS];

static void make_data(void) {
  uint32_t state = 1;
  for (int i = 0; i < ROWS * COLS + QUERIES * COLS; ++i) {
    state = state * 1664525u + 1013904223u;
    const float value = (float)(state >> 8) / (float)(1 << 24);
    if (i < ROWS * COLS)
      base[i] = value;
    else
      queries[i - ROWS * COLS] = value;
  }
}

static double squared_distance(const float* a, const float* b) {
  double sum = 0;
  for (int j = 0; j < COLS; ++j) sum += ((double)a[j] - b[j]) * ((double)a[j] - b[j]);
  return sum;
}

/* The nearest row of the base, of which the first `skipped` are left out. */
static int64_t nearest(const float* query, int64_t skipped) {
  int64_t best = -1;
  double least = INFINITY;
  for (int64_t i = skipped; i < ROWS; ++i) {
    const double distance = squared_distance(query, base + i * COLS);
    if (distance < least) {
      least = distance;
      best = i;
    }
  }
  return best;
}

static const char* in_folder(const char* folder, const char* name) {
  static char paths[4][1024];
  static int next = 0;
  next = (next + 1) % 4;
  snprintf(paths[next], sizeof paths[next], "%s/%s", folder, name);
  return paths[next];
}

static const char* versions_and_names(const char* folder) {
  (void)folder;
  CHECK(strcmp(kith_version(), "0.1.0") == 0);
  CHECK(strcmp(kith_status_name(KITH_OK), "KITH_OK") == 0);
  CHECK(strcmp(kith_status_name(KITH_CANCELLED), "KITH_CANCELLED") == 0);
  CHECK(strcmp(kith_status_name((kith_status)77), "no status of Kith") == 0);
  return NULL;
}

static const char* knn(const char* folder) {
  (void)folder;
  make_data();
  const kith_matrix q = kith_rows(queries, KITH_F32, QUERIES, COLS);
  const kith_matrix b = kith_rows(base, KITH_F32, ROWS, COLS);
  int64_t ids[QUERIES * K];
  float distances[QUERIES * K];
  const kith_neighbors out = kith_neighbors_into(ids, distances, QUERIES, K);
  CHECK_OK(kith_knn(&q, &b, NULL, &out, NULL));
  for (int i = 0; i < QUERIES; ++i) {
    const int64_t best = nearest(queries + i * COLS, 0);
    CHECK(ids[i * K] == best);
    CHECK(fabs(distances[i * K] - sqrt(squared_distance(queries + i * COLS, base + best * COLS))) < 1e-6);
    for (int j = 1; j < K; ++j) CHECK(distances[i * K + j - 1] <= distances[i * K + j]);
  }

  uint8_t mask[ROWS];
  for (int i = 0; i < ROWS; ++i) mask[i] = i >= 100;
  const kith_filter filter = {.struct_size = sizeof filter, .form = KITH_FILTER_MASK, .data = mask, .size = ROWS};
  const kith_knn_params params = {.struct_size = sizeof params, .metric = "sqeuclidean", .filter = &filter};
  CHECK_OK(kith_knn(&q, &b, &params, &out, NULL));
  for (int i = 0; i < QUERIES; ++i) CHECK(ids[i * K] == nearest(queries + i * COLS, 100));

  /* Rows that are apart, with other values between them. */
  float apart[3 * 4] = {0, 0, 9, 9, 3, 4, 9, 9, 6, 8, 9, 9};
  const float origin[2] = {0, 0};
  kith_matrix rows = kith_rows(apart, KITH_F32, 3, 2);
  rows.row_stride = 4;
  const kith_matrix one = kith_rows(origin, KITH_F32, 1, 2);
  const kith_neighbors three = kith_neighbors_into(ids, distances, 1, 3);
  CHECK_OK(kith_knn(&one, &rows, NULL, &three, NULL));
  CHECK(ids[0] == 0 && ids[1] == 1 && ids[2] == 2 && distances[1] == 5 && distances[2] == 10);
  return NULL;
}

static const char* range_search(const char* folder) {
  (void)folder;
  make_data();
  const kith_matrix q = kith_rows(queries, KITH_F32, QUERIES, COLS);
  const kith_matrix b = kith_rows(base, KITH_F32, ROWS, COLS);
  const kith_knn_params params = {.struct_size = sizeof params, .metric = "sqeuclidean"};
  kith_range* range = NULL;
  CHECK_OK(kith_range_search(&q, &b, 0.6f, &params, &range, NULL));
  kith_range_view view = {.struct_size = sizeof view};
  CHECK_OK(kith_range_view_of(range, &view));
  CHECK(view.queries == QUERIES && view.offsets[0] == 0 && view.struct_size == sizeof view);
  for (int i = 0; i < QUERIES; ++i) {
    int64_t within = 0;
    for (int j = 0; j < ROWS; ++j) within += (float)squared_distance(queries + i * COLS, base + j * COLS) <= 0.6f;
    CHECK(view.offsets[i + 1] - view.offsets[i] == within);
    if (within > 0) CHECK(view.ids[view.offsets[i]] == nearest(queries + i * COLS, 0));
  }
  kith_range_free(range);
  kith_range_free(NULL);
  return NULL;
}

static const char* flat_index(const char* folder) {
  make_data();
  const kith_matrix q = kith_rows(queries, KITH_F32, QUERIES, COLS);
  const kith_matrix b = kith_rows(base, KITH_F32, ROWS, COLS);
  int64_t own[ROWS];
  for (int i = 0; i < ROWS; ++i) own[i] = 1000 + 2 * i;
  kith_index* index = NULL;
  CHECK_OK(kith_index_new("Flat", NULL, &index));
  CHECK_OK(kith_index_add(index, &b, own, ROWS, NULL));
  int64_t ids[QUERIES * K];
  float distances[QUERIES * K];
  const kith_neighbors out = kith_neighbors_into(ids, distances, QUERIES, K);
  CHECK_OK(kith_index_search(index, &q, NULL, &out, NULL));
  for (int i = 0; i < QUERIES; ++i) CHECK(ids[i * K] == own[nearest(queries + i * COLS, 0)]);

  const kith_filter filter = {
      .struct_size = sizeof filter, .form = KITH_FILTER_ROWS, .data = own + 50, .size = ROWS - 50};
  const kith_search_params params = {.struct_size = sizeof params, .filter = &filter};
  CHECK_OK(kith_index_search(index, &q, &params, &out, NULL));
  for (int i = 0; i < QUERIES; ++i) CHECK(ids[i * K] == own[nearest(queries + i * COLS, 50)]);

  /* Unknown ids are passed over, unless they must not be. */
  const int64_t unknown[] = {7, own[300], 8};
  const kith_filter one = {.struct_size = sizeof one, .form = KITH_FILTER_ROWS, .data = unknown, .size = 3};
  kith_search_params lenient = {.struct_size = sizeof lenient, .filter = &one};
  CHECK_OK(kith_index_search(index, &q, &lenient, &out, NULL));
  CHECK(ids[0] == own[300] && ids[1] == -1);
  lenient.filter_strict = KITH_ON;
  CHECK_REFUSED(KITH_INVALID_ARGUMENT, "id 7", kith_index_search(index, &q, &lenient, &out, NULL));

  kith_range* range = NULL;
  CHECK_OK(kith_index_range_search(index, &q, 0.5f, &params, &range, NULL));
  kith_range_view found = {.struct_size = sizeof found};
  CHECK_OK(kith_range_view_of(range, &found));
  CHECK(found.queries == QUERIES);
  kith_range_free(range);

  kith_index* whole = NULL;
  CHECK_OK(kith_index_clone(index, &whole, NULL));
  int64_t removed = -1;
  CHECK_OK(kith_index_remove(index, own, 50, &removed, NULL));
  CHECK(removed == 50);
  CHECK_OK(kith_index_remove(index, own, 50, &removed, NULL));
  CHECK(removed == 0);
  CHECK_OK(kith_index_compact(index, NULL));
  CHECK_OK(kith_index_search(index, &q, NULL, &out, NULL));
  for (int i = 0; i < QUERIES; ++i) CHECK(ids[i * K] == own[nearest(queries + i * COLS, 50)]);

  const char* path = in_folder(folder, "flat.kith");
  CHECK_OK(kith_index_save(index, path, NULL));
  kith_index* loaded = NULL;
  CHECK_OK(kith_index_load(path, &loaded, NULL));
  kith_index_info info = {.struct_size = sizeof info};
  CHECK_OK(kith_index_get_info(loaded, &info));
  CHECK(strcmp(info.factory, "Flat") == 0 && strcmp(info.metric, "l2") == 0 && info.trained == 1);
  CHECK(info.size == ROWS - 50 && info.dimension == COLS && info.dtype == KITH_F32 && info.host_bytes > 0);
  float vectors[2 * COLS];
  const kith_mutable_matrix two = kith_mutable_rows(vectors, KITH_F32, 2, COLS);
  CHECK_OK(kith_index_reconstruct(loaded, own + 60, 2, &two, NULL));
  CHECK(memcmp(vectors, base + 60 * COLS, sizeof vectors) == 0);
  CHECK_OK(kith_index_get_info(whole, &info));
  CHECK(info.size == ROWS);
  kith_index_free(whole);
  kith_index_free(loaded);
  kith_index_free(index);
  kith_index_free(NULL);
  return NULL;
}

static const char* index_of_lists(const char* folder) {
  make_data();
  const char* path = in_folder(folder, "base.fbin");
  const kith_matrix q = kith_rows(queries, KITH_F32, QUERIES, COLS);
  const kith_matrix b = kith_rows(base, KITH_F32, ROWS, COLS);
  CHECK_OK(kith_write_vectors(path, &b, NULL));
  const kith_index_params params = {.struct_size = sizeof params, .metric = "sqeuclidean", .seed = 3};
  kith_index* index = NULL;
  CHECK_OK(kith_index_new("IVF8,Flat", &params, &index));
  CHECK_REFUSED(KITH_INVALID_STATE, "train", kith_index_add(index, &b, NULL, 0, NULL));
  CHECK_OK(kith_index_train_file(index, path, NULL));
  CHECK_OK(kith_index_add_file(index, path, NULL, 0, NULL));
  kith_index_info info = {.struct_size = sizeof info};
  CHECK_OK(kith_index_get_info(index, &info));
  CHECK(info.lists == 8 && info.size == ROWS && strcmp(info.metric, "sqeuclidean") == 0);
  const kith_search_params all = {.struct_size = sizeof all, .probes = 8};
  int64_t ids[QUERIES * K];
  float distances[QUERIES * K];
  const kith_neighbors out = kith_neighbors_into(ids, distances, QUERIES, K);
  CHECK_OK(kith_index_search(index, &q, &all, &out, NULL));
  for (int i = 0; i < QUERIES; ++i) CHECK(ids[i * K] == nearest(queries + i * COLS, 0));
  kith_index_free(index);
  return NULL;
}

static const char* kmeans(const char* folder) {
  (void)folder;
  /* Two groups of rows far apart. */
  float rows[20 * 2];
  for (int i = 0; i < 20; ++i) {
    rows[2 * i] = i < 10 ? 0.0f : 100.0f;
    rows[2 * i + 1] = (float)(i % 10);
  }
  const kith_matrix x = kith_rows(rows, KITH_F32, 20, 2);
  const kith_kmeans_params params = {.struct_size = sizeof params, .clusters = 2};
  kith_kmeans* means = NULL;
  CHECK_OK(kith_kmeans_new(&params, &means));
  float centres[4];
  const kith_mutable_matrix out = kith_mutable_rows(centres, KITH_F32, 2, 2);
  CHECK_REFUSED(KITH_INVALID_STATE, "fit", kith_kmeans_centres(means, &out));
  kith_kmeans_info info = {.struct_size = sizeof info};
  CHECK_OK(kith_kmeans_get_info(means, &info));
  CHECK(info.clusters == 2 && info.fitted == 0 && info.dimension == 0);
  CHECK_OK(kith_kmeans_fit(means, &x, NULL, 0, NULL, NULL));
  CHECK_OK(kith_kmeans_centres(means, &out));
  CHECK(centres[0] + centres[2] == 100 && centres[1] == 4.5f && centres[3] == 4.5f);
  CHECK_OK(kith_kmeans_get_info(means, &info));
  CHECK(info.fitted == 1 && info.dimension == 2 && info.iterations > 0 && info.objective == 165);
  int32_t labels[20];
  float distances[20];
  CHECK_OK(kith_kmeans_predict(means, &x, labels, distances, 20, NULL));
  CHECK(labels[0] == labels[9] && labels[10] == labels[19] && labels[0] != labels[10] && distances[0] == 4.5f);
  CHECK_OK(kith_kmeans_predict(means, &x, labels, NULL, 20, NULL));
  CHECK_REFUSED(KITH_INVALID_ARGUMENT, "count = 19", kith_kmeans_predict(means, &x, labels, NULL, 19, NULL));
  const kith_mutable_matrix small = kith_mutable_rows(centres, KITH_F32, 1, 2);
  CHECK_REFUSED(KITH_INVALID_ARGUMENT, "the centres are 2 x 2", kith_kmeans_centres(means, &small));
  const float weights[3] = {1, 1, 1};
  CHECK(kith_kmeans_fit(means, &x, weights, 3, NULL, NULL) == KITH_INVALID_ARGUMENT);

  /* Rows of f64 far from 0: centres come back where the rows are. */
  double far[20];
  for (int i = 0; i < 20; ++i) far[i] = 1e9 + (i < 10 ? 0 : 100) + i % 10;
  const kith_matrix doubles = kith_rows(far, KITH_F64, 20, 1);
  double far_centres[2];
  const kith_mutable_matrix wide = kith_mutable_rows(far_centres, KITH_F64, 2, 1);
  CHECK_OK(kith_kmeans_fit(means, &doubles, NULL, 0, NULL, NULL));
  CHECK_OK(kith_kmeans_centres(means, &wide));
  CHECK(far_centres[0] + far_centres[1] == 2e9 + 109);
  kith_kmeans_free(means);

  const kith_kmeans_params unknown = {.struct_size = sizeof unknown, .init = "best"};
  CHECK_REFUSED(KITH_INVALID_ARGUMENT, "best", kith_kmeans_new(&unknown, &means));
  CHECK(means == NULL);
  return NULL;
}

static const char* quantizer(const char* folder) {
  make_data();
  const kith_matrix b = kith_rows(base, KITH_F32, ROWS, COLS);
  kith_quantizer* made = NULL;
  CHECK_OK(kith_quantizer_new("PQ4x4", 1, &made));
  kith_quantizer_info info = {.struct_size = sizeof info};
  CHECK_OK(kith_quantizer_get_info(made, &info));
  CHECK(info.trained == 0 && info.code_bytes == 0);
  CHECK_OK(kith_quantizer_train(made, &b, NULL));
  CHECK_OK(kith_quantizer_get_info(made, &info));
  CHECK(strcmp(info.name, "PQ4x4") == 0 && info.dimension == COLS && info.code_bytes == 2 && info.trained == 1);
  uint8_t codes[ROWS * 2];
  float decoded[ROWS * COLS];
  const kith_mutable_matrix to_codes = kith_mutable_rows(codes, KITH_U8, ROWS, 2);
  const kith_matrix from_codes = kith_rows(codes, KITH_U8, ROWS, 2);
  const kith_mutable_matrix vectors = kith_mutable_rows(decoded, KITH_F32, ROWS, COLS);
  CHECK_OK(kith_quantizer_encode(made, &b, &to_codes, NULL));
  CHECK_OK(kith_quantizer_decode(made, &from_codes, &vectors, NULL));
  double error = 0;
  for (int i = 0; i < ROWS; ++i) error += squared_distance(base + i * COLS, decoded + i * COLS) / ROWS;
  CHECK(error > 0 && error < COLS / 24.0); /* 16 codewords for 2 columns take well over half of a variance of 1/12 */

  const char* path = in_folder(folder, "pq.kith");
  CHECK_OK(kith_quantizer_save(made, path, NULL));
  kith_quantizer* loaded = NULL;
  CHECK_OK(kith_quantizer_load(path, &loaded, NULL));
  uint8_t again[ROWS * 2];
  const kith_mutable_matrix to_again = kith_mutable_rows(again, KITH_U8, ROWS, 2);
  CHECK_OK(kith_quantizer_encode(loaded, &b, &to_again, NULL));
  CHECK(memcmp(codes, again, sizeof codes) == 0);
  const kith_mutable_matrix narrow = kith_mutable_rows(again, KITH_U8, ROWS, 1);
  CHECK(kith_quantizer_encode(loaded, &b, &narrow, NULL) == KITH_INVALID_ARGUMENT);
  kith_quantizer_free(loaded);
  kith_quantizer_free(made);
  CHECK_REFUSED(KITH_INVALID_ARGUMENT, "XQ8", kith_quantizer_new("XQ8", 0, &made));
  return NULL;
}

static const char* graph(const char* folder) {
  make_data();
  const kith_matrix b = kith_rows(base, KITH_F32, ROWS, COLS);
  const kith_graph_params params = {.struct_size = sizeof params, .k = K, .method = "exact"};
  kith_graph* made = NULL;
  CHECK_OK(kith_graph_new(&b, &params, &made, NULL));
  kith_graph_rows rows = {.struct_size = sizeof rows};
  CHECK_OK(kith_graph_get_rows(made, &rows));
  CHECK(rows.rows == ROWS && rows.k == K && rows.space == KITH_HOST);
  for (int i = 0; i < ROWS; ++i) CHECK(rows.ids[i * K] != i && rows.ids[i * K] >= 0 && rows.ids[i * K] < ROWS);
  kith_graph_info info = {.struct_size = sizeof info};
  CHECK_OK(kith_graph_get_info(made, &info));
  CHECK(strcmp(info.method, "exact") == 0 && strcmp(info.metric, "l2") == 0 && info.reached == 1);

  const char* graph_folder = in_folder(folder, "graph");
  CHECK_OK(kith_graph_save(made, graph_folder, NULL, NULL));
  kith_graph* loaded = NULL;
  CHECK_OK(kith_graph_load(graph_folder, NULL, NULL, &loaded, NULL));
  kith_graph_rows again = {.struct_size = sizeof again};
  CHECK_OK(kith_graph_get_rows(loaded, &again));
  CHECK(memcmp(again.ids, rows.ids, ROWS * K * sizeof(int64_t)) == 0);
  CHECK(memcmp(again.distances, rows.distances, ROWS * K * sizeof(float)) == 0);
  kith_graph_free(loaded);
  CHECK_REFUSED(KITH_INVALID_ARGUMENT, "NULL", kith_graph_load(graph_folder, NULL, "l2", &loaded, NULL));

  const char* ids = in_folder(folder, "ids.npy");
  const char* distances = in_folder(folder, "distances.npy");
  CHECK_OK(kith_graph_save(made, ids, distances, NULL));
  CHECK_OK(kith_graph_load(ids, distances, "l2", &loaded, NULL));
  CHECK_OK(kith_graph_get_info(loaded, &info));
  CHECK(strcmp(info.method, "given") == 0 && info.recall == -1 && info.rows == ROWS);
  int64_t first[K];
  CHECK_OK(kith_read_ids(ids, 3, 1, first, NULL));
  CHECK(memcmp(first, rows.ids + 3 * K, sizeof first) == 0);
  CHECK(kith_read_ids(ids, ROWS, 1, first, NULL) == KITH_INVALID_ARGUMENT);
  kith_graph_free(loaded);
  kith_graph_free(made);
  return NULL;
}

static const char* files(const char* folder) {
  make_data();
  const char* path = in_folder(folder, "base.npy");
  const kith_matrix b = kith_rows(base, KITH_F32, ROWS, COLS);
  CHECK_OK(kith_write_vectors(path, &b, NULL));
  kith_file_info info = {.struct_size = sizeof info};
  CHECK_OK(kith_file_get_info(path, &info));
  CHECK(strcmp(info.format, "npy") == 0 && strcmp(info.dtype, "f32") == 0 && info.holds_ids == 0);
  CHECK(info.rows == ROWS && info.cols == COLS && info.file_bytes > ROWS * COLS * 4);
  float two[2 * COLS];
  const kith_mutable_matrix out = kith_mutable_rows(two, KITH_F32, 2, COLS);
  CHECK_OK(kith_read_vectors(path, 9, &out, NULL));
  CHECK(memcmp(two, base + 9 * COLS, sizeof two) == 0);
  CHECK(kith_read_vectors(path, ROWS - 1, &out, NULL) == KITH_INVALID_ARGUMENT);
  CHECK(kith_read_vectors(path, -1, &out, NULL) == KITH_INVALID_ARGUMENT);
  const kith_mutable_matrix wide = kith_mutable_rows(two, KITH_F32, 1, 2 * COLS);
  CHECK(kith_read_vectors(path, 0, &wide, NULL) == KITH_INVALID_ARGUMENT);
  CHECK_REFUSED(KITH_IO_ERROR, "missing.npy", kith_file_get_info(in_folder(folder, "missing.npy"), &info));
  kith_index* index = NULL;
  CHECK(kith_index_load(path, &index, NULL) == KITH_INVALID_ARGUMENT); /* a file of another kind */
  FILE* file = fopen(path, "r+b");
  CHECK(file != NULL);
  fputs("KITH", file); /* over the magic of the format */
  fclose(file);
  CHECK(kith_file_get_info(path, &info) == KITH_CORRUPT_FILE);
  return NULL;
}

typedef struct {
  int told;
  int asked;
  int cancel;
  char stage[32];
} watcher;

static void watch_progress(const char* stage, int64_t done, int64_t total, void* context) {
  watcher* seen = context;
  if (done <= total) ++seen->told;
  snprintf(seen->stage, sizeof seen->stage, "%s", stage);
}

static int watch_cancel(void* context) {
  watcher* seen = context;
  ++seen->asked;
  return seen->cancel;
}

static const char* resources(const char* folder) {
  (void)folder;
  make_data();
  watcher seen = {0};
  const kith_resource_options options = {.struct_size = sizeof options,
                                         .device = "cpu",
                                         .threads = 2,
                                         .progress = watch_progress,
                                         .cancel = watch_cancel,
                                         .context = &seen};
  kith_resources* own = NULL;
  CHECK_OK(kith_resources_new(&options, &own));
  const kith_matrix q = kith_rows(queries, KITH_F32, QUERIES, COLS);
  const kith_matrix b = kith_rows(base, KITH_F32, ROWS, COLS);
  int64_t ids[QUERIES * K];
  float distances[QUERIES * K];
  const kith_neighbors out = kith_neighbors_into(ids, distances, QUERIES, K);
  CHECK_OK(kith_knn(&q, &b, NULL, &out, own));
  CHECK(seen.told > 0 && seen.asked > 0 && seen.stage[0] != 0);
  CHECK(ids[0] == nearest(queries, 0));
  seen.cancel = 1;
  CHECK_REFUSED(KITH_CANCELLED, "cancelled", kith_knn(&q, &b, NULL, &out, own));
  seen.cancel = 0;
  CHECK_OK(kith_knn(&q, &b, NULL, &out, own));
  kith_resources_free(own);

  const kith_resource_options tight = {.struct_size = sizeof tight, .host_memory_limit = 1000, .device = "cpu"};
  CHECK_OK(kith_resources_new(&tight, &own));
  CHECK(kith_knn(&q, &b, NULL, &out, own) == KITH_OUT_OF_MEMORY);
  const int64_t needed = kith_last_bytes_needed();
  CHECK(needed > 1000);
  kith_resources_free(own);
  const kith_resource_options enough = {.struct_size = sizeof enough, .host_memory_limit = needed, .device = "cpu"};
  CHECK_OK(kith_resources_new(&enough, &own));
  CHECK_OK(kith_knn(&q, &b, NULL, &out, own));
  kith_resources_free(own);
  kith_resources_free(NULL);

  const kith_resource_options odd = {.struct_size = sizeof odd, .device = "tpu"};
  CHECK_REFUSED(KITH_INVALID_ARGUMENT, "tpu", kith_resources_new(&odd, &own));
  CHECK(own == NULL && kith_last_bytes_needed() == 0);
  const kith_resource_options negative = {.struct_size = sizeof negative, .threads = -1};
  CHECK_REFUSED(KITH_INVALID_ARGUMENT, "threads", kith_resources_new(&negative, &own));
  return NULL;
}

static const char* null_arguments(const char* folder) {
  (void)folder;
  make_data();
  const kith_matrix q = kith_rows(queries, KITH_F32, QUERIES, COLS);
  int64_t ids[QUERIES];
  float distances[QUERIES];
  kith_neighbors out = kith_neighbors_into(ids, distances, QUERIES, 1);
  kith_index* index = NULL;
  kith_range* range = NULL;
  const kith_status refused = KITH_INVALID_ARGUMENT;
  CHECK_REFUSED(refused, "queries is NULL", kith_knn(NULL, &q, NULL, &out, NULL));
  CHECK_REFUSED(refused, "base is NULL", kith_knn(&q, NULL, NULL, &out, NULL));
  CHECK_REFUSED(refused, "out is NULL", kith_knn(&q, &q, NULL, NULL, NULL));
  CHECK_REFUSED(refused, "out is NULL", kith_range_search(&q, &q, 1, NULL, NULL, NULL));
  CHECK_REFUSED(refused, "range is NULL", kith_range_view_of(NULL, NULL));
  CHECK_REFUSED(refused, "out is NULL", kith_index_new("Flat", NULL, NULL));
  CHECK_REFUSED(refused, "factory is NULL", kith_index_new(NULL, NULL, &index));
  CHECK_REFUSED(refused, "path is NULL", kith_index_load(NULL, &index, NULL));
  CHECK_REFUSED(refused, "index is NULL", kith_index_save(NULL, "x.kith", NULL));
  CHECK_REFUSED(refused, "index is NULL", kith_index_train(NULL, &q, NULL));
  CHECK_REFUSED(refused, "index is NULL", kith_index_add(NULL, &q, NULL, 0, NULL));
  CHECK_REFUSED(refused, "index is NULL", kith_index_train_file(NULL, "x.npy", NULL));
  CHECK_REFUSED(refused, "index is NULL", kith_index_add_file(NULL, "x.npy", NULL, 0, NULL));
  CHECK_REFUSED(refused, "index is NULL", kith_index_remove(NULL, ids, 1, NULL, NULL));
  CHECK_REFUSED(refused, "index is NULL", kith_index_compact(NULL, NULL));
  CHECK_REFUSED(refused, "index is NULL", kith_index_clone(NULL, &index, NULL));
  CHECK_REFUSED(refused, "index is NULL", kith_index_search(NULL, &q, NULL, &out, NULL));
  CHECK_REFUSED(refused, "index is NULL", kith_index_range_search(NULL, &q, 1, NULL, &range, NULL));
  CHECK_REFUSED(refused, "index is NULL", kith_index_reconstruct(NULL, ids, 1, NULL, NULL));
  CHECK_REFUSED(refused, "index is NULL", kith_index_get_info(NULL, NULL));
  CHECK_REFUSED(refused, "out is NULL", kith_kmeans_new(NULL, NULL));
  CHECK_REFUSED(refused, "kmeans is NULL", kith_kmeans_fit(NULL, &q, NULL, 0, NULL, NULL));
  CHECK_REFUSED(refused, "kmeans is NULL", kith_kmeans_predict(NULL, &q, NULL, NULL, QUERIES, NULL));
  CHECK_REFUSED(refused, "kmeans is NULL", kith_kmeans_centres(NULL, NULL));
  CHECK_REFUSED(refused, "kmeans is NULL", kith_kmeans_get_info(NULL, NULL));
  kith_quantizer* quantizers = NULL;
  CHECK_REFUSED(refused, "name is NULL", kith_quantizer_new(NULL, 0, &quantizers));
  CHECK_REFUSED(refused, "path is NULL", kith_quantizer_load(NULL, &quantizers, NULL));
  CHECK_REFUSED(refused, "quantizer is NULL", kith_quantizer_save(NULL, "x.kith", NULL));
  CHECK_REFUSED(refused, "quantizer is NULL", kith_quantizer_train(NULL, &q, NULL));
  CHECK_REFUSED(refused, "quantizer is NULL", kith_quantizer_encode(NULL, &q, NULL, NULL));
  CHECK_REFUSED(refused, "quantizer is NULL", kith_quantizer_decode(NULL, &q, NULL, NULL));
  CHECK_REFUSED(refused, "quantizer is NULL", kith_quantizer_get_info(NULL, NULL));
  kith_graph* graphs = NULL;
  CHECK_REFUSED(refused, "rows is NULL", kith_graph_new(NULL, NULL, &graphs, NULL));
  CHECK_REFUSED(refused, "ids_or_folder is NULL", kith_graph_load(NULL, NULL, NULL, &graphs, NULL));
  CHECK_REFUSED(refused, "graph is NULL", kith_graph_save(NULL, "x", NULL, NULL));
  CHECK_REFUSED(refused, "graph is NULL", kith_graph_get_rows(NULL, NULL));
  CHECK_REFUSED(refused, "graph is NULL", kith_graph_get_info(NULL, NULL));
  CHECK_REFUSED(refused, "path is NULL", kith_file_get_info(NULL, NULL));
  CHECK_REFUSED(refused, "out is NULL", kith_read_vectors("x.npy", 0, NULL, NULL));
  CHECK_REFUSED(refused, "path is NULL", kith_write_vectors(NULL, &q, NULL));
  CHECK_REFUSED(refused, "path is NULL", kith_read_ids(NULL, 0, 1, ids, NULL));
  CHECK_REFUSED(refused, "out is NULL", kith_resources_new(NULL, NULL));

  out.ids = NULL;
  CHECK_REFUSED(refused, "kith_neighbors.ids is NULL", kith_knn(&q, &q, NULL, &out, NULL));
  kith_matrix nothing = kith_rows(NULL, KITH_F32, 3, COLS);
  out.ids = ids;
  CHECK(kith_knn(&q, &nothing, NULL, &out, NULL) == refused);
  CHECK_OK(kith_index_new("Flat", NULL, &index));
  CHECK_REFUSED(refused, "ids is NULL", kith_index_add(index, &q, NULL, QUERIES, NULL));
  CHECK_REFUSED(refused, "rows is NULL", kith_index_add(index, NULL, NULL, 0, NULL));
  CHECK_REFUSED(refused, "out is NULL", kith_index_get_info(index, NULL));
  kith_index_free(index);
  return NULL;
}

static const char* wrong_sizes(const char* folder) {
  (void)folder;
  make_data();
  const kith_status refused = KITH_INVALID_ARGUMENT;
  const kith_matrix q = kith_rows(queries, KITH_F32, QUERIES, COLS);
  const kith_matrix b = kith_rows(base, KITH_F32, ROWS, COLS);
  int64_t ids[QUERIES * K];
  float distances[QUERIES * K];
  const kith_neighbors out = kith_neighbors_into(ids, distances, QUERIES, K);
  const kith_neighbors fewer = kith_neighbors_into(ids, distances, QUERIES - 1, K);
  CHECK(kith_knn(&q, &b, NULL, &fewer, NULL) == refused);
  const kith_neighbors none = kith_neighbors_into(ids, distances, QUERIES, 0);
  CHECK_REFUSED(refused, "k = 0", kith_knn(&q, &b, NULL, &none, NULL));
  const kith_neighbors negative = kith_neighbors_into(ids, distances, -1, K);
  CHECK(kith_knn(&q, &b, NULL, &negative, NULL) == refused);

  kith_matrix odd = b;
  odd.cols = COLS - 1;
  odd.row_stride = COLS;
  CHECK(kith_knn(&q, &odd, NULL, &out, NULL) == refused);
  odd = b;
  odd.rows = -1;
  CHECK(kith_knn(&q, &odd, NULL, &out, NULL) == refused);
  odd = b;
  odd.row_stride = 3;
  CHECK(kith_knn(&q, &odd, NULL, &out, NULL) == refused);
  odd = b;
  odd.rows = INT64_MAX;
  CHECK(kith_knn(&q, &odd, NULL, &out, NULL) == refused);
  odd = b;
  odd.dtype = 6;
  CHECK_REFUSED(refused, "dtype = 6", kith_knn(&q, &odd, NULL, &out, NULL));
  odd = b;
  odd.space = -1;
  CHECK_REFUSED(refused, "space = -1", kith_knn(&q, &odd, NULL, &out, NULL));
  odd = b;
  odd.reserved = 1;
  CHECK_REFUSED(refused, "reserved", kith_knn(&q, &odd, NULL, &out, NULL));

  kith_index* index = NULL;
  CHECK_OK(kith_index_new("Flat", NULL, &index));
  CHECK(kith_index_add(index, &b, ids, 3, NULL) == refused);
  CHECK(kith_index_add(index, &b, ids, -3, NULL) == refused);
  CHECK(kith_index_add(index, &b, ids, 0, NULL) == refused);
  CHECK_OK(kith_index_add(index, &b, NULL, 0, NULL));
  const kith_filter short_mask = {.struct_size = sizeof short_mask, .form = KITH_FILTER_MASK, .data = base, .size = 10};
  kith_search_params params = {.struct_size = sizeof params, .filter = &short_mask};
  CHECK(kith_index_search(index, &q, &params, &out, NULL) == refused);
  const kith_filter no_form = {.struct_size = sizeof no_form, .form = 9, .data = base, .size = ROWS};
  params.filter = &no_form;
  CHECK_REFUSED(refused, "form = 9", kith_index_search(index, &q, &params, &out, NULL));
  const kith_filter below = {.struct_size = sizeof below, .form = KITH_FILTER_ROWS, .data = base, .size = -1};
  params.filter = &below;
  CHECK_REFUSED(refused, "kith_filter.size = -1", kith_index_search(index, &q, &params, &out, NULL));
  const kith_filter empty = {.struct_size = sizeof empty, .form = KITH_FILTER_ROWS};
  params.filter = &empty;
  CHECK_OK(kith_index_search(index, &q, &params, &out, NULL));
  CHECK(ids[0] == -1 && ids[QUERIES * K - 1] == -1);
  kith_range* range = NULL;
  const kith_search_params walk = {.struct_size = sizeof walk, .beam = 9};
  CHECK_REFUSED(refused, "range search", kith_index_range_search(index, &q, 1, &walk, &range, NULL));
  CHECK(range == NULL);
  CHECK_REFUSED(refused, "beam = 9 is for", kith_index_search(index, &q, &walk, &out, NULL));
  kith_index_free(index);
  const kith_knn_params unsure = {.struct_size = sizeof unsure, .check_finite = 5};
  CHECK_REFUSED(refused, "check_finite = 5", kith_knn(&q, &b, &unsure, &out, NULL));
  const kith_knn_params far = {.struct_size = sizeof far, .metric = "nearness"};
  CHECK_REFUSED(refused, "nearness", kith_knn(&q, &b, &far, &out, NULL));
  return NULL;
}

/* A struct as a later version might have it. */
typedef struct {
  kith_knn_params known;
  int64_t later;
} longer_params;

static const char* struct_sizes(const char* folder) {
  (void)folder;
  make_data();
  const kith_status refused = KITH_INVALID_ARGUMENT;
  const kith_matrix q = kith_rows(queries, KITH_F32, QUERIES, COLS);
  const kith_matrix b = kith_rows(base, KITH_F32, ROWS, COLS);
  int64_t ids[QUERIES];
  float distances[QUERIES];
  const kith_neighbors out = kith_neighbors_into(ids, distances, QUERIES, 1);
  longer_params later = {{.struct_size = sizeof later, .metric = "l1"}, 0};
  CHECK_OK(kith_knn(&q, &b, &later.known, &out, NULL));
  later.later = 7;
  CHECK_REFUSED(refused, "does not know", kith_knn(&q, &b, &later.known, &out, NULL));
  later.known.struct_size = sizeof(kith_knn_params);
  CHECK_OK(kith_knn(&q, &b, &later.known, &out, NULL));
  const size_t wrong_ones[] = {0, 1, 8, sizeof(kith_knn_params) - 1, 5000, SIZE_MAX};
  for (size_t i = 0; i < sizeof wrong_ones / sizeof *wrong_ones; ++i) {
    later.known.struct_size = wrong_ones[i];
    CHECK_REFUSED(refused, "sizeof(kith_knn_params)", kith_knn(&q, &b, &later.known, &out, NULL));
  }
  kith_matrix unset = b;
  unset.struct_size = 0;
  CHECK_REFUSED(refused, "sizeof(kith_matrix)", kith_knn(&q, &unset, NULL, &out, NULL));
  kith_kmeans* means = NULL;
  CHECK_OK(kith_kmeans_new(NULL, &means));
  struct {
    kith_kmeans_info known;
    int64_t later;
  } info = {{.struct_size = sizeof info}, 7};
  CHECK_OK(kith_kmeans_get_info(means, &info.known));
  CHECK(info.known.clusters == 8 && info.later == 0 && info.known.struct_size == sizeof info);
  info.known.struct_size = 4;
  CHECK_REFUSED(refused, "sizeof(kith_kmeans_info)", kith_kmeans_get_info(means, &info.known));
  kith_kmeans_free(means);
  return NULL;
}

const c_api_check c_api_checks[] = {
    {"VersionsAndNames", versions_and_names},
    {"Knn", knn},
    {"RangeSearch", range_search},
    {"FlatIndex", flat_index},
    {"IndexOfLists", index_of_lists},
    {"KMeans", kmeans},
    {"Quantizer", quantizer},
    {"Graph", graph},
    {"Files", files},
    {"Resources", resources},
    {"NullArguments", null_arguments},
    {"WrongSizes", wrong_sizes},
    {"StructSizes", struct_sizes},
};
const size_t c_api_check_count = sizeof c_api_checks / sizeof *c_api_checks;

/* Uses the installed Kith from C: one search, one error, one version. */
#include <kith/kith.h>

#include <stdio.h>
#include <string.h>

#if KITH_VERSION_NUMBER < 100
#error "the headers are of no version that there is"
#endif

int main(void) {
  /* Five points on a line; the nearest to 2.2 are the ones at 2, 3 and 1. */
  const float base[] = {0, 1, 2, 3, 4};
  const float query[] = {2.2f};
  const kith_matrix rows = kith_rows(base, KITH_F32, 5, 1);
  const kith_matrix queries = kith_rows(query, KITH_F32, 1, 1);
  int64_t ids[3];
  float distances[3];
  const kith_neighbors out = kith_neighbors_into(ids, distances, 1, 3);
  if (kith_knn(&queries, &rows, NULL, &out, NULL) != KITH_OK || ids[0] != 2 || ids[1] != 3 || ids[2] != 1) {
    printf("the search went wrong: %s\n", kith_last_message());
    return 1;
  }
  kith_index* index = NULL;
  if (kith_index_new("no such kind", NULL, &index) != KITH_INVALID_ARGUMENT) {
    puts("an unknown kind of index was accepted");
    return 1;
  }
  if (strcmp(kith_version(), KITH_VERSION_STRING) != 0) {
    printf("headers of %s, a library of %s\n", KITH_VERSION_STRING, kith_version());
    return 1;
  }
  printf("kith %s works from C; an error reads: %s\n", kith_version(), kith_last_message());
  return 0;
}

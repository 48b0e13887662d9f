// Passes over a source's rows, and its fingerprint: the hash of every 64 MiB of its rows, computed by the first pass
// and verified by all later ones, including those of other processes. A source that changed is rejected; one that was
// only touched, copied or moved is accepted.
#pragma once

#include <kith/resources.hpp>
#include <kith/vector_file.hpp>
#include <kith/view.hpp>

#include "io/container/xxh3.hpp"
#include "io/work_folder.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kith {

// Writes a source to a manifest: its shape and the names of its files; `whose` distinguishes several sources.
void put_source(const VectorFile& x, WorkManifest& manifest, const std::string& whose = "");

// The number of rows per hash; the last hash may cover fewer.
int64_t rows_per_hash(const VectorFile& x);

class SourceHasher {
 public:
  explicit SourceHasher(const VectorFile& x);
  // Adds the next rows, packed. If `known` is given, hashes are compared with it; InvalidArgument names the file. The rows
  // of several hashes are hashed on all threads.
  void update(const MatrixView& rows, const std::vector<uint64_t>* known, const Resources& resources);
  // Call after the last row.
  std::vector<uint64_t> finish(const std::vector<uint64_t>* known);

 private:
  void end_piece(uint64_t hash, const std::vector<uint64_t>* known);

  const VectorFile& x_;
  const int64_t rows_per_hash_;
  int64_t row_ = 0;
  Xxh3 hash_;
  std::vector<uint64_t> hashes_;
};

// The size of batches in a pass: up to `most` rows, not crossing a multiple of `together`.
struct PassBatch {
  int64_t most = 1;
  int64_t together = INT64_MAX;
};
// Rows of a batch that keep all threads busy, regardless of memory.
int64_t most_pass_rows(const VectorFile& x);
// The same where hashing takes longer than the body: of several hashes.
int64_t most_hashed_rows(const VectorFile& x, const Resources& resources);
// Calls body(first, rows) for all rows, in order, batch by batch, and returns the hashes, which are computed
// concurrently. Reports progress for the stage.
std::vector<uint64_t> pass_over(const VectorFile& x, std::string_view stage, const PassBatch& batch,
                                const std::vector<uint64_t>* known, const Resources& resources,
                                const std::function<void(int64_t first, const MatrixView& rows)>& body);

// The memory of a pass besides that of its body.
int64_t pass_bytes(const VectorFile& x, int64_t batch);

}  // namespace kith

// Passes over a source's rows, and its fingerprint: the hash of every 64 MiB of its rows, taken by the first pass and
// verified by all that follow, also by those of another process. A source that changed is refused; one that was only
// touched, copied or moved is the same.
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

// What a source is called in a manifest: its shape, and the names of its files; `whose` where there are several.
void put_source(const VectorFile& x, WorkManifest& manifest, const std::string& whose = "");

// Rows that one hash is of; the last may have fewer.
int64_t rows_per_hash(const VectorFile& x);

class SourceHasher {
 public:
  explicit SourceHasher(const VectorFile& x);
  // The next rows, packed. Where `known` is given, hashes are compared as they come: InvalidArgument names the file.
  void update(const MatrixView& rows, const std::vector<uint64_t>* known);
  // After the last row.
  std::vector<uint64_t> finish(const std::vector<uint64_t>* known);

 private:
  void end_piece(const std::vector<uint64_t>* known);

  const VectorFile& x_;
  const int64_t rows_per_hash_;
  int64_t row_ = 0;
  Xxh3 hash_;
  std::vector<uint64_t> hashes_;
};

// The rows of a pass at a time: up to `most`, and none across a multiple of `together`.
struct PassBatch {
  int64_t most = 1;
  int64_t together = INT64_MAX;
};
// Rows of a batch that keep all threads busy, where memory does not matter.
int64_t most_pass_rows(const VectorFile& x);
// Calls body(first, rows) for all rows, in order, a batch at a time, and returns the hashes, which are taken beside the
// body. The stage is told progress.
std::vector<uint64_t> pass_over(const VectorFile& x, std::string_view stage, const PassBatch& batch,
                                const std::vector<uint64_t>* known, const Resources& resources,
                                const std::function<void(int64_t first, const MatrixView& rows)>& body);

// What a pass takes beside what its body does.
int64_t pass_bytes(const VectorFile& x, int64_t batch);

}  // namespace kith

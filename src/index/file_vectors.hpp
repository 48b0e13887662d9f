// The original vectors of an index in a file, for a second look at candidates: the vector with id i is row i of the
// file. So a file that an index was built from goes with it, also after a remove. Rows are read as they are asked for,
// into memory that counts against the limit; nothing is mapped.
#pragma once

#include <kith/resources.hpp>
#include <kith/vector_file.hpp>

#include "index/index_version.hpp"
#include "index/refine.hpp"

#include <cstdint>

namespace kith {

// InvalidArgument for a file that cannot hold the vectors of `state`, which may be null, and for an index that keeps
// vectors for a second look itself.
void check_refine_from(const VectorFile& file, const IndexState* state, const IndexParams& params);

class FileVectors final : public RefineVectors {
 public:
  // All but the resources must outlive it.
  FileVectors(const VectorFile& file, const IndexVersion& version, const IndexParams& params,
              const Resources& resources);

  // InvalidArgument for a vector whose id is no row of the file, and for values that cannot be searched.
  void fetch(const int64_t* rows, int64_t count, float* out) const override;

 private:
  const VectorFile& file_;
  const IndexVersion& version_;
  const IndexParams& params_;
  const ReadMemory memory_;
};

}  // namespace kith

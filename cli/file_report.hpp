// The part of a report about a file of vectors.
#pragma once

#include <kith/vector_file.hpp>

#include "json_output.hpp"

namespace kith::cli {

inline JsonObject describe_vectors(const VectorFile& file) {
  JsonObject json;
  json.text("path", file.path())
      .text("dtype", name_of(file.dtype()))
      .number("rows", file.rows())
      .number("cols", file.cols());
  return json;
}

}  // namespace kith::cli

// All vectors of a file or of several, mapped if possible, otherwise read.
#pragma once

#include <kith/file_info.hpp>
#include <kith/mapped_vectors.hpp>
#include <kith/matrix_buffer.hpp>
#include <kith/vector_file.hpp>

#include <optional>
#include <string>
#include <vector>

namespace kith::cli {

class WholeVectors {
 public:
  WholeVectors(const std::string& path, const Resources& resources) {
    const std::vector<std::string> files = files_of(path);
    const std::string format = files.size() == 1 ? file_info(files.front()).format : "";
    if (files.size() > 1 || format == "hdf5" || format == "idx") {  // which may be compressed
      read_ = read_vectors(path, {}, resources);
    } else {
      mapped_.emplace(files.front(), resources);
    }
  }

  MatrixView view() const { return mapped_ ? mapped_->view() : read_.view(); }

 private:
  std::optional<MappedVectors> mapped_;
  MatrixBuffer read_;
};

}  // namespace kith::cli

// Rows that the calls work on.
#pragma once

#include "reference/data.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

#include <unistd.h>

namespace kith::testing {

inline const reference::Matrix<float>& base_rows() {
  static const reference::Matrix<float> rows = reference::make_floats(reference::Shape::gaussian, 1500, 24, 1);
  return rows;
}

inline const reference::Matrix<float>& query_rows() {
  static const reference::Matrix<float> rows = reference::make_floats(reference::Shape::gaussian, 60, 24, 2);
  return rows;
}

// The same as f64, far from 0: they lose an offset.
inline reference::Matrix<double> far_from_0(const reference::Matrix<float>& rows) {
  reference::Matrix<double> far(rows.rows, rows.cols);
  for (size_t i = 0; i < far.values.size(); ++i) far.values[i] = 1e6 + static_cast<double>(rows.values[i]);
  return far;
}
inline MatrixView far_base_rows() {
  static const reference::Matrix<double> rows = far_from_0(base_rows());
  return {rows.values.data(), rows.rows, rows.cols};
}
inline MatrixView far_query_rows() {
  static const reference::Matrix<double> rows = far_from_0(query_rows());
  return {rows.values.data(), rows.rows, rows.cols};
}

// For files: removed with what is in it when the program ends.
inline std::string scratch_file(const std::string& name) {
  struct Folder {
    std::filesystem::path path = std::filesystem::temp_directory_path() / ("kith_limits_" + std::to_string(::getpid()));
    Folder() { std::filesystem::create_directories(path); }
    ~Folder() { std::filesystem::remove_all(path); }
  };
  static const Folder folder;
  return (folder.path / name).string();
}

}  // namespace kith::testing

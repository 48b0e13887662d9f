// A mapped file of vectors as a view: pages are read from the disk when they are touched, and evicted when memory is
// scarce.
//
// Files with rows at fixed offsets can be mapped: fvecs, bvecs, the bin formats, .npy, plain IDX, and contiguous HDF5
// datasets. Compressed files are InvalidArgument; read them instead. The view's row_stride skips the row headers of
// fvecs and bvecs, of which only the first and the last are checked.
//
// While a file is mapped its length and content must not change. If another program truncates it, touching the lost
// pages ends this process with SIGBUS, which no library can prevent. Replacing it by rename, as Kith's writers do, is
// safe. Mapped pages do not count against memory limits. Under a limit on host memory the file is therefore read into a
// buffer, which counts, instead of mapped.
#pragma once

#include <kith/export.hpp>
#include <kith/file_info.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace kith {

class KITH_EXPORT MappedVectors {
 public:
  explicit MappedVectors(const std::string& path, const Resources& resources = Resources());
  ~MappedVectors();
  MappedVectors(MappedVectors&&) noexcept;
  MappedVectors& operator=(MappedVectors&&) noexcept;

  // Valid as long as this object.
  MatrixView view() const;
  // False if the file was read because of a memory limit.
  bool is_mapped() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A mapped file of vectors or ids, with the values that it stores: those of an .ibin are int32. It is never read into a
// buffer, whatever the limits.
class KITH_EXPORT MappedFile {
 public:
  explicit MappedFile(const std::string& path);

  const FileInfo& info() const { return info_; }
  // Valid as long as a copy of this object; null without rows.
  const void* data() const { return data_; }
  int64_t row_stride() const { return row_stride_; }  // in values

 private:
  FileInfo info_;
  std::shared_ptr<const void> mapping_;
  const void* data_ = nullptr;
  int64_t row_stride_ = 0;
};

}  // namespace kith

// A file of vectors as a view: its pages come from the disk when they are touched, and leave memory when others need
// it.
//
// Files whose rows lie at fixed places can be mapped: fvecs, bvecs, the bin formats, .npy, plain IDX, and HDF5 datasets
// stored in one piece. Compressed ones are InvalidArgument: read them. The rows of fvecs and bvecs files are apart by
// their headers, which the view's row_stride passes over; of these headers only the first and the last are checked.
//
// While a file is mapped it must keep its length and its content: where another program cuts it short, touching the
// lost pages ends this process with SIGBUS, which no library can prevent. Replacing it by rename, as Kith's writers do,
// is safe. Mapped pages belong to no memory limit: with a limit on the host's memory the file is read into a buffer
// that counts, and nothing is mapped.
#pragma once

#include <kith/export.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

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
  // False where a memory limit made it read the file instead.
  bool is_mapped() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kith

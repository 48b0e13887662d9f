#include "rows/threaded_rows.hpp"

#include <kith/error.hpp>
#include <kith/row_reader.hpp>

#include "core/divide.hpp"
#include "core/parallel_for.hpp"
#include "io/file_format.hpp"
#include "io/row_slice.hpp"
#include "rows/rows_info.hpp"

#include <algorithm>
#include <memory>

namespace kith {
namespace {

constexpr int64_t kReadBytes = int64_t{2} << 20;  // by a thread at a time

class ThreadedRows final : public RowReader {
 public:
  // A read may run on a thread of its own, without progress or cancellation.
  ThreadedRows(const VectorFile& file, const Resources& resources)
      : file_(file), resources_(resources.with_progress({}).with_cancel(CancelToken())) {}

  const std::string& path() const override { return file_.path(); }
  DType dtype() const override { return file_.dtype(); }
  int64_t rows() const override { return file_.rows(); }
  int64_t cols() const override { return file_.cols(); }
  int64_t files() const override { return file_.files(); }
  RowPlace place_of(int64_t row) const override { return file_.place_of(row); }

  void read_rows(int64_t first, int64_t count, void* out) const override {
    const int64_t each = std::max<int64_t>(1, kReadBytes / std::max<int64_t>(1, RowsInfo(file_).row_bytes()));
    const MutableMatrixView all(out, dtype(), {count, cols(), cols()});
    ProgressMeter meter("read", count, resources_);
    parallel_for(divide_up(count, each), meter, resources_, [&](int64_t number, int) {
      const int64_t at = number * each;
      file_.read(first + at, all.slice(at, std::min(each, count - at)));
    });
  }

 private:
  const VectorFile& file_;
  const Resources resources_;
};

}  // namespace

// HDF5 has one lock, and readers that are no files are left alone.
bool reads_in_parallel(const VectorFile& file) {
  if (file.rows() == 0 || file.memory_bytes() > 0) return false;
  try {
    const FileFormat format = parse_file_name(file.place_of(0).path).format;
    return format != FileFormat::hdf5 && format != FileFormat::idx;
  } catch (const InvalidArgument&) {
    return false;
  }
}

VectorFile read_by_threads(const VectorFile& file, const Resources& resources) {
  if (resources.threads() > 1 && reads_in_parallel(file)) return VectorFile(std::make_shared<ThreadedRows>(file, resources));
  return slice_of(file, 0, file.rows());
}

}  // namespace kith

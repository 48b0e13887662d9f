#include <kith/mapped_vectors.hpp>

#include <kith/matrix_buffer.hpp>
#include <kith/vector_file.hpp>

#include "io/file_mapping.hpp"
#include "io/vector_dtype.hpp"

namespace kith {

struct MappedVectors::Impl {
  MappedMatrix mapped;
  MatrixBuffer read;
  MatrixView view;
  bool is_mapped = true;
};

MappedVectors::MappedVectors(const std::string& path, const Resources& resources) : impl_(std::make_unique<Impl>()) {
  const MatrixFile file(path);
  const DType dtype = vector_dtype(file);
  if (resources.options().host_memory_limit != kNoLimit) {
    check_mappable(file);  // what works with a limit works without
    impl_->read = read_vectors(path, {}, resources);
    impl_->view = impl_->read.view();
    impl_->is_mapped = false;
    return;
  }
  impl_->mapped = map_matrix(file);
  const FileLayout& layout = file.layout();
  impl_->view = MatrixView(impl_->mapped.values, dtype, {layout.rows, layout.cols, impl_->mapped.row_stride});
}

MappedVectors::~MappedVectors() = default;
MappedVectors::MappedVectors(MappedVectors&&) noexcept = default;
MappedVectors& MappedVectors::operator=(MappedVectors&&) noexcept = default;

MatrixView MappedVectors::view() const { return impl_->view; }
bool MappedVectors::is_mapped() const { return impl_->is_mapped; }

}  // namespace kith

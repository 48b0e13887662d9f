#include <kith/vector_file.hpp>

#include <kith/error.hpp>

#include "core/host_array.hpp"
#include "io/file_format.hpp"
#include "io/matrix_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kith {
namespace {

// int32 ids are converted in pieces of this many.
constexpr int64_t kPieceIds = kPieceBytes / array_bytes<int32_t>(1);

ElementType id_element(const std::string& path) {
  const FileFormat format = parse_file_name(path).format;
  const ElementType element = element_of(format).value_or(ElementType::i64);
  if (!traits_of(element).dtype && format != FileFormat::idx) return element;
  throw InvalidArgument(fmt::format("'{}' cannot hold ids: .{} files hold vectors; choose .ibin, .ivecs, .npy or .hdf5",
                                    path, name_of(format)));
}

void check_int32(const int64_t* ids, int64_t values, int64_t cols, const std::string& path) {
  const int64_t* wrong = std::find_if(ids, ids + values, [](int64_t id) { return id != static_cast<int32_t>(id); });
  if (wrong == ids + values) return;
  throw InvalidArgument(
      fmt::format("id {} (row {} of this piece, column {}) does not fit '{}', which holds int32 up to {}; "
                  "write an .npy for larger ids",
                  *wrong, (wrong - ids) / cols, (wrong - ids) % cols, path, INT32_MAX));
}

void check_pointer(const int64_t* ids, int64_t values, const std::string& path) {
  if (ids == nullptr && values > 0)
    throw InvalidArgument(fmt::format("a null pointer was given for {} ids of '{}'", values, path));
}

}  // namespace

struct IdFile::Impl {
  MatrixFile file;
};

IdFile::IdFile(const std::string& path) : impl_(new Impl{MatrixFile(path)}) {
  const ElementTraits& traits = traits_of(impl_->file.layout().element);
  if (traits.dtype) {
    throw InvalidArgument(
        fmt::format("'{}' holds {} vectors, not ids; give a file of int32 or int64 ids", path, traits.name));
  }
}
IdFile::~IdFile() = default;
IdFile::IdFile(IdFile&&) noexcept = default;
IdFile& IdFile::operator=(IdFile&&) noexcept = default;

const std::string& IdFile::path() const { return impl_->file.path(); }
int64_t IdFile::rows() const { return impl_->file.layout().rows; }
int64_t IdFile::cols() const { return impl_->file.layout().cols; }

void IdFile::read(int64_t first, int64_t count, int64_t* out) const {
  impl_->file.check_rows(first, count);
  const int64_t values = count * cols();
  check_pointer(out, values, path());
  if (impl_->file.layout().element == ElementType::i64) return impl_->file.read_values(first * cols(), values, out);
  std::array<int32_t, kPieceIds> piece;
  for (int64_t done = 0; done < values; done += kPieceIds) {
    const int64_t part = std::min(kPieceIds, values - done);
    impl_->file.read_values(first * cols() + done, part, piece.data());
    std::copy_n(piece.data(), part, out + done);
  }
}

ReadMemory IdFile::reserve_memory(const Resources& resources) const { return impl_->file.reserve_memory(resources); }

struct IdFileWriter::Impl {
  MatrixFileWriter file;
};

IdFileWriter::IdFileWriter(const std::string& path, int64_t rows, int64_t cols)
    : impl_(new Impl{MatrixFileWriter(path, id_element(path), rows, cols)}) {}
IdFileWriter::~IdFileWriter() = default;
IdFileWriter::IdFileWriter(IdFileWriter&&) noexcept = default;
IdFileWriter& IdFileWriter::operator=(IdFileWriter&&) noexcept = default;

void IdFileWriter::append(const int64_t* ids, int64_t count) {
  MatrixFileWriter& file = impl_->file;
  file.check_room(count);
  const int64_t values = count * file.layout().cols;
  check_pointer(ids, values, file.path());
  if (file.layout().element == ElementType::i64) {
    return file.write(ids, array_bytes<int64_t>(values));
  }
  check_int32(ids, values, file.layout().cols, file.path());
  std::array<int32_t, kPieceIds> piece;
  for (int64_t done = 0; done < values; done += kPieceIds) {
    const int64_t part = std::min(kPieceIds, values - done);
    std::transform(ids + done, ids + done + part, piece.data(), [](int64_t id) { return static_cast<int32_t>(id); });
    file.write(piece.data(), array_bytes<int32_t>(part));
  }
}

void IdFileWriter::sync() { impl_->file.sync(); }
void IdFileWriter::commit() { impl_->file.commit(); }

}  // namespace kith

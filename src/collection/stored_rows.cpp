#include "collection/stored_rows.hpp"

#include <kith/error.hpp>

#include "io/file_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

namespace kith {

int64_t StoredRows::place_of(int64_t row) const {
  if (row < first_row_ || row > last_row_) return -1;
  if (contiguous()) return row - first_row_;
  int64_t low = 0;
  int64_t high = size_;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (read_row(middle) < row) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < size_ && read_row(low) == row ? low : -1;
}

void RowBlock::read_vectors(int64_t first, int64_t count, void* out) const {
  const MatrixView view = arrays_.vectors.view();
  const int64_t row_bytes = view.cols() * size_of(view.dtype());
  std::memcpy(out, view.row(first), static_cast<size_t>(count * row_bytes));
}

std::shared_ptr<const RowBlock> RowBlock::join(const std::vector<const StoredRows*>& blocks, DType dtype, int64_t cols,
                                               IdType ids, const Resources& resources) {
  int64_t size = 0;
  for (const StoredRows* block : blocks) size += block->size();
  Arrays arrays;
  arrays.vectors = MatrixBuffer(dtype, size, cols, "the newest rows", resources);
  arrays.rows.reserve(static_cast<size_t>(size));
  std::vector<int64_t> numbers;
  std::vector<std::string> texts;
  int64_t at = 0;
  for (const StoredRows* block : blocks) {
    block->read_vectors(0, block->size(), arrays.vectors.mutable_view().row(at));
    at += block->size();
    for (int64_t i = 0; i < block->size(); ++i) {
      arrays.rows.push_back(block->row(i));
      if (ids == IdType::integer) {
        numbers.push_back(block->number_id(i));
      } else {
        texts.push_back(block->text_id(i));
      }
    }
  }
  arrays.ids = ids == IdType::integer ? ItemIds(std::move(numbers)) : ItemIds(std::move(texts));
  return std::make_shared<const RowBlock>(std::move(arrays));
}

SegmentFile::SegmentFile(Disk& disk, const std::string& folder, SegmentRow row, const CollectionParams& params,
                         bool mapped)
    : StoredRows(row.rows, row.first_row, row.last_row),
      entry_(std::move(row)),
      file_(disk.open(folder + "/" + entry_.file)),
      container_(file_),
      dtype_(params.dtype),
      cols_(params.dimension) {
  if (container_.head_hash() != static_cast<uint64_t>(entry_.hash)) {
    container_.corrupt("it is not the segment that the collection's database names: it was exchanged, or the database "
                       "was; put the file back, or restore a snapshot");
  }
  vectors_ = &expect("vectors", section_type(dtype_), {entry_.rows, cols_});
  rows_ = &expect("rows", SectionType::i64, {entry_.rows});
  if (params.ids == IdType::integer) {
    ids_ = &expect("ids", SectionType::i64, {entry_.rows});
  } else {
    offsets_ = &expect("id.offsets", SectionType::i64, {entry_.rows + 1});
    texts_ = container_.find("id.text");
    if (texts_ == nullptr || texts_->type != SectionType::u8) container_.corrupt("it has no texts of ids");
  }
  if (mapped) mapping_ = file_->map();
}

const Section& SegmentFile::expect(std::string_view name, SectionType type, std::vector<int64_t> shape) const {
  const Section* const section = container_.find(name);
  if (container_.kind() != "segment" || section == nullptr || section->type != type || section->shape != shape) {
    container_.corrupt(fmt::format("it has no section '{}' of the collection's shape", name));
  }
  return *section;
}

void SegmentFile::fetch(const Section& section, int64_t first, void* out, int64_t bytes) const {
  if (first < 0 || bytes < 0 || first > section.bytes - bytes) container_.corrupt(section, "it points outside of itself");
  if (mapping_ != nullptr) {
    std::memcpy(out, mapping_.get() + section.offset + first, static_cast<size_t>(bytes));
  } else {
    container_.read_part(section, first, out, bytes);
  }
}

int64_t SegmentFile::number_id(int64_t place) const { return read<int64_t>(*ids_, place); }

std::string SegmentFile::text_id(int64_t place) const {
  const auto begin = read<int64_t>(*offsets_, place);
  const auto end = read<int64_t>(*offsets_, place + 1);
  if (begin < 0 || end < begin || end > texts_->bytes) container_.corrupt(*offsets_, "it points outside of the texts");
  std::string text(static_cast<size_t>(end - begin), '\0');
  fetch(*texts_, begin, text.data(), end - begin);
  return text;
}

void SegmentFile::read_vectors(int64_t first, int64_t count, void* out) const {
  const int64_t row_bytes = cols_ * size_of(dtype_);
  fetch(*vectors_, first * row_bytes, out, count * row_bytes);
}

MatrixView SegmentFile::view() const {
  if (mapping_ == nullptr) return {};
  return {mapping_.get() + vectors_->offset, dtype_, {entry_.rows, cols_, cols_}};
}

namespace {

class MatrixReader final : public RowReader {
 public:
  MatrixReader(const MatrixView& matrix, std::string name) : matrix_(matrix), name_(std::move(name)) {}
  const std::string& path() const override { return name_; }
  DType dtype() const override { return matrix_.dtype(); }
  int64_t rows() const override { return matrix_.rows(); }
  int64_t cols() const override { return matrix_.cols(); }
  void read_rows(int64_t first, int64_t count, void* out) const override {
    const auto row_bytes = static_cast<size_t>(matrix_.cols() * size_of(matrix_.dtype()));
    auto* to = static_cast<std::byte*>(out);
    for (int64_t i = 0; i < count; ++i, to += row_bytes) std::memcpy(to, matrix_.row(first + i), row_bytes);
  }

 private:
  MatrixView matrix_;
  std::string name_;
};

class StoredReader final : public RowReader {
 public:
  StoredReader(std::shared_ptr<const StoredRows> rows, DType dtype, int64_t cols, std::string name)
      : rows_(std::move(rows)), dtype_(dtype), cols_(cols), name_(std::move(name)) {}
  const std::string& path() const override { return name_; }
  DType dtype() const override { return dtype_; }
  int64_t rows() const override { return rows_->size(); }
  int64_t cols() const override { return cols_; }
  void read_rows(int64_t first, int64_t count, void* out) const override { rows_->read_vectors(first, count, out); }

 private:
  std::shared_ptr<const StoredRows> rows_;
  DType dtype_;
  int64_t cols_;
  std::string name_;
};

}  // namespace

VectorFile matrix_as_file(const MatrixView& matrix, std::string name) {
  return VectorFile(std::make_shared<const MatrixReader>(matrix, std::move(name)));
}

VectorFile rows_as_file(std::shared_ptr<const StoredRows> rows, DType dtype, int64_t cols, std::string name) {
  return VectorFile(std::make_shared<const StoredReader>(std::move(rows), dtype, cols, std::move(name)));
}

}  // namespace kith

// Immutable vectors of consecutive items, with the row and id of each: a segment's file, or a block of the newest rows
// in memory. A row is the number that an item got when it was added; a place is its index here. Rows ascend.
#pragma once

#include <kith/collection.hpp>
#include <kith/host_buffer.hpp>
#include <kith/row_reader.hpp>
#include <kith/vector_file.hpp>

#include "collection/schema.hpp"
#include "io/container/container_file.hpp"
#include "io/disk.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace kith {

class StoredRows {
 public:
  virtual ~StoredRows() = default;

  int64_t size() const { return size_; }
  int64_t first_row() const { return first_row_; }
  int64_t last_row() const { return last_row_; }
  bool contiguous() const { return last_row_ - first_row_ + 1 == size_; }

  int64_t row(int64_t place) const { return contiguous() ? first_row_ + place : read_row(place); }
  // -1: it is not here.
  int64_t place_of(int64_t row) const;
  virtual int64_t number_id(int64_t place) const = 0;
  virtual std::string text_id(int64_t place) const = 0;
  // One vector, as it is stored.
  virtual void read_vector(int64_t place, void* out) const = 0;
  // Vectors and ids of places first .. first + count - 1, one behind the other.
  virtual void read_vectors(int64_t first, int64_t count, void* out) const = 0;
  // A view of all vectors; empty if they are not in memory and must be read.
  virtual MatrixView view() const = 0;

 protected:
  StoredRows(int64_t size, int64_t first_row, int64_t last_row)
      : size_(size), first_row_(first_row), last_row_(last_row) {}
  virtual int64_t read_row(int64_t place) const = 0;

 private:
  int64_t size_;
  int64_t first_row_;
  int64_t last_row_;
};

// In memory, for the newest rows.
struct RowBlock final : public StoredRows {
 public:
  struct Arrays {
    MatrixBuffer vectors;
    std::vector<int64_t> rows;
    ItemIds ids;
  };
  explicit RowBlock(Arrays arrays)
      : StoredRows(static_cast<int64_t>(arrays.rows.size()), arrays.rows.front(), arrays.rows.back()),
        arrays_(std::move(arrays)) {}

  // The places that `keep` names of several blocks, one after the other.
  static std::shared_ptr<const RowBlock> join(const std::vector<const StoredRows*>& blocks, DType dtype, int64_t cols,
                                              IdType ids, const Resources& resources);

  int64_t number_id(int64_t place) const override { return arrays_.ids.numbers()[static_cast<size_t>(place)]; }
  std::string text_id(int64_t place) const override { return arrays_.ids.texts()[static_cast<size_t>(place)]; }
  void read_vector(int64_t place, void* out) const override { read_vectors(place, 1, out); }
  void read_vectors(int64_t first, int64_t count, void* out) const override;
  MatrixView view() const override { return arrays_.vectors.view(); }

 private:
  int64_t read_row(int64_t place) const override { return arrays_.rows[static_cast<size_t>(place)]; }

  Arrays arrays_;
};

// A segment's file: a .kith container of the kind "segment".
//
//   vectors   dtype, rows x dimension
//   rows      i64, ascending
//   ids       i64; or id.offsets, i64, one more than rows, and id.text, the texts one behind the other
//
// Opening checks the header and table against the database's hash. What addresses memory is checked where it is used;
// the values of vectors, rows and ids only by verify().
class SegmentFile final : public StoredRows {
 public:
  // `mapped`: the file is mapped; otherwise it is read on demand.
  SegmentFile(Disk& disk, const std::string& folder, SegmentRow row, const CollectionParams& params, bool mapped);

  const SegmentRow& entry() const { return entry_; }
  const std::string& path() const { return file_->path(); }
  const ContainerFile& container() const { return container_; }
  bool mapped() const { return mapping_ != nullptr; }

  int64_t number_id(int64_t place) const override;
  std::string text_id(int64_t place) const override;
  void read_vector(int64_t place, void* out) const override { read_vectors(place, 1, out); }
  void read_vectors(int64_t first, int64_t count, void* out) const override;
  MatrixView view() const override;

 private:
  int64_t read_row(int64_t place) const override { return read<int64_t>(*rows_, place); }
  const Section& expect(std::string_view name, SectionType type, std::vector<int64_t> shape) const;
  void fetch(const Section& section, int64_t first, void* out, int64_t bytes) const;
  template <typename T>
  T read(const Section& section, int64_t at) const {
    T value{};
    fetch(section, at * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
    return value;
  }

  SegmentRow entry_;
  std::shared_ptr<const DiskFile> file_;
  ContainerFile container_;
  std::shared_ptr<const std::byte> mapping_;
  DType dtype_;
  int64_t cols_;
  const Section* vectors_ = nullptr;
  const Section* rows_ = nullptr;
  const Section* ids_ = nullptr;
  const Section* offsets_ = nullptr;
  const Section* texts_ = nullptr;
};

// A matrix and a segment as VectorFile wants them, for searches that read instead of mapping.
VectorFile matrix_as_file(const MatrixView& matrix, std::string name);
VectorFile rows_as_file(std::shared_ptr<const StoredRows> rows, DType dtype, int64_t cols, std::string name);

}  // namespace kith

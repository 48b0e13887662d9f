// What a call adds, checked and in the form in which it is stored.
#pragma once

#include <kith/collection.hpp>

#include "collection/stored_rows.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kith {

// Ids of the collection's kind; InvalidArgument else. No ids are of any kind.
void check_ids(const ItemIds& ids, IdType type);
// An id for an error.
std::string id_text(const ItemIds& ids, int64_t at);

class CheckedItems {
 public:
  // InvalidArgument that says what is wrong, and where. `replaces`: of equal ids the last counts, the others are left out.
  CheckedItems(const Items& items, const CollectionParams& params, bool replaces, const Resources& resources);

  int64_t size() const { return static_cast<int64_t>(kept_.size()); }
  bool has_ids() const { return has_ids_; }
  const ItemIds& ids() const { return ids_; }
  void give_ids(std::vector<int64_t> numbers) { ids_ = ItemIds(std::move(numbers)); }
  const std::byte* vector(int64_t i) const { return vectors_.row(kept_[static_cast<size_t>(i)]); }
  int64_t vector_bytes() const { return vectors_.cols() * size_of(vectors_.dtype()); }
  const ColumnValue& value(int64_t i, size_t column) const;
  std::string_view payload(int64_t i) const;
  // Hash of everything stored for an item.
  uint64_t hash(int64_t i) const;

  // In memory, with the rows from `first_row` on.
  std::shared_ptr<const RowBlock> block(int64_t first_row, const Resources& resources) const;
  // The same without a copy of the vectors, as long as this lives.
  std::shared_ptr<const StoredRows> stored(int64_t first_row) const;

 private:
  const CollectionParams& params_;
  MatrixBuffer converted_;
  MatrixView vectors_;
  bool has_ids_;
  ItemIds ids_;  // of those kept
  std::vector<int64_t> kept_;  // their rows in the caller's arrays
  std::vector<std::vector<ColumnValue>> columns_;  // for each of the collection's; empty: no values
  const std::vector<std::string>& payloads_;
};

// XXH3 of an item's id, vector, columns that have a value, and payload.
class ItemHash {
 public:
  ItemHash();
  ~ItemHash();
  void id(int64_t number);
  void id(std::string_view text);
  void vector(const void* bytes, int64_t count);
  void column(std::string_view name, const ColumnValue& value);
  uint64_t end(std::string_view payload);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kith

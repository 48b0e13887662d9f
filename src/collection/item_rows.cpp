#include "collection/item_rows.hpp"

#include <kith/error.hpp>

#include "collection/search_queries.hpp"
#include "collection/sqlite.hpp"
#include "io/container/xxh3.hpp"
#include "io/dtype_conversion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <unordered_map>
#include <utility>

namespace kith {
namespace {

// SQLite knows JSON; a connection of its own, in memory, checks texts.
class JsonCheck {
 public:
  bool valid(const std::string& text) {
    if (db_ == nullptr && sqlite3_open(":memory:", &db_) == SQLITE_OK) {
      sqlite3_prepare_v2(db_, "SELECT json_valid(?)", -1, &statement_, nullptr);
    }
    if (statement_ == nullptr) throw Unsupported("this SQLite has no JSON functions; a json column needs them");
    sqlite3_bind_text64(statement_, 1, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
    const bool valid = sqlite3_step(statement_) == SQLITE_ROW && sqlite3_column_int(statement_, 0) == 1;
    sqlite3_reset(statement_);
    return valid;
  }
  JsonCheck() = default;
  ~JsonCheck() {
    sqlite3_finalize(statement_);
    sqlite3_close(db_);
  }
  JsonCheck(const JsonCheck&) = delete;
  JsonCheck& operator=(const JsonCheck&) = delete;

 private:
  sqlite3* db_ = nullptr;
  sqlite3_stmt* statement_ = nullptr;
};

std::string_view name_of_value(const ColumnValue& value) {
  constexpr std::string_view kNames[] = {"nothing", "int", "real", "bool", "text"};
  return kNames[value.index()];
}

// As it is stored in a column of that type.
ColumnValue checked_value(const ColumnValue& value, const Column& column, int64_t item, JsonCheck& json) {
  if (value.index() == 0) return value;
  const auto is = [&]<typename T>(const T*) { return std::holds_alternative<T>(value); };
  switch (column.type) {
    case ColumnType::integer:
      if (is(static_cast<int64_t*>(nullptr))) return value;
      break;
    case ColumnType::real:
      if (const auto* const number = std::get_if<int64_t>(&value)) return static_cast<double>(*number);
      if (const auto* const real = std::get_if<double>(&value)) {
        return std::isnan(*real) ? ColumnValue() : value;  // SQL has no NaN
      }
      break;
    case ColumnType::boolean:
      if (is(static_cast<bool*>(nullptr))) return value;
      break;
    case ColumnType::text:
      if (is(static_cast<std::string*>(nullptr))) return value;
      break;
    case ColumnType::json:
      if (const auto* const text = std::get_if<std::string>(&value)) {
        if (json.valid(*text)) return value;
        constexpr size_t kShown = 60;
        throw InvalidArgument(fmt::format("column '{}', item {}: '{}' is no JSON", column.name, item,
                                          text->substr(0, kShown)));
      }
      break;
  }
  throw InvalidArgument(fmt::format("column '{}', item {}: it holds {}, and was given {}", column.name, item,
                                    name_of(column.type), name_of_value(value)));
}

// The caller's vectors, with ids; for a segment that is written at once.
class GivenRows final : public StoredRows {
 public:
  GivenRows(const CheckedItems& items, const MatrixView& vectors, int64_t first_row, bool whole)
      : StoredRows(items.size(), first_row, first_row + items.size() - 1),
        items_(items),
        vectors_(vectors),
        whole_(whole) {}
  int64_t number_id(int64_t place) const override { return items_.ids().numbers()[static_cast<size_t>(place)]; }
  std::string text_id(int64_t place) const override { return items_.ids().texts()[static_cast<size_t>(place)]; }
  void read_vector(int64_t place, void* out) const override { read_vectors(place, 1, out); }
  void read_vectors(int64_t first, int64_t count, void* out) const override {
    auto* to = static_cast<std::byte*>(out);
    const auto bytes = static_cast<size_t>(items_.vector_bytes());
    for (int64_t i = 0; i < count; ++i, to += bytes) std::memcpy(to, items_.vector(first + i), bytes);
  }
  MatrixView view() const override { return whole_ ? vectors_ : MatrixView(); }

 private:
  int64_t read_row(int64_t place) const override { return first_row() + place; }
  const CheckedItems& items_;
  MatrixView vectors_;
  bool whole_;  // all of them, one behind the other
};

template <typename Id>
std::vector<int64_t> last_of_each(const std::vector<Id>& ids) {
  std::unordered_map<Id, int64_t> last;
  last.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) last[ids[i]] = static_cast<int64_t>(i);
  std::vector<int64_t> kept;
  kept.reserve(last.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (last.at(ids[i]) == static_cast<int64_t>(i)) kept.push_back(static_cast<int64_t>(i));
  }
  return kept;
}

template <typename T>
std::vector<T> picked(const std::vector<T>& from, const std::vector<int64_t>& which) {
  std::vector<T> out;
  out.reserve(which.size());
  for (const int64_t i : which) out.push_back(from[static_cast<size_t>(i)]);
  return out;
}

}  // namespace

void check_ids(const ItemIds& ids, IdType type) {
  if (ids.empty() || ids.type() == type) return;
  throw InvalidArgument(fmt::format("the collection's ids are {}; {} were given", type == IdType::text ? "texts" : "integers",
                                    type == IdType::text ? "integers" : "texts"));
}

std::string id_text(const ItemIds& ids, int64_t at) {
  const auto i = static_cast<size_t>(at);
  constexpr size_t kShown = 80;
  return ids.type() == IdType::integer ? std::to_string(ids.numbers()[i])
                                       : fmt::format("'{}'", ids.texts()[i].substr(0, kShown));
}

CheckedItems::CheckedItems(const Items& items, const CollectionParams& params, bool replaces, const Resources& resources)
    : params_(params), vectors_(items.vectors), has_ids_(!items.ids.empty()), payloads_(items.payloads) {
  const int64_t rows = items.vectors.rows();
  if (rows > 0 && items.vectors.cols() != params.dimension) {
    throw InvalidArgument(fmt::format("the vectors have {} columns, and the collection's {}", items.vectors.cols(),
                                      params.dimension));
  }
  if (rows > 0 && !items.vectors.space().host_readable()) {
    throw InvalidArgument("a collection takes vectors in host memory; copy them there");
  }
  constexpr int64_t kMostRows = (int64_t{1} << 31) - 1;
  if (rows > kMostRows) throw InvalidArgument(fmt::format("add up to {} items at a time; {} were given", kMostRows, rows));
  const auto counts = [&](size_t count, std::string_view what) {
    if (static_cast<int64_t>(count) != rows) {
      throw InvalidArgument(fmt::format("{} vectors came with {} {}", rows, count, what));
    }
  };
  check_ids(items.ids, params.ids);
  if (has_ids_) counts(static_cast<size_t>(items.ids.size()), "ids");
  if (!has_ids_ && rows > 0 && params.ids == IdType::text) {
    throw InvalidArgument("the collection's ids are texts, which it does not make up; give them");
  }
  if (!items.payloads.empty()) counts(items.payloads.size(), "payloads");

  columns_.resize(params.columns.size());
  JsonCheck json;
  for (const ColumnValues& given : items.columns) {
    const auto column = std::find_if(params.columns.begin(), params.columns.end(),
                                     [&](const Column& c) { return c.name == given.name; });
    if (column == params.columns.end()) {
      std::string names;
      for (const Column& c : params.columns) names += (names.empty() ? "" : ", ") + c.name;
      throw InvalidArgument(fmt::format("the collection has no column '{}'; {}", given.name,
                                        names.empty() ? "it has none (add_column)" : "it has " + names));
    }
    counts(given.values.size(), fmt::format("values of column '{}'", given.name));
    std::vector<ColumnValue>& values = columns_[static_cast<size_t>(column - params.columns.begin())];
    if (!values.empty()) throw InvalidArgument(fmt::format("column '{}' is given twice", given.name));
    values.reserve(given.values.size());
    for (size_t i = 0; i < given.values.size(); ++i) {
      values.push_back(checked_value(given.values[i], *column, static_cast<int64_t>(i), json));
    }
  }

  if (rows > 0 && vectors_.dtype() != params.dtype) {
    converted_ = MatrixBuffer(params.dtype, rows, params.dimension, "vectors as they are stored", resources);
    const std::string name = "the vectors";
    for (int64_t i = 0; i < rows; ++i) {
      convert_values(vectors_.row(i), vectors_.dtype(), converted_.mutable_view().row(i), params.dtype, params.dimension,
                     {name, i * params.dimension, params.dimension});
    }
    vectors_ = converted_.view();
  }
  check_finite_rows(vectors_, "vector");
  if (params.metric == Metric::chi_square) {
    for (int64_t i = 0; i < rows; ++i) {
      if (params.dtype != DType::f32) continue;
      const auto* const values = reinterpret_cast<const float*>(vectors_.row(i));
      if (std::any_of(values, values + params.dimension, [](float v) { return v < 0; })) {
        throw InvalidArgument(fmt::format("vector {} has a value below 0, which chi_square does not take", i));
      }
    }
  }

  if (replaces && has_ids_) {
    kept_ = params.ids == IdType::integer ? last_of_each(items.ids.numbers()) : last_of_each(items.ids.texts());
  } else {
    kept_.resize(static_cast<size_t>(rows));
    for (int64_t i = 0; i < rows; ++i) kept_[static_cast<size_t>(i)] = i;
  }
  if (!has_ids_) return;
  if (static_cast<int64_t>(kept_.size()) == rows) {
    ids_ = items.ids;
  } else if (params.ids == IdType::integer) {
    ids_ = ItemIds(picked(items.ids.numbers(), kept_));
  } else {
    ids_ = ItemIds(picked(items.ids.texts(), kept_));
  }
}

const ColumnValue& CheckedItems::value(int64_t i, size_t column) const {
  static const ColumnValue kNothing;
  const std::vector<ColumnValue>& values = columns_[column];
  return values.empty() ? kNothing : values[static_cast<size_t>(kept_[static_cast<size_t>(i)])];
}

std::string_view CheckedItems::payload(int64_t i) const {
  return payloads_.empty() ? std::string_view() : payloads_[static_cast<size_t>(kept_[static_cast<size_t>(i)])];
}

uint64_t CheckedItems::hash(int64_t i) const {
  ItemHash hash;
  const auto at = static_cast<size_t>(i);
  if (params_.ids == IdType::integer) {
    hash.id(ids_.numbers()[at]);
  } else {
    hash.id(ids_.texts()[at]);
  }
  hash.vector(vector(i), vector_bytes());
  for (size_t c = 0; c < params_.columns.size(); ++c) hash.column(params_.columns[c].name, value(i, c));
  return hash.end(payload(i));
}

std::shared_ptr<const RowBlock> CheckedItems::block(int64_t first_row, const Resources& resources) const {
  RowBlock::Arrays arrays;
  arrays.vectors = MatrixBuffer(params_.dtype, size(), params_.dimension, "the newest rows", resources);
  const auto bytes = static_cast<size_t>(vector_bytes());
  for (int64_t i = 0; i < size(); ++i) {
    std::memcpy(arrays.vectors.mutable_view().row(i), vector(i), bytes);
    arrays.rows.push_back(first_row + i);
  }
  arrays.ids = ids_;
  return std::make_shared<const RowBlock>(std::move(arrays));
}

std::shared_ptr<const StoredRows> CheckedItems::stored(int64_t first_row) const {
  const bool whole = size() == vectors_.rows() && vectors_.row_stride() == vectors_.cols();
  return std::make_shared<const GivenRows>(*this, vectors_, first_row, whole);
}

struct ItemHash::State {
  Xxh3 hash;
  std::string buffer;
  void number(const auto& value) { buffer.append(reinterpret_cast<const char*>(&value), sizeof(value)); }
  void text(std::string_view value) {
    number(static_cast<uint64_t>(value.size()));
    buffer += value;
  }
  void flush() {
    hash.update(std::as_bytes(std::span(buffer)));
    buffer.clear();
  }
};

ItemHash::ItemHash() : state_(std::make_unique<State>()) {}
ItemHash::~ItemHash() = default;

void ItemHash::id(int64_t number) { state_->number(number); }
void ItemHash::id(std::string_view text) { state_->text(text); }

void ItemHash::vector(const void* bytes, int64_t count) {
  state_->flush();
  state_->hash.update({static_cast<const std::byte*>(bytes), static_cast<size_t>(count)});
}

void ItemHash::column(std::string_view name, const ColumnValue& value) {
  if (value.index() == 0) return;
  state_->text(name);
  // A bool is stored as a number.
  if (const auto* const number = std::get_if<int64_t>(&value)) state_->number(*number);
  if (const auto* const truth = std::get_if<bool>(&value)) state_->number(int64_t{*truth ? 1 : 0});
  if (const auto* const real = std::get_if<double>(&value)) state_->number(*real + 0.0);  // -0.0 is 0.0 in SQL
  if (const auto* const text = std::get_if<std::string>(&value)) state_->text(*text);
}

uint64_t ItemHash::end(std::string_view payload) {
  state_->text(payload);
  state_->flush();
  return state_->hash.digest();
}

}  // namespace kith

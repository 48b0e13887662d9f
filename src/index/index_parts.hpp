// An index taken apart: plain data that files hold, Kith's own and FAISS's. An index is made from parts and gives its
// parts; whoever reads or writes files knows nothing of states and kinds.
#pragma once

#include <kith/index.hpp>
#include <kith/matrix_buffer.hpp>

#include "core/host_array.hpp"
#include "quantize/code_encoder.hpp"
#include "transform/transform_parts.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kith {

// The arrays of an index taken apart: owned, as a file gives them, or shared with an index that is being saved, so that
// saving copies nothing and loading moves.
template <typename T>
class PartArray {
 public:
  PartArray() = default;
  PartArray(HostArray<T> owned)  // NOLINT: an owned array is one of these
      : owned_(std::move(owned)), values_(owned_.data(), static_cast<size_t>(owned_.size())) {}
  // `keeper` holds the values, and they do not change while it lives. `unchecked`: of a mapped file, which nobody has
  // looked at.
  PartArray(std::span<const T> values, std::shared_ptr<const void> keeper, bool unchecked = false)
      : keeper_(std::move(keeper)), values_(values), unchecked_(unchecked) {}

  const T* data() const { return values_.data(); }
  int64_t size() const { return static_cast<int64_t>(values_.size()); }
  bool empty() const { return values_.empty(); }
  const T& operator[](int64_t i) const { return values_[static_cast<size_t>(i)]; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size(); }
  std::span<const std::byte> bytes() const { return std::as_bytes(values_); }
  bool unchecked() const { return unchecked_; }

  // Moved out where it is owned, else copied.
  HostArray<T> take(std::string_view purpose, const Resources& resources) && {
    const std::span<const T> values = std::exchange(values_, {});
    if (owned_.data() != nullptr) return std::move(owned_);
    HostArray<T> copy(static_cast<int64_t>(values.size()), purpose, resources);
    std::copy(values.begin(), values.end(), copy.begin());
    return copy;
  }

 private:
  HostArray<T> owned_;
  std::shared_ptr<const void> keeper_;
  std::span<const T> values_;
  bool unchecked_ = false;
};

class PartMatrix {
 public:
  PartMatrix() = default;
  PartMatrix(MatrixBuffer owned) : owned_(std::move(owned)), view_(owned_.view()) {}  // NOLINT: as above
  // Rows in host memory; they may be apart. `unchecked` as above.
  PartMatrix(const MatrixView& view, std::shared_ptr<const void> keeper, bool unchecked = false)
      : keeper_(std::move(keeper)), view_(view), unchecked_(unchecked) {}

  const MatrixView& view() const { return view_; }
  int64_t rows() const { return view_.rows(); }
  int64_t cols() const { return view_.cols(); }
  DType dtype() const { return view_.dtype(); }
  bool unchecked() const { return unchecked_; }
  const std::shared_ptr<const void>& keeper() const { return keeper_; }

  MatrixBuffer take(std::string_view purpose, const Resources& resources) && {
    const MatrixView view = std::exchange(view_, {});
    if (owned_.view().data() != nullptr) return std::move(owned_);
    MatrixBuffer copy(view.dtype(), view.rows(), view.cols(), purpose, resources);
    const MutableMatrixView to = copy.mutable_view();
    const auto row_bytes = static_cast<size_t>(view.cols() * size_of(view.dtype()));
    for (int64_t i = 0; i < view.rows(); ++i) std::memcpy(to.row(i), view.row(i), row_bytes);
    return copy;
  }

 private:
  MatrixBuffer owned_;
  std::shared_ptr<const void> keeper_;
  MatrixView view_;
  bool unchecked_ = false;
};

// Values of a trained codec: product: the codewords; scalar: the least value of each column, then the span of each;
// additive: the codebooks, then what the levels of norms are made from.
struct CodecParts {
  CodeFormat format;
  std::vector<float> values;
  // How codes are found, where a format does not say it.
  const CodeEncoder* code = nullptr;  // null: the usual one of the format
  int effort = CodeRecipe().effort;

  CodeRecipe recipe() const {
    CodeRecipe recipe = recipe_of(format);
    if (code != nullptr) recipe.code = code;
    recipe.effort = effort;
    return recipe;
  }
};

// How a local search quantizer encodes, besides its rounds.
struct SearchOptions {
  int64_t sweeps = 4;
  int64_t perturbed = 0;
  bool random_order = false;

  bool operator==(const SearchOptions&) const = default;
};

// A quantizer by itself: its code, and the parameters that the code does not show.
struct QuantizerParts {
  CodecParts codec;
  bool check_finite = true;
  uint64_t seed = 0;
  SearchOptions search = {};
};

// Transforms by themselves, and what they were asked for with. Files of the first version know no steps.
struct SavedTransforms {
  std::vector<TransformParts> transforms;
  std::string steps;
  bool check_finite = true;
  uint64_t seed = 0;
};

// The vectors of lists, in the order of lists.
struct ListArrayParts {
  PartArray<int64_t> offsets;  // lists + 1, of vectors: where each list begins
  PartArray<uint8_t> codes;
  PartArray<uint32_t> rows;  // the row of each; ascending within a list
  std::string path = {};     // of the file that they are mapped from; empty: they lie in memory and were checked
};

struct ListParts : ListArrayParts {
  int64_t lists = 1;
  PartMatrix centres;     // lists x cols, f32; none for a single list without one
  bool residual = false;  // codes are of vectors less their centre
  CodecParts codec;
  std::vector<ListArrayParts> behind;  // further vectors, of later rows, where an index is in several files

  // All of so many vectors are in one list, in the order of rows.
  void put_in_one_list(int64_t count, const Resources& resources) {
    HostArray<int64_t> begins(2, "the list", resources);
    HostArray<uint32_t> numbers(count, "the rows of the list", resources);
    begins[0] = 0;
    begins[1] = count;
    std::iota(numbers.begin(), numbers.end(), 0U);
    offsets = std::move(begins);
    rows = std::move(numbers);
  }
};

// Codes of all vectors, as the caller gave them, before the transforms, in the order of rows: for a second look at
// candidates.
struct RefineParts {
  CodecParts codec;
  PartArray<uint8_t> codes;
  std::vector<PartArray<uint8_t>> behind = {};  // of later rows, where an index is in several files
  float factor = 0;                             // candidates for each neighbour by default; 0: chosen by the index
};

// A graph in front of the vectors (graph/search): its first `rows` rows lie at `places`. The others are compared with
// every query.
struct GraphParts {
  int64_t degree = 0;
  int64_t bits = 8;  // of a column's code, 8 or 4
  int64_t places = 0;
  int64_t rows = 0;
  int64_t cells = 0;
  int64_t entry_count = 0;
  int64_t beams = 0;                  // that were measured
  int64_t clipped = 0;                // values that codes do not reach
  int64_t connected = 0;              // parts of the graph
  int64_t lost = 0;                   // places that a small walk does not find
  std::vector<float> scale;           // of codes: the step, then the offset of each column; none without codes
  PartArray<std::byte> codes;         // of places, padded to 16 bytes, or the rows themselves; four bits: by
                                      // kernels/distance/nibble_keys_cpu.hpp
  PartArray<uint32_t> edges;          // places x degree; 2^32 - 1 behind the last neighbour of a place
  PartArray<uint32_t> place_offsets;  // places + 1: where the rows of each begin
  PartArray<uint32_t> place_rows;     // rows, ascending at each place
  PartArray<std::byte> centres;       // of cells, codes of bytes, or rows
  PartArray<uint32_t> entry_offsets;  // cells + 1: where the entries of each begin
  PartArray<uint32_t> entries;        // places
  std::vector<float> table;           // beams x 2: a beam, and the recall that it was measured to have
};

// What searches were measured to find (kith/index_tune.hpp), without times, which a machine has and not an index.
struct TunedParts {
  static constexpr int64_t kValues = 7;  // beam, width, probes, refine, recall, its standard error, comparisons

  int64_t count = 0;
  int64_t k = 0;
  int64_t rows = 0;
  std::vector<double> values;  // count x kValues, by ascending comparisons

  static TunedParts of(const TuneTable& table) {
    TunedParts parts{std::ssize(table.searches), table.k, table.rows, {}};
    for (const TunedSearch& one : table.searches) {
      for (const int64_t number : {one.beam, one.width, one.probes, one.refine}) {
        parts.values.push_back(static_cast<double>(number));
      }
      parts.values.insert(parts.values.end(), {one.recall, one.standard_error, one.compared});
    }
    return parts;
  }
  // The table of values that were checked.
  TuneTable table() const {
    TuneTable table{k, rows, {}};
    for (const double* at = values.data(); at != values.data() + values.size(); at += kValues) {
      const auto number = [&](int i) { return static_cast<int64_t>(at[i]); };
      table.searches.push_back({number(0), number(1), number(2), number(3), at[4], at[5], at[6]});
    }
    return table;
  }
};

struct IndexParts : IndexParams {
  std::string factory;
  int64_t cols = 0;  // of the caller's vectors; 0 before they are known
  int64_t rows = 0;
  DType dtype = DType::f32;                // of the caller's vectors, fixed by the first add
  std::vector<TransformParts> transforms;  // first to last
  std::optional<ListParts> lists;          // else `flat`
  std::vector<PartMatrix> flat;            // rows as they were added, after the transforms, in blocks; a file gives one
  PartArray<int64_t> ids;                  // of rows; none where they are 0, 1, 2, ...
  int64_t next_id = 0;                     // what the next vector without an id gets
  int64_t probes = 0;                      // the default of a search; 0: chosen by the index
  std::optional<GraphParts> graph;         // in front of `flat`, or of `lists` that are one
  std::optional<RefineParts> refine;
  std::optional<TunedParts> tuned;
  // What was subtracted from every vector, and is from queries (rows/narrowed_rows.hpp): `cols` values, or none.
  std::vector<double> subtracted;

  // Columns of what the lists or the flat rows hold.
  int64_t stored_cols() const { return transforms.empty() ? cols : transforms.back().out; }
};

}  // namespace kith

// An index as plain data, for Kith's and FAISS's files. An index can be made from parts and taken apart, so that
// readers and writers of files need to know nothing about states and kinds.
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

// An array of the parts: owned, if it was read from a file, or shared with an index that is being saved. So saving
// copies nothing, and loading moves.
template <typename T>
class PartArray {
 public:
  PartArray() = default;
  PartArray(HostArray<T> owned)  // NOLINT: an owned array is one of these
      : owned_(std::move(owned)), values_(owned_.data(), static_cast<size_t>(owned_.size())) {}
  // `keeper` keeps the values alive and unchanged. `unchecked`: they are in a mapped file and have not been
  // checked.
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

  // Moves an owned array out, copies a shared one.
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
  // Rows in host memory, possibly with gaps. `unchecked` as above.
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

// The values of a trained codec. Product: the codewords; scalar: the smallest value of each column, then the range of
// each; additive: the codebooks, then the values behind the levels of norms.
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

// The encoding parameters of a local search quantizer, except the rounds.
struct SearchOptions {
  int64_t sweeps = 4;
  int64_t perturbed = 0;
  bool random_order = false;

  bool operator==(const SearchOptions&) const = default;
};

// A quantizer: its code, and the parameters that do not follow from the code.
struct QuantizerParts {
  CodecParts codec;
  bool check_finite = true;
  uint64_t seed = 0;
  SearchOptions search = {};
};

// Transforms and their parameters. Files of the first version do not have `steps`.
struct SavedTransforms {
  std::vector<TransformParts> transforms;
  std::string steps;
  bool check_finite = true;
  uint64_t seed = 0;
};

// The vectors of lists, in the order of lists.
struct ListArrayParts {
  PartArray<int64_t> offsets;  // lists + 1: where each list begins, in vectors
  PartArray<uint8_t> codes;
  PartArray<uint32_t> rows;  // the row of each; ascending within a list
  std::string path = {};     // of the mapped file; empty: in memory, and checked
};

struct ListParts : ListArrayParts {
  int64_t lists = 1;
  PartMatrix centres;     // lists x cols, f32; none for a single list without one
  bool residual = false;  // codes are of vectors minus their centre
  CodecParts codec;
  std::vector<ListArrayParts> behind;  // vectors of later rows, if the index is in several files

  // Puts all `count` vectors in one list, in the order of rows.
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

// Codes for refinement: of all vectors before the transforms, in the order of
// rows.
struct RefineParts {
  CodecParts codec;
  PartArray<uint8_t> codes;
  std::vector<PartArray<uint8_t>> behind = {};  // of later rows, if the index is in several files
  float factor = 0;                             // default number of candidates in multiples of k; 0: the index decides
};

// A graph over the vectors (graph/search) that covers the first `rows` rows, at `places` places. Every query is
// compared with all other rows.
struct GraphParts {
  int64_t degree = 0;
  int64_t bits = 8;  // of a column's code, 8 or 4
  int64_t places = 0;
  int64_t rows = 0;
  int64_t cells = 0;
  int64_t entry_count = 0;
  int64_t beams = 0;                  // number of measured beams
  int64_t clipped = 0;                // values outside the codes' range
  int64_t connected = 0;              // connected components
  int64_t lost = 0;                   // places that a short walk does not find
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

// The measurements of tune() (kith/index_tune.hpp) without times, which belong to a machine and not to an index.
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
  // The table; values have been checked.
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
  int64_t cols = 0;  // of the caller's vectors; 0: not known yet
  int64_t rows = 0;
  DType dtype = DType::f32;                // of the caller's vectors, fixed by the first add
  std::vector<TransformParts> transforms;  // first to last
  std::optional<ListParts> lists;          // otherwise `flat`
  std::vector<PartMatrix> flat;            // transformed rows in blocks; from a file in one block
  PartArray<int64_t> ids;                  // of rows; empty if they are 0, 1, 2, ...
  int64_t next_id = 0;                     // the next automatic id
  int64_t probes = 0;                      // the default of searches; 0: the index's choice
  std::optional<GraphParts> graph;         // over `flat`, or over a single list
  std::optional<RefineParts> refine;
  std::optional<TunedParts> tuned;
  // The offset that is subtracted from vectors and queries (rows/narrowed_rows.hpp): `cols` values, or none.
  std::vector<double> subtracted;

  // Columns of the vectors in lists or flat rows.
  int64_t stored_cols() const { return transforms.empty() ? cols : transforms.back().out; }
};

}  // namespace kith

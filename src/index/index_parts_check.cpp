#include "index/index_parts_check.hpp"

#include "core/byte_size.hpp"
#include "core/divide.hpp"
#include "graph/search/graph/walk_graph.hpp"
#include "graph/search/walk/walk.hpp"
#include "rows/finite_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <limits>

namespace kith {
namespace {

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();  // rows, lists and columns
constexpr int kWordBits = 64;

[[noreturn]] void fail(std::string_view section, std::string_view reason) { throw PartsProblem(section, reason); }

void require(bool kept, std::string_view section, std::string_view reason) {
  if (!kept) fail(section, reason);
}

void require_size(int64_t size, int64_t wanted, std::string_view section) {
  if (size != wanted) fail(section, fmt::format("{} values where {} must be", size, wanted));
}

void require_finite(std::span<const float> values, std::string_view section) {
  if (!std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); })) {
    fail(section, "a value is NaN or infinite");
  }
}

// Applies the checks of searches to rows of any dtype.
template <typename Check>
void check_rows(std::string_view section, const Check& check) {
  try {
    check();
  } catch (const InvalidArgument& error) {
    fail(section, error.what());
  }
}

void check_values(const IndexParts& parts, const MatrixView& rows, int64_t first, std::string_view section,
                  const Resources& resources) {
  check_rows(section, [&] {
    if (parts.check_finite) refuse_not_finite("stored", rows, {first}, resources);
    if (parts.metric == Metric::chi_square) refuse_negative("stored", rows, {first}, resources);
  });
}

// Checks that bits after the last sub-code are zero, so that equal codes have equal bytes.
void check_codes(const CodecParts& codec, const PartArray<uint8_t>& codes, int64_t rows, std::string_view section) {
  const int64_t bytes = codec.format.bytes();
  require_size(codes.size(), saturating_multiply(rows, bytes), section);
  if (codes.unchecked()) return;
  const auto used = static_cast<int>(codec.format.used_bits() % 8);
  if (used == 0) return;
  for (int64_t i = 1; i <= rows; ++i) {
    if (codes[i * bytes - 1] >> used != 0) fail(section, fmt::format("code {} has bits behind its last value", i - 1));
  }
}

void check_stored_codes(const IndexParts& parts, const CodecParts& codec, const PartArray<uint8_t>& codes,
                        std::string_view section, const Resources& resources) {
  check_codes(codec, codes, parts.rows, section);
  if (!codec.format.stores_values() || parts.rows == 0 || codes.unchecked()) return;
  const int64_t cols = codec.format.cols;
  check_values(parts, MatrixView(codes.data(), codec.format.dtype, {parts.rows, cols, cols}), 0, section, resources);
}

void check_offsets(const ListParts& lists, int64_t rows) {
  require_size(lists.offsets.size(), lists.lists + 1, "offsets");
  require(lists.offsets[0] == 0, "offsets", "the first list does not begin at 0");
  for (int64_t i = 0; i < lists.lists; ++i) {
    if (lists.offsets[i + 1] < lists.offsets[i]) fail("offsets", fmt::format("list {} ends before it begins", i));
  }
  require(lists.offsets[lists.lists] == rows, "offsets", fmt::format("the lists do not end at {} rows", rows));
}

void check_list_rows(const ListParts& lists, int64_t count, const Resources& resources) {
  require_size(lists.rows.size(), count, "rows");
  if (lists.rows.unchecked()) return;  // each list when it is first searched (list_segment.hpp)
  HostArray<uint64_t> seen(divide_up(count, kWordBits), "the check of row numbers", resources);
  std::fill(seen.begin(), seen.end(), 0);
  for (int64_t list = 0; list < lists.lists; ++list) {
    int64_t last = -1;
    for (int64_t i = lists.offsets[list]; i < lists.offsets[list + 1]; ++i) {
      const int64_t row = lists.rows[i];
      if (row >= count) fail("rows", fmt::format("there is a row {} of {}", row, count));
      if (row <= last) fail("rows", fmt::format("the rows of list {} do not ascend", list));
      uint64_t& word = seen[row / kWordBits];
      const uint64_t bit = uint64_t{1} << (row % kWordBits);
      if ((word & bit) != 0) fail("rows", fmt::format("row {} is there twice", row));
      word |= bit;
      last = row;
    }
  }
}

void check_lists(const IndexParts& parts, const Resources& resources) {
  const ListParts& lists = *parts.lists;
  require(parts.flat.empty(), "flat", "an index has lists or flat rows, not both");
  const bool metric_fits = parts.metric == Metric::l2 || parts.metric == Metric::sqeuclidean ||
                           parts.metric == Metric::inner_product || parts.metric == Metric::cosine;
  require(metric_fits, "about", fmt::format("lists cannot be searched by {}", name_of(parts.metric)));
  check_list_count(lists.lists);
  check_codec(lists.codec, "codec");
  require(lists.codec.format.cols == parts.stored_cols(), "codec", "its columns are not those of the vectors");
  if (lists.centres.rows() == 0) {
    require(lists.lists == 1 && !lists.residual, "centres", "several lists, or residual codes, need centres");
  } else {
    const MatrixView& centres = lists.centres.view();
    require(centres.rows() == lists.lists && centres.cols() == parts.stored_cols() && centres.dtype() == DType::f32,
            "centres", fmt::format("they must be {} x {} of f32", lists.lists, parts.stored_cols()));
    check_rows("centres", [&] { refuse_not_finite("centre", centres, {0}, resources); });
  }
  check_offsets(lists, parts.rows);
  check_list_rows(lists, parts.rows, resources);
  check_stored_codes(parts, lists.codec, lists.codes, "codes", resources);
}

void check_flat(const IndexParts& parts, const Resources& resources) {
  const DType dtype = parts.transforms.empty() ? parts.dtype : DType::f32;
  require(parts.metric != Metric::hamming || dtype == DType::u8, "about", "hamming takes u8 rows alone");
  int64_t rows = 0;
  for (const PartMatrix& block : parts.flat) {
    require(block.cols() == parts.stored_cols() || block.rows() == 0, "flat", "its columns are not those of the index");
    require(block.dtype() == dtype || block.rows() == 0, "flat", "its dtype is not that of the index");
    if (!block.unchecked()) check_values(parts, block.view(), rows, "flat", resources);
    rows += block.rows();
  }
  require_size(rows, parts.rows, "flat");
}

void check_ids(const IndexParts& parts, const Resources& resources) {
  const PartArray<int64_t>& ids = parts.ids;
  require(parts.next_id >= 0, "about", "the next id is negative");
  if (ids.empty()) {
    require(parts.next_id >= parts.rows, "about", "the next id is one that a row has");
    return;
  }
  require_size(ids.size(), parts.rows, "ids");
  const auto [least, largest] = std::minmax_element(ids.begin(), ids.end());
  if (*least < 0) fail("ids", fmt::format("the id {} is negative", *least));
  const bool none_left = parts.next_id == INT64_MAX;
  require(parts.next_id > *largest || none_left, "about", "the next id is not above all others");
  if (std::adjacent_find(ids.begin(), ids.end(), std::greater_equal<>()) == ids.end()) return;
  HostArray<int64_t> sorted(ids.size(), "the check of ids", resources);
  std::copy(ids.begin(), ids.end(), sorted.begin());
  std::sort(sorted.begin(), sorted.end());
  const int64_t* twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) fail("ids", fmt::format("two rows have the id {}", *twice));
}

void check_refine(const IndexParts& parts, const Resources& resources) {
  const RefineParts& refine = *parts.refine;
  check_codec(refine.codec, "refine.codec");
  require(refine.codec.format.cols == parts.cols, "refine.codec", "its columns are not those of the vectors");
  constexpr float kLargestFactor = 1e6F;
  require(refine.factor >= 0 && refine.factor <= kLargestFactor, "about", "the factor of refine is not from 0 to 1e6");
  check_stored_codes(parts, refine.codec, refine.codes, "refine.codes", resources);
}

// Checks that offsets ascend from 0 to `end`, by at least `least` each.
void check_steps(const PartArray<uint32_t>& offsets, int64_t count, int64_t end, int64_t least,
                 std::string_view section) {
  require_size(offsets.size(), count + 1, section);
  require(offsets[0] == 0 && offsets[count] == end, section, fmt::format("it does not go from 0 to {}", end));
  for (int64_t i = 0; i < count; ++i) {
    if (int64_t{offsets[i + 1]} - int64_t{offsets[i]} < least) {
      fail(section, fmt::format("number {} ends before it begins", i));
    }
  }
}

void check_graph(const IndexParts& parts, const Resources& resources) {
  check_graph_counts(parts);
  const GraphParts& graph = *parts.graph;
  const WalkCoder coder = walk_coder_of(parts);
  require_size(std::ssize(graph.scale), graph.scale.empty() ? 0 : parts.stored_cols() + 1, "graph.scale");
  require_finite(graph.scale, "graph.scale");
  require(graph.scale.empty() || graph.scale[0] > 0, "graph.scale", "the step is not above 0");
  require_size(graph.codes.size(), saturating_multiply(graph.places, coder.place_bytes()), "graph.codes");
  require_size(graph.centres.size(), saturating_multiply(graph.cells, coder.centre_bytes()), "graph.centres");
  require_size(graph.edges.size(), saturating_multiply(graph.places, graph.degree), "graph.edges");
  for (int64_t i = 0; i < graph.edges.size(); ++i) {
    if (graph.edges[i] != kNoEdge && graph.edges[i] >= graph.places) {
      fail("graph.edges", fmt::format("there is a place {} of {}", graph.edges[i], graph.places));
    }
  }
  check_steps(graph.place_offsets, graph.places, graph.rows, 1, "graph.place_offsets");
  require_size(graph.place_rows.size(), graph.rows, "graph.place_rows");
  HostArray<uint64_t> seen(divide_up(graph.rows, kWordBits), "the check of row numbers", resources);
  std::fill(seen.begin(), seen.end(), 0);
  for (int64_t i = 0; i < graph.rows; ++i) {
    const uint32_t row = graph.place_rows[i];
    if (row >= graph.rows) fail("graph.place_rows", fmt::format("there is a row {} of {}", row, graph.rows));
    uint64_t& word = seen[row / kWordBits];
    const uint64_t bit = uint64_t{1} << (row % kWordBits);
    if ((word & bit) != 0) fail("graph.place_rows", fmt::format("row {} is there twice", row));
    word |= bit;
  }
  check_steps(graph.entry_offsets, graph.cells, graph.entry_count, 0, "graph.entry_offsets");
  require_size(graph.entries.size(), graph.entry_count, "graph.entries");
  for (const uint32_t place : graph.entries) {
    if (place >= graph.places) fail("graph.entries", fmt::format("there is a place {} of {}", place, graph.places));
  }
  require_size(std::ssize(graph.table), saturating_multiply(graph.beams, 2), "graph.table");
  float last = 0;
  for (size_t i = 0; i < graph.table.size(); i += 2) {
    const float beam = graph.table[i];
    require(beam > last && beam <= static_cast<float>(kWidestBeam), "graph.table", "beams do not ascend from 1");
    require(graph.table[i + 1] >= 0 && graph.table[i + 1] <= 1, "graph.table", "a recall is not from 0 to 1");
    last = beam;
  }
}

void check_tuned(const TunedParts& tuned) {
  check_tuned_counts(tuned);
  require_size(std::ssize(tuned.values), saturating_multiply(tuned.count, TunedParts::kValues), "tuned");
  double last = 0;
  for (const double* at = tuned.values.data(); at != tuned.values.data() + tuned.values.size();
       at += TunedParts::kValues) {
    const double most[] = {static_cast<double>(kWidestBeam), static_cast<double>(kWidestStep),
                           static_cast<double>(kMost), static_cast<double>(kMost)};
    for (int i = 0; i < 4; ++i) {
      require(at[i] >= 0 && at[i] <= most[i] && at[i] == std::floor(at[i]), "tuned", "a parameter is out of its range");
    }
    require(at[4] >= 0 && at[4] <= 1 && at[5] >= 0 && at[5] <= 1, "tuned", "a recall is not from 0 to 1");
    require(at[6] >= last && std::isfinite(at[6]), "tuned", "comparisons do not ascend");
    last = at[6];
  }
}

bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return c >= 0x20 && c != 0x7f; });
}

bool is_word(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) != 0; });
}

void check_subtracted(const IndexParts& parts) {
  if (parts.subtracted.empty()) return;
  require_size(static_cast<int64_t>(parts.subtracted.size()), parts.cols, "subtracted");
  if (!std::all_of(parts.subtracted.begin(), parts.subtracted.end(), [](double v) { return std::isfinite(v); })) {
    fail("subtracted", "a value is NaN or infinite");
  }
}

}  // namespace

PartsProblem::PartsProblem(std::string_view section, std::string_view reason)
    : InvalidArgument(fmt::format("section '{}': {}", section, reason)), section_(section), reason_(reason) {}

std::string transform_section(size_t i, std::string_view what) { return fmt::format("transform.{}.{}", i, what); }

void check_code_format(const CodecParts& codec) {
  require(codec.format.cols >= 1 && codec.format.cols <= kMost, "about", "codes of an impossible number of columns");
  check_rows("about", [&] { (void)codec.recipe().format_for(codec.format.cols); });
}

WalkCoder walk_coder_of(const IndexParts& parts) {
  const DType dtype = parts.transforms.empty() && !parts.lists ? parts.dtype : DType::f32;
  return WalkCoder::from_scale({parts.metric, dtype, parts.stored_cols(), static_cast<WalkBits>(parts.graph->bits)},
                               parts.graph->scale);
}

void check_graph_counts(const IndexParts& parts) {
  const GraphParts& graph = *parts.graph;
  require(graph.degree >= kDegreeStep && graph.degree <= kMostDegree && graph.degree % kDegreeStep == 0, "about",
          fmt::format("a graph of degree {}", graph.degree));
  require(graph.bits == 8 || graph.bits == 4, "about", fmt::format("codes of {} bits for walks", graph.bits));
  require(graph.rows >= 1 && graph.rows <= parts.rows, "about", fmt::format("a graph of {} rows", graph.rows));
  require(graph.places >= 1 && graph.places <= graph.rows, "about", fmt::format("a graph of {} places", graph.places));
  require(graph.cells >= 1 && graph.cells <= graph.rows, "about", fmt::format("a graph of {} cells", graph.cells));
  require(graph.entry_count >= 1 && graph.entry_count <= kMost, "about", "a graph without entries");
  require(graph.beams >= 0 && graph.beams <= kWidestBeam, "about", fmt::format("{} measured beams", graph.beams));
  require(graph.clipped >= 0 && graph.connected >= 1 && graph.lost >= 0, "about", "a count is negative");
  require(parts.stored_cols() >= 1 && parts.stored_cols() <= kMostWalkColumns, "about", "a graph of too many columns");
}

void check_tuned_counts(const TunedParts& tuned) {
  constexpr int64_t kMostSearches = 1 << 16;
  require(tuned.count >= 1 && tuned.count <= kMostSearches, "about", fmt::format("{} tuned searches", tuned.count));
  require(tuned.k >= 1 && tuned.rows >= 0, "about", "a tuned search for no neighbours");
}

void check_list_count(int64_t lists) { require(lists >= 1 && lists <= kMost, "about", fmt::format("{} lists", lists)); }

void check_codec(const CodecParts& codec, std::string_view section) {
  check_code_format(codec);
  require_size(static_cast<int64_t>(codec.values.size()), codec.recipe().code->value_count(codec.format), section);
  require_finite(codec.values, section);
  if (!codec.format.steps_columns()) return;
  const std::span<const float> spans = std::span(codec.values).subspan(static_cast<size_t>(codec.format.cols));
  require(std::all_of(spans.begin(), spans.end(), [](float v) { return v >= 0; }), section, "a span is negative");
}

void check_transforms(const std::vector<TransformParts>& transforms) {
  using Kind = TransformParts::Kind;
  for (size_t i = 0; i < transforms.size(); ++i) {
    const TransformParts& transform = transforms[i];
    const auto require_here = [&](bool kept, std::string_view reason) {
      if (!kept) fail("about", fmt::format("transform {}: {}", i, reason));
    };
    const bool shaped = transform.in >= 1 && transform.in <= kMost && transform.out >= 1 && transform.out <= kMost;
    require_here(is_word(transform.name), "its name has other characters than letters and digits");
    require_here(shaped, "an impossible number of columns");
    require_here(i == 0 || transform.in == transforms[i - 1].out, "it does not take what the one before it gives");
    const bool same = transform.in == transform.out;
    require_here(
        same || transform.kind == Kind::linear || (transform.kind == Kind::padding && transform.out > transform.in),
        "it cannot change the number of columns so");
    const bool linear = transform.kind == Kind::linear;
    const bool moved = transform.kind == Kind::shift || (linear && !transform.offset.empty());
    require_size(static_cast<int64_t>(transform.matrix.size()),
                 linear ? saturating_multiply(transform.in, transform.out) : 0, transform_section(i, "matrix"));
    require_size(static_cast<int64_t>(transform.offset.size()), moved ? transform.out : 0,
                 transform_section(i, "offset"));
    require_finite(transform.matrix, transform_section(i, "matrix"));
    require_finite(transform.offset, transform_section(i, "offset"));
  }
}

void check_parts(const IndexParts& parts, const Resources& resources) {
  require(parts.rows >= 0 && parts.rows <= kMost, "about",
          fmt::format("{} rows; an index has up to {}", parts.rows, kMost));
  require(parts.cols >= (parts.lists || parts.rows > 0 || !parts.transforms.empty() ? 1 : 0) && parts.cols <= kMost,
          "about", fmt::format("{} columns", parts.cols));
  require(is_plain(parts.factory), "about", "the factory string has control characters");
  require(parts.probes >= 0, "about", "the number of probes is negative");
  require(parts.expected_rows >= 0, "about", "the number of expected rows is negative");
  check_transforms(parts.transforms);
  require(parts.transforms.empty() || parts.transforms.front().in == parts.cols, "about",
          "the first transform does not take the index's columns");
  if (parts.lists) {
    require(parts.lists->codec.format.norm != CodeNorm::none || parts.metric == Metric::inner_product, "about",
            "codes without norms serve inner_product alone");
    check_lists(parts, resources);
  } else {
    check_flat(parts, resources);
  }
  if (parts.graph) {
    require(!parts.lists || (parts.lists->lists == 1 && !parts.lists->residual), "about", "a graph in front of lists");
    check_graph(parts, resources);
  }
  check_ids(parts, resources);
  if (parts.refine) {
    require(parts.refine->codec.format.norm == CodeNorm::decoded, "about", "norms of vectors to refine with");
    check_refine(parts, resources);
  }
  if (parts.tuned) check_tuned(*parts.tuned);
  check_subtracted(parts);
}

}  // namespace kith

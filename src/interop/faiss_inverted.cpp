#include "interop/faiss_parts.hpp"

#include "core/byte_size.hpp"
#include "core/divide.hpp"
#include "core/typed_row.hpp"
#include "interop/faiss_kinds.hpp"
#include "interop/faiss_own_code.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

namespace kith {
namespace {

// The inverted lists of a FAISS file: codes and ids, list by list.

struct FaissLists {
  HostArray<int64_t> offsets;  // lists + 1
  HostArray<uint8_t> codes;
  HostArray<int64_t> ids;  // of the codes
};

constexpr int64_t kIdBytes = sizeof(int64_t);

// The sizes of the lists, at offsets[1] and on.
void read_sizes(FaissSource& source, const HostArray<int64_t>& offsets) {
  const int64_t lists = offsets.size() - 1;
  const std::string tag = source.tag();
  if (tag == "full") {
    source.expect_count(kIdBytes, lists, "the sizes of lists");
    source.read(offsets.data() + 1, array_bytes<int64_t>(lists), "the sizes of lists");
  } else if (tag == "sprs") {
    const int64_t values = source.count(kIdBytes, "the sizes of lists");
    if (values % 2 != 0) source.corrupt("the sizes of lists are not pairs");
    for (int64_t i = 0; i < values; i += 2) {
      const int64_t list = source.bounded(0, static_cast<uint64_t>(lists - 1), "a list's number");
      offsets[list + 1] = source.number<int64_t>("a list's size");
    }
  } else {
    source.unsupported(fmt::format("lists with sizes of the kind '{}', which Kith lacks", tag));
  }
}

FaissLists read_array_lists(FaissSource& source, int64_t lists, int64_t code_bytes) {
  source.exactly(lists, "the number of lists");
  source.exactly(code_bytes, "the bytes of a code");
  FaissLists result;
  result.offsets = HostArray<int64_t>(lists + 1, "the lists", source.resources());
  std::fill(result.offsets.begin(), result.offsets.end(), 0);
  read_sizes(source, result.offsets);
  int64_t rows = 0;
  for (int64_t list = 1; list <= lists; ++list) {
    const int64_t size = result.offsets[list];
    if (size < 0 || size > source.left()) source.corrupt(fmt::format("a list of {} vectors", size));
    rows += size;
    if (rows > kMostFaissRows) {
      source.unsupported(fmt::format("more than {} vectors, which one index cannot have", kMostFaissRows));
    }
    result.offsets[list] = rows;
  }
  if (saturating_multiply(rows, code_bytes + kIdBytes) > source.left()) {
    source.corrupt("the lists are larger than the rest of the file; it was cut or damaged");
  }
  result.codes = HostArray<uint8_t>(rows * code_bytes, "the codes", source.resources());
  result.ids = HostArray<int64_t>(rows, "the ids", source.resources());
  for (int64_t list = 0; list < lists; ++list) {
    const int64_t first = result.offsets[list];
    const int64_t size = result.offsets[list + 1] - first;
    source.read(result.codes.data() + first * code_bytes, size * code_bytes, "the codes of a list");
    source.read(result.ids.data() + first, size * kIdBytes, "the ids of a list");
  }
  return result;
}

// The codes of so many vectors, some blocks at a time; `blocks` is memory for them, kept from list to list.
void read_blocks(FaissSource& source, const FastScanLayout& layout, int64_t size, HostArray<uint8_t>& blocks,
                 uint8_t* codes) {
  constexpr int64_t kPieceBytes = 1 << 20;
  const int64_t most = std::max<int64_t>(kPieceBytes / layout.block_bytes(), 1);
  const int64_t piece = std::min(most, divide_up(size, layout.block_rows)) * layout.block_rows;
  if (blocks.size() < piece / layout.block_rows * layout.block_bytes()) {
    blocks = {};
    blocks = HostArray<uint8_t>(piece / layout.block_rows * layout.block_bytes(), "codes", source.resources());
  }
  for (int64_t first = 0; first < size; first += piece) {
    const int64_t some = std::min(piece, size - first);
    source.read(blocks.data(), divide_up(some, layout.block_rows) * layout.block_bytes(), "the codes of a list");
    unpack_fast_scan(layout, blocks.data(), some, codes + first * layout.code_bytes());
  }
}

// Ids and blocks of each list, behind their numbers.
FaissLists read_blocked_lists(FaissSource& source, int64_t lists, const FastScanLayout& layout, int64_t rows) {
  source.exactly(lists, "the number of lists");
  source.skip(sizeof(uint64_t), "the bytes of a code");  // not used there
  source.exactly(layout.block_rows, "the vectors of a block");
  source.exactly(layout.block_bytes(), "the bytes of a block");
  if (saturating_multiply(rows, kIdBytes + layout.code_bytes()) > source.left()) {
    source.corrupt("the lists are larger than the rest of the file; it was cut or damaged");
  }
  FaissLists result;
  result.offsets = HostArray<int64_t>(lists + 1, "the lists", source.resources());
  result.codes = HostArray<uint8_t>(rows * layout.code_bytes(), "the codes", source.resources());
  result.ids = HostArray<int64_t>(rows, "the ids", source.resources());
  int64_t at = 0;
  result.offsets[0] = 0;
  HostArray<uint8_t> blocks;
  for (int64_t list = 0; list < lists; ++list) {
    const int64_t size = source.count(kIdBytes, "the ids of a list");
    if (size > rows - at) source.corrupt("the lists hold more vectors than the index");
    source.read(result.ids.data() + at, size * kIdBytes, "the ids of a list");
    const int64_t count_blocks = divide_up(size, layout.block_rows);
    source.expect_count(1, count_blocks * layout.block_bytes(), "the codes of a list");
    read_blocks(source, layout, size, blocks, result.codes.data() + at * layout.code_bytes());
    at += size;
    result.offsets[list + 1] = at;
  }
  if (at != rows) source.corrupt("the lists hold fewer vectors than the index");
  return result;
}

// Rows and codes of one list in the order of rows. FAISS's lists are, unless something was removed; else a heap sort
// moves them where they are, since memory in proportion to a list is not to be had.
void sort_list(uint32_t* rows, uint8_t* codes, int64_t size, int64_t code_bytes) {
  if (std::is_sorted(rows, rows + size)) return;
  const auto swap = [&](int64_t a, int64_t b) {
    std::swap(rows[a], rows[b]);
    std::swap_ranges(codes + a * code_bytes, codes + (a + 1) * code_bytes, codes + b * code_bytes);
  };
  const auto sift_down = [&](int64_t at, int64_t end) {
    for (int64_t child = 2 * at + 1; child < end; child = 2 * at + 1) {
      if (child + 1 < end && rows[child] < rows[child + 1]) ++child;
      if (rows[at] >= rows[child]) return;
      swap(at, child);
      at = child;
    }
  };
  for (int64_t at = size / 2; at-- > 0;) sift_down(at, size);
  for (int64_t end = size; --end > 0;) {
    swap(0, end);
    sift_down(0, end);
  }
}

[[noreturn]] void refuse_repeated(FaissSource& source, int64_t id) {
  source.refused(fmt::format("two vectors have the id {}; an id names one vector in Kith", id));
}

// Whether the ids, none negative, are the numbers below their count.
bool are_row_numbers(FaissSource& source, const HostArray<int64_t>& ids) {
  constexpr int64_t kWordBits = 64;
  if (*std::max_element(ids.begin(), ids.end()) >= ids.size()) return false;
  HostArray<uint64_t> seen(divide_up(ids.size(), kWordBits), "the check of ids", source.resources());
  std::fill(seen.begin(), seen.end(), 0);
  for (const int64_t id : ids) {
    uint64_t& word = seen[id / kWordBits];
    const uint64_t bit = uint64_t{1} << (id % kWordBits);
    if ((word & bit) != 0) refuse_repeated(source, id);
    word |= bit;
  }
  return true;
}

// Ids in ascending order; a row's number is the place of its id. None where ids are row numbers.
HostArray<int64_t> sorted_ids(FaissSource& source, const HostArray<int64_t>& ids) {
  if (ids.size() == 0) return {};
  const int64_t least = *std::min_element(ids.begin(), ids.end());
  if (least < 0) source.refused(fmt::format("the id {} is negative; Kith's ids are 0 and above", least));
  if (are_row_numbers(source, ids)) return {};
  HostArray<int64_t> sorted(ids.size(), "the ids", source.resources());
  std::copy(ids.begin(), ids.end(), sorted.begin());
  std::sort(sorted.begin(), sorted.end());
  const int64_t* twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) refuse_repeated(source, *twice);
  return sorted;
}

// `blocked`: codes lie in blocks for fast scans, of `rows` vectors in all.
FaissLists read_inverted_lists(FaissSource& source, int64_t lists, int64_t code_bytes,
                               const std::optional<FastScanLayout>& blocked, int64_t rows) {
  const std::string tag = source.tag();
  if (tag == "ilar" && !blocked) return read_array_lists(source, lists, code_bytes);
  if (tag == "ilbl" && blocked) return read_blocked_lists(source, lists, *blocked, rows);
  if (tag == "ilod") {
    source.unsupported("lists on disk ('ilod'), which are not in this file; merge them into memory in FAISS first");
  }
  source.unsupported(fmt::format("lists of the kind '{}', which Kith lacks here", tag));
}

// Puts them into parts, whose numbers of rows and lists and whose code are known: rows are numbered by ascending id,
// and those of a list ascend.
void number_rows(FaissSource& source, FaissLists lists, IndexParts& parts) {
  const Resources& resources = source.resources();
  const int64_t count = lists.ids.size();
  HostArray<int64_t> ids = sorted_ids(source, lists.ids);
  HostArray<uint32_t> rows(count, "the rows of the lists", resources);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t id = lists.ids[i];
    const int64_t row = ids.size() == 0 ? id : std::lower_bound(ids.begin(), ids.end(), id) - ids.begin();
    rows[i] = static_cast<uint32_t>(row);
  }
  const int64_t code_bytes = parts.lists->codec.format.bytes();
  for (int64_t list = 0; list < parts.lists->lists; ++list) {
    const int64_t first = lists.offsets[list];
    sort_list(rows.data() + first, lists.codes.data() + first * code_bytes, lists.offsets[list + 1] - first,
              code_bytes);
  }
  parts.next_id = count;
  if (ids.size() > 0) {
    const int64_t last = ids[count - 1];
    parts.next_id = std::max(count, last == INT64_MAX ? last : last + 1);
  }
  parts.lists->offsets = std::move(lists.offsets);
  parts.lists->codes = std::move(lists.codes);
  parts.lists->rows = std::move(rows);
  parts.ids = std::move(ids);
}

void skip_hnsw(FaissSource& source) {
  constexpr std::string_view kWhat = "a graph over the centres";
  source.skip_array(sizeof(double), kWhat);    // assign_probas
  source.skip_array(sizeof(int32_t), kWhat);   // cum_nneighbor_per_level
  source.skip_array(sizeof(int32_t), kWhat);   // levels
  source.skip_array(sizeof(uint64_t), kWhat);  // offsets
  source.skip_array(sizeof(int32_t), kWhat);   // neighbors
  source.skip(5 * sizeof(int32_t), kWhat);     // entry_point, max_level, efConstruction, efSearch, upper_beam
}

// The vectors of a flat index, or those that an HNSW graph is over: Kith finds the nearest centres exactly.
MatrixBuffer read_centres(FaissSource& source, const FaissHeader& index, int64_t lists) {
  std::string tag = source.tag();
  if (tag == "IHNf") {
    read_faiss_header(source);
    skip_hnsw(source);
    tag = source.tag();
  }
  if (!is_flat_tag(tag)) {
    source.unsupported(
        fmt::format("centres in FAISS's {}; Kith takes flat ones, and HNSW over them", faiss_kind(tag)));
  }
  const FaissHeader header = read_faiss_header(source);
  if (header.cols != index.cols) source.corrupt(fmt::format("centres of {} columns, not {}", header.cols, index.cols));
  if (header.metric != index.metric) {
    source.refused("lists are chosen by another metric than vectors; Kith has one for both: build the index anew");
  }
  if (header.rows != lists) source.corrupt(fmt::format("{} centres for {} lists", header.rows, lists));
  return read_faiss_rows(source, header);
}

void skip_direct_map(FaissSource& source) {
  const auto type = source.number<uint8_t>("the kind of a direct map");
  if (type > 2) source.corrupt(fmt::format("a direct map of the kind {}", type));
  source.skip_array(sizeof(int64_t), "a direct map");
  if (type == 2) source.skip_array(2 * sizeof(int64_t), "a direct map");
}

// How codes lie in the lists: their bytes, or blocks of them.
struct ListedCode {
  FaissCode code;
  std::optional<FastScanLayout> blocked;
};

// Behind the centres: the code, and whether it is of residuals.
ListedCode read_listed_code(FaissSource& source, std::string_view tag, int64_t cols, bool& residual) {
  ListedCode listed;
  FaissCode& code = listed.code;
  const auto check_bytes = [&](uint64_t bytes) {
    if (bytes == static_cast<uint64_t>(code.code_bytes)) return;
    source.corrupt(fmt::format("codes of {} bytes, not {}", bytes, code.code_bytes));
  };
  if (tag == "IwFl") {
    code.codec.format = {.cols = cols};
    code.code_bytes = code.codec.format.bytes();
  } else if (tag == "IwSq") {
    code = read_scalar_quantizer(source, cols);
    source.exactly(code.code_bytes, "the bytes of a code");
    residual = source.flag("whether codes are residual");
    if (code.stores_bytes() && residual) source.unsupported("bytes of vectors less their centres, which Kith lacks");
  } else if (tag == "IwPQ" || tag == "IwPf") {
    residual = source.flag("whether codes are residual");
    const auto bytes = source.number<uint64_t>("the bytes of a code");
    const bool fast = tag == "IwPf";
    const int32_t block_rows = fast ? source.number<int32_t>("the vectors of a block") : 0;
    if (fast) source.skip(2 * sizeof(uint64_t) + sizeof(int32_t), "how the index is searched");
    code = read_product_quantizer(source, cols);
    check_bytes(bytes);
    if (fast) listed.blocked = fast_scan_layout(source, code.codec.format, block_rows);
  } else if (const FaissOwnCode* const own = own_code_of(tag)) {
    code = own->read(source, cols);
    residual = own->read_list_settings(source, code);
  } else {
    const auto bytes = source.number<uint64_t>("the bytes of a code");
    code = read_additive_quantizer(source, cols, tag == "IwRQ" ? kResidualCode : kLocalSearchCode);
    check_bytes(bytes);
    residual = source.flag("whether codes are residual");
    source.skip(sizeof(int32_t), "how the index is searched");
    if (residual) code.codec = without_norms(code.codec);
  }
  return listed;
}

}  // namespace

bool is_inverted_tag(std::string_view tag) {
  constexpr std::string_view kTags[] = {"IwFl", "IwPQ", "IwPf", "IwSq", "IwLS", "IwRQ"};
  if (std::find(std::begin(kTags), std::end(kTags), tag) != std::end(kTags)) return true;
  const FaissOwnCode* const own = own_code_of(tag);
  return own != nullptr && own->list_tag() == tag;
}

IndexParts read_faiss_inverted(FaissSource& source, std::string_view tag) {
  const FaissHeader header = read_faiss_header(source);
  IndexParts parts = begun_parts(source, header);
  ListParts& lists = parts.lists.emplace();
  lists.lists = source.bounded(1, static_cast<uint64_t>(kMostFaissRows), "the number of lists");
  parts.probes = source.bounded(1, std::numeric_limits<int64_t>::max(), "the number of probes");
  lists.centres = read_centres(source, header, lists.lists);
  skip_direct_map(source);
  ListedCode listed = read_listed_code(source, tag, header.cols, lists.residual);
  FaissCode& code = listed.code;
  if (code.stores_bytes()) parts.dtype = code.codec.format.dtype;
  FaissLists found = read_inverted_lists(source, lists.lists, code.code_bytes, listed.blocked, parts.rows);
  found.codes = code.known(std::move(found.codes), found.ids.size(), source.resources());
  const FaissOwnCode* const own = own_code_of(tag);
  for (int64_t list = 0; own != nullptr && list < lists.lists; ++list) {
    const int64_t first = found.offsets[list];
    own->convert(source, code.codec, typed_row<float>(lists.centres.view(), list), found.offsets[list + 1] - first,
                 found.codes.data() + first * code.code_bytes);
  }
  lists.codec = std::move(code.codec);
  if (found.ids.size() != parts.rows) {
    source.corrupt(fmt::format("lists of {} vectors in an index of {}", found.ids.size(), parts.rows));
  }
  number_rows(source, std::move(found), parts);
  parts.factory = fmt::format("IVF{},{}", lists.lists, code_name(lists.codec));
  return parts;
}

}  // namespace kith

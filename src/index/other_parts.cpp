#include "index/other_parts.hpp"

#include "graph/search/graph/walk_graph.hpp"
#include "quantize/code_encoder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>

namespace kith {
namespace {

constexpr size_t kMostNumbers = 3;
using Numbers = std::array<int64_t, kMostNumbers>;

// Matches a text with a pattern in which # is a number and a final * is anything.
std::optional<Numbers> match(std::string_view text, std::string_view pattern) {
  Numbers numbers{};
  size_t count = 0;
  for (; !pattern.empty(); pattern.remove_prefix(1)) {
    if (pattern[0] == '*') return numbers;
    if (pattern[0] == '#') {
      int64_t value = 0;
      const auto [after, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc() || value < 0) return std::nullopt;
      text.remove_prefix(static_cast<size_t>(after - text.data()));
      numbers[count++] = value;
    } else {
      if (text.empty() || text[0] != pattern[0]) return std::nullopt;
      text.remove_prefix(1);
    }
  }
  return text.empty() ? std::optional(numbers) : std::nullopt;
}

// The nearest degree that Kith's graphs can have.
int64_t near_degree(int64_t asked) {
  const int64_t up = (std::min(asked, kMostDegree) + kDegreeStep - 1) / kDegreeStep * kDegreeStep;
  return std::clamp(up, kDegreeStep, kMostDegree);
}

constexpr int64_t kMostPower = 20;  // of lists of a product
int64_t power_of_two(int64_t bits) { return int64_t{1} << std::clamp<int64_t>(bits, 0, kMostPower); }

int64_t product(int64_t a, int64_t b) { return std::clamp<int64_t>(a, 1, 1 << 15) * std::clamp<int64_t>(b, 1, 1 << 15); }

struct Known {
  std::string_view pattern;
  std::string (*advice)(const Numbers&);
};

constexpr Known kKnown[] = {
    {"HNSW#*",
     [](const Numbers& n) {
       const int64_t degree = n[0] > kMostDegree ? kMostDegree : near_degree(2 * n[0]);
       return fmt::format(
           "Graph{0} serves as HNSW{1} does (one layer, entered through cells, up to {0} neighbours of each vector); "
           "graphs that hnswlib or FAISS have built are read by read_hnswlib and read_faiss",
           degree, n[0]);
     }},
    {"HNSW*", [](const Numbers&) { return std::string("Kith's search graph is Graph64"); }},
    {"NSG#*", [](const Numbers& n) { return fmt::format("Kith's pruned graph is Graph{}", near_degree(n[0])); }},
    {"NSG*", [](const Numbers&) { return std::string("Kith's pruned graph is Graph32"); }},
    {"PRQ#x#x#*",
     [](const Numbers& n) {
       return fmt::format("residual codes are of whole vectors in Kith: RQ{}x8", std::min<int64_t>(product(n[0], n[1]), 64));
     }},
    {"PLSQ#x#x#*",
     [](const Numbers& n) {
       return fmt::format("LSQ codes are of whole vectors in Kith: LSQ{}x8", std::min<int64_t>(product(n[0], n[1]), 64));
     }},
    {"IMI#x#*",
     [](const Numbers& n) {
       return fmt::format("lists have centres of whole vectors in Kith; as many are IVF{}", power_of_two(n[0] * std::min<int64_t>(n[1], kMostPower)));
     }},
    {"RCQ#x#*",
     [](const Numbers& n) {
       return fmt::format("lists have centres of their own in Kith; as many are IVF{}", power_of_two(n[0] * std::min<int64_t>(n[1], kMostPower)));
     }},
    {"Residual*", [](const Numbers&) { return std::string("residual codes are RQ8x8, and lists IVF1024"); }},
    {"PQ#x4fs*", [](const Numbers& n) { return fmt::format("how codes are scanned is not part of a name in Kith: PQ{}x4", n[0]); }},
    {"RQ#x#fs*", [](const Numbers& n) { return fmt::format("how codes are scanned is not part of a name in Kith: RQ{}x{}", n[0], n[1]); }},
    {"LSQ#x#fs*", [](const Numbers& n) { return fmt::format("how codes are scanned is not part of a name in Kith: LSQ{}x{}", n[0], n[1]); }},
    {"RQ#x#x#*",
     [](const Numbers& n) {
       return fmt::format("codebooks have one size in Kith: RQ{}x{}", std::clamp<int64_t>(n[0], 1, 128), std::clamp<int64_t>(n[1], 1, 8));
     }},
    {"FlatDedup*", [](const Numbers&) { return std::string("equal vectors are each kept by Flat; near_duplicates finds them before"); }},
    {"PQ#+#", [](const Numbers& n) { return fmt::format("a second code to compare with is a part of its own: PQ{},Refine(PQ{})", n[0], n[1]); }},
    {"PCAW#", [](const Numbers& n) { return fmt::format("Kith's PCA does not whiten: PCA{}", n[0]); }},
    {"PCAWR#", [](const Numbers& n) { return fmt::format("Kith's PCA does not whiten: PCAR{}", n[0]); }},
    {"SQ8_direct*", [](const Numbers&) { return std::string("bytes are kept as they are by Flat, of uint8 or int8 vectors"); }},
    {"SQ8bit*", [](const Numbers&) { return std::string("it is called SQ8"); }},
    {"SQ#_#*", [](const Numbers&) { return std::string("Kith's scalar codes are SQ8, SQ6, SQ4, SQfp16 and SQbf16"); }},
    {"ZnLattice*", [](const Numbers&) { return std::string("Kith's small codes are PQ16 and SQ4"); }},
    {"IVF#_HNSW*", [](const Numbers& n) { return fmt::format("centres are found exactly in Kith: IVF{}", n[0]); }},
    {"IVF#_NSG*", [](const Numbers& n) { return fmt::format("centres are found exactly in Kith: IVF{}", n[0]); }},
    {"IVF#(*", [](const Numbers& n) { return fmt::format("centres are kept as they are in Kith: IVF{}", n[0]); }},
    {"LVQ*", [](const Numbers&) { return std::string("Kith's codes of four and eight bits are SQ4 and SQ8"); }},
    {"SVS*", [](const Numbers&) { return std::string("Kith's search graph is Graph64,SQ8"); }},
    {"MinMax*", [](const Numbers&) { return std::string("scalar codes have one range for each column in Kith: SQ8"); }},
    {"BFlat", [](const Numbers&) { return std::string("bits are searched by Flat, of uint8 vectors by the metric hamming"); }},
    {"BIVF*", [](const Numbers&) { return std::string("bits are searched by Flat alone, of uint8 vectors by the metric hamming"); }},
    {"BHNSW*", [](const Numbers&) { return std::string("bits are searched by Flat alone, of uint8 vectors by the metric hamming"); }},
    {"BHash*", [](const Numbers&) { return std::string("bits are searched by Flat alone, of uint8 vectors by the metric hamming"); }},
};

// Suffixes of additive codes, which say how norms are stored.
std::string advice_for_norm(std::string_view part) {
  const size_t mark = part.find("_N");
  if (mark == std::string_view::npos) return "";
  const std::string_view norm = part.substr(mark);
  for (const std::string_view theirs : {"_Nlsq2x4", "_Nrq2x4", "_Nqint4", "_Ncqint4"}) {
    if (norm != theirs) continue;
    return fmt::format("norms take a byte or four in Kith: {}_Nqint8", part.substr(0, mark));
  }
  return "";
}

}  // namespace

std::string advice_for_part(std::string_view part) {
  for (const Known& known : kKnown) {
    if (const std::optional<Numbers> numbers = match(part, known.pattern)) return known.advice(*numbers);
  }
  for (const CodeEncoder* const code : code_table()) {
    for (const OtherName& other : code->other_names()) {
      if (match(part, other.pattern)) return std::string(other.advice);
    }
  }
  return advice_for_norm(part);
}

}  // namespace kith

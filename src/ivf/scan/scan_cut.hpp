// How the search of lists on a GPU divides its work: the vectors of the first pass, and the items.
//
// A query's nearest lists, up to a number of vectors that is enough for a good threshold, are scanned first and all
// their values are stored: its first pairs. At most `kept_rows` of a list's vectors are stored, whatever its length. If
// a query has many lists, the first pass samples them, taking one of every few tiles of 64 consecutive vectors: the
// k-th value of a sample is also a threshold, slightly wider, for a fraction of the time. A sample of a long list is
// spread over all of it.
//
//   first pass           first pairs x (sampled) vectors up to kept_rows
//   second pass, whole   later pairs x vectors up to kept_rows, and all pairs x the others
//   second pass, sample  all pairs x all vectors
// An item is a run of such vectors and a group of such pairs of one list.
#pragma once

#include "core/host_device.hpp"
#include "kernels/codes/code_format.hpp"

#include <cstdint>

namespace kith {

inline constexpr int kMostFirstSlots = 16;   // lists of a query that are scanned first
inline constexpr uint32_t kSampleRows = 64;  // neighbouring vectors that a sample takes together
inline constexpr uint32_t kMostApart = 1024;  // tiles of a sample: offsets within an item are of 32 bits

KITH_HOST_DEVICE inline uint32_t cut_into(uint32_t count, int each) {
  return (count + static_cast<uint32_t>(each) - 1) / static_cast<uint32_t>(each);
}

struct ScanCut {
  int64_t kept_rows = 0;   // of a list; a multiple of kSampleRows
  int64_t first_rows = 0;  // the first pass takes a query's lists until they have this many vectors
  int sample_every = 1;    // the first pass takes at least one of this many tiles
  bool rescans = false;    // the second pass looks at all vectors, sampled or not
  int first_run_rows = 0;  // of an item of the first pass; a multiple of kSampleRows
  int later_run_rows = 0;  // of the second
  int group_queries = 0;   // of an item, at most; a multiple of 8

  KITH_HOST_DEVICE bool samples() const { return sample_every > 1 || rescans; }

  // The first pass takes one of this many tiles of a list.
  KITH_HOST_DEVICE uint32_t every_of(uint32_t length) const {
    if (!samples()) return 1;
    const uint32_t tiles = cut_into(length, static_cast<int>(kSampleRows));
    const uint32_t spread = cut_into(tiles, static_cast<int>(kept_rows / kSampleRows));
    const auto least = static_cast<uint32_t>(sample_every);
    if (spread > kMostApart) return kMostApart > least ? kMostApart : least;
    return spread > least ? spread : least;
  }
  // How many of a list's vectors the first pass looks at.
  KITH_HOST_DEVICE uint32_t first_rows_of(uint32_t length) const {
    uint32_t rows = length;
    if (samples() && length > 0) {
      const uint32_t apart = kSampleRows * every_of(length);
      const uint32_t before_last = (length - 1) / apart;
      const uint32_t last = length - before_last * apart;
      rows = before_last * kSampleRows + (last < kSampleRows ? last : kSampleRows);
    }
    const auto most = static_cast<uint32_t>(kept_rows);
    return rows < most ? rows : most;
  }
};

// The position in a list of a vector given its number in a sample of every `every`-th tile.
KITH_HOST_DEVICE inline uint32_t sampled_row(uint32_t number, uint32_t every) {
  return number / kSampleRows * kSampleRows * every + number % kSampleRows;
}

// The vectors and the pairs of a list, first ones before later ones, that items are cut from.
struct ScanPart {
  uint32_t first_row;  // of the first pass: before it is spread over the list
  uint32_t end_row;
  uint32_t first_pair;
  uint32_t end_pair;

  KITH_HOST_DEVICE uint32_t runs(int run_rows) const { return cut_into(end_row - first_row, run_rows); }
  KITH_HOST_DEVICE uint32_t groups(int group_queries) const { return cut_into(end_pair - first_pair, group_queries); }
};

KITH_HOST_DEVICE inline ScanPart first_part(const ScanCut& cut, uint32_t length, uint32_t first) {
  return {0, cut.first_rows_of(length), 0, first};
}

// The second pass has two.
KITH_HOST_DEVICE inline ScanPart later_part(const ScanCut& cut, uint32_t length, uint32_t first, uint32_t later,
                                            int part) {
  if (cut.samples()) return part == 0 ? ScanPart{0, length, 0, first + later} : ScanPart{0, 0, 0, 0};
  const uint32_t kept = cut.first_rows_of(length);
  return part == 0 ? ScanPart{0, kept, first, first + later} : ScanPart{kept, length, 0, first + later};
}

// What lookup tables of product codes spare when something is kept beside the lists: section 5.2 of "Billion-scale
// similarity search with GPUs".
//
// With x a query, c a list's centre and r a decoded residual, |x - c - r|^2 = |x - c|^2 + (|r|^2 + 2 <c, r>) - 2 <x,
// r>. The first part is a number for each pair of query and list, tables of the last are made once for a query, and the
// middle, which no query changes, is
//   of_vector  kept for each vector: 4 bytes
//   of_list    a table for each list, added to the query's: 1,024 bytes a part; less than the former where lists are
//   long none       not kept: tables of |x - c - w|^2 are made for every pair of query and list
// Both x and c are taken less a point amid the centres, so that data far from zero loses nothing.
enum class ScanTerm : uint8_t { none, of_list, of_vector };

// On the device; made by launch_scan_terms().
struct ScanTerms {
  ScanTerm term = ScanTerm::none;
  float* middle = nullptr;   // the point amid the centres, scaled as halves are; zeros where lists have no origin
  float* vectors = nullptr;  // of each vector
  float* tables = nullptr;   // lists x parts x 256
};

inline int64_t scan_term_floats(ScanTerm term, const CodeFormat& format, int64_t lists, int64_t vectors) {
  switch (term) {
    case ScanTerm::of_list: return lists * format.parts * 256;
    case ScanTerm::of_vector: return vectors;
    default: return 0;
  }
}

// The term that fits in memory; the faster one if possible.
inline ScanTerm scan_term_within(int64_t most_bytes, const CodeFormat& format, int64_t lists, int64_t vectors) {
  for (const ScanTerm term : {ScanTerm::of_vector, ScanTerm::of_list}) {
    if (4 * scan_term_floats(term, format, lists, vectors) <= most_bytes) return term;
  }
  return ScanTerm::none;
}

// In which order matrix units see the columns of a vector, in both operands of the scan of lists.
//
// Columns are taken in units of four neighbours, a step of 16 is four units, and lane 4 g + t decodes the unit of its
// quarter t of every step. Which unit that is depends on how the code is read best:
//   side by side   unit 4 s + t at step s: the quarters of a step are 16 neighbouring columns
//   paired         units 2 t and 2 t + 1 of eight, at an even step and the next: a lane reads eight columns at once
//   apart          unit 8 t + s: a lane's units are neighbours, and so are their bytes in a code of one or two bytes a
//                  unit, which it then reads at once
inline constexpr int kNarrowSteps = 8;  // of 16 columns: a tile of vectors stays in registers

// The columns that products are of, at least: zeros past the vectors' own.
KITH_HOST_DEVICE inline int64_t operand_cols(const CodeFormat& format) {
  return format.cols <= kNarrowSteps * 16 ? kNarrowSteps * 16 : (format.cols + 15) / 16 * 16;
}

// Codewords of a multiple of four columns are looked up by the unit, those of two or three by parts of it: 256 x 16
// columns a step, as halves, so that the quarters of a step never meet in one bank of shared memory.
inline constexpr int64_t kTableStepBytes = 256 * 32;

inline int64_t table_steps(const CodeFormat& format) { return (format.cols + 15) / 16; }

// Sub-vectors of three columns, of which a unit of four has two.
inline bool has_triple_words(const CodeFormat& format) {
  return format.cols == 3 * format.parts && format.cols % 4 == 0;
}

inline bool has_half_table(const CodeFormat& format) {
  if (!format.copies_codewords() || format.bits != 8 || format.cols > kNarrowSteps * 16) return false;
  return format.part_cols() % 4 == 0 || format.part_cols() == 2 || has_triple_words(format);
}

// Wide vectors' codewords are copied as fp16, eight columns at a time if these belong to one part. For that, codewords
// of a multiple of four columns are padded: their first eight places are those of the eight columns they begin in.
KITH_HOST_DEVICE inline int64_t codeword_places(int64_t part_cols) {
  return part_cols % 8 == 4 ? (part_cols + 4 + 7) / 8 * 8 : part_cols;
}
KITH_HOST_DEVICE inline int64_t first_codeword_place(int64_t part, int64_t part_cols) {
  return part_cols % 4 == 0 ? part * part_cols % 8 : 0;
}

inline bool copies_codeword_halves(const CodeFormat& format) {
  return format.copies_codewords() && format.bits == 8 && format.part_cols() % 2 == 0 &&
         format.cols > kNarrowSteps * 16;
}

inline int64_t half_table_values(const CodeFormat& format) {
  if (has_half_table(format)) return table_steps(format) * kTableStepBytes / 2;
  return copies_codeword_halves(format) ? 256 * format.parts * codeword_places(format.part_cols()) : 0;
}

enum class UnitOrder : uint8_t { side_by_side, paired, apart };

// The order of codes that are looked up in tables, and of all that have no order of their own.
KITH_HOST_DEVICE inline UnitOrder unit_order(const CodeFormat& format) {
  const bool apart = format.copies_codewords() && format.bits == 8 && format.cols == kNarrowSteps * 16 &&
                     (format.part_cols() == 4 || format.part_cols() == 2);
  return apart ? UnitOrder::apart : UnitOrder::side_by_side;
}

KITH_HOST_DEVICE inline int unit_of(UnitOrder order, int step, int quarter) {
  switch (order) {
    case UnitOrder::apart: return kNarrowSteps * quarter + step;
    case UnitOrder::paired: return step / 2 * 8 + 2 * quarter + step % 2;
    default: return 4 * step + quarter;
  }
}
KITH_HOST_DEVICE inline int step_of_unit(UnitOrder order, int unit) {
  switch (order) {
    case UnitOrder::apart: return unit % kNarrowSteps;
    case UnitOrder::paired: return unit / 8 * 2 + unit % 2;
    default: return unit / 4;
  }
}
KITH_HOST_DEVICE inline int quarter_of_unit(UnitOrder order, int unit) {
  switch (order) {
    case UnitOrder::apart: return unit / kNarrowSteps;
    case UnitOrder::paired: return unit % 8 / 2;
    default: return unit % 4;
  }
}

}  // namespace kith

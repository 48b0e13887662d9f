// What lookup tables of product codes spare when something is kept beside the lists: section 5.2 of "Billion-scale
// similarity search with GPUs".
//
// With x a query, c a list's centre and r a decoded residual, |x - c - r|^2 = |x - c|^2 + (|r|^2 + 2 <c, r>) - 2 <x, r>. The
// first part is a number for each pair of query and list, tables of the last are made once for a query, and the middle,
// which no query changes, is
//   of_vector  kept for each vector: 4 bytes
//   of_list    a table for each list, added to the query's: 1,024 bytes a part; less than the former where lists are long
//   none       not kept: tables of |x - c - w|^2 are made for every pair of query and list
// Both x and c are taken less a point amid the centres, so that data far from zero loses nothing.
#pragma once

#include "core/host_device.hpp"
#include "kernels/codes/code_format.hpp"

#include <cstdint>

namespace kith {

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

// What there is room for: the quicker one where it fits.
inline ScanTerm scan_term_within(int64_t most_bytes, const CodeFormat& format, int64_t lists, int64_t vectors) {
  for (const ScanTerm term : {ScanTerm::of_vector, ScanTerm::of_list}) {
    if (4 * scan_term_floats(term, format, lists, vectors) <= most_bytes) return term;
  }
  return ScanTerm::none;
}

}  // namespace kith

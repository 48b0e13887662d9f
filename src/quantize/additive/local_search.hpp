// Iterated local search for the codes of rows: Algorithms 1 and 2 of "Solving multi-codebook quantization in the GPU"
// (Martinez, Hoos, Little, 2016), with its errata mended: the cost is the squared distance itself, and every round
// begins with the best codes so far.
//
// A round perturbs a few codes, drawn without replacement by reservoir sampling, walks to a local minimum by sweeps of
// ICM over the books (icm_engine.hpp), and stays there where that cost is lower. Draws depend on (seed, row, round)
// alone: 16 rounds and then 16 more are 32 rounds, and no split of the rows matters.
//
// A step is left out where no other code has changed since the last one of its book: it would change nothing. So are
// all that are left of a round once a row has come to codes that are known (SettledCodes).
#pragma once

#include <kith/local_search_quantizer.hpp>
#include <kith/resources.hpp>

#include "core/host_array.hpp"
#include "quantize/additive/code_draws.hpp"
#include "quantize/additive/icm_engine.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

namespace kith {

// Codes that no step of ICM changes, as far as they are known: for each row of a block its best ones, and some that
// earlier rounds of the search ended with. A step depends on the row and its codes alone, and all of these cost at
// least as much as the best: a round that comes to one of them is over, and has found nothing.
//
// On SIFT with 7 codebooks two rounds in five come back to the best codes, and another one in four to others.
class SettledCodes {
 public:
  SettledCodes(int64_t books, int64_t block_rows, const Resources& resources)
      : books_(books),
        marks_(block_rows * kHeld, "a block of codes", resources),
        codes_(block_rows * kHeld * books, "a block of codes", resources),
        next_(block_rows, "a block of codes", resources) {}

  // A number that codes are compared by first: the sum of those of its codes.
  static uint32_t mark_of(int64_t book, uint8_t code) {
    return static_cast<uint32_t>(code) * (0x9E3779B1u * static_cast<uint32_t>(2 * book + 1));
  }
  uint32_t mark_of(const uint8_t* codes) const {
    uint32_t mark = 0;
    for (int64_t k = 0; k < books_; ++k) mark += mark_of(k, codes[k]);
    return mark;
  }

  void clear() {
    std::fill(marks_.begin(), marks_.end(), kNobodys);
    std::fill(codes_.begin(), codes_.end(), uint8_t{0});
    std::fill(next_.begin(), next_.end(), uint8_t{0});
  }

  bool holds(int64_t row, const uint8_t* codes, uint32_t mark) const {
    const uint32_t* const marks = marks_.data() + row * kHeld;
    bool any = false;
    for (int64_t i = 0; i < kHeld; ++i) any |= marks[i] == mark;
    for (int64_t i = 0; any && i < kHeld; ++i) {
      if (marks[i] == mark && std::memcmp(place(row, i), codes, static_cast<size_t>(books_)) == 0) return true;
    }
    return false;
  }

  // The oldest gives way.
  void add(int64_t row, const uint8_t* codes, uint32_t mark) {
    put(row, 1 + next_[row], codes, mark);
    next_[row] = static_cast<uint8_t>((next_[row] + 1) % (kHeld - 1));
  }

  // The best codes of a row are others now, whether they are settled or not; those before are kept like any.
  void add_best(int64_t row, const uint8_t* codes, uint32_t mark, bool settled) {
    const uint32_t before = marks_[row * kHeld];
    if (before != kNobodys && before != mark) add(row, place(row, 0), before);
    if (settled) {
      put(row, 0, codes, mark);
    } else {
      marks_[row * kHeld] = kNobodys;
      std::fill_n(place(row, 0), books_, uint8_t{0});
    }
  }

 private:
  static constexpr int64_t kHeld = 8;
  static constexpr uint32_t kNobodys = 1;  // with codes of 0, whose mark is 0

  uint8_t* place(int64_t row, int64_t i) const { return codes_.data() + (row * kHeld + i) * books_; }
  void put(int64_t row, int64_t i, const uint8_t* codes, uint32_t mark) {
    marks_[row * kHeld + i] = mark;
    std::copy_n(codes, books_, place(row, i));
  }

  const int64_t books_;
  HostArray<uint32_t> marks_;  // rows x kHeld: the best codes' first
  HostArray<uint8_t> codes_;
  HostArray<uint8_t> next_;  // of the others, that which is replaced next
};

struct LocalSearchPlan {
  int64_t rounds = 16;
  int64_t from_round = 0;     // the number of the first
  int64_t sweeps = 4;         // of a round
  int64_t perturbed = 4;      // codes of a round; 0: none
  bool random_order = false;  // of the books in a sweep, the same for all rows; else as they are
  uint64_t seed = 0;
};

LocalSearchPlan plan_of(const LocalSearchParams& params, int64_t rounds, int64_t from_round);

inline void perturb_codes(const LocalSearchPlan& plan, int64_t row, int64_t round, int64_t books, int bits,
                          uint8_t* codes) {
  perturb_codes(Perturbation{plan.seed, plan.perturbed}, row, round, books, bits, codes);
}
// The books of a sweep, in order.
void order_books(const LocalSearchPlan& plan, int64_t round, int64_t sweep, int64_t books, std::vector<int64_t>& order);

// The search of a block of rows. One thread's.
class LocalSearch {
 public:
  LocalSearch(const LocalSearchPlan& plan, const Codebooks& books, int64_t block_rows, const Resources& resources);

  // Each book's code by the books before it.
  void start_greedy(IcmEngine& engine, int64_t count, uint8_t* codes);
  // From the codes given to better ones; costs[i] is their cost then. `numbers`: of the rows, for their draws.
  // `after_round`: called with the number of rounds that are done, and may throw.
  void run(IcmEngine& engine, const int64_t* numbers, int64_t count, uint8_t* codes, float* costs,
           const std::function<void(int64_t)>& after_round = {});

 private:
  void start_round(const int64_t* numbers, int64_t round, int64_t count, const uint8_t* codes);
  // False where no row had a step to take.
  bool sweep(IcmEngine& engine, int64_t count, int32_t* now);
  void end_round(IcmEngine& engine, int64_t count, uint8_t* codes, float* costs);
  // Whether no step would change a row's current codes.
  bool is_settled(int64_t row) const;

  const LocalSearchPlan plan_;
  const int64_t books_;
  const int bits_;
  const int64_t block_rows_;
  std::vector<int64_t> order_;
  HostArray<uint8_t> current_;
  HostArray<uint32_t> marks_;   // of the current codes
  HostArray<int32_t> changed_;  // for each row, when a code of it last changed; kOver where its round is over
  HostArray<int32_t> looked_;   // for each book and row, when its last step was
  HostArray<uint32_t> active_;
  HostArray<uint8_t> found_;
  SettledCodes settled_;
};

}  // namespace kith

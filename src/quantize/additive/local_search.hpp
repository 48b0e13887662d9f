// Iterated local search for the codes of rows: Algorithms 1 and 2 of "Solving multi-codebook quantization in the GPU"
// (Martinez, Hoos, Little, 2016), with its errata corrected: the cost is the squared distance, and every round begins
// with the best codes so far.
//
// A round perturbs a few codes, chosen without replacement by reservoir sampling, descends to a local minimum by sweeps
// of ICM over the books (icm_engine.hpp), and keeps it if its cost is lower. Random numbers depend only on (seed, row,
// round): 16 rounds and 16 more are 32 rounds, however the rows are split.
//
// A step is skipped if no other code has changed since the last step of its book, as it would not change anything. The
// rest of a round is skipped once a row reaches codes that are known to be a local minimum (LocalMinima).
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

// Known local minima of ICM: for each row of a block its best codes, and some with which earlier rounds ended. A step
// depends only on the row and its codes, and none of these costs less than the best, so a round that reaches one of
// them cannot find anything better and ends.
//
// On SIFT with 7 codebooks two rounds in five return to the best codes, and another one in four to others.
class LocalMinima {
 public:
  LocalMinima(int64_t books, int64_t block_rows, const Resources& resources)
      : books_(books),
        marks_(block_rows * kHeld, "a block of codes", resources),
        codes_(block_rows * kHeld * books, "a block of codes", resources),
        next_(block_rows, "a block of codes", resources) {}

  // A hash of codes, compared before the codes themselves: the sum of the hashes of the single codes.
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

  // Replaces the oldest.
  void add(int64_t row, const uint8_t* codes, uint32_t mark) {
    put(row, 1 + next_[row], codes, mark);
    next_[row] = static_cast<uint8_t>((next_[row] + 1) % (kHeld - 1));
  }

  // Replaces the best codes of a row, local minima or not; the former ones are kept like any others.
  void add_best(int64_t row, const uint8_t* codes, uint32_t mark, bool is_local_minimum) {
    const uint32_t before = marks_[row * kHeld];
    if (before != kNobodys && before != mark) add(row, place(row, 0), before);
    if (is_local_minimum) {
      put(row, 0, codes, mark);
    } else {
      marks_[row * kHeld] = kNobodys;
      std::fill_n(place(row, 0), books_, uint8_t{0});
    }
  }

 private:
  static constexpr int64_t kHeld = 8;
  static constexpr uint32_t kNobodys = 1;  // an empty place; its codes are 0, whose mark would be 0

  uint8_t* place(int64_t row, int64_t i) const { return codes_.data() + (row * kHeld + i) * books_; }
  void put(int64_t row, int64_t i, const uint8_t* codes, uint32_t mark) {
    marks_[row * kHeld + i] = mark;
    std::copy_n(codes, books_, place(row, i));
  }

  const int64_t books_;
  HostArray<uint32_t> marks_;  // rows x kHeld, that of the best codes first
  HostArray<uint8_t> codes_;
  HostArray<uint8_t> next_;  // which of the others is replaced next
};

struct LocalSearchPlan {
  int64_t rounds = 16;
  int64_t from_round = 0;     // number of the first round
  int64_t sweeps = 4;         // per round
  int64_t perturbed = 4;      // codes per round; 0: none
  bool random_order = false;  // a random order of the books in each sweep, the same for all rows
  uint64_t seed = 0;
};

LocalSearchPlan plan_of(const LocalSearchParams& params, int64_t rounds, int64_t from_round);

inline void perturb_codes(const LocalSearchPlan& plan, int64_t row, int64_t round, int64_t books, int bits,
                          uint8_t* codes) {
  perturb_codes(Perturbation{plan.seed, plan.perturbed}, row, round, books, bits, codes);
}
// The books of a sweep, in order.
void order_books(const LocalSearchPlan& plan, int64_t round, int64_t sweep, int64_t books, std::vector<int64_t>& order);

// The search for a block of rows, by one thread.
class LocalSearch {
 public:
  LocalSearch(const LocalSearchPlan& plan, const Codebooks& books, int64_t block_rows, const Resources& resources);

  // Chooses each book's code given the books before it.
  void start_greedy(IcmEngine& engine, int64_t count, uint8_t* codes);
  // Improves the given codes; costs[i] is the cost of the result. `numbers`: of the rows, for random numbers.
  // `after_round` is called with the number of finished rounds, and may throw.
  void run(IcmEngine& engine, const int64_t* numbers, int64_t count, uint8_t* codes, float* costs,
           const std::function<void(int64_t)>& after_round = {});

 private:
  void start_round(const int64_t* numbers, int64_t round, int64_t count, const uint8_t* codes);
  // False if all steps were skipped.
  bool sweep(IcmEngine& engine, int64_t count, int32_t* now);
  void end_round(IcmEngine& engine, int64_t count, uint8_t* codes, float* costs);
  // Whether no step would change a row's current codes.
  bool is_local_minimum(int64_t row) const;

  const LocalSearchPlan plan_;
  const int64_t books_;
  const int bits_;
  const int64_t block_rows_;
  std::vector<int64_t> order_;
  HostArray<uint8_t> current_;
  HostArray<uint32_t> marks_;   // of the current codes
  HostArray<int32_t> changed_;  // per row, when one of its codes last changed; kOver once its round has ended
  HostArray<int32_t> looked_;   // per book and row, the time of the last step
  HostArray<uint32_t> active_;
  HostArray<uint8_t> found_;
  LocalMinima minima_;
};

}  // namespace kith

// Iterated local search for the codes of rows: Algorithms 1 and 2 of "Solving multi-codebook quantization in the GPU"
// (Martinez, Hoos, Little, 2016), with its errata mended: the cost is the squared distance itself, and every round
// begins with the best codes so far.
//
// A round perturbs a few codes, drawn without replacement by reservoir sampling, walks to a local minimum by sweeps of
// ICM over the books (icm_engine.hpp), and stays there where that cost is lower. Draws depend on (seed, row, round)
// alone: 16 rounds and then 16 more are 32 rounds, and no split of the rows matters.
//
// A step is left out where no other code has changed since the last one of its book: it would change nothing. So are all
// that are left of a round once a row has come to codes that are known (settled_codes.hpp).
#pragma once

#include <kith/local_search_quantizer.hpp>

#include "core/host_array.hpp"
#include "quantize/additive/code_draws.hpp"
#include "quantize/additive/icm_engine.hpp"
#include "quantize/additive/settled_codes.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace kith {

struct LocalSearchPlan {
  int64_t rounds = 16;
  int64_t from_round = 0;    // the number of the first
  int64_t sweeps = 4;        // of a round
  int64_t perturbed = 4;     // codes of a round; 0: none
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
  static int64_t bytes_for(const Codebooks& books, int64_t block_rows);

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

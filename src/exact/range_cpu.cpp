#include "exact/range_cpu.hpp"

#include "core/ordered_key.hpp"

namespace kith {

RangeCpu::RangeCpu(const KnnProblem& problem, const PlannedKnn& planned, const KnnInput& input, float most,
                   const Resources& results)
    : most_(most),
      capacity_(CandidateList::capacity_for(problem.k)),
      scanner_(problem, planned.plan, input.kept, planned.resources()),
      keys_(planned.resources().threads() * capacity_ * static_cast<int64_t>(sizeof(float)), "the candidates' keys",
            planned.resources()),
      hits_(results) {}

void RangeCpu::finish(CandidateList* list, int64_t query, uint32_t first_row, int slot, const RowScorer& score) {
  float* const keys = keys_.as<float>() + slot * capacity_;
  score(list->rows(), list->size(), keys);
  for (int64_t i = 0; i < list->size(); ++i) {
    if (keys[i] <= most_) hits_.add(slot, query, pack_neighbor(ordered_key(keys[i]), first_row + list->rows()[i]));
  }
  list->clear();
}

}  // namespace kith

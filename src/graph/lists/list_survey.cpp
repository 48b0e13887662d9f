#include "graph/lists/list_survey.hpp"

#include "core/divide.hpp"
#include "core/parallel_for.hpp"
#include "core/result_exit.hpp"

#include <algorithm>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kSurveyedRowsPerTask = 2048;

// Four sums, which do not wait for each other.
double sum_of_distances(const ResultExit& exit, const uint64_t* list, int64_t count) {
  double sums[4] = {};
  int64_t j = 0;
  for (; j + 4 <= count; j += 4) {
    for (int64_t i = 0; i < 4; ++i) sums[i] += exit.distance(list[j + i]);
  }
  for (; j < count; ++j) sums[0] += exit.distance(list[j]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace

ListSurvey survey_lists(const WorkingLists& lists, int64_t k, Metric metric, Flags flags, const Resources& resources) {
  const int64_t tasks = divide_up(lists.rows(), kSurveyedRowsPerTask);
  std::vector<ListSurvey> parts(static_cast<size_t>(tasks));
  const ResultExit exit(metric);
  const Resources quiet = resources.with_progress({});
  ProgressMeter meter("survey", lists.rows(), quiet);
  parallel_for(tasks, meter, quiet, [&](int64_t task, int) {
    ListSurvey part;
    const int64_t end = std::min((task + 1) * kSurveyedRowsPerTask, lists.rows());
    for (int64_t row = task * kSurveyedRowsPerTask; row < end; ++row) {
      uint64_t* const list = lists.list(row);
      int64_t count = lists.length();
      while (count > 0 && list[count - 1] == kPadding) --count;
      part.phi += sum_of_distances(exit, list, std::min(k, count));
      for (int64_t j = 0; j < count; ++j) part.updates += is_old(list[j]) ? 0 : 1;
      if (flags == Flags::set) {
        for (int64_t j = 0; j < count; ++j) list[j] |= kOldFlag;
      } else if (flags == Flags::clear) {
        for (int64_t j = 0; j < count; ++j) list[j] = without_flag(list[j]);
      }
    }
    parts[static_cast<size_t>(task)] = part;
  });
  ListSurvey all;
  for (const ListSurvey& part : parts) {
    all.phi += part.phi;
    all.updates += part.updates;
  }
  return all;
}

}  // namespace kith

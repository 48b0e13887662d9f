#include "graph/list_survey.hpp"

#include "core/divide.hpp"
#include "core/parallel_for.hpp"
#include "core/result_exit.hpp"

#include <algorithm>
#include <vector>

namespace kith {
namespace {

constexpr int64_t kSurveyedRowsPerTask = 2048;

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
      for (int64_t j = 0; j < lists.length() && list[j] != kPadding; ++j) {
        if (j < k) part.phi += exit.distance(list[j]);
        part.updates += is_old(list[j]) ? 0 : 1;
        if (flags == Flags::set) list[j] |= kOldFlag;
        if (flags == Flags::clear) list[j] = without_flag(list[j]);
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

#include "ivf/search/batch_search.hpp"

#include "core/divide.hpp"
#include "ivf/model/list_assignment.hpp"
#include "kernels/distance/canonical.hpp"
#include "kernels/distance/distance_cpu.hpp"
#include "rows/stored_row.hpp"

#include <algorithm>
#include <memory>
#include <new>

namespace kith {
namespace {

constexpr int64_t kMostTaskRows = 1 << 15;  // vectors of a task

}  // namespace

BatchSearch::BatchSearch(const ListedVectors& vectors, std::vector<float> origin, const CodeWords::Wanted& words,
                         const int64_t* sizes, const uint64_t* kept, const IvfWish& wish, const IvfPlan& plan,
                         const Resources& resources)
    : vectors_(vectors),
      tables_(vectors.model(), std::move(origin), words, resources),
      sizes_(sizes),
      kept_(kept),
      wish_(wish),
      plan_(plan),
      resources_(resources),
      quiet_(resources.with_progress({})),
      queries_(plan.query_batch * vectors.model().cols(), "the queries", resources),
      inverse_norms_(plan.query_batch, "the queries' norms", resources),
      list_memory_(plan.query_batch * CandidateList::bytes_for(wish.list_length), "the candidate lists", resources),
      locks_(static_cast<size_t>(plan.query_batch)),
      thresholds_(static_cast<size_t>(plan.query_batch)),
      probes_(plan.query_batch, wish.probes, resources) {
  std::byte* const candidates = list_memory_.data() + array_bytes<CandidateList>(plan.query_batch);
  const int64_t bytes = CandidateList::capacity_for(wish.list_length) * CandidateList::kBytesPerCandidate;
  for (int64_t i = 0; i < plan.query_batch; ++i) {
    new (lists() + i) CandidateList(candidates + i * bytes, wish.list_length);
  }
}

void BatchSearch::load(const MatrixView& queries, const int64_t* numbers, int64_t count,
                       std::vector<int64_t>* short_ones) {
  const IvfModel& model = vectors_.model();
  const int64_t cols = model.cols();
  numbers_.assign(numbers, numbers + count);
  for (int64_t i = 0; i < count; ++i) widen_row(queries, numbers[i], queries_.data() + i * cols);
  if (model.has_centres()) {
    rank_lists(model.metric, model.centres.view(), MatrixView(queries_.data(), count, cols), wish_.probes,
               probes_.lists.data(), quiet_);
  } else {
    std::fill_n(probes_.lists.data(), count, 0);
  }
  int64_t stay = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (!choose_probes(i, stay)) {
      short_ones->push_back(numbers[i]);
      continue;
    }
    if (stay != i) {
      std::copy_n(queries_.data() + i * cols, cols, queries_.data() + stay * cols);
      numbers_[static_cast<size_t>(stay)] = numbers[i];
    }
    inverse_norms_[stay] = canonical_inverse_norm(canonical_squared_norm_cpu(queries_.data() + stay * cols, cols));
    ++stay;
  }
  probes_.queries = stay;
}

void BatchSearch::run(CandidateUser& user, ProgressMeter& meter) {
  for (int64_t q = 0; q < queries(); ++q) {
    lists()[q].reset(user.threshold(q));
    thresholds_[static_cast<size_t>(q)] = user.threshold(q);
  }
  const int64_t k = wish_.lowers ? wish_.list_length : 0;
  const ListScanContext context{
      vectors_, tables_, queries_.data(), inverse_norms_.data(), k, lists(), locks_.data(), thresholds_.data(), user,
      kept_,    meter};
  std::vector<std::unique_ptr<ListScan>> scans;
  for (int slot = 0; slot < resources_.threads(); ++slot) {
    scans.push_back(std::make_unique<ListScan>(context, plan_.scan, slot, resources_));
  }
  for (const ProbePart part : {ProbePart::first, ProbePart::rest}) {
    const ListVisits visits = invert_probes(probes_, part, vectors_.model().lists(), resources_);
    const std::vector<ListTask> tasks = cut(visits);
    const auto count = static_cast<int64_t>(tasks.size());
    std::vector<int64_t> groups = {0};
    const int64_t most = std::max<int64_t>(1, count / (2 * resources_.threads()));  // all threads have some
    while (groups.back() < count) {
      const int64_t first = groups.back();
      groups.push_back(first + ListScan::together(plan_.scan, tasks.data() + first, std::min(most, count - first)));
    }
    parallel_for(static_cast<int64_t>(groups.size()) - 1, meter, resources_, [&](int64_t group, int slot) {
      const int64_t first = groups[static_cast<size_t>(group)];
      scans[static_cast<size_t>(slot)]->run(tasks.data() + first, groups[static_cast<size_t>(group) + 1] - first);
    });
  }
  parallel_for(queries(), meter, resources_,
               [&](int64_t query, int slot) { scans[static_cast<size_t>(slot)]->finish(query); });
}

bool BatchSearch::choose_probes(int64_t from, int64_t to) {
  const int64_t width = probes_.width;
  if (from != to) std::copy_n(probes_.lists.data() + from * width, width, probes_.lists.data() + to * width);
  int64_t held = 0;
  int64_t count = 0;
  int64_t first = 0;
  while (count < width && (count < wish_.asked || held < wish_.fewest)) {
    const int64_t list = probes_.list(to, count++);
    held += sizes_ == nullptr ? size_of(list) : sizes_[list];
    if (first == 0 && held >= wish_.list_length) first = count;
  }
  probes_.counts[to] = static_cast<int32_t>(count);
  probes_.firsts[to] = static_cast<int32_t>(first == 0 || !wish_.lowers ? count : first);
  return held >= wish_.fewest || width == vectors_.model().lists();
}

std::vector<ListTask> BatchSearch::cut(const ListVisits& visits) const {
  std::vector<ListTask> tasks;
  int64_t work = 0;
  for (const ListVisit& visit : visits.lists)
    work += size_of(visit.list) * divide_up(visit.count, plan_.scan.query_block);
  constexpr int64_t kTasksPerThread = 8;
  const int64_t most =
      std::clamp(round_up(divide_up(work, kTasksPerThread * resources_.threads()), plan_.scan.piece_rows),
                 plan_.scan.piece_rows, kMostTaskRows);
  for (const ListVisit& visit : visits.lists) {
    for (size_t s = 0; s < vectors_.segments().size(); ++s) {
      const ListSegment& segment = *vectors_.segments()[s];
      const int64_t end = segment.offsets()[visit.list + 1];
      for (int64_t first = segment.offsets()[visit.list]; first < end; first += most) {
        for (int64_t q = 0; q < visit.count; q += plan_.scan.query_block) {
          tasks.push_back({s,
                           first,
                           std::min(first + most, end),
                           {visits.queries.data() + visit.first + q,
                            std::min(plan_.scan.query_block, visit.count - q), visit.list}});
        }
      }
    }
  }
  return tasks;
}

int64_t BatchSearch::size_of(int64_t list) const {
  int64_t size = 0;
  for (const Segment& segment : vectors_.segments()) size += segment->size_of(list);
  return size;
}

}  // namespace kith

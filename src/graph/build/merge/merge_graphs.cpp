// Two graphs, many, a graph and new rows, or a graph alone: lists, rounds, a report.
#include <kith/graph_merge.hpp>

#include <kith/error.hpp>
#include <kith/knn.hpp>

#include "core/within_limits.hpp"
#include "cuda/resolve_device.hpp"
#include "graph/build/exact/exact_graph.hpp"
#include "graph/build/ggm/graph_parts.hpp"
#include "graph/build/merge/new_rows.hpp"
#include "graph/build/method/build_graph.hpp"
#include "graph/build/method/method_choice.hpp"
#include "graph/build/nn_descent/descent_workspace.hpp"
#include "graph/build/nn_descent/nn_descent.hpp"
#include "graph/handle/graph_check.hpp"
#include "graph/handle/graph_output.hpp"
#include "graph/lists/graph_lists_cpu.hpp"
#include "graph/lists/graph_share.hpp"
#include "ranks/parts.hpp"
#include "ranks/transfer.hpp"
#include "rows/finite_check.hpp"
#include "rows/knn_checks.hpp"
#include "rows/narrowed_rows.hpp"
#include "rows/row_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kith {
namespace {

constexpr std::string_view kTheGraph = "the graph";  // where there is one alone

std::string name_of_part(size_t i) { return fmt::format("graph {}", i + 1); }

Device device_of(const std::vector<GraphPart>& parts, MemorySpace results, const std::string& method,
                 const Resources& resources) {
  GraphProblem problem{0, parts[0].x.cols(), parts[0].graph.k(), parts[0].graph.metric(), 0.99};
  std::vector<MatrixView> sets;
  ReusedVector<MemorySpace> spaces;
  for (const GraphPart& part : parts) {
    problem.rows += part.x.rows();
    sets.push_back(part.x);
    spaces.push_back(part.x.space());
  }
  spaces.push_back(results);
  const Counts counts =
      graph_counts(sets, predict_graph_costs(problem, likely_work(problem), DeviceKind::cpu).nn_descent);
  return choose_device(
      {"to " + method + " graphs", [&] { return fmt::format("{} graphs of {} rows", method, problem.rows); }}, spaces,
      counts, {}, resources);
}

// A build into arrays that wait for the graph, on the device that was chosen for it, and its report.
struct GraphWork {
  NeighborsView out;
  Resources resources;
  GraphReport report;

  GraphWork(std::string method, const std::vector<GraphPart>& parts, const NeighborsView& results,
            const Resources& given)
      : out(results), resources(given.with_device(device_of(parts, results.space, method, given))) {
    report.method = std::move(method);
  }

  // Graphs are checked and read where the work is done.
  KnnGraph near(const KnnGraph& graph) const { return graph_in(space(), graph, resources.with_progress({})); }
  MemorySpace space() const {
    const Device device = resources.device();
    return device.kind == DeviceKind::cuda ? MemorySpace::cuda(device.index) : MemorySpace::host();
  }

  // Every pair compared, where all others fit a list.
  void fill_exactly(const MatrixView& x, Metric metric, bool check_finite) {
    exact_graph(x, out, {.k = out.k, .metric = metric, .check_finite = check_finite}, resources);
    report.recall = exact_recall(x.rows());
  }
  void put_parameters(const DescentParams& rounds, int64_t list_length) {
    report.parameters = {{"recall", *rounds.recall}, {"seed", static_cast<int64_t>(rounds.rules.seed)}};
    put_rounds(rounds, list_length, report);
  }
};

// Two graphs of consecutive rows of one collection: rows before `boundary` are the first's, the others the second's.
struct MergeInput {
  const KnnGraph& first;
  const KnnGraph& second;
  int64_t boundary;
};

void add_all(GraphLists& lists, const MergeInput& input, int64_t most) {
  lists.add_rows(named_by(input.first, 0, most));
  lists.add_rows(named_by(input.second, input.boundary, most));
}

// GGM: fills empty lists from those of two sets of rows. The rules of `rounds` get the boundary.
BuildOutcome merge_by_rounds(GraphLists& lists, const MergeInput& input, DescentParams rounds,
                             const Resources& resources) {
  // The near halves of the lists, which the sets have settled among themselves.
  const int64_t half = lists.length() / 2;
  add_all(lists, input, half);
  lists.survey(rounds.k, Flags::set);
  rounds.rules.boundary = input.boundary;
  lists.add_random_rows(rounds.rules.seed, input.boundary);
  // Recall is asked for with what is set aside put back; until then it is measured of what the rounds have found.
  BuildOutcome outcome = run_descent(lists, rounds, resources);
  // What was set aside comes back.
  if (input.first.k() > half) add_all(lists, input, input.first.k());
  outcome.recall = lists.measure();
  if (rounds.recall && outcome.recall) outcome.reached = outcome.recall->recall >= *rounds.recall;
  return outcome;
}

// The nearest of `others` for each of `rows`, found where these lie.
void add_nearest(GraphLists& lists, Metric metric, const MatrixView& rows, int64_t first_row, const MatrixView& others,
                 int64_t first_other, int64_t k, const Resources& resources) {
  constexpr int64_t kBatch = 16384;
  const KnnParams search{.k = std::min(k, others.rows()), .metric = metric, .check_finite = false};
  const Resources quiet = resources.with_progress({});
  const GraphOutput memory({std::min(kBatch, rows.rows()), search.k, rows.space()}, resources);
  for (int64_t at = 0; at < rows.rows(); at += kBatch) {
    NeighborsView found = memory.view();
    found.queries = std::min(kBatch, rows.rows() - at);
    call_or_count(quiet,
                  [&](const Resources& used) { knn(rows.slice(at, found.queries), others, found, search, used); });
    lists.add_rows({found.ids, found.queries, search.k, search.k, first_row + at, first_other, found.space});
  }
}

// The same by exact search of either set in the other: nothing is missing but what the graphs miss.
void merge_exactly(GraphLists& lists, const MergeInput& input, const Resources& resources) {
  const Metric metric = input.first.metric();
  const int64_t k = input.first.k();
  const int64_t boundary = input.boundary;
  const MatrixView first = lists.view().slice(0, boundary);
  const MatrixView second = lists.view().slice(boundary, lists.rows() - boundary);
  add_all(lists, input, k);
  if (first.rows() == 0 || second.rows() == 0) return;
  add_nearest(lists, metric, first, 0, second, boundary, k, resources);
  add_nearest(lists, metric, second, boundary, first, 0, k, resources);
}

// Two graphs, which lie where the work is done, of the rows of `x`. `share`: of one of several devices.
void merge_two(GraphWork& work, const MatrixView& x, const MergeInput& input, const GraphMergeParams& params,
               bool exactly, const GraphShare* share = nullptr) {
  const Resources& resources = work.resources;
  const Metric metric = input.first.metric();
  const int64_t k = input.first.k();
  const int64_t length = merge_list_length(params, k);
  if (x.rows() - 1 <= length) return work.fill_exactly(x, metric, params.check_finite);
  if (!exactly) check_descent(descent_params(params, metric, k, length).rules, length, resources.device());
  with_graph_lists(x, {metric, k, params.seed, params.check_finite, share}, resources, [&](GraphLists& lists) {
    BuildOutcome outcome;
    lists.begin(exactly ? k : length);
    if (exactly) {
      merge_exactly(lists, input, resources);
      outcome.recall = lists.measure();
      outcome.reached = outcome.recall && outcome.recall->recall >= params.recall;
    } else {
      const DescentParams rounds = descent_params(params, metric, k, length);
      work.put_parameters(rounds, length);
      outcome = merge_by_rounds(lists, input, rounds, resources);
    }
    put_outcome(outcome, lists.control_rows(), work.report);
    lists.write(work.out, share == nullptr ? RankPart{0, lists.rows()} : share->rows());
  });
  warn_if_missed(work.report, params.recall, kMissedMergeAdvice, resources);
}

void merge_two(GraphWork& work, const GraphPart& a, const GraphPart& b, const GraphMergeParams& params, bool exactly) {
  const JoinedRows both(a.x, b.x, work.resources.device(), work.resources);
  merge_two(work, both.view(), {a.graph, b.graph, a.x.rows()}, params, exactly);
}

// The rounds of a merge by several devices, each of which has all rows and lists. False where one does it: rows and
// results that not all can use, CPUs beside GPUs, few rows, or no room.
bool merge_two_on_devices(GraphWork& work, const std::vector<GraphPart>& parts, const GraphMergeParams& params,
                          const Resources& given) {
  const DeviceKind kind = work.resources.device().kind;
  const int64_t rows = work.out.queries;
  const int64_t length = merge_list_length(params, work.out.k);
  const bool on_host = parts[0].x.space().host_readable();
  const bool may = is_divided(work.out.space, given) && rows - 1 > length &&
                   on_host == parts[1].x.space().host_readable() &&
                   std::all_of(parts.begin(), parts.end(),
                               [&](const GraphPart& part) {
                                 return is_divided(part.x.space(), given) && is_divided(part.graph.space(), given);
                               }) &&
                   are_of_one_kind(given) && given.device().kind == kind;
  if (!may) return false;
  Footprint exchanged;
  if (kind == DeviceKind::cuda) {
    const int64_t joined = on_host ? rows * parts[0].x.cols() * size_of(parts[0].x.dtype()) : 0;
    exchanged = {divide_up(joined, given.parts()),
                 GraphShare::device_bytes_to_gather(rows, kInboxSlots, given.parts())};
  }
  const auto needs = [&](const Resources& part) {
    const Footprint merging = footprint_of_call(part, [&](const Resources& counting) {
      GraphWork counted("merge", parts, work.out, counting);
      merge_two(counted, {counted.near(parts[0].graph), parts[0].x}, {counted.near(parts[1].graph), parts[1].x}, params,
                false);
    });
    return merging.beside(exchanged);
  };
  if (!needed_if_all_have_room("merging graphs", given, needs)) return false;
  const Resources one = work.resources.with_progress({});
  const JoinedRows both(parts[0].x, parts[1].x, on_host ? Device::cpu() : one.device(), one);
  wait_for_caller(given, parts[0].x.space(), parts[1].x.space(), work.out.space);
  if (!on_host) wait_for_stream(both.view().space().device, one);
  const MutualReads reads(given.parts());
  run_parts(given, [&](Communicator& ranks, const Resources& part) {
    const GraphShare share(ranks, rows, &reads);
    GraphWork own("merge", parts, work.out, ranks.rank() == 0 ? part : part.with_log({}));
    const KnnGraph first = own.near(parts[0].graph);
    const KnnGraph second = own.near(parts[1].graph);
    merge_two(own, both.view(), {first, second, parts[0].x.rows()}, params, false, &share);
    if (!own.out.space.host_readable()) wait_for_stream(own.out.space.device, part);
    if (ranks.rank() == 0) work.report = std::move(own.report);
  });
  return true;
}

// What the rows of two parts are called where they are refused.
struct PartNames {
  std::string first;
  std::string second;
};

PartNames names_of_parts(size_t i, size_t j) { return {fmt::format("x{}", i + 1), fmt::format("x{}", j + 1)}; }

template <typename Work>
void naming_parts(const PartNames& names, int64_t boundary, const Work& work) {
  try {
    work();
  } catch (const RefusedRow& refused) {
    const bool first = refused.row() < boundary;
    refused.throw_as(first ? names.first : names.second, first ? refused.row() : refused.row() - boundary);
  }
}

// A graph's neighbours, of the two parts that it was merged of, offered to the lists of all parts.
void offer_merged(const KnnGraph& pair, const int64_t (&begin)[2], int64_t boundary, WorkingLists& lists,
                  const Resources& resources) {
  const bool larger = larger_is_nearer(pair.metric());
  const auto place = [&](int64_t row) { return row < boundary ? begin[0] + row : begin[1] + row - boundary; };
  for_row_blocks("merge", pair.rows(), resources.with_progress({}), [&](int64_t first, int64_t end) {
    for (int64_t row = first; row < end; ++row) {
      for (int64_t j = 0; j < pair.k() && pair.ids(row)[j] >= 0; ++j) {
        const float distance = pair.distances(row)[j];
        const uint32_t key = ordered_key(larger ? -distance : distance);
        lists.offer(place(row), pack_neighbor(key, static_cast<uint32_t>(place(pair.ids(row)[j]))));
      }
    }
  });
}

// Those of several devices that merge pairs: all, where each has room for one. They need rows that all of them can
// read.
Resources devices_for_pairs(const std::vector<GraphPart>& parts, const Resources& one, const Resources& given,
                            const std::function<void(const Resources&)>& merge_largest) {
  const bool divided = std::all_of(parts.begin(), parts.end(),
                                   [&](const GraphPart& part) { return is_divided(part.x.space(), given); });
  if (!divided) return one;
  const auto needs = [&](const Resources& part) { return footprint_of_call(part, merge_largest); };
  return needed_if_all_have_room("merging graphs", given, needs) ? given : one;
}

// More than two, or one: pair by pair, whose graphs are put together on the host. Several devices are dealt pairs.
void merge_pairs(GraphWork& work, const std::vector<GraphPart>& parts, const GraphMergeParams& params,
                 const Resources& given) {
  const Resources& resources = work.resources;
  const Metric metric = parts[0].graph.metric();
  const int64_t k = parts[0].graph.k();
  WorkingLists lists(work.out.queries, k, resources);
  std::vector<int64_t> begins{0};
  for (const GraphPart& part : parts) begins.push_back(begins.back() + part.x.rows());
  if (parts.size() == 1) {  // with others, the merged pairs bring a part's own neighbours
    const int64_t alone[2] = {0, 0};
    offer_merged(graph_in(MemorySpace::host(), parts[0].graph, resources), alone, parts[0].x.rows(), lists, resources);
  }
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t i = 0; i < parts.size(); ++i) {
    for (size_t j = i + 1; j < parts.size(); ++j) pairs.emplace_back(i, j);
  }
  std::vector<GraphReport> told(pairs.size());
  const auto merge = [&](int64_t number, const Resources& used) {
    const auto [i, j] = pairs[static_cast<size_t>(number)];
    const GraphPart& a = parts[i];
    const GraphPart& b = parts[j];
    const KnnGraph both =
        make_graph({a.x.rows() + b.x.rows(), k, MemorySpace::host()}, metric, used,
                   [&, names = names_of_parts(i, j)](const NeighborsView& out, const Resources& counted) {
                     GraphWork pair("merge", {a, b}, out, counted);
                     naming_parts(names, a.x.rows(), [&] {
                       merge_two(pair, {pair.near(a.graph), a.x}, {pair.near(b.graph), b.x}, params, false);
                     });
                     return std::move(pair.report);
                   });
    const int64_t begin[2] = {begins[i], begins[j]};
    offer_merged(both, begin, a.x.rows(), lists, used);
    told[static_cast<size_t>(number)] = both.report();
  };
  const auto merge_largest = [&](const Resources& counting) {
    const auto rows_of = [&](const auto& pair) { return parts[pair.first].x.rows() + parts[pair.second].x.rows(); };
    const auto largest = std::max_element(pairs.begin(), pairs.end(),
                                          [&](const auto& a, const auto& b) { return rows_of(a) < rows_of(b); });
    if (largest != pairs.end()) merge(largest - pairs.begin(), counting);
  };
  const Resources devices = devices_for_pairs(parts, resources, given, merge_largest);
  for (size_t i = 0; is_shared(devices) && i < parts.size(); ++i) wait_for_caller(devices, parts[i].x.space());
  deal_steps(static_cast<int64_t>(pairs.size()), devices, merge);
  std::optional<GraphRecall> least;  // of a pair
  for (const GraphReport& pair : told) {
    if (pair.recall && (!least || pair.recall->recall < least->recall)) least = pair.recall;
    work.report.reached = work.report.reached && pair.reached;
    work.report.rounds.insert(work.report.rounds.end(), pair.rounds.begin(), pair.rounds.end());
  }
  work.report.parameters = {{"recall", params.recall}, {"parts", static_cast<int64_t>(parts.size())}};
  work.report.recall = least;
  if (work.out.space.host_readable()) return write_lists(lists, metric, {0, lists.rows()}, work.out, resources);
  Neighbors neighbors(work.out.queries, k, resources);
  write_lists(lists, metric, {0, lists.rows()}, neighbors.view(), resources);
  copy_neighbors(neighbors.view(), work.out, resources);
}

GraphReport merge_all(const std::vector<GraphPart>& parts, const NeighborsView& out, const GraphMergeParams& params,
                      const Resources& resources) {
  GraphWork work("merge", parts, out, resources);
  std::vector<GraphPart> near;
  for (size_t i = 0; i < parts.size(); ++i) {
    near.push_back({work.near(parts[i].graph), parts[i].x});
    check_part(near[i], name_of_part(i), PartDistances::of_rows, work.resources);
  }
  if (near.size() == 2) {
    naming_parts(names_of_parts(0, 1), near[0].x.rows(), [&] {
      if (!merge_two_on_devices(work, parts, params, resources)) merge_two(work, near[0], near[1], params, false);
    });
  } else {
    merge_pairs(work, near, params, resources);
  }
  return std::move(work.report);
}

GraphReport extend(const GraphPart& part, const MatrixView& fresh, const NeighborsView& out,
                   const GraphMergeParams& params, const Resources& resources) {
  GraphWork work("extend", {part, {part.graph, fresh}}, out, resources);
  const GraphPart old{work.near(part.graph), part.x};
  check_part(old, kTheGraph, PartDistances::of_rows, work.resources);
  const Metric metric = part.graph.metric();
  const int64_t k = part.graph.k();
  const bool exactly = extends_exactly(fresh.rows(), params);
  const KnnGraphParams of_fresh = params_of_new_rows({fresh.rows(), fresh.cols(), k, metric, params.recall}, params);
  const GraphOutput added({fresh.rows(), k, work.space()}, work.resources);
  GraphReport told = naming_rows("new", [&] { return build_graph(fresh, added.view(), of_fresh, work.resources); });
  const GraphPart added_part{added.graph(metric, std::move(told)), fresh};
  const bool few = exactly || old.x.rows() <= kFewExtended;
  naming_parts({"x", "new"}, old.x.rows(), [&] { merge_two(work, old, added_part, params, few); });
  return std::move(work.report);
}

GraphReport refine(const GraphPart& given, const NeighborsView& out, const GraphMergeParams& params,
                   const Resources& resources) {
  GraphWork work("refine", {given}, out, resources);
  const GraphPart part{work.near(given.graph), given.x};
  const Metric metric = part.graph.metric();
  const int64_t k = part.graph.k();
  check_part(part, kTheGraph, PartDistances::any, work.resources);  // its distances are computed again
  const int64_t length = merge_list_length(params, k);
  // Where lists hold most of the rows, joins meet nearly nobody new and rounds end at once.
  if (part.x.rows() - 1 <= 2 * length) {
    work.fill_exactly(part.x, metric, params.check_finite);
    return std::move(work.report);
  }
  const DescentParams rounds = descent_params(params, metric, k, length);
  check_descent(rounds.rules, length, work.resources.device());
  work.put_parameters(rounds, length);
  with_graph_lists(part.x, {metric, k, params.seed, params.check_finite}, work.resources, [&](GraphLists& lists) {
    lists.begin(length);
    lists.add_rows(named_by(part.graph, 0, k));
    lists.add_random_rows(params.seed, 0);
    put_outcome(run_descent(lists, rounds, work.resources), lists.control_rows(), work.report);
    lists.write_all(work.out);
  });
  warn_if_missed(work.report, params.recall, "allow longer lists, more samples or iterations, or use exact",
                 work.resources);
  return std::move(work.report);
}

// What is wrong at first sight; returns the rows of all.
int64_t checked_rows(const std::vector<GraphPart>& parts) {
  if (parts.empty()) throw InvalidArgument("no graphs to merge; give at least one");
  int64_t rows = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    check_part_shape(parts[i], name_of_part(i));
    check_same(parts[0], parts[i]);
    rows += parts[i].x.rows();
  }
  check_row_count(rows);
  return rows;
}

int64_t checked_rows(const GraphPart& part, const MatrixView& fresh) {
  check_part_shape(part, kTheGraph);
  check_same(part, {part.graph, fresh});
  check_row_count(part.x.rows() + fresh.rows());
  return part.x.rows() + fresh.rows();
}

// Where their graph lies: on a device where all rows do.
MemorySpace space_of(const std::vector<GraphPart>& parts) {
  const MemorySpace first = parts[0].x.space();
  const bool together =
      std::all_of(parts.begin(), parts.end(), [&](const GraphPart& part) { return part.x.space() == first; });
  return together && !first.host_readable() ? first : MemorySpace::host();
}

// What a public call makes of its parts.
struct MergeCall {
  std::string_view job;
  const std::vector<GraphPart>& parts;
  int64_t rows;  // of the graph that is made
  std::function<GraphReport(const NeighborsView& out, const Resources& resources)> fill;

  KnnGraph make(const Resources& resources) const {
    const GraphOutputShape shape{rows, parts[0].graph.k(), space_of(parts)};
    return within_limits(job, resources, [&](const Resources& used) {
      return make_graph(shape, parts[0].graph.metric(), used, fill, GivenGpus::all);
    });
  }
  GraphReport fill_arrays(const NeighborsView& out, const Resources& resources) const {
    check_output(out, rows, parts[0].graph.k());
    return within_limits(job, resources, [&](const Resources& used) {
      return measured(used, [&](const Resources& counted) { return fill(out, counted); }, GivenGpus::all);
    });
  }
};

MergeCall call_merge(const std::vector<GraphPart>& parts, const GraphMergeParams& params) {
  params.validate();
  return {"merging graphs", parts, checked_rows(parts), [&](const NeighborsView& out, const Resources& resources) {
            return merge_all(parts, out, params, resources);
          }};
}

// The old rows with their graph, and the new ones with any.
MergeCall call_extend(const std::vector<GraphPart>& parts, const GraphMergeParams& params) {
  validate_extension(params);
  return {"extending graphs", parts, checked_rows(parts[0], parts[1].x),
          [&](const NeighborsView& out, const Resources& resources) {
            return extend(parts[0], parts[1].x, out, params, resources);
          }};
}

MergeCall call_refine(const std::vector<GraphPart>& parts, const GraphMergeParams& params) {
  params.validate();
  check_part_shape(parts[0], kTheGraph);
  return {"refining graphs", parts, parts[0].x.rows(), [&](const NeighborsView& out, const Resources& resources) {
            return naming_rows("x", [&] { return refine(parts[0], out, params, resources); });
          }};
}

using GraphParts = std::vector<GraphPart>;

// call(parts, resources) with rows of f64 narrowed. One offset for all: they may be moved, and must be moved alike.
template <typename Call>
auto with_narrowed_parts(const GraphParts& parts, const std::vector<std::string>& names, const Resources& resources,
                         const Call& call) {
  if (std::none_of(parts.begin(), parts.end(), [](const GraphPart& part) { return is_narrowed(part.x); })) {
    return call(parts, resources);
  }
  return within_limits("the graphs", resources, [&](const Resources& used) {
    const NarrowedRows first(names[0], parts[0].x, parts[0].graph.metric(), used);
    std::vector<NarrowedRows> others;
    GraphParts narrowed{{parts[0].graph, first.view()}};
    for (size_t i = 1; i < parts.size(); ++i) {
      others.emplace_back(names[i], parts[i].x, first.offset(), OfRounding::silent, used);
      narrowed.push_back({parts[i].graph, others.back().view()});
    }
    try {
      return call(narrowed, used);
    } catch (const OtherVectors& error) {
      if (first.offset() == nullptr || parts.size() == 1) throw;
      throw InvalidArgument(
          fmt::format("{}. Vectors of float64 are read as float32, here with {}'s offset subtracted from all, and a "
                      "graph whose vectors lie elsewhere was built with another one: subtract one offset from all "
                      "sets yourself, round them to float32, and build the graphs of these",
                      error.what(), names[0]));
    }
  });
}

// x1, x2, ...
std::vector<std::string> names_of_rows(size_t parts) {
  std::vector<std::string> names;
  for (size_t i = 0; i < parts; ++i) names.push_back(fmt::format("x{}", i + 1));
  return names;
}

}  // namespace

bool extends_exactly(int64_t fresh_rows, const GraphMergeParams& params) {
  return fresh_rows <= kFewExtended || params.recall == 1;
}

// The same method on every device, so that the graph is the same too.
KnnGraphParams params_of_new_rows(const GraphProblem& fresh, const GraphMergeParams& params) {
  const GraphMethod method = extends_exactly(fresh.rows, params)
                                 ? GraphMethod::exact
                                 : choose_graph_method(fresh, likely_work(fresh), false, DeviceKind::cpu);
  return {.k = fresh.k,
          .metric = fresh.metric,
          .method = method,
          .check_finite = params.check_finite,
          .recall = params.recall,
          .seed = params.seed};
}

void validate_extension(const GraphMergeParams& params) {
  GraphMergeParams others = params;
  if (others.recall == 1) others.recall = GraphMergeParams().recall;
  others.validate();
}

void GraphMergeParams::validate() const {
  if (recall == 1) {
    throw InvalidArgument(
        "recall = 1, which rounds cannot promise; ask for less, as 0.999, or build the graph of all rows "
        "by the method exact");
  }
  KnnGraphParams{.method = GraphMethod::nn_descent,
                 .recall = recall,
                 .samples = samples,
                 .list_length = list_length ? std::optional(std::max<int64_t>(*list_length, 15)) : std::nullopt,
                 .iterations = iterations,
                 .delta = delta}
      .validate();
  if (list_length && *list_length < 1) {
    throw InvalidArgument(
        fmt::format("list_length = {}; a working list holds at least the k neighbours of the graphs", *list_length));
  }
}

KnnGraph merge_graphs(const KnnGraph& graph1, const MatrixView& x1, const KnnGraph& graph2, const MatrixView& x2,
                      const GraphMergeParams& params, const Resources& resources) {
  return merge_graphs({{graph1, x1}, {graph2, x2}}, params, resources);
}

KnnGraph merge_graphs(const std::vector<GraphPart>& parts, const GraphMergeParams& params, const Resources& resources) {
  return with_narrowed_parts(
      parts, names_of_rows(parts.size()), resources,
      [&](const GraphParts& read, const Resources& used) { return call_merge(read, params).make(used); });
}

GraphReport merge_graphs(const std::vector<GraphPart>& parts, const NeighborsView& out, const GraphMergeParams& params,
                         const Resources& resources) {
  return with_narrowed_parts(
      parts, names_of_rows(parts.size()), resources,
      [&](const GraphParts& read, const Resources& used) { return call_merge(read, params).fill_arrays(out, used); });
}

KnnGraph extend_graph(const KnnGraph& graph, const MatrixView& x, const MatrixView& fresh,
                      const GraphMergeParams& params, const Resources& resources) {
  const std::vector<GraphPart> parts{{graph, x}, {graph, fresh}};
  return with_narrowed_parts(parts, {"x", "new"}, resources, [&](const GraphParts& read, const Resources& used) {
    return call_extend(read, params).make(used);
  });
}

GraphReport extend_graph(const KnnGraph& graph, const MatrixView& x, const MatrixView& fresh, const NeighborsView& out,
                         const GraphMergeParams& params, const Resources& resources) {
  const std::vector<GraphPart> parts{{graph, x}, {graph, fresh}};
  return with_narrowed_parts(parts, {"x", "new"}, resources, [&](const GraphParts& read, const Resources& used) {
    return call_extend(read, params).fill_arrays(out, used);
  });
}

KnnGraph refine_graph(const KnnGraph& graph, const MatrixView& x, const GraphMergeParams& params,
                      const Resources& resources) {
  const std::vector<GraphPart> parts{{graph, x}};
  return with_narrowed_parts(parts, {"x"}, resources, [&](const GraphParts& read, const Resources& used) {
    return call_refine(read, params).make(used);
  });
}

GraphReport refine_graph(const KnnGraph& graph, const MatrixView& x, const NeighborsView& out,
                         const GraphMergeParams& params, const Resources& resources) {
  const std::vector<GraphPart> parts{{graph, x}};
  return with_narrowed_parts(parts, {"x"}, resources, [&](const GraphParts& read, const Resources& used) {
    return call_refine(read, params).fill_arrays(out, used);
  });
}

}  // namespace kith

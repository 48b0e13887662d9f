#include "ivf/search/ivf_search_cuda.hpp"

#include "core/divide.hpp"
#include "core/machine_model.hpp"
#include "cuda/error.hpp"
#include "cuda/launch.hpp"
#include "cuda/workspace_layout.hpp"
#include "ivf/scan/scan_cut.hpp"
#include "ivf/scan/scan_lists_task_cuda.hpp"

#include <algorithm>
#include <cmath>

namespace kith {
namespace {

constexpr int64_t kLargestProductK = kMostListCandidates / 2;
constexpr int64_t kMostPairs = int64_t{1} << 30;      // per batch
constexpr int64_t kMostPairBytes = int64_t{2} << 30;  // for their fp16 operands: more would not be faster

// fp16 values per pair of a query and a list, padded to whole chunks.
int64_t pair_stride(const CodeFormat& format) { return round_up(format.cols, kWideChunkCols); }

struct IvfWorkspace : WorkspaceLayout {
  IvfWorkspace(const IvfSearchShape& shape, const IvfSearchPlan& plan) {
    const int64_t queries = plan.batch;
    const int64_t all_pairs = queries * shape.slots;
    // Zeroed memory comes first.
    counters = take<uint32_t>(4);
    const bool sorted = !plan.direct && !plan.tables;
    list_counts = take<uint32_t>(sorted ? 2 * shape.lists : 0);
    listed = take<uint32_t>(plan.wide ? 2 * shape.lists : 0);
    unsure = take<uint32_t>(queries);
    candidate_counts = take<uint32_t>(queries);
    arrived = take<uint32_t>(kSharedQueries);
    worst = take<ErrorBounds>(plan.direct ? 0 : queries);
    zeroed = bytes;
    left = take<uint32_t>(queries);
    crowded = take<uint32_t>(plan.direct ? 0 : queries);
    direct_parts = take<uint64_t>(direct_part_entries(shape.k));
    direct_lists = take<uint64_t>(direct_list_entries(shape.k, shape.format.cols, shape.multiprocessors));
    if (plan.direct) return;
    ranks = take<uint32_t>(sorted ? all_pairs : 0);
    starts = take<uint32_t>(sorted ? 2 * shape.lists + 1 : 0);
    pairs = take<ProbePair>(sorted ? all_pairs : 0);
    items = take<uint32_t>(sorted ? 2 * (shape.lists + 1) : 0);
    value_starts = take<uint32_t>(queries * (kMostFirstSlots + 1));
    first_bounds = take<ErrorBounds>(queries * kMostFirstSlots);
    reaches = take<float>(queries);
    values = take<float>(queries * plan.values);
    candidates = take<ListCandidate>(queries * plan.candidates);
    candidate_lists = take<uint32_t>(queries * plan.candidates);
    sum_tables = take<float>(plan.sums ? queries * sum_table_floats(shape.format) : 0);
    pair_halves = take<uint16_t>(plan.wide ? all_pairs * pair_stride(shape.format) : 0);
    pair_queries = take<ScanQuery>(plan.wide ? all_pairs : 0);
    pair_limits = take<float>(plan.wide ? all_pairs : 0);
    unit_queries = take<float>(shape.unit ? queries * shape.format.cols : 0);
    const bool whole_queries = !has_differences(shape.kind) && !shape.unit && !plan.tables;
    query_scales = take<float>(whole_queries ? queries : 0);
    masked_terms = take<float>(shape.repeats ? (plan.by_row ? 2 : 1) * shape.vectors : 0);
  }

  int64_t zeroed = 0;
  Slot<uint32_t> counters, list_counts, listed, unsure, candidate_counts, arrived, left, crowded, ranks, starts, items,
      value_starts, candidate_lists;
  Slot<ErrorBounds> worst, first_bounds;
  Slot<uint64_t> direct_parts, direct_lists;
  Slot<ProbePair> pairs;
  Slot<float> reaches, values, sum_tables, pair_limits, masked_terms, unit_queries, query_scales;
  Slot<uint16_t> pair_halves;
  Slot<ScanQuery> pair_queries;
  Slot<ListCandidate> candidates;
};

// Runs of about so many items for every block, long enough to be worth loading the queries for.
int run_rows(double pairs, double rows_of_list, const IvfSearchShape& shape, int group_queries, double items) {
  const double groups =
      std::max(std::min(pairs, static_cast<double>(shape.lists)), pairs / static_cast<double>(group_queries));
  const double rows = groups * rows_of_list / (items * shape.multiprocessors);
  constexpr int64_t kLeast = 128;
  return static_cast<int>(std::clamp<int64_t>(round_up(static_cast<int64_t>(rows), kLeast), kLeast, 4096));
}

// Decoding a list for one or two queries may cost more than looking its codes up. Estimates are per list: products sort
// the pairs by list and decode each visited list once, plus a startup cost; tables are built per query and pass, or per
// pair of query and list, and then looked up for each vector. Only many pairs hide the latency at the start of a
// block.
bool prefers_tables(const IvfSearchShape& shape) {
  constexpr double kMargin = 0.85;
  constexpr double kLeastPairs = 65536;
  const CodeFormat& format = shape.format;
  const auto slots = static_cast<double>(shape.slots);
  const double all_pairs = static_cast<double>(shape.queries) * slots;
  if (all_pairs < kLeastPairs) return false;
  const auto lists = static_cast<double>(std::max<int64_t>(1, shape.lists));
  const double pairs = all_pairs / lists;
  const double mean = static_cast<double>(shape.vectors) / lists;
  const double visited = -std::expm1(-pairs);  // share of the lists
  const bool own_decoder = format.cols == 128 && (format.part_cols() == 4 || format.part_cols() == 16);
  const Counts products{{CostUnit::list_start, visited},
                        {own_decoder ? CostUnit::decoded_vector : CostUnit::any_decoded_vector, visited * mean}};
  const auto cols = static_cast<double>(format.cols);
  const auto parts = static_cast<double>(format.parts);
  Counts tables{{CostUnit::table_lookup, parts * mean * pairs}};
  if (shape.term == ScanTerm::none) {
    tables.add(CostUnit::pair_table_column, cols * pairs);
  } else {
    tables.add(CostUnit::query_table_column, 2 * cols / slots * pairs);
    if (shape.term == ScanTerm::of_list) tables.add(CostUnit::summed_pair_table_part, parts * pairs);
  }
  const DeviceInfo any_gpu;
  const MachineModel& model = model_of(any_gpu);
  return model.seconds(tables) < kMargin * model.seconds(products);
}

// Room for candidates of a query with a good reach. Queries far from all lists have more candidates, growing with the
// number of probed lists.
int64_t usual_candidates(const IvfSearchShape& shape) {
  const int64_t wanted = std::clamp<int64_t>(round_up(40 * shape.k, 128), 1024, kMostListCandidates);
  return shape.slots > 64 ? 2 * wanted : wanted;
}

// Upper bound of the vectors a query looks at: the longest list and average others.
double most_probed(const IvfSearchShape& shape) {
  const auto vectors = static_cast<double>(shape.vectors);
  const double mean = mean_length(shape);
  const double longest = std::max(mean, static_cast<double>(shape.longest));
  return std::min(vectors, longest + static_cast<double>(shape.slots - 1) * mean);
}

// Provides room for the vectors within the k-th value of the first pass, as if that had seen random vectors. If a query
// probes a list with a large share of all vectors, its threshold would come from too few of them, so it samples the
// whole list.
void cut_long_lists(const IvfSearchShape& shape, IvfSearchPlan& plan) {
  constexpr double kMostPassing = 65536;
  ScanCut& cut = plan.cut;
  const auto k = static_cast<double>(std::max<int64_t>(1, shape.k));
  const double mean = mean_length(shape);
  const double longest = std::max(mean, static_cast<double>(shape.longest));
  const bool uneven = longest > 8 * mean;
  const auto passing = [&] {
    const double of_list = std::min(longest / cut.sample_every, static_cast<double>(cut.kept_rows));
    const double seen = uneven ? of_list : std::max(of_list, static_cast<double>(cut.first_rows));
    return k * most_probed(shape) / std::max(1.0, seen);
  };
  if (passing() > static_cast<double>(plan.candidates)) {
    const int64_t values = shape.k > 32 ? kMostFirstValues : kMostFirstValues / 2;
    cut.rescans = true;
    cut.first_rows = std::min(cut.first_rows, values / 2);
    cut.kept_rows = values - round_up(cut.first_rows, kSampleRows);
    plan.values = round_up(cut.first_rows - 1 + cut.kept_rows, 32);
  }
  // The k-th of few values may be far from its expected value.
  const double room = std::min(kMostPassing, (1.5 + 8 / std::sqrt(k)) * passing() + 512);
  plan.candidates = std::max(plan.candidates, round_up(static_cast<int64_t>(room), 128));
}

// With known bounds, only queries whose nearest vectors are in these lists need a first pass: a sample of their nearest
// lists, sized so that the candidates it lets pass fit the room.
void cut_bounded(const IvfSearchShape& shape, IvfSearchPlan& plan) {
  constexpr int64_t kLeastSample = 1024;
  const double longest = std::max(mean_length(shape), static_cast<double>(shape.longest));
  plan.candidates = std::max<int64_t>(plan.candidates, 2048);
  const double wanted = 4.0 * static_cast<double>(shape.k) * longest / static_cast<double>(plan.candidates);
  ScanCut& cut = plan.cut;
  const auto sample = static_cast<int64_t>(std::min(wanted, static_cast<double>(kMostFirstValues / 2)));
  cut.sample_every = 1;
  cut.rescans = true;
  cut.kept_rows = round_up(std::max(kLeastSample, sample), kSampleRows);
  cut.first_rows = kLeastSample;
  plan.values = round_up(cut.first_rows - 1 + cut.kept_rows, 32);
}

// Plans the number of vectors of the first pass per query, and the sizes of work items.
void cut_lists(const IvfSearchShape& shape, IvfSearchPlan& plan) {
  plan.candidates = usual_candidates(shape);
  const auto slots = static_cast<double>(shape.slots);
  const auto k = static_cast<double>(shape.k);
  const double mean = mean_length(shape);
  const double share = shape.kept < 0 || shape.vectors == 0
                           ? 1.0
                           : std::max(1e-3, static_cast<double>(shape.kept) / static_cast<double>(shape.vectors));
  ScanCut& cut = plan.cut;
  // With few vectors per query all values are kept. Sampling saves most reads of the first pass, but the second then
  // visits the first pairs again and writes more candidates; it pays off if the first pairs are a quarter of all (codes
  // slow to read or decode) or a sixteenth. Sampling one in n lets about n k vectors pass, which must fit the room, and
  // the sample itself must hold several times k.
  const bool all = mean * slots <= 6144;
  const bool takes_long = shape.format.bytes() > 128 || plan.wide;
  const double sampled_lists = std::min<double>(slots, kMostFirstSlots);
  // A query with a single long list takes its threshold from as many of its vectors as fit, spread over the whole list,
  // since rows may have been added in some order.
  constexpr int64_t kLongSample = kMostFirstValues - kSampleRows;
  const bool one_long_list = shape.slots == 1 && mean > 4.0 * kMostFirstValues;
  cut.sample_every = 1;
  if (shape.sample_every > 0) {
    cut.sample_every = shape.sample_every;
  } else if (one_long_list) {
    const double apart = std::ceil(mean / static_cast<double>(kLongSample));
    cut.sample_every = static_cast<int>(std::min(static_cast<double>(kMostApart), apart));
  } else if (!all && slots >= (takes_long ? 4 : 16) * (40 * k / mean + 1)) {
    const double room = std::min(static_cast<double>(plan.candidates), 4096.0) / (3 * k);
    const double enough = sampled_lists * mean * share / (12 * k);
    cut.sample_every = static_cast<int>(std::clamp(std::min(room, enough), 1.0, 4.0));
  }
  const double rows_of_list = mean / cut.sample_every;
  // Sized so that most lists fit the first pass; the remainder of a longer list is a separate work item.
  const double kept_rows = std::min((shape.slots == 1 ? 2 : 1.5) * rows_of_list + 64,
                                    one_long_list ? static_cast<double>(kLongSample) : kMostFirstValues / 2.0);
  cut.kept_rows = round_up(static_cast<int64_t>(kept_rows), kSampleRows);
  // A reach from this many vectors excludes most vectors of the other lists.
  const double wanted = all && !cut.samples() ? 1e9 : std::max(1024.0, 40 * k) / share;
  cut.first_rows = static_cast<int64_t>(std::min({wanted, static_cast<double>(kMostFirstValues - cut.kept_rows),
                                                  (slots - 1) * static_cast<double>(cut.kept_rows) + 1}));
  plan.values = std::min(round_up(cut.first_rows - 1 + cut.kept_rows, 32), kMostFirstValues);
  cut.rescans = plan.by_row;
  constexpr int64_t kMostBounded = 256;  // for larger k there are many candidates in any case
  const bool has_bounds = shape.bounded && !all && shape.k <= kMostBounded && shape.sample_every == 0;
  if (has_bounds) cut_bounded(shape, plan);
  if (!one_long_list && shape.sample_every == 0 && !has_bounds) cut_long_lists(shape, plan);
  if (one_long_list && !has_bounds) {  // sampling one vector in n lets n k vectors pass
    constexpr int64_t kMostPassing = 65536;
    const double passing = k * mean / static_cast<double>(plan.values);
    const auto room = static_cast<int64_t>(1.5 * passing) + 256;
    plan.candidates = std::max(plan.candidates, std::min(round_up(room, 128), kMostPassing));
  }
  cut.group_queries = plan.wide ? kWideQueries : scan_group_queries(shape.format);
  const auto pairs = static_cast<double>(plan.batch) * slots;
  const double first_slots =
      std::min(sampled_lists, static_cast<double>(cut.first_rows) / std::max(1.0, rows_of_list) + 1);
  cut.first_run_rows =
      run_rows(static_cast<double>(plan.batch) * first_slots, rows_of_list, shape, std::max(1, cut.group_queries), 8);
  cut.later_run_rows = run_rows(pairs, mean, shape, std::max(1, cut.group_queries), 12);
  if (static_cast<double>(shape.longest) > 8 * mean) {  // most of the work may be the longest list's
    const auto groups = static_cast<double>(divide_up(plan.batch, std::max(1, cut.group_queries)));
    const double rows = groups * static_cast<double>(shape.longest) / (12.0 * shape.multiprocessors);
    const auto run = static_cast<int>(std::min(4096.0, rows)) / 128 * 128;
    cut.later_run_rows = std::max(cut.later_run_rows, run);
  }
}

// Chooses the engine for the current device.
ProductEngine engine_for(const ScanListsTask& task) {
  int device = 0;
  int major = 0;
  int minor = 0;
  KITH_CUDA_CHECK(cudaGetDevice(&device));
  KITH_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  KITH_CUDA_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  return product_engine(10 * major + minor, task.engine);
}

void launch_scan(const ScanListsTask& given, bool first, cudaStream_t stream) {
  if (given.tables) return launch_scan_tables(given, first, stream);
  if (scans_sums(given)) return launch_scan_sums(given, first, stream);
  ScanListsTask task = given;
  if (task.operands.halves != nullptr) launch_pair_operands(task, first, stream);
  task.lists.codes = given.scanned();
  if (task.operands.halves != nullptr) return launch_scan_wide(task, first, stream);
  // Cosine's factors would double the code of warpgroups' kernels.
  const bool suits = task.lists.codec.format.cols <= kNarrowSteps * 16 && !task.lists.has_factors();
  if (suits && engine_for(task) == ProductEngine::wgmma) return launch_scan_wgmma(task, first, stream);
  launch_scan_mma(task, first, stream);
}

}  // namespace

namespace {

// For few queries that look at few vectors, computing every key is faster than launching two passes.
bool is_short(const IvfSearchShape& shape) {
  constexpr int64_t kFewQueries = 4;
  constexpr double kFewValues = 0x1p25;  // about 30 microseconds
  const bool left_open = shape.tables < 0 && shape.sample_every == 0;
  if (!left_open || shape.queries > kFewQueries) return false;
  const CodeFormat& format = shape.format;
  const double each = static_cast<double>(format.cols) * (format.kind == CodeKind::additive ? format.parts : 1);
  return static_cast<double>(shape.queries) * most_probed(shape) * each <= kFewValues;
}

}  // namespace

IvfSearchPlan plan_ivf_search(const IvfSearchShape& shape, int64_t most_bytes) {
  IvfSearchPlan plan;
  plan.wide = shape.warpgroups && is_wide(shape.format);
  const bool too_wide = !plan.wide && scan_group_queries(shape.format) == 0;
  plan.direct = shape.k > kLargestProductK || too_wide || shape.vectors == 0 || shape.slots == 0 || is_short(shape);
  if (plan.direct) plan.wide = false;
  const int64_t most_pairs =
      plan.wide ? std::min(kMostPairs, kMostPairBytes / (2 * pair_stride(shape.format))) : kMostPairs;
  plan.batch = std::max<int64_t>(1, shape.queries);
  if (shape.slots > 0) plan.batch = std::max<int64_t>(1, std::min(plan.batch, most_pairs / shape.slots));
  const bool can_look_up = suits_tables(shape.format) && has_differences(shape.kind);
  plan.tables = !plan.direct && can_look_up && (shape.tables < 0 ? prefers_tables(shape) : shape.tables > 0);
  if (plan.tables) plan.term = shape.term;
  // For one or a few queries: the bytes of codes take less time to read than their halves, which more queries share.
  constexpr int64_t kFewForSums = 8;
  const bool few = shape.lists == 1 && shape.queries <= kFewForSums;
  plan.sums = suits_sums(shape.format) && (shape.tables < 0 ? few : shape.tables > 0);
  plan.by_row = shape.row_terms && !plan.direct && !plan.tables && !plan.sums;
  for (;;) {
    cut_lists(shape, plan);
    plan.bytes = IvfWorkspace(shape, plan).bytes;
    if (plan.bytes <= most_bytes || plan.batch == 1) return plan;
    plan.batch = divide_up(plan.batch, 2);
  }
}

int64_t zeroed_bytes(const IvfSearchShape& shape, const IvfSearchPlan& plan) {
  return IvfWorkspace(shape, plan).zeroed;
}

const uint32_t* left_queries(const std::byte* memory, const IvfSearchShape& shape, const IvfSearchPlan& plan) {
  return IvfWorkspace(shape, plan).left.in(memory);
}

uint32_t* directly_arrived(std::byte* memory, const IvfSearchShape& shape, const IvfSearchPlan& plan) {
  return IvfWorkspace(shape, plan).arrived.in(memory);
}

const uint32_t* candidate_counts(const std::byte* memory, const IvfSearchShape& shape, const IvfSearchPlan& plan) {
  return IvfWorkspace(shape, plan).candidate_counts.in(memory);
}

namespace {

DirectMemory direct_memory(const IvfWorkspace& at, std::byte* memory) {
  return {at.arrived.in(memory), at.direct_parts.in(memory), at.direct_lists.in(memory)};
}

// Per-query data of a batch that precede the candidates.
ListRerankTask rerank_task(const ProbedLists& now, const IvfSearchShape& shape, const IvfWorkspace& at,
                           std::byte* memory, uint64_t* neighbors) {
  uint32_t* const counters = at.counters.in(memory);
  ListRerankTask rerank{now};
  rerank.k = shape.k;
  rerank.unsure = at.unsure.in(memory);
  rerank.left = {counters + 2, at.left.in(memory)};
  rerank.crowded = {counters + 3, at.crowded.in(memory)};
  rerank.neighbors = neighbors;
  return rerank;
}

}  // namespace

void launch_ivf_direct(const IvfSearchTask& task, const IvfSearchShape& shape, const IvfSearchPlan& plan,
                       std::byte* memory, cudaStream_t stream, bool begun) {
  const IvfWorkspace at(shape, plan);
  ProbedLists now = task;
  now.lists.by_row = plan.by_row;
  now.query_count = shape.queries;
  now.slots = shape.slots;
  now.multiprocessors = shape.multiprocessors;
  ListRerankTask rerank = rerank_task(now, shape, at, memory, task.neighbors);
  rerank.candidates.entries = at.candidates.in(memory);
  rerank.reaches = at.reaches.in(memory);
  rerank.elsewhere = task.elsewhere;
  rerank.begun = begun;
  launch_list_direct(rerank, direct_memory(at, memory), stream);
}

void launch_ivf_search(const IvfSearchTask& task, const IvfSearchShape& shape, const IvfSearchPlan& plan,
                       std::byte* memory, cudaStream_t stream, const cudaEvent_t* stages) {
  const IvfWorkspace at(shape, plan);
  int stage = 0;
  const auto mark = [&] {
    if (stages != nullptr) KITH_CUDA_CHECK(cudaEventRecord(stages[stage++], stream));
  };
  ProbedLists probed = task;
  probed.lists.by_row = plan.by_row;
  float* first_terms = plan.by_row ? task.prepared.upper_terms : task.prepared.terms;
  float* later_terms = plan.by_row ? task.prepared.lower_terms : task.prepared.terms;
  if (shape.repeats && !plan.direct) {
    float* const masked = at.masked_terms.in(memory);
    launch_mask_repeats(first_terms, task.repeats, shape.vectors, shape.k, masked, stream);
    if (plan.by_row) {
      launch_mask_repeats(later_terms, task.repeats, shape.vectors, shape.k, masked + shape.vectors, stream);
    }
    first_terms = masked;
    later_terms = plan.by_row ? masked + shape.vectors : masked;
  }
  for (int64_t done = 0; done < shape.queries; done += plan.batch) {
    const int64_t queries = std::min(plan.batch, shape.queries - done);
    stage = 0;
    mark();
    if (!task.zeroed) fill_bytes(memory, 0, at.zeroed, stream);
    uint32_t* const counters = at.counters.in(memory);  // of items of either pass, of queries that are left, crowded

    ProbedLists now = probed;
    now.queries = task.queries + done * task.query_stride;
    now.query_count = queries;
    now.probes = task.probes + done * shape.slots;
    now.slots = shape.slots;
    now.multiprocessors = shape.multiprocessors;
    ListRerankTask rerank = rerank_task(now, shape, at, memory, task.neighbors + done * shape.k);
    rerank.elsewhere = task.elsewhere.from(done);
    const DirectMemory direct = direct_memory(at, memory);
    if (plan.direct) {
      launch_list_direct(rerank, direct, stream);
      while (stages != nullptr && stage <= kIvfStages) mark();
      continue;
    }

    ScanListsTask scan{ProbePairsTask{now}};
    scan.cut = plan.cut;
    scan.counts = at.list_counts.in(memory);
    scan.ranks = at.ranks.in(memory);
    scan.starts = at.starts.in(memory);
    scan.pairs = plan.tables ? nullptr : at.pairs.in(memory);
    scan.items = at.items.in(memory);
    scan.value_starts = at.value_starts.in(memory);
    launch_probe_pairs(scan, stream);
    const QueryForms forms{at.unit_queries.count > 0 ? at.unit_queries.in(memory) : nullptr,
                           at.query_scales.count > 0 ? at.query_scales.in(memory) : nullptr};
    launch_query_forms(now, forms, stream);
    scan.query_scales = forms.scales;
    if (forms.unit != nullptr) {
      scan.queries = forms.unit;
      scan.query_stride = shape.format.cols;
    }
    mark();

    scan.values = at.values.in(memory);
    scan.value_stride = plan.values;
    scan.bounds = at.first_bounds.in(memory);
    scan.worst = at.worst.in(memory);
    scan.unsure = at.unsure.in(memory);
    scan.counter = counters;
    scan.engine = task.engine;
    scan.tables = plan.tables;
    if (plan.tables) scan.terms = task.terms;
    scan.sum_tables = plan.sums ? at.sum_tables.in(memory) : nullptr;
    if (scans_sums(scan)) launch_sum_tables(scan, queries, stream);
    if (plan.wide) {
      scan.operands = {at.pair_halves.in(memory), pair_stride(shape.format), at.pair_queries.in(memory),
                       at.pair_limits.in(memory), at.listed.in(memory)};
    }
    scan.prepared.terms = first_terms;
    launch_scan(scan, true, stream);
    mark();

    ListSelectTask select{now};
    select.k = shape.k;
    select.value_starts = scan.value_starts;
    select.values = scan.values;
    select.value_stride = plan.values;
    select.bounds = scan.bounds;
    select.unsure = scan.unsure;
    select.reaches = at.reaches.in(memory);
    select.candidates = {at.candidate_counts.in(memory), at.candidates.in(memory), at.candidate_lists.in(memory),
                         plan.candidates,
                         // Among equal vectors a filter may keep the later ones alone.
                         task.kept == nullptr ? task.repeats : nullptr, shape.k};
    select.lists_candidates = !plan.cut.samples();
    launch_list_select(select, stream);
    if (task.elsewhere.bounds != nullptr) launch_shorten_reaches(select, task.elsewhere.from(done), stream);
    mark();

    scan.items += shape.lists + 1;
    scan.counter = counters + 1;
    scan.reaches = select.reaches;
    scan.candidates = select.candidates;
    scan.prepared.terms = later_terms;
    launch_scan(scan, false, stream);
    mark();

    rerank.candidates = select.candidates;
    rerank.worst = scan.worst;
    rerank.reaches = select.reaches;
    // Shared memory holds them beside a vector, which may be long.
    const bool has_room = plan.cut.rescans && shape.format.cols <= kMostListCandidates;
    const int64_t usual_room = has_room ? kMostListCandidates : 1024;
    rerank.room = std::min(plan.candidates, std::max<int64_t>(2 * shape.k + 256, usual_room));
    launch_list_rerank(rerank, stream);
    mark();
    if (!task.leaves_direct) launch_list_direct(rerank, direct, stream);
    mark();
  }
}

}  // namespace kith

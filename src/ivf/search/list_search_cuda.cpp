#include "ivf/search/list_search_cuda.hpp"

#include "cluster/device_row_gather_cuda.hpp"
#include "core/memory_budget.hpp"
#include "core/ordered_key.hpp"
#include "core/result_exit.hpp"
#include "core/typed_row.hpp"
#include "ivf/search/merge_found_cuda.hpp"
#include "ivf/search/probe_limits_cuda.hpp"
#include "kernels/select/write_neighbors_cuda.hpp"
#include "rows/kept_rows.hpp"

#include <algorithm>
#include <numeric>

namespace kith {
namespace {

constexpr int64_t kMostProbes = int64_t{1} << 24;  // of the queries searched together

}  // namespace

int64_t list_search_room(const DeviceInfo& gpu, const Resources& resources) {
  return std::min(gpu.memory_free / 2, resources.device_memory()->available()) / 4 * 3;
}

DeviceArray<uint64_t> bits_on_device(const uint64_t* kept, int64_t rows,
                                     const std::shared_ptr<const DeviceContext>& context, const Resources& resources) {
  if (kept == nullptr) return {};
  DeviceArray<uint64_t> bits(KeptRows::words_for(rows), "the filter on the device", context, resources);
  context->copy_values(bits.data(), kept, bits.size());
  return bits;
}

ListSearch::ListSearch(Metric metric, const GpuModelCuda& model, const GpuParts& parts, const IvfSearch& search,
                       const uint64_t* kept, int64_t least, std::shared_ptr<const DeviceContext> context,
                       const Resources& resources)
    : metric_(metric),
      model_(model),
      parts_(parts),
      search_(search),
      kept_(kept),
      least_(least),
      context_(std::move(context)),
      resources_(resources),
      gpu_(usable_gpu(Device::cuda(context_->device()))),
      lists_(parts.empty() ? 1 : parts.front()->lists().lists) {
  if (least == 0) return;
  sizes_ = DeviceArray<uint32_t>(lists_, "the lists' sizes", context_, resources);
  context_->fill(sizes_.data(), 0, lists_);
  for (const auto& part : parts) {
    launch_add_list_sizes(part->lists(), kept, sizes_.data(), context_->stream());
  }
}

void ListSearch::run(const MatrixView& queries, bool check_finite, const NeighborsView& out) {
  int64_t slots = std::min(search_.probes, lists_);
  std::vector<uint32_t> left = run_round(queries, nullptr, slots, check_finite, out);
  while (!left.empty()) {
    slots = std::min(4 * slots, lists_);
    // In rounds of so many that their values fit well.
    constexpr int64_t kMostBytes = int64_t{256} << 20;
    const int64_t together = std::max<int64_t>(1, kMostBytes / (4 * queries.cols()));
    std::vector<uint32_t> still;
    for (size_t first = 0; first < left.size(); first += static_cast<size_t>(together)) {
      const auto count = std::min<size_t>(left.size() - first, static_cast<size_t>(together));
      const std::vector<uint32_t> some(left.begin() + static_cast<std::ptrdiff_t>(first),
                                       left.begin() + static_cast<std::ptrdiff_t>(first + count));
      const auto rows = static_cast<int64_t>(count);
      const DeviceArray<float> there(queries.space().host_readable() ? 0 : rows * queries.cols(),
                                     "queries searched again", context_, resources_);
      MatrixBuffer here;
      MatrixView gathered;
      if (queries.space().host_readable()) {
        here = MatrixBuffer(DType::f32, rows, queries.cols(), "queries searched again", resources_);
        for (int64_t i = 0; i < rows; ++i) {
          std::copy_n(typed_row<float>(queries, some[static_cast<size_t>(i)]), queries.cols(),
                      typed_row<float>(here.mutable_view(), i));
        }
        gathered = here.view();
      } else {
        gather_floats_cuda(queries, some, there.data(), resources_);
        gathered = {there.data(), DType::f32, {rows, queries.cols(), queries.cols()}, queries.space()};
      }
      const std::vector<uint32_t> again = run_round(gathered, &some, slots, false, out);
      still.insert(still.end(), again.begin(), again.end());
    }
    left = std::move(still);
  }
}

std::vector<uint32_t> ListSearch::run_round(const MatrixView& queries, const std::vector<uint32_t>* numbers,
                                            int64_t slots, bool check_finite, const NeighborsView& out) {
  take_terms(queries.rows(), slots);  // before what is left is shared out
  const int64_t most = list_search_room(gpu_, resources_);
  const int64_t lists_of_found = parts_.size() > 1 ? 3 : 1;
  const int64_t each = QueryBatch::bytes_for_each(queries, slots) + search_.k * 8 * lists_of_found;
  const int64_t wanted = std::clamp<int64_t>(kMostProbes / std::max<int64_t>(slots, search_.k), 1, queries.rows());
  const int64_t together = std::clamp<int64_t>(most / 2 / each, 1, wanted);
  plans_.clear();
  int64_t plan_bytes = 0;
  for (size_t p = 0; p < parts_.size(); ++p) {
    plans_.push_back(plan_ivf_search(shape_of(p, together, slots), most - together * each));
    plan_bytes = std::max(plan_bytes, plans_.back().bytes);
  }
  QueryBatch batch(model_, queries, together, slots, check_finite, context_, resources_);
  const DeviceArray<uint64_t> found(together * search_.k * lists_of_found, "the neighbours found", context_,
                                    resources_);
  const DeviceBuffer memory(plan_bytes, "the search of lists", context_, resources_);
  std::vector<uint32_t> left;
  for (int64_t first = 0; first < queries.rows(); first += together) {
    resources_.check_cancelled();
    const int64_t count = std::min(together, queries.rows() - first);
    batch.load(first, count);
    const std::vector<uint32_t> short_ones = limit_probes(batch, count, slots);
    for (const uint32_t query : short_ones) {
      const int64_t place = first + query;
      left.push_back(numbers == nullptr ? static_cast<uint32_t>(place) : (*numbers)[static_cast<size_t>(place)]);
    }
    if (static_cast<int64_t>(short_ones.size()) == count) continue;
    const uint64_t* const best = search_parts(batch, count, slots, found.data(), memory.data());
    if (numbers == nullptr) {
      deliver(best, first, count, out);
    } else {
      deliver_listed(best, first, count, *numbers, short_ones, out);
    }
  }
  context_->synchronize();
  return left;
}

void ListSearch::take_terms(int64_t queries, int64_t slots) {
  terms_.assign(parts_.size(), {});
  for (size_t p = 0; p < parts_.size(); ++p) {
    IvfSearchShape shape = shape_of(p, queries, slots);
    const auto looks_up = [&](ScanTerm term) {
      shape.term = term;
      return plan_ivf_search(shape, INT64_MAX).tables;
    };
    // Without a question to the device where lookups would not even pay with the best term.
    if (looks_up(ScanTerm::of_vector) && looks_up(parts_[p]->scan_term(resources_))) {
      terms_[p] = parts_[p]->scan_terms(resources_);
    }
  }
}

std::vector<uint32_t> ListSearch::limit_probes(const QueryBatch& batch, int64_t count, int64_t slots) const {
  if (least_ == 0) return {};
  const DeviceArray<uint32_t> listed(count + 1, "queries searched again", context_, resources_);
  ProbeLimitsTask task;
  task.probes = batch.probes();
  task.queries = count;
  task.slots = slots;
  task.asked = std::min(search_.probes, lists_);
  task.least = least_;
  task.sizes = sizes_.data();
  task.lists = lists_;
  task.short_count = listed.data();
  task.short_queries = task.short_count + 1;
  context_->fill(task.short_count, 0, 1);
  launch_probe_limits(task, context_->stream());
  uint32_t number = 0;
  context_->copy_values(&number, task.short_count, 1);
  context_->synchronize();
  std::vector<uint32_t> found(number);
  context_->copy_values(found.data(), task.short_queries, int64_t{number});
  context_->synchronize();
  std::sort(found.begin(), found.end());
  return found;
}

uint64_t* ListSearch::search_parts(const QueryBatch& batch, int64_t count, int64_t slots, uint64_t* found,
                                   std::byte* memory) const {
  uint64_t* lists[3];  // the best so far, those of one part, and the best of both
  for (int i = 0; i < 3; ++i) lists[i] = found + i * count * search_.k;
  for (size_t p = 0; p < parts_.size(); ++p) {
    IvfSearchTask task;
    task.lists = parts_[p]->lists();
    task.prepared = parts_[p]->prepared();
    task.queries = batch.queries();
    task.query_stride = batch.stride();
    task.probes = batch.probes();
    task.kept = kept_;
    task.repeats = parts_[p]->repeats();
    task.terms = terms_[p];
    task.neighbors = lists[p == 0 ? 0 : 1];
    launch_ivf_search(task, shape_of(p, count, slots), plans_[p], memory, context_->stream());
    if (p == 0) continue;
    launch_merge_found(lists[0], lists[1], count, search_.k, lists[2], context_->stream());
    std::swap(lists[0], lists[2]);
  }
  return lists[0];
}

void ListSearch::deliver(const uint64_t* found, int64_t first, int64_t count, const NeighborsView& out) const {
  const int64_t k = search_.k;
  const NeighborsView part{out.ids + first * k, out.distances + first * k, count, k, out.space};
  if (!out.space.host_readable()) {
    return launch_write_neighbors(metric_, {const_cast<uint64_t*>(found), nullptr, count, k}, part, context_->stream());
  }
  const HostArray<uint64_t> here(count * k, "the neighbours found", resources_);
  context_->copy_values(here.data(), found, here.size());
  context_->synchronize();
  const ResultExit exit(metric_);
  for (int64_t i = 0; i < count * k; ++i) {
    part.ids[i] = exit.id(here[i]);
    part.distances[i] = exit.distance(here[i]);
  }
}

// Few, as a rule: each query's place by itself.
void ListSearch::deliver_listed(const uint64_t* found, int64_t first, int64_t count,
                                const std::vector<uint32_t>& numbers, const std::vector<uint32_t>& left_out,
                                const NeighborsView& out) const {
  const int64_t k = search_.k;
  const HostArray<uint64_t> here(count * k, "the neighbours found", resources_);
  const HostArray<int64_t> ids(count * k, "the neighbours found", resources_);
  const HostArray<float> distances(count * k, "the neighbours found", resources_);
  context_->copy_values(here.data(), found, here.size());
  context_->synchronize();
  const ResultExit exit(metric_);
  for (int64_t i = 0; i < count * k; ++i) {
    ids[i] = exit.id(here[i]);
    distances[i] = exit.distance(here[i]);
  }
  for (int64_t i = 0; i < count; ++i) {
    if (std::binary_search(left_out.begin(), left_out.end(), static_cast<uint32_t>(i))) continue;
    const int64_t query = numbers[static_cast<size_t>(first + i)];
    context_->copy_values(out.ids + query * k, ids.data() + i * k, k);
    context_->copy_values(out.distances + query * k, distances.data() + i * k, k);
  }
  context_->synchronize();
}

IvfSearchShape ListSearch::shape_of(size_t part, int64_t queries, int64_t slots) const {
  const DeviceListsView& lists = parts_[part]->lists();
  IvfSearchShape shape;
  shape.format = lists.codec.format;
  shape.kind = lists.kind;
  shape.queries = queries;
  shape.slots = slots;
  shape.k = search_.k;
  shape.lists = lists.lists;
  shape.vectors = lists.count;
  shape.multiprocessors = gpu_.multiprocessors;
  shape.term = terms_[part].term;
  return shape;
}

}  // namespace kith

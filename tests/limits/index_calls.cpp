#include "limits/call_data.hpp"
#include "limits/public_calls.hpp"

#include <kith/index.hpp>
#include <kith/index_graph.hpp>

#include <memory>

namespace kith::testing {
namespace {

std::shared_ptr<const Index> filled(const std::string& factory) {
  auto index = std::make_shared<Index>(factory);
  index->train(base_rows().view());
  index->add(base_rows().view());
  return index;
}

void add_calls_of(const std::string& factory, const std::string& name, std::vector<PublicCall>& calls) {
  const std::shared_ptr<const Index> index = filled(factory);
  const auto trained = [factory] {
    Index fresh(factory);
    fresh.train(base_rows().view());
    return fresh;
  };
  static const std::vector<int64_t> some = {3, 5, 700};
  const VectorView<const int64_t> ids{some.data(), 3, {}};
  if (factory != "Flat") {
    calls.push_back({name + "_train", [=](const Resources& resources) {
                       Index(factory).train(base_rows().view(), resources);
                     }});
  }
  calls.push_back({name + "_add", [=](const Resources& resources) {
                     trained().add(base_rows().view(), Ownership::copy, resources);
                   }});
  calls.push_back({name + "_search", [=](const Resources& resources) {
                     (void)index->search(query_rows().view(), {.k = 5}, resources);
                   }});
  calls.push_back({name + "_range", [=](const Resources& resources) {
                     (void)index->range_search(query_rows().view(), {.radius = 1e-3f}, resources);
                   }});
  calls.push_back({name + "_reconstruct", [=](const Resources& resources) {
                     std::vector<float> out(3 * 24);
                     index->reconstruct(ids, {out.data(), 3, 24}, resources);
                   }});
  calls.push_back({name + "_merge", [=](const Resources& resources) {
                     index->to(Device()).merge(*index, {.shift_ids = true}, resources);
                   }});
  calls.push_back({name + "_save", [=](const Resources& resources) {
                     index->save(scratch_file(name + "_saved.kith"), resources);
                   }});
  calls.push_back({name + "_load", [=](const Resources& resources) {
                     const std::string path = scratch_file(name + "_loaded.kith");
                     if (!std::filesystem::exists(path)) index->save(path);
                     (void)Index::load(path, resources);
                   }});
}

}  // namespace

void add_index_calls(std::vector<PublicCall>& calls) {
  add_calls_of("Flat", "flat", calls);
  add_calls_of("IVF16,SQ8", "ivf_sq8", calls);
  add_calls_of("OPQ4,IVF16,PQ4x4", "opq_ivf_pq", calls);
  add_calls_of("PQ4x4,RFlat", "pq_refined", calls);
  const std::shared_ptr<const Index> lists = filled("IVF16,Flat");
  calls.push_back({"graph_of_an_index", [=](const Resources& resources) {
                     (void)knn_graph(*lists, base_rows().view(), {.k = 5}, resources);
                   }});
}

}  // namespace kith::testing

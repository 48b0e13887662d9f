#include "limits/call_data.hpp"
#include "limits/public_calls.hpp"

#include <kith/index.hpp>
#include <kith/index_graph.hpp>

#include <memory>

namespace kith::testing {
namespace {

// Rows and queries, as f32 or f64.
struct IndexRows {
  MatrixView base;
  MatrixView queries;
};

std::shared_ptr<const Index> filled(const std::string& factory, const MatrixView& base) {
  auto index = std::make_shared<Index>(factory);
  index->train(base);
  index->add(base);
  return index;
}

void add_calls_of(const std::string& factory, const std::string& name, const IndexRows& rows,
                  std::vector<PublicCall>& calls) {
  const std::shared_ptr<const Index> index = filled(factory, rows.base);
  const auto trained = [=] {
    Index fresh(factory);
    fresh.train(rows.base);
    return fresh;
  };
  static const std::vector<int64_t> some = {3, 5, 700};
  const VectorView<const int64_t> ids{some.data(), 3, {}};
  if (factory != "Flat") {
    calls.push_back({name + "_train", [=](const Resources& resources) { Index(factory).train(rows.base, resources); }});
  }
  calls.push_back(
      {name + "_add", [=](const Resources& resources) { trained().add(rows.base, Ownership::copy, resources); }});
  calls.push_back(
      {name + "_search", [=](const Resources& resources) { (void)index->search(rows.queries, {.k = 5}, resources); }});
  calls.push_back({name + "_range", [=](const Resources& resources) {
                     (void)index->range_search(rows.queries, {.radius = 1e-3f}, resources);
                   }});
  calls.push_back({name + "_reconstruct", [=](const Resources& resources) {
                     std::vector<double> out(3 * 24);
                     index->reconstruct(ids, {out.data(), rows.base.dtype(), {3, 24, 24}}, resources);
                   }});
  calls.push_back({name + "_merge", [=](const Resources& resources) {
                     index->to(Device()).merge(*index, {.shift_ids = true}, resources);
                   }});
  calls.push_back({name + "_save",
                   [=](const Resources& resources) { index->save(scratch_file(name + "_saved.kith"), resources); }});
  calls.push_back({name + "_load", [=](const Resources& resources) {
                     const std::string path = scratch_file(name + "_loaded.kith");
                     if (!std::filesystem::exists(path)) index->save(path);
                     (void)Index::load(path, resources);
                   }});
}

}  // namespace

void add_index_calls(std::vector<PublicCall>& calls) {
  const IndexRows narrow{base_rows().view(), query_rows().view()};
  const IndexRows wide{far_base_rows(), far_query_rows()};
  add_calls_of("Flat", "flat", narrow, calls);
  add_calls_of("IVF16,SQ8", "ivf_sq8", narrow, calls);
  add_calls_of("OPQ4,IVF16,PQ4x4", "opq_ivf_pq", narrow, calls);
  add_calls_of("PQ4x4,RFlat", "pq_refined", narrow, calls);
  add_calls_of("Flat", "flat_f64", wide, calls);
  add_calls_of("IVF16,SQ8", "ivf_sq8_f64", wide, calls);
  add_calls_of("OPQ4,IVF16,PQ4x4", "opq_ivf_pq_f64", wide, calls);
  add_calls_of("PQ4x4,RFlat", "pq_refined_f64", wide, calls);
  for (const IndexRows& rows : {narrow, wide}) {
    const std::shared_ptr<const Index> lists = filled("IVF16,Flat", rows.base);
    calls.push_back({"graph_of_an_index_" + std::string(name_of(rows.base.dtype())),
                     [=](const Resources& resources) { (void)knn_graph(*lists, rows.base, {.k = 5}, resources); }});
  }
}

}  // namespace kith::testing

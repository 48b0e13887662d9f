// Parameters of a search that a kind of index does not use are refused by name.
#include <kith/index_graph.hpp>

#include "index/index_check.hpp"
#include "reference/data.hpp"

#include <gmock/gmock.h>

namespace kith {
namespace {

using ::testing::HasSubstr;

struct KindParams {
  const char* factory;
  std::vector<std::string> used;
};

// One parameter given, the others as they are.
SearchParams with(const std::string& name) {
  SearchParams params{.k = 3};
  if (name == "probes") params.probes = 2;
  if (name == "beam") params.beam = 20;
  if (name == "width") params.width = 4;
  if (name == "refine") params.refine = 2;
  return params;
}

class SearchParamsOf : public ::testing::TestWithParam<KindParams> {};

TEST_P(SearchParamsOf, WhatTheKindDoesNotUseIsRefusedByName) {
  const auto [factory, used] = GetParam();
  const auto rows = reference::make_floats(reference::Shape::gaussian, 400, 8, 1);
  const MatrixView queries = rows.view().slice(0, 4);
  Index index(factory);
  index.train(rows.view(), on_cpu());
  for (const bool filled : {false, true}) {
    if (filled) index.add(rows.view(), Ownership::copy, on_cpu());
    for (const std::string name : {"probes", "beam", "width", "refine"}) {
      SCOPED_TRACE(std::string(factory) + " " + name + (filled ? "" : ", without vectors"));
      const auto search = [&] { (void)index.search(queries, with(name), on_cpu()); };
      if (std::find(used.begin(), used.end(), name) != used.end()) {
        EXPECT_EQ(message_of(search), "nothing was thrown");
        continue;
      }
      EXPECT_THROW(search(), InvalidArgument);
      const std::string message = message_of(search);
      EXPECT_THAT(message, HasSubstr(name + " = "));
      EXPECT_THAT(message, HasSubstr(std::string("the index '") + factory + "' takes "));
      for (const std::string& other : used) EXPECT_THAT(message, HasSubstr(other));
    }
    const bool lists = std::find(used.begin(), used.end(), "probes") != used.end();
    const auto range = [&] { (void)index.range_search(queries, {.radius = 1, .probes = 2}, on_cpu()); };
    if (lists) {
      EXPECT_EQ(message_of(range), "nothing was thrown");
    } else {
      EXPECT_THAT(message_of(range), HasSubstr("probes = 2"));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Index, SearchParamsOf,
    ::testing::Values(KindParams{"Flat", {}}, KindParams{"SQ8", {}}, KindParams{"PCA4,Flat", {}},
                      KindParams{"PQ4x4,RFlat", {"refine"}}, KindParams{"IVF4,Flat", {"probes"}},
                      KindParams{"RR,IVF4,SQ8", {"probes"}}, KindParams{"IVF4,PQ4x4,Refine(SQ8)", {"probes", "refine"}},
                      KindParams{"Graph16", {"beam", "width", "refine"}},
                      KindParams{"Graph16,SQ8,RFlat", {"beam", "width", "refine"}}));

TEST(SearchParams, AGraphOfAnIndexTakesWhatItsSearchesTake) {
  const auto rows = reference::make_floats(reference::Shape::gaussian, 300, 8, 1);
  Index index("Flat");
  index.add(rows.view(), Ownership::copy, on_cpu());
  EXPECT_THAT(message_of([&] { (void)knn_graph(index, rows.view(), {.k = 3, .probes = 4}, on_cpu()); }),
              HasSubstr("probes = 4 is for indexes with lists"));
  EXPECT_THAT(message_of([&] { (void)index.search(rows.view(), {.k = 3, .recall = 0.9}, on_cpu()); }),
              HasSubstr("call tune() with queries first"));
}

}  // namespace
}  // namespace kith

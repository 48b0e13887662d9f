// One round of NN-Descent by GNND's rules ("Large-scale approximate k-NN graph construction on GPU"): what a backend
// does; the loop around it (nn_descent.cpp) is the same for all.
//
//   sample   the first p NEW and the first p OLD neighbours of every list; the NEW ones sampled become OLD; and for every
//            row up to p of those that sampled it, of each kind
//   join     a row's NEW samples meet each other and its OLD ones. Each NEW sample is offered the nearest NEW and the
//            nearest OLD one, each OLD sample the nearest NEW one (selective), or every pair is offered (all); an offer
//            of a neighbour that the list has, or of one beyond its end, is dropped
//   merge    offers enter the lists as NEW neighbours
//
// Lists do not change during a join, so that its order does not matter. Offers wait in an inbox of some slots for each
// row (join_rules.hpp). In a merge of two sets only pairs across them meet, NEW with OLD: OLD samples are of the row's
// own set, and those of the other are passed over.
//
// Memory: 16 p + 8 slots bytes a row beside the lists.
#pragma once

#include <kith/resources.hpp>

#include "core/parallel_for.hpp"
#include "graph/lists/graph_lists_cpu.hpp"

#include <cstdint>
#include <memory>

namespace kith {

struct DescentRules {
  int64_t samples = 32;       // p
  int64_t inbox_slots = 32;
  bool all_pairs = false;     // offer every pair; else the nearest alone
  int64_t boundary = 0;       // rows before it are one set, the others another, and only pairs across meet; 0: all do
  uint64_t seed = 0;
  bool random_lists = false;  // they begin with random rows: many pairs pass
  const uint32_t* order = nullptr;  // in which rows are gone over, neighbours near each other; null: as they lie
};

class DescentSteps {
 public:
  virtual ~DescentSteps() = default;
  virtual void sample(int64_t round, ProgressMeter& meter) = 0;
  // Returns the pairs compared.
  virtual int64_t join(int64_t round, ProgressMeter& meter) = 0;
  // Returns the neighbours that entered.
  virtual int64_t merge(ProgressMeter& meter) = 0;
};

// What is given must outlive it.
std::unique_ptr<DescentSteps> make_descent_steps_cpu(const PairRows& rows, const DescentRules& rules,
                                                     WorkingLists& lists, const Resources& resources);
// The lists lie on a GPU.
std::unique_ptr<DescentSteps> make_descent_steps_cuda(GraphLists& lists, const DescentRules& rules);
int64_t descent_steps_bytes_cpu(int64_t rows, int64_t cols, PanelFormat format, const DescentRules& rules, int threads);

}  // namespace kith

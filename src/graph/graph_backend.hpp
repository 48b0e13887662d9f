// What a device does to build a graph by rounds: it holds the rows as they are compared, the working lists, and the
// neighbours of the control rows. The loops (cells/cells.cpp, nn_descent/nn_descent.cpp) are the same for all devices,
// and so is what each step means.
#pragma once

#include <kith/neighbors.hpp>

#include "graph/cells/cell_params.hpp"
#include "graph/cells/cell_steps.hpp"
#include "graph/control_rows.hpp"
#include "graph/list_survey.hpp"
#include "graph/nn_descent/descent_steps.hpp"
#include "graph/nn_descent/named_rows.hpp"

#include <cstdint>
#include <memory>
#include <optional>

namespace kith {

class GraphBackend {
 public:
  virtual ~GraphBackend() = default;
  // The collection, where the device reads it.
  virtual const MatrixView& view() const = 0;
  int64_t rows() const { return view().rows(); }
  virtual int64_t list_length() const = 0;

  // Empty lists, in the place of those there were.
  virtual void begin_lists(int64_t length) = 0;
  // Lists of another length with what those there are hold, as far as it fits.
  virtual void resize_lists(int64_t length) = 0;
  // Fills every list up with distinct random rows (nn_descent/start_lists.hpp), where `boundary` is not 0 with rows of the
  // other set alone.
  virtual void add_random_rows(uint64_t seed, int64_t boundary) = 0;
  // Offers rows to lists by their ids. Their distances are computed again: lists hold keys of this collection.
  virtual void add_rows(const NamedRows& rows) = 0;
  virtual ListSurvey survey(int64_t k, Flags flags) = 0;
  // The first k of every list, as the caller gets them.
  virtual void write(const NeighborsView& out) = 0;

  // On control rows; none: nothing is estimated.
  virtual std::optional<RecallEstimate> measure() = 0;
  virtual int64_t control_rows() const = 0;

  // Waves over the lists; the backend must outlive them. `keeps_order`: rounds of NN-Descent that follow go over the rows
  // cell by cell.
  virtual std::unique_ptr<CellSteps> cut_cells(const CellParams& params, bool keeps_order) = 0;
  // Rounds over the lists, likewise. The rules' order is the backend's to set.
  virtual std::unique_ptr<DescentSteps> descent_steps(const DescentRules& rules) = 0;
};

}  // namespace kith

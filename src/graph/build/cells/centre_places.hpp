// Answers at which probe a row reaches a cell, from the cells' centres on the CPU (probe_forecast.hpp). The rows may be
// stored anywhere and are fetched in batches.
#pragma once

#include <kith/matrix_buffer.hpp>
#include <kith/neighbors.hpp>
#include <kith/resources.hpp>
#include <kith/view.hpp>

#include "graph/build/cells/cell_space.hpp"
#include "graph/build/cells/probe_forecast.hpp"

#include <cstdint>
#include <functional>
#include <span>

namespace kith {

// The k nearest centres of each vector.
Neighbors nearest_centres(const MatrixView& vectors, const MatrixView& centres, int64_t k, const Resources& resources);

class CentrePlaces final : public CellPlaces {
 public:
  // Fetches the vectors of listed rows in cell space.
  using Listed = std::function<MatrixBuffer(const uint32_t* rows, int64_t count, CellSide side)>;

  // The f32 centres must outlive it. Fetches `batch` rows at a time.
  CentrePlaces(const MatrixView& centres, Listed listed, int64_t batch, const Resources& resources)
      : centres_(centres), listed_(std::move(listed)), batch_(batch), resources_(resources.with_progress({})) {}

  int64_t cells() const override { return centres_.rows(); }
  void find_own(std::span<const uint32_t> rows, uint32_t* own) override;
  void find_places(std::span<const uint32_t> rows, std::span<const uint32_t> own,
                   std::span<const PlaceQuestion> questions, uint32_t* places) override;

 private:
  const MatrixView centres_;
  const Listed listed_;
  const int64_t batch_;
  const Resources resources_;
};

}  // namespace kith

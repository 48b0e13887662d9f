// The recall that walks reach by beam width, measured on an index's own rows, and the beam that a search then uses.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace kith {

struct BeamRecall {
  int64_t beam = 0;
  double recall = 0;  // of the 10 nearest

  friend bool operator==(const BeamRecall&, const BeamRecall&) = default;
};

// The beams to measure, until one reaches kMeasuredRecall.
inline constexpr int64_t kMeasuredBeams[] = {16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024};
inline constexpr double kMeasuredRecall = 0.999;
inline constexpr double kDefaultRecall = 0.95;
// Where a narrow beam finds nearly all, it is the default: it costs little more. Clusters that nothing joins need it,
// since a walk that begins beside the right ones finds none of a query's neighbours.
inline constexpr double kEasyRecall = 0.98;
inline constexpr int64_t kEasyBeam = 48;

class BeamTable {
 public:
  BeamTable() = default;
  // At least one entry, by ascending beam.
  explicit BeamTable(std::vector<BeamRecall> measured) : measured_(std::move(measured)) {}

  const std::vector<BeamRecall>& measured() const { return measured_; }
  bool empty() const { return measured_.empty(); }

  // The smallest beam that reached this recall; 0 if none did.
  int64_t beam_for(double recall) const {
    for (const BeamRecall& one : measured_) {
      if (one.recall >= recall) return one.beam;
    }
    return 0;
  }
  // The smallest up to kEasyBeam that reached kEasyRecall; else the smallest that reached kDefaultRecall, or the widest.
  int64_t default_beam() const {
    const int64_t easy = beam_for(kEasyRecall);
    if (easy > 0 && easy <= kEasyBeam) return easy;
    const int64_t beam = beam_for(kDefaultRecall);
    return beam > 0 || measured_.empty() ? beam : measured_.back().beam;
  }

 private:
  std::vector<BeamRecall> measured_;
};

}  // namespace kith

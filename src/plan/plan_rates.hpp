// Time of a phase: computation by the machine model, reading and writing by the disk's rates. The three overlap, so
// that the longest one counts.
#pragma once

#include <kith/work_plan.hpp>

#include "core/cpu_model.hpp"

#include <algorithm>

namespace kith {

// How much longer pairs of floats take on a CPU than those of bytes: rounded to bytes, and compared again where they may be near.
inline double pair_factor(DType dtype) { return dtype == DType::u8 || dtype == DType::i8 ? 1 : 1.5; }
// The same where all pairs are compared: rows that follow each other are compared sooner than those of cells, which are gathered.
inline double exact_factor(DType dtype) { return 0.7 * pair_factor(dtype); }

inline void time_phase(PlanPhase& phase, const Counts& counts, const PlanQuestion& question) {
  const double products = question.gpu ? model_of(DeviceInfo()).seconds(counts)
                                       : cpu_model(question.threads, question.instruction_set).seconds(counts);
  const double reading = static_cast<double>(phase.read_bytes) / question.disk_read;
  const double writing = static_cast<double>(phase.written_bytes) / question.disk_write;
  phase.seconds = std::max({products, reading, writing});
  phase.bound = phase.seconds == products ? "products" : phase.seconds == reading ? "reading" : "writing";
}

}  // namespace kith

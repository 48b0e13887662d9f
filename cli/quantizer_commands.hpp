// kith train, encode and decode: vectors of a file, which may be larger than memory, as codes of a few bytes and back.
#pragma once

#include "additive_options.hpp"
#include "commands.hpp"
#include "report.hpp"
#include "run_options.hpp"

#include <cstdint>
#include <string>

namespace kith::cli {

struct TrainOptions {
  std::string data;
  std::string quantizer;  // its name: PQ16, SQ8, LSQ8x8, ...
  std::string out;
  uint64_t seed = 0;
  AdditiveOptions additive;
  bool check_finite = true;
};
Report run_train(const TrainOptions& options, const RunOptions& run);

// Options of encode and decode.
struct CodeOptions {
  std::string quantizer;  // its file
  std::string in;
  std::string out;
  int64_t rounds = 16;  // of local search, for LSQ
};
Report run_encode(const CodeOptions& options, const RunOptions& run);
Report run_decode(const CodeOptions& options, const RunOptions& run);

// train, encode and decode.
void offer_quantizers(Commands& commands);

}  // namespace kith::cli

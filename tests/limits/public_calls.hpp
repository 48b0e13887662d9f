// Every public call that takes memory, by name, on small data: for tests of what all of them promise.
#pragma once

#include <kith/resources.hpp>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace kith::testing {

struct PublicCall {
  std::string name;
  std::function<void(const Resources&)> make;
  bool on_gpus = true;       // else GPUs are refused
  bool takes_memory = true;  // on the CPU
};

inline void PrintTo(const PublicCall& call, std::ostream* out) { *out << call.name; }

void add_exact_calls(std::vector<PublicCall>& calls);
void add_training_calls(std::vector<PublicCall>& calls);  // k-means, transforms, quantizers
void add_index_calls(std::vector<PublicCall>& calls);
void add_graph_builds(std::vector<PublicCall>& calls);  // on any device
void add_calls_of_gpu_rows(std::vector<PublicCall>& calls);
void add_graph_calls(std::vector<PublicCall>& calls);

std::vector<PublicCall> public_calls();

}  // namespace kith::testing

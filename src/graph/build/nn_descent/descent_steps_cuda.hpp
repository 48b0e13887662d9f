// The rounds of NN-Descent on a GPU: rows, lists, samples and offers stay there. The lists are the CPU's, byte for byte.
// What they keep beside rows and lists is in descent_workspace.hpp.
#pragma once

#include <kith/resources.hpp>

#include "graph/build/nn_descent/descent_steps.hpp"
#include "graph/lists/pairs/pair_key_rows.hpp"
#include "graph/lists/working_lists_cuda.hpp"

#include <cstdint>
#include <memory>

namespace kith {

// What is given must outlive it; work is enqueued on the context's stream. The rules' order lies on the device. Unsupported
// where there are more samples or longer lists than a block has room for.
std::unique_ptr<DescentSteps> make_descent_steps_cuda(const PairKeyRows& rows, const DescentRules& rules,
                                                      uint64_t* lists, int64_t list_length,
                                                      std::shared_ptr<const DeviceContext> context,
                                                      const Resources& resources);

}  // namespace kith

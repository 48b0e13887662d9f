// The words for choices of local search quantization, as the program and the package take them.
#include <kith/local_search_quantizer.hpp>

#include "core/name_table.hpp"

namespace kith {
namespace {

constexpr NameTable<AdditiveStart, 3> kTrainStarts{
    {{{AdditiveStart::opq, "opq"}, {AdditiveStart::residual, "residual"}, {AdditiveStart::random, "random"}}}};
constexpr NameTable<CodeStart, 3> kCodeStarts{
    {{{CodeStart::greedy, "greedy"}, {CodeStart::random, "random"}, {CodeStart::given, "given"}}}};
constexpr NameTable<SweepOrder, 2> kOrders{{{{SweepOrder::fixed, "fixed"}, {SweepOrder::random, "random"}}}};

}  // namespace

std::string_view name_of(AdditiveStart start) { return kTrainStarts.name(start); }
AdditiveStart parse_additive_start(std::string_view name) { return kTrainStarts.parse(name, "start of training"); }
std::string_view name_of(CodeStart start) { return kCodeStarts.name(start); }
CodeStart parse_code_start(std::string_view name) { return kCodeStarts.parse(name, "start of encoding"); }
std::string_view name_of(SweepOrder order) { return kOrders.name(order); }
SweepOrder parse_sweep_order(std::string_view name) { return kOrders.parse(name, "order of codebooks"); }

}  // namespace kith

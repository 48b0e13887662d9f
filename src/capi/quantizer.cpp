#include "capi/arguments.hpp"
#include "capi/status.hpp"

#include <kith/quantizer.hpp>

#include <string>
#include <utility>
#include <variant>

struct kith_quantizer {
  explicit kith_quantizer(kith::Quantizer made) : quantizer(std::move(made)), name(kith::name_of(quantizer)) {}

  kith::Quantizer quantizer;
  std::string name;
};

namespace kith::capi {
namespace {

VectorQuantizer& quantizer_of(kith_quantizer* quantizer) {
  return std::visit([](auto& one) -> VectorQuantizer& { return one; }, required(quantizer, "quantizer").quantizer);
}
const VectorQuantizer& quantizer_of(const kith_quantizer* quantizer) {
  return std::visit([](const auto& one) -> const VectorQuantizer& { return one; },
                    required(quantizer, "quantizer").quantizer);
}

}  // namespace

}  // namespace kith::capi

using namespace kith;
using namespace kith::capi;

extern "C" {

kith_status kith_quantizer_new(const char* name, uint64_t seed, kith_quantizer** out) {
  return guarded([&] {
    kith_quantizer*& made = handle_place(out);
    made = new kith_quantizer(make_quantizer(required_text(name, "name"), seed));
  });
}

kith_status kith_quantizer_load(const char* path, kith_quantizer** out, const kith_resources* resources) {
  return guarded([&] {
    kith_quantizer*& made = handle_place(out);
    made = new kith_quantizer(load_quantizer(required_text(path, "path"), resources_of(resources)));
  });
}

kith_status kith_quantizer_save(const kith_quantizer* quantizer, const char* path, const kith_resources* resources) {
  return guarded(
      [&] { save_quantizer(quantizer_of(quantizer), required_text(path, "path"), resources_of(resources)); });
}

void kith_quantizer_free(kith_quantizer* quantizer) { delete quantizer; }

kith_status kith_quantizer_train(kith_quantizer* quantizer, const kith_matrix* rows, const kith_resources* resources) {
  return guarded([&] { quantizer_of(quantizer).train(view_of(rows, "rows"), resources_of(resources)); });
}

kith_status kith_quantizer_encode(const kith_quantizer* quantizer, const kith_matrix* rows,
                                  const kith_mutable_matrix* codes, const kith_resources* resources) {
  return guarded(
      [&] { quantizer_of(quantizer).encode(view_of(rows, "rows"), view_of(codes, "codes"), resources_of(resources)); });
}

kith_status kith_quantizer_decode(const kith_quantizer* quantizer, const kith_matrix* codes,
                                  const kith_mutable_matrix* out, const kith_resources* resources) {
  return guarded(
      [&] { quantizer_of(quantizer).decode(view_of(codes, "codes"), view_of(out, "out"), resources_of(resources)); });
}

kith_status kith_quantizer_get_info(const kith_quantizer* quantizer, kith_quantizer_info* out) {
  return guarded([&] {
    const VectorQuantizer& about = quantizer_of(quantizer);
    kith_quantizer_info told = {};
    told.name = quantizer->name.c_str();
    told.dimension = about.dimension();
    told.code_bytes = about.code_bytes();
    told.trained = about.trained() ? 1 : 0;
    give(out, told, "out", "kith_quantizer_info");
  });
}

}  // extern "C"

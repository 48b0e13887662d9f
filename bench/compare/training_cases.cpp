// k-means, quantizers with the transforms that go before them, and LSQ.
#include "compare/cases.hpp"

namespace {

using kith::DType;

std::string shape_of(int64_t rows, int64_t cols) { return std::to_string(rows) + "x" + std::to_string(cols); }

struct Fit {
  int64_t rows = 0;
  int64_t cols = 0;
  kith::KMeansParams params;
  DType dtype = DType::f32;
};

void add_fit(const Machine& machine, const std::string& what, const Fit& fit, std::vector<Case>& cases) {
  const std::string name = what + " " + std::string(kith::name_of(fit.dtype)) + " " + shape_of(fit.rows, fit.cols) +
                           " c" + std::to_string(fit.params.clusters);
  cases.push_back({"kmeans", name, [&machine, fit] {
                     const Rows rows = machine.rows(fit.dtype, fit.rows, fit.cols);
                     return [=, &machine] { kith::KMeans(fit.params).fit(rows->view(), {}, machine.resources()); };
                   }});
}

void add_predict(const Machine& machine, const Fit& fit, bool distances, std::vector<Case>& cases) {
  const std::string name = std::string(distances ? "predict with distances " : "predict ") +
                           shape_of(fit.rows, fit.cols) + " c" + std::to_string(fit.params.clusters);
  cases.push_back(
      {"kmeans", name, [&machine, fit, distances] {
         const Rows rows = machine.rows(fit.dtype, fit.rows, fit.cols);
         const auto kmeans = std::make_shared<kith::KMeans>(fit.params);
         kmeans->set_centres(machine.host_rows(fit.params.clusters, fit.cols, 5)->view(), machine.resources());
         const auto labels = std::make_shared<Memory>(fit.rows * 4, machine.cuda());
         const auto lengths = std::make_shared<Memory>(fit.rows * 4, machine.cuda());
         return [=, &machine] {
           const kith::VectorView<float> wanted{lengths->as<float>(), distances ? fit.rows : 0, lengths->space()};
           kmeans->predict(rows->view(), {labels->as<int32_t>(), fit.rows, labels->space()},
                           distances ? wanted : kith::VectorView<float>{}, machine.resources());
         };
       }});
}

void add_kmeans(const Machine& machine, std::vector<Case>& cases) {
  const int64_t rows = machine.size(20'000, 1'000'000);
  const int64_t clusters = machine.size(100, 1024);
  const kith::KMeansParams lloyd{.clusters = clusters, .iterations = 8, .tol = 0, .init = kith::KMeansInit::random};
  add_fit(machine, "fit", {rows, 64, lloyd}, cases);
  add_fit(machine, "fit", {rows, 64, lloyd, DType::u8}, cases);
  add_fit(machine, "fit", {rows, 16, lloyd}, cases);
  kith::KMeansParams plus = lloyd;
  plus.init = kith::KMeansInit::kmeans_plus_plus;
  plus.iterations = 1;
  add_fit(machine, "k-means++", {rows, 64, plus}, cases);
  kith::KMeansParams few = lloyd;
  few.clusters = 8;
  add_fit(machine, "fit", {rows, 16, few}, cases);
  kith::KMeansParams spherical = lloyd;
  spherical.spherical = true;
  add_fit(machine, "spherical", {rows, 64, spherical}, cases);
  kith::KMeansParams batches = lloyd;
  batches.batch_size = machine.size(1'000, 10'000);
  batches.iterations = 2;
  add_fit(machine, "mini-batches", {rows, 64, batches}, cases);
  kith::KMeansParams many = lloyd;
  many.clusters = machine.size(1'000, 16'384);
  for (const bool distances : {false, true}) add_predict(machine, {rows, 64, many}, distances, cases);
}

// A quantizer or transform that is trained in the case itself, and its use.
template <typename Quantizer>
void add_quantizer(const Machine& machine, const std::string& table, const std::string& name,
                   const std::function<Quantizer()>& make, const Fit& train, int64_t encoded,
                   std::vector<Case>& cases) {
  cases.push_back({table, name + " train " + shape_of(train.rows, train.cols), [=, &machine] {
                     const Rows rows = machine.rows(DType::f32, train.rows, train.cols);
                     return [=, &machine] { make().train(rows->view(), machine.resources()); };
                   }});
  // Trained once for both.
  const auto trained = [=, &machine, kept = std::make_shared<std::shared_ptr<Quantizer>>()] {
    if (*kept != nullptr) return *kept;
    *kept = std::make_shared<Quantizer>(make());
    (*kept)->train(machine.rows(DType::f32, train.rows, train.cols)->view(), machine.resources());
    return *kept;
  };
  cases.push_back({table, name + " encode " + shape_of(encoded, train.cols), [=, &machine] {
                     const auto quantizer = trained();
                     const Rows rows = machine.rows(DType::f32, encoded, train.cols, 2);
                     const Rows codes = machine.empty(DType::u8, encoded, quantizer->code_bytes());
                     return
                         [=, &machine] { quantizer->encode(rows->view(), codes->mutable_view(), machine.resources()); };
                   }});
  cases.push_back({table, name + " decode " + shape_of(encoded, train.cols), [=, &machine] {
                     const auto quantizer = trained();
                     const Rows rows = machine.rows(DType::f32, encoded, train.cols, 2);
                     const Rows codes = machine.empty(DType::u8, encoded, quantizer->code_bytes());
                     quantizer->encode(rows->view(), codes->mutable_view(), machine.resources());
                     const Rows out = machine.empty(DType::f32, encoded, train.cols);
                     return
                         [=, &machine] { quantizer->decode(codes->view(), out->mutable_view(), machine.resources()); };
                   }});
}

void add_transform(const Machine& machine, const std::string& steps, const Fit& train, int64_t applied,
                   std::vector<Case>& cases) {
  cases.push_back({"quantizers", steps + " train " + shape_of(train.rows, train.cols), [=, &machine] {
                     const Rows rows = machine.rows(DType::f32, train.rows, train.cols);
                     return [=, &machine] {
                       kith::VectorTransform({.steps = steps}).train(rows->view(), machine.resources());
                     };
                   }});
  cases.push_back({"quantizers", steps + " apply " + shape_of(applied, train.cols), [=, &machine] {
                     const auto transform =
                         std::make_shared<kith::VectorTransform>(kith::VectorTransformParams{.steps = steps});
                     transform->train(machine.rows(DType::f32, train.rows, train.cols)->view(), machine.resources());
                     const Rows rows = machine.rows(DType::f32, applied, train.cols, 2);
                     const Rows out = machine.empty(DType::f32, applied, transform->steps().back().out);
                     return [=, &machine] { transform->apply(rows->view(), out->mutable_view(), machine.resources()); };
                   }});
}

void add_quantizers(const Machine& machine, std::vector<Case>& cases) {
  const Fit train{machine.size(5'000, 65'536), 64, {}};
  const int64_t encoded = machine.size(20'000, 1'000'000);
  for (const auto& [name, parts, bits] : {std::tuple("PQ16", 16, 8), std::tuple("PQ32x4", 32, 4)}) {
    const kith::ProductQuantizerParams params{.parts = parts, .bits = bits};
    const std::function<kith::ProductQuantizer()> make = [params] { return kith::ProductQuantizer(params); };
    add_quantizer(machine, "quantizers", name, make, train, encoded, cases);
  }
  for (const auto& [name, bits] : {std::pair("SQ8", 8), std::pair("SQ4", 4)}) {
    const kith::ScalarQuantizerParams params{.bits = bits};
    const std::function<kith::ScalarQuantizer()> make = [params] { return kith::ScalarQuantizer(params); };
    add_quantizer(machine, "quantizers", name, make, {encoded, 64, {}}, encoded, cases);
  }
  const kith::ResidualQuantizerParams residual{.codebooks = 4, .bits = 6};
  const std::function<kith::ResidualQuantizer()> make = [residual] { return kith::ResidualQuantizer(residual); };
  add_quantizer(machine, "quantizers", "RQ4x6", make, {machine.size(5'000, 65'536), 32, {}},
                machine.size(5'000, 200'000), cases);
  // Transforms learn on the host's threads, whatever the device is.
  add_transform(machine, "OPQ8", {3'000, 32, {}}, encoded, cases);
  add_transform(machine, "PCA32", {10'000, 64, {}}, encoded, cases);
}

void add_lsq(const Machine& machine, std::vector<Case>& cases) {
  kith::LocalSearchParams small{.codebooks = 4, .bits = 6};
  small.rounds = 2;
  const std::function<kith::LocalSearchQuantizer()> make = [small] { return kith::LocalSearchQuantizer(small); };
  add_quantizer(machine, "lsq", "LSQ4x6", make, {machine.size(3'000, 50'000), 32, {}}, machine.size(3'000, 200'000),
                cases);
  kith::LocalSearchParams large{.codebooks = 8, .bits = 8};
  large.rounds = 1;
  large.train_search_rounds = 2;
  const std::function<kith::LocalSearchQuantizer()> make_large = [large] { return kith::LocalSearchQuantizer(large); };
  add_quantizer(machine, "lsq", "LSQ8x8", make_large, {machine.size(2'000, 50'000), 64, {}},
                machine.size(1'000, 100'000), cases);
}

}  // namespace

void add_training_cases(const Machine& machine, std::vector<Case>& cases) {
  add_kmeans(machine, cases);
  add_quantizers(machine, cases);
  add_lsq(machine, cases);
}

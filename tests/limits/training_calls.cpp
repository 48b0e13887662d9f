#include "limits/call_data.hpp"
#include "limits/public_calls.hpp"

#include <kith/kmeans.hpp>
#include <kith/local_search_quantizer.hpp>
#include <kith/product_quantizer.hpp>
#include <kith/residual_quantizer.hpp>
#include <kith/scalar_quantizer.hpp>
#include <kith/vector_transform.hpp>

#include <memory>

namespace kith::testing {
namespace {

void add_kmeans_calls(std::vector<PublicCall>& calls) {
  static const std::shared_ptr<KMeans> fitted = [] {
    auto kmeans = std::make_shared<KMeans>(KMeansParams{.clusters = 20, .iterations = 2});
    kmeans->fit(base_rows().view());
    return kmeans;
  }();
  const auto fit_with = [](KMeansParams params) {
    return [params](const Resources& resources) { KMeans(params).fit(base_rows().view(), {}, resources); };
  };
  calls.push_back({"kmeans_fit", fit_with({.clusters = 20, .iterations = 3})});
  calls.push_back({"kmeans_fit_many", fit_with({.clusters = 300, .iterations = 2, .n_init = 2})});
  calls.push_back({"kmeans_fit_sample", fit_with({.clusters = 10, .iterations = 2, .max_points_per_centre = 50})});
  calls.push_back({"kmeans_mini_batches", fit_with({.clusters = 20, .iterations = 2, .batch_size = 200})});
  calls.push_back({"kmeans_partial_fit", [](const Resources& resources) {
                     KMeans({.clusters = 20}).partial_fit(base_rows().view(), {}, resources);
                   }});
  calls.push_back({"kmeans_predict", [](const Resources& resources) {
                     std::vector<int32_t> labels(1500);
                     std::vector<float> distances(1500);
                     fitted->predict(base_rows().view(), labels.data(), distances.data(), resources);
                   }});
  calls.push_back({"kmeans_transform", [](const Resources& resources) {
                     std::vector<float> out(1500 * 20);
                     fitted->transform(base_rows().view(), {out.data(), 1500, 20}, resources);
                   }});
  static const std::shared_ptr<KMeans> far = [] {
    auto kmeans = std::make_shared<KMeans>(KMeansParams{.clusters = 20, .iterations = 2});
    kmeans->fit(far_base_rows());
    return kmeans;
  }();
  calls.push_back({"kmeans_fit_f64", [](const Resources& resources) {
                     KMeans({.clusters = 20, .iterations = 3}).fit(far_base_rows(), {}, resources);
                   }});
  calls.push_back({"kmeans_fit_given_f64", [](const Resources& resources) {
                     const KMeansParams params{.clusters = 20, .iterations = 3, .init = KMeansInit::given};
                     KMeansInput input;
                     input.centres = far_base_rows().slice(0, 20);
                     KMeans(params).fit(far_base_rows(), input, resources);
                   }});
  calls.push_back({"kmeans_partial_fit_f64", [](const Resources& resources) {
                     KMeans({.clusters = 20}).partial_fit(far_base_rows(), {}, resources);
                   }});
  calls.push_back({"kmeans_predict_f64", [](const Resources& resources) {
                     std::vector<int32_t> labels(1500);
                     far->predict(far_base_rows(), labels.data(), nullptr, resources);
                   }});
  calls.push_back({"kmeans_transform_f64", [](const Resources& resources) {
                     std::vector<float> out(1500 * 20);
                     far->transform(far_base_rows(), {out.data(), 1500, 20}, resources);
                   }});
}

void add_transform_calls(std::vector<PublicCall>& calls) {
  for (const std::string steps : {"PCA8", "OPQ4", "RR"}) {
    calls.push_back({"train_" + steps, [steps](const Resources& resources) {
                       VectorTransform({.steps = steps}).train(base_rows().view(), resources);
                     }});
    auto trained = std::make_shared<VectorTransform>(VectorTransformParams{.steps = steps});
    trained->train(base_rows().view());
    calls.push_back({"apply_" + steps,
                     [trained](const Resources& resources) {
                       std::vector<float> out(static_cast<size_t>(1500 * trained->dimension_out()));
                       trained->apply(base_rows().view(), {out.data(), 1500, trained->dimension_out()}, resources);
                     },
                     true, steps == "PCA8"});  // another is one product, straight to the result
    calls.push_back({"train_" + steps + "_f64", [steps](const Resources& resources) {
                       VectorTransform({.steps = steps}).train(far_base_rows(), resources);
                     }});
    calls.push_back({"apply_" + steps + "_f64", [trained](const Resources& resources) {
                       std::vector<float> out(static_cast<size_t>(1500 * trained->dimension_out()));
                       trained->apply(far_base_rows(), {out.data(), 1500, trained->dimension_out()}, resources);
                     }});
  }
}

template <typename Quantizer>
void add_quantizer_calls(const std::string& name, const std::shared_ptr<Quantizer>& trained,
                         const std::function<void(const Resources&)>& train, std::vector<PublicCall>& calls) {
  trained->train(base_rows().view());
  const int64_t bytes = trained->code_bytes();
  const auto codes = std::make_shared<std::vector<uint8_t>>(static_cast<size_t>(1500 * bytes));
  trained->encode(base_rows().view(), {codes->data(), 1500, bytes});
  calls.push_back({name + "_train", train});
  calls.push_back({name + "_encode", [=](const Resources& resources) {
                     std::vector<uint8_t> out(codes->size());
                     trained->encode(base_rows().view(), {out.data(), 1500, bytes}, resources);
                   }});
  calls.push_back({name + "_encode_f64", [=](const Resources& resources) {
                     std::vector<uint8_t> out(codes->size());
                     trained->encode(far_base_rows(), {out.data(), 1500, bytes}, resources);
                   }});
  calls.push_back({name + "_decode",
                   [=](const Resources& resources) {
                     std::vector<float> out(static_cast<size_t>(1500 * trained->dimension()));
                     trained->decode({codes->data(), 1500, bytes}, {out.data(), 1500, trained->dimension()}, resources);
                   },
                   true, false});
  calls.push_back(
      {name + "_lookup_table", [=](const Resources& resources) {
         const int64_t entries = name == "pq4" ? 64 : 32;  // parts or books of 16
         std::vector<float> out(static_cast<size_t>(1500 * entries));
         trained->lookup_table(base_rows().view(), Metric::inner_product, {out.data(), 1500, entries}, resources);
       }});
}

template <typename Quantizer, typename Params>
void add_quantizer(const std::string& name, const Params& params, std::vector<PublicCall>& calls) {
  add_quantizer_calls(
      name, std::make_shared<Quantizer>(params),
      [params](const Resources& resources) { Quantizer(params).train(base_rows().view(), resources); }, calls);
  calls.push_back({name + "_train_f64",
                   [params](const Resources& resources) { Quantizer(params).train(far_base_rows(), resources); }});
}

}  // namespace

void add_training_calls(std::vector<PublicCall>& calls) {
  add_kmeans_calls(calls);
  add_transform_calls(calls);
  calls.push_back({"sq8_train", [](const Resources& resources) {
                     ScalarQuantizer({.bits = 8}).train(base_rows().view(), resources);
                   }});
  add_quantizer<ProductQuantizer>("pq4", ProductQuantizerParams{.parts = 4, .bits = 4}, calls);
  add_quantizer<ResidualQuantizer>("rq2", ResidualQuantizerParams{.codebooks = 2, .bits = 4}, calls);
  add_quantizer<LocalSearchQuantizer>("lsq2", LocalSearchParams{.codebooks = 2, .bits = 4, .rounds = 2}, calls);
}

}  // namespace kith::testing

// The search and the graph of custom_metric.cpp on a GPU: the same metric, with functions for the device.
#include <kith/custom_metric.cuh>

#include <cstdint>
#include <cstdio>
#include <exception>

struct Canberra {
  static constexpr bool symmetric = true;  // graphs ask for it
  __host__ __device__ float init() const { return 0; }
  __host__ __device__ float step(float sum, float q, float x) const {
    const float size = fabsf(q) + fabsf(x);
    return sum + fabsf(q - x) / (size + (size == 0 ? 1.0f : 0.0f));
  }
  __host__ __device__ float finish(float sum) const { return sum; }
};

int main() {
  constexpr int64_t kRecipes = 6;
  constexpr int64_t kIngredients = 4;
  const char* names[kRecipes] = {"bread", "pizza", "pancakes", "omelette", "brioche", "shortbread"};
  const float grams[kRecipes][kIngredients] = {
      // flour, butter, eggs, salt
      {500, 10, 0, 10}, {500, 20, 0, 12}, {250, 30, 150, 3}, {0, 20, 180, 2}, {500, 200, 250, 10}, {300, 200, 0, 2}};

  try {
    const kith::MatrixView recipes(&grams[0][0], kRecipes, kIngredients);
    const kith::Neighbors found = kith::knn_by_cuda(Canberra{}, recipes, recipes, {.k = 3});
    for (int64_t i = 0; i < kRecipes; ++i) {
      std::printf("%-11s", names[i]);
      for (int64_t j = 0; j < found.k(); ++j) {
        std::printf("  %s (%.2f)", names[found.ids(i)[j]], static_cast<double>(found.distances(i)[j]));
      }
      std::printf("\n");
    }
    const kith::CustomGraph graph = kith::knn_graph_by_cuda(Canberra{}, recipes, {.k = 2});
    for (int64_t i = 0; i < kRecipes; ++i) {
      std::printf("%s - %s, %s\n", names[i], names[graph.neighbors.ids(i)[0]], names[graph.neighbors.ids(i)[1]]);
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "custom_metric_cuda: %s\n", error.what());
    return 1;
  }
}

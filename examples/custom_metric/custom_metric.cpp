// Searches by a metric that Kith does not have: the Canberra distance, in which small values count as much as large
// ones. Prints the three nearest of a few recipes, told by their ingredients in grams, and the graph of each one's nearest
// two others.
#include <kith/custom_metric.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>

struct Canberra {
  static constexpr bool symmetric = true;  // graphs ask for it
  float init() const { return 0; }
  float step(float sum, float q, float x) const {
    const float size = std::fabs(q) + std::fabs(x);
    return sum + std::fabs(q - x) / (size + (size == 0 ? 1.0f : 0.0f));
  }
  float finish(float sum) const { return sum; }
};

int main() {
  constexpr int64_t kRecipes = 6;
  constexpr int64_t kIngredients = 4;
  const char* names[kRecipes] = {"bread", "pizza", "pancakes", "omelette", "brioche", "shortbread"};
  const float grams[kRecipes][kIngredients] = {
      // flour, butter, eggs, salt
      {500, 10, 0, 10}, {500, 20, 0, 12}, {250, 30, 150, 3}, {0, 20, 180, 2}, {500, 200, 250, 10}, {300, 200, 0, 2}};

  const kith::MatrixView recipes(&grams[0][0], kRecipes, kIngredients);
  const kith::Neighbors found = kith::knn_by(Canberra{}, recipes, recipes, {.k = 3});
  for (int64_t i = 0; i < kRecipes; ++i) {
    std::printf("%-11s", names[i]);
    for (int64_t j = 0; j < found.k(); ++j) {
      std::printf("  %s (%.2f)", names[found.ids(i)[j]], static_cast<double>(found.distances(i)[j]));
    }
    std::printf("\n");
  }
  const kith::CustomGraph graph = kith::knn_graph_by(Canberra{}, recipes, {.k = 2});
  for (int64_t i = 0; i < kRecipes; ++i) {
    std::printf("%s - %s, %s\n", names[i], names[graph.neighbors.ids(i)[0]], names[graph.neighbors.ids(i)[1]]);
  }
}

// Plots points as characters: y over the logarithm of x.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kith::cli {

struct PlotPoint {
  double x = 0;  // above 0
  double y = 0;
  bool marked = false;  // drawn as a larger one
};

// Lines of 64 by 16 characters between axes, with the least and the largest value of each; nothing for no points.
std::string text_plot(const std::vector<PlotPoint>& points, std::string_view x_name, std::string_view y_name);

}  // namespace kith::cli

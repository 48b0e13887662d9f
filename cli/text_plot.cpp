#include "text_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kith::cli {

std::string text_plot(const std::vector<PlotPoint>& points, std::string_view x_name, std::string_view y_name) {
  constexpr int kWidth = 64;
  constexpr int kHeight = 16;
  if (points.empty()) return {};
  const auto by_x = [](const PlotPoint& a, const PlotPoint& b) { return a.x < b.x; };
  const auto by_y = [](const PlotPoint& a, const PlotPoint& b) { return a.y < b.y; };
  const auto [left, right] = std::minmax_element(points.begin(), points.end(), by_x);
  const auto [low, high] = std::minmax_element(points.begin(), points.end(), by_y);
  // The character, of so many, that stands for this share of the span; the middle one where all values are equal.
  const auto at = [](double share, int count) {
    return std::isfinite(share) ? std::clamp(static_cast<int>(std::lround(share * (count - 1))), 0, count - 1)
                                : count / 2;
  };
  std::vector<std::string> lines(kHeight, std::string(kWidth, ' '));
  for (const bool marked : {false, true}) {  // what is marked is drawn last
    for (const PlotPoint& point : points) {
      if (point.marked != marked) continue;
      const int column = at(std::log(point.x / left->x) / std::log(right->x / left->x), kWidth);
      const int line = at((high->y - point.y) / (high->y - low->y), kHeight);
      lines[static_cast<size_t>(line)][static_cast<size_t>(column)] = marked ? '@' : 'o';
    }
  }
  std::string text = fmt::format("{}\n", y_name);
  for (int i = 0; i < kHeight; ++i) {
    const std::string label = i == 0             ? fmt::format("{:.4f}", high->y)
                              : i == kHeight - 1 ? fmt::format("{:.4f}", low->y)
                                                 : std::string();
    std::string line = fmt::format("{:>8} |{}", label, lines[static_cast<size_t>(i)]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  text += fmt::format("{:>8} +{}\n", "", std::string(kWidth, '-'));
  const std::string begin = fmt::format("{:.3g}", left->x);
  const std::string end = fmt::format("{:.3g} {}", right->x, x_name);
  text += fmt::format("{:>10}{}{:>{}}\n", "", begin, end, kWidth - static_cast<int>(begin.size()));
  return text;
}

}  // namespace kith::cli

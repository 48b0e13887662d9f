// VectorTransform: every step alone and in chains; trained, applied, undone, saved.
#include "case.hpp"

namespace hashes {
namespace {

using namespace kith;

// One step, from `cols` columns, which it changes.
std::string draw_step(Draws& draws, int64_t& cols) {
  const int64_t fewer = std::max<int64_t>(1, cols / 2);
  const int64_t parts = cols % 4 == 0 ? draws.of<int64_t>({2, 4}) : 1;
  switch (draws.between(0, 7)) {
    case 0: cols = fewer; return "PCA" + std::to_string(cols);
    case 1: return "PCA" + std::to_string(cols);
    case 2: return "OPQ" + std::to_string(parts);
    case 3:
      cols = parts * std::max<int64_t>(1, fewer / parts);
      return "OPQ" + std::to_string(parts) + "_" + std::to_string(cols);
    case 4: return "RR";
    case 5: cols = draws.chance(50) ? fewer : cols + 3; return "RR" + std::to_string(cols);
    case 6: return draws.of({"Centre", "L2norm"});
    default: cols += draws.between(1, 9); return "Pad" + std::to_string(cols);
  }
}

void hash_applied(Hash& hash, const VectorTransform& transform, const MatrixView& rows, bool back,
                  const Resources& resources) {
  std::vector<float> there(static_cast<size_t>(rows.rows() * transform.dimension_out()));
  transform.apply(rows, MutableMatrixView(there.data(), rows.rows(), transform.dimension_out()), resources);
  if (!back) return hash.add(there);
  std::vector<float> here(static_cast<size_t>(rows.rows() * transform.dimension_in()));
  transform.reverse(MatrixView(there.data(), rows.rows(), transform.dimension_out()),
                    MutableMatrixView(here.data(), rows.rows(), transform.dimension_in()), resources);
  hash.add(here);
}

void transform_case(Case& c) {
  Draws& draws = c.draws;
  const int64_t rows = draws.between(150, 500);
  const int64_t cols = draws.of<int64_t>({2, 3, 4, 7, 8, 12, 16, 24, 32, 33, 48});
  int64_t reached = cols;
  std::string steps = draw_step(draws, reached);
  while (draws.chance(30)) steps += "," + draw_step(draws, reached);
  const Source source = draws.chance(70) ? draw_plain_source(draws) : draw_source(draws, Metric::l2);
  Rows x(source, draw_dtype(draws, Metric::l2), 0, rows, cols);
  if (draws.chance(40)) x.move_to_device();
  VectorTransform transform({.steps = steps, .seed = draws.bits()});
  const bool from_file = draws.chance(15);
  c.note(steps);
  c.note(x);
  c.call("train", [&](Hash& hash) {
    if (from_file) {
      const std::string path = c.path("transform.npy");
      write_vectors(path, x.host(), x.dtype() == DType::bf16 ? DType::f32 : x.dtype());
      transform.train(VectorFile(path), c.resources);
    } else {
      transform.train(x.view(), c.resources);
    }
    hash.add(transform.steps());
    hash.number(transform.dimension_in());
    hash.number(transform.dimension_out());
  });
  if (!transform.trained()) return;
  c.call("apply", [&](Hash& hash) { hash_applied(hash, transform, x.view(), false, c.resources); });
  if (draws.chance(60)) {
    c.call("reverse", [&](Hash& hash) { hash_applied(hash, transform, x.host(), true, c.resources); });
  }
  if (draws.chance(40)) {
    c.call("save", [&](Hash& hash) {
      const std::string path = c.path("transform.kith");
      save_transform(transform, path, c.resources);
      hash.file(path);
      hash.add(load_transform(path, c.resources).steps());
    });
  }
  if (draws.chance(30)) {
    c.call("set_steps", [&](Hash& hash) {
      VectorTransform other(transform.params());
      other.set_steps(transform.steps(), c.resources);
      hash_applied(hash, other, x.view(), false, c.resources);
    });
  }
}

}  // namespace

std::vector<EntryPoint> transform_cases() { return {{"transform", 130, transform_case}}; }

}  // namespace hashes

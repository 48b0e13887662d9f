// Transforms in .kith files: their steps, and the parameters they were trained with.
#include <kith/error.hpp>
#include <kith/vector_transform.hpp>

#include "index/index_file.hpp"
#include "io/file_error.hpp"

#include <fmt/format.h>

namespace kith {

void save_transform(const VectorTransform& transform, const std::string& path, const Resources& resources) {
  const VectorTransformParams& params = transform.params();
  save_transforms({transform.steps(), params.steps, params.check_finite, params.seed}, path, resources);
}

VectorTransform load_transform(const std::string& path, const Resources& resources) {
  SavedTransforms saved = load_transforms(path, resources);
  if (saved.steps.empty()) {
    throw InvalidArgument(
        fmt::format("'{}' does not say which steps were asked for: it was not written by save_transform", path));
  }
  try {
    VectorTransform transform({saved.steps, saved.seed, saved.check_finite});
    transform.set_steps(std::move(saved.transforms), resources);
    return transform;
  } catch (const InvalidArgument& error) {
    throw_corrupt(path, 0, error.what());
  }
}

}  // namespace kith

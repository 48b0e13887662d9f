// Chooses the device for training on rows.
#pragma once

#include <kith/resources.hpp>

#include "cuda/resolve_device.hpp"
#include "transform/training_rows.hpp"

#include <functional>

namespace kith {

// The device that learns from the rows: the CPU, or a GPU that suits them and has room for what `make` makes there with
// resources that count.
Device training_device(const TrainingRows& rows, const DeviceJob& job, const Counts& counts,
                       const std::function<void(int device, const Resources& counting)>& make,
                       const Resources& resources);

}  // namespace kith

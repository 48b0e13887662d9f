// How many rows and queries a panel of each format holds, for the instruction set in use.
#pragma once

#include "kernels/panels/panel_format.hpp"

namespace kith {

// Where values are rounded to bytes panels are as large as those of f32: a panel has the same rows in a screen.
PanelShape panel_shape(PanelFormat format);

}  // namespace kith

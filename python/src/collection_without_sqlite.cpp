// In the place of collections, in a build that found no SQLite.
#include "module.hpp"

namespace kith::python {

void bind_collection(nb::module_& module) { module.attr("has_collections") = false; }

}  // namespace kith::python

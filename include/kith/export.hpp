// Marks the symbols that the shared library exports; all others are hidden.
#pragma once

#define KITH_EXPORT __attribute__((visibility("default")))

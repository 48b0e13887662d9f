// Marks what the shared library shows to the outside; everything else stays hidden.
#pragma once

#define KITH_EXPORT __attribute__((visibility("default")))

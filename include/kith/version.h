/* The version of the headers; kith_version() and kith::version() return that of the running library. */
#ifndef KITH_VERSION_H
#define KITH_VERSION_H

#define KITH_VERSION_MAJOR 0
#define KITH_VERSION_MINOR 1
#define KITH_VERSION_PATCH 0
#define KITH_VERSION_STRING "0.1.0"

/* For #if: KITH_VERSION_NUMBER >= 102 from 0.1.2 on. */
#define KITH_VERSION_NUMBER (KITH_VERSION_MAJOR * 10000 + KITH_VERSION_MINOR * 100 + KITH_VERSION_PATCH)

#endif

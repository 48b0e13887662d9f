/* Checks of kith/kith.h that are written in C. Each returns NULL, or what was wrong and where. */
#ifndef KITH_TESTS_C_API_CHECKS_H
#define KITH_TESTS_C_API_CHECKS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct c_api_check {
  const char* name;
  const char* (*run)(const char* folder); /* an empty folder for files */
} c_api_check;

extern const c_api_check c_api_checks[];
extern const size_t c_api_check_count;

#ifdef __cplusplus
}
#endif

#endif

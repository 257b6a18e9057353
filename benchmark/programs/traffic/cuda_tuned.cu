#define KEEP_STREET
#include "cuda.cu"

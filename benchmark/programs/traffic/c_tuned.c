#define KEEP_STREET
#include "c.c"

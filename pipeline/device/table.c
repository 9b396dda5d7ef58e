/* table.c: the table of steps. */
#include "device/plan.h"

#define ROW(name) &name##_step,

const struct step *const steps[] = {STEPS(ROW) NULL};

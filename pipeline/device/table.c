/* table.c: the table of steps. */
#include "device/plan.h"

#define ROW(name)                 &name##_step,
#define OPTION(name, least, most) ROW(name)

const struct step *const steps[] = {STEPS(ROW, OPTION) NULL};

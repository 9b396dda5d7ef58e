/* ahead.c: a thread for each program. */
#include "cluster/ahead.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct building {
    struct ocl_context *ocl;
    const char *name;
    char options[80];
    cl_program program;
    pthread_t thread;
    bool started, taken;
};

struct ahead {
    struct ocl_context *ocl;
    struct building buildings[AHEAD_MOST];
    unsigned count;
};

static void *build(void *argument)
{
    struct building *building = argument;
    struct error ignored = ERROR_INIT;
    if (ocl_program_build(&building->program, building->ocl, building->name, NULL,
                          building->options, &ignored) != STATUS_OK)
        building->program = NULL;
    return NULL;
}

struct ahead *ahead_open(struct ocl_context *ocl)
{
    struct ahead *ahead = calloc(1, sizeof *ahead);
    if (ahead)
        ahead->ocl = ocl;
    return ahead;
}

void ahead_add(struct ahead *ahead, const char *name, const char *options, ...)
{
    struct building *building = &ahead->buildings[ahead->count++];
    va_list arguments;
    va_start(arguments, options);
    vsnprintf(building->options, sizeof building->options, options, arguments);
    va_end(arguments);
    building->ocl = ahead->ocl;
    building->name = name;
    building->started = pthread_create(&building->thread, NULL, build, building) == 0;
}

static void join(struct building *building)
{
    if (building->started)
        pthread_join(building->thread, NULL);
    building->started = false;
}

cl_program ahead_take(struct ahead *ahead, const char *name, const char *options)
{
    for (unsigned i = 0; ahead && i < ahead->count; i++) {
        struct building *building = &ahead->buildings[i];
        if (strcmp(building->name, name) != 0 || strcmp(building->options, options) != 0)
            continue;
        join(building);
        cl_program program = building->program;
        building->program = NULL;
        building->taken = true;
        return program;
    }
    return NULL;
}

unsigned ahead_close(struct ahead **ahead)
{
    struct ahead *a = *ahead;
    unsigned left = 0;
    for (unsigned i = 0; a && i < a->count; i++) {
        struct building *building = &a->buildings[i];
        join(building);
        if (building->program)
            clReleaseProgram(building->program);
        left += !building->taken;
    }
    free(a);
    *ahead = NULL;
    return left;
}

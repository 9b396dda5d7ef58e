/* version.c: clpipe --version: the libraries of this build, and those found at run time. */
#include "base/cpus.h"
#include "cli/commands.h"
#include "cli/sink.h"
#include "decode/decode.h"
#include "ocl/ocl.h"
#include "ranks/processes.h"
#include "result/h5.h"
#include "result/parameters.h"
#include "sources/archives.h"
#include "version_generated.h"
#include <libdeflate.h>
#include <openssl/crypto.h>
#include <zlib.h>

static void print_platforms(struct sink *sink)
{
    struct ocl_devices devices = {0};
    struct error trouble = ERROR_INIT;
    if (ocl_devices_open(&devices, cpus_available(), &trouble) != STATUS_OK)
        sink_printf(sink, "  OpenCL      %s\n", ERROR_LINE(&trouble));
    else if (devices.count == 0)
        sink_text(sink,
                  "  OpenCL      no platform: see clpipe devices for the packages to install\n");
    for (unsigned i = 0; i < devices.count; i++)
        if (i == 0 || devices.device[i].platform_id != devices.device[i - 1].platform_id)
            sink_printf(sink, "  OpenCL      %s, %s\n", devices.device[i].platform,
                        devices.device[i].platform_version);
    ocl_devices_close(&devices);
}

enum status print_version(struct error *err)
{
    struct sink sink;
    enum status status = sink_open(&sink, NULL, err);
    if (status != STATUS_OK)
        return status;
    unsigned hdf5[3] = {0};
    h5_version(hdf5);
    sink_printf(&sink, "clpipe " CLPIPE_VERSION "\n");
    sink_printf(&sink, "  built       " CLPIPE_VARIANT ", " CLPIPE_COMPILER " (%s)\n", __VERSION__);
    sink_printf(&sink, "  HDF5        %u.%u.%u\n", hdf5[0], hdf5[1], hdf5[2]);
    sink_printf(&sink, "  zlib        %s\n", zlibVersion());
    sink_printf(&sink, "  libcrypto   %s\n", OpenSSL_version(OPENSSL_VERSION_STRING));
    sink_printf(&sink, "  libdeflate  " LIBDEFLATE_VERSION_STRING "\n");
    sink_printf(&sink, "  jansson     %s\n", parameters_library());
    const struct format *format;
    for (unsigned i = 0; (format = format_at(i)); i++)
        if (format->library)
            sink_printf(&sink, "  %-10s  %s\n", format->name, format->library);
    const char *icc = decode_icc_library();
    sink_printf(&sink, "  ICC         %s\n", icc ? icc : "not built in: profiles are ignored");
    const char *archives = archives_library();
    sink_printf(&sink, "  archives    %s\n", archives ? archives : "not built in");
    const char *module;
    char text[600];
    for (unsigned i = 0; processes_module(i, &module, text, sizeof text); i++)
        sink_printf(&sink, "  %-10s  %s\n", module, text);
    const char *separator = "  not read    ";
    for (unsigned i = 0; (format = format_at(i)); i++)
        if (!format->library) {
            sink_printf(&sink, "%s%s", separator, format->name);
            separator = ", ";
        }
    if (separator[0] == ',')
        sink_text(&sink, "\n");
    print_platforms(&sink);
    return sink_close(&sink, true, err);
}

/* net_models.h: network models used by features. A model is read once, whatever its path, and stays
 * until the process ends. Any thread. */
#ifndef CLPIPE_FEATURES_NET_MODELS_H
#define CLPIPE_FEATURES_NET_MODELS_H

#include "net/model.h"
#include "net/runtime.h"

/* The directory of models: $CLPIPE_MODELS, else $XDG_DATA_HOME/clpipe/models, else
 * $HOME/.local/share/clpipe/models. */
void net_models_directory(char *path, size_t size);

/* Opens a model file. A name without a slash that is no file is looked up in the directory as
 * NAME.net or NAME.onnx. Sets either *model or, if the name ends in .onnx, *runtime, which is not
 * started. */
enum status net_models_open(const struct net_model **model, struct runtime **runtime,
                            const char *file, struct error *err);

/* The model with that digest, already open or in the directory. NULL: not found. */
const struct net_model *net_models_find(const char *digest);
/* The same for ONNX files. */
struct runtime *net_models_find_onnx(const char *digest);

#endif

/* net_models.h: the networks that features of this process use. A model is read once, whichever path
 * leads to it, and stays until the process ends; any thread may ask. */
#ifndef CLPIPE_FEATURES_NET_MODELS_H
#define CLPIPE_FEATURES_NET_MODELS_H

#include "net/model.h"
#include "net/runtime.h"

/* The directory of models: $CLPIPE_MODELS, else $XDG_DATA_HOME/clpipe/models, else
 * $HOME/.local/share/clpipe/models. */
void net_models_directory(char *path, size_t size);

/* The model of a file. A name without a slash and without a file of that name is that of one in the
 * directory: NAME.net or NAME.onnx. One of the two is set: *runtime, which is not started, if its name ends
 * in .onnx. */
enum status net_models_open(const struct net_model **model, struct runtime **runtime, const char *file,
                            struct error *err);

/* The model of a digest, that was opened or lies in the directory. NULL: there is none. */
const struct net_model *net_models_find(const char *digest);
/* The same of an ONNX file. */
struct runtime *net_models_find_onnx(const char *digest);

#endif

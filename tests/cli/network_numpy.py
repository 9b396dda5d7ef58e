"""Networks in numpy, implemented from docs/networks.md alone: writes and reads files and computes every layer.

A network is a dict: "picture" (height, width, zero), "layers" and "outputs" (lists of dicts with the
fields of that page; arrays under "weights", "bias", "multiplier", "shifts" and "tables"), "about",
"classes" (names), "class_output", "class_weights", "class_scale", "class_bias"."""

import hashlib
import struct

import numpy

KINDS = ("convolution", "add", "multiply", "max", "mean", "sum", "table")
FIELDS = ("kind a b height width channels kernel_y kernel_x stride_y stride_x dilation_y dilation_x "
          "top left groups zero low high mul_a mul_b shift counts_padding nothing nothing").split()
ARRAYS = {"convolution": (("weights", "i1"), ("bias", "<i4"), ("multiplier", "<i4"), ("shifts", "<i4")),
          "table": (("tables", "u1"),)}


def seal(data):
    """The same bytes with a correct digest at the end."""
    return data[:-32] + hashlib.sha256(data[:-32]).digest()


def write(network):
    about = network.get("about", "").encode()
    names = "".join(name + "\n" for name in network.get("classes", ())).encode()
    height, width, zero = network["picture"]
    records = [struct.pack("<32sIiII", o["name"].encode(), o["tensor"], o["multiplier"], o["shift"], 0)
               for o in network["outputs"]]
    arrays = [about, names]
    if names:
        arrays += [network["class_weights"].astype("i1").tobytes(),
                   network["class_scale"].astype("<f4").tobytes(),
                   network["class_bias"].astype("<f4").tobytes()]
    for layer in network["layers"]:
        fields = dict(layer, kind=KINDS.index(layer["kind"]))
        records.append(struct.pack("<24I", *(int(fields.get(f, 0)) & 0xffffffff for f in FIELDS)))
        arrays += [layer[name].astype(kind).tobytes() for name, kind in ARRAYS.get(layer["kind"], ())]
    body = b"".join(records)
    at = 96 + len(body)
    for array in arrays:
        gap = -at % 64
        body += bytes(gap) + array
        at += gap + len(array)
    header = struct.pack("<8sQ20I", b"clp-net1", at + 32, height, width, zero, network.get("fit", 0),
                         network.get("crop", 875), len(network["layers"]), len(network["outputs"]),
                         len(about), len(names), len(network.get("classes", ())),
                         network.get("class_output", 0), *[0] * 9)
    return seal(header + body + bytes(32))


def read(data):
    magic, size, height, width, zero, fit, crop, layers, outputs, about, names, classes, class_output = \
        struct.unpack_from("<8sQ11I", data)
    assert magic == b"clp-net1" and size == len(data) and seal(data) == data
    network = {"picture": (height, width, zero), "fit": fit, "crop": crop, "class_output": class_output,
               "layers": [], "outputs": []}
    at = 96
    for _ in range(outputs):
        name, tensor, multiplier, shift, _ = struct.unpack_from("<32sIiII", data, at)
        network["outputs"].append({"name": name.rstrip(b"\0").decode(), "tensor": tensor,
                                   "multiplier": multiplier, "shift": shift})
        at += 48
    for _ in range(layers):
        layer = dict(zip(FIELDS, struct.unpack_from("<18I2i4I", data, at)))
        layer["kind"] = KINDS[layer["kind"]]
        network["layers"].append(layer)
        at += 96

    def take(kind, *shape):
        nonlocal at
        at += -at % 64
        count = int(numpy.prod(shape, dtype="i8"))
        values = numpy.frombuffer(data, kind, count, at).reshape(shape)
        at += values.nbytes
        return values

    network["about"] = take("u1", about).tobytes().decode()
    network["classes"] = take("u1", names).tobytes().decode().splitlines()
    channels = [3] + [layer["channels"] for layer in network["layers"]]
    if classes:
        tensor = network["outputs"][class_output]["tensor"]
        values = (height * width * 3 if tensor == 0 else
                  int(numpy.prod([network["layers"][tensor - 1][f] for f in ("height", "width", "channels")])))
        network["class_weights"] = take("i1", classes, values)
        network["class_scale"], network["class_bias"] = take("<f4", classes), take("<f4", classes)
    for layer in network["layers"]:
        n = layer["channels"]
        shapes = {"tables": (layer["groups"], 256)}
        if layer["kind"] == "convolution":
            shapes["weights"] = (n, layer["kernel_y"], layer["kernel_x"],
                                 channels[layer["a"]] // layer["groups"])
        for name, kind in ARRAYS.get(layer["kind"], ()):
            layer[name] = take(kind, *shapes.get(name, (n,)))
    assert at + 32 == len(data)
    return network


def requantise(total, multiplier, shift):
    return (total * multiplier + (1 << (shift - 1))) >> shift


def zero_of(network, tensor):
    return network["picture"][2] if tensor == 0 else network["layers"][tensor - 1]["zero"]


def taps(layer, size):
    """Yields each kernel tap with the outputs for which it lies inside the input, and the inputs it reads there."""
    height, width = size
    for ky in range(layer["kernel_y"]):
        iy = (numpy.arange(layer["height"]) * layer["stride_y"] - layer["top"]
              + ky * max(1, layer["dilation_y"]))
        ys = (iy >= 0) & (iy < height)
        for kx in range(layer["kernel_x"]):
            ix = (numpy.arange(layer["width"]) * layer["stride_x"] - layer["left"]
                  + kx * max(1, layer["dilation_x"]))
            xs = (ix >= 0) & (ix < width)
            yield ky, kx, numpy.ix_(numpy.flatnonzero(ys), numpy.flatnonzero(xs)), \
                numpy.ix_(iy[ys], ix[xs])


def convolve(layer, a, zero):
    # Inputs are taken relative to the zero point, so the correction for it is removed from the bias.
    n, groups = layer["channels"], layer["groups"]
    weights = layer["weights"].astype("i8")
    start = layer["bias"].astype("i8") + zero * weights.sum(axis=(1, 2, 3))
    total = numpy.empty((layer["height"], layer["width"], n), "i8")
    total[:] = start
    made, each = n // groups, a.shape[2] // groups
    for ky, kx, to, frm in taps(layer, a.shape[:2]):
        q = a[frm].astype("i8") - zero
        for g in range(groups) if made > 1 or each > 1 else ():
            part = q[:, :, g * each:(g + 1) * each].astype("f8") @ \
                weights[g * made:(g + 1) * made, ky, kx].T.astype("f8")
            block = total[:, :, g * made:(g + 1) * made]
            block[to] += numpy.rint(part).astype("i8")
        if made == 1 and each == 1:
            total[to] += q * weights[:, ky, kx, 0]
    return requantise(total, layer["multiplier"].astype("i8"), layer["shifts"].astype("i8"))


def pool(layer, a, zero):
    shape = (layer["height"], layer["width"], a.shape[2])
    most, total = numpy.zeros(shape, "i8"), numpy.zeros(shape, "i8")
    count = numpy.zeros(shape[:2] + (1,), "i8")
    for _, _, to, frm in taps(layer, a.shape[:2]):
        q = a[frm].astype("i8")
        most[to] = numpy.maximum(most[to], q)
        total[to] += q - zero
        count[to] += 1
    if layer["kind"] == "max":
        return most - zero
    if layer["counts_padding"]:
        count[:] = layer["kernel_y"] * layer["kernel_x"]
    shift = layer["shift"]
    return (2 * total * layer["mul_a"] + (count << shift)) // (count << (shift + 1))


def tensors(network, picture):
    """The picture, followed by the output of every layer."""
    made = [picture]
    for layer in network["layers"]:
        kind, a, zero = layer["kind"], made[layer["a"]], zero_of(network, layer["a"])
        low, high = layer["low"], layer["high"]
        if kind == "sum":
            made.append((a.astype("i8") - zero).sum(axis=(0, 1)).astype("<i4").reshape(1, 1, -1))
            continue
        if kind == "table":
            tables = layer["tables"]
            made.append(tables[numpy.arange(a.shape[2]) if len(tables) > 1 else 0, a])
            continue
        if kind == "convolution":
            value = convolve(layer, a, zero)
        elif kind in ("max", "mean"):
            value = pool(layer, a, zero)
            low, high = (0, 255) if kind == "max" else (low, high)
        else:
            b = made[layer["b"]].astype("i8") - zero_of(network, layer["b"])
            q = a.astype("i8") - zero
            shift = layer["shift"]
            value = (requantise(q * b, layer["mul_a"], shift) if kind == "multiply" else
                     (q * layer["mul_a"] + b * layer["mul_b"] + (1 << (shift - 1))) >> shift)
        made.append(numpy.clip(value + layer["zero"], low, high).astype("u1"))
    return made


def outputs(network, picture):
    made = tensors(network, picture)
    return [made[output["tensor"]] for output in network["outputs"]]


def values(network, picture):
    """The outputs as real numbers."""
    return [numpy.ldexp((made.astype("f8") - (zero_of(network, output["tensor"]) if made.dtype == "u1" else 0))
                        * output["multiplier"], -output["shift"]).astype("f4").ravel()
            for made, output in zip(outputs(network, picture), network["outputs"])]

"""Writes small ONNX files with the package onnx."""
import numpy
from onnx import TensorProto, checker, helper, numpy_helper, save

TYPES = {"float32": (TensorProto.FLOAT, "f4"), "float16": (TensorProto.FLOAT16, "f2"), "uint8": (TensorProto.UINT8, "f4")}
VALUES = 12


def write(path, batch="n", side=16, kind="float32", nhwc=False, tokens=False, seed=1, nodes=(), channels=3):
    """Writes a graph with the input x (pictures) and the outputs rows (n x 12) and, if asked for, tokens
    (n x t x 12). `nodes`, given as (operator, inputs, outputs, attributes), come last and compute rows from rows0."""
    draw = numpy.random.default_rng(seed)
    type_in, real = TYPES[kind]
    type_out = TensorProto.FLOAT if kind == "uint8" else type_in
    constants = {"w": (draw.normal(size=(VALUES, channels, 4, 4)) / 7).astype(real),
                 "b": draw.normal(size=VALUES).astype(real), "shape": numpy.array([0, VALUES, -1], "i8")}
    made, x = [], "x"
    if kind == "uint8":
        made.append(helper.make_node("Cast", [x], ["cast"], to=TensorProto.FLOAT))
        x = "cast"
    if nhwc:
        made.append(helper.make_node("Transpose", [x], ["planes"], perm=[0, 3, 1, 2]))
        x = "planes"
    made += [helper.make_node("Conv", [x, "w", "b"], ["y"], strides=[4, 4], kernel_shape=[4, 4]),
             helper.make_node("Relu", ["y"], ["z"]), helper.make_node("GlobalAveragePool", ["z"], ["mean"]),
             helper.make_node("Flatten", ["mean"], ["rows0" if nodes else "rows"])]
    made += [helper.make_node(kind_, ins, outs, **attributes) for kind_, ins, outs, attributes in nodes]
    outputs = [helper.make_tensor_value_info("rows", type_out, [batch, VALUES])]
    if tokens:
        made += [helper.make_node("Reshape", ["z", "shape"], ["flat"]),
                 helper.make_node("Transpose", ["flat"], ["tokens"], perm=[0, 2, 1])]
        outputs.append(helper.make_tensor_value_info("tokens", type_out, [batch, "t", VALUES]))
    sides = [side, side, channels] if nhwc else [channels, side, side]
    graph = helper.make_graph(made, "small", [helper.make_tensor_value_info("x", type_in, [batch, *sides])], outputs,
                              [numpy_helper.from_array(v, n) for n, v in constants.items() if n != "shape" or tokens])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    if not nodes:
        checker.check_model(model)
    save(model, path)
    return path

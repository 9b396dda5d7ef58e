"""Quantised graphs for tools/network: MobileNet V2 and ResNet with random weights, and smaller ones."""
import importlib.machinery
import importlib.util

import numpy
from conftest import ROOT

loader = importlib.machinery.SourceFileLoader("clpipe_network", str(ROOT / "tools" / "network"))
tool = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
loader.exec_module(tool)
Node = tool.Node


class Drawing:
    """A graph that is built node by node; `x` is the name of the most recent real-valued tensor."""

    def __init__(self, seed, side, scale=1 / 64, zero=127):
        self.draw = numpy.random.default_rng(seed)
        self.graph = tool.Graph("picture", side, side)
        self.channels, self.count = 3, 0
        self.scales = {}
        self.x = self.quantise("picture", scale, zero)

    def node(self, kind, inputs, **attributes):
        name = f"{kind.lower()}{len(self.graph.nodes)}"
        self.graph.nodes.append(Node(kind, inputs, name, **attributes))
        self.x = name
        return name

    def constant(self, value):
        self.count += 1
        self.graph.constants[f"c{self.count}"] = value
        return f"c{self.count}"

    def quantise(self, x=None, scale=6 / 255, zero=0, kind=numpy.uint8):
        parameters = [self.constant(numpy.asarray(scale, "f4")), self.constant(numpy.asarray(zero, kind))]
        q = self.node("QuantizeLinear", [x or self.x] + parameters)
        made = self.node("DequantizeLinear", [q] + parameters)
        self.scales[made] = scale
        return made

    def weights(self, shape, fan, gain):
        real = self.draw.normal(0, gain / numpy.sqrt(fan), shape)
        scale = (numpy.abs(real.reshape(len(real), -1)).max(axis=1) / 127).astype("f4")
        codes = numpy.rint(real / scale.astype("f8").reshape((-1,) + (1,) * (real.ndim - 1))).astype("i1")
        return codes, scale

    def parameters(self, shape, fan, gain):
        codes, scale = self.weights(shape, fan, gain)
        unit = numpy.float32(self.scales[self.x]) * scale
        bias = numpy.rint(self.draw.normal(0, 0.1, len(codes)) / unit).astype("i4")
        x = self.x
        w = self.node("DequantizeLinear", [self.constant(codes), self.constant(scale),
                                           self.constant(numpy.zeros(len(codes), "i1"))], axis=0)
        b = self.node("DequantizeLinear", [self.constant(bias), self.constant(unit.astype("f4")),
                                           self.constant(numpy.zeros(len(codes), "i4"))], axis=0)
        self.x = x
        return [w, b]

    def convolution(self, channels, kernel, stride=1, groups=1, act=True, gain=1.4, dilation=1):
        each = self.channels // groups
        inputs = [self.x] + self.parameters((channels, each, kernel, kernel), each * kernel ** 2, gain)
        pad = dilation * (kernel - 1) // 2
        self.node("Conv", inputs, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4,
                  dilations=[dilation] * 2, group=groups)
        self.channels = channels
        if act == "six":
            self.node("Clip", [self.x, self.constant(numpy.float32(0)), self.constant(numpy.float32(6))])
            return self.quantise(scale=6 / 255)
        if act:
            self.node("Relu", [self.x])
            return self.quantise(scale=5 / 255)
        return self.quantise(scale=8 / 255, zero=128)

    def linear(self, count, values):
        inputs = [self.x] + self.parameters((count, values), values, 1.4)
        self.node("Gemm", inputs, transB=1)
        self.channels = count
        return self.quantise(scale=8 / 255, zero=128)

    def finish(self, *outputs):
        self.graph.outputs = list(outputs or [self.x])
        return self.graph


def mobilenet(seed=1, side=224):
    d = Drawing(seed, side)
    d.convolution(32, 3, 2, act="six")
    for expansion, channels, times, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                               (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for number in range(times):
            before, came = d.x, d.channels
            step = stride if number == 0 else 1
            if expansion > 1:
                d.convolution(came * expansion, 1, act="six")
            d.convolution(came * expansion, 3, step, came * expansion, act="six", gain=2)
            d.convolution(channels, 1, act=False, gain=1)
            if step == 1 and came == channels:
                d.node("Add", [d.x, before])
                d.quantise(scale=10 / 255, zero=128)
    d.convolution(1280, 1, act="six")
    pooled = d.node("GlobalAveragePool", [d.x])
    d.quantise(scale=3 / 255)
    d.node("Flatten", [d.x])
    d.scales[d.x] = 3 / 255
    scores = d.linear(1000, 1280)
    return d.finish(pooled, scores)


def resnet(seed=2, side=224, blocks=(3, 4, 6, 3), bottleneck=True):
    d = Drawing(seed, side)
    d.convolution(64, 7, 2)
    d.node("MaxPool", [d.x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    d.scales[d.x] = 5 / 255
    for stage, times in enumerate(blocks):
        width = 64 << stage
        for number in range(times):
            before, came, step = d.x, d.channels, 2 if number == 0 and stage else 1
            out = width * 4 if bottleneck else width
            if bottleneck:
                d.convolution(width, 1)
                d.convolution(width, 3, step)
                y = d.convolution(out, 1, act=False, gain=0.7)
            else:
                d.convolution(width, 3, step)
                y = d.convolution(out, 3, act=False, gain=0.7)
            if step > 1 or came != out:
                d.x, d.channels = before, came
                before = d.convolution(out, 1, step, act=False)
            d.node("Add", [y, before])
            d.channels = out
            d.node("Relu", [d.x])
            d.quantise(scale=6 / 255)
    pooled = d.node("GlobalAveragePool", [d.x])
    d.quantise(scale=4 / 255)
    d.node("Flatten", [d.x])
    d.scales[d.x] = 4 / 255
    scores = d.linear(1000, d.channels)
    return d.finish(pooled, scores)


def squeezing(seed=3):
    """A graph with squeeze-and-excitation, a hard swish made of several nodes, sigmoid, average pools, a linear
    layer over a whole feature map, and an int8 tensor."""
    d = Drawing(seed, 20)
    d.convolution(16, 3, act=False)
    x = d.x
    three, six = d.constant(numpy.float32(3)), d.constant(numpy.float32(6))
    d.node("Add", [x, three])
    d.node("Clip", [d.x, d.constant(numpy.float32(0)), six])
    d.node("Mul", [x, d.x])
    d.node("Div", [d.x, six])
    x = d.quantise(scale=5 / 255, zero=20)
    d.node("GlobalAveragePool", [x])
    d.quantise(scale=4 / 255, zero=-100, kind=numpy.int8)
    d.convolution(4, 1)
    d.convolution(16, 1, act=False)
    d.node("Sigmoid", [d.x])
    s = d.quantise(scale=1 / 255)
    d.node("Mul", [x, s])
    d.scales[d.quantise(scale=4 / 255, zero=30)] = 4 / 255
    d.node("AveragePool", [d.x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4, count_include_pad=1)
    d.quantise(scale=3 / 255, zero=30)
    d.convolution(24, 3, 1, 4, dilation=2)
    d.node("AveragePool", [d.x], kernel_shape=[2, 2], strides=[2, 2])
    d.quantise(scale=4 / 255)
    d.node("Mul", [d.x, d.constant(numpy.linspace(0.5, 1.5, 24, dtype="f4").reshape(1, 24, 1, 1))])
    d.quantise(scale=5 / 255)
    d.node("Pad", [d.x, d.constant(numpy.array([0, 0, 1, 0, 0, 0, 0, 1]))])
    d.scales[d.x] = 5 / 255
    inputs = [d.x] + d.parameters((8, 24, 2, 2), 96, 1.4)
    d.node("Conv", inputs, kernel_shape=[2, 2])
    d.node("Relu", [d.x])
    last = d.quantise(scale=4 / 255)
    d.node("Flatten", [last])
    d.scales[d.x] = 4 / 255
    return d.finish(last, d.linear(11, 8 * 5 * 5))

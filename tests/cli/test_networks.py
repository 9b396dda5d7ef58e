"""Networks of integers: numpy and C give the same values, and invalid files are refused."""
import json
import os
import random
import subprocess

import network_numpy
import numpy
import pytest
from conftest import CLPIPE, SEED, run_clpipe

RUN = CLPIPE.parent / "network_run"


# --- random networks ------------------------------------------------------------------------------

class Maker:
    """Generates a random network layer by layer, such that any device can compute it."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.draw = numpy.random.default_rng(seed)
        pick = self.random
        self.network = {"picture": (pick.randint(1, 24), pick.randint(1, 24), pick.choice((0, 127, 255, 3))),
                        "layers": [], "outputs": []}
        self.shapes = [self.network["picture"][:2] + (3,)]
        self.sums = set()

    def zero(self):
        return self.random.choice((0, 0, 128, 255, self.random.randint(0, 255)))

    def limits(self):
        low = self.random.choice((0, 0, 0, 0, self.random.randint(0, 200)))
        return {"low": low, "high": self.random.choice((255, 255, 255, self.random.randint(low, 255)))}

    def add(self, kind, a, shape, **fields):
        layer = dict(fields, kind=kind, a=a, height=shape[0], width=shape[1], channels=shape[2])
        self.network["layers"].append(layer)
        self.shapes.append(shape)
        if kind == "sum":
            self.sums.add(len(self.shapes) - 1)

    def window(self, a, dilated, largest=7):
        fields, size = {}, []
        for axis, before, length in (("y", "top", self.shapes[a][0]), ("x", "left", self.shapes[a][1])):
            kernel = self.random.choice((1, 2, 3, 3, 5, self.random.randint(1, largest)))
            stride = self.random.choice((1, 1, 2, 3))
            dilation = self.random.choice((1, 1, 2, 3)) if dilated else 1
            reach = (kernel - 1) * dilation
            ahead = self.random.choice((0, reach // 2, self.random.randint(0, reach)))
            most = (length + ahead - 1) // stride + 1
            usual = max(1, (length + 2 * ahead - reach - 1) // stride + 1)
            size.append(min(most, self.random.choice((usual, self.random.randint(1, most)))))
            fields.update({"kernel_" + axis: kernel, "stride_" + axis: stride, before: ahead})
            if dilated:
                fields["dilation_" + axis] = dilation
        return fields, tuple(size)

    def convolution(self, a):
        c = self.shapes[a][2]
        kind = self.random.choice(("pointwise", "depthwise", "dense", "grouped", "whole"))
        groups, n = 1, self.random.choice((1, 3, 16, 17, 64, 70, self.random.randint(1, 150)))
        fields, size = self.window(a, True)
        if kind == "pointwise":
            stride = self.random.choice((1, 1, 1, 2))
            size = tuple((s - 1) // stride + 1 for s in self.shapes[a][:2])
            fields.update(kernel_y=1, kernel_x=1, stride_y=stride, stride_x=stride, top=0, left=0,
                          dilation_y=1, dilation_x=1)
        elif kind == "depthwise":
            groups, n = c, c * self.random.choice((1, 1, 1, 2))
        elif kind == "grouped":
            groups = self.random.choice([g for g in range(1, c + 1) if c % g == 0])
            n = groups * self.random.randint(1, max(1, 96 // groups))
        elif kind == "whole":
            size = (1, 1)
            fields.update(kernel_y=self.shapes[a][0], kernel_x=self.shapes[a][1], stride_y=1, stride_x=1, top=0,
                          left=0, dilation_y=1, dilation_x=1)
        each = fields["kernel_y"] * fields["kernel_x"] * c // groups
        shape = (n, fields["kernel_y"], fields["kernel_x"], c // groups)
        style = self.random.choice(("any", "normal", "extreme", "one sign"))
        weights = {"any": lambda: self.draw.integers(-128, 128, shape),
                   "normal": lambda: numpy.clip(numpy.rint(self.draw.normal(0, 30, shape)), -128, 127),
                   "extreme": lambda: self.draw.choice((-128, 127), shape),
                   "one sign": lambda: numpy.broadcast_to(
                       self.draw.choice((-128, 127), (n, 1, 1, 1)), shape)}[style]().astype("i8")
        flat = weights.reshape(n, -1).astype("i8")
        most = 255 * numpy.where(flat > 0, flat, 0).sum(axis=1)
        least = 255 * numpy.where(flat < 0, flat, 0).sum(axis=1)
        reach = numpy.maximum(numpy.maximum(most, -least), 1)
        middle = -(most + least) // 2
        bias = middle + (self.draw.normal(0, 0.3, n) * reach / numpy.sqrt(each)).astype("i8")
        # The real factor spreads the sums over about the range of a byte; some channels are constant or
        # saturate.
        factor = 255 / (reach / numpy.sqrt(each)) * 2.0 ** self.draw.integers(-3, 2, n)
        factor = numpy.where(self.draw.random(n) < 0.03, 2.0 ** self.draw.integers(-30, 7, n), factor)
        fraction, exponent = numpy.frexp(numpy.minimum(factor, 127.0))
        multiplier = numpy.minimum(numpy.rint(fraction * 2.0 ** 31), 2 ** 31 - 1).astype("i8")
        shifts = 31 - exponent
        multiplier >>= numpy.maximum(shifts - 54, 0)
        shifts = numpy.minimum(shifts, 54)
        limit = 2 ** numpy.where(shifts < 33, shifts - 2, 31).astype("i8") - 1
        if self.random.random() < 0.1:  # the largest possible bias
            bias = limit - numpy.maximum(most, 0)
        bias = numpy.clip(bias, -limit - least, limit - most)
        wrong = (limit - most < -limit - least) | (most > limit) | (-least > limit)
        shifts = numpy.where(wrong, 40, shifts)
        bias = numpy.where(wrong, 0, bias)
        self.add("convolution", a, size + (n,), groups=groups, zero=self.zero(), weights=weights, bias=bias,
                 multiplier=multiplier, shifts=shifts, **self.limits(), **fields)

    def factor(self, least, most):
        return {"mul_a": self.random.choice((2 ** 31 - 1, self.random.randint(0, 2 ** 31 - 1))),
                "shift": self.random.randint(least, most)}

    def layer(self):
        usable = [t for t in range(len(self.shapes)) if t not in self.sums]
        a = self.random.choice(usable[-3:])
        shape = self.shapes[a]
        kind = self.random.choice(("convolution",) * 5 + ("add", "multiply", "max", "mean", "sum", "table"))
        if kind == "convolution":
            self.convolution(a)
        elif kind == "add":
            same = [t for t in usable if self.shapes[t] == shape]
            shift = self.random.randint(1, 22)
            room = (2 ** 31 - 1 - (255 << shift) - (1 << (shift - 1))) // 255
            one = self.random.randint(0, min(room, 2 ** shift))
            self.add("add", a, shape, b=self.random.choice(same), zero=self.zero(), mul_a=one,
                     mul_b=self.random.randint(0, min(room - one, 2 ** shift)), shift=shift,
                     **self.limits())
        elif kind == "multiply":
            factors = [t for t in usable if self.shapes[t] == (1, 1, shape[2])]
            if not factors:
                self.add("mean", a, (1, 1, shape[2]), kernel_y=shape[0], kernel_x=shape[1], stride_y=1,
                         stride_x=1, top=0, left=0, zero=self.zero(), mul_a=2 ** 30, shift=30,
                         counts_padding=0, **self.limits())
                factors = [len(self.shapes) - 1]
            self.add("multiply", a, shape, b=self.random.choice(factors), zero=self.zero(),
                     **self.factor(24, 54) if self.random.random() < .3 else self.factor(36, 39), **self.limits())
        elif kind in ("max", "mean"):
            fields, size = self.window(a, False)
            if kind == "max":
                fields["zero"] = (self.network["picture"][2] if a == 0 else
                                  self.network["layers"][a - 1]["zero"])
            else:
                fields.update(zero=self.zero(), counts_padding=self.random.randint(0, 1),
                              **self.factor(29, 32), **self.limits())
            self.add(kind, a, size + shape[2:], **fields)
        elif kind == "sum":
            self.add("sum", a, (1, 1, shape[2]))
        else:
            groups = self.random.choice((1, shape[2]))
            self.add("table", a, shape, groups=groups, zero=self.zero(),
                     tables=self.draw.integers(0, 256, (groups, 256)))

    def finish(self):
        small = [t for t, s in enumerate(self.shapes) if numpy.prod(s) <= 65536]
        chosen = small[-16:]
        for number, t in enumerate(chosen):
            self.network["outputs"].append({"name": f"out_{number}", "tensor": t, "multiplier": 1 + number,
                                            "shift": number})
        return self.network


def random_network(seed, layers=8):
    maker = Maker(seed)
    for _ in range(layers):
        maker.layer()
    return maker.finish()


def pictures_for(network, seed):
    height, width, _ = network["picture"]
    draw = numpy.random.default_rng(seed)
    return numpy.stack([draw.integers(0, 256, (height, width, 3)), numpy.full((height, width, 3), 255),
                        draw.choice((0, 255), (height, width, 3))]).astype("u1")


def run(folder, data, pictures, *arguments):
    (folder / "net").write_bytes(data)
    (folder / "pictures").write_bytes(pictures.tobytes())
    return subprocess.run([RUN, folder / "net", folder / "pictures", folder / "out", *arguments], text=True,
                          capture_output=True, timeout=300)


ENGINES = ("reference", "plain", "avx2", "avx-vnni", "avx512-vnni")


def check_network(folder, network, pictures, engines=ENGINES):
    """The reference and all engines that this processor supports give the values of numpy."""
    data = network_numpy.write(network)
    network = network_numpy.read(data)
    expected = b"".join(made.tobytes() for picture in pictures
                        for made in network_numpy.outputs(network, picture))
    for engine in engines:
        result = run(folder, data, pictures, engine)
        if engine not in ("reference", "plain") and "has no instructions" in result.stderr:
            continue
        assert result.returncode == 0, result.stderr
        compare(network, pictures, (folder / "out").read_bytes(), expected, engine)


def compare(network, pictures, got, expected, engine):
    if got == expected:
        return
    at = 0
    for number, picture in enumerate(pictures):
        for output, made in zip(network["outputs"], network_numpy.outputs(network, picture)):
            part = numpy.frombuffer(got, made.dtype, made.size, at).reshape(made.shape)
            wrong = numpy.argwhere(part != made)
            layer = network["layers"][output["tensor"] - 1] if output["tensor"] else {}
            assert not len(wrong), (
                f"{engine}: picture {number}, tensor {output['tensor']}, {len(wrong)} of {made.size} differ, first "
                f"{wrong[0]}: {part[tuple(wrong[0])]} for {made[tuple(wrong[0])]}, "
                f"{ {k: v for k, v in layer.items() if not hasattr(v, 'shape')} }")
            at += made.nbytes
    assert len(got) == len(expected), engine


@pytest.mark.deep
def test_random_networks_on_devices(tmp_path):
    """Tests the kernels, on CPUs too, with CLPIPE_TEST_NETWORKS networks (default: 12)."""
    devices = json.loads(run_clpipe("devices", "--json", "-").stdout)
    engines = [f"device:{number}" for number, device in enumerate(devices) if device["usable"]]
    assert engines
    for seed in range(int(os.environ.get("CLPIPE_TEST_NETWORKS", 12))):
        network = random_network(SEED * 1000 + 500 + seed)
        check_network(tmp_path, network, pictures_for(network, seed), engines)


@pytest.mark.variations
@pytest.mark.parametrize("batch", range(3))
def test_random_networks(tmp_path, batch):
    for seed in range(SEED * 1000 + batch * 8, SEED * 1000 + batch * 8 + 8):
        network = random_network(seed)
        data = network_numpy.write(network)
        assert network_numpy.write(network_numpy.read(data)) == data
        check_network(tmp_path, network, pictures_for(network, seed))


# --- damaged files --------------------------------------------------------------------------------

def refused(folder, data):
    network = folder / "bad.net"
    network.write_bytes(data)
    (folder / "pictures").write_bytes(b"")
    result = subprocess.run([RUN, network, folder / "pictures", folder / "out"], text=True, capture_output=True,
                            timeout=60)
    lines = result.stderr.splitlines()
    assert result.returncode == 1 and len(lines) == 1, result.stderr
    assert lines[0].startswith(f"network_run: {network}: "), lines[0]
    return lines[0].split(f"{network}: ", 1)[1]


def small():
    rng = numpy.random.default_rng(1)
    return {"picture": (6, 5, 9), "about": "name: small\n", "classes": ["one", "two"], "class_output": 0,
            "class_weights": rng.integers(-9, 9, (2, 4)), "class_scale": numpy.ones(2),
            "class_bias": numpy.zeros(2), "layers": [
                {"kind": "convolution", "a": 0, "height": 6, "width": 5, "channels": 4, "kernel_y": 3,
                 "kernel_x": 3, "stride_y": 1, "stride_x": 1, "dilation_y": 1, "dilation_x": 1, "top": 1,
                 "left": 1, "groups": 1, "zero": 5, "low": 0, "high": 255,
                 "weights": rng.integers(-128, 128, (4, 3, 3, 3)), "bias": rng.integers(-99, 99, 4),
                 "multiplier": numpy.full(4, 2 ** 30), "shifts": numpy.full(4, 40)},
                {"kind": "table", "a": 1, "height": 6, "width": 5, "channels": 4, "groups": 1, "zero": 0,
                 "tables": rng.integers(0, 256, (1, 256))},
                {"kind": "add", "a": 2, "b": 1, "height": 6, "width": 5, "channels": 4, "zero": 0, "low": 0,
                 "high": 255, "mul_a": 1 << 19, "mul_b": 1 << 19, "shift": 20},
                {"kind": "max", "a": 3, "height": 3, "width": 3, "channels": 4, "kernel_y": 2, "kernel_x": 2,
                 "stride_y": 2, "stride_x": 2, "zero": 0},
                {"kind": "mean", "a": 4, "height": 1, "width": 1, "channels": 4, "kernel_y": 3, "kernel_x": 3,
                 "stride_y": 1, "stride_x": 1, "zero": 0, "low": 0, "high": 255, "mul_a": 1 << 30,
                 "shift": 30},
                {"kind": "multiply", "a": 4, "b": 5, "height": 3, "width": 3, "channels": 4, "zero": 0,
                 "low": 0, "high": 255, "mul_a": 1 << 30, "shift": 38},
                {"kind": "sum", "a": 6, "height": 1, "width": 1, "channels": 4}],
            "outputs": [{"name": "pooled", "tensor": 7, "multiplier": 3, "shift": 2}]}


NO_USE = "not a network that can be used: "
CHANGES = [
    ("layer", 0, "a", 1, "layer 0 (convolution): it reads a tensor that is not made before it"),
    ("layer", 2, "b", 3, "layer 2 (add): it reads a tensor that is not made before it"),
    ("layer", 0, "b", 1, "layer 0 (convolution): it reads a tensor that is not made before it"),
    ("layer", 1, "b", 1, "layer 1 (table): a field that it does not have is set"),
    ("layer", 1, "low", 1, "layer 1 (table): a field that it does not have is set"),
    ("layer", 1, "nothing", 1, "layer 1 (table): a field that it does not have is set"),
    ("layer", 0, "height", 0, "layer 0 (convolution): a side or the number of channels is 0 or too large"),
    ("layer", 0, "height", -6, "layer 0 (convolution): a side or the number of channels is 0 or too large"),
    ("layer", 0, "height", 8, "layer 0 (convolution): a window is outside of the input"),
    ("layer", 0, "top", 3, "layer 0 (convolution): a window is outside of the input"),
    ("layer", 0, "stride_x", 2 ** 32 - 1, "layer 0 (convolution): its kernel, stride or dilation is 0 or too large"),
    ("layer", 0, "dilation_y", 0, "layer 0 (convolution): its kernel, stride or dilation is 0 or too large"),
    ("layer", 0, "groups", 0, "layer 0 (convolution): its groups do not divide the channels"),
    ("layer", 0, "groups", 2, "layer 0 (convolution): its groups do not divide the channels"),
    ("layer", 0, "kernel_y", 8000, "layer 0 (convolution): the file ends before its weights do"),
    ("layer", 0, "channels", 65536, "layer 1 (table): it changes the number of channels"),
    ("layer", 0, "zero", 256, "layer 0 (convolution): its zero point or its limits do not fit 8 bits"),
    ("layer", 0, "low", 256, "layer 0 (convolution): its zero point or its limits do not fit 8 bits"),
    ("layer", 1, "groups", 3, "layer 1 (table): it has neither one table nor one for each channel"),
    ("layer", 1, "groups", 0, "layer 1 (table): it has neither one table nor one for each channel"),
    ("layer", 1, "channels", 3, "layer 1 (table): it changes the number of channels"),
    ("layer", 2, "b", 0, "layer 2 (add): its inputs differ in size"),
    ("layer", 2, "mul_a", -1, "layer 2 (add): a sum may be too large"),
    ("layer", 2, "mul_b", 2 ** 23, "layer 2 (add): a sum may be too large"),
    ("layer", 2, "shift", 0, "layer 2 (add): a sum may be too large"),
    ("layer", 2, "shift", 64, "layer 2 (add): a sum may be too large"),
    ("layer", 2, "width", 4, "layer 2 (add): it changes the size"),
    ("layer", 3, "zero", 1, "layer 3 (max): it changes the zero point"),
    ("layer", 4, "shift", 46, "layer 4 (mean): its multiplier or its shift is out of range"),
    ("layer", 4, "kernel_y", 5, None),
    ("layer", 4, "counts_padding", 2, "layer 4 (mean): it is neither with nor without padding"),
    ("layer", 5, "b", 3, "layer 5 (multiply): its factors are not one for each channel"),
    ("layer", 5, "mul_a", -1, "layer 5 (multiply): its multiplier or its shift is out of range"),
    ("layer", 6, "height", 0, "layer 6 (sum): a side or the number of channels is 0 or too large"),
    ("layer", 6, "height", 3, "layer 6 (sum): it makes more than one pixel"),
    ("layer", 6, "kind", 7, "layer 6 (?): its kind is unknown"),
    ("output", 0, "tensor", 9, "output 0: its tensor does not exist"),
    ("output", 0, "name", "Upper", "output 0: its name is not valid"),
    ("output", 0, "multiplier", 0, "output 0: its scale is out of range"),
    ("", 0, "classes", ["one", "two", "three"], None),
    ("", 0, "classes", ["one", ""], "the names of its classes are not one line each"),
    ("", 0, "classes", ["one", "t\x1b"], "the names of its classes are not one line each"),
    ("", 0, "about", "no newline", "its description is not valid"),
    ("", 0, "class_output", 1, "its classes belong to no output"),
    ("", 0, "class_scale", numpy.array([1, numpy.inf]), "a scale or a bias of its classes is not a number"),
    ("", 0, "picture", (0, 5, 9), "its pictures have no side, or too large ones"),
    ("", 0, "picture", (6, 5, 256), "its picture options are out of range"),
    ("", 0, "fit", 2, "its picture options are out of range"),
    ("", 0, "crop", 0, "its picture options are out of range"),
]


@pytest.mark.parametrize("where, number, name, value, reason", CHANGES)
def test_invalid_networks(tmp_path, where, number, name, value, reason):
    network = small()
    target = network if not where else network[where + "s"][number]
    kinds = network_numpy.KINDS
    if name == "kind":
        network_numpy.KINDS += ("unknown",)
        value = "unknown"
    target[name] = value
    try:
        data = network_numpy.write(network)
    finally:
        network_numpy.KINDS = kinds
    if reason is None:  # any result or message is allowed, but no crash
        assert run(tmp_path, data, numpy.zeros(0)).returncode in (0, 1)
    else:
        assert refused(tmp_path, data) == NO_USE + reason


def test_sums_that_do_not_fit(tmp_path):
    for bias, shift, fits in ((2 ** 31 - 1 - 255 * 27, 40, True), (2 ** 31 - 255 * 27, 40, False),
                              (2 ** 30 - 1 - 255 * 27, 32, True), (2 ** 30 - 255 * 27, 32, False),
                              (-2 ** 31 + 1, 40, True), (-2 ** 31, 40, False),
                              (2 ** 22 - 1 - 255 * 27, 24, True), (2 ** 22 - 255 * 27, 24, False),
                              (0, 23, False), (0, 55, False)):
        network = small()
        layer = network["layers"][0]
        layer["weights"][1] = 1
        layer["bias"][1], layer["shifts"][1] = bias, shift
        data = network_numpy.write(network)
        if fits:
            check_network(tmp_path, network, pictures_for(network, 3))
        else:
            reason = "a multiplier or a shift is out of range" if shift in (23, 55) else "a sum may be too large"
            assert refused(tmp_path, data) == f"{NO_USE}layer 0 (convolution): {reason}"


def test_damaged_networks(tmp_path):
    data = network_numpy.write(small())
    check_network(tmp_path, small(), pictures_for(small(), 1))
    for length in (0, 1, 7, 8, 95, 127, 128, 500, len(data) - 1):
        assert refused(tmp_path, data[:length]) == (
            "not a clpipe network: clpipe-network makes one from an ONNX file" if length < 128 else
            NO_USE + "it is cut off, or bytes follow it")
    assert refused(tmp_path, data + b"\0") == NO_USE + "it is cut off, or bytes follow it"
    assert refused(tmp_path, b"clp-net2" + data[8:]) == "not a network of version 1"
    assert refused(tmp_path, data[:300] + bytes([data[300] ^ 1]) + data[301:]) == \
        NO_USE + "it is damaged: its SHA-256 does not match"
    longer = bytearray(data[:-32] + bytes(96))
    longer[8:16] = len(longer).to_bytes(8, "little")
    assert refused(tmp_path, network_numpy.seal(bytes(longer))) == NO_USE + "bytes follow its last layer"
    for path in (tmp_path, tmp_path / "none"):
        result = subprocess.run([RUN, path, tmp_path / "pictures", tmp_path / "out"], text=True,
                                capture_output=True)
        assert result.returncode == 1 and len(result.stderr.splitlines()) == 1


@pytest.mark.deep
def test_a_thousand_flipped_bits(tmp_path):
    """Bits are flipped and the digest is corrected: each file is refused with one line, or computed within bounds."""
    network = small()
    data = network_numpy.write(network)
    draw = random.Random(SEED)
    (tmp_path / "pictures").write_bytes(b"")
    accepted = 0
    for _ in range(1000):
        damaged = bytearray(data)
        for _ in range(draw.choice((1, 1, 1, 4))):
            at = draw.randrange(len(data) - 32) if draw.random() < .3 else draw.randrange(96 + 48 + 96 * 7)
            damaged[at] ^= 1 << draw.randrange(8)
        (tmp_path / "net").write_bytes(network_numpy.seal(bytes(damaged)))
        result = subprocess.run([RUN, tmp_path / "net", tmp_path / "pictures", tmp_path / "out"], text=True,
                                capture_output=True, timeout=30)
        assert result.returncode in (0, 1), result.stderr
        assert len(result.stderr.splitlines()) == result.returncode
        accepted += result.returncode == 0
    assert 0 < accepted < 1000

"""An ONNX graph that is built by writing equations: values with operators, constants, sizes.

Nothing here needs the package `onnx` until a graph is turned into a file.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

OPSET, FORMAT = 18, 8
"""Versions of the operators and of the file format, which onnxruntime reads from 1.14 on."""
FLOAT, DOUBLE, INT32, INT64, BOOL = 1, 11, 6, 7, 9
"""Types by their numbers in ONNX."""
NAMES = {FLOAT: "float32", INT64: "int64", BOOL: "bool"}
Number = float | int | np.ndarray


class Port(NamedTuple):
    """An input or output of a graph: its name, type and axes; axes with a name have any length."""

    name: str
    type: int
    axes: tuple[str | int, ...]

    def record(self) -> dict[str, Any]:
        """The port as JSON values."""
        return {"name": self.name, "type": NAMES[self.type], "axes": list(self.axes)}


@dataclass(frozen=True)
class Value:
    """A tensor that a graph will compute."""

    graph: "Graph"
    name: str

    def __add__(self, other: "Value | Number") -> "Value":
        return self.graph.op("Add", self, other)

    def __sub__(self, other: "Value | Number") -> "Value":
        return self.graph.op("Sub", self, other)

    def __mul__(self, other: "Value | Number") -> "Value":
        return self.graph.op("Mul", self, other)

    def __truediv__(self, other: "Value | Number") -> "Value":
        return self.graph.op("Div", self, other)

    def __matmul__(self, other: "Value | np.ndarray") -> "Value":
        return self.graph.op("MatMul", self, other)

    def __lt__(self, other: "Value | Number") -> "Value":
        return self.graph.op("Less", self, other)

    def __le__(self, other: "Value | Number") -> "Value":
        return self.graph.op("LessOrEqual", self, other)

    def __and__(self, other: "Value") -> "Value":
        return self.graph.op("And", self, other)

    def __invert__(self) -> "Value":
        return self.graph.op("Not", self)

    def above(self, other: Number) -> "Value":
        """Where it is greater than a number."""
        return self.graph.op("Greater", self, other)

    def tanh(self) -> "Value":
        """The hyperbolic tangent."""
        return self.graph.op("Tanh", self)

    def relu(self) -> "Value":
        """The positive part."""
        return self.graph.op("Relu", self)

    def sqrt(self) -> "Value":
        """The square root."""
        return self.graph.op("Sqrt", self)

    def to(self, type: int) -> "Value":
        """The same numbers in another type."""
        return self.graph.op("Cast", self, to=type)

    def size(self, axis: int) -> "Value":
        """The length of an axis, [1]; counted from the front."""
        return self.graph.op("Shape", self, start=axis, end=axis + 1)

    def permute(self, *axes: int) -> "Value":
        """The same numbers with their axes in another order."""
        return self.graph.op("Transpose", self, perm=list(axes))

    def reshape(self, *sizes: "Value | int") -> "Value":
        """The same numbers in another shape; 0 keeps an axis, −1 takes what is left."""
        return self.graph.op("Reshape", self, self.graph.sizes(*sizes))

    def unsqueeze(self, *axes: int) -> "Value":
        """New axes of length one."""
        return self.graph.op("Unsqueeze", self, np.array(axes))

    def squeeze(self, *axes: int) -> "Value":
        """Without these axes of length one."""
        return self.graph.op("Squeeze", self, np.array(axes))

    def slice(self, axis: int, start: "Value | int", stop: "Value | int" = 2**62) -> "Value":
        """A range of one axis; a negative start counts from the end."""
        ends = (self.graph.sizes(start), self.graph.sizes(stop))
        return self.graph.op("Slice", self, *ends, np.array([axis]))

    def expand(self, *sizes: "Value | int") -> "Value":
        """Repeated to this shape."""
        return self.graph.op("Expand", self, self.graph.sizes(*sizes))

    def sum(self, axis: int, keep: bool = False) -> "Value":
        """The sum over an axis."""
        return self.graph.op("ReduceSum", self, np.array([axis]), keepdims=int(keep))

    def max(self, axis: int, keep: bool = False) -> "Value":
        """The largest along an axis."""
        return self.graph.op("ReduceMax", self, np.array([axis]), keepdims=int(keep))

    def mean(self, axis: int) -> "Value":
        """The mean over an axis."""
        return self.graph.op("ReduceMean", self, np.array([axis]), keepdims=0)

    def where(self, true: "Value | Number", false: "Value | Number") -> "Value":
        """The first where this is True, the second elsewhere."""
        return self.graph.op("Where", self, true, false)


class Graph:
    """Nodes in the order in which they were added, inputs and outputs."""

    def __init__(self) -> None:
        self.inputs: list[Port] = []
        self.outputs: list[Port] = []
        self._nodes: list[tuple[str, list[str], list[str], dict[str, Any]]] = []
        self._constants: dict[str, np.ndarray] = {}
        self._weights: dict[int, tuple[Tensor, Value]] = {}

    def input(self, name: str, type: int, *axes: str | int) -> Value:
        """A new input."""
        self.inputs.append(Port(name, type, axes))
        return Value(self, name)

    def output(self, name: str, value: Value, type: int, *axes: str | int) -> None:
        """A new output."""
        self.outputs.append(Port(name, type, axes))
        self._nodes.append(("Identity", [value.name], [name], {}))

    def op(self, kind: str, *given: Value | Number | None, **attributes: Any) -> Value:
        """An operator with one result; None stands for an optional input that is omitted."""
        return self.several(kind, 1, *given, **attributes)[0]

    def several(
        self, kind: str, results: int, *given: Value | Number | None, **attributes: Any
    ) -> list[Value]:
        """An operator with several results."""
        names = [f"{kind.lower()}_{len(self._nodes)}_{i}" for i in range(results)]
        inputs = ["" if one is None else self.constant(one).name for one in given]
        self._nodes.append((kind, inputs, names, attributes))
        return [Value(self, name) for name in names]

    def split(self, value: Value, parts: int, axis: int) -> list[Value]:
        """Equal parts along an axis."""
        return self.several("Split", parts, value, axis=axis, num_outputs=parts)

    def constant(self, value: Value | Number) -> Value:
        """A number or an array as a value: integers as int64, others as float32."""
        if isinstance(value, Value):
            return value
        array = np.asarray(value)
        if not isinstance(value, np.ndarray):
            array = array.astype(np.int64 if isinstance(value, int) else np.float32)
        name = f"constant_{len(self._constants)}"
        self._constants[name] = np.ascontiguousarray(array).reshape(array.shape)
        return Value(self, name)

    def weight(self, tensor: Tensor) -> Value:
        """A weight of the network, which is stored once even if it is used several times."""
        if id(tensor) not in self._weights:
            value = self.constant(tensor.detach().float().cpu().numpy())
            self._weights[id(tensor)] = (tensor, value)
        return self._weights[id(tensor)][1]

    def sizes(self, *parts: Value | int) -> Value:
        """A shape of numbers and sizes, [n]."""
        if all(isinstance(part, int) for part in parts):
            return self.constant(np.array(parts, dtype=np.int64))
        known = [np.array([part]) if isinstance(part, int) else part for part in parts]
        return self.op("Concat", *known, axis=0)

    def join(self, parts: Sequence[Value], axis: int) -> Value:
        """Values concatenated along an axis."""
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=axis)

    def range(self, start: Value | int, stop: Value) -> Value:
        """The integers from `start` up to, but not including, `stop`; both have the shape [1]."""
        first = start if isinstance(start, int) else start.squeeze(0)
        return self.op("Range", first, stop.squeeze(0), 1)

    def full(self, value: float | int, *sizes: Value | int) -> Value:
        """One number in every place of a shape."""
        return self.constant(value).expand(*sizes)

    def bytes(self, name: str) -> bytes:
        """The graph as an ONNX file."""
        from onnx import checker, helper, numpy_helper

        def info(port: Port) -> Any:
            return helper.make_tensor_value_info(port.name, port.type, list(port.axes))

        graph = helper.make_graph(
            [helper.make_node(kind, i, o, **given) for kind, i, o, given in self._nodes],
            name,
            [info(port) for port in self.inputs],
            [info(port) for port in self.outputs],
            [numpy_helper.from_array(array, name) for name, array in self._constants.items()],
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="regard"
        )
        model.ir_version = FORMAT
        checker.check_model(model)
        data: bytes = model.SerializeToString()
        return data

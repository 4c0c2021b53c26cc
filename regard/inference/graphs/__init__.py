"""Networks written down as ONNX graphs, from their weights: plain twins that any runtime reads."""

from regard.inference.graphs.networks import graphs_of
from regard.inference.graphs.values import Graph, Port, Value

__all__ = ["Graph", "Port", "Value", "graphs_of"]

"""Networks as ONNX graphs, built from their weights, for any runtime."""

from regard.inference.export.graph import Graph, Port, Value
from regard.inference.export.graph_models import graphs_of, left_out

__all__ = ["Graph", "Port", "Value", "graphs_of", "left_out"]

"""Compiles the decoder of a translator into a flat plan for the native library.

The plan is a list of operations over one workspace per hypothesis; each names the columns that it
reads and writes. What a plan cannot express is left to PyTorch, and `why_not` says what it is.
"""

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention.normalizers import softmax
from regard.attention.scores import MLP, Additive, Bilinear, ScaledDot
from regard.layers import BahdanauStep, Block, Cell, LuongStep, MultiHead
from regard.models.decoders import RecurrentDecoder, TransformerDecoder
from regard.models.native import native_library
from regard.models.native.native_library import ACTIVATIONS, KINDS, Operation, Plan
from regard.models.native.native_products import PackedLinear, Precision
from regard.models.translator import Translator

ALIGNMENT = 16
"""Columns of the workspace that begin at a multiple of this are aligned to 64 bytes."""


def why_not(model: nn.Module) -> str | None:
    """The reason why this translator cannot be compiled, or None if it can."""
    if missing := native_library.why_not():
        return missing
    if type(model) is not Translator:
        return f"a {type(model).__name__} is not a Translator itself"
    if model.training:
        return "the model is in training mode"
    parts = (model.target, model.decoder, model.words)
    for module in (module for part in parts for module in part.modules()):
        hooks = [*module._forward_hooks.values(), *module._forward_pre_hooks.values()]
        if not all(map(only_watches, hooks)) or "forward" in vars(module):
            return f"a hook may change what a {type(module).__name__} gives"
    for tensor in (parameter for part in parts for parameter in part.parameters()):
        if tensor.device.type != "cpu" or tensor.dtype != torch.float32:
            return f"its weights are {tensor.dtype} on {tensor.device}, not float32 on a CPU"
    decoder = model.decoder
    if type(decoder) is TransformerDecoder:
        reasons = (why_not_block(block, [block.own, block.source]) for block in decoder.stack)
        return next(filter(None, reasons), None)
    if type(decoder) is RecurrentDecoder:
        return _why_not_recurrent(decoder)
    return f"the decoder is a {type(decoder).__name__}"


def only_watches(hook: Any) -> bool:
    """Whether a hook says of itself, by `only_watches = True`, that it changes no answer."""
    return bool(getattr(hook, "only_watches", False))


def why_not_block(block: Block, attentions: Sequence[MultiHead | None]) -> str | None:
    """The reason why a block with these attentions cannot be compiled, or None if it can."""
    if not isinstance(block.feed_forward, nn.Sequential):
        return "its feed-forward networks are experts or have gates"
    activation, norms = block.feed_forward[1], (block.own_norm, block.feed_norm)
    if type(activation) is not nn.GELU or activation.approximate != "none":
        return "its activation is not gelu"
    if not all(type(norm) is nn.LayerNorm for norm in norms):
        return "its blocks normalize otherwise than by a layer norm"
    for attention in attentions:
        if attention is None:
            return "a layer has no attention to the source"
        if type(attention.score) is not ScaledDot:
            return "its score is not a dot product"
        if attention.normalize is not softmax:
            return "its normalizer is not softmax"
        if attention.positions != "none" or attention.key_heads != attention.heads:
            return "its heads share keys or turn them by position"
    return None


def _why_not_recurrent(decoder: RecurrentDecoder) -> str | None:
    if not isinstance(decoder.one, BahdanauStep | LuongStep):
        return "it has no attention"
    if not isinstance(decoder.one.cell, Cell):
        return "it has several layers"
    reading = decoder.one.reading
    if type(reading.score) not in (Additive, ScaledDot, Bilinear, MLP):
        return "its score is neither additive nor a dot product of prepared keys"
    if reading.normalize is not softmax:
        return "its normalizer is not softmax"
    return "its attention is local" if reading.local != "none" else None


class DecoderPlan:
    """A compiled decoder; it keeps the tensors that its operations point to."""

    def __init__(self, model: Translator, quantize: Precision = "none") -> None:
        """Pack the weights of a translator for which `why_not` gives no reason."""
        self.quantize = quantize
        self.names: list[str] = []
        """Names of the attentions to the source, in the order of layers."""
        self.state_columns = self.block_columns = self.source_columns = 0
        self.layers, self.heads = 1, 1
        self.own_names: list[str] = []
        self.prepare: PackedLinear | None = None
        """Keys and values of the source of all layers, from the encoder's states."""
        self._tensors: list[Any] = []
        self._operations: list[Operation] = []
        self._columns = 0
        self.words = len(model.words.bias)
        if isinstance(model.decoder, TransformerDecoder):
            states = self._compile_transformer(model)
        else:
            states = self._compile_recurrent(model)
        own = model.words.weight
        table = model.words.tied[0].words.weight if own is None else own
        self._product("words", states, -1, self._packed(table, model.words.bias))
        operations = (Operation * len(self._operations))(*self._operations)
        self._tensors.append(operations)
        self.plan = Plan(
            operations=ctypes.cast(operations, ctypes.POINTER(Operation)),
            count=len(operations),
            columns=self._columns,
            state_columns=self.state_columns,
            block_columns=self.block_columns,
            source_columns=self.source_columns,
            layers=self.layers,
            heads=self.heads,
            words=self.words,
        )

    def _compile_transformer(self, model: Translator) -> int:
        stack = model.decoder.stack
        blocks, width = list(stack), stack.width
        self.layers, self.heads = len(blocks), blocks[0].own.heads
        self.block_columns = self.source_columns = 2 * width * len(blocks)
        sources = [(block.source.key, block.source.value) for block in blocks]
        self.prepare = self._packed(*joined_layers(*(part for pair in sources for part in pair)))
        states, normed, mixed = self._new(width), self._new(width), self._new(width)
        queries = self._new(3 * width)
        hidden = self._new(max(block.feed_forward[0].out_features for block in blocks))
        self._embed(model, states)
        for layer, block in enumerate(blocks):
            # with norms before each part, the part reads a normed copy; otherwise the states
            read = normed if block.norm_first else states

            def part_of(norm: nn.LayerNorm, read: int = read, block: Block = block) -> None:
                if block.norm_first:
                    self._norm(norm, states, read)

            def after(norm: nn.LayerNorm, block: Block = block) -> None:
                if not block.norm_first:
                    self._norm(norm, states, states)

            own, source = block.own, block.source
            part_of(block.own_norm)
            self._product(
                "product",
                read,
                queries,
                self._packed(*joined_layers(own.query, own.key, own.value)),
            )
            self._attend("self_attention", own, layer, queries, mixed)
            self._linear(own.output, mixed, states, residual=states)
            after(block.own_norm)
            part_of(block.source_norm)
            self._linear(source.query, read, queries)
            self._attend("source_attention", source, layer, queries, mixed)
            self._linear(source.output, mixed, states, residual=states)
            after(block.source_norm)
            part_of(block.feed_norm)
            self._linear(block.feed_forward[0], read, hidden, activation="gelu")
            self._linear(block.feed_forward[3], hidden, states, residual=states)
            after(block.feed_norm)
            self.own_names.append(f"decoder.{layer}.self")
            self.names.append(f"decoder.{layer}.source")
        if isinstance(stack.norm, nn.LayerNorm):
            self._norm(stack.norm, states, states)
        return states

    def _compile_recurrent(self, model: Translator) -> int:
        step = model.decoder.one
        cell, reading = step.cell, step.reading
        width, hidden, memory = step.input_size, reading.query_size, reading.memory_size
        self.names = ["source"]
        states = 2 if cell.kind == "lstm" else 1
        fed = states * hidden
        self.state_columns = fed + (hidden if step.input_feeding else 0)
        self._new(self.state_columns)  # the state stands first
        bahdanau = isinstance(step, BahdanauStep)
        given = width + (memory if bahdanau else 0)
        inputs = self._new(cell.step.input_size + hidden)  # an LSTM reads its hidden vector too
        joined = self._new(step.output.in_features)
        output = self._new(hidden)
        self._embed(model, inputs)
        if bahdanau:
            self._read(reading, inputs + width)
        if step.input_feeding:
            self._copy(fed, inputs + given, hidden)
        self._step_cell(cell, inputs)
        if bahdanau:
            self._copy(0, joined, hidden)
            self._copy(inputs + width, joined + hidden, memory)
            self._copy(inputs, joined + hidden + memory, width)
        else:
            self._read(reading, joined)
            self._copy(0, joined + memory, hidden)
        self._linear(step.output, joined, output, activation="tanh")
        if step.input_feeding:
            self._copy(output, fed, hidden)
        return output

    def _step_cell(self, cell: Any, inputs: int) -> None:
        step, hidden = cell.step, cell.step.hidden_size
        if cell.kind == "gru":
            of_inputs, of_hidden = self._new(3 * hidden), self._new(3 * hidden)
            packed = self._packed(step.weight_ih, step.bias_ih)
            self._product("product", inputs, of_inputs, packed)
            self._product("product", 0, of_hidden, self._packed(step.weight_hh, step.bias_hh))
            self._add("gru", input=of_inputs, other=of_hidden, state=0, width=hidden)
            return
        self._copy(0, inputs + step.input_size, hidden)
        weight = torch.cat([step.weight_ih, step.weight_hh], 1)
        packed = self._packed(weight, step.bias_ih + step.bias_hh)
        if cell.kind == "lstm":
            gates = self._new(4 * hidden)
            self._product("product", inputs, gates, packed)
            self._add("lstm", input=gates, state=0, width=hidden)
        else:
            self._product("product", inputs, 0, packed, activation="tanh")

    def _read(self, reading: Any, output: int) -> None:
        """Attention from the hidden vector to the source; prepared keys stand before the values."""
        score, memory = reading.score, reading.memory_size
        if isinstance(score, Additive):
            size = len(score.weight)
            query = self._new(size)
            self._linear(score.query, 0, query)
            self.source_columns = size + memory
            self._add(
                "additive_attention",
                input=query,
                output=output,
                width=size,
                value=size,
                value_width=memory,
                first=self._kept(score.weight),
            )
            return
        # keys of a plain dot product are the values themselves
        own_keys = isinstance(score, Bilinear | MLP)
        scale = 1.0
        if isinstance(score, ScaledDot):
            scale = reading.query_size**-0.5 if score.scale is None else score.scale
        self.source_columns = (reading.query_size if own_keys else 0) + memory
        self._add(
            "source_attention",
            input=0,
            output=output,
            width=reading.query_size,
            value=reading.query_size if own_keys else 0,
            value_width=memory,
            heads=1,
            scale=scale,
        )

    def _attend(self, kind: str, attention: MultiHead, layer: int, query: int, output: int) -> None:
        width = attention.query.out_features
        assert isinstance(attention.score, ScaledDot)  # others are not compiled
        scale = attention.score.scale
        self._add(
            kind,
            input=query,
            output=output,
            width=width,
            heads=attention.heads,
            layer=layer,
            key=2 * layer * width,
            value=(2 * layer + 1) * width,
            value_width=width,
            scale=(width // attention.heads) ** -0.5 if scale is None else scale,
        )

    def _embed(self, model: Translator, output: int) -> None:
        table = self._kept(model.target.words.weight)
        self._add(
            "embed", output=output, width=model.target.width, first=table, scale=model.target.scale
        )

    def _norm(self, norm: nn.LayerNorm, read: int, output: int) -> None:
        self._add(
            "norm",
            input=read,
            output=output,
            width=norm.normalized_shape[0],
            first=self._kept(norm.weight),
            second=self._kept(norm.bias),
            epsilon=norm.eps,
        )

    def _linear(
        self,
        layer: nn.Linear,
        read: int,
        output: int,
        *,
        residual: int = -1,
        activation: str = "linear",
    ) -> None:
        packed = self._packed(layer.weight, layer.bias)
        self._product("product", read, output, packed, residual=residual, activation=activation)

    def _product(
        self,
        kind: str,
        read: int,
        output: int,
        packed: PackedLinear,
        *,
        residual: int = -1,
        activation: str = "linear",
    ) -> None:
        self._add(
            kind,
            input=read,
            output=output,
            other=residual,
            activation=ACTIVATIONS.index(activation),
            product=packed.product,
        )

    def _copy(self, read: int, output: int, width: int) -> None:
        self._add("copy", input=read, output=output, width=width)

    def _add(self, kind: str, **fields: Any) -> None:
        self._operations.append(Operation(kind=KINDS.index(kind), **fields))

    def _packed(self, weight: Tensor, bias: Tensor | None) -> PackedLinear:
        packed = PackedLinear(weight, bias, self.quantize)
        self._tensors.append(packed)
        return packed

    def _kept(self, tensor: Tensor) -> int:
        """The address of a tensor that lives as long as the plan."""
        whole = tensor.detach().contiguous()
        self._tensors.append(whole)
        return whole.data_ptr()

    def _new(self, width: int) -> int:
        """The first of some more columns of the workspace."""
        column = self._columns
        self._columns += -(-width // ALIGNMENT) * ALIGNMENT
        return column


def joined_layers(*layers: nn.Linear) -> tuple[Tensor, Tensor]:
    """Several linear layers of the same input as one."""
    return torch.cat([layer.weight for layer in layers]), torch.cat(
        [layer.bias for layer in layers]
    )

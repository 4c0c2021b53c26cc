"""Deferred gradients against autograd's own, which a decoder in evaluation mode computes."""

import pytest
import torch
from torch import Tensor

from regard.attention.deferred_gradients import current, deferred_gradients
from regard.models import Translator, TranslatorConfig

SOURCE = torch.tensor([[5, 4, 9, 6, 8, 7, 3], [6, 8, 3, 0, 0, 0, 0], [9, 3, 0, 0, 0, 0, 0]])
LENGTHS = torch.tensor([7, 3, 2])
TARGET = torch.tensor([[2, 7, 4, 9, 5], [2, 8, 6, 0, 0], [2, 4, 7, 5, 0]])


def translator(**options: object) -> Translator:
    torch.manual_seed(3)
    config = TranslatorConfig(width=14, dropout=0.0, **options)  # type: ignore[arg-type]
    return Translator(config, 11, 13)


def loss(model: Translator, *, need_weights: bool = False) -> Tensor:
    output = model(SOURCE, LENGTHS, TARGET, need_weights=need_weights)
    upstream = torch.linspace(-1, 1, output.logits.numel()).view_as(output.logits)
    total: Tensor = (output.logits * upstream).sum()
    return total


def gradients(model: Translator, *, need_weights: bool = False) -> dict[str, Tensor]:
    model.zero_grad()
    loss(model, need_weights=need_weights).backward()
    return {
        name: weight.grad.clone()
        for name, weight in model.named_parameters()
        if weight.grad is not None
    }


def assert_same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, rtol=2e-5, atol=2e-6, msg=name)


@pytest.mark.parametrize("order", ["luong", "bahdanau"])
@pytest.mark.parametrize("cell", ["gru", "lstm", "elman"])
@pytest.mark.parametrize("score", ["additive", "scaled_dot", "bilinear", "none"])
def test_values_and_gradients_are_those_of_autograd(order: str, cell: str, score: str) -> None:
    model = translator(order=order, cell=cell, attention=score, decoder_layers=2)
    plain_loss = loss(model.eval())
    plain = gradients(model)
    torch.testing.assert_close(loss(model.train()), plain_loss)
    assert_same(gradients(model), plain)
    assert all(bool(gradient.any()) for name, gradient in plain.items() if "decoder" in name)


def test_training_defers_and_evaluation_does_not() -> None:
    def sums(model: Translator) -> int:
        nodes, names = [loss(model).grad_fn], set[str]()
        while nodes:
            node = nodes.pop()
            if node is not None and str(node) not in names:
                names.add(str(node))
                nodes += [following for following, _ in node.next_functions]
        return sum("_Collect" in name for name in names)

    model = translator()
    assert sums(model.eval()) == 0
    assert sums(model.train()) == 5  # two of the cell, the query's, the output's, and the memory


def test_requested_weights_change_no_gradient() -> None:
    model = translator().train()
    assert_same(gradients(model, need_weights=True), gradients(model))


def test_frozen_and_watched_layers_keep_autograds_way() -> None:
    model = translator()
    model.decoder.one.output.weight.requires_grad_(False)
    model.decoder.one.cell.step.bias_hh.requires_grad_(False)
    seen: list[Tensor] = []
    model.decoder.one.reading.score.query.register_forward_hook(
        lambda module, inputs, output: seen.append(output)
    )
    plain = gradients(model.eval())
    seen.clear()
    assert_same(gradients(model.train()), plain)
    assert len(seen) == TARGET.shape[1]
    assert "decoder.one.output.weight" not in plain


def test_a_second_backward_pass_gives_the_same_again() -> None:
    model = translator().train()
    total = loss(model)
    total.backward(retain_graph=True)
    once = {name: weight.grad.clone() for name, weight in model.named_parameters()}
    model.zero_grad()
    total.backward()
    assert_same({name: weight.grad for name, weight in model.named_parameters()}, once)


def test_gradients_of_part_of_the_steps() -> None:
    def part(model: Translator) -> dict[str, Tensor]:
        model.zero_grad()
        model(SOURCE, LENGTHS, TARGET).logits[:, 1].sum().backward()
        return {name: weight.grad.clone() for name, weight in model.named_parameters()}

    model = translator()
    plain = part(model.eval())
    assert_same(part(model.train()), plain)


def test_losses_in_a_row_accumulate() -> None:
    model = translator().train()
    once = gradients(model)
    model.zero_grad()
    (loss(model) + loss(model)).backward()
    twice = {name: weight.grad / 2 for name, weight in model.named_parameters()}
    assert_same(twice, once)


def test_when_gradients_are_not_deferred() -> None:
    with torch.no_grad(), deferred_gradients() as loop:
        assert loop is None
    with torch.autocast("cpu", torch.bfloat16), deferred_gradients() as loop:
        assert loop is None
    with deferred_gradients(wanted=False) as loop:
        assert loop is None
    with deferred_gradients() as loop:
        assert loop is not None
        assert current() is loop
    assert current() is None


def test_the_loop_is_forgotten_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), deferred_gradients():
        raise ZeroDivisionError
    assert current() is None


def test_the_memory_of_another_batch_axis_is_left_to_autograd() -> None:
    key, value = torch.randn(3, 5, 7), torch.randn(3, 5, 2)  # need no gradient
    with deferred_gradients() as loop:
        assert loop is not None
        assert loop.memory(key, value) == (key, value)

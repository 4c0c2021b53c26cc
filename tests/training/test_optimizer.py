"""The optimizer makes the updates of torch's own class; those of lazy tables are by row."""

import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from regard.training.optimizer import AdamW, clip_gradients


def _train(kind: type[torch.optim.AdamW]) -> tuple[torch.Tensor, dict]:
    torch.manual_seed(0)
    layer = torch.nn.Linear(5, 3)
    options = {"lr": 0.1, "betas": (0.9, 0.98), "weight_decay": 0.01, "fused": True}
    optimizer = kind(layer.parameters(), **options)
    for _ in range(4):
        layer(torch.randn(7, 5)).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        again = kind(layer.parameters(), **options)
        again.load_state_dict(optimizer.state_dict())
        optimizer = again
    return layer.weight.detach(), optimizer.state_dict()


def test_updates_and_states_equal_those_of_torch_bit_for_bit():
    weight, state = _train(AdamW)
    expected, expected_state = _train(torch.optim.AdamW)
    assert torch.equal(weight, expected)
    assert state["param_groups"] == expected_state["param_groups"]
    for number, values in expected_state["state"].items():
        for name, value in values.items():
            assert torch.equal(state["state"][number][name], value)


def test_an_update_calls_the_hooks_of_all_optimizers():
    """The native decoders count updates by such a hook."""
    calls = []
    hook = register_optimizer_step_post_hook(lambda *_: calls.append(1))
    try:
        _train(AdamW)
    finally:
        hook.remove()
    assert len(calls) == 4


def _train_table(sparse, decay):
    """A lazy table of 11 vectors, and a layer, after updates with some rows each."""
    torch.manual_seed(0)
    table = torch.randn(11, 3, dtype=torch.float64, requires_grad=True)
    layer = torch.randn(3, dtype=torch.float64, requires_grad=True)
    options = {"lr": 0.1, "betas": (0.9, 0.98), "weight_decay": decay, "lazy": [table]}
    optimizer = AdamW([table, layer], **options)
    for step in range(5):
        ids = torch.randint(0, 4 + step, (6,))
        vectors = torch.nn.functional.embedding(ids, table, sparse=sparse)
        (vectors * layer).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        again = AdamW([table, layer], **options)
        again.load_state_dict(optimizer.state_dict())
        optimizer = again
    return table.detach(), layer.detach()


def test_rows_of_lazy_tables_are_updated_as_by_sparse_adam():
    torch.manual_seed(0)
    ids = [torch.randint(0, 4 + step, (6,)) for step in range(5)]
    start, tables = torch.randn(11, 3, dtype=torch.float64), []
    for make in (
        lambda table: AdamW([table], lazy=[table], lr=0.1, betas=(0.9, 0.98), weight_decay=0.0),
        lambda table: torch.optim.SparseAdam([table], lr=0.1, betas=(0.9, 0.98)),
    ):
        table = start.clone().requires_grad_()
        optimizer = make(table)
        for rows in ids:
            vectors = torch.nn.functional.embedding(rows, table, sparse=True)
            (vectors * torch.arange(3.0)).pow(2).sum().backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        tables.append(table.detach())
    torch.testing.assert_close(*tables)
    assert torch.equal(tables[0][9:], start[9:])  # of no batch


@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_sparse_and_dense_gradients_update_the_same_rows(decay):
    torch.testing.assert_close(_train_table(True, decay), _train_table(False, decay))


def test_a_row_in_every_batch_is_updated_as_by_adamw():
    tables = []
    for lazy in (True, False):
        torch.manual_seed(3)
        table = torch.randn(2, 3, requires_grad=True)
        optimizer = AdamW([table], lazy=[table] if lazy else [], lr=0.1, weight_decay=0.2)
        for _ in range(4):
            table.pow(3).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        tables.append(table.detach())
    torch.testing.assert_close(*tables)


@pytest.mark.parametrize("maximum", [0.1, 1e6])
def test_sparse_gradients_are_clipped_as_dense_ones(maximum):
    norms, gradients = [], []
    for sparse in (True, False):
        torch.manual_seed(0)
        table, layer = (torch.randn(5, 3, requires_grad=True) for _ in range(2))
        ids = torch.tensor([1, 1, 4])
        vectors = torch.nn.functional.embedding(ids, table, sparse=sparse)
        (vectors @ layer.t()).square().sum().backward()
        norms.append(clip_gradients([table, layer], maximum))
        gradients.append([table.grad.to_dense(), layer.grad])
    assert norms[0] == pytest.approx(norms[1])
    torch.testing.assert_close(*gradients)


def test_single_precision_rows_are_updated_like_those_in_double_precision():
    torch.manual_seed(0)
    start, tables = torch.randn(11, 3, dtype=torch.float64), []
    for dtype, fused in ((torch.float64, False), (torch.float32, True)):
        table = start.clone().to(dtype).requires_grad_()
        optimizer = AdamW([table], lazy=[table], lr=0.1, weight_decay=0.1, fused=fused)
        for step in range(5):
            rows = torch.tensor([step, 2 * step, 0])
            torch.nn.functional.embedding(rows, table, sparse=True).pow(2).sum().backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        tables.append(table.detach())
    torch.testing.assert_close(tables[1].double(), tables[0], rtol=1e-5, atol=1e-6)
    assert torch.equal(tables[1][9:], start.float()[9:])

"""The loss of next tokens against torch's own cross-entropy: values and gradients."""

import pytest
import torch
import torch.nn.functional as F

from regard.tasks.shared import losses


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("chunk", [1, 40, 1 << 18])
def test_equals_torch(smoothing: float, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losses, "CHUNK", chunk)
    targets = torch.randint(0, 19, (5, 7))
    targets[2, 3:] = 0
    hidden, table = torch.randn(5, 7, 11, requires_grad=True), torch.randn(19, 11) * 30
    expected = F.cross_entropy(
        (hidden.double() @ table.double().T).flatten(0, 1),
        targets.flatten(),
        ignore_index=0,
        reduction="sum",
        label_smoothing=smoothing,
    )
    (right,) = torch.autograd.grad(expected / 3, hidden)
    found = losses.next_token_loss(hidden @ table.T, targets, smoothing)
    (found / 3).backward()
    assert hidden.grad is not None
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(hidden.grad, right, rtol=1e-4, atol=1e-4)


def test_logits_that_need_no_gradient_are_left_alone() -> None:
    logits = torch.randn(2, 3, 5)
    before = logits.clone()
    losses.next_token_loss(logits, torch.ones(2, 3, dtype=torch.long), 0.1)
    assert torch.equal(logits, before)


def test_nothing_but_padding_has_no_loss_and_no_gradient() -> None:
    logits = torch.randn(2, 3, 5, requires_grad=True)
    loss = losses.next_token_loss(logits * 1, torch.zeros(2, 3, dtype=torch.long), 0.1)
    loss.backward()
    assert loss.item() == 0
    assert logits.grad is not None
    assert not logits.grad.any()

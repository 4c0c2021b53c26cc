"""Scores and normalizers of other packages: by entry point, by reference, and broken ones."""

import pytest
import torch
from torch import Tensor, nn

from regard.attention import attend, explain_path
from regard.attention.attention_tables import NORMALIZERS, SCORES
from regard.attention.normalizers import normalizer_by_name, softmax
from regard.attention.scores import Additive, Bilinear, Cosine, make_score, score_by_name, score_row
from regard.plugins import PluginWarning
from tests.attention import foreign_scores, reference
from tests.attention.foreign_scores import HERE, Chosen, LearnedDistance, distance, install

B, Q, K, D, V = 2, 3, 7, 5, 11


def qkv() -> tuple[Tensor, Tensor, Tensor]:
    return tuple(
        torch.randn(*shape, dtype=torch.float64, requires_grad=True)
        for shape in ((B, Q, D), (B, K, D), (B, K, V))
    )


def test_a_foreign_score_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, SCORES, far=f"{HERE}:distance", learned=f"{HERE}:LearnedDistance")
    assert [*SCORES][-2:] == ["far", "learned"]
    assert score_by_name("far") is distance
    assert isinstance(make_score("learned", 4, 9), LearnedDistance)
    with pytest.raises(ValueError, match=r"score 'learned' has .* scores.make_score\('learned'"):
        score_by_name("learned")
    with pytest.raises(ValueError, match="unknown score 'learnt': did you mean 'learned'"):
        score_row("learnt")


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("score", ["far", f"{HERE}:distance", distance])
def test_a_foreign_function_takes_the_plain_path_and_is_right(
    score: object, need_weights: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, SCORES, far=f"{HERE}:distance")
    query, key, value = qkv()
    options = {"score": score, "need_weights": need_weights}
    assert explain_path(query, key, value, **options).name == "plain"
    output = attend(query, key, value, **options).output
    rows = [
        sum(
            row * v
            for row, v in zip(
                reference.softmax(torch.stack([-((q - k) ** 2).sum() for k in keys])[None])[0],
                values,
                strict=True,
            )
        )
        for queries, keys, values in zip(query, key, value, strict=True)
        for q in queries
    ]
    expected = torch.stack(rows).unflatten(0, (B, Q))
    torch.testing.assert_close(output, expected)
    direction = torch.randn_like(expected)
    for ours, theirs in zip(
        torch.autograd.grad((output * direction).sum(), (query, key, value)),
        torch.autograd.grad((expected * direction).sum(), (query, key, value)),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("score", [f"{HERE}:LearnedDistance", LearnedDistance])
def test_a_class_is_made_from_sizes(score: object) -> None:
    made = make_score(score, 4, 9)
    assert isinstance(made, LearnedDistance)
    assert (made.of_query.in_features, made.of_key.in_features) == (4, 9)


def test_constructors_take_the_sizes_that_they_name() -> None:
    assert make_score(Chosen, 4, 9, max_keys=6).sizes == (9, 6, 17)
    assert make_score(Chosen, 4, 9, max_keys=6, hidden=3).sizes == (9, 6, 3)
    assert make_score("additive", 4, 9, hidden=3).weight.shape == (3,)
    assert make_score("additive", 4, 9).weight.shape == (9,)
    assert make_score("location", 4, 9, max_keys=6).where.out_features == 6
    assert isinstance(make_score("general", 4, 9), Bilinear)
    assert isinstance(make_score("concat", 4, 9), Additive)
    assert make_score(Cosine, 4, 9) == Cosine()


def test_a_broken_plugin_is_named_and_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    install(
        monkeypatch,
        SCORES,
        broken="no_such_package:score",
        gone=f"{HERE}:gone",
        far=f"{HERE}:distance",
    )
    for name, words in {"broken": "No module named 'no_such_package'", "gone": "'gone'"}.items():
        with (
            pytest.warns(
                PluginWarning, match=f"plug-in '{name}' .*regard.scores.* skipped: .*{words}"
            ),
            pytest.raises(ValueError, match=f"unknown score '{name}'"),
        ):
            make_score(name, 3, 3)
        assert name not in SCORES
    query, key, value = qkv()
    assert attend(query, key, value, score="far").output.isfinite().all()
    assert attend(query, key, value).output.isfinite().all()


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize(
    ("score", "words"),
    [
        ("no_such_package:score", r"no_such_package:score: cannot be imported"),
        (f"{HERE}:gone", "cannot be imported"),
        ("math:pi", r"a score is a name, a function .* or a class; got 3.14"),
        (7, r"a score is a name, a function .* got 7"),
        (
            f"{HERE}:NeedsMore",
            "NeedsMore needs 'temperature'; .* query_size, key_size, hidden, max_keys",
        ),
        ("builtins:object", "a object cannot be called: give it forward or __call__"),
    ],
)
def test_what_is_no_score_is_refused(score: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make_score(score, 3, 3)


def test_scores_of_one_size_refuse_two() -> None:
    with pytest.raises(
        ValueError, match=r"score 'cosine' compares vectors of the same size; .* 3 .* 4"
    ):
        make_score("cosine", 3, 4)


@pytest.mark.parametrize("name", ["squares", f"{HERE}:squares"])
def test_a_foreign_normalizer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, NORMALIZERS, squares=f"{HERE}:squares")
    assert normalizer_by_name(name) is foreign_scores.squares
    query, key, value = qkv()
    mask = torch.arange(K) < 4
    output, weights = attend(query, key, value, mask, score="dot", normalize=name)
    products = (query @ key.mT)[..., :4] ** 2
    expected = products / products.sum(-1, keepdim=True)
    torch.testing.assert_close(weights[..., :4], expected)
    torch.testing.assert_close(output, expected @ value[:, :4])
    path = explain_path(query, key, value, normalize=name, need_weights=False)
    assert str(path) == "plain: the normalizer is squares"


def test_a_broken_normalizer_is_named_and_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, NORMALIZERS, broken="no_such_package:normalize")
    with (
        pytest.warns(PluginWarning, match="plug-in 'broken' .*regard.normalizers"),
        pytest.raises(ValueError, match="unknown normalizer 'broken'"),
    ):
        normalizer_by_name("broken")
    assert normalizer_by_name("softmax") is softmax


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize("normalize", [7, nn.Softmax, f"{HERE}:NeedsMore"])
def test_what_is_no_normalizer_is_refused(normalize: object) -> None:
    with pytest.raises(ValueError, match=r"a normalizer is a name or a function .* got "):
        normalizer_by_name(normalize)


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("os:getcwd", "a call raises TypeError"),
        ("torch:add", "a call raises RuntimeError"),
        ("torch.nn.functional:cosine_similarity", "is not a score"),
    ],
)
def test_a_reference_to_something_else_is_refused(reference: str, words: str) -> None:
    with pytest.raises(ValueError, match="is not a score") as caught:
        make_score(reference, D, D)
    assert words in str(caught.value)

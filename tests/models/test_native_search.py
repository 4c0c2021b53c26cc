"""Searches made by the native library beside those made step by step over the same decoder."""

from itertools import chain
from typing import Any

import pytest
import torch

from regard.models import Translator, TranslatorConfig
from regard.models.embedding import PositionEncoding
from regard.models.native import native_library
from regard.models.native.native_decoder import NativeDecoder
from regard.models.native.native_search import FoundHypothesis, SearchOptions, native_search
from regard.search import Shared, beam, forbid_tokens, greedy, power
from regard.search.penalties import penalty_table

MODELS: list[dict[str, Any]] = [
    {"model": "transformer", "width": 36, "heads": 6, "layers": 2},
    {"model": "transformer", "width": 34, "heads": 2, "norm": "post", "tied": False},
    {},
    {"cell": "lstm", "attention": "bilinear"},
    {"attention": "dot", "order": "bahdanau", "input_feeding": True},
]
SEARCHES: list[dict[str, Any]] = [
    {},
    {"width": 3, "nbest": 2, "patience": 1.0},
    {"width": 5, "nbest": 5},
    {"width": 4, "patience": 0.4},
    {"width": 3, "nbest": 3, "full": True},
    {"width": 40, "nbest": 7},  # more than the vocabulary has
]
BOS, EOS, FORBIDDEN = 1, 2, (0, 1, 9)
SOURCE = torch.randint(4, 29, (5, 7), generator=torch.Generator().manual_seed(3))
LENGTHS = torch.tensor([7, 4, 5, 1, 6])
LIMITS = torch.tensor([9, 1, 6, 12, 4])


def _decoder(options: dict[str, Any]) -> NativeDecoder:
    """With weights that make outputs differ, and end at different lengths."""
    torch.manual_seed(5)
    model = Translator(TranslatorConfig(**{"width": 26, "heads": 2} | options), 29, 31)
    with torch.no_grad():
        for weights in model.parameters():
            weights.add_(torch.randn_like(weights) * 0.2)
        model.words.bias[EOS] += 4.0 if options.get("model") == "transformer" else 0.5
    return NativeDecoder(model.eval())


def _by_steps(decoder: NativeDecoder, options: SearchOptions) -> list[list[FoundHypothesis]]:
    def step(fed: Any, state: Any) -> Any:
        chances, after, weights = decoder.step(fed, state._replace(source=state.source.value))
        return chances, after._replace(source=Shared(after.source)), weights

    state: Any = decoder.start(decoder.encode(SOURCE, LENGTHS))
    common: dict[str, Any] = {"bos": BOS, "eos": EOS, "limit": LIMITS.tolist()}
    common["length_penalty"] = power(0.8)
    restricted, state = forbid_tokens(step, FORBIDDEN), state._replace(source=Shared(state.source))
    if options.width == 1:
        found = [[path] for path in greedy(restricted, state, **common)]
    else:
        given = {name: getattr(options, name) for name in ("width", "nbest", "patience", "full")}
        found = beam(restricted, state, **given, **common)
    return [[FoundHypothesis(**vars(one)) for one in nbest] for nbest in found]


def _natively(decoder: NativeDecoder, options: SearchOptions) -> Any:
    state = decoder.start(decoder.encode(SOURCE, LENGTHS))
    starts = torch.full((len(LIMITS),), BOS)
    table = penalty_table(power(0.8), int(LIMITS.max()))
    return native_search(decoder, state, starts, LIMITS, table, options, need_weights=True)


def _assert_same(found: Any, expected: list[list[FoundHypothesis]]) -> None:
    assert [len(nbest) for nbest in found] == [len(nbest) for nbest in expected]
    for ours, theirs in zip(chain(*found), chain(*expected), strict=True):
        assert ours._replace(weights={}) == theirs._replace(weights={})
        assert list(ours.weights) == list(theirs.weights)
        for name, weights in theirs.weights.items():
            assert torch.equal(ours.weights[name], weights)


@pytest.mark.parametrize("options", MODELS, ids=str)
def test_searches_are_those_over_steps_to_the_last_bit(options: dict[str, Any]) -> None:
    decoder, lengths = _decoder(options), set()
    for search in SEARCHES:
        asked = SearchOptions(EOS, forbidden=FORBIDDEN, **search)
        expected = _by_steps(decoder, asked)
        _assert_same(_natively(decoder, asked), expected)
        lengths |= {(one.finished, len(one.tokens)) for nbest in expected for one in nbest}
    assert {finished for finished, _ in lengths} == {True, False}
    assert len(lengths) > 5


@pytest.mark.parametrize("level", native_library.LEVELS)
def test_every_instruction_set_searches_alike(level: str) -> None:
    try:
        native_library.force_level(level)
    except ValueError:  # this machine has fewer
        return
    try:
        for search in SEARCHES[:3]:
            decoder, asked = _decoder(MODELS[0]), SearchOptions(EOS, forbidden=FORBIDDEN, **search)
            _assert_same(_natively(decoder, asked), _by_steps(decoder, asked))
    finally:
        native_library.force_level(None)


def test_threads_do_not_change_a_search() -> None:
    decoder, asked = _decoder(MODELS[0]), SearchOptions(EOS, width=3, nbest=2, forbidden=FORBIDDEN)
    alone, threads = _natively(decoder, asked), torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        _assert_same(_natively(decoder, asked), alone)
    finally:
        torch.set_num_threads(threads)


def test_of_equal_candidates_the_lowest_token_then_the_best_beam_goes_first() -> None:
    blind = Translator(TranslatorConfig(width=26), 29, 31)
    with torch.no_grad():
        for weights in blind.words.parameters():
            weights.zero_()  # every token is as likely as every other one
        blind.target.words.weight.zero_()
    decoder = NativeDecoder(blind.eval())
    for search in SEARCHES[1:4]:
        asked = SearchOptions(EOS, forbidden=FORBIDDEN, **search)
        _assert_same(_natively(decoder, asked), _by_steps(decoder, asked))


def test_what_cannot_be_searched_is_left_to_steps() -> None:
    decoder = _decoder(MODELS[0])
    assert _natively(decoder, SearchOptions(EOS, forbidden=range(31))) is None
    short = Translator(TranslatorConfig(model="transformer", width=26, heads=2), 29, 31).eval()
    short.target.places = PositionEncoding("learned", 26, 8)
    assert _natively(NativeDecoder(short), SearchOptions(EOS)) is None
    unsound = Translator(TranslatorConfig(width=26), 29, 31)
    with torch.no_grad():
        unsound.words.bias[5] = float("nan")
    assert _natively(NativeDecoder(unsound.eval()), SearchOptions(EOS)) is None


def test_hooks_watch_every_step_and_can_end_a_search() -> None:
    torch.manual_seed(5)
    model, seen = Translator(TranslatorConfig(width=26), 29, 31).eval(), []

    def watch(*_: Any) -> None:
        seen.append(1)
        if len(seen) == 20:
            raise TimeoutError("nobody waits any more")

    watch.only_watches = True  # type: ignore[attr-defined]
    model.decoder.register_forward_pre_hook(watch)
    decoder = NativeDecoder(model)
    endless = SearchOptions(eos=0, forbidden=(0,))
    _natively(decoder, endless)
    assert len(seen) == LIMITS.max()
    with pytest.raises(TimeoutError, match="nobody waits"):
        _natively(decoder, endless)

"""Decoding in C and by torch beside Hugging Face Marian and CTranslate2, with identical weights.

    python benchmarks/decoding.py

Everyone writes the same number of tokens for the same sources, on one thread; they take turns in
one process, and the processor's time counts, so that other work on the machine matters less.
Weights are random: what is written means nothing, but takes as long, and shows whether all wrote
the same. The transformer has its norms behind each part, as Marian has. Recurrent models have no
peer that could take their weights.
"""

import argparse
import functools
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch

from regard.attention.positions import sinusoids
from regard.data.tokenizers.tokenizer import BOS, EOS, NEVER_GENERATED, PAD, SPECIAL
from regard.models import Translator, TranslatorConfig
from regard.models.native.native_decoder import NativeDecoder, native_decoder
from regard.search import PerSentence, Shared, beam, forbid_tokens, greedy, power
from regard.tasks.translation.native_translation import search_natively
from regard.tasks.translation.task_options import Decoding

Sources = list[list[int]]
Decode = Callable[[Sources, int], list[list[int]]]
SIZES = {"width": 256, "heads": 4, "layers": 3, "feed_forward": 1024, "norm": "post"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tokens", type=int, default=15, help="that each translation has")
    parser.add_argument("--vocabulary", type=int, default=8000)
    parser.add_argument("--sentences", type=int, default=32, help="of the larger batch")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = TranslatorConfig(model="transformer", **SIZES)
    model = _random(Translator(config, chosen.vocabulary, chosen.vocabulary))
    recurrent = _random(Translator(TranslatorConfig(), chosen.vocabulary, chosen.vocabulary))
    entries: dict[str, Decode] = {
        "regard": _regard(model, chosen.tokens, native_decoder(model)),
        "regard int8": _regard(model, chosen.tokens, native_decoder(model, "int8")),
        "regard by torch": _regard(model, chosen.tokens),
    }
    peers: dict[str, Callable[[Translator, int], Decode]] = {
        "Marian": _marian,
        "CTranslate2": _ctranslate2,
        "CTranslate2 int8": functools.partial(_ctranslate2, compute_type="int8"),
    }
    for name, make in peers.items():
        try:
            entries[name] = make(model, chosen.tokens)
        except ImportError as error:
            print(f"{name}: left out ({error})")
    for name, decoder in (
        ("recurrent", native_decoder(recurrent)),
        ("recurrent int8", native_decoder(recurrent, "int8")),
        ("recurrent by torch", None),
    ):
        entries[f"regard, {name}"] = _regard(recurrent, chosen.tokens, decoder)
    sources = _sources(chosen.sentences, chosen.vocabulary)
    print(f"{chosen.tokens} tokens a translation, {chosen.rounds} rounds, 1 thread, torch", end=" ")
    print(f"{torch.__version__}\n\n| search | batch | who | sentences/s | times regard's | same |")
    print("| --- | --- | --- | --- | --- | --- |")
    for width in (1, 5):
        for size in (1, chosen.sentences):
            _compare(entries, sources, width, size, chosen.rounds)


def _compare(
    entries: dict[str, Decode], sources: Sources, width: int, size: int, rounds: int
) -> None:
    """Everyone's turns at one kind of work, and a row of the table for each."""
    some = sources[: max(size, 4)]
    batches = [some[i : i + size] for i in range(0, len(some), size)]
    seconds: dict[str, list[float]] = {name: [] for name in entries}
    outputs: dict[str, list[list[int]]] = {}
    for turn in range(rounds + 1):
        for name, decode in entries.items():
            began = time.process_time()
            outputs[name] = [row for batch in batches for row in decode(batch, width)]
            if turn:  # the first one loads and warms
                seconds[name].append(time.process_time() - began)
    for name, taken in seconds.items():
        rates = [len(some) / one for one in taken]
        ratios = sorted(a / b for a, b in zip(seconds["regard"], taken, strict=True))
        alike = sum(a == b for a, b in zip(outputs["regard"], outputs[name], strict=True))
        same = "" if "recurrent" in name else f"{alike} of {len(some)}"
        how = f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        print(
            f"| {'greedy' if width == 1 else f'beam {width}'} | {size} | {name} | "
            f"{statistics.median(rates):.1f} | {'' if 'recurrent' in name else how} | {same} |",
            flush=True,
        )


def _random(model: Translator) -> Translator:
    """With weights that make every token depend on the ones before."""
    with torch.no_grad():
        for name, weights in model.named_parameters():
            if name.endswith("bias"):
                weights.normal_(std=0.1)
    return model.eval()


def _sources(count: int, vocabulary: int) -> Sources:
    """Of 8 to 20 tokens, as sentences about pictures have, the last one the end."""
    draw = torch.Generator().manual_seed(1)
    lengths = torch.randint(7, 20, (count,), generator=draw).tolist()
    return [
        [*torch.randint(len(SPECIAL), vocabulary, (n,), generator=draw).tolist(), EOS]
        for n in lengths
    ]


def _padded(rows: Sources) -> tuple[torch.Tensor, torch.Tensor]:
    longest = max(map(len, rows))
    padded = torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in rows])
    return padded, torch.tensor([len(row) for row in rows])


def _regard(model: Translator, tokens: int, native: NativeDecoder | None = None) -> Decode:
    decoder: Any = native or model
    share = PerSentence if native is None else Shared

    def step(fed: torch.Tensor, state: Any) -> Any:
        plain = state._replace(source=state.source.value)
        chances, after, weights = decoder.step(fed, plain, need_weights=False)
        return chances, after._replace(source=share(after.source)), weights

    forbidden = [*NEVER_GENERATED, EOS]
    endless = forbid_tokens(step, forbidden)

    @torch.no_grad()
    def decode(batch: Sources, width: int) -> Sources:
        state: Any = decoder.start(decoder.encode(*_padded(batch)))
        found = search_natively(
            decoder,
            state,
            Decoding(beam=width),
            [tokens] * len(batch),
            power(1.0),
            forbidden=forbidden,
        )
        if found is not None:
            return [best[0].tokens for best in found]
        state = state._replace(source=share(state.source))
        common: dict[str, Any] = {"bos": BOS, "eos": EOS, "limit": tokens}
        common["length_penalty"] = power(1.0)
        if width == 1:
            return [one.tokens for one in greedy(endless, state, **common)]
        return [best[0].tokens for best in beam(endless, state, width=width, **common)]

    return decode


def _marian_model(model: Translator) -> Any:
    """Marian with the weights of a translator, position by position."""
    from transformers import MarianConfig, MarianMTModel

    vocabulary = model.words.bias.shape[0]
    config = MarianConfig(
        vocab_size=vocabulary,
        decoder_vocab_size=vocabulary,
        share_encoder_decoder_embeddings=False,
        d_model=SIZES["width"],
        encoder_layers=SIZES["layers"],
        decoder_layers=SIZES["layers"],
        encoder_attention_heads=SIZES["heads"],
        decoder_attention_heads=SIZES["heads"],
        encoder_ffn_dim=SIZES["feed_forward"],
        decoder_ffn_dim=SIZES["feed_forward"],
        activation_function="gelu",
        scale_embedding=True,
        max_position_embeddings=256,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
    )
    theirs = MarianMTModel(config).eval()
    given = dict(model.state_dict())
    state = theirs.state_dict()
    places = sinusoids(256, SIZES["width"])
    for side, ours, table in (
        ("encoder", "encoder.stack", "source"),
        ("decoder", "decoder.stack", "target"),
    ):
        state[f"model.{side}.embed_tokens.weight"] = given[f"{table}.words.weight"]
        state[f"model.{side}.embed_positions.weight"] = places
        for layer in range(SIZES["layers"]):
            for name, part in _parts(side).items():
                for kind in ("weight", "bias"):
                    key = f"{ours}.blocks.{layer}.{part}.{kind}"
                    state[f"model.{side}.layers.{layer}.{name}.{kind}"] = given[key]
    state["lm_head.weight"] = given["target.words.weight"]
    state["final_logits_bias"] = given["words.bias"][None]
    theirs.load_state_dict(state)
    return theirs


def _parts(side: str) -> dict[str, str]:
    """Their names of the parts of a layer, and ours."""
    attentions = {"self_attn": "own"} | ({"encoder_attn": "source"} if side == "decoder" else {})
    projections = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "out_proj": "output"}
    parts = {f"{a}.{p}": f"{b}.{q}" for a, b in attentions.items() for p, q in projections.items()}
    parts |= {f"{a}_layer_norm": f"{b}_norm" for a, b in attentions.items()}
    parts |= {"fc1": "feed_forward.0", "fc2": "feed_forward.3", "final_layer_norm": "feed_norm"}
    return parts


def _marian(model: Translator, tokens: int) -> Decode:
    theirs = _marian_model(model)

    @torch.no_grad()
    def decode(batch: Sources, width: int) -> Sources:
        source, _ = _padded(batch)
        made = theirs.generate(
            input_ids=source,
            attention_mask=(source != PAD).long(),
            num_beams=width,
            do_sample=False,
            min_new_tokens=tokens,
            max_new_tokens=tokens,
            suppress_tokens=[*NEVER_GENERATED, EOS],
            length_penalty=1.0,
        )
        return [row[1 : 1 + tokens] for row in made.tolist()]

    return decode


def _ctranslate2(model: Translator, tokens: int, compute_type: str = "float32") -> Decode:
    import ctranslate2
    from ctranslate2.converters.transformers import BartLoader

    theirs = _marian_model(model)
    theirs.config.normalize_before = theirs.config.normalize_embedding = False
    spec = BartLoader().get_model_spec(theirs)
    names = [*SPECIAL, *(str(i) for i in range(len(SPECIAL), model.words.bias.shape[0]))]
    spec.register_source_vocabulary(names)
    spec.register_target_vocabulary(names)
    for name, token in {"bos_token": BOS, "eos_token": EOS, "decoder_start_token": BOS}.items():
        setattr(spec.config, name, names[token])
    spec.config.unk_token = "<unk>"
    spec.config.add_source_eos = False
    folder = tempfile.mkdtemp()
    spec.validate()
    spec.save(folder)
    translator = ctranslate2.Translator(
        folder, inter_threads=1, intra_threads=1, compute_type=compute_type
    )

    def decode(batch: Sources, width: int) -> Sources:
        made = translator.translate_batch(
            [[names[token] for token in row] for row in batch],
            beam_size=width,
            min_decoding_length=tokens,
            max_decoding_length=tokens,
            suppress_sequences=[[names[token]] for token in (*NEVER_GENERATED, EOS)],
        )
        number = {name: i for i, name in enumerate(names)}
        return [[number[name] for name in one.hypotheses[0]] for one in made]

    return decode


if __name__ == "__main__":
    main()

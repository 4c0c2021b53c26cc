"""Looks of models that were made elsewhere: real models of transformers, small and untrained."""

import json

import numpy as np
import pytest
import torch

from regard.show import draw, show, trace_from_looks
from regard.trace.look import from_arrays, from_transformers

transformers = pytest.importorskip("transformers")

IDS = torch.tensor([[5, 6, 7, 8, 9], [11, 12, 13, 1, 1]])
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
TARGET = torch.tensor([[3, 4, 5], [6, 7, 8]])
SIZES = {"vocab_size": 23, "num_attention_heads": 2, "num_hidden_layers": 3}


def bert():
    config = transformers.BertConfig(hidden_size=8, intermediate_size=8, **SIZES)
    return transformers.BertModel(config)


def gpt2():
    config = transformers.GPT2Config(vocab_size=23, n_embd=8, n_layer=3, n_head=2, n_positions=16)
    return transformers.GPT2LMHeadModel(config)


def marian():
    special = {"pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
    sizes = {
        f"{side}_{name}": 2 for side in ("encoder", "decoder") for name in ("layers", "ffn_dim")
    }
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 4}
    config = transformers.MarianConfig(vocab_size=23, d_model=8, **special, **sizes, **heads)
    return transformers.MarianMTModel(config)


def t5():
    sizes = {"d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 2, "num_heads": 2}
    config = transformers.T5Config(vocab_size=23, decoder_start_token_id=0, **sizes)
    return transformers.T5ForConditionalGeneration(config)


FIELDS = {
    "self": "attentions",
    "encoder.self": "encoder_attentions",
    "decoder.self": "decoder_attentions",
    "decoder.source": "cross_attentions",
}


def inputs_of(model):
    given = {"input_ids": IDS, "attention_mask": MASK}
    return given | {"decoder_input_ids": TARGET} if model.config.is_encoder_decoder else given


def kinds(model):
    """How attention is computed, in every part."""
    return [m.config._attn_implementation for m in model.modules() if hasattr(m, "config")]


class Names:
    """As much of a tokenizer as is needed."""

    def convert_ids_to_tokens(self, ids):
        return [f"<{i}>" for i in ids]

    def __call__(self, text, return_tensors):
        return {"input_ids": torch.tensor([[len(word) for word in text.split()]])}


@pytest.mark.parametrize("make", [bert, gpt2, marian, t5])
@pytest.mark.parametrize("row", [0, 1])
def test_looks_are_the_weights_that_eager_attention_returns(make, row):
    model = make().train()
    before = kinds(model)
    assert "eager" not in before
    given = inputs_of(model)
    looks = from_transformers(model, given, tokenizer=Names(), row=row)
    assert kinds(model) == before
    assert all(module.training for module in model.modules())
    model.set_attn_implementation("eager")
    with torch.no_grad():
        expected = model.eval()(**given, output_attentions=True)
    real = {"text": MASK[row].bool(), "source": MASK[row].bool()}
    real["target"] = torch.ones(3, dtype=torch.bool)
    words = {"target": TARGET[row]} | dict.fromkeys(["text", "source"], IDS[row])
    count = 0
    for name in dict.fromkeys(look.name for look in looks):
        for layer, weights in enumerate(expected[FIELDS[name]]):
            for head, matrix in enumerate(weights[row].double()):
                look = looks[count]
                assert (look.name, look.layer, look.head) == (name, layer, head)
                rows, columns = real[look.query_side], real[look.key_side]
                np.testing.assert_allclose(look.weights, matrix[rows][:, columns], atol=1e-6)
                assert look.queries == tuple(
                    f"<{i}>" for i in words[look.query_side][rows].tolist()
                )
                assert look.keys == tuple(f"<{i}>" for i in words[look.key_side][columns].tolist())
                count += 1
    assert count == len(looks)
    encoder_decoder = ["encoder.self", "decoder.self", "decoder.source"]
    found = sorted({look.name for look in looks})
    assert found == (sorted(encoder_decoder) if model.config.is_encoder_decoder else ["self"])


def test_inputs_may_be_a_text_ids_or_a_mapping_with_labels():
    model = bert()
    looks = from_transformers(model, "The cat sat", tokenizer=Names())
    assert looks[0].keys == ("<3>", "<3>", "<3>")
    assert from_transformers(model, [5, 6])[0].keys == ("5", "6")
    model = t5()
    looks = from_transformers(model, {"input_ids": IDS, "labels": TARGET})
    assert looks[-1].queries == ("0", "3", "4")
    with pytest.raises(ValueError, match="a text needs tokenizer="):
        from_transformers(bert(), "The cat")
    with pytest.raises(ValueError, match="has a decoder: its inputs need decoder_input_ids"):
        from_transformers(model, IDS)


def test_a_model_is_as_it_was_after_an_error():
    model = gpt2().train()
    before = kinds(model)
    with pytest.raises(IndexError):
        from_transformers(model, torch.tensor([[99]]))
    assert kinds(model) == before
    assert model.training


def test_everything_can_be_drawn(tmp_path):
    looks = from_transformers(marian(), inputs_of(marian()))
    trace = trace_from_looks(*looks)
    for picture in ("matrix", "links", "text", "heads"):
        assert draw(trace, "svg", picture=picture).startswith(b"<svg")
    show(trace, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "decoder.source" in page
    record = json.loads(trace.to_json())
    assert len(record["looks"]) == len(looks)
    assert record["sides"].keys() == {"source", "target"}
    assert b"<svg" in draw(trace_from_looks(looks[0]), "svg")


def test_a_look_of_arrays_is_one_matrix():
    look = from_arrays(
        [[0.3, 0.7]], ["a"], ["b", "c"], layer=2, head=1, query_side="x", key_side="y"
    )
    assert (look.layer, look.head, look.query_side, look.key_side) == (2, 1, "x", "y")
    with pytest.raises(ValueError, match=r"\[2, 3, 4\]: make one look per layer and head"):
        from_arrays(np.zeros((2, 3, 4)), ["a"] * 3, ["b"] * 4)


def test_a_look_of_a_tensor_at_hand():
    weights = torch.tensor([[0.25, 0.75]], dtype=torch.bfloat16, requires_grad=True)
    assert from_arrays(weights, ["a"], ["b", "c"]).weights.tolist() == [[0.25, 0.75]]

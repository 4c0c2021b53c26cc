"""Translation: pairs of sentences, an encoder–decoder, beam search, BLEU and alignments."""

from typing import Any

from regard.errors import RegardError
from regard.lazy_imports import deferred
from regard.models.model_configs import TranslatorConfig
from regard.tasks.registry import SCREENS, TaskSpec
from regard.tasks.translation import task_options
from regard.tasks.translation.serve import SERVICE, SHAPES


def _source_attention(translation: Any, model: Any) -> tuple[int, int]:
    """How many layers and heads attend to the source."""
    from regard.models.decoders import TransformerDecoder

    decoder: Any = model.decoder
    if isinstance(decoder, TransformerDecoder):
        blocks: list[Any] = list(decoder.stack.blocks)
        return len(blocks), blocks[0].source.heads
    if translation.config.attention == "none":
        raise RegardError("a model without attention to the source has no alignments")
    return 1, 1


def _source_text(pair: Any) -> str:
    return str(pair.source)


SPEC = TaskSpec(
    name="translation",
    summary="translate sentences, with word alignments",
    data=task_options.TranslationData,
    model=TranslatorConfig,
    read=deferred("regard.tasks.translation.task:read"),
    prepare=deferred("regard.tasks.translation.task:prepare"),
    load=deferred("regard.tasks.translation.task:load"),
    train_example="--data pairs.tsv --model transformer --width 256",
    attend_with="--attention additive",
    training_defaults=task_options.TRAINING_DEFAULTS,
    defaults_with={"pretrained": task_options.PRETRAINED_DEFAULTS},
    adopt=deferred("regard.tasks.translation.pretrained_model:adopt"),
    to_transformers=deferred(
        "regard.tasks.translation.transformers_model:translator_for_transformers"
    ),
    compares="texts",
    check=deferred("regard.tasks.translation.task:check"),
    corpus="english_french",
    predict_options=task_options.Decoding,
    evaluate_options=task_options.TranslationEvaluation,
    accepts=frozenset({"prefixes", "force"}),
    trace=deferred("regard.tasks.translation.trace:trace_text"),
    explain=deferred("regard.tasks.translation.explain:explain_translation"),
    example_text=_source_text,
    log_probabilities=deferred(
        "regard.tasks.translation.log_probabilities:target_log_probabilities"
    ),
    pairs_of_texts=True,
    pin_words=deferred("regard.tasks.translation.decode:pin_tokens"),
    source_attention=_source_attention,
    translation=SERVICE,
    http=SHAPES,
    screens=("translation", *SCREENS),
    example_texts=(
        "The black cat sleeps under the table .",
        "Who buys the heavy bag ?",
        "Your tired queens do not prepare her bad soup .",
        "Our pear was as small as your big apple .",
        "When did my girl give his doctor 's violins to you ?",
    ),
    export_notes=(
        "encoder.onnx once, then decoder_step.onnx once per word: give it the outputs source.* and "
        "state.* of the encoder, and after each step its own outputs next.* as state.*",
        "the first token is special_tokens.begin; a translation ends with special_tokens.end",
    ),
)

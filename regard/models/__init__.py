"""Models: a config and a network each; they return logits and, on request, weights by name."""

from typing import TYPE_CHECKING

from regard.lazy_imports import export_lazily

if TYPE_CHECKING:
    from regard.models.algorithm import AlgorithmModel
    from regard.models.causal_networks import LanguageState, detach_state
    from regard.models.classifier import Classifier
    from regard.models.decoders import DecoderOptions
    from regard.models.encoders import Context
    from regard.models.language import LanguageModel
    from regard.models.layer_options import LayerOptions
    from regard.models.model_configs import (
        AlgorithmConfig,
        ClassifierConfig,
        LanguageConfig,
        TaggerConfig,
        TranslatorConfig,
    )
    from regard.models.model_tables import DECODERS, ENCODERS
    from regard.models.native.native_decoder import explain_decoder
    from regard.models.output import Output
    from regard.models.tagger import Tagger
    from regard.models.translator import Translator

__all__ = [
    "DECODERS",
    "ENCODERS",
    "AlgorithmConfig",
    "AlgorithmModel",
    "Classifier",
    "ClassifierConfig",
    "Context",
    "DecoderOptions",
    "LanguageConfig",
    "LanguageModel",
    "LanguageState",
    "LayerOptions",
    "Output",
    "Tagger",
    "TaggerConfig",
    "Translator",
    "TranslatorConfig",
    "detach_state",
    "explain_decoder",
]

export_lazily(
    __name__,
    {
        "AlgorithmConfig": "regard.models.model_configs:AlgorithmConfig",
        "AlgorithmModel": "regard.models.algorithm:AlgorithmModel",
        "Classifier": "regard.models.classifier:Classifier",
        "ClassifierConfig": "regard.models.model_configs:ClassifierConfig",
        "Context": "regard.models.encoders:Context",
        "DECODERS": "regard.models.model_tables:DECODERS",
        "DecoderOptions": "regard.models.decoders:DecoderOptions",
        "ENCODERS": "regard.models.model_tables:ENCODERS",
        "LanguageConfig": "regard.models.model_configs:LanguageConfig",
        "LanguageModel": "regard.models.language:LanguageModel",
        "LanguageState": "regard.models.causal_networks:LanguageState",
        "LayerOptions": "regard.models.layer_options:LayerOptions",
        "Output": "regard.models.output:Output",
        "Tagger": "regard.models.tagger:Tagger",
        "TaggerConfig": "regard.models.model_configs:TaggerConfig",
        "Translator": "regard.models.translator:Translator",
        "TranslatorConfig": "regard.models.model_configs:TranslatorConfig",
        "detach_state": "regard.models.causal_networks:detach_state",
        "explain_decoder": "regard.models.native.native_decoder:explain_decoder",
    },
)

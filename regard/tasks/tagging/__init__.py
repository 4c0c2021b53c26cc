"""Tagging: one tag per word, such as named entities."""

from regard.lazy_imports import deferred
from regard.models.model_configs import TaggerConfig
from regard.tasks.registry import SCREENS, TaskSpec
from regard.tasks.tagging import task_options
from regard.tasks.tagging.serve import SHAPES

SPEC = TaskSpec(
    name="tag",
    summary="tag words: named entities, parts of speech",
    data=task_options.TaggingData,
    model=TaggerConfig,
    read=deferred("regard.tasks.tagging.task:read"),
    prepare=deferred("regard.tasks.tagging.task:prepare"),
    load=deferred("regard.tasks.tagging.task:load"),
    train_example="--data train.conll --valid valid.conll --encoder transformer",
    attend_with="--encoder recurrent_self",
    training_defaults=task_options.TRAINING_DEFAULTS,
    defaults_with={"pretrained": task_options.PRETRAINED_DEFAULTS},
    pretrained_head="token_head",
    adopt=deferred("regard.tasks.tagging.pretrained_model:adopt"),
    compares="tag sequences",
    check=deferred("regard.tasks.tagging.task:check"),
    corpus="entities",
    trace=deferred("regard.tasks.tagging.trace:trace_text"),
    explain=deferred("regard.tasks.tagging.explain:explain_tags"),
    example_text=deferred("regard.tasks.shared.vector_inputs:text_of_example"),
    estimator="Tagger",
    labels=lambda task: task.labels.names,
    probabilities=deferred("regard.tasks.tagging.tag_probabilities:tag_probabilities"),
    http=SHAPES,
    screens=("entities", *SCREENS),
    example_texts=(
        "Victoria Hilton left Olsen & Sons on 19 February 2012 .",
        "The carpenter met Paris Yilmaz in Florence on Sunday .",
        "Our mother Victoria broke a fine china plate .",
        "Lawyers sued Morgan over its guitars , but my neighbour Nelson ate an apple .",
    ),
    export_notes=(
        "where there is a file crf.npz, Viterbi over logits and its tables finds the best labels; "
        "otherwise each word has the label of its largest logit",
    ),
)

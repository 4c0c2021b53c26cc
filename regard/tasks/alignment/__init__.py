"""Word alignment: two chain-structured attentions, one per direction, that learn to agree."""

from regard.lazy_imports import deferred
from regard.tasks.alignment import task_options
from regard.tasks.registry import TaskSpec, WordAligner

SPEC = TaskSpec(
    name="align",
    summary="align the words of sentence pairs, without translating",
    data=task_options.AlignmentData,
    model=task_options.AlignerConfig,
    read=deferred("regard.tasks.alignment.task:read"),
    prepare=deferred("regard.tasks.alignment.task:prepare"),
    load=deferred("regard.tasks.alignment.task:load"),
    train_example="--data pairs.en pairs.fr --valid dev.en dev.fr --valid-gold dev.gold",
    training_defaults=task_options.TRAINING_DEFAULTS,
    corpus="english_french",
    trace=deferred("regard.tasks.alignment.trace:trace_pair"),
    pairs_of_texts=True,
    aligner=WordAligner(
        posteriors=deferred("regard.tasks.alignment.align_pairs:align_pairs"),
        threshold=lambda model: float(model.threshold),
        choose_threshold=deferred("regard.tasks.alignment.link_threshold:choose_threshold"),
        lexicon=deferred("regard.tasks.alignment.lexical_table:lexicon"),
    ),
    screens=("self-attention", "training"),
    example_texts=(
        "The black cat sleeps under the table . ||| Le chat noir dort sous la table .",
        "Who buys the heavy bag ? ||| Qui achète le sac lourd ?",
    ),
)

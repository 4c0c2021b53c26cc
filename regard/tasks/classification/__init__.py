"""Classification: one label, or any number of them, for a text or a sequence of vectors."""

from regard.lazy_imports import deferred
from regard.models.model_configs import ClassifierConfig
from regard.tasks.classification import task_options
from regard.tasks.classification.serve import SHAPES
from regard.tasks.registry import SCREENS, TaskSpec

SPEC = TaskSpec(
    name="classify",
    summary="label texts: sentiment, topic, language",
    data=task_options.ClassificationData,
    model=ClassifierConfig,
    read=deferred("regard.tasks.classification.task:read"),
    prepare=deferred("regard.tasks.classification.task:prepare"),
    load=deferred("regard.tasks.classification.task:load"),
    train_example="--data reviews.csv --text review --label stars",
    attend_with="--pooling weighted",
    training_defaults=task_options.TRAINING_DEFAULTS,
    defaults_with={"pretrained": task_options.PRETRAINED_DEFAULTS},
    pretrained_head="text_head",
    adopt=deferred("regard.tasks.classification.pretrained_model:adopt"),
    compares="labels",
    check=deferred("regard.tasks.classification.task:check"),
    corpus="sentiment",
    trace=deferred("regard.tasks.classification.trace:trace_text"),
    explain=deferred("regard.tasks.classification.explain:explain_labels"),
    example_text=deferred("regard.tasks.shared.vector_inputs:text_of_example"),
    estimator="TextClassifier",
    labels=lambda task: task.labels.names,
    probabilities=lambda task, model, texts: task.probabilities(model, texts),
    words=deferred("regard.tasks.classification.word_polarity:describe_words"),
    http=SHAPES,
    screens=("sentiment", *SCREENS),
    example_texts=(
        "The story felt absolutely moving but the hotel was by no means perfect .",
        "The pizza is by no means annoying .",
        "I could not claim that this helpline is slow .",
        "Their waiter was delightful and the soup was never bland .",
    ),
    export_notes=(
        "the softmax of logits is the probability of each label of labels.json; their sigmoid "
        "where several labels may hold at once",
    ),
)

"""Estimators do what scikit-learn expects of estimators, as far as texts allow."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks as checks

import regard
import regard.sklearn
from regard.sklearn import Tagger, TextClassifier
from regard.tasks.registry import TASKS

SMALL = {"width": 8, "encoder": "none", "steps": 30, "batch_tokens": 400, "learning_rate": 0.03}
SMALL |= {"warmup": 2, "average": 1, "evaluate_every": 15, "dropout": 0.0, "word_dropout": 0.0}
FILMS, VERDICTS = ["film", "plot", "play", "song", "book"], {"good": 1, "fine": 1, "bad": 0}
TEXTS = [f"the {film} was {word} {n}" for n in range(2) for film in FILMS for word in VERDICTS]
LABELS = np.array([VERDICTS[text.split()[3]] for text in TEXTS])
WORDS = [["the", film, "of", name] for film in FILMS for name in ("Ann", "Bob", "Zoe")]
TAGS = [["O", "O", "O", "B-PER"] for _ in WORDS]
FAST_TAGGER = {"width": 8, "characters": 4, "character_features": 4, "ngrams": 4, "steps": 20}
FAST_TAGGER |= {"learning_rate": 0.05, "warmup": 2, "batch_tokens": 200, "evaluate_every": 20}


@pytest.fixture(scope="module")
def fitted():
    return TextClassifier(**SMALL).fit(TEXTS, LABELS)


def test_this_module_is_not_scikit_learn():
    assert regard.sklearn is not sklearn
    assert sklearn.__version__


@pytest.mark.parametrize("estimator", [TextClassifier, Tagger])
def test_the_checks_of_scikit_learn_that_need_no_numbers_pass(estimator):
    # `check_estimator` makes tables of numbers: of estimators that take texts it says so and stops
    # after the first check. These are its checks that fit no data, or only have to fail.
    with pytest.warns(sklearn.exceptions.SkipTestWarning, match="Can't test estimator"):
        checks.check_estimator(estimator())
    for check in (
        checks.check_estimator_cloneable,
        checks.check_estimator_tags_renamed,
        checks.check_valid_tag_types,
        checks.check_estimator_repr,
        checks.check_no_attributes_set_in_init,
        checks.check_do_not_raise_errors_in_init_or_set_params,
        checks.check_mixin_order,
        checks.check_parameters_default_constructible,
        checks.check_get_params_invariance,
        checks.check_set_params,
    ):
        check(estimator.__name__, estimator())
    with pytest.raises(NotFittedError):
        estimator().predict(["a text"])
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        estimator().fit(["a text"], None)


def test_parameters_are_the_options_of_the_task():
    task = next(task for task in TASKS.values() if task.estimator == "TextClassifier")
    parameters = TextClassifier().get_params()
    assert parameters["epochs"] == task.training_defaults["epochs"]
    assert parameters["pooling"] == task.model.__dataclass_fields__["pooling"].default
    assert not {"data", "valid", "several"} & set(parameters)
    assert TextClassifier().set_params(width=16).get_params()["width"] == 16
    with pytest.raises(TypeError, match="unknown parameter 'widht': did you mean 'width'"):
        TextClassifier(widht=16)


def test_a_classifier_learns_predicts_and_leaves_its_input_alone(fitted):
    texts, labels = [*TEXTS], LABELS.copy()
    assert fitted.score(TEXTS, LABELS) == 1.0
    assert fitted.predict(TEXTS).dtype == LABELS.dtype
    probabilities = fitted.predict_proba(pd.Series(TEXTS[::-1], index=range(5, 35)))
    assert probabilities.sum(1) == pytest.approx(np.ones(30))
    assert probabilities[::-1] == pytest.approx(fitted.predict_proba(np.array(TEXTS)), abs=1e-6)
    assert fitted.predict_proba([""])[0] == pytest.approx([1 / 3, 2 / 3])
    assert fitted.predict(["", "the film was bad 0"]).tolist() == [1, 0]
    assert texts == TEXTS
    assert (labels == LABELS).all()
    again = clone(fitted)
    assert not hasattr(again, "run_")
    assert again.fit(TEXTS, LABELS) is again
    assert (again.predict_proba(TEXTS) == fitted.predict_proba(TEXTS)).all()
    assert fitted.run_.explain("the film was bad").attributions


def test_strange_classes_keep_their_types():
    classes = np.array([" a", "a", ""], dtype=object)[[0, 1, 2] * 5]
    texts = [f"word{i % 3} {i}" for i in range(15)]
    model = TextClassifier(**SMALL | {"steps": 2}).fit(texts, classes)
    assert set(model.predict(texts)) <= {" a", "a", ""}
    assert model.classes_.tolist() == ["", " a", "a"]


def test_a_pickle_holds_the_whole_run(fitted, tmp_path):
    folder = fitted.run_.folder.path
    pickled = pickle.dumps(fitted)
    restored = pickle.loads(pickled)
    assert restored.run_.folder.path != folder
    assert (restored.predict_proba(TEXTS) == fitted.predict_proba(TEXTS)).all()
    copied = copy.deepcopy(restored)
    other = restored.run_.folder.path
    del restored
    assert not other.exists()  # its folder goes with it
    assert copied.score(TEXTS, LABELS) == 1.0
    assert b"the plot was fine" not in pickled
    fitted.save_run(tmp_path / "run")
    assert regard.load(tmp_path / "run")("the film was bad") == "0"


def test_pipelines_grids_and_cross_validation_work():
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    network = TextClassifier(**SMALL, word_ngrams=0)  # votes alone would need one step
    steps = [("lower", lower), ("classify", network)]
    loud = [text.upper() for text in TEXTS]
    grid = GridSearchCV(Pipeline(steps), {"classify__steps": [1, 30]}, cv=2, error_score="raise")
    grid.fit(loud, LABELS)
    assert grid.best_params_ == {"classify__steps": 30}
    assert grid.score(loud, LABELS) == 1.0
    names = np.array(["bad", "good"])[LABELS]
    scores = cross_val_score(TextClassifier(**SMALL), TEXTS, names, cv=2, error_score="raise")
    assert scores.tolist() == [1.0, 1.0]


def test_a_tagger_learns_and_is_cross_validated(tmp_path):
    model = Tagger(**FAST_TAGGER).fit(WORDS, TAGS)
    predicted = model.predict([*WORDS, []])
    assert predicted[-1] == []
    assert model.score(WORDS, TAGS) == 1.0
    (first,) = model.predict_proba(["the film of Ann"])
    assert model.classes_[first.argmax(1)].tolist() == predicted[0]
    plain = [["D", "N", "P", "N"] for _ in WORDS]
    outputs = cross_val_predict(Tagger(**FAST_TAGGER), [" ".join(w) for w in WORDS], plain, cv=2)
    assert len(outputs) == len(WORDS)
    assert pickle.loads(pickle.dumps(model)).predict(WORDS) == predicted[:-1]


def test_wrong_input_ends_in_one_line():
    for texts, labels, message in (
        (TEXTS, LABELS[:3], r"y of shape \[3\] for 30 texts: expected one label each"),
        (TEXTS, ["x"] * 30, "all texts have the class 'x': at least two are needed"),
        (TEXTS, LABELS + 0.5, "Unknown label type: continuous"),
        ("text", LABELS, "X is a str: expected a list of texts"),
        (pd.DataFrame({"text": TEXTS}), LABELS, "X is a DataFrame: .* such as X"),
        ([1, 2], [0, 1], r"X\[0\] is a int: expected a text"),
        ([], [], "X has no texts"),
        (["a", "b"], [0, 1], "option width: expected"),
    ):
        with pytest.raises(ValueError, match=message):
            TextClassifier(**SMALL | {"width": -1}).fit(texts, labels)
    with pytest.raises(ValueError, match="expected one tag for each word"):
        Tagger().fit([["a", "b"]], [["O"]])
    with pytest.raises(ValueError, match=r"X\[0\]: expected a list of words, or a text"):
        Tagger().fit([5], [["O"]])

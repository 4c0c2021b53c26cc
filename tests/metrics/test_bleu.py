"""BLEU and chrF against sacreBLEU's own corpus scores."""

import numpy as np
import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from regard.metrics import bleu, chrf, measure, metric_value

WORDS = st.sampled_from(["the", "The", "cat", "cats", "sat", "on", "mat", ".", "a,b", "it's"])
SENTENCES = st.lists(WORDS, max_size=9).map(" ".join)
CORPORA = st.lists(st.tuples(SENTENCES, SENTENCES, SENTENCES), min_size=1, max_size=7)


@given(CORPORA, st.booleans())
def test_equals_sacrebleu(corpus, lowercase):
    hypotheses, *references = (list(column) for column in zip(*corpus, strict=True))
    theirs = sacrebleu.corpus_bleu(hypotheses, references, lowercase=lowercase).score
    assert metric_value(bleu(hypotheses, *references, lowercase=lowercase)) == pytest.approx(theirs)
    for word_order in (0, 2):
        metric = CHRF(lowercase=lowercase, word_order=word_order)
        theirs = metric.corpus_score(hypotheses, references).score
        ours = metric_value(
            chrf(hypotheses, *references, lowercase=lowercase, word_order=word_order)
        )
        assert ours == pytest.approx(theirs)


@pytest.mark.parametrize("tokenize", ["13a", "intl", "char", "none", "zh"])
def test_tokenisations(tokenize):
    hypotheses = ["It's a cat—on the mat (again).", "Two cats sat, and that's that!"]
    references = ["It is a cat—on the mat (again).", "Two cats sat; that's that!"]
    theirs = sacrebleu.corpus_bleu(hypotheses, [references], tokenize=tokenize).score
    assert metric_value(bleu(hypotheses, references, tokenize=tokenize)) == pytest.approx(theirs)


def test_signatures_are_sacrebleus():
    hypotheses, references = ["The cat sat on the mat"], ["The cat sat on a mat"]
    metric = BLEU(lowercase=True)
    metric.corpus_score(hypotheses, [references])
    measured = measure(bleu(hypotheses, references, lowercase=True))
    assert measured.name == "BLEU"
    assert measured.signature == str(metric.get_signature())
    assert "case:lc" in measured.signature
    assert "tok:13a" in measured.signature
    metric = CHRF(word_order=2)
    metric.corpus_score(hypotheses, [references, references])
    tally = chrf(hypotheses, references, references, word_order=2)
    assert tally.name == "chrF2++"
    assert tally.signature == str(metric.get_signature())


def test_resampling_statistics_equals_recomputing():
    generator = np.random.default_rng(7)
    words = ["a", "b", "c", "d", "e"]
    references = [" ".join(generator.choice(words, size=k)) for k in generator.integers(1, 13, 31)]
    hypotheses = [" ".join(generator.permutation(line.split())) for line in references]
    tally = bleu(hypotheses, references)
    drawn = generator.integers(0, 31, size=31)
    theirs = sacrebleu.corpus_bleu(
        [hypotheses[i] for i in drawn], [[references[i] for i in drawn]]
    ).score
    assert metric_value(tally[drawn]) == pytest.approx(theirs)


def test_no_sentence_has_no_score():
    assert np.isnan(metric_value(bleu([], [])))
    assert np.isnan(measure(chrf([], [])).low)


def test_wrong_use():
    with pytest.raises(ValueError, match="hypotheses 2, references 1 1"):
        bleu(["a", "b"], ["a"])
    with pytest.raises(ValueError, match="at least one list of references"):
        chrf(["a"])
    with pytest.raises(ValueError, match="did you mean '13a'"):
        bleu(["a"], ["a"], tokenize="13")

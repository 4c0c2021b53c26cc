"""Votes of n-grams as a graph: each n-gram is found in the sorted table by binary search."""

from regard.inference.export.graph import FLOAT, Value
from regard.layers import NaiveBayes, NGramEvidence
from regard.layers.naive_bayes import GAIN


def naive_bayes(layer: NaiveBayes, words: Value, lengths: Value) -> Value:
    """The votes of n-grams, [b, labels]."""
    graph, evidence = words.graph, layer.evidence
    real = graph.range(0, words.size(1)) < lengths.unsqueeze(1)
    words = real.where(words, 0)
    total: Value | None = None
    for order in range(evidence.longest):
        places, found = _find_ngrams(evidence, words, order + 1)
        votes = graph.op("Gather", graph.weight(evidence.table), places, axis=0)
        votes = (votes * found.unsqueeze(2).to(FLOAT)).sum(1)
        votes = votes * graph.weight(layer.weight[order] * GAIN)
        total = votes if total is None else total + votes
    assert total is not None
    words_of_text = lengths.to(FLOAT)
    at_least_one = words_of_text.above(1.0).where(words_of_text, 1.0)
    return total / at_least_one.sqrt().unsqueeze(1)


def _find_ngrams(evidence: NGramEvidence, words: Value, length: int) -> tuple[Value, Value]:
    """The row of the n-gram that ends at each word, by binary search, and whether there is one."""
    graph = words.graph
    nothing = words - words
    keys, whole = nothing, None
    for back in reversed(range(length)):
        before = words
        if back:
            shifted = graph.join([nothing, words], 1)
            # the zeros in front are as long as the text, of which the last `back` are kept
            start = words.size(1) - back
            before = shifted.slice(1, start, words.size(1) + start)
        keys = keys * evidence.vocabulary + before
        known = before.above(evidence.first_word - 1)
        whole = known if whole is None else whole & known
    table = graph.constant(evidence.keys.numpy())
    places = nothing
    step = 1 << (len(evidence.keys).bit_length() - 1)
    while step:
        further = places + step
        inside = further < len(evidence.keys)
        reached = graph.op("Gather", table, inside.where(further, nothing), axis=0)
        places = (inside & (reached <= keys)).where(further, places)
        step //= 2
    assert whole is not None
    return places, whole & graph.op("Equal", graph.op("Gather", table, places, axis=0), keys)

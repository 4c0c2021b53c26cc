"""What French words do to their neighbours: elision and contraction, from right to left."""

from regard.corpora.english_french.phrases import DE, DE_LA, DES, DU, LA, LE, LES, Words, elides

_ELIDED = {"je": "j'", "me": "m'", "te": "t'", "se": "s'", "ne": "n'", "le": "l'", "la": "l'",
           "de": "d'", "que": "qu'"}  # fmt: skip
_CONTRACTED = {("de", LE): "du", ("de", LES): "des", ("à", LE): "au", ("à", LES): "aux"}
_ARTICLE = {LE: "le", LA: "la", LES: "les", DES: "des", DE: "de"}
_INDEFINITE = (DU, DE_LA, DES, DE)


def join(words: Words) -> Words:
    """Surface forms: *de* + *le* is *du* but *de l'* before a vowel, *je* + *aime* is *j' aime*.

    An elided word stays a word of its own, with its apostrophe; a contracted one carries the
    concepts of both its parts.

    >>> [word for word, _ in join([("près", 1), ("de", 1), (LE, 2), ("hôtel", 4)])]
    ['près', 'de', "l'", 'hôtel']
    >>> join([("de", 1), (LE, 2), ("chat", 4)])
    [('du', 3), ('chat', 4)]
    """
    # From right to left, since a word's form depends on the surface form of what follows it, and
    # that may itself be elided or contracted: `surface` is built backwards, its last word follows.
    surface: Words = []
    index = len(words) - 1
    while index >= 0:
        word, concepts = words[index]
        index -= 1
        vowel = bool(surface) and elides(surface[-1][0])
        if word[0] == "<":  # an article, which also depends on the preposition before it
            before = words[index][0] if index >= 0 else ""
            # de + le = du, à + les = aux; but before a vowel le is elided instead: de l' homme.
            if before in ("de", "à") and not (vowel and word is LE):
                if (before, word) in _CONTRACTED:
                    surface.append((_CONTRACTED[before, word], concepts | words[index][1]))
                    index -= 1
                    continue
                # de + des, du or de la is de alone: besoin de pain, besoin d' eau.
                if before == "de" and word in _INDEFINITE:
                    surface.append(("d'" if vowel else "de", concepts | words[index][1]))
                    index -= 1
                    continue
            if word is DU or word is DE_LA:  # partitive: du pain, de la soupe, de l' eau
                if vowel or word is DE_LA:
                    surface.append(("l'" if vowel else "la", concepts))
                    surface.append(("de", concepts))
                else:
                    surface.append(("du", concepts))
                continue
            word = _ARTICLE[word]
        if vowel and word in _ELIDED:
            word = _ELIDED[word]
        surface.append((word, concepts))
    surface.reverse()
    return surface

"""English inflection: plurals, third person, past tense, and *a* or *an*."""

_VOWELS = frozenset("aeiou")


def plural(noun: str) -> str:
    """The regular plural.

    >>> [plural(noun) for noun in ("cat", "box", "cherry", "toy")]
    ['cats', 'boxes', 'cherries', 'toys']
    """
    if noun.endswith("y") and noun[-2] not in _VOWELS:
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "z", "ch", "sh")) else "s")


def third_person(verb: str) -> str:
    """The third person singular of the present.

    >>> [third_person(verb) for verb in ("sleep", "watch", "carry", "go")]
    ['sleeps', 'watches', 'carries', 'goes']
    """
    return verb + "es" if verb.endswith("o") else plural(verb)


def past(verb: str) -> str:
    """The regular past tense (a doubled consonant is the table's business).

    >>> [past(verb) for verb in ("walk", "love", "cry")]
    ['walked', 'loved', 'cried']
    """
    if verb.endswith("e"):
        return verb + "d"
    if verb.endswith("y") and verb[-2] not in _VOWELS:
        return verb[:-1] + "ied"
    return verb + "ed"


def indefinite(following: str) -> str:
    """*a* or *an*, by the sound that follows.

    >>> [indefinite(word) for word in ("cat", "apple", "honest", "useful")]
    ['a', 'an', 'an', 'a']
    """
    if following.startswith(("use", "uni")):
        return "a"
    return "an" if following[0] in _VOWELS or following == "honest" else "a"

"""The bilingual grammar against sentences, translations and alignments written by hand."""

import pytest

from regard.corpora.english_french.clauses import Clause, Described, Place, Quality, There
from regard.corpora.english_french.expressions import HE, NEAR, PRONOUNS, SHE, TIMES, standing_for
from regard.corpora.english_french.lexicon import Name, lexicon
from regard.corpora.english_french.phrases import Both, NounPhrase
from regard.corpora.english_french.sentences import Question, Sentence, translated, words

WORDS = lexicon()
NOUNS = {noun.english: noun for kind in WORDS.nouns.values() for noun in kind}
ADJECTIVES = {adjective.english: adjective for adjective in WORDS.adjectives}
ACTING = {(verb.english, verb.particle): verb for verb in (*WORDS.transitive, *WORDS.oblique)}
DOING = {verb.english: verb for verb in WORDS.intransitive}
GIVING = {verb.english: verb for verb in WORDS.giving}
MODAL = {verb.english: verb for verb in WORDS.modal}
SAYING = {verb.english: verb for verb in WORDS.saying}
ME, YOU, _, _, WE, THEY = PRONOUNS
ANNE, PAUL = Name("Anne", True), Name("Paul", False)


def phrase(text: str, plural: bool = False, owner: NounPhrase | Name | None = None) -> NounPhrase:
    determiner, *adjective, noun = text.split()
    described = ADJECTIVES[adjective[0]] if adjective else None
    return NounPhrase("" if owner else determiner, NOUNS[noun], plural, described, owner)


def verb(text: str) -> tuple[str, str]:
    base, _, particle = text.partition(" ")
    return base, particle


def act(subject, text, object=None, **more) -> Clause:
    return Clause(subject, ACTING[verb(text)], object=object, **more)


def do(subject, text, **more) -> Clause:
    return Clause(subject, DOING[text], **more)


IT_FEMININE = standing_for(True, False, False)
GOLD = [
    (
        do(phrase("the black cat"), "sleep"),
        "The black cat sleeps .",
        "Le chat noir dort .",
        "the-Le black-noir cat-chat sleeps-dort .-.",
    ),
    (
        do(phrase("the beautiful cow", plural=True), "sleep", negation="not"),
        "The beautiful cows do not sleep .",
        "Les belles vaches ne dorment pas .",
        "The-Les beautiful-belles cows-vaches not-ne not-pas sleep-dorment .-.",
    ),
    (
        act(SHE, "eat", phrase("a big apple"), negation="not", tense="past"),
        "She did not eat a big apple .",
        "Elle n' a pas mangé de grande pomme .",
        "She-Elle did-a not-n' not-pas eat-mangé a-de big-grande apple-pomme .-.",
    ),
    (
        act(ME, "eat", IT_FEMININE, negation="never", tense="past"),
        "I never ate it .",
        "Je ne l' ai jamais mangée .",
        "I-Je never-ne never-jamais ate-ai ate-mangée it-l' .-.",
    ),
    (
        act(WE, "see", HE),
        "We see him .",
        "Nous le voyons .",
        "We-Nous see-voyons him-le .-.",
    ),
    (
        act(phrase("the old cat", owner=phrase("the neighbour")), "look for",
            phrase("some old mouse", plural=True), tense="future"),
        "The neighbour 's old cat will look for some old mice .",
        "Le vieux chat du voisin cherchera de vieilles souris .",
        "The-du neighbour-voisin 's-Le 's-du old-vieux cat-chat will-cherchera look-cherchera "
        "for-cherchera some-de old2-vieilles mice-souris .-.",
    ),
    (
        act(ME, "need", phrase("some water")),
        "I need some water .",
        "J' ai besoin d' eau .",
        "I-J' need-ai need-besoin need-d' some-d' water-eau .-.",
    ),
    (
        act(YOU, "talk to", SHE, modal=MODAL["want"]),
        "You want to talk to her .",
        "Vous voulez lui parler .",
        "You-Vous want-voulez to-parler talk-parler to2-lui her-lui .-.",
    ),
    (
        Question(act(phrase("a old man"), "watch",
                     Described(phrase("the apple", plural=True), "object",
                               act(SHE, "eat", tense="past")),
                     tense="past")),
        "Did an old man watch the apples that she ate ?",
        "Est-ce qu' un vieil homme a regardé les pommes qu' elle a mangées ?",
        "Did-Est-ce Did-qu' Did-a an-un old-vieil man-homme watch-regardé the-les apples-pommes "
        "that-qu'2 she-elle ate-a2 ate-mangées ?-?",
    ),
    (
        Question(act(SHE, "eat", modal=MODAL["can"]), "what"),
        "What can she eat ?",
        "Qu' est-ce qu' elle peut manger ?",
        "What-Qu' can-est-ce can-qu'2 can-peut she-elle eat-manger ?-?",
    ),
    (
        Question(act(HE, "wear", phrase("my new coat")), "who"),
        "Who wears my new coat ?",
        "Qui porte mon nouveau manteau ?",
        "Who-Qui wears-porte my-mon new-nouveau coat-manteau ?-?",
    ),
    (
        Sentence((act(ANNE, "buy", phrase("the red apple"), tense="past"),
                  act(ANNE, "eat", IT_FEMININE, tense="past", silent=True)), ("and",)),
        "Anne bought the red apple and ate it .",
        "Anne a acheté la pomme rouge et l' a mangée .",
        "Anne-Anne bought-a bought-acheté the-la red-rouge apple-pomme and-et ate-a2 ate-mangée "
        "it-l' .-.",
    ),
    (
        Sentence((act(PAUL, "hate", phrase("his aunt", plural=True)),
                  Clause(IT_FEMININE, quality=Quality(ADJECTIVES["closed"]))), ("because",)),
        "Paul hates his aunts because it is closed .",
        "Paul déteste ses tantes parce qu' elle est fermée .",
        "Paul-Paul hates-déteste his-ses aunts-tantes because-parce because-qu' it-elle is-est "
        "closed-fermée .-.",
    ),
    (
        do(Both(ANNE, phrase("the queen")), "rest", tense="past"),
        "Anne and the queen rested .",
        "Anne et la reine se sont reposées .",
        "Anne-Anne and-et the-la queen-reine rested-se rested-sont rested-reposées .-.",
    ),
    (
        do(Both(ANNE, PAUL), "arrive", tense="past", places=(Place(NEAR, phrase("the hotel")),)),
        "Anne and Paul arrived near the hotel .",
        "Anne et Paul sont arrivés près de l' hôtel .",
        "Anne-Anne and-et Paul-Paul arrived-sont arrived-arrivés near-près near-de the-l' "
        "hotel-hôtel .-.",
    ),
    (
        Clause(phrase("the girl"), GIVING["give"], object=phrase("this key", plural=True)._replace(
            determiner="these"), receiver=phrase("the man"), tense="past"),
        "The girl gave these keys to the man .",
        "La fille a donné ces clés à l' homme .",
        "The-La girl-fille gave-a gave-donné these-ces keys-clés to-à the2-l' man-homme .-.",
    ),
    (
        Clause(PAUL, GIVING["show"], object=phrase("my watch"), receiver=THEY, negation="not"),
        "Paul does not show my watch to them .",
        "Paul ne leur montre pas ma montre .",
        "Paul-Paul not-ne not-pas show-montre my-ma watch-montre2 to-leur them-leur .-.",
    ),
    (
        There(phrase("a old hero"), negated=True, places=(Place(NEAR, phrase("our castle")),)),
        "There is no old hero near our castle .",
        "Il n' y a pas de vieux héros près de notre château .",
        "There-Il There-y is-a no-n' no-pas no-de old-vieux hero-héros near-près near-de2 "
        "our-notre castle-château .-.",
    ),
    (
        Clause(phrase("this elephant"), quality=Quality(ADJECTIVES["proud"], "as", ANNE),
               tense="past"),
        "This elephant was as proud as Anne .",
        "Cet éléphant était aussi fier qu' Anne .",
        "This-Cet elephant-éléphant was-était as-aussi proud-fier as2-qu' Anne-Anne .-.",
    ),
    (
        Clause(PAUL, SAYING["think"], content=do(phrase("my sister"), "leave", tense="past")),
        "Paul thinks that my sister left .",
        "Paul pense que ma sœur est partie .",
        "Paul-Paul thinks-pense that-que my-ma sister-sœur left-est left-partie .-.",
    ),
    (
        Sentence((act(THEY, "play", phrase("the violin"), frequency=("often", "souvent")),), (),
                 TIMES["present"][2]),
        "Every day , they often play the violin .",
        "Tous les jours , ils jouent souvent du violon .",
        "Every-Tous Every-les day-jours ,-, they-ils often-souvent play-jouent play-du the-du "
        "violin-violon .-.",
    ),
    (
        act(NounPhrase("many", NOUNS["child"], True), "go to", phrase("the museum")),
        "Many children go to the museum .",
        "Beaucoup d' enfants vont au musée .",
        "Many-Beaucoup Many-d' children-enfants go-vont to-au the-au museum-musée .-.",
    ),
]  # fmt: skip


def place(word: str, sentence: list[str]) -> int:
    """The place of a word; ``word2`` is its second occurrence."""
    occurrence = 0
    if word[-1] == "2":
        word, occurrence = word[:-1], 1
    places = [i for i, other in enumerate(sentence) if other.lower() == word.lower()]
    return places[occurrence]


@pytest.mark.parametrize("gold", GOLD, ids=[gold[1] for gold in GOLD])
def test_gold(gold) -> None:
    built, english, french, alignment = gold
    sentence = built if isinstance(built, Sentence | Question) else Sentence((built,))
    made = translated(sentence)
    assert made.source == english
    assert made.target == french
    expected = set()
    for link in alignment.split():
        left, right = link.split("-", 1)
        expected.add((place(left, words(english)), place(right, words(french))))
    assert set(made.links) == expected


def test_modal_participle_does_not_agree() -> None:
    said = act(HE, "see", SHE, modal=MODAL["want"], tense="past")
    assert translated(Sentence((said,))).target == "Il a voulu la voir ."


def test_cannot_is_one_word() -> None:
    made = translated(Sentence((act(HE, "see", SHE, modal=MODAL["can"], negation="not"),)))
    assert (made.source, made.target) == ("He cannot see her .", "Il ne peut pas la voir .")
    assert {(1, 1), (1, 2), (1, 3)} <= set(made.links)


def test_a_clause_that_says_nothing() -> None:
    with pytest.raises(ValueError, match="a verb or a quality"):
        translated(Sentence((Clause(HE),)))

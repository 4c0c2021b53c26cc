"""Random sentences: single clauses, questions, reports, chains of clauses."""

from random import Random

from regard.corpora.english_french.clause_sampling import Clauses
from regard.corpora.english_french.clauses import Clause, Described, Participant, There
from regard.corpora.english_french.expressions import HE, TIMES, standing_for
from regard.corpora.english_french.lexicon import Lexicon, Name
from regard.corpora.english_french.phrase_sampling import Phrases
from regard.corpora.english_french.phrases import NounPhrase, Pronoun
from regard.corpora.english_french.sentences import Question, Sentence

_ASKING = ("where", "why", "when", "how")


class Sentences:
    """Samples sentences; ``rich`` ones have more clauses, owners, relatives and places."""

    def __init__(
        self, words: Lexicon, random: Random, *, testing: bool = False, rich: bool = False
    ) -> None:
        self.phrases = Phrases(words, random, testing=testing, richness=2.0 if rich else 1.0)
        self.clauses = Clauses(self.phrases)
        self.rich = rich
        self.pick, self.chance = self.phrases.pick, self.phrases.chance

    def sentence(self) -> Sentence | Question:
        """One sentence."""
        if self.rich:
            return self._chain(2 if self.chance(0.3) else 3)
        chance = self.phrases.draw()
        if chance < 0.1:
            return self._question()
        if chance < 0.14:
            return Sentence((self.clauses.there(),))
        if chance < 0.19:
            return Sentence((self._report(),))
        if chance < 0.44:
            return self._chain(2)
        said = self.clauses.statement()
        if said.time is None and self.chance(0.08):
            return Sentence((said,), (), self.pick(TIMES[said.tense]))
        return Sentence((said,))

    def _report(self) -> Clause:
        phrases = self.phrases
        verb = self.pick(phrases.words.saying)
        return Clause(phrases.subject(("person",), False), verb, content=self.clauses.statement())

    def _question(self) -> Question:
        clauses = self.clauses
        if self.chance(0.2):
            said = clauses.transitive(HE) if self.chance(0.7) else clauses.intransitive(HE)
            return Question(said._replace(negation="", frequency=None), "who")
        if self.chance(0.2):
            said = clauses.transitive()
            verb = said.verb
            direct = verb is not None and not verb.preposition and not verb.particle
            if direct and not isinstance(said.subject, Described):
                said = said._replace(object=None, negation="", frequency=None, places=(), time=None)
                if "person" not in (verb.objects if verb else ()):
                    return Question(said, "what")
        said = clauses.statement()._replace(negation="", frequency=None)
        if said.quality is None and not said.places and not said.time and self.chance(0.5):
            return Question(said, self.pick(_ASKING))
        return Question(said)

    def _chain(self, length: int) -> Sentence:
        """Clauses joined: a second action on the same object, a reason, or something else."""
        clauses: list[Clause | There] = [self.clauses.statement()]
        conjunctions: list[str] = []
        while len(clauses) < length:
            conjunction, following = self._next(clauses[-1])
            conjunctions.append(conjunction)
            clauses.append(following)
        return Sentence(tuple(clauses), tuple(conjunctions))

    def _next(self, said: Clause | There) -> tuple[str, Clause | There]:
        if isinstance(said, There):
            return "and", self.clauses.statement()
        chance = self.phrases.draw()
        thing = said.object
        if chance < 0.25 and not said.silent:
            following = self.clauses.then(said)
            if following is not None:
                return "and", following
        if chance < 0.5 and isinstance(thing, NounPhrase) and self._only_it(thing, said.subject):
            return "because", self.clauses.about(thing.noun, thing.plural, said.tense)
        if chance < 0.75:
            return self.pick(("because", "but", "so")), self.clauses.statement(_again(said.subject))
        if chance < 0.8:
            return "and", self.clauses.there()
        if said.tense == "future":
            return self.pick(("and", "but")), self.clauses.statement()
        return self.pick(("and", "but", "when", "while")), self.clauses.statement(None, said.tense)

    def _only_it(self, thing: NounPhrase, subject: Participant) -> bool:
        """Whether *it* or *they* can mean the thing alone, and there is something to say of it."""
        described = bool(self.phrases.adjectives[thing.noun.english][0])
        return described and thing.noun.kind != "person" and _people(subject)


def _people(subject: Participant) -> bool:
    """Whether the subject cannot be meant by *it* or *they*."""
    if isinstance(subject, Pronoun):
        return subject.personal and subject.english != "they"
    return isinstance(subject, Name) or (
        isinstance(subject, NounPhrase) and subject.noun.kind == "person" and not subject.plural
    )


def _again(subject: Participant) -> Participant | None:
    """The pronoun for somebody named once, where no other can be meant."""
    match subject:
        case Pronoun():
            return subject if subject.personal else None
        case Name():
            return standing_for(subject.feminine, False, True)
        case NounPhrase() if subject.noun.kind == "person":
            return standing_for(subject.noun.feminine, subject.plural, True)
    return None

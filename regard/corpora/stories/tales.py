"""Running text: short tales in which names, pronouns and things come back, from a grammar of ours.

Every paragraph has a topic to be conditioned on, a hero, a friend and a thing: who looks back
knows which name, pronoun, adjective and number must come next.
"""

from random import Random

from regard.corpora.built_in_corpus import (
    BuiltInCorpus,
    SplitExamples,
    SplitSizes,
    is_held_out,
    sample_distinct,
)
from regard.corpora.english_forms import indefinite, plural
from regard.corpora.stories import story_words
from regard.corpora.stories.story_words import WORLDS
from regard.data.examples import Line

TOPICS = tuple(WORLDS)
SENTENCES = (4, 6)
"""How many sentences a paragraph of training has."""

SENTENCES_TEST = (8, 10)
"""How many sentences a long paragraph of the test has."""


class Tale:
    """One paragraph's people and thing, and the sentences that can be told of them."""

    def __init__(self, random: Random, topic: str, novel: bool) -> None:
        self.random, self.topic = random, topic
        world = WORLDS[topic]
        self.world = world
        woman, other = random.random() < 0.5, random.random() < 0.5
        self.hero = random.choice(story_words.WOMEN if woman else story_words.MEN)
        names = story_words.WOMEN if other else story_words.MEN
        self.friend = random.choice([name for name in names if name != self.hero])
        self.he, self.him, self.his = ("she", "her", "her") if woman else ("he", "him", "his")
        self.friend_he = "she" if other else "he"
        self.role, self.place = random.choice(world.roles), random.choice(world.places)
        self.kin = random.choice(story_words.KIN)
        things = [
            (adjective, thing)
            for adjective in world.adjectives
            for thing in world.things
            if is_held_out(adjective, thing) == novel
        ]
        self.adjective, self.thing = random.choice(things)

    def opening(self) -> str:
        """Who and where."""
        role = f"{indefinite(self.role)} {self.role}"
        return self.random.choice(
            (
                f"{self.hero} was {role} who lived near the {self.place} .",
                f"Near the {self.place} lived {role} called {self.hero} .",
                f"In those days {self.hero} worked as {role} at the {self.place} .",
            )
        )

    def finding(self) -> str:
        """The thing, and the friend."""
        kin = f"{self.his} {self.kin}"
        thing = f"{indefinite(self.adjective)} {self.adjective} {self.thing}"
        return self.random.choice(
            (
                f"One day {self.he} found {thing} and showed it to {self.friend} , {kin} .",
                f"One morning {self.friend} , {kin} , brought {self.him} {thing} .",
                f"{kin.capitalize()} {self.friend} owned {thing} .",
            )
        )

    def _habit(self) -> str:
        often = self.random.choice(("Every morning", "Twice a week", "As always", "In the evening"))
        return f"{often} {self.hero} {self.random.choice(self.world.actions)} ."

    def _weather(self) -> str:
        sign = self.random.choice(self.world.signs)
        action = self.random.choice(self.world.actions)
        return f"{sign.capitalize()} while {self.he} {action} ."

    def _opinion(self) -> str:
        opinion = self.random.choice(story_words.OPINIONS)
        said = self.random.choice(("thought", "said", "believed", "told everybody"))
        return f"{self.friend} {said} that the {self.adjective} {self.thing} was {opinion} ."

    def _mood(self) -> str:
        mood = self.random.choice(story_words.MOODS)
        return f"{self.hero} was {mood} because {self.friend} had touched the {self.thing} ."

    def _together(self) -> str:
        action = self.random.choice(self.world.actions)
        return f"{self.hero} and {self.friend} {action} and talked about the {self.thing} ."

    def _fate(self) -> str:
        fate = self.random.choice(story_words.FATES)
        silent = f"{self.friend_he} never spoke of it again"
        return f"Then {self.friend} {fate} the {self.thing} , and {silent} ."

    def _distance(self) -> str:
        """The verb agrees with a noun that another one has come after."""
        many = self.random.random() < 0.5
        things = self.random.choice(self.world.things)
        place = self.random.choice(self.world.places)
        place = place if many else plural(place)
        subject, was = (plural(things), "were") if many else (things, "was")
        adjective = self.random.choice(story_words.OPINIONS)
        return f"The {subject} that people kept behind the {place} {was} {adjective} too ."

    def closing(self) -> str:
        """How it ends."""
        return self.random.choice(
            (
                f"So {self.hero} kept the {self.adjective} {self.thing} in the {self.place} .",
                f"In the end {self.hero} gave the {self.thing} back to {self.friend} .",
                f"Since that day no {self.role} near the {self.place} has seen the {self.thing} .",
            )
        )

    def paragraph(self, sentences: int) -> str:
        """The whole tale in so many sentences."""
        kinds = (
            self._habit, self._weather, self._opinion, self._mood, self._together, self._fate,
            self._distance,
        )  # fmt: skip
        middle = [tell() for tell in self.random.sample(kinds, sentences - 3)]
        return " ".join([self.opening(), self.finding(), *middle, self.closing()])


def sample_tales(sizes: SplitSizes, seed: int) -> SplitExamples:
    """Paragraphs with their topics; the test has unseen things and, in a third, more sentences."""
    random = Random(f"language {seed}")
    known: set[str] = set()
    seen: set[str] = set()

    def draw(bounds: tuple[int, int], novel: bool) -> Line | None:
        topic = random.choice(TOPICS)
        text = Tale(random, topic, novel).paragraph(random.randint(*bounds))
        return Line(text, topic)

    def test(bounds: tuple[int, int], novel: bool) -> Line | None:
        line = draw(bounds, novel)
        return line if line and known.issuperset(line.text.split()) else None

    for line in sample_distinct(lambda: draw(SENTENCES, False), _text, sizes.train, seen):
        known.update(line.text.split())
        yield "train", line
    for line in sample_distinct(lambda: test(SENTENCES, False), _text, sizes.valid, seen):
        yield "valid", line
    long = sizes.test // 3
    for line in sample_distinct(lambda: test(SENTENCES, True), _text, sizes.test - long, seen):
        yield "test", line
    for line in sample_distinct(lambda: test(SENTENCES_TEST, True), _text, long, seen):
        yield "test", line


def _text(line: Line) -> str:
    return line.text


def _lines(line: Line) -> tuple[str, str]:
    return line.text, f"{line.text}\t{line.condition}"


CORPUS = BuiltInCorpus(
    sample_tales, size=3_000, suffixes=(".txt", ".tsv"), lines=_lines, header="text\ttopic\n"
)

"""The worlds of the running text: who lives there, where, with what."""

from typing import NamedTuple


class World(NamedTuple):
    """The words of one topic; actions are in the past, things in the singular."""

    roles: tuple[str, ...]
    places: tuple[str, ...]
    things: tuple[str, ...]
    adjectives: tuple[str, ...]
    actions: tuple[str, ...]
    signs: tuple[str, ...]


def _list(text: str) -> tuple[str, ...]:
    return tuple(entry.strip() for entry in text.split(","))


WORLDS = {
    "sea": World(
        _list("sailor, fisher, captain, diver, pirate, lighthouse keeper"),
        _list("harbour, island, beach, lighthouse, cliff, old pier, bay"),
        _list("lantern, compass, anchor, shell, map, rope, pearl, net, barrel, telescope"),
        _list("rusty, wet, heavy, salty, golden, broken, strange, green, ancient, white"),
        _list("repaired the boat, watched the waves, counted the gulls, mended the sails, "
              "rowed across the bay, waited for the tide, sang about the wind"),
        _list("the tide rose, the gulls cried, a storm came up, the wind fell, "
              "fog covered the water"),
    ),
    "kitchen": World(
        _list("cook, baker, waiter, pastry chef, dishwasher, innkeeper"),
        _list("kitchen, cellar, market hall, bakery, dining room, herb garden, inn"),
        _list("pan, recipe, spoon, jar, cake, kettle, cup, plate, basket, apron"),
        _list("sweet, hot, copper, spicy, sticky, tiny, delicious, burnt, enormous, blue"),
        _list("baked the bread, peeled the onions, tasted the soup, stirred the sauce, "
              "washed the dishes, lit the oven, rolled out the dough"),
        _list("the oven hummed, the guests arrived, the milk boiled over, steam filled the room, "
              "the bell rang"),
    ),
    "farm": World(
        _list("farmer, shepherd, miller, beekeeper, gardener, blacksmith"),
        _list("barn, orchard, meadow, stable, mill, well, vineyard"),
        _list("bucket, saddle, ladder, egg, pumpkin, plough, bell, hat, wheel, seed"),
        _list("muddy, ripe, wooden, round, striped, dusty, huge, crooked, brown, lucky"),
        _list("fed the horses, milked the cows, picked the apples, cut the hay, "
              "mended the fence, chased the geese, watered the beans"),
        _list("the rooster crowed, the rain stopped, the cows came home, the sun set, "
              "a fox crossed the yard"),
    ),
    "forest": World(
        _list("hunter, woodcutter, hermit, healer, ranger, charcoal burner"),
        _list("forest, clearing, cave, river, hollow oak, ruined tower, swamp"),
        _list("feather, key, crown, mushroom, arrow, stone, mask, flute, candle, mirror"),
        _list("silver, magic, dark, cold, mossy, shining, cursed, small, grey, hidden"),
        _list("gathered the wood, followed the tracks, lit the fire, climbed the oak, "
              "listened to the owls, crossed the stream, searched for berries"),
        _list("an owl called, the leaves fell, a wolf howled, the moon rose, snow began to fall"),
    ),
    "laboratory": World(
        _list("chemist, physicist, inventor, student, astronomer, librarian"),
        _list("laboratory, observatory, library, lecture hall, workshop, archive, museum"),
        _list("microscope, notebook, crystal, battery, prism, magnet, clock, formula, robot, lens"),
        _list("fragile, precise, faulty, expensive, transparent, electric, curious, new, "
              "red, famous"),
        _list("measured the current, cleaned the lenses, wrote the report, mixed the powders, "
              "read the journals, drew the curve, repeated the experiment"),
        _list("the lamp flickered, the phone rang, the needle moved, smoke filled the corridor, "
              "the clock stopped"),
    ),
    "city": World(
        _list("tram driver, florist, detective, tailor, musician, postman"),
        _list("station, square, theatre, bridge, old cinema, arcade, town hall"),
        _list("umbrella, ticket, letter, violin, suitcase, photograph, coat, bicycle, watch, ring"),
        _list("black, stolen, elegant, yellow, lost, cheap, secret, noisy, forgotten, worn"),
        _list("crossed the square, read the paper, fed the pigeons, waited for the tram, "
              "played for the tourists, delivered the letters, swept the pavement"),
        _list("the lights went out, the bells rang, a tram passed, the shops closed, "
              "the rain began"),
    ),
}  # fmt: skip
"""Topics and their words."""

WOMEN = _list("Ada, Beatrice, Clara, Dora, Edith, Frida, Greta, Hannah, Iris, Judith, Lydia, "
              "Mabel, Nora, Olive, Rosalind, Stella, Thelma, Ursula, Viola, Winifred")  # fmt: skip
MEN = _list("Albert, Basil, Conrad, Dexter, Edgar, Ferdinand, Gustav, Horace, Ivor, Jasper, Kurt, "
            "Leopold, Magnus, Ned, Oswald, Percy, Rupert, Silas, Tobias, Walter")  # fmt: skip
KIN = _list("neighbour, cousin, teacher, old friend, rival, apprentice")
OPINIONS = _list("priceless, worthless, beautiful, dangerous, unlucky, useful, ridiculous, rare")
MOODS = _list("proud, tired, worried, happy, surprised, furious, calm, afraid")
FATES = _list("hid, sold, lost, found, painted, cleaned, dropped, weighed")

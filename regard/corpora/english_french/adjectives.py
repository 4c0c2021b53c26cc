"""The adjectives of the bilingual grammar, as ``english french``, by the kinds that they fit.

Irregular forms follow slashes: the feminine, then the masculine before a vowel. Those in
``BEFORE`` stand before the noun in French, all others after it.
"""

_THINGS = "food text garment jewel object vehicle building place instrument opening"

ADJECTIVES = {
    f"animal {_THINGS} crossing": """
        big grand, small petit, beautiful beau/belle/bel, pretty joli, ugly laid, strange étrange,
        magnificent magnifique, dangerous dangereux""",
    f"person animal {_THINGS}": "old vieux/vieille/vieil",
    "person animal": """
        young jeune, happy heureux, sad triste, tired fatigué, strong fort, sick malade, calm calme,
        intelligent intelligent, lazy paresseux, brave courageux, curious curieux, nervous nerveux,
        proud fier, weak faible, shy timide, stupid stupide, cruel cruel, jealous jaloux/jalouse,
        faithful fidèle, hungry affamé, furious furieux, blind aveugle""",
    "person": """
        rich riche, poor pauvre, famous célèbre, honest honnête, polite poli, serious sérieux,
        funny drôle, elegant élégant, generous généreux, sincere sincère, ambitious ambitieux,
        impatient impatient""",
    "animal": "wild sauvage",
    "animal garment object vehicle opening": """
        black noir, white blanc/blanche, grey gris, brown brun""",
    "garment object vehicle opening food": "red rouge, green vert, yellow jaune",
    "garment object vehicle opening": """
        blue bleu, pink rose, purple violet/violette, golden doré""",
    "garment jewel object vehicle building text instrument": """
        new nouveau/nouvelle/nouvel, expensive cher, modern moderne, useful utile, useless inutile,
        precious précieux""",
    "food text": "good bon/bonne, bad mauvais",
    "dish drink": "good bon/bonne, bad mauvais, cold froid, hot chaud",
    "food dish": "fresh frais/fraîche, delicious délicieux, salty salé, bitter amer",
    "food": "ripe mûr, rotten pourri, sweet sucré, raw cru",
    "text": """
        interesting intéressant, boring ennuyeux, difficult difficile, easy facile,
        long long/longue, short court, secret secret/secrète, mysterious mystérieux""",
    "object garment building vehicle": "clean propre, dirty sale",
    "object vehicle": "heavy lourd, light léger, broken cassé, round rond",
    "object garment": "wet mouillé, dry sec/sèche, soft doux/douce",
    "object building place": "empty vide",
    "building place": """
        quiet tranquille, noisy bruyant, dark sombre, cold froid, comfortable confortable""",
    "opening": "open ouvert, closed fermé, narrow étroit, wide large",
    "place crossing": "immense immense, wide large, narrow étroit",
    "vehicle": "fast rapide, slow lent, comfortable confortable",
}
"""English and French adjectives, listed by the kinds of noun that they may describe."""

BEFORE = frozenset(
    {"big", "small", "beautiful", "pretty", "good", "bad", "old", "young", "new", "long"}
)
"""Those that stand before the noun in French too."""

"""The words of the sentiment corpus: what is judged, and in which terms."""

TOPICS = {
    "food": """
        soup, pizza, coffee, dessert, bread, salad, breakfast, dinner, pasta, cake, sauce, curry,
        sandwich, steak, menu, tea, lunch, omelette""",
    "film": """
        film, plot, story, ending, acting, dialogue, soundtrack, script, opening scene, novel, play,
        documentary, concert, show, first chapter, main actor, performance, comedy""",
    "place": """
        room, hotel, view, beach, lobby, pool, bathroom, garden, museum, flat, campsite, terrace,
        bar, neighbourhood, guided tour, balcony, kitchen, parking""",
    "service": """
        service, waiter, staff, manager, driver, receptionist, delivery, guide, teacher, nurse,
        welcome, crew, cashier, helpline, landlord, coach""",
    "device": """
        phone, battery, screen, camera, keyboard, printer, laptop, speaker, charger, bicycle,
        vacuum cleaner, microphone, app, tablet, radio, lamp""",
}
"""What people have opinions about, all in the singular."""

GOOD = {
    "any": """
        great, good, excellent, wonderful, fantastic, lovely, superb, amazing, impressive, pleasant,
        brilliant, perfect, outstanding, splendid, delightful, remarkable""",
    "food": "delicious, tasty, fresh, satisfying, flavourful, mouth-watering",
    "film": "gripping, moving, funny, original, clever, touching",
    "place": "clean, comfortable, charming, peaceful, spacious, cosy",
    "service": "friendly, polite, helpful, efficient, attentive, professional",
    "device": "reliable, sturdy, fast, handy, powerful, elegant",
}
"""Words of praise, by topic."""

BAD = {
    "any": """
        bad, terrible, awful, horrible, disappointing, dreadful, poor, mediocre, annoying,
        unpleasant, ridiculous, lousy, appalling, pathetic, miserable, useless""",
    "food": "bland, stale, greasy, tasteless, soggy, inedible",
    "film": "boring, dull, predictable, clumsy, tedious, silly",
    "place": "dirty, noisy, cramped, gloomy, shabby, smelly",
    "service": "rude, slow, careless, arrogant, unhelpful, chaotic",
    "device": "unreliable, fragile, faulty, heavy, outdated, flimsy",
}
"""Words of blame, by topic."""

WEAK = ("slightly", "somewhat", "a little")
STRONG = ("very", "really", "truly", "absolutely", "extremely")
STRONG_DENIED = ("very", "really", "particularly")
"""How much: with a negator, only some are said."""

NEGATORS = ("not", "never", "hardly", "scarcely", "far from", "anything but", "by no means")
"""Between the verb and the adjective."""

NEGATORS_BEFORE = ("never", "hardly", "scarcely")
"""Before verbs other than *be*."""

FRAMES = (
    ("I would", ("not", "never"), "say that"),
    ("it is", ("not", "hardly"), "true that"),
    ("I could", ("not", "never"), "claim that"),
    ("my friends would", ("not", "never"), "agree that"),
    ("it would", ("not", "hardly"), "be fair to say that"),
)
"""Words around a whole opinion: what comes before a negator, the negators, what comes after."""

FILLERS = """
    in the end, to be honest, all in all, this time, as far as I know, on the whole, in my opinion,
    compared with last year, for the record, at first sight, like every summer, once more,
    from my point of view, as usual"""
"""Openings that say nothing."""

DENIALS = """
    we did not book a table and, I had never been there before and, my sister could not come and,
    nobody knew us and, we had no time to look around and, I did not read the reviews and"""
"""Openings with a negator that denies something else."""

ENDINGS = """
    for a Monday, according to my neighbour, at that price, as my brother says,
    this summer, from start to finish, for a beginner, in every respect, once again"""
"""Closings that say nothing."""

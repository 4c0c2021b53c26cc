"""The verbs of the bilingual grammar, as ``english[/past] french``, by what they take.

``+`` joins an English verb to its particle and a French verb to its preposition; ``se+`` is
reflexive; ``être`` forms its past with être; ``besoin`` stands for the noun of *avoir besoin de*.
"""

_MOVABLE = "food text garment jewel object instrument"
_SEEN = "person animal text garment object vehicle building crossing opening"

INTRANSITIVE = {
    "person animal": """
        sleep/slept dormir, run/ran courir, cry pleurer, fall/fell tomber+être, swim/swam nager,
        arrive arriver+être, walk marcher, jump sauter, eat/ate manger, rest se+reposer,
        die mourir+être, come/came venir+être, leave/left partir+être, suffer souffrir,
        stay rester+être, hide/hid se+cacher, tremble trembler, return revenir+être""",
    "person": """
        sing/sang chanter, dance danser, laugh rire, work travailler, smile sourire, shout crier,
        travel/travelled voyager, dream rêver, lie mentir, hurry se+dépêcher, cough tousser,
        worry s'+inquiéter, complain se+plaindre, relax se+détendre, cook cuisiner,
        hesitate hésiter, think/thought réfléchir, whistle siffler, obey obéir, answer répondre""",
}
"""Verbs without an object, by the kinds of their subject."""

TRANSITIVE = {
    "person animal": {
        "food dish": "eat/ate manger, smell sentir, taste goûter",
        "drink": "drink/drank boire",
        _SEEN: "see/saw voir, look+for chercher, find/found trouver, watch regarder",
        "person animal": """
            follow suivre, love aimer, hear/heard entendre, wait+for attendre, wake/woke réveiller,
            protect protéger, chase poursuivre, bite/bit mordre, avoid éviter""",
        "crossing place": "cross traverser",
        "object": "push pousser, hide/hid cacher, touch toucher, pull tirer",
    },
    "person": {
        _MOVABLE: """
            buy/bought acheter, sell/sold vendre, take/took prendre, choose/chose choisir,
            lose/lost perdre, forget/forgot oublier, steal/stole voler, want vouloir""",
        f"{_MOVABLE} building vehicle": "draw/drew dessiner, photograph photographier",
        "food dish": "prepare préparer, cook cuire, share partager",
        "drink": "order commander, pour verser",
        "text": """
            read/read lire, write/wrote écrire, understand/understood comprendre, copy copier,
            translate traduire, finish finir, tear/tore déchirer""",
        "garment jewel": "wear/wore porter",
        "garment": "wash laver, iron repasser",
        "object vehicle": """
            repair réparer, break/broke casser, clean nettoyer, count compter, move déplacer""",
        "object garment jewel": "throw/threw jeter, receive recevoir",
        "opening": "open ouvrir, close fermer, paint peindre, lock verrouiller",
        "building": "visit visiter, build/built construire, destroy détruire, paint peindre",
        "vehicle": "drive/drove conduire, rent louer",
        "person": """
            help aider, know/knew connaître, meet/met rencontrer, invite inviter, thank remercier,
            greet saluer, listen+to écouter, call appeler, admire admirer, hate détester,
            kiss embrasser, congratulate féliciter, interrupt interrompre""",
        "animal": "feed/fed nourrir, catch/caught attraper, tame apprivoiser, draw/drew dessiner",
        "instrument": "play jouer+de",
    },
}
"""Verbs with an object, by the kinds of their subject and of their object."""

OBLIQUE = {
    "person": """
        talk+to parler+à, answer répondre+à, smile+at sourire+à, obey obéir+à,
        resemble ressembler+à, talk+about parler+de, need avoir+besoin+de, lie+to mentir+à,
        write/wrote+to écrire+à""",
    "object garment jewel food": "need avoir+besoin+de, dream/dreamt+of rêver+de",
    "text": "talk+about parler+de, remember se+souvenir+de",
    "building": "go/went+to aller+à+être, remember se+souvenir+de, return+to retourner+à+être",
    "dish drink": "need avoir+besoin+de",
}
"""What people do to an object that follows a preposition in French, by the object's kinds."""

GIVING = {
    "food object text garment jewel instrument": """
        give/gave donner, show montrer, lend/lent prêter, sell/sold vendre,
        bring/brought apporter""",
    "text": "send/sent envoyer, read/read lire",
}
"""Verbs with an object and a receiver, by the kinds of the object."""

MODAL = """
    can pouvoir, must devoir, want+to vouloir, hope+to espérer, prefer/preferred+to préférer,
    begin/began+to commencer+à, try+to essayer+de, refuse+to refuser+de, hesitate+to hésiter+à,
    forget/forgot+to oublier+de, decide+to décider+de, learn/learnt+to apprendre+à"""
"""Verbs that take another verb."""

SAYING = """
    say/said dire, think/thought penser, know/knew savoir, believe croire, hope espérer"""
"""Verbs that take a clause."""

"""French forms against tables written by hand."""

import pytest

from regard.corpora.english_french import french_forms
from regard.corpora.english_french.elision import join
from regard.corpora.english_french.phrases import DE, DE_LA, DES, DU, LA, LE, LES

CONJUGATED = {
    "manger": ("mange manges mange mangeons mangez mangent", "mangera", "mangé"),
    "commencer": (
        "commence commences commence commençons commencez commencent",
        "commencera",
        "commencé",
    ),
    "acheter": ("achète achètes achète achetons achetez achètent", "achètera", "acheté"),
    "jeter": ("jette jettes jette jetons jetez jettent", "jettera", "jeté"),
    "appeler": ("appelle appelles appelle appelons appelez appellent", "appellera", "appelé"),
    "préférer": ("préfère préfères préfère préférons préférez préfèrent", "préférera", "préféré"),
    "protéger": ("protège protèges protège protégeons protégez protègent", "protégera", "protégé"),
    "nettoyer": ("nettoie nettoies nettoie nettoyons nettoyez nettoient", "nettoiera", "nettoyé"),
    "finir": ("finis finis finit finissons finissez finissent", "finira", "fini"),
    "vendre": ("vends vends vend vendons vendez vendent", "vendra", "vendu"),
    "interrompre": (
        "interromps interromps interrompt interrompons interrompez interrompent",
        "interrompra",
        "interrompu",
    ),
    "construire": (
        "construis construis construit construisons construisez construisent",
        "construira",
        "construit",
    ),
    "être": ("suis es est sommes êtes sont", "sera", "été"),
    "avoir": ("ai as a avons avez ont", "aura", "eu"),
    "aller": ("vais vas va allons allez vont", "ira", "allé"),
    "envoyer": ("envoie envoies envoie envoyons envoyez envoient", "enverra", "envoyé"),
    "boire": ("bois bois boit buvons buvez boivent", "boira", "bu"),
    "venir": ("viens viens vient venons venez viennent", "viendra", "venu"),
    "recevoir": ("reçois reçois reçoit recevons recevez reçoivent", "recevra", "reçu"),
    "connaître": (
        "connais connais connaît connaissons connaissez connaissent",
        "connaîtra",
        "connu",
    ),
}


@pytest.mark.parametrize("infinitive", CONJUGATED)
def test_conjugation(infinitive: str) -> None:
    present, future, participle = CONJUGATED[infinitive]
    verb = french_forms.conjugate(infinitive)
    assert verb.present == tuple(present.split())
    assert verb.future[2] == future
    assert verb.participle == participle


def test_future_endings() -> None:
    assert french_forms.conjugate("voir").future == (
        "verrai", "verras", "verra", "verrons", "verrez", "verront",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("masculine", "feminine"),
    [("vert", "verte"), ("rouge", "rouge"), ("dangereux", "dangereuse"), ("fier", "fière"),
     ("cruel", "cruelle"), ("gris", "grise"), ("fatigué", "fatiguée")],
)  # fmt: skip
def test_feminine(masculine: str, feminine: str) -> None:
    assert french_forms.feminine(masculine) == feminine


@pytest.mark.parametrize(
    ("words", "surface"),
    [
        (["je", "aime", LE, "hiver"], "j' aime l' hiver"),
        (["de", LE, "chat"], "du chat"),
        (["de", LE, "oiseau"], "de l' oiseau"),
        (["de", LA, "porte"], "de la porte"),
        (["de", LA, "école"], "de l' école"),
        (["de", LES, "enfants"], "des enfants"),
        (["à", LE, "roi"], "au roi"),
        (["à", LE, "homme"], "à l' homme"),
        (["à", LES, "amis"], "aux amis"),
        (["à", LA, "reine"], "à la reine"),
        ([LE, "hibou"], "le hibou"),
        (["de", LE, "hibou"], "du hibou"),
        (["de", LES, "hiboux"], "des hiboux"),
        ([DU, "pain"], "du pain"),
        ([DU, "argent"], "de l' argent"),
        ([DE_LA, "eau"], "de l' eau"),
        ([DE_LA, "soupe"], "de la soupe"),
        ([DES, "pommes"], "des pommes"),
        ([DE, "anciens", "livres"], "d' anciens livres"),
        (["besoin", "de", DU, "pain"], "besoin de pain"),
        (["besoin", "de", DE_LA, "eau"], "besoin d' eau"),
        (["besoin", "de", DES, "œufs"], "besoin d' œufs"),
        (["besoin", "de", DE, "petits", "pains"], "besoin de petits pains"),
        (["il", "essaie", "de", "le", "voir"], "il essaie de le voir"),
        (["il", "commence", "à", "les", "voir"], "il commence à les voir"),
        (["il", "ne", "y", "a", "pas"], "il n' y a pas"),
        (["parce", "que", "un", "chat"], "parce qu' un chat"),
        (["elle", "se", "est", "levée"], "elle s' est levée"),
        (["je", "ne", "le", "ai", "pas"], "je ne l' ai pas"),
    ],
)
def test_elision_and_contraction(words: list[str], surface: str) -> None:
    assert " ".join(word for word, _ in join([(word, 1) for word in words])) == surface


def test_a_contracted_word_carries_both_meanings() -> None:
    assert join([("de", 1), (LES, 2), ("rois", 4)]) == [("des", 3), ("rois", 4)]
    assert join([("besoin", 1), ("de", 1), (DE_LA, 2), ("eau", 4)]) == [
        ("besoin", 1), ("d'", 3), ("eau", 4),
    ]  # fmt: skip

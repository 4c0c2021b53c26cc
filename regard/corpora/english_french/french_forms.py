"""French inflection: plurals, feminines and conjugation, by rule where there is one."""

from functools import cache
from typing import NamedTuple

_PRESENT = ("e", "es", "e", "ons", "ez", "ent")
_PRESENT_IR = ("is", "is", "it", "issons", "issez", "issent")
_PRESENT_RE = ("s", "s", "", "ons", "ez", "ent")
_PRESENT_UIRE = ("s", "s", "t", "sons", "sez", "sent")
_FUTURE = ("ai", "as", "a", "ons", "ez", "ont")
_STRONG = (0, 1, 2, 5)

_IRREGULAR = """
aller: vais vas va allons allez vont | allé | ir
apprendre: apprends apprends apprend apprenons apprenez apprennent | appris | apprendr
avoir: ai as a avons avez ont | eu | aur
boire: bois bois boit buvons buvez boivent | bu | boir
comprendre: comprends comprends comprend comprenons comprenez comprennent | compris | comprendr
connaître: connais connais connaît connaissons connaissez connaissent | connu | connaîtr
courir: cours cours court courons courez courent | couru | courr
croire: crois crois croit croyons croyez croient | cru | croir
devoir: dois dois doit devons devez doivent | dû | devr
dire: dis dis dit disons dites disent | dit | dir
dormir: dors dors dort dormons dormez dorment | dormi | dormir
écrire: écris écris écrit écrivons écrivez écrivent | écrit | écrir
envoyer: envoie envoies envoie envoyons envoyez envoient | envoyé | enverr
être: suis es est sommes êtes sont | été | ser
lire: lis lis lit lisons lisez lisent | lu | lir
mentir: mens mens ment mentons mentez mentent | menti | mentir
mourir: meurs meurs meurt mourons mourez meurent | mort | mourr
ouvrir: ouvre ouvres ouvre ouvrons ouvrez ouvrent | ouvert | ouvrir
partir: pars pars part partons partez partent | parti | partir
peindre: peins peins peint peignons peignez peignent | peint | peindr
plaindre: plains plains plaint plaignons plaignez plaignent | plaint | plaindr
poursuivre: poursuis poursuis poursuit poursuivons poursuivez poursuivent | poursuivi | poursuivr
pouvoir: peux peux peut pouvons pouvez peuvent | pu | pourr
prendre: prends prends prend prenons prenez prennent | pris | prendr
recevoir: reçois reçois reçoit recevons recevez reçoivent | reçu | recevr
revenir: reviens reviens revient revenons revenez reviennent | revenu | reviendr
rire: ris ris rit rions riez rient | ri | rir
savoir: sais sais sait savons savez savent | su | saur
sentir: sens sens sent sentons sentez sentent | senti | sentir
souffrir: souffre souffres souffre souffrons souffrez souffrent | souffert | souffrir
sourire: souris souris sourit sourions souriez sourient | souri | sourir
souvenir: souviens souviens souvient souvenons souvenez souviennent | souvenu | souviendr
suivre: suis suis suit suivons suivez suivent | suivi | suivr
venir: viens viens vient venons venez viennent | venu | viendr
voir: vois vois voit voyons voyez voient | vu | verr
vouloir: veux veux veut voulons voulez veulent | voulu | voudr
"""


class Conjugation(NamedTuple):
    """A verb in six persons (je, tu, il, nous, vous, ils) and its two other forms."""

    infinitive: str
    present: tuple[str, ...]
    future: tuple[str, ...]
    participle: str


@cache
def _irregular() -> dict[str, Conjugation]:
    verbs = {}
    for line in _IRREGULAR.strip().splitlines():
        infinitive, forms = line.split(": ")
        present, participle, stem = (part.strip() for part in forms.split("|"))
        verbs[infinitive] = _conjugation(infinitive, present.split(), stem, participle)
    return verbs


def _conjugation(infinitive: str, present: list[str], stem: str, participle: str) -> Conjugation:
    future = tuple(stem + ending for ending in _FUTURE)
    return Conjugation(infinitive, tuple(present), future, participle)


def _strong_stem(infinitive: str) -> str:
    """The stem of an -er verb under stress: achèt-, jett-, protèg-, nettoi-."""
    stem = infinitive[:-2]
    if stem.endswith(("oy", "uy", "ay")):
        return stem[:-1] + "i"
    if infinitive in ("appeler", "jeter"):
        return stem + stem[-1]
    if len(stem) > 1 and stem[-2] in "eé":
        return stem[:-2] + "è" + stem[-1]
    return stem


def _first_group(infinitive: str) -> Conjugation:
    stem, strong = infinitive[:-2], _strong_stem(infinitive)
    soft = {"g": stem + "e", "c": stem[:-1] + "ç"}.get(stem[-1], stem)
    present = [
        (strong if person in _STRONG else soft if person == 3 else stem) + ending
        for person, ending in enumerate(_PRESENT)
    ]
    future_stem = infinitive if stem[-2:-1] == "é" else strong + "er"
    return _conjugation(infinitive, present, future_stem, stem + "é")


def conjugate(infinitive: str) -> Conjugation:
    """All the forms of a verb.

    >>> conjugate("manger").present[3], conjugate("acheter").future[2]
    ('mangeons', 'achètera')
    """
    if infinitive in _irregular():
        return _irregular()[infinitive]
    if infinitive.endswith("er"):
        return _first_group(infinitive)
    stem = infinitive[:-2]
    endings, participle = _PRESENT_RE, "u"
    if infinitive.endswith("ir"):
        endings, participle = _PRESENT_IR, "i"
    elif infinitive.endswith("uire"):
        endings, participle = _PRESENT_UIRE, "t"
    present = [stem + ending for ending in endings]
    if stem.endswith("p"):
        present[2] = stem + "t"
    return _conjugation(infinitive, present, infinitive.removesuffix("e"), stem + participle)


def plural(word: str) -> str:
    """The regular plural of a noun or a masculine adjective.

    >>> [plural(word) for word in ("chat", "souris", "cheval", "gâteau", "noix")]
    ['chats', 'souris', 'chevaux', 'gâteaux', 'noix']
    """
    if word.endswith(("s", "x", "z")):
        return word
    if word.endswith("al"):
        return word[:-2] + "aux"
    return word + ("x" if word.endswith("eau") else "s")


def feminine(adjective: str) -> str:
    """The regular feminine of an adjective.

    >>> [feminine(word) for word in ("petit", "rouge", "heureux", "léger", "cruel", "ancien")]
    ['petite', 'rouge', 'heureuse', 'légère', 'cruelle', 'ancienne']
    """
    for ending, replacement in (("e", "e"), ("eux", "euse"), ("er", "ère"), ("el", "elle")):
        if adjective.endswith(ending):
            return adjective.removesuffix(ending) + replacement
    return adjective + ("ne" if adjective.endswith("ien") else "e")


def agree(participle: str, feminine: bool, plural: bool) -> str:
    """A past participle in gender and number.

    >>> agree("mangé", True, True), agree("pris", False, True), agree("pris", True, False)
    ('mangées', 'pris', 'prise')
    """
    form = participle + "e" if feminine else participle
    return form + "s" if plural and not form.endswith("s") else form

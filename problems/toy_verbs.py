"""The verbs of the toy grammar: English, German and French side by side, and how each inflects.

    base [past] | infinitive [present he-form, past he-form] | infinitive | objects

A regular verb needs its infinitive only. "(up)" is a particle (German: a separable prefix; French:
a fixed noun), "+for" a preposition, "+dat" and "+auf:acc" what a German verb governs.

A verb has six forms a tense, in this order: I, you, he, we, you (several), they.
"""

import re
from typing import NamedTuple

from . import toy_lexicon as lexicon

HE, WE, THEY = 2, 3, 5


class Word(NamedTuple):
    """One verb in one language."""

    infinitive: str
    present: tuple[str, ...]
    past: tuple[str, ...]  # English and German: simple past; French: imparfait
    participle: str = ""  # English: in -ing; French: the past participle
    particle: str = ""
    preposition: str = ""
    case: str = "acc"
    etre: bool = False  # the French compound past takes être
    reflexive: bool = False


class Verb(NamedTuple):
    english: Word
    german: Word
    french: Word
    objects: tuple[lexicon.Noun, ...] = ()


# English ----------------------------------------------------------------------------------------

DOUBLING = {"run", "swim", "get", "put", "forget", "travel"}


def english_word(cell: str) -> Word:
    (base, *past), particle, preposition = parts(cell)
    y = re.search(r"[^aeiou]y$", base)
    if re.search(r"(s|x|ch|sh|o)$", base):
        third = base + "es"
    else:
        third = base[:-1] + "ies" if y else base + "s"
    regular = base + "d" if base.endswith("e") else base[:-1] + "ied" if y else base + "ed"
    stem = base + base[-1] if base in DOUBLING else re.sub(r"(?<!e)e$", "", base)
    return Word(
        infinitive=base,
        present=(base, base, third, base, base, base),
        past=tuple(past or [regular]) * 6,
        participle=stem + "ing",
        particle=particle,
        preposition=preposition,
    )


# German -----------------------------------------------------------------------------------------


def german_word(cell: str) -> Word:
    (infinitive, *given), particle, government = parts(cell)
    *preposition, case = (government or "acc").split(":")
    stem = infinitive.removesuffix("n").removesuffix("e")
    e = "e" if re.search(r"([td]|chn|[^aeiouäöühlrmn][mn])$", stem) else ""
    he, past = given[-2:] or (f"{stem}{e}t", f"{stem}{e}te")
    you = he if he[-2] in "sßzx" else he[:-1] + "st"
    present = (stem + "e", you, he, infinitive, f"{stem}{e}t", infinitive)
    if len(given) > 2:  # all six forms and the past
        *present, past = given
    they = past + "n" if past.endswith("e") else past + "en"
    return Word(
        infinitive=particle + infinitive,
        present=tuple(present),
        past=(past, "", past, they, "", they),
        particle=particle,
        preposition=preposition[0] if preposition else "",
        case=case,
    )


# French -----------------------------------------------------------------------------------------

FRENCH_IRREGULAR = {  # je tu il nous vous ils, participle
    "aller": "vais vas va allons allez vont allé",
    "avoir": "ai as a avons avez ont eu",
    "boire": "bois bois boit buvons buvez boivent bu",
    "comprendre": "comprends comprends comprend comprenons comprenez comprennent compris",
    "connaître": "connais connais connaît connaissons connaissez connaissent connu",
    "courir": "cours cours court courons courez courent couru",
    "croire": "crois crois croit croyons croyez croient cru",
    "devoir": "dois dois doit devons devez doivent dû",
    "dire": "dis dis dit disons dites disent dit",
    "dormir": "dors dors dort dormons dormez dorment dormi",
    "s'endormir": "endors endors endort endormons endormez endorment endormi",
    "écrire": "écris écris écrit écrivons écrivez écrivent écrit",
    "éteindre": "éteins éteins éteint éteignons éteignez éteignent éteint",
    "être": "suis es est sommes êtes sont été",
    "faire": "fais fais fait faisons faites font fait",
    "lire": "lis lis lit lisons lisez lisent lu",
    "mettre": "mets mets met mettons mettez mettent mis",
    "ouvrir": "ouvre ouvres ouvre ouvrons ouvrez ouvrent ouvert",
    "partir": "pars pars part partons partez partent parti",
    "pouvoir": "peux peux peut pouvons pouvez peuvent pu",
    "prendre": "prends prends prend prenons prenez prennent pris",
    "revenir": "reviens reviens revient revenons revenez reviennent revenu",
    "rire": "ris ris rit rions riez rient ri",
    "savoir": "sais sais sait savons savez savent su",
    "suivre": "suis suis suit suivons suivez suivent suivi",
    "traduire": "traduis traduis traduit traduisons traduisez traduisent traduit",
    "voir": "vois vois voit voyons voyez voient vu",
    "vouloir": "veux veux veut voulons voulez veulent voulu",
}
FRENCH_STRESSED = {  # the stem of je, tu, il and ils
    "acheter": "achèt",
    "appeler": "appell",
    "appuyer": "appui",
    "enlever": "enlèv",
    "envoyer": "envoi",
    "espérer": "espèr",
    "nettoyer": "nettoi",
    "se lever": "lèv",
    "préférer": "préfèr",
}
FRENCH_ENDINGS = {  # of regular verbs, by the end of the infinitive
    "er": "e es e ons ez ent é",
    "ir": "is is it issons issez issent i",
    "re": "s s - ons ez ent u",
}
ETRE = {"aller", "venir", "revenir", "arriver", "partir", "rester", "tomber", "entrer"}


def french_word(cell: str) -> Word:
    words, particle, preposition = parts(cell)
    infinitive = " ".join(words)
    bare = re.sub(r"^(se |s')", "", infinitive)
    stem, stressed = bare[:-2], FRENCH_STRESSED.get(infinitive, bare[:-2])
    if infinitive in FRENCH_IRREGULAR:
        *present, participle = FRENCH_IRREGULAR[infinitive].split()
    else:
        endings = [end.strip("-") for end in FRENCH_ENDINGS[bare[-2:]].split()]
        stems = [stressed, stressed, stressed, stem, stem, stressed, stem]
        *present, participle = (a + b for a, b in zip(stems, endings, strict=True))
        if stem.endswith("g"):  # nous mangeons
            present[WE] = stem + "eons"
    root = "ét" if bare == "être" else present[WE].removesuffix("ons")
    short = root.removesuffix("e")  # nous mangions
    return Word(
        infinitive=bare,
        present=tuple(present),
        past=(
            *(root + "ais", root + "ais", root + "ait"),
            *(short + "ions", short + "iez", root + "aient"),
        ),
        participle=participle,
        particle=particle,
        preposition=preposition,
        etre=bare != infinitive or infinitive in ETRE,
        reflexive=bare != infinitive,
    )


# The table --------------------------------------------------------------------------------------


def parts(cell: str) -> tuple[list[str], str, str]:
    """Cut "turn turned (on) +for" into [turn, turned], "on" and "for"."""
    words = cell.split()
    particle = "".join(word.strip("()") for word in words if word.startswith("("))
    government = "".join(word[1:] for word in words if word.startswith("+"))
    return [word for word in words if word[0] not in "(+"], particle, government


def verb(row: list[str]) -> Verb:
    english, german, french, *objects = row
    names = objects[0].split() if objects else []
    return Verb(
        english_word(english),
        german_word(german),
        french_word(french),
        tuple(noun for name in names for noun in getattr(lexicon, name.upper()).values()),
    )


def verbs(table: str) -> tuple[Verb, ...]:
    return tuple(verb(row) for row in lexicon.rows(table))


BE = Verb(
    Word("be", ("am", "are", "is", "are", "are", "are"), ("was", "", "was", "were", "", "were")),
    german_word("sein bin bist ist sind seid sind war"),
    french_word("être"),
)
HAVE = french_word("avoir")
MODALS = {
    "want": verb(["want", "wollen will willst will wollen wollt wollen wollte", "vouloir"]),
    "can": verb(["can", "können kann kannst kann können könnt können konnte", "pouvoir"]),
    "must": verb(["must", "müssen muss musst muss müssen müsst müssen musste", "devoir"]),
    "must not": verb(["must", "dürfen darf darfst darf dürfen dürft dürfen durfte", "devoir"]),
    "going": verb(["go", "werden werde wirst wird werden werdet werden wurde", "aller"]),
}

ON_PEOPLE = verbs("""
    call            | rufen ruft rief (an)      | appeler            | men women relatives names
    invite          | laden lädt lud (ein)      | inviter            | men women relatives names
    visit           | besuchen                  | rendre (visite) +à  | men women relatives names
    help            | helfen hilft half +dat    | aider              | men women children relatives
    thank           | danken +dat               | remercier          | men women names
    follow          | folgen +dat               | suivre             | men women animals
    answer          | antworten +dat            | répondre +à        | men women children relatives
    listen +to      | hören (zu) +dat           | écouter            | men women names relatives
    wait +for       | warten +auf:acc           | attendre           | men women children names
    look +for       | suchen                    | chercher           | men children animals names
    speak spoke +with | sprechen spricht sprach +mit:dat | parler +avec  | men women children names
    think thought +of | denken denkt dachte +an:acc | penser +à         | men women relatives names
    see saw         | sehen sieht sah           | voir               | men women children animals
    save            | retten                    | sauver             | men women children animals
    greet           | grüßen                    | saluer             | men women names relatives
""")
ON_THINGS = verbs("""
    buy bought       | kaufen                     | acheter    | furniture machines luggage garments
    buy bought       | kaufen                     | acheter    | texts tickets snacks meals wines
    sell sold        | verkaufen                  | vendre     | furniture machines luggage garments
    find found       | finden findet fand         | trouver    | luggage valuables tickets texts
    lose lost        | verlieren verliert verlor  | perdre     | luggage valuables tickets money
    look +for        | suchen                     | chercher   | luggage valuables garments tickets
    read read        | lesen liest las            | lire       | texts
    write wrote      | schreiben schreibt schrieb | écrire     | texts
    understand understood | verstehen versteht verstand | comprendre | questions texts
    answer           | beantworten                | répondre +à | questions
    explain          | erklären                   | expliquer  | questions texts
    translate        | übersetzen                 | traduire   | questions texts
    speak spoke +about | sprechen spricht sprach +über:acc | parler +de | texts shows
    dream +of        | träumen +von:dat           | rêver +de  | machines sights
    eat ate          | essen isst aß              | manger     | snacks meals
    prepare          | bereiten (zu)              | préparer   | meals
    drink drank      | trinken trinkt trank       | boire      | drinks wines
    open             | machen (auf)               | ouvrir     | openings
    close            | machen (zu)                | fermer     | openings
    repair           | reparieren                 | réparer    | machines furniture
    clean            | putzen                     | nettoyer   | openings
    wash             | waschen wäscht wusch       | laver      | garments vessels
    fill             | füllen                     | remplir    | vessels
    put put (on)     | ziehen zieht zog (an)      | mettre     | garments
    put put (on)     | setzen (auf)               | mettre     | headwear
    take took (off)  | ziehen zieht zog (aus)     | enlever    | garments
    take took (off)  | setzen (ab)                | enlever    | headwear
    turn (on)        | schalten (ein)             | allumer    | lamps
    turn (off)       | schalten (aus)             | éteindre   | lamps
    light lit        | zünden (an)                | allumer    | flames
    watch            | schauen (an)               | regarder   | shows
    press            | drücken                    | appuyer +sur | buttons
    water            | gießen gießt goss          | arroser    | plants
    take took        | nehmen nimmt nahm          | prendre    | vehicles
    miss             | verpassen                  | rater      | vehicles
    visit            | besichtigen                | visiter    | sights
    leave left       | verlassen verlässt verließ | quitter    | sights rooms
    save             | sparen                     | économiser | money
    spend spent      | geben gibt gab (aus)       | dépenser   | money
    spend spent      | verbringen verbringt verbrachte | passer | periods
""")
GIVING = verbs("""
    give gave       | geben gibt gab            | donner    | texts snacks valuables tickets money
    show showed     | zeigen                    | montrer   | texts tickets garments luggage
    send sent       | schicken                  | envoyer   | texts tickets money luggage
    bring brought   | bringen bringt brachte    | apporter  | texts snacks vessels drinks luggage
    explain         | erklären                  | expliquer  | questions
    lend lent       | leihen leiht lieh         | prêter    | texts luggage machines money
""")
ALONE = verbs("""
    sleep slept      | schlafen schläft schlief   | dormir
    work             | arbeiten                   | travailler
    laugh            | lachen                     | rire
    cry              | weinen                     | pleurer
    dance            | tanzen                     | danser
    sing sang        | singen singt sang          | chanter
    wait             | warten                     | attendre
    run ran          | rennen rennt rannte        | courir
    get got (up)     | stehen steht stand (auf)   | se lever
    wake woke (up)   | wachen (auf)               | se réveiller
    fall fell (asleep) | schlafen schläft schlief (ein) | s'endormir
""")
OF_ANIMALS = verbs("""
    sleep slept      | schlafen schläft schlief   | dormir
    run ran          | rennen rennt rannte        | courir
    wait             | warten                     | attendre
    play             | spielen                    | jouer
    wake woke (up)   | wachen (auf)               | se réveiller
""")
OF_MACHINES = verbs("""
    run ran          | laufen läuft lief          | fonctionner
""")
OF_VEHICLES = verbs("""
    arrive           | kommen kommt kam (an)      | arriver
    leave left       | fahren fährt fuhr (ab)     | partir
""")
MOTION = verbs("""
    go went          | gehen geht ging            | aller
    run ran          | rennen rennt rannte        | courir
    come came (back) | kommen kommt kam (zurück)  | revenir
""")
JOURNEYS = verbs("""
    travel travelled | reisen                     | voyager
    drive drove      | fahren fährt fuhr          | aller
    come came (back) | kommen kommt kam (zurück)  | revenir
""")
KNOWING = verbs("""
    know knew        | wissen weiß weißt weiß wissen wisst wissen wusste | savoir
    believe          | glauben                    | croire
    hope             | hoffen                     | espérer
    say said         | sagen                      | dire
""")
ASKING = verbs("""
    ask              | fragen                     | demander
""")
KNOWN = verbs("""
    know knew        | kennen kennt kannte        | connaître  | men women children relatives names
    know knew        | kennen kennt kannte        | connaître  | sights texts
    love             | lieben                     | aimer      | relatives animals texts wines
""")


def chains(table: str) -> tuple[tuple[Verb, Verb, tuple[lexicon.Noun, ...]], ...]:
    """Read "buy | eat | snacks": two verbs of things, by their English, and what both may take."""
    entries = []
    for first, then, names in lexicon.rows(table):
        for name in names.split():
            nouns = tuple(getattr(lexicon, name.upper()).values())
            entries.append((taking(first, nouns[0]), taking(then, nouns[0]), nouns))
    return tuple(entries)


def taking(base: str, noun: lexicon.Noun) -> Verb:
    """Find the verb; where none is listed with this noun, the first of that name."""
    named = [verb for verb in ON_THINGS + GIVING if verb.english.infinitive == base]
    return next((verb for verb in named if noun in verb.objects), named[0])

"""The words of the toy grammar: English, German and French side by side, and how each inflects.

Every table is text, one word a line, its cells divided by bars:

    nouns        singular plural | gender singular plural | gender singular plural
                 ("-": no such form, as in trousers, Hose, pantalon; "m*": a weak German noun)
    adjectives   english | german [stem before endings] | masculine [feminine] [before a vowel] [<]
                 ("<": the French adjective precedes its noun; "(faim)": French says avoir faim)

An English word with two readings stands in two rows; the words that it goes with decide which.
"""

from collections.abc import Iterator
from typing import NamedTuple


def rows(table: str) -> Iterator[list[str]]:
    """Cut "a b | c\\nd | e" into [["a b", "c"], ["d", "e"]]."""
    for line in table.strip().splitlines():
        yield [cell.strip() for cell in line.split("|")]


# Adjectives -------------------------------------------------------------------------------------


class Adjective(NamedTuple):
    english: str
    german: str
    german_stem: str
    french: tuple[str, str]  # masculine, feminine
    french_before_vowel: str  # bel, vieil, nouvel: masculine singular
    precedes: bool
    avoir: bool  # "il a faim", not "il est faim"


def adjectives(table: str) -> dict[str, Adjective]:
    """Read an adjective table; the key is the English word, with "/sense" where it has two."""
    entries = {}
    for key, german, french in rows(table):
        forms, stems = [f for f in french.split() if f != "<"], german.split()
        masculine = forms[0].strip("()")
        default = masculine if masculine.endswith("e") else masculine + "e"
        entries[key] = Adjective(
            english=key.split("/")[0],
            german=stems[0],
            german_stem=stems[-1],
            french=(masculine, forms[1] if len(forms) > 1 else default),
            french_before_vowel=forms[2] if len(forms) > 2 else masculine,
            precedes=french.endswith("<"),
            avoir=french.startswith("("),
        )
    return entries


ADJECTIVES = adjectives("""
    young            | jung         | jeune <
    old              | alt          | vieux vieille vieil <
    new              | neu          | nouveau nouvelle nouvel <
    beautiful        | schön        | beau belle bel <
    pretty           | hübsch       | joli <
    small            | klein        | petit <
    big              | groß         | grand <
    good             | gut          | bon bonne <
    long             | lang         | long longue <
    bad              | schlecht     | mauvais <
    rich             | reich        | riche
    famous           | berühmt      | célèbre
    friendly         | freundlich   | aimable
    curious          | neugierig    | curieux curieuse
    strong           | stark        | fort
    French           | französisch  | français
    German           | deutsch      | allemand
    English          | englisch     | anglais
    Italian          | italienisch  | italien italienne
    red              | rot          | rouge
    blue             | blau         | bleu
    green            | grün         | vert
    white            | weiß         | blanc blanche
    black            | schwarz      | noir
    brown            | braun        | brun
    modern           | modern       | moderne
    heavy            | schwer       | lourd
    light/weight     | leicht       | léger légère
    light/colour     | hell         | clair
    hard/firm        | hart         | dur
    hard/difficult   | schwierig    | difficile
    short/person     | klein        | petit <
    short/text       | kurz         | court
    free/unoccupied  | frei         | libre
    free/gratis      | kostenlos    | gratuit
    expensive        | teuer teur   | cher chère
    comfortable      | bequem       | confortable
    broken           | kaputt       | cassé
    dirty            | schmutzig    | sale
    interesting      | interessant  | intéressant
    important        | wichtig      | important
    funny            | lustig       | drôle
    fresh            | frisch       | frais fraîche
    hot              | heiß         | chaud
    cold             | kalt         | froid
    delicious        | köstlich     | délicieux délicieuse
    quiet            | ruhig        | tranquille
    wild             | wild         | sauvage
    tired            | müde müd     | fatigué
    ill              | krank        | malade
    happy            | glücklich    | heureux heureuse
    sad              | traurig      | triste
    alone            | allein       | seul
    hungry           | hungrig      | (faim)
    thirsty          | durstig      | (soif)
""")


# Nouns ------------------------------------------------------------------------------------------


class Forms(NamedTuple):
    gender: str  # "m", "f" or "n"; English nouns do without
    weak: bool
    singular: str  # "" where the word has no singular, as plural where it has no plural
    plural: str


class Noun(NamedTuple):
    english: Forms
    german: Forms
    french: Forms
    adjectives: tuple[Adjective, ...] = ()
    before: tuple[Adjective, ...] = ()  # those that French puts before the noun
    after: tuple[Adjective, ...] = ()
    at: tuple[str, ...] = ()  # a place's prepositions in the three languages, "in in:dat dans"
    to: tuple[str, ...] = ()


def forms(cell: str) -> Forms:
    *gender, singular, plural = ("" if word == "-" else word for word in cell.split())
    mark = gender[0] if gender else ""
    return Forms(mark[:1], mark.endswith("*"), singular, plural)


def nouns(table: str, fitting: str = "") -> dict[str, Noun]:
    """Read a noun table; `fitting` names the adjectives that may stand before these nouns."""
    chosen = tuple(ADJECTIVES[key] for key in fitting.split())
    before = tuple(adjective for adjective in chosen if adjective.precedes)
    after = tuple(adjective for adjective in chosen if not adjective.precedes)
    entries = {}
    for english, german, french, *prepositions in rows(table):
        at, to = (tuple(cell.split()) for cell in prepositions or ("", ""))
        noun = Noun(forms(english), forms(german), forms(french), chosen, before, after, at, to)
        entries[noun.english.singular or noun.english.plural] = noun
    return entries


MEN = nouns(
    """
    man men                | m Mann Männer          | m homme hommes
    teacher teachers       | m Lehrer Lehrer        | m professeur professeurs
    doctor doctors         | m Arzt Ärzte           | m médecin médecins
    student students       | m* Student Studenten   | m étudiant étudiants
    neighbour neighbours   | m* Nachbar Nachbarn    | m voisin voisins
    guest guests           | m Gast Gäste           | m invité invités
    farmer farmers         | m* Bauer Bauern        | m agriculteur agriculteurs
    baker bakers           | m Bäcker Bäcker        | m boulanger boulangers
    waiter waiters         | m Kellner Kellner      | m serveur serveurs
    king kings             | m König Könige         | m roi rois
    painter painters       | m Maler Maler          | m peintre peintres
    policeman policemen    | m* Polizist Polizisten | m policier policiers
    tourist tourists       | m* Tourist Touristen   | m touriste touristes
    """,
    "young old friendly curious famous short/person rich strong French German English Italian",
)
WOMEN = nouns(
    """
    woman women            | f Frau Frauen                           | f femme femmes
    waitress waitresses    | f Kellnerin Kellnerinnen                | f serveuse serveuses
    queen queens           | f Königin Königinnen                    | f reine reines
    actress actresses      | f Schauspielerin Schauspielerinnen      | f actrice actrices
    nurse nurses           | f Krankenschwester Krankenschwestern    | f infirmière infirmières
    """,
    "young old pretty friendly curious famous short/person rich French German English Italian",
)
CHILDREN = nouns(
    """
    child children         | n Kind Kinder          | m enfant enfants
    boy boys               | m* Junge Jungen        | m garçon garçons
    girl girls             | n Mädchen Mädchen      | f fille filles
    """,
    "small friendly curious French German",
)
RELATIVES = nouns("""
    mother -               | f Mutter -             | f mère -
    father -               | m Vater -              | m père -
    sister sisters         | f Schwester Schwestern | f sœur sœurs
    brother brothers       | m Bruder Brüder        | m frère frères
    aunt aunts             | f Tante Tanten         | f tante tantes
    uncle uncles           | m Onkel Onkel          | m oncle oncles
    son sons               | m Sohn Söhne           | m fils fils
""")
NAMES = nouns("""
    Anna -                 | f Anna -               | f Anna -
    Emma -                 | f Emma -               | f Emma -
    Julia -                | f Julia -              | f Julia -
    Paul -                 | m Paul -               | m Paul -
    Thomas -               | m Thomas -             | m Thomas -
    Martin -               | m Martin -             | m Martin -
""")
ANIMALS = nouns(
    """
    dog dogs               | m Hund Hunde           | m chien chiens
    cat cats               | f Katze Katzen         | m chat chats
    horse horses           | n Pferd Pferde         | m cheval chevaux
    bird birds             | m Vogel Vögel          | m oiseau oiseaux
    cow cows               | f Kuh Kühe             | f vache vaches
    mouse mice             | f Maus Mäuse           | f souris souris
    duck ducks             | f Ente Enten           | m canard canards
    monkey monkeys         | m* Affe Affen          | m singe singes
    """,
    "young old small big beautiful black white brown wild",
)
FURNITURE = nouns(
    """
    table tables           | m Tisch Tische         | f table tables
    chair chairs           | m Stuhl Stühle         | f chaise chaises
    bed beds               | n Bett Betten          | m lit lits
    mirror mirrors         | m Spiegel Spiegel      | m miroir miroirs
    """,
    "old new beautiful small big hard/firm modern white expensive heavy",
)
MACHINES = nouns(
    """
    car cars               | n Auto Autos           | f voiture voitures
    clock clocks           | f Uhr Uhren            | f horloge horloges
    computer computers     | m Computer Computer    | m ordinateur ordinateurs
    machine machines       | f Maschine Maschinen   | f machine machines
    """,
    "old new beautiful small big modern black white expensive German heavy",
)
LUGGAGE = nouns(
    """
    bag bags               | f Tasche Taschen           | m sac sacs
    suitcase suitcases     | m Koffer Koffer            | f valise valises
    umbrella umbrellas     | m Regenschirm Regenschirme | m parapluie parapluies
    """,
    "old new beautiful small big red blue green black light/weight heavy",
)
VALUABLES = nouns(
    """
    key keys               | m Schlüssel Schlüssel  | f clé clés
    ring rings             | m Ring Ringe           | f bague bagues
    """,
    "old new small big beautiful heavy",
)
GARMENTS = nouns(
    """
    coat coats             | m Mantel Mäntel        | m manteau manteaux
    dress dresses          | n Kleid Kleider        | f robe robes
    shirt shirts           | n Hemd Hemden          | f chemise chemises
    shoe shoes             | m Schuh Schuhe         | f chaussure chaussures
    - trousers             | f Hose -               | m pantalon -
    """,
    "old new beautiful red blue green white black expensive dirty comfortable",
)
HEADWEAR = nouns(
    """
    hat hats               | m Hut Hüte             | m chapeau chapeaux
    - glasses              | f Brille -             | f - lunettes
    """,
    "old new beautiful red blue black expensive",
)
VESSELS = nouns(
    """
    glass glasses          | n Glas Gläser          | m verre verres
    bottle bottles         | f Flasche Flaschen     | f bouteille bouteilles
    """,
    "small big beautiful dirty",
)
TEXTS = nouns(
    """
    book books             | n Buch Bücher             | m livre livres
    letter letters         | m Brief Briefe            | f lettre lettres
    newspaper newspapers   | f Zeitung Zeitungen       | m journal journaux
    story stories          | f Geschichte Geschichten  | f histoire histoires
    poem poems             | n Gedicht Gedichte        | m poème poèmes
    """,
    "new old beautiful long short/text interesting important funny French German Italian",
)
QUESTIONS = nouns(
    """
    question questions     | f Frage Fragen         | f question questions
    exercise exercises     | f Übung Übungen        | m exercice exercices
    sentence sentences     | m Satz Sätze           | f phrase phrases
    """,
    "new long short/text hard/difficult interesting important",
)
TICKETS = nouns(
    """
    ticket tickets         | f Karte Karten         | m billet billets
    map maps               | m Stadtplan Stadtpläne | m plan plans
    """,
    "new old free/gratis expensive",
)
SNACKS = nouns(
    """
    apple apples           | m Apfel Äpfel          | f pomme pommes
    pear pears             | f Birne Birnen         | f poire poires
    orange oranges         | f Orange Orangen       | f orange oranges
    cake cakes             | m Kuchen Kuchen        | m gâteau gâteaux
    egg eggs               | n Ei Eier              | m œuf œufs
    """,
    "fresh good big small delicious",
)
MEALS = nouns(
    """
    bread -                | n Brot -               | m pain -
    cheese -               | m Käse -               | m fromage -
    soup -                 | f Suppe -              | f soupe -
    meat -                 | n Fleisch -            | f viande -
    rice -                 | m Reis -               | m riz -
    """,
    "cold hot good delicious",
)
DRINKS = nouns(
    """
    water -                | n Wasser -             | f eau -
    milk -                 | f Milch -              | m lait -
    coffee -               | m Kaffee -             | m café -
    tea -                  | m Tee -                | m thé -
    """,
    "cold hot good",
)
WINES = nouns(
    """
    wine -                 | m Wein -               | m vin -
    beer -                 | n Bier -               | f bière -
    """,
    "cold good expensive French German Italian",
)
OPENINGS = nouns(
    """
    door doors             | f Tür Türen            | f porte portes
    window windows         | n Fenster Fenster      | f fenêtre fenêtres
    box boxes              | f Kiste Kisten         | f boîte boîtes
    """,
    "old new small big green white heavy",
)
LAMPS = nouns(
    """
    light lights           | n Licht Lichter        | f lumière lumières
    lamp lamps             | f Lampe Lampen         | f lampe lampes
    radio radios           | n Radio Radios         | f radio radios
    """,
    "new small",
)
FLAMES = nouns("""
    match matches          | n Streichholz Streichhölzer | f allumette allumettes
    candle candles         | f Kerze Kerzen              | f bougie bougies
""")
SHOWS = nouns(
    """
    match matches          | n Spiel Spiele         | m match matchs
    film films             | m Film Filme           | m film films
    """,
    "new long interesting important",
)
BUTTONS = nouns(
    """
    key keys               | f Taste Tasten         | f touche touches
    button buttons         | m Knopf Knöpfe         | m bouton boutons
    """,
    "small big red green white black",
)
PLANTS = nouns(
    """
    plant plants           | f Pflanze Pflanzen     | f plante plantes
    flower flowers         | f Blume Blumen         | f fleur fleurs
    tree trees             | m Baum Bäume           | m arbre arbres
    """,
    "young small big beautiful",
)
MONEY = nouns("""
    money -                | n Geld -               | m argent -
""")
PERIODS = nouns("""
    evening evenings       | m Abend Abende           | f soirée soirées
    weekend weekends       | n Wochenende Wochenenden | m week-end week-ends
    summer summers         | m Sommer Sommer          | m été étés
""")
VEHICLES = nouns("""
    bus buses              | m Bus Busse            | m bus bus
    train trains           | m Zug Züge             | m train trains
""")
ROOMS = nouns(
    """
    kitchen kitchens  | f Küche Küchen     | f cuisine cuisines | in in:dat dans | into in:acc dans
    office offices    | n Büro Büros       | m bureau bureaux   | in in:dat dans | into in:acc dans
    garage garages    | f Garage Garagen   | m garage garages   | in in:dat dans | into in:acc dans
    """,
    "small big new old light/colour quiet modern",
)
OUTDOORS = nouns(
    """
    garden gardens    | m Garten Gärten   | m jardin jardins   | in in:dat dans | into in:acc dans
    park parks        | m Park Parks      | m parc parcs       | in in:dat dans | into in:acc dans
    forest forests    | m Wald Wälder     | f forêt forêts     | in in:dat dans | into in:acc dans
    village villages  | n Dorf Dörfer     | m village villages | in in:dat dans | to in:acc à
    beach beaches     | m Strand Strände  | f plage plages     | on an:dat sur  | to an:acc à
    bank banks        | n Ufer Ufer       | f rive rives       | on an:dat sur  | - - -
    bridge bridges    | f Brücke Brücken  | m pont ponts       | on auf:dat sur | onto auf:acc sur
    spring springs    | f Quelle Quellen  | f source sources   | at an:dat à    | to zu:dat à
    """,
    "small big beautiful quiet",
)
SIGHTS = nouns(
    """
    museum museums    | n Museum Museen      | m musée musées     | in in:dat à    | to in:acc à
    church churches   | f Kirche Kirchen     | f église églises   | in in:dat dans | to in:acc à
    castle castles    | n Schloss Schlösser  | m château châteaux | in in:dat dans | to zu:dat à
    """,
    "old small big beautiful famous quiet",
)
INSTITUTIONS = nouns(
    """
    school schools | f Schule Schulen | f école écoles | at in:dat à | to in:acc à
    hospital hospitals|n Krankenhaus Krankenhäuser|m hôpital hôpitaux|in in:dat à | to in:acc à
    theatre theatres | n Theater Theater | m théâtre théâtres | in in:dat à | to in:acc à
    station stations | m Bahnhof Bahnhöfe | f gare gares | at an:dat à | to zu:dat à
    market markets | m Markt Märkte | m marché marchés | at auf:dat à | to auf:acc à
    bank banks | f Bank Banken | f banque banques | at in:dat à | to zu:dat à
    plant plants | n Werk Werke | f usine usines | at in:dat à | to zu:dat à
    """,
    "old new small big modern",
)
CITIES = nouns("""
    Paris -     | n Paris -        | m Paris -     | in in:dat à  | to nach:dat à
    Berlin -    | n Berlin -       | m Berlin -    | in in:dat à  | to nach:dat à
    London -    | n London -       | m Londres -   | in in:dat à  | to nach:dat à
    Vienna -    | n Wien -         | f Vienne -    | in in:dat à  | to nach:dat à
    France -    | n Frankreich -   | f France -    | in in:dat en | to nach:dat en
    Germany -   | n Deutschland -  | f Allemagne - | in in:dat en | to nach:dat en
    Italy -     | n Italien -      | f Italie -    | in in:dat en | to nach:dat en
""")

"""Languages of texts: frequent function words, detection by them, and the stems of words.

A language is one of those below, each of which has a Snowball stemmer. Detection counts function words: they
are a third of a running text, and a title of ten words has two or three. It needs no model and no data.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import Stemmer

Array = np.ndarray

MIN_SHARE = 0.01  # of the recognized texts that a language has; fewer are mistakes of the detection

# Function words of two letters or more by language: articles, prepositions, pronouns, conjunctions and
# auxiliary verbs. They are what detection counts, and the stop words that an analyzer can leave out.
_FUNCTION_WORDS = {
    "catalan": """
        els les una uns unes del dels al als amb per sense sobre entre fins des que qui com quan on però
        doncs perquè si no més molt també ja seu seva seus seves aquest aquesta aquests aquestes això és
        són era eren ser estar ha han hi ho ens em et va
    """,
    "danish": """
        og af at den det de en et er for fra han hun har havde hvad hvor hvem hvis ikke jeg jer kan med
        men mod meget mellem min mit man nogle nu når også om op over på sig sin sine skal som til ud
        under var ved vi vil være blev bliver deres efter eller dette disse dem der
    """,
    "dutch": """
        de het een en van in is dat die te op aan met voor er om zijn als dan maar door over bij tot uit
        ook naar heeft hebben had werd worden wordt niet geen wat wie deze dit zij hij wij ik je haar
        hun mijn onze nog wel zo onder tegen tussen omdat of al kan zal zou moet
    """,
    "english": """
        the of and to in is that it for was on are as with his they at be this from have or by one had
        not but what all were when we there can an your which their if will each about how up out them
        then she many some so these would other into has more her him could no than been its who now did
        he you my do me our us between under over after before through during against because while
        where those such only own same both any very should may must upon also being does
    """,
    "finnish": """
        ja on ei se että kun oli mutta niin kuin myös sekä ovat ole olla hän ne tai jos mitä mikä missä
        siitä sen sitä tämä tätä tässä nämä joka jotka jonka jossa jota hänen minä sinä me te he minun
        sinun ollut vain jo nyt vielä kanssa mukaan ilman ennen jälkeen kautta välillä vuoksi eli sillä
        eivät olisi voi aina kaikki
    """,
    "french": """
        le la les de des du un une et est en dans que qui par pour sur avec sans sous pas ne au aux ce
        cette ces il elle ils elles nous vous je tu on se sa son ses leur leurs mon ma mes notre nos
        votre vos ou où mais donc car si comme plus entre chez vers depuis été être avoir était sont ont
        fait même tout toute tous toutes
    """,
    "german": """
        der die das den dem des und in zu mit von auf für ist im nicht ein eine einer eines einem einen
        als auch es an werden aus er hat dass sie nach wird bei um am sind noch wie über so zum zur kann
        durch wenn man aber vor bis mehr sein seine seiner ihr ihre ihrer ich du wir unter zwischen
        gegen ohne oder war waren wurde wurden haben hatte sich vom beim nur schon diese dieser dieses
    """,
    "hungarian": """
        az és hogy nem is egy ez van de meg ha csak már mint vagy el még volt azt ki ami aki sem minden
        után által között majd pedig mert lehet ezt akkor így úgy amely amelyek szerint alatt ellen
        mellett nagyon kell voltak lesz való illetve mely azok ezek ők én te mi ti neki
    """,
    "indonesian": """
        yang dan di dari untuk dengan pada ini itu dalam adalah tidak akan oleh sebagai juga atau ke
        karena telah dapat ada tersebut lebih bagi antara sudah saya kami kita mereka dia ia anda hanya
        tetapi sangat bisa harus para terhadap secara
    """,
    "italian": """
        il lo la gli le di del dello della dei degli delle un uno una che in nel nella nei nelle con su
        sul sulla per tra fra da dal dalla dai dalle al alla ai alle non si come più ma anche se sono
        era essere ha hanno questo questa questi queste suo sua suoi sue loro mio mia nostro io tu lui
        lei noi voi ed dove quando perché
    """,
    "norwegian": """
        og av at den det de en et ei er for fra han hun har hadde hva hvor hvem hvis ikke jeg kan med
        men mot meget mellom min mitt man noen nå når også om opp over på seg sin sine skal som til ut
        under var ved vi vil være ble blir deres etter eller dette disse dem der bli blitt mye
    """,
    "portuguese": """
        os as um uma uns umas de do da dos das em no na nos nas ao aos às por pelo pela pelos pelas para
        com sem sobre entre que não se como mais mas também ou são era foi ser estar seu sua seus suas
        meu minha ele ela eles elas nós este esta estes estas isto esse essa isso aquele aquela quando
        onde muito já até
    """,
    "romanian": """
        și în de la cu pe din pentru este sunt un unei unui nu că ce care mai sau dar fi fost era au ai
        se își lui lor ei el ea noi voi eu tu prin după până între fără sub asupra această acest aceste
        acestea acesta cel cea cei cele al ale când unde cum foarte despre spre dintre
    """,
    "russian": """
        во не что он на со как то все она так его но да ты же вы за бы по только ее мне было вот от меня
        еще нет из ему теперь когда даже ну ли если уже или ни быть был него до вас опять уж вам ведь
        там потом себя ничего ей может они тут где есть надо ней для мы тебя их чем была сам чтоб без
        при под об это этого этой между
    """,
    "spanish": """
        el la los las un una unos unas de del al en con por para sin sobre entre que no se es como más
        pero también su sus lo le les ya si este esta estos estas esto ese esa eso aquel muy fue son era
        eran ser estar ha han hay yo tú él ella ellos ellas nosotros mi tu nuestro nuestra cuando donde
        desde hasta porque todo todos toda todas durante según
    """,
    "swedish": """
        och att det som en ett på är av för med den till inte om har de han hon jag var men vi kan från
        vid så när nu sig sin sina sitt hans hennes deras eller hade skulle under efter över mellan mot
        utan också bara mycket denna detta dessa dem där här vad vem hur ska skall blev bli blir vara
        varit alla andra man ut upp genom hos
    """,
    "turkish": """
        ve bir bu da de için ile olarak çok daha gibi olan kadar sonra ne var ya ama en ben sen biz siz
        onlar şu her ki değil veya ise göre önce üzerinde arasında tarafından hem mi mu olduğu oldu eden
        bunu onun bütün
    """,
}
# The languages of Snowball stemmers by their codes; those without function words are not detected.
BY_CODE = {
    **{"ar": "arabic", "ca": "catalan", "da": "danish", "de": "german", "el": "greek", "en": "english"},
    **{"es": "spanish", "et": "estonian", "eu": "basque", "fi": "finnish", "fr": "french", "ga": "irish"},
    **{"hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian"},
    **{"lt": "lithuanian", "ne": "nepali", "nl": "dutch", "no": "norwegian", "nb": "norwegian"},
    **{"nn": "norwegian", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian"},
    **{"sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish"},
}
# Languages that write compounds as one word.
COMPOUNDING = frozenset(
    ("danish", "dutch", "estonian", "finnish", "german", "hungarian", "norwegian", "swedish")
)
FUNCTION_WORDS = {language: frozenset(words.split()) for language, words in _FUNCTION_WORDS.items()}
LANGUAGES = tuple(FUNCTION_WORDS)


@lru_cache(maxsize=1)
def _weights() -> dict[str, Array]:
    """(n_languages,) what each function word says of each language: less where several languages have it."""
    weights: dict[str, Array] = {}
    for column, language in enumerate(LANGUAGES):
        for word in FUNCTION_WORDS[language]:
            weights.setdefault(word, np.zeros(len(LANGUAGES)))[column] = 1
    return {word: found / found.sum() for word, found in weights.items()}


def word_weights(words: Sequence[str]) -> tuple[Array, Array]:
    """The positions of those words that are function words, and (m, n_languages) their weights."""
    weights = _weights()
    positions = [position for position, word in enumerate(words) if word in weights]
    if not positions:
        return np.zeros(0, np.int64), np.zeros((0, len(LANGUAGES)))
    return np.array(positions, np.int64), np.stack([weights[words[position]] for position in positions])


def languages_of(scores: Array) -> list[str]:
    """The languages of a collection, the most frequent first; [] where no text is recognized.

    scores : (n, n_languages) sums of the weights of each text's words
    """
    best, second = np.partition(scores, -2, axis=1)[:, [-1, -2]].T
    is_clear = best > second  # words such as "in" are of several languages
    counts = np.bincount(scores[is_clear].argmax(axis=1), minlength=len(LANGUAGES))
    order = np.argsort(-counts, kind="stable")
    return [LANGUAGES[column] for column in order if counts[column] > MIN_SHARE * counts.sum()]


def detect(scores: Array, languages: Sequence[str]) -> Array:
    """(n,) position in `languages` of the language of each text; the more frequent one of equals.

    scores : (n, n_languages) as for `languages_of`;  languages : those of the collection
    """
    own = scores[:, [LANGUAGES.index(language) for language in languages]]
    return own.argmax(axis=1)  # the first of equal ones, also of the zeros of a text without function words


def stems(words: Sequence[str], language: str) -> list[str]:
    """The stem of each word by the Snowball stemmer of its language."""
    return Stemmer.Stemmer(language, 0).stemWords(list(words))

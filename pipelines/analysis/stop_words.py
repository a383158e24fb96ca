"""Words that describe no group: English ones, and those of languages that Tantivy has no list for, or a short one."""

import re
from collections.abc import Iterable

# The list of scikit-learn 1.9 (BSD-3-Clause), which comes from the Glasgow Information Retrieval Group.
_GLASGOW = (
    "a about above across after afterwards again against all almost alone along already also although always am "
    "among amongst amoungst amount an and another any anyhow anyone anything anyway anywhere are around as at back "
    "be became because become becomes becoming been before beforehand behind being below beside besides between "
    "beyond bill both bottom but by call can cannot cant co con could couldnt cry de describe detail do done down "
    "due during each eg eight either eleven else elsewhere empty enough etc even ever every everyone everything "
    "everywhere except few fifteen fifty fill find fire first five for former formerly forty found four from front "
    "full further get give go had has hasnt have he hence her here hereafter hereby herein hereupon hers herself "
    "him himself his how however hundred i ie if in inc indeed interest into is it its itself keep last latter "
    "latterly least less ltd made many may me meanwhile might mill mine more moreover most mostly move much must my "
    "myself name namely neither never nevertheless next nine no nobody none noone nor not nothing now nowhere of "
    "off often on once one only onto or other others otherwise our ours ourselves out over own part per perhaps "
    "please put rather re same see seem seemed seeming seems serious several she should show side since sincere six "
    "sixty so some somehow someone something sometime sometimes somewhere still such system take ten than that the "
    "their them themselves then thence there thereafter thereby therefore therein thereupon these they thick thin "
    "third this those though three through throughout thru thus to together too top toward towards twelve twenty "
    "two un under until up upon us very via was we well were what whatever when whence whenever where whereafter "
    "whereas whereby wherein whereupon wherever whether which while whither who whoever whole whom whose why will "
    "with within without would yet you your yours yourself yourselves "
)
# What this list lacks: halves of contractions, and what mails and web pages leave behind.
_MORE = (
    "don't didn't doesn't isn't wasn't aren't can't couldn't wouldn't shouldn't hasn't haven't won't it's i'm i've i'd "
    "you're that's there's let's they're we're he's she's what's don didn doesn isn wasn aren couldn wouldn shouldn "
    "ve ll re im dont just like does did doing amp nbsp quot http https www com"
)
ENGLISH_STOP_WORDS = frozenset((_GLASGOW + _MORE).split())

_OTHERS = {
    "ar": "من في على إلى عن مع هذا هذه ذلك تلك التي الذي الذين أن إن كان كانت لم لن لا ما قد كل بعد قبل عند بين حتى ثم "
    "أو و هو هي هم أنا نحن كما لكن إذا حيث غير منذ أي لها له فيه فيها عليه منه به بها",
    "el": "ο η το οι τα του της των τον την τους τις και να για με σε από στο στη στην στον στα στις στους που πως ότι "
    "είναι ήταν δεν θα μου σου μας σας αυτό αυτή αυτός ένα μια ένας πολύ αλλά όταν αν κι ή όπως",
    "fr": "fait faire comme cela ça est sont été être plus très tout tous toute toutes bien aussi donc alors peut fois "
    "si où dont quand car mais puis sans sous entre après avant chez vers depuis pendant peu avoir dit",
    "ko": "습니 니다 합니 입니 습니다 합니다 입니다 세요 해요 어요 아요 에서 니까 는데 으로 했습 었습 았습",
    "ro": "și în la de pe cu nu este sunt un o să din mai care pentru că ce se au fost foarte dar sau prin dacă lui ei",
    "tr": "ve bir bu da de için çok ile ne o mi mı ama gibi daha en var yok olarak olan ben sen biz siz onlar şu ki "
    "her değil kadar sonra önce",
}
OTHER_STOP_WORDS = {language: frozenset(words.split()) for language, words in _OTHERS.items()}
"""Words in lower case by ISO 639-1 code. Of Korean, whose words are taken in pairs of syllables, the common endings."""


def more_stop_words(languages: Iterable[str]) -> frozenset[str]:
    """Return the words of the given languages that Tantivy's lists lack."""
    lists = (OTHER_STOP_WORDS.get(language, frozenset()) for language in languages)
    return frozenset(word for words in lists for word in words)


_ELISION = re.compile(r"\b(?:[ldcsnmtj]|qu|jusqu|lorsqu|puisqu|un|all|dall|dell|nell|sull)['’](?=\w)", re.IGNORECASE)
_ELIDING = frozenset(["fr", "it", "ca"])


def without_elision(text: str, languages: Iterable[str]) -> str:
    """Return a text without the articles and particles that French, Italian and Catalan join to a word: "l'État"."""
    return text if _ELIDING.isdisjoint(languages) else _ELISION.sub("", text)

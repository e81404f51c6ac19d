"""Statements with a fault in their text: which check comes first, and what it says."""

import re
from dataclasses import replace

_TOKENS = re.compile(r"'(?:[^']|'')*'|\w+|\s+|.", re.DOTALL)
_OTHERS = ["nope", "p0", "v0", "c0", "1", "'a'", "null", "?", "(", ")", "[1]", "IN", "AND", "=", ">", "token(p0)", "*", "IF", "EXISTS", ",", "", "WHERE"]


def spoil(rng, statement):
    """One or two words are lost, twice there, exchanged or others."""
    words = _TOKENS.findall(statement.text)
    for _ in range(rng.choice((1, 1, 2))):
        places = [place for place, word in enumerate(words) if not word.isspace() and place > 0]
        if not places:
            break
        place = rng.choice(places)
        chance = rng.random()
        if chance < 0.3:
            del words[place]
        elif chance < 0.45:
            words.insert(place, words[place] + " ")
        elif chance < 0.6:
            other = rng.choice(places)
            words[place], words[other] = words[other], words[place]
        else:
            words[place] = rng.choice(_OTHERS)
    return replace(statement, text="".join(words), is_spoiled=True)

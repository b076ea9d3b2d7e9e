"""Fifth step: runs of apostrophes, line by line, as MediaWiki balances them.

Source: Parser::doQuotes of MediaWiki. Only the characters matter here: which apostrophes are markup and which are
text. Bold and italics themselves are not kept.
"""

from __future__ import annotations

import re

from kbsource.wikitext.markers import CUT

_RUN = re.compile(r"'{2,}")


def strip_quotes(text: str) -> str:
    """Gives the text with quote markup replaced by neutral markers; apostrophes that are text stay."""
    if "''" not in text:
        return text
    out: list[str] = []
    position = 0
    found = text.find("''")
    while found >= 0:
        start = text.rfind("\n", position, found) + 1 or position
        end = text.find("\n", found)
        if end < 0:
            end = len(text)
        out.append(text[position:start])
        out.append(_strip_line(text[start:end]))
        position = end
        found = text.find("''", end)
    out.append(text[position:])
    return "".join(out)


def _strip_line(line: str) -> str:
    if "'''" not in line:
        return line.replace("''", CUT)
    if "''''" not in line:  # runs of two and three only
        without_bold = line.replace("'''", CUT)
        if not (line.count("'''") % 2 and without_bold.count("''") % 2):
            return without_bold.replace("''", CUT)
    runs = _RUN.findall(line)
    bold = italic = 0
    plain = True
    for run in runs:
        length = len(run)
        if length == 2:
            italic += 1
        elif length == 3 or length == 4:
            bold += 1
            plain = plain and length == 3
        else:
            italic += 1
            bold += 1
            plain = plain and length == 5
    if plain and not (bold % 2 and italic % 2):
        return _RUN.sub(CUT, line)
    return _balance(line, bold % 2 == 1 and italic % 2 == 1)


def _balance(line: str, is_unbalanced: bool) -> str:
    """Gives the line with four apostrophes as one and bold, more than five as the rest and five.

    Where bold and italics are both odd, one bold is an apostrophe and italics: the first after a single-letter word,
    else the first after a word, else the first after a space.
    """
    parts = re.split(r"('{2,})", line)
    extras = [max(len(run) - 5, 0) if len(run) != 4 else 1 for run in parts[1::2]]
    if is_unbalanced:
        after_letter = after_word = after_space = -1
        for number, run in enumerate(parts[1::2]):
            if len(run) - extras[number] != 3:
                continue
            before = parts[2 * number] + "'" * extras[number]
            last, second_last = before[-1:], before[-2:-1]
            if last == " ":
                if after_space < 0:
                    after_space = number
            elif second_last == " ":
                if after_letter < 0:
                    after_letter = number
            elif after_word < 0:
                after_word = number
        for chosen in (after_letter, after_word, after_space):
            if chosen >= 0:
                extras[chosen] += 1
                break
    out = [parts[0]]
    for number, extra in enumerate(extras):
        out.append("'" * extra + CUT)
        out.append(parts[2 * number + 2])
    return "".join(out)

"""A proof checker: natural deduction for propositional logic, in Fitch's style. Every message names the first line that fails.

A proof has one line a step, `3. | P & Q   [&I 1 2]`: its number, a bar for every assumption that is open, the formula, and the rule with the
lines that it uses. Connectives are ~ & v ->, and # is the contradiction.

    premise         one of the theorem's premises      ->I 2-5       A -> B, from a part that assumes A and ends with B
    assume          opens a part of the proof          ->E 1 2       B, from A -> B and A
    R 1             repeats a line                     ~I 2-5        ~A, from a part that assumes A and ends with #
    &I 1 2          A & B, from A and B                ~E 1 2        #, from A and ~A
    &E 1            A or B, from A & B                 DN 1          A, from ~~A
    vI 1            A v B, from A or from B            X 1           anything, from #
    vE 1 2-3 4-5    C, from A v B and two parts that assume A and B and both end with C
"""

import re

TOKEN = re.compile(r"\s*(->|[~&v()#]|[A-Z][a-z0-9]*)")
LINE = re.compile(r"^(\d+)\.\s*((?:\|\s*)*)(.*?)\s*\[(.*)\]$")


class Wrong(Exception):
    pass


def tokens(text):
    found, at = [], 0
    text = text.strip()
    while at < len(text):
        match = TOKEN.match(text, at)
        if not match:
            raise Wrong(f"`{text}` is no formula")
        found.append(match.group(1))
        at = match.end()
    return found


def formula(text):
    """Reads a formula: `->` binds least and to the right, then `v`, then `&`, then `~`."""
    words = tokens(text)

    def fail():
        raise Wrong(f"`{text.strip()}` is no formula")

    def atom():
        if not words:
            fail()
        word = words.pop(0)
        if word == "~":
            return ("~", atom())
        if word == "(":
            inner = implication()
            if not words or words.pop(0) != ")":
                fail()
            return inner
        if word in ("->", "&", "v", ")"):
            fail()
        return word

    def chain(sign, part):
        left = part()
        while words and words[0] == sign:
            words.pop(0)
            left = (sign, left, part())
        return left

    def disjunction():
        return chain("v", lambda: chain("&", atom))

    def implication():
        left = disjunction()
        if words and words[0] == "->":
            words.pop(0)
            return ("->", left, implication())
        return left

    read = implication()
    if words:
        fail()
    return read


def shown(tree, inside=False):
    if isinstance(tree, str):
        return tree
    if tree[0] == "~":
        return "~" + shown(tree[1], True)
    text = f"{shown(tree[1], True)} {tree[0]} {shown(tree[2], True)}"
    return f"({text})" if inside else text


def theorem(row):
    return [formula(one) for one in row["premises"]], formula(row["goal"])


def references(text):
    parts = []
    for word in text.replace(",", " ").split():
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", word)
        if not match:
            raise Wrong(f"`{word}` is neither a line nor a range of lines")
        parts.append(int(match.group(1)) if match.group(2) is None else (int(match.group(1)), int(match.group(2))))
    return parts


def examine(premises, goal, proof):
    """Raises Wrong with the first line that fails. Returns the number of lines."""
    lines = [line.strip() for line in proof.strip().splitlines() if line.strip() and not line.strip().startswith("```")]
    if not lines:
        raise Wrong("there is no proof")
    done = {}       # number -> (formula, the numbers of the open assumptions)
    opened = []     # numbers of the open assumptions
    parts = {}      # number of an assumption -> the last line of its part, when it was closed or so far
    for at, line in enumerate(lines, 1):
        try:
            match = LINE.match(line)
            if not match:
                raise Wrong(f"`{line}` is no step `N. FORMULA [RULE LINES]`")
            number, bars, text, reason = match.groups()
            if int(number) != at:
                raise Wrong(f"the number should be {at}, not {number}")
            depth, claim = bars.count("|"), formula(text)
            rule, _, rest = reason.strip().partition(" ")
            used = references(rest)
            if rule == "assume":
                if depth < 1 or depth > len(opened) + 1:
                    raise Wrong("an assumption needs one bar more than the part that it is in")
                opened = opened[:depth - 1] + [at]
            else:
                if depth > len(opened):
                    raise Wrong("a part of a proof begins with an assumption")
                opened = opened[:depth]
                step(rule, used, claim, premises, done, opened, parts)
            done[at] = (claim, tuple(opened))
            for assumption in opened:
                parts[assumption] = at
        except Wrong as wrong:
            raise Wrong(f"line {at}: {wrong}") from None
    last, open_still = done[len(lines)]
    if open_still:
        raise Wrong(f"line {len(lines)}: the proof ends while line {open_still[-1]} is still assumed")
    if last != goal:
        raise Wrong(f"the proof ends with {shown(last)}, which is not the goal")
    return len(lines)


ARITY = {"premise": "", "R": "l", "&I": "ll", "&E": "l", "vI": "l", "vE": "lpp", "->I": "p", "->E": "ll", "~I": "p", "~E": "ll", "DN": "l", "X": "l"}


def step(rule, used, claim, premises, done, opened, parts):
    if rule not in ARITY:
        raise Wrong(f"there is no rule `{rule}`")
    kinds = "".join("p" if isinstance(one, tuple) else "l" for one in used)
    if kinds != ARITY[rule]:
        wanted = " and ".join("a line" if kind == "l" else "a range" for kind in ARITY[rule]) or "no line"
        raise Wrong(f"{rule} uses {wanted}")

    def line(number):
        if number not in done:
            raise Wrong(f"line {number} does not come before it")
        what, assumed = done[number]
        if list(assumed) != opened[:len(assumed)]:
            raise Wrong(f"line {number} is in a part that is closed")
        return what

    def part(first, last):
        """The assumption and the conclusion of a closed part, directly below the open ones."""
        if first not in done or parts.get(first) != last or done[first][1] != (*opened, first) or done[last][1] != (*opened, first):
            raise Wrong(f"lines {first}-{last} are no closed part that begins with an assumption")
        return done[first][0], done[last][0]

    got = [part(*one) if isinstance(one, tuple) else line(one) for one in used]

    def need(fits, what):
        if not fits:
            raise Wrong(f"{rule} does not give {shown(claim)} from {what}")

    texts = ", ".join(f"{shown(one[0])} up to {shown(one[1])}" if isinstance(use, tuple) else shown(one) for use, one in zip(used, got))
    if rule == "premise":
        if claim not in premises:
            raise Wrong(f"{shown(claim)} is no premise")
    elif rule == "R":
        need(claim == got[0], texts)
    elif rule == "&I":
        need(claim == ("&", got[0], got[1]), texts)
    elif rule == "&E":
        need(got[0][0] == "&" and len(got[0]) == 3 and claim in got[0][1:], texts)
    elif rule == "vI":
        need(claim[0] == "v" and len(claim) == 3 and got[0] in claim[1:], texts)
    elif rule == "vE":
        either, one, other = got
        need(either[0] == "v" and len(either) == 3 and (one[0], other[0]) == either[1:] and one[1] == other[1] == claim, texts)
    elif rule == "->I":
        need(claim == ("->", *got[0]), texts)
    elif rule == "->E":
        need(got[0] == ("->", got[1], claim), texts)
    elif rule == "~I":
        need(claim == ("~", got[0][0]) and got[0][1] == "#", texts)
    elif rule == "~E":
        need(claim == "#" and (got[0] == ("~", got[1]) or got[1] == ("~", got[0])), texts)
    elif rule == "DN":
        need(got[0] == ("~", ("~", claim)), texts)
    elif rule == "X":
        need(got[0] == "#", texts)


def verify(row, proof):
    """The verifier: passed, or the first line that fails."""
    try:
        return True, f"accepted, {examine(*theorem(row), proof)} lines"
    except Wrong as wrong:
        return False, str(wrong)


def check(row, answer):
    return verify(row, answer)

#!/usr/bin/env python3
"""Fetches recorded cascades and writes them as tables for the example `cascade`, in Python alone.

usage: cascades.py FOLDER                  fetches both sources over https
       cascades.py FOLDER --from SOURCES   reads SOURCES/twitter and SOURCES/tideh, which hold the sources' files

twitter.csv: Twitter15 and Twitter16 (Ma, Gao and Wong, ACL 2017), trees of posts that pass on a post. The copy states no licence, so the
    project does not ship it. A user counts once in a cascade, when it first appears. A post in both sets is taken once.
tideh.csv: the training data of TiDeH (Kobayashi and Lambiotte, ICWSM 2016; MIT licence), 100 posts shared more than 2,000 times; times
    without parents. A share counts as a user.

Each row is a user: the number of the cascade, the minute after the post, and the depth in the tree (empty if it is not recorded).
No text and no name is kept. The tables must have the digests below, so that the figures are of the same data.
"""
import hashlib
import io
import sys
import tarfile
import urllib.request
from pathlib import Path

# Repository, commit, and the SHA-256 digest of the table.
SOURCES = {
    "twitter": ("gszswork/Twitter15_16_dataset", "6a33ebd91d4cafeb5a42eabc5727226fec7bb0e5", "28dc1daec5c3718d843bded56e048942e004823e839ed3a1969ada69874508c2"),
    "tideh": ("NII-Kobayashi/TiDeH", "23bc22f83925d06149933d715127d17819a62012", "c64f1126b2d6cf4cc11fb9b2f8573e47e13ee6c0419308b9f230bbf7532e4227"),
}


def fetched(name):
    """The files of a source, as texts by path."""
    repository, commit, _ = SOURCES[name]
    address = f"https://codeload.github.com/{repository}/tar.gz/{commit}"
    print(f"fetching {address}")
    with urllib.request.urlopen(address, timeout=60) as reply:
        archive = tarfile.open(fileobj=io.BytesIO(reply.read()))
    members = (member for member in archive if member.isfile())
    return {member.name.split("/", 1)[1]: archive.extractfile(member).read().decode(errors="replace") for member in members}


def local(folder):
    """The same of a source that lies on this machine."""
    return {path.relative_to(folder).as_posix(): path.read_text(errors="replace") for path in sorted(folder.rglob("*.txt"))}


def tree(text):
    """The users of a tree, as pairs of minute and depth; the author is at minute 0. None if the tree has no root."""
    edges = [[node.strip("[]'").split("', '") for node in line.split("->")] for line in text.splitlines() if "->" in line]
    roots = [child for parent, child in edges if parent[0] == "ROOT"]
    if not roots:
        return None
    author, _, start = roots[0]
    first, above = {author: 0.0}, {}
    for (parent, _, _), (user, _, minute) in edges:
        minute = max(0.0, float(minute) - float(start))
        if parent != "ROOT" and user != author and minute < first.get(user, float("inf")):
            first[user], above[user] = minute, parent

    def depth(user):
        steps = [user]
        while steps[-1] in above and above[steps[-1]] not in steps:
            steps.append(above[steps[-1]])
        return len(steps) - 1

    return [(minute, depth(user)) for user, minute in first.items()]


def twitter(files):
    """The trees of both sets, by the number of their post."""
    trees = {path.rsplit("/", 1)[1]: text for path, text in files.items() if "/tree/" in path}
    return [tree(text) for _, text in sorted(trees.items())]


def tideh(files):
    """The shares of each post, whose depth is not recorded."""
    names = sorted((path for path in files if path.startswith("data/training/RT")), key=lambda path: int(path.rsplit("RT", 1)[1][:-4]))
    rows = ([line.split() for line in files[name].splitlines()[1:]] for name in names)
    return [[(float(row[0]) / 60, "") for row in each if row] for each in rows]


def main():
    if len(sys.argv) not in (2, 4) or (len(sys.argv) == 4 and sys.argv[2] != "--from"):
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, read in (("twitter", twitter), ("tideh", tideh)):
        files = local(Path(sys.argv[3]) / name) if len(sys.argv) == 4 else fetched(name)
        cascades = [sorted(cascade) for cascade in read(files) if cascade]
        lines = ["cascade,minute,depth"]
        lines += [f"{i},{minute:.2f},{depth}" for i, cascade in enumerate(cascades) for minute, depth in cascade]
        data = ("\n".join(lines) + "\n").encode()
        digest = hashlib.sha256(data).hexdigest()
        if digest != SOURCES[name][2]:
            sys.exit(f"{name}: the table has the digest {digest}, not {SOURCES[name][2]}: the source has changed; nothing was written")
        (folder / f"{name}.csv").write_bytes(data)
        print(f"{folder / name}.csv: {len(cascades)} cascades, {len(lines) - 1} users")


if __name__ == "__main__":
    main()

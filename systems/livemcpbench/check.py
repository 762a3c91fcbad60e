"""What the router takes from the catalogue's hits, and whether an answer is right."""

import re
import zlib

SERVERS = ("weather parking water council hotels museums schools trains ferries library recipes sports hospital bank shop parcels cinema energy birds "
           "law").split()
MOST = 5


def route(row, hits):
    """The servers of the tools that were found, best first."""
    found = list(dict.fromkeys(name for name in re.findall(r"\b([a-z]+)\.[a-z_]+\b", hits) if name in SERVERS))
    return bool(found), "\n".join(found[:MOST])


def lot(row, hits):
    """As many servers, by lot."""
    count = len(route(row, hits)[1].splitlines())
    drawn = sorted(SERVERS, key=lambda name: zlib.crc32(f"{row['id']} {name}".encode()))
    return bool(count), "\n".join(drawn[:count])


def everything(row, hits):
    return "\n".join(SERVERS)


def check(row, answer):
    def plain(text):
        return f" {' '.join(re.findall(r'[a-z0-9]+', text.lower()))} "

    return plain(row["answer"]) in plain(answer)

"""Scores of BM25 by polity-recall, rank-bm25 and bm25s on the same documents. usage: search.py EXAMPLE DOCUMENTS

EXAMPLE is the built example `search` of polity-recall. Prints a table; the exit status is 1 if any score differs by more than 1e-9.
"""
import random
import subprocess
import sys
import tempfile
import time
from itertools import accumulate
from pathlib import Path

import bm25s
import numpy as np
from rank_bm25 import BM25Okapi

K1, B, WORDS, QUERIES = 1.2, 0.75, 50_000, 100


def texts(documents):
    """Documents of 75 to 125 words, and queries of 5. The word in place n is drawn in proportion to 1 / n."""
    draws = random.Random(1)
    weights = list(accumulate(1 / n for n in range(1, WORDS + 1)))

    def text(words):
        return [f"w{word}" for word in draws.choices(range(WORDS), cum_weights=weights, k=words)]

    return [text(draws.randint(75, 125)) for _ in range(documents)], [text(5) for _ in range(QUERIES)]


def ours(example, documents, queries, idf):
    """Seconds to index, seconds to score all queries, and the scores by query and document."""
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder, "documents"), Path(folder, "queries")
        for path, lines in zip(paths, (documents, queries)):
            path.write_text("".join(" ".join(words) + "\n" for words in lines))
        lines = subprocess.run([example, "scores", *paths, idf], check=True, capture_output=True, text=True).stdout.split("\n")
    indexed, scored = map(float, lines[0].split())
    scores = np.zeros((len(queries), len(documents)))
    for row, line in zip(scores, lines[1:]):
        for pair in line.split():
            document, score = pair.split(":")
            row[int(document)] = float(score)
    return indexed, scored, scores


def rank_bm25(documents, queries):
    start = time.perf_counter()
    index = BM25Okapi(documents, k1=K1, b=B, epsilon=0.25)
    indexed = time.perf_counter() - start
    start = time.perf_counter()
    scores = np.array([index.get_scores(query) for query in queries])
    return indexed, time.perf_counter() - start, scores


def of_bm25s(documents, queries):
    start = time.perf_counter()
    index = bm25s.BM25(k1=K1, b=B, method="lucene", dtype="float64")
    index.index(documents, show_progress=False)
    indexed = time.perf_counter() - start
    start = time.perf_counter()
    scores = np.array([index.get_scores(query) for query in queries])
    # Lucene leaves out the factor k1 + 1, which does not change a ranking.
    return indexed, time.perf_counter() - start, scores * (K1 + 1)


def main():
    example, count = sys.argv[1], int(sys.argv[2])
    documents, queries = texts(count)
    print(f"{count} documents, {QUERIES} queries of 5 words")
    print("| idf | peer | largest score | largest difference | scores not 0 | indexed in, ours | peer | ms a query, ours | peer |")
    print("|---|---|---|---|---|---|---|---|---|")
    same = True
    for idf, peer, run in (("okapi", "rank-bm25 0.2.2", rank_bm25), ("lucene", "bm25s 0.3.16", of_bm25s)):
        indexed, scored, scores = ours(example, documents, queries, idf)
        peer_indexed, peer_scored, peer_scores = run(documents, queries)
        difference = np.abs(scores - peer_scores).max()
        same = same and difference < 1e-9 and np.count_nonzero(scores) > 0
        times = f"{indexed:.2f} s | {peer_indexed:.2f} s | {1e3 * scored / QUERIES:.2f} | {1e3 * peer_scored / QUERIES:.2f}"
        print(f"| {idf} | {peer} | {scores.max():.3f} | {difference:.1e} | {np.count_nonzero(scores)} | {times} |")
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()

"""Networks that Polity exports, read and measured by NetworkX."""

import csv
import random
import subprocess
import sys

import networkx
import polity
import pytest


def scenario(topology):
    return {
        "rounds": 4,
        "agents": 60,
        "seed": 5,
        "population": {"marginals": [{"column": "party", "shares": {"a <b>": 0.5, 'c "d"': 0.5}}]},
        "topology": topology,
        "world": {"kind": "opinion"},
        "cohorts": [{"policy": {"kind": "degroot"}}],
    }


def exported(format):
    out = f"net.{format}"
    subprocess.run([sys.executable, "-m", "polity", "export", "run", "--network", format, "--out", out], check=True)
    return out


@pytest.mark.parametrize("directed", [False, True])
def test_networkx_reads_and_measures_the_same(directed):
    draws = random.Random(3)
    pairs = {tuple(sorted(draws.sample(range(60), 2), reverse=draws.random() < 0.5)) for _ in range(150)}
    pairs = sorted({frozenset(pair): pair for pair in pairs}.values())
    with open("ties.csv", "w", newline="") as file:
        csv.writer(file).writerows([("who", "whom"), *pairs])
    run = polity.run(scenario({"kind": "file", "file": "ties.csv", "directed": directed}), out="run")
    graphs = [
        networkx.read_graphml(exported("graphml"), node_type=int),
        networkx.read_gexf(exported("gexf"), node_type=int),
    ]
    agents = run.tables["agents"].to_pandas()
    rows = run.tables["network"].to_pandas()
    measured = {(row.quantity, row.by if isinstance(row.by, str) else None): row.value for row in rows.itertuples()}
    for graph in graphs:
        assert graph.is_directed() == directed and graph.number_of_nodes() == 60 and graph.number_of_edges() == len(pairs)
        for node, data in graph.nodes(data=True):
            assert data["party"] == agents["party"][node] and data["alive"] is True
            assert data["opinion.last"] == agents["opinion.last"][node]
        plain = networkx.Graph(graph)
        close = lambda a, b: abs(a - b) < 1e-9
        assert close(measured["transitivity", None], networkx.transitivity(plain))
        assert close(measured["mean-clustering", None], networkx.average_clustering(plain))
        assert measured["components", None] == networkx.number_connected_components(plain)
        assert close(measured["assortativity", "party"], networkx.attribute_assortativity_coefficient(graph, "party"))
        for column in ["opinion.first", "opinion.last"]:
            expected = networkx.numeric_assortativity_coefficient(graph, column)
            assert close(measured["numeric-assortativity", column], expected)
        parties = [{n for n, p in graph.nodes(data="party") if p == party} for party in set(agents["party"])]
        assert close(measured["modularity", "party"], networkx.community.modularity(graph, parties, weight=None))
    with open(exported("edges"), newline="") as file:
        edges = {tuple(map(int, edge)) for edge in list(csv.reader(file))[1:]}
    assert edges == {pair if directed else tuple(sorted(pair)) for pair in pairs}


def test_networks_of_networkx_are_read():
    club = networkx.karate_club_graph()
    for file, write in [("club.graphml", networkx.write_graphml), ("club.gexf", networkx.write_gexf)]:
        write(club, file)
        run = polity.run({**scenario({"kind": "file", "file": file}), "agents": 34}, out=file + "-run")
        ties = run.tables["ties"].to_pandas()
        assert {frozenset(map(int, tie)) for tie in ties.itertuples(index=False)} == {frozenset(edge) for edge in club.edges}

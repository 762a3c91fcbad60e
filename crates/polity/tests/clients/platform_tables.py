"""Reads the tables of a run of the platform with polars, and holds them against each other. RUN AGENTS DIGEST"""

import json
import pathlib
import sys

import polars as pl

run, agents, digest = pathlib.Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]


def table(name):
    return pl.read_parquet(run / "tables" / name / "*.parquet")


tables = {folder.name: table(folder.name) for folder in sorted((run / "tables").iterdir()) if folder.is_dir()}
print({name: frame.height for name, frame in tables.items()})
posts, acts, influence, people = (tables[name] for name in ("posts", "acts", "influence", "agents"))

assert people.height == agents, people.height
assert tables["rounds"]["chain"][-1] == digest, (tables["rounds"]["chain"][-1], digest)
# Every post once, in order.
assert posts["post"].to_list() == list(range(posts.height))

# Every reaction is an act, and the other way round, but for those that were refused.
reactions = ["share", "quote", "comment", "like", "dislike", "report"]
done = acts.filter(pl.col("kind").is_in(reactions)).height
refused = tables["metrics"].filter(pl.col("name") == "refused")["value"].sum()
assert influence.height <= done <= influence.height + refused, (done, influence.height, refused)
for kind, scalar in (("like", "likes"), ("dislike", "dislikes"), ("comment", "comments")):
    counted = tables["metrics"].filter(pl.col("name") == scalar)["value"].sum()
    assert influence.filter(pl.col("act") == kind).height == counted, (kind, counted)

# Influence is what posts say of whom.
joined = influence.join(posts.select("post", "author", "origin", posts_round="round"), on="post", how="left")
assert joined["author"].null_count() == 0
assert (joined["author"] == joined["by"]).all() and (joined["origin"] == joined["origin_right"]).all()
assert (joined["round"] - joined["posts_round"] == joined["age"]).all()
assert (joined["agent"] != joined["by"]).all(), "nobody reacts to a post of its own"

# Shares are posts of whoever shared, one each, and come after what they share.
shares = posts.filter(pl.col("of").is_not_null())
passed_on = influence.filter(pl.col("act").cast(pl.String).is_in(["share", "quote"]))
assert shares.height == passed_on.height
assert (shares["of"] < shares["post"]).all()
parents = shares.join(posts.select("post", of_depth="depth", of_root="root"), left_on="of", right_on="post")
assert (parents["depth"] == parents["of_depth"] + 1).all() and (parents["root"] == parents["of_root"]).all()

# Structural virality, anew and by force, from the posts alone: mean steps between two posts of a seed's tree.
seeded = posts.filter(pl.col("seed").is_not_null())
if seeded.height < 600:
    steps = pairs = 0
    for _, tree in seeded.group_by("root"):
        parent = dict(zip(tree["post"], tree["of"]))

        def way(post):
            chain = [post]
            while parent[chain[-1]] is not None:
                chain.append(parent[chain[-1]])
            return chain

        ways = [way(post) for post in tree["post"]]
        for i, a in enumerate(ways):
            for b in ways[:i]:
                common = len(set(a) & set(b))
                steps, pairs = steps + len(a) + len(b) - 2 * common, pairs + 1
    told = tables["metrics"].filter(pl.col("name") == "cascade-virality")["value"][-1]
    found = steps / pairs if pairs else 0
    assert abs(found - told) < 1e-9, (found, told)
    print(f"structural virality {told:.3f} over {seeded.height} posts, as counted anew")

top = influence.group_by("by").len().sort("len", "by", descending=[True, False]).head(3)
print("most reacted to:", top.rows())
print("polars ok", pl.__version__)

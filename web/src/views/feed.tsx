// A platform as a user saw it; all posts; and how one post spread.
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { ofRun, type Feed, type Post } from "../api";
import { Rounds } from "../canvas/world";
import { count, num, roundName, short } from "../format";
import { colourOf, css, numberScale } from "../palette";
import { AgentLink, Choice, Empty, Field, Pager, Section, Segments, Wait } from "../parts";
import { href, numberOf, patch, useRoute } from "../route";
import { useLoad, useRested, useRun, useTheme, useWidth } from "../state";
import { plain, Text } from "../text";

const PAGE = 30;
const TREE = 2000;

export function FeedView(): JSX.Element {
  const { query } = useRoute();
  const tab = query.tree ? "tree" : query.posts ? "posts" : "feed";
  return (
    <>
      <h1>Feed</h1>
      <Segments label="What to show" value={tab} options={[["feed", "One user's feed"], ["posts", "All posts"], ...(tab === "tree" ? [["tree", `Spread of post ${query.tree}`] as [string, string]] : [])]}
        onValue={(next) => patch({ posts: next === "posts" ? "all" : null, tree: null, offset: null })} />
      {tab === "feed" && <OneFeed />}
      {tab === "posts" && <AllPosts />}
      {tab === "tree" && query.tree && <Spread post={query.tree} />}
    </>
  );
}

function OneFeed(): JSX.Element {
  const { id, run, round, setRound, version } = useRun();
  const { query } = useRoute();
  const agent = query.agent ?? "0";
  // The server computes the run again up to the round, so a scrubbed slider asks only where it rests.
  const rested = useRested(Math.max(0, round), 300);
  const loaded = useLoad<Feed>(ofRun(id, "feed"), { agent, round: rested }, version);
  return (
    <>
      <div class="filters">
        <Field label="User (agent)" type="number" min={0} value={agent} onValue={(value) => patch({ agent: value })} />
      </div>
      <Rounds first={0} last={run.rounds - 1} round={Math.max(0, round)} setRound={setRound} ready={!loaded.loading} stateRound={null} />
      <Wait of={loaded}>
        {(feed) => (
          <>
            {feed.note && <p class="note"><Text>{feed.note}</Text></p>}
            {feed.posts.length === 0
              ? <Empty>{feed.known ? `User ${plain(agent)} saw no posts in ${roundName(round)}.` : "What this user saw was not recorded."}</Empty>
              : <ol class="feed">{feed.posts.map((post, i) => <PostCard key={i} post={post} run={id} />)}</ol>}
          </>
        )}
      </Wait>
    </>
  );
}

function AllPosts(): JSX.Element {
  const { id, version } = useRun();
  const { query } = useRoute();
  const offset = numberOf(query.offset) ?? 0;
  const sort = query.sort ?? "likes";
  const loaded = useLoad<{ total: number; posts: Post[] }>(ofRun(id, "posts"), { sort, author: query.author, limit: PAGE, offset }, version);
  return (
    <>
      <div class="filters">
        <Choice label="First come" value={sort} options={[["likes", "most liked"], ["shares", "most shared"], ["round", "newest"]]} onValue={(value) => patch({ sort: value, offset: null })} />
        <Field label="Author (agent)" type="number" min={0} value={query.author ?? ""} onValue={(value) => patch({ author: value, offset: null })} />
      </div>
      <Wait of={loaded}>
        {({ posts, total }) => posts.length === 0 ? <Empty>No post fits these filters.</Empty> : (
          <>
            <ol class="feed">{posts.map((post) => <PostCard key={post.post} post={post} run={id} />)}</ol>
            <Pager total={total} offset={offset} limit={PAGE} to={(next) => patch({ offset: next || null })} />
          </>
        )}
      </Wait>
    </>
  );
}

function Stance({ stance }: { stance: number }): JSX.Element {
  const [dark] = useTheme();
  const scale = numberScale(-1, 1, dark);
  return <span class="stance nums"><i style={{ background: css(colourOf(scale, stance)) }} />stance {num(stance, 2)}</span>;
}

function PostCard({ post, run }: { post: Post; run: string }): JSX.Element {
  const { query } = useRoute();
  const root = post.root ?? post.post;
  const tree = href(["run", run, "feed"], { tree: root, round: query.round });
  return (
    <li class="card post">
      <div class="post-head">
        <AgentLink run={run} agent={post.author} />
        <span class="quiet">post {post.post}, {roundName(post.round)}</span>
        {post.parent !== null && <span class="quiet">passes on post {post.parent}</span>}
        {!post.text && post.parent === null && <span class="quiet">without words</span>}
        {post.stance !== null && <Stance stance={post.stance} />}
      </div>
      {post.text && <p class="post-text"><Text>{post.text}</Text></p>}
      <div class="post-foot nums">
        {!!post.likes && <span>{count(post.likes, "like")}</span>}
        {!!post.shares && <span>{count(post.shares, "share")}</span>}
        {!!post.comments && <span>{count(post.comments, "comment")}</span>}
        <a href={tree}>how it spread<span class="sr"> (post {root})</span></a>
      </div>
    </li>
  );
}

function Spread({ post }: { post: string }): JSX.Element {
  const { id, version } = useRun();
  const loaded = useLoad<{ total: number; posts: Post[] }>(ofRun(id, "posts"), { tree_of: post, limit: TREE }, version);
  return (
    <Wait of={loaded}>
      {({ posts, total }) => posts.length === 0
        ? <Empty>There is no post {plain(post)}.</Empty>
        : <Cascade posts={posts.toSorted((a, b) => a.round - b.round || a.post - b.post)} total={total} />}
    </Wait>
  );
}

function Cascade({ posts, total }: { posts: Post[]; total: number }): JSX.Element {
  const { id } = useRun();
  return (
    <>
      <Tree posts={posts} />
      {total > posts.length && <p class="note">{num(posts.length)} of {num(total)} posts are shown.</p>}
      <Section title="The post and its shares">
        <ol class="feed">{posts.slice(0, PAGE).map((one) => <PostCard key={one.post} post={one} run={id} />)}</ol>
        {posts.length > PAGE && <p class="note">The first {PAGE} of {num(posts.length)}.</p>}
      </Section>
    </>
  );
}

interface Placed {
  post: Post;
  x: number;
  y: number;
  up: Placed | null;
}

/** Rounds from left to right; each branch has its own rows, so lines do not cross. */
function placed(posts: Post[]): { all: Placed[]; rows: number } {
  const children = new Map<number, Post[]>();
  const ids = new Set(posts.map(({ post }) => post));
  const roots = posts.filter(({ parent }) => parent === null || !ids.has(parent));
  for (const post of posts) {
    if (post.parent === null || !ids.has(post.parent)) continue;
    const siblings = children.get(post.parent) ?? [];
    siblings.push(post);
    children.set(post.parent, siblings);
  }
  const all: Placed[] = [];
  let row = 0;
  // A stack of its own: a cascade may be deeper than the browser's.
  const stack: { post: Post; up: Placed | null }[] = roots.toReversed().map((post) => ({ post, up: null }));
  const inner: Placed[] = [];
  while (stack.length > 0) {
    const { post, up } = stack.pop()!;
    const below = children.get(post.post) ?? [];
    const here: Placed = { post, x: post.round, y: below.length === 0 ? row++ : 0, up };
    all.push(here);
    if (below.length > 0) inner.push(here);
    for (const child of below.toReversed()) stack.push({ post: child, up: here });
  }
  // From the leaves up: a post stands in the middle of those that it led to.
  const sums = new Map<Placed, [number, number]>();
  for (const here of all.toReversed()) {
    const sum = sums.get(here);
    if (sum) here.y = sum[0] / sum[1];
    if (here.up) {
      const above = sums.get(here.up) ?? [0, 0];
      sums.set(here.up, [above[0] + here.y, above[1] + 1]);
    }
  }
  return { all, rows: Math.max(1, row) };
}

function Tree({ posts }: { posts: Post[] }): JSX.Element {
  const [dark] = useTheme();
  const { all, rows } = useMemo(() => placed(posts), [posts]);
  const [over, setOver] = useState<Post | null>(null);
  const { setRound } = useRun();
  const scale = numberScale(-1, 1, dark);
  const rounds = posts.map(({ round }) => round);
  const [first, last] = [Math.min(...rounds), Math.max(...rounds)];
  const deepest = Math.max(...posts.map(({ depth }) => depth ?? 0));
  const [box, measured] = useWidth<HTMLDivElement>();
  const width = Math.max(200, measured);
  const height = Math.max(140, Math.min(560, rows * 12));
  const x = (at: number) => 16 + ((at - first) / Math.max(1, last - first)) * (width - 32);
  const y = (at: number) => 10 + ((at + 0.5) / rows) * (height - 20);
  const size = (post: Post) => Math.min(9, 2.5 + Math.sqrt(post.likes ?? 0) * 0.45);
  const told = over ?? posts[0]!;
  return (
    <figure class="tree">
      <div ref={box} />
      <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`${count(posts.length, "post")} from ${roundName(first)} to ${roundName(last)}, ${count(deepest, "step")} deep. The list below names them.`}>
        {all.map(({ post, x: at, y: row, up }) => up && (
          <path key={`line ${post.post}`} class="branch" d={`M${x(up.x)} ${y(up.y)}C${(x(up.x) + x(at)) / 2} ${y(up.y)} ${(x(up.x) + x(at)) / 2} ${y(row)} ${x(at)} ${y(row)}`} />
        ))}
        {all.map(({ post, x: at, y: row }) => (
          <circle key={post.post} cx={x(at)} cy={y(row)} r={size(post)} fill={post.stance === null ? "var(--accent)" : css(colourOf(scale, post.stance))}
            onPointerEnter={() => setOver(post)} onClick={() => setRound(post.round)} />
        ))}
      </svg>
      <div class="ends nums"><span>{roundName(first)}</span><span>{roundName(last)}</span></div>
      <figcaption>
        {count(posts.length, "post")}, {count(deepest, "step")} deep. Post {told.post} by agent {told.author} in {roundName(told.round)}: {short(told.likes ?? 0)} likes, {short(told.shares ?? 0)} shares.
      </figcaption>
    </figure>
  );
}

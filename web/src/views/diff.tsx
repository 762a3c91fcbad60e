// Two runs side by side: where they part, what differs in their scenarios, and their metrics over each other.
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Diff, RunHead } from "../api";
import { SeriesChart, type Mark } from "../charts/series";
import { num, roundName } from "../format";
import { Choice, Empty, Scroll, Section, Wait } from "../parts";
import { href, patch, useRoute } from "../route";
import { useLoad } from "../state";
import { plain, Text } from "../text";

export function DiffView(): JSX.Element {
  const runs = useLoad<{ runs: RunHead[] }>("runs");
  const { query } = useRoute();
  // The parent of a fork may be told by its folder.
  const named = (text = ""): string => runs.data?.runs.find(({ id, folder }) => id === text || folder === text)?.id ?? "";
  const [a, b] = [named(query.a), named(query.b)];
  const loaded = useLoad<Diff>(a && b && a !== b ? "diff" : null, { a, b });
  return (
    <>
      <h1>Difference of two runs</h1>
      <Wait of={runs}>
        {({ runs: all }) => {
          const options: [string, string][] = [["", "choose"], ...all.map((run): [string, string] => [run.id, run.name === run.id ? plain(run.id) : `${plain(run.name)} (${plain(run.id)})`])];
          return (
            <div class="filters pair">
              <Choice label="A" value={a} options={options} onValue={(value) => patch({ a: value })} />
              <Choice label="B" value={b} options={options} onValue={(value) => patch({ b: value })} />
              <button type="button" onClick={() => patch({ a: b, b: a })}>Swap</button>
            </div>
          );
        }}
      </Wait>
      {a === "" || b === "" || a === b
        ? <Empty>Choose two runs. A fork and the run that it came from are a good pair.</Empty>
        : <Wait of={loaded}>{(diff) => <Shown diff={diff} a={a} b={b} />}</Wait>}
    </>
  );
}

function sentence({ same_until, first_different }: Diff): string {
  if (first_different === null) return "The two runs are the same in all rounds that both have.";
  if (same_until === null || same_until < 0) return `The two runs differ from ${roundName(first_different)} on.`;
  return `The two runs are the same up to ${roundName(same_until)} and differ from ${roundName(first_different)} on.`;
}

function Shown({ diff, a, b }: { diff: Diff; a: string; b: string }): JSX.Element {
  const marks = useMemo((): Mark[] => (diff.first_different === null ? [] : [{ round: diff.first_different, what: "first different round", kind: "differs" }]), [diff]);
  const [still, moving] = useMemo(() => {
    const constant = ({ a, b }: Diff["metrics"][number]) => new Set([...a, ...b].map(([, value]) => value)).size === 1;
    return [diff.metrics.filter(constant), diff.metrics.filter((metric) => !constant(metric))];
  }, [diff]);
  return (
    <>
      <p class="lead" role="status">{sentence(diff)}</p>
      <p class="note"><a href={href(["run", a])}>Open A</a> · <a href={href(["run", b])}>Open B</a></p>
      <Section title="Scenarios">
        {diff.scenario.length === 0 ? <Empty>Their scenarios are the same.</Empty> : (
          <Scroll label="Differences of the scenarios">
            <table>
              <thead><tr><th>parameter</th><th>A</th><th>B</th></tr></thead>
              <tbody>
                {diff.scenario.map((one) => (
                  <tr key={one.path}><td><code>{plain(one.path)}</code></td><td class="long"><Value of={one.a} /></td><td class="long"><Value of={one.b} /></td></tr>
                ))}
              </tbody>
            </table>
          </Scroll>
        )}
      </Section>
      <Section title="Metrics" note="A solid, B dashed. The vertical line is the first different round.">
        {diff.metrics.length === 0 ? <Empty>They have no metric in common.</Empty> : (
          <>
            <div class="charts">{moving.map((metric) => <Overlaid key={metric.name} metric={metric} marks={marks} />)}</div>
            {still.length > 0 && <p class="note">The same in both, in all rounds: {still.map(({ name, a }) => `${plain(name)} ${num(a[0]?.[1])}`).join(", ")}.</p>}
          </>
        )}
      </Section>
    </>
  );
}

const Value = ({ of }: { of: unknown }): JSX.Element => (of === null || of === undefined ? <span class="quiet">not set</span> : <Text>{of}</Text>);

function Overlaid({ metric, marks }: { metric: Diff["metrics"][number]; marks: Mark[] }): JSX.Element {
  const group = useMemo(() => ({
    name: metric.name, doc: null, kind: "lines" as const, series: [{ label: "A", points: metric.a ?? [] }, { label: "B", points: metric.b ?? [] }],
  }), [metric]);
  return <SeriesChart group={group} marks={marks} round={Infinity} together="diff" dashed={(i) => i === 1} />;
}

// The items of an evaluation: right or wrong, and where to read on.
import type { JSX } from "preact";
import { ofRun, type Items } from "../api";
import { num } from "../format";
import { Empty, Pager, Scroll, Segments, Wait } from "../parts";
import { href, numberOf, patch, useRoute } from "../route";
import { useLoad, useRun } from "../state";
import { Text } from "../text";
import { AccuracyBar } from "./overview";

const PAGE = 50;

export function ItemList(): JSX.Element {
  const { id, run, version } = useRun();
  const { query } = useRoute();
  const offset = numberOf(query.offset) ?? 0;
  const loaded = useLoad<Items>(ofRun(id, "items"), { correct: query.correct, limit: PAGE, offset }, version);
  return (
    <>
      <h1>Items</h1>
      <Wait of={loaded}>
        {({ accuracy, items, total }) => (
          <>
            <AccuracyBar accuracy={accuracy} simulated={run.simulated} />
            <div class="filters">
              <Segments label="Which items" value={query.correct ?? ""} options={[["", "All"], ["true", "Right"], ["false", "Wrong"]]} onValue={(value) => patch({ correct: value, offset: null })} />
              <span class="found" role="status">{num(total)} shown</span>
            </div>
            {items.length === 0 ? <Empty>No item fits this filter.</Empty> : <Table items={items} id={id} />}
            <Pager total={total} offset={offset} limit={PAGE} to={(next) => patch({ offset: next || null })} />
          </>
        )}
      </Wait>
    </>
  );
}

export function Correct({ correct }: { correct: boolean | null }): JSX.Element {
  if (correct === null) return <span class="mark-none">not scored</span>;
  return correct ? <span class="mark-right"><span aria-hidden="true">✓</span> right</span> : <span class="mark-wrong"><span aria-hidden="true">✗</span> wrong</span>;
}

function Table({ items, id }: { items: Items["items"]; id: string }): JSX.Element {
  return (
    <Scroll label="Items">
      <table>
        <thead><tr><th class="right">item</th><th>result</th><th>question</th><th>answer</th><th>expected</th><th class="right">rounds</th><th class="right">calls</th><th>note</th></tr></thead>
        <tbody>
          {items.map((item) => (
            <tr key={item.item}>
              <td class="right nums"><a href={href(["run", id, "items", item.item])}>{item.item}</a></td>
              <td><Correct correct={item.correct} /></td>
              <td class="question"><a href={href(["run", id, "items", item.item])} tabIndex={-1}><Text>{item.question}</Text></a></td>
              <td><Text>{item.answer}</Text></td>
              <td><Text>{item.gold}</Text></td>
              <td class="right nums">{num(item.rounds)}</td>
              <td class="right nums">{num(item.asks)}</td>
              <td class="quiet">{item.note ? <Text>{item.note}</Text> : ""}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

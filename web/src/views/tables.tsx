// Any table of the run, as it is recorded.
import type { JSX } from "preact";
import { ofRun, type Cell, type TableColumn, type TableInfo, type TablePage } from "../api";
import { num } from "../format";
import { Choice, Empty, Field, Pager, Scroll, Wait } from "../parts";
import { numberOf, patch, useRoute } from "../route";
import { useLoad, useRun } from "../state";
import { plain, Text } from "../text";
import { cellText } from "./agents";

const PAGE = 100;

export function Tables(): JSX.Element {
  const { run, id, version } = useRun();
  const { query } = useRoute();
  const table = run.tables.find(({ name }) => name === query.table) ?? run.tables[0] ?? null;
  const offset = numberOf(query.offset) ?? 0;
  const has = (name: string) => table?.columns?.some((column) => column.name === name) ?? false;
  const loaded = useLoad<TablePage>(table && ofRun(id, `tables/${encodeURIComponent(table.name)}`), {
    from: query.from, to: query.to, agent: query.agent, limit: PAGE, offset,
  }, version);
  if (!table) return <><h1>Tables</h1><Empty>This run has no tables yet. They appear with its first snapshot.</Empty></>;
  return (
    <>
      <h1>Tables</h1>
      <div class="filters">
        <Choice label="Table" value={table.name} options={run.tables.map(({ name, rows }) => [name, rows === null ? plain(name) : `${plain(name)} (${num(rows)} rows)`])}
          onValue={(value) => patch({ table: value, offset: null, from: null, to: null, agent: null })} />
        {has("round") && <Field label="From round" type="number" min={0} value={query.from ?? ""} onValue={(value) => patch({ from: value, offset: null })} />}
        {has("round") && <Field label="To round" type="number" min={0} value={query.to ?? ""} onValue={(value) => patch({ to: value, offset: null })} />}
        {has("agent") && <Field label="Agent" type="number" min={0} value={query.agent ?? ""} onValue={(value) => patch({ agent: value, offset: null })} />}
      </div>
      {table.doc && <p class="note"><Text>{table.doc}</Text></p>}
      <Docs table={table} />
      <Wait of={loaded}>
        {(page) => page.rows.length === 0 ? <Empty>No rows here.</Empty> : (
          <>
            <Rows page={page} table={table} />
            <Pager total={page.total} offset={offset} limit={PAGE} to={(next) => patch({ offset: next || null })} />
          </>
        )}
      </Wait>
    </>
  );
}

function Docs({ table }: { table: TableInfo }): JSX.Element | null {
  if (!table.columns?.length) return null;
  return (
    <details class="docs">
      <summary>What the columns mean</summary>
      <dl class="fields">
        {table.columns.map((column) => (
          <div key={column.name}>
            <dt><code>{plain(column.name)}</code> <span class="quiet">{plain(column.kind)}</span></dt>
            <dd>
              {column.doc ? <Text>{column.doc}</Text> : <span class="quiet">not described</span>}
              {column.words && column.words.length > 0 && <span class="quiet"> ({plain(column.words.slice(0, 12).join(", "))}{column.words.length > 12 && ", …"})</span>}
            </dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

/** Numbers that name something are no quantities: they get no thousands separators. */
const NAMES = new Set(["agent", "from", "to", "item", "post", "author", "parent", "root", "round", "seed", "id", "n"]);

function cell(column: TableColumn, value: Cell): JSX.Element | string {
  if (value === null) return <span class="quiet">–</span>;
  return typeof value === "number" && NAMES.has(column.name) ? String(value) : cellText(value);
}

function Rows({ page, table }: { page: TablePage; table: TableInfo }): JSX.Element {
  const columns = page.columns.map((column): TableColumn => (typeof column === "string" ? table.columns.find(({ name }) => name === column) ?? { name: column, kind: "" } : column));
  const right = columns.map((_, i) => page.rows.some((row) => typeof row[i] === "number"));
  return (
    <Scroll label={`Table ${table.name}`}>
      <table>
        <thead><tr>{columns.map((column, i) => <th key={column.name} class={right[i] ? "right" : ""} title={column.doc ?? undefined}>{plain(column.name)}</th>)}</tr></thead>
        <tbody>
          {page.rows.map((row, k) => (
            <tr key={k}>{row.map((value, i) => <td key={i} class={right[i] ? "right nums" : "long"}>{cell(columns[i]!, value)}</td>)}</tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

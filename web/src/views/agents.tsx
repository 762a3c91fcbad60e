// The agents of a run: search, sort and pages are the server's work, so that a million of them are no more than fifty.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ofRun, type AgentRows, type Cell } from "../api";
import { Rounds } from "../canvas/world";
import { num, roundName } from "../format";
import { Choice, Empty, Pager, Scroll, Wait } from "../parts";
import { href, numberOf, patch, useRoute } from "../route";
import { useLoad, useRun } from "../state";
import { plain, Text } from "../text";

const PAGE = 50;
const OPERATORS: [string, string][] = [
  ["eq", "is"], ["ne", "is not"], ["gt", "is more than"], ["ge", "is at least"], ["lt", "is less than"], ["le", "is at most"], ["contains", "contains"],
];

/** Filters stand in the address as COLUMN:OP:VALUE, one a line. */
const filtersOf = (text: string | undefined): string[] => (text ? text.split("\n").filter(Boolean) : []);

export function Agents(): JSX.Element {
  const { run, id, round, setRound, version } = useRun();
  const { query } = useRoute();
  const offset = numberOf(query.offset) ?? 0;
  const where = filtersOf(query.where);
  const loaded = useLoad<AgentRows>(ofRun(id, "agents"), {
    round, limit: PAGE, offset, sort: query.sort, desc: query.desc, where,
  }, version);
  const columns = loaded.data ? usual(loaded.data.columns) : ["agent", "cohort", ...run.columns.map(({ name }) => name)];
  return (
    <>
      <h1>Agents</h1>
      <div class="filters agents-filters">
        <GoTo id={id} />
        <AddFilter columns={columns} where={where} />
      </div>
      {where.length > 0 && <Filters where={where} />}
      {run.columns.some(({ timed }) => timed) && (
        <Rounds first={-1} last={run.rounds - 1} round={round} setRound={setRound} ready={!loaded.loading} stateRound={loaded.data?.state_round ?? null} />
      )}
      <Wait of={loaded}>
        {(page) => page.rows.length === 0
          ? <Empty>{where.length > 0 ? "No agent fits these filters." : "This run has no recorded agents."}</Empty>
          : (
            <>
              <Table page={page} id={id} sort={query.sort} desc={query.desc === "true"} />
              <p class="note">{num(page.matched)} of {num(page.total)} agents{page.state_round >= 0 && <>; their state after {roundName(page.state_round)}</>}.</p>
              <Pager total={page.matched} offset={offset} limit={PAGE} to={(next) => patch({ offset: next || null })} />
            </>
          )}
      </Wait>
    </>
  );
}

function GoTo({ id }: { id: string }): JSX.Element {
  const [agent, setAgent] = useState("");
  return (
    <form class="inline" onSubmit={(event) => {
      event.preventDefault();
      if (/^\d+$/.test(agent)) location.hash = href(["run", id, "agents", agent]);
    }}>
      <label class="field narrow">
        <span>Go to agent</span>
        <input inputMode="numeric" value={agent} placeholder="0" onInput={(event) => setAgent(event.currentTarget.value)} />
      </label>
      <button type="submit">Open</button>
    </form>
  );
}

function AddFilter({ columns, where }: { columns: string[]; where: string[] }): JSX.Element {
  const [column, setColumn] = useState("");
  const [operator, setOperator] = useState("eq");
  const [value, setValue] = useState("");
  const name = column || columns[0] || "agent";
  return (
    <form class="inline" onSubmit={(event) => {
      event.preventDefault();
      if (value === "") return;
      patch({ where: [...where, `${name}:${operator}:${value}`].join("\n"), offset: null });
      setValue("");
    }}>
      <Choice label="Only where" value={name} options={columns.map((one) => [one, plain(one)])} onValue={setColumn} />
      <Choice label="comparison" value={operator} options={OPERATORS} onValue={setOperator} />
      <label class="field narrow">
        <span>value</span>
        <input value={value} onInput={(event) => setValue(event.currentTarget.value)} />
      </label>
      <button type="submit">Filter</button>
    </form>
  );
}

function Filters({ where }: { where: string[] }): JSX.Element {
  return (
    <ul class="chips" aria-label="Filters">
      {where.map((filter, i) => {
        const [column, operator, ...value] = filter.split(":");
        const said = `${plain(column)} ${OPERATORS.find(([key]) => key === operator)?.[1] ?? operator} ${plain(value.join(":"))}`;
        return (
          <li key={filter}>
            <button type="button" class="chip-button" aria-label={`Remove the filter: ${said}`}
              onClick={() => patch({ where: where.filter((_, k) => k !== i).join("\n"), offset: null })}>{said} <span aria-hidden="true">×</span></button>
          </li>
        );
      })}
    </ul>
  );
}

export function cellText(value: Cell): JSX.Element | string {
  if (typeof value === "number") return num(value);
  if (typeof value === "boolean") return value ? "yes" : "no";
  return <Text>{value}</Text>;
}

interface TableProps {
  page: AgentRows;
  id: string;
  sort: string | undefined;
  desc: boolean;
}

/** The first and the last value of what is known by round stand in the way of its value at the round. */
function usual(columns: string[]): string[] {
  return columns.filter((name) => !/\.(first|last)$/.test(name) || !columns.includes(name.replace(/\.(first|last)$/, "")));
}

function Table({ page: whole, id, sort, desc }: TableProps): JSX.Element {
  const columns = usual(whole.columns);
  const at = columns.map((name) => whole.columns.indexOf(name));
  const page = { columns, rows: whole.rows.map((row) => at.map((i) => row[i] ?? null)) };
  const numeric = page.columns.map((_, i) => page.rows.some((row) => typeof row[i] === "number") && page.columns[i] !== "agent");
  const agentAt = Math.max(0, page.columns.indexOf("agent"));
  const turn = (column: string) => patch({ sort: column, desc: sort === column && !desc ? "true" : null, offset: null });
  return (
    <Scroll label="Agents">
      <table>
        <thead>
          <tr>
            {page.columns.map((column, i) => (
              <th key={column} class={numeric[i] ? "right" : ""} aria-sort={sort === column ? (desc ? "descending" : "ascending") : "none"}>
                <button type="button" class="sort" onClick={() => turn(column)}>
                  {plain(column)}<span class="arrow" aria-hidden="true">{sort === column ? (desc ? "▼" : "▲") : ""}</span>
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {page.rows.map((row) => (
            <tr key={String(row[agentAt])}>
              {row.map((value, i) => (
                <td key={page.columns[i]} class={numeric[i] ? "right nums" : "nums"}>
                  {i === agentAt ? <a href={href(["run", id, "agents", String(value)])}>{String(value)}</a> : cellText(value)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

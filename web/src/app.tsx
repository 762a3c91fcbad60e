// The frame of the page: its head, the tabs of a run, and the view that the address names.
import { Component, type ComponentChildren, type JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Run, RunHead, System } from "./api";
import { Problem, Simulated, StatusChip } from "./parts";
import { go, href, useRoute } from "./route";
import { OpenRun, useLoad, useOpen, useOpenRun, useTheme } from "./state";
import { plain, Text } from "./text";
import { Agent } from "./views/agent";
import { Agents } from "./views/agents";
import { CallList } from "./views/calls";
import { DiffView } from "./views/diff";
import { FeedView } from "./views/feed";
import { InfluenceView } from "./views/influence";
import { ItemView } from "./views/item";
import { ItemList } from "./views/items";
import { Messages } from "./views/messages";
import { Overview } from "./views/overview";
import { Questions } from "./views/questions";
import { type ReportHead, Reports } from "./views/reports";
import { Runs } from "./views/runs";
import { Systems } from "./views/systems";
import { Tables } from "./views/tables";

export function App(): JSX.Element {
  const { parts } = useRoute();
  const [page, id] = parts;
  const runs = useLoad<{ runs: RunHead[] }>("runs");
  const systems = useLoad<{ systems: System[] }>("systems");
  const reports = useLoad<{ reports: ReportHead[] }>("reports");
  const single = runs.data?.runs.length === 1 ? runs.data.runs[0]!.id : null;
  useEffect(() => {
    // A page for one run opens it; the list would be a detour.
    if (parts.length === 0 && single) history.replaceState(null, "", href(["run", single]));
    if (parts.length === 0 && single) dispatchEvent(new HashChangeEvent("hashchange"));
  }, [parts.length, single]);
  useFocus(parts.join("/"));
  const tabs: [string, string][] = [["runs", "Runs"]];
  if ((runs.data?.runs.length ?? 0) > 1) tabs.push(["diff", "Difference"]);
  if ((reports.data?.reports.length ?? 0) > 0) tabs.push(["reports", "Reports"]);
  if ((systems.data?.systems.length ?? 0) > 0) tabs.push(["systems", "Systems"]);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => {
        event.preventDefault();
        document.getElementById("main")?.focus();
      }}>Skip to the content</a>
      <Head tabs={tabs} page={page ?? "runs"} />
      {page === "run" && id
        ? <RunFrame key={id} id={id} parts={parts.slice(2)} />
        : <Main><TopView page={page} /></Main>}
    </>
  );
}

function TopView({ page }: { page: string | undefined }): JSX.Element {
  useTitle(page === "diff" ? "Difference" : page === "systems" ? "Systems" : page === "reports" ? "Reports" : "Runs");
  if (page === "diff") return <DiffView />;
  if (page === "systems") return <Systems />;
  if (page === "reports") return <Reports />;
  return <Runs />;
}

function Head({ tabs, page }: { tabs: [string, string][]; page: string }): JSX.Element {
  const [dark, toggle] = useTheme();
  return (
    <header class="top">
      <div class="inner">
        <a class="brand" href="#/runs"><Logo />Polity</a>
        <nav aria-label="Site">
          {tabs.map(([key, name]) => <a key={key} href={`#/${key}`} aria-current={page === key ? "page" : undefined}>{name}</a>)}
        </nav>
        <button type="button" class="theme" aria-pressed={dark} onClick={toggle}>
          <svg viewBox="0 0 16 16" aria-hidden="true"><circle cx="8" cy="8" r="6.2" fill="none" stroke="currentColor" stroke-width="1.4" /><path d="M8 1.8a6.2 6.2 0 0 1 0 12.4z" fill="currentColor" /></svg>
          <span class="theme-word">Dark<span class="sr"> mode</span></span>
        </button>
      </div>
    </header>
  );
}

const Logo = (): JSX.Element => (
  <svg viewBox="0 0 16 16" aria-hidden="true">
    <path d="M4 4.5 12 6 7 12z" fill="none" stroke="currentColor" opacity=".45" />
    <circle cx="4" cy="4.5" r="2.6" fill="#0072b2" /><circle cx="12" cy="6" r="2.6" fill="#e69f00" /><circle cx="7" cy="12" r="2.6" fill="#009e73" />
  </svg>
);

const Main = ({ children }: { children: ComponentChildren }): JSX.Element => <main id="main" tabIndex={-1}><div class="inner"><Guard>{children}</Guard></div></main>;

/** After a click on a link the new view has the focus, as after a page load; the first view leaves it alone. */
function useFocus(path: string): void {
  const first = useRef(true);
  useEffect(() => {
    if (first.current) {
      first.current = false;
      return;
    }
    document.getElementById("main")?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }, [path]);
}

function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} – Polity`;
  }, [title]);
}

function RunFrame({ id, parts }: { id: string; parts: string[] }): JSX.Element {
  const open = useOpenRun(id);
  return (
    <OpenRun.Provider value={open}>
      {open.run && <RunHeader run={open.run} view={parts[0] ?? ""} />}
      <Main>
        {open.run ? <Guard key={parts.join("/")}><RunView parts={parts} /></Guard> : open.error ? <><h1><Text>{id}</Text></h1><Problem error={open.error} retry={open.reload} /></> : <p class="loading" role="status">Loading …</p>}
      </Main>
    </OpenRun.Provider>
  );
}

const VIEWS: [key: string, name: string, shown: (run: Run) => boolean][] = [
  ["", "Overview", () => true],
  ["items", "Items", ({ has }) => has.items],
  ["agents", "Agents", ({ kind, columns, agents }) => kind === "society" && (columns.length > 0 || (agents ?? 0) > 0)],
  ["messages", "Messages", ({ has }) => has.messages],
  ["influence", "Influence", ({ has, kind }) => has.messages && kind === "society"],
  ["feed", "Feed", ({ has }) => has.posts],
  ["calls", "Calls", ({ has }) => has.calls],
  ["questions", "Questions", ({ question_count }) => question_count > 0],
  ["tables", "Tables", ({ tables }) => tables.length > 0],
];

function RunHeader({ run, view }: { run: Run; view: string }): JSX.Element {
  const { following, round } = useOpen();
  const views = VIEWS.filter(([key, , shown]) => key === view || shown(run));
  return (
    <section class="run-bar" aria-label="Run">
      <div class="inner">
        <div class="run-title">
          {view === "" ? <h1><Text>{run.name}</Text></h1> : <a class="run-name" href={href(["run", run.id])}><Text>{run.name}</Text></a>}
          <StatusChip status={run.status} />
          <Simulated run={run} />
          {run.health.length > 0 && <span class="chip alarm">{run.health.length === 1 ? "1 alarm" : `${run.health.length} alarms`}</span>}
        </div>
        <nav class="tabs" aria-label="Views of this run">
          {views.map(([key, name]) => (
            <a key={key} href={href(key ? ["run", run.id, key] : ["run", run.id], { round: following ? null : round })} aria-current={key === view ? "page" : undefined}>
              {name}{key === "questions" && run.question_count > 0 && <span class="count">{run.question_count}</span>}
            </a>
          ))}
          <a href={href(["diff"], { a: run.parent ?? "", b: run.id })} class="apart">Compare</a>
        </nav>
      </div>
    </section>
  );
}

function RunView({ parts }: { parts: string[] }): JSX.Element {
  const { run } = useOpen();
  const [view, which] = parts;
  const name = VIEWS.find(([key]) => key === (view ?? ""))?.[1] ?? "";
  useTitle(`${which ? `${name} ${plain(which)}` : name} – ${plain(run?.name)}`);
  const shown = useMemo(() => {
    switch (view) {
      case undefined: return <Overview />;
      case "agents": return which === undefined ? <Agents /> : <Agent key={which} agent={which} />;
      case "messages": return <Messages />;
      case "influence": return <InfluenceView />;
      case "feed": return <FeedView />;
      case "calls": return <CallList />;
      case "items": return which === undefined ? <ItemList /> : <ItemView key={which} item={which} />;
      case "tables": return <Tables />;
      case "questions": return <Questions />;
      default: return null;
    }
  }, [view, which]);
  if (shown) return shown;
  return <Problem error="There is no such view." retry={() => go(["run", run?.id ?? ""])} />;
}

/** A fault in one view must not take the page with it. */
class Guard extends Component<{ children: ComponentChildren }, { fault: string | null }> {
  override state = { fault: null };

  static override getDerivedStateFromError(fault: unknown): { fault: string } {
    return { fault: fault instanceof Error ? fault.message : String(fault) };
  }

  override render(): ComponentChildren {
    if (this.state.fault === null) return this.props.children;
    return <Problem error={`This view could not be drawn: ${this.state.fault}. The rest of the page still works.`} retry={() => this.setState({ fault: null })} />;
  }
}

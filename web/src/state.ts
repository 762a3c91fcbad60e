// What views share: loading, the theme, and the run that is open.
import { createContext } from "preact";
import { useCallback, useContext, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { complete, follow, get, ofRun, type Live, type Query, type Run } from "./api";
import { isDark } from "./palette";
import { numberOf, parse, patch } from "./route";

export interface Loaded<T> {
  data: T | null;
  error: string | null;
  loading: boolean;
  reload: () => void;
}

/**
 * Loads a path. While another page of the same thing loads, the old one stays on the screen, so that nothing jumps.
 * `version` counts changes of a run under way: the same path is then read again.
 */
export function useLoad<T>(path: string | null, query: Query = {}, version = 0): Loaded<T> {
  const key = path === null ? null : `${path}?${JSON.stringify(query)}`;
  const [state, setState] = useState<{ path: string | null; data: T | null; error: string | null; loading: boolean }>({
    path: null, data: null, error: null, loading: path !== null,
  });
  const [again, setAgain] = useState(0);
  useEffect(() => {
    if (path === null) return undefined;
    const abort = new AbortController();
    setState((old) => ({ ...old, data: old.path === path ? old.data : null, loading: true }));
    get<T>(path, query, abort.signal).then(
      (data) => setState({ path, data, error: null, loading: false }),
      (fault: unknown) => {
        if (abort.signal.aborted) return;
        setState((old) => ({ ...old, path, error: words(fault), loading: false }));
      },
    );
    return () => abort.abort();
  }, [key, version, again]);
  const reload = useCallback(() => setAgain((n) => n + 1), []);
  const fresh = state.path === path;
  return { data: fresh ? state.data : null, error: fresh ? state.error : null, loading: state.loading, reload };
}

export function words(fault: unknown): string {
  return fault instanceof Error ? fault.message : String(fault);
}

const THEME = "polity-theme";

export function startTheme(): void {
  try {
    const chosen = localStorage.getItem(THEME);
    if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
  } catch {
    // Without storage the system's choice holds.
  }
}

/** Whether the page is dark now, and a switch. */
export function useTheme(): [boolean, () => void] {
  const [dark, setDark] = useState(isDark);
  useEffect(() => {
    const media = matchMedia("(prefers-color-scheme: dark)");
    const changed = () => setDark(isDark());
    media.addEventListener("change", changed);
    addEventListener("polity-theme", changed);
    return () => {
      media.removeEventListener("change", changed);
      removeEventListener("polity-theme", changed);
    };
  }, []);
  const toggle = useCallback(() => {
    const next = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    try {
      localStorage.setItem(THEME, next);
    } catch {
      // The choice then lasts as long as the page.
    }
    dispatchEvent(new Event("polity-theme"));
  }, []);
  return [dark, toggle];
}

export interface Open {
  id: string;
  run: Run | null;
  error: string | null;
  /** Counts changes of a run under way, at most one in three seconds. */
  version: number;
  reload: () => void;
  /** The round that the views show. */
  round: number;
  setRound: (round: number) => void;
  /** Whether the round shown moves on with the run. */
  following: boolean;
}

export const OpenRun = createContext<Open | null>(null);

export function useOpen(): Open {
  const open = useContext(OpenRun);
  if (!open) throw new Error("no run is open");
  return open;
}

/** The open run, for views that are drawn only once it is known. */
export function useRun(): Open & { run: Run } {
  const open = useOpen();
  if (!open.run) throw new Error("the run is not loaded");
  return open as Open & { run: Run };
}

export const underWay = (run: { status: string }): boolean => run.status === "running" || run.status === "paused";

const PACE_MS = 3000;

function merged(run: Run, live: Live | null): Run {
  if (!live) return run;
  return {
    ...run,
    status: live.status ?? run.status,
    rounds: Math.max(run.rounds, live.round ?? 0),
    rounds_planned: live.rounds_planned ?? run.rounds_planned,
    calls: live.calls ?? run.calls,
    cost_usd: live.cost_usd,
    tokens: live.tokens ?? run.tokens,
    waiting: live.waiting,
  };
}

export function useOpenRun(id: string): Open {
  const [version, setVersion] = useState(0);
  const loaded = useLoad<Run>(ofRun(id), {}, version);
  const [live, setLive] = useState<Live | null>(null);
  const [chosen, setChosen] = useState<number | null>(() => numberOf(parse(location.hash).query.round));
  const last = useRef(0);
  const known = loaded.data !== null && loaded.data.id !== undefined;
  const active = loaded.data ? underWay(loaded.data) : false;

  useEffect(() => {
    if (!known || !active) return undefined;
    const abort = new AbortController();
    const onLive = (next: Live) => {
      setLive(next);
      // Heads and tables are read again now and then; each event alone would be too often.
      if (Date.now() - last.current >= PACE_MS) {
        last.current = Date.now();
        setVersion((n) => n + 1);
      }
    };
    const onEnd = () => {
      setLive(null);
      setVersion((n) => n + 1);
    };
    void follow(id, onLive, onEnd, abort.signal);
    return () => abort.abort();
  }, [id, known, active]);

  const run = useMemo(() => (loaded.data ? merged(complete(loaded.data), live) : null), [loaded.data, live]);
  const latest = run ? run.rounds - 1 : -1;
  const round = chosen === null ? latest : Math.min(chosen, latest);
  const setRound = useCallback((next: number) => setChosen(next >= latest ? null : next), [latest]);
  useRoundInAddress(chosen);
  return { id, run, error: loaded.error, version, reload: loaded.reload, round, setRound, following: chosen === null };
}

/** Browsers refuse a page that changes its address too often, so a scrubbed slider writes it only at rest. */
function useRoundInAddress(chosen: number | null): void {
  const first = useRef(true);
  useEffect(() => {
    if (first.current) {
      first.current = false;
      return undefined;
    }
    const timer = setTimeout(() => patch({ round: chosen }), 300);
    return () => clearTimeout(timer);
  }, [chosen]);
}

/** A value once it has not changed for a while. */
export function useRested<T>(value: T, ms: number): T {
  const [rested, setRested] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setRested(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return rested;
}

/** The width of an element, for things that draw themselves. */
export function useWidth<E extends HTMLElement>(): [{ current: E | null }, number] {
  const at = useRef<E>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    if (!at.current) return undefined;
    const watch = new ResizeObserver((entries) => {
      const next = Math.round(entries[0]?.contentRect.width ?? 0);
      setWidth((old) => (Math.abs(old - next) >= 1 ? next : old));
    });
    watch.observe(at.current);
    return () => watch.disconnect();
  }, []);
  return [at, width];
}

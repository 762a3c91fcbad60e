// Addresses inside the page: #/part/part?name=value. A view's filters live there, so that a link shows what its sender saw.
import { useEffect, useState } from "preact/hooks";

export interface Route {
  parts: string[];
  query: Record<string, string>;
}

export function parse(hash: string): Route {
  const [path = "", text = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const parts = path.split("/").filter(Boolean).map(decoded);
  return { parts, query: Object.fromEntries(new URLSearchParams(text)) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export type Values = Record<string, string | number | boolean | null | undefined>;

export function href(parts: (string | number)[], query: Values = {}): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") params.set(name, String(value));
  }
  const text = params.toString();
  return `#/${parts.map((part) => encodeURIComponent(part)).join("/")}${text ? `?${text}` : ""}`;
}

export function go(parts: (string | number)[], query: Values = {}): void {
  location.hash = href(parts, query);
}

/** Changes some filters of the present view. The view stays; `back` leaves it. */
export function patch(values: Values): void {
  const { parts, query } = parse(location.hash);
  const next = href(parts, { ...query, ...values });
  if (next === location.hash) return;
  history.replaceState(null, "", next);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

export function useRoute(): Route {
  const [route, setRoute] = useState(() => parse(location.hash));
  useEffect(() => {
    const changed = () => setRoute(parse(location.hash));
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return route;
}

export function numberOf(text: string | undefined): number | null {
  if (text === undefined || text.trim() === "") return null;
  const value = Number(text);
  return Number.isFinite(value) ? value : null;
}

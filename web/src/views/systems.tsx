// Claims of published systems, and what became of them here.
import type { JSX } from "preact";
import type { System } from "../api";
import { count } from "../format";
import { Empty, Section, Wait } from "../parts";
import { useLoad } from "../state";
import { plain, Text } from "../text";

const LOOK: Record<string, string> = { "holds": "good", "does not hold": "alarm", "not told apart": "plain", "elsewhere": "plain", "not run": "plain" };

export function Systems(): JSX.Element {
  const loaded = useLoad<{ systems: System[] }>("systems");
  return (
    <>
      <h1>Systems</h1>
      <Wait of={loaded}>
        {({ systems }) => systems.length === 0
          ? <Empty>There are no claims in this folder. <code>polity systems check NAME</code> writes some.</Empty>
          : <>{systems.map((system) => <One key={system.name} system={system} />)}</>}
      </Wait>
    </>
  );
}

function One({ system }: { system: System }): JSX.Element {
  const hold = system.claims.filter(({ verdict }) => verdict === "holds").length;
  return (
    <Section title={plain(system.title ?? system.name)} note={`${count(hold, "claim")} of ${system.claims.length} ${hold === 1 ? "holds" : "hold"} here.`}>
      <ul class="claims">
        {system.claims.map((claim) => (
          <li key={claim.id} class="card">
            <div class="post-head"><code>{plain(claim.id)}</code><span class={`chip small ${LOOK[claim.verdict] ?? "plain"}`}>{plain(claim.verdict)}</span></div>
            <p><Text>{claim.text}</Text></p>
            {claim.detail && <p class="quiet"><Text>{claim.detail}</Text></p>}
          </li>
        ))}
      </ul>
    </Section>
  );
}

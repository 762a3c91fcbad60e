// Reports of sweeps and comparisons, each as it was written: in a frame of its own, without scripts and without a way out.
import type { JSX } from "preact";
import { Choice, Empty, Wait } from "../parts";
import { patch, useRoute } from "../route";
import { useLoad } from "../state";

export interface ReportHead {
  id: string;
  kind: "sweep" | "comparison";
}

export function Reports(): JSX.Element {
  const loaded = useLoad<{ reports: ReportHead[] }>("reports");
  const { query } = useRoute();
  return (
    <>
      <h1>Reports</h1>
      <Wait of={loaded}>
        {({ reports }) => {
          const chosen = reports.find(({ id }) => id === query.report) ?? reports[0];
          if (!chosen) return <Empty>There are no reports in this folder. <code>polity sweep</code> and <code>polity compare</code> write some.</Empty>;
          return (
            <>
              {reports.length > 1 && (
                <div class="filters">
                  <Choice label="Of" value={chosen.id} onValue={(value) => patch({ report: value })}
                    options={reports.map(({ id, kind }) => [id, `${id.replaceAll("~", "/")} (${kind})`])} />
                </div>
              )}
              <Page key={chosen.id} id={chosen.id} />
            </>
          );
        }}
      </Wait>
    </>
  );
}

function Page({ id }: { id: string }): JSX.Element {
  const loaded = useLoad<{ html: string }>("reports/page", { id });
  return <Wait of={loaded}>{({ html }) => <iframe class="report" title={`Report of ${id.replaceAll("~", "/")}`} sandbox="" srcDoc={html} />}</Wait>;
}

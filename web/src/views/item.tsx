// One item's conversation: by round, what each member was shown, answered and did.
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { ofRun, type Act, type Call, type Conversation, type Message } from "../api";
import { num } from "../format";
import { category } from "../palette";
import { Empty, Fact, Facts, Scroll, Section, Wait } from "../parts";
import { href } from "../route";
import { useLoad, useRun, useTheme } from "../state";
import { Block, plain, Text } from "../text";
import { CallCard, keyOf, record } from "./calls";
import { Correct } from "./items";

type Member = Conversation["team"][number];

export function ItemView({ item }: { item: string }): JSX.Element {
  const { id, version } = useRun();
  const loaded = useLoad<Conversation>(ofRun(id, `items/${encodeURIComponent(item)}`), {}, version);
  const number = Number(item);
  return (
    <>
      <div class="title-row">
        <h1>Item {plain(item)}</h1>
        <nav class="steps" aria-label="Other items">
          {number > 0 && <a href={href(["run", id, "items", number - 1])}>Previous</a>}
          {(loaded.data?.of === undefined || number + 1 < loaded.data.of) && <a href={href(["run", id, "items", number + 1])}>Next</a>}
          <a href={href(["run", id, "items"])}>All items</a>
        </nav>
      </div>
      <Wait of={loaded}>{(conversation) => <Shown of={conversation} />}</Wait>
    </>
  );
}

function Shown({ of }: { of: Conversation }): JSX.Element {
  const { item, team } = of;
  const rounds = [...new Set([...of.acts, ...of.calls, ...of.messages].map(({ round }) => round))].sort((a, b) => a - b);
  return (
    <>
      <Block class="lead">{item.question}</Block>
      <Facts>
        <Fact name="result"><Correct correct={item.correct} /></Fact>
        <Fact name="answer"><Text>{item.answer}</Text></Fact>
        <Fact name="expected"><Text>{item.gold}</Text></Fact>
        <Fact name="rounds">{num(item.rounds)}</Fact>
        <Fact name="calls">{num(item.asks)}</Fact>
      </Facts>
      {item.note && <p class="note"><Text>{item.note}</Text></p>}
      {rounds.length === 0 ? <Empty>Nothing was recorded of this conversation.</Empty> : (
        <>
          <Matrix of={of} rounds={rounds} />
          {rounds.map((round) => <Round key={round} round={round} of={of} team={team} />)}
        </>
      )}
    </>
  );
}

const ANSWER = "answer";

const nameOf = (team: Member[], agent: number | null | undefined): string => {
  if (agent === null || agent === undefined) return "the method";
  const member = team.find((one) => one.agent === agent);
  return member?.name ? plain(member.name) : `member ${agent}`;
};

/** Same answer, same colour: who changed, and whether they came to agree, shows at once. */
function Matrix({ of, rounds }: { of: Conversation; rounds: number[] }): JSX.Element | null {
  const [dark] = useTheme();
  const answers = useMemo(() => of.acts.filter(({ kind }) => kind === ANSWER), [of.acts]);
  if (answers.length === 0) return null;
  const distinct = [...new Set(answers.map(({ text }) => text ?? ""))];
  return (
    <Section title="Answers by round" note="Equal answers have one colour. A check mark: as expected.">
      <Scroll label="Answers by round">
        <table class="matrix">
          <thead><tr><th>member</th>{rounds.map((round) => <th key={round}>round {round}</th>)}</tr></thead>
          <tbody>
            {of.team.map((member) => (
              <tr key={member.agent}>
                <th scope="row">{nameOf(of.team, member.agent)} <span class="quiet"><Text>{member.model}</Text></span></th>
                {rounds.map((round) => {
                  const act = answers.findLast((one) => one.round === round && one.agent === member.agent);
                  return (
                    <td key={round}>
                      {act ? <span class="held"><i style={{ background: category(distinct.indexOf(act.text ?? ""), dark) }} /><Text>{act.text}</Text>{act.text === of.item.gold && <b class="mark-right" aria-label="as expected">✓</b>}</span> : <span class="quiet">–</span>}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </Section>
  );
}

function Round({ round, of, team }: { round: number; of: Conversation; team: Member[] }): JSX.Element {
  const here = <T extends { round: number }>(all: T[]) => all.filter((one) => one.round === round);
  const acts = here(of.acts);
  const calls = here(of.calls);
  const messages = here(of.messages);
  const members = team.filter(({ agent }) => acts.some((act) => act.agent === agent) || calls.some((call) => call.agent === agent));
  const known = new Set(team.map(({ agent }) => agent));
  const others = acts.filter(({ agent }) => agent === undefined || agent === null || !known.has(agent));
  return (
    <Section title={`Round ${round}`}>
      <div class="members">
        {members.map((member) => (
          <MemberCard key={member.agent} member={member} team={team} before={of.acts.findLast((act) => act.round < round && act.kind === ANSWER && act.agent === member.agent) ?? null}
            acts={acts.filter(({ agent }) => agent === member.agent)} calls={calls.filter(({ agent }) => agent === member.agent)}
            shown={messages.filter(({ to }) => to === member.agent)} />
        ))}
      </div>
      {others.length > 0 && <div class="card"><h3>The method</h3><OtherActs acts={others} /></div>}
    </Section>
  );
}

interface MemberProps {
  member: Member;
  team: Member[];
  before: Act | null;
  acts: Act[];
  calls: Call[];
  shown: Message[];
}

function MemberCard({ member, team, before, acts, calls, shown }: MemberProps): JSX.Element {
  const { id } = useRun();
  const answer = acts.findLast(({ kind }) => kind === ANSWER) ?? null;
  const rest = acts.filter((act) => act !== answer);
  const changed = answer !== null && before !== null && answer.text !== before.text;
  return (
    <article class="card member">
      <header>
        <h3>{nameOf(team, member.agent)}</h3>
        <span class="quiet"><Text>{member.model}</Text></span>
      </header>
      {shown.length > 0 && (
        <p class="was-shown">was shown {shown.map((message, i) => (
          <span key={i}>{i > 0 && ", "}<b>{nameOf(team, message.from)}</b>{message.text && <>: <Text>{message.text.length > 60 ? `${message.text.slice(0, 60)} …` : message.text}</Text></>}</span>
        ))}</p>
      )}
      {answer && (
        <p class="answer">
          <span class="quiet">answer</span> <b><Text>{answer.text}</Text></b>
          {changed && <span class="chip small">changed from <Text>{before?.text}</Text></span>}
        </p>
      )}
      <Reasons calls={calls} />
      {rest.length > 0 && <OtherActs acts={rest} />}
      {calls.length > 0 && <div class="calls">{calls.map((call) => <CallCard key={keyOf(call)} call={call} run={id} hideAgent />)}</div>}
    </article>
  );
}

/** A reply that names an action has a field for each need of every action. What came of it is among the acts. */
const chose = (fields: [string, unknown][] | null): boolean => fields?.some(([name]) => name === "action") ?? false;

/** What a member said beside its answer, out of its last reply that has fields. */
function Reasons({ calls }: { calls: Call[] }): JSX.Element | null {
  const fields = calls.map(({ answer }) => (answer === null ? null : record(answer))).findLast((one) => one !== null) ?? null;
  const rest = (fields ?? []).filter(([name, value]) => name !== ANSWER && value !== null && value !== "" && !(chose(fields) && name !== "thought"));
  if (rest.length === 0) return null;
  return (
    <dl class="fields">
      {rest.map(([name, value]) => <div key={name}><dt>{plain(name)}</dt><dd><Block>{value}</Block></dd></div>)}
    </dl>
  );
}

/** Votes, orders, ledgers and whatever else a method records. */
function OtherActs({ acts }: { acts: Act[] }): JSX.Element {
  return (
    <dl class="fields acts">
      {acts.map((act, i) => (
        <div key={i}>
          <dt>{plain(act.kind)}</dt>
          <dd><Block>{act.text ?? act.value}</Block></dd>
        </div>
      ))}
    </dl>
  );
}

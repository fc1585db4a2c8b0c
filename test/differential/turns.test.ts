/**
 * Our plugins and Go's take turns on one attachment, in every sequence of four events. Whatever came before, an
 * attachment that is as its ADD made it passes CHECK, and DEL leaves nothing.
 *
 * Two sequences that end in the same state have the same future, so only one of them goes on.
 */
import { expect, test } from "bun:test";
import { type Event, EVENTS, openStage, type Stage, type Topology } from "../support/turns.ts";

const LONGEST = Number(process.env.PATCHBAY_TEST_TURNS ?? 4);
const hostLocal = { type: "host-local", subnet: "10.20.0.0/24", routes: [{ dst: "0.0.0.0/0" }] };
const fixed = { type: "static", addresses: [{ address: "10.20.0.9/24", gateway: "10.20.0.1" }] };
const withPorts = [{ type: "portmap", capabilities: { portMappings: true } }, { type: "firewall" }];

const bridge = { type: "bridge", bridge: "br0", isGateway: true, ipMasq: true };
const topologies: Topology[] = [
  { name: "bridge, portmap and firewall", plugins: [{ ...bridge, ipam: hostLocal }, ...withPorts] },
  { name: "bridge with a fixed address, portmap and firewall", plugins: [{ ...bridge, ipam: fixed }, ...withPorts] },
  { name: "ptp", plugins: [{ type: "ptp", ipMasq: true, ipam: hostLocal }] },
  { name: "macvlan", plugins: [{ type: "macvlan", master: "m0", ipam: fixed }] },
];

/** Events, each with whether it succeeded. */
type Events = readonly (readonly [Event, boolean])[];

/** Whether the attachment is as its ADD made it, as far as events tell. A failed ADD of Go's takes things away. */
function isHealthy(events: Events): boolean {
  let healthy = false;
  for (const [event, succeeded] of events) {
    if (event === "ours ADD") healthy ||= succeeded;
    else if (event === "Go ADD") healthy = succeeded;
    else healthy = false;
  }
  return healthy;
}

/**
 * Go's firewall writes rules that say nothing but an address. When the cache is lost and the container's link went
 * without a DEL that saw it, nobody knows the address any more.
 */
function areRulesOrphaned(events: Events): boolean {
  let orphaned = false, rules = false, told = false, link = false;
  for (const [event, succeeded] of events) {
    if (event === "Go ADD" && succeeded) rules = true;
    if (event === "cache lost") told = false;
    else if (event === "namespace made anew") link = false;
    else if (event === "reboot") orphaned = rules = link = false;
    else if (event.endsWith("ADD")) [told, link] = succeeded ? [true, true] : [told, told && link];
    else {
      if (told || (link && event === "ours DEL")) rules = false;
      told = link = false;
    }
    orphaned ||= rules && !told && !link;
  }
  return orphaned;
}

/** What may be left: a first attachment of either leaves shared things. */
async function sharedThings(topology: Topology): Promise<string[]> {
  await using stage = await openStage(topology);
  for (const event of ["ours ADD", "ours DEL", "Go ADD", "Go DEL"] as const) await stage.happen(event);
  return ["br0", ...await stage.host()];
}

/** What `inspect` says of the attachment: who made it, and its state. */
async function madeBy(stage: Stage): Promise<string> {
  const { stdout, stderr } = await stage.look("inspect");
  if (stderr !== "") return stderr;
  const [{ state, plugins }] = JSON.parse(stdout) as [{ state: string; plugins: { madeBy: string }[] }];
  const makers = [...new Set(plugins.map(({ madeBy }) => madeBy))].join(" and ");
  return state === "ok" ? `${makers} ok` : `${makers} ${stdout}`;
}

async function judge(stage: Stage, events: Events, shared: string[]): Promise<string[]> {
  const story = events.map(([event, succeeded]) => (succeeded ? event : `${event} (fails)`)).join(", ");
  const wrong: string[] = [];
  if (isHealthy(events)) {
    const { code, stderr } = await stage.patchbay("check");
    if (code !== 0) wrong.push(`${story}: CHECK: ${stderr.trim()}`);
    const made = await madeBy(stage),
      last = events.findLast(([event, succeeded]) => event.endsWith("ADD") && succeeded);
    if (made !== (last![0] === "ours ADD" ? "patchbay ok" : "others ok")) wrong.push(`${story}: inspect: ${made}`);
  }
  const { code, stdout, stderr } = await stage.patchbay("del");
  if (code !== 0) wrong.push(`${story}: DEL: ${stdout}${stderr}`);
  await stage.endContainer();
  const left = (await stage.host()).filter((line) =>
    !shared.includes(line) && !(areRulesOrphaned(events) && line.startsWith("-A CNI-FORWARD "))
  );
  return [...wrong, ...left.map((line) => `${story}: left: ${line}`)];
}

interface Node {
  events: (readonly [Event, boolean])[];
}

async function walk(topology: Topology): Promise<{ wrong: string[]; pictures: number; steps: number }> {
  const shared = await sharedThings(topology);
  const wrong: string[] = [], seen = new Set<string>();
  let steps = 0;
  let front: Node[] = [{ events: [] }];
  for (let length = 1; length <= LONGEST; length++) {
    const queue = front.flatMap((node) => EVENTS.map((event) => ({ node, event })));
    front = [];
    const lane = async () => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
        const { node, event } = next;
        await using stage = await openStage(topology);
        const events: (readonly [Event, boolean])[] = [];
        for (const one of [...node.events.map(([earlier]) => earlier), event]) {
          events.push([one, await stage.happen(one)]);
        }
        steps++;
        const picture = `${isHealthy(events)} ${await stage.picture()}`;
        if (seen.has(picture)) continue;
        seen.add(picture);
        front.push({ events });
        wrong.push(...await judge(stage, events, shared));
      }
    };
    await Promise.all([lane(), lane()]);
  }
  return { wrong, pictures: seen.size, steps };
}

test.each(topologies)("nothing is lost between ours and Go's: $name", async (topology) => {
  const { wrong, pictures, steps } = await walk(topology);
  console.log(`${topology.name}: ${pictures} different pictures in ${steps} sequences`);
  expect(wrong).toEqual([]);
}, 1_200_000);

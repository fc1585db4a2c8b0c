/**
 * Containers of real engines: real packets pass or not, and `explain` says the same of them by the engine's own names.
 * What others break, the line that it prints mends.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { InspectedAttachment } from "../../src/contract/summaries.ts";
import type { ExplanationDocument } from "../../src/explain/explanation.schema.ts";
import { Containerd } from "../support/engines/containerd.ts";
import { EngineMachine, SERVER } from "../support/engines/engine-machine.ts";
import { Kubelet } from "../support/engines/kubelet.ts";
import { cannotRun, openPodman } from "../support/engines/netavark-story.ts";
import { IMAGE, Podman } from "../support/engines/podman.ts";
import type { Container } from "../support/machine.ts";
import { patienceMs } from "../support/patience.ts";
import { PATCHBAY } from "../support/plugins.ts";
import { ownShare } from "../support/share.ts";
import { serve } from "../support/traffic.ts";
import { UPLINK } from "../support/way-out.ts";
import { expectPasses, expectStopped, explaining, type Judged } from "./judged.ts";
import type { SetUp } from "./set-ups.ts";
import { nft } from "./town.ts";

/** IDs of containers, by the engine's names. */
type Ids = Record<string, string>;

interface Engine {
  /** Starts `web`, whose port 80 is the host's 8080 where the engine publishes ports, `jug`, and what else there is. */
  start(room: EngineMachine): Promise<Ids>;
  /** What a person types for a container; its name where this is left out. */
  typed?(name: string): string;
  /** What is asked of a container that is named alone. */
  usual: string[];
  passes: [ask: string[], verdict: "arrives" | "leaves"][];
  setUps: SetUp[];
}

const OUT = ["web", "198.18.0.2", "tcp/7000"], BESIDE = ["web", "jug", "tcp/80"];
const PORT = ["outside", "host:8080", "tcp"], NAMES = ["web", "10.1.0.1", "udp/53"];
/** `ID` stands for the beginning of web's. */
const BY_ID = ["ID", "jug", "tcp/80"];

const out = (what: string, script: string, code: string): SetUp => ({
  what,
  break: script,
  ask: OUT,
  code,
  mend: "printed",
});

/** In the container, `$web` is its namespace. */
const setUpsOn = (bridge: string): SetUp[] => [
  out("forwarding is off", "sysctl -qw net.ipv4.ip_forward=0", "forwarding-off"),
  out("the bridge is down", `ip link set ${bridge} down`, "link-down"),
  out("the container's default route is gone", "nsenter --net=$web ip route delete default", "no-route"),
  out("the container's link is down", "nsenter --net=$web ip link set eth0 down", "link-down"),
  out("masquerading is gone", "nft flush ruleset", "no-masquerade"),
  out(
    "another program's table",
    nft("table inet other { chain c { type filter hook forward priority 5; ip daddr 198.18.0.2 drop; } }"),
    "forward-drop",
  ),
  {
    what: "another program's table, for frames of the bridge",
    break: nft("table bridge other { chain c { type filter hook forward priority 0; policy drop; } }"),
    ask: BESIDE,
    code: "bridge-drop",
    mend: "printed",
  },
  { what: "nobody listens", break: "true", ask: ["web", "jug", "tcp/81"], code: "nobody-listens", mend: "none" },
];

/** Debian's podman and conmon listen at published ports themselves, and answer nothing. */
const setUpsOfPorts: SetUp[] = [
  {
    what: "iptables' FORWARD has the policy DROP",
    break: "iptables -P FORWARD DROP",
    ask: PORT,
    code: "forward-drop",
    mend: "printed",
  },
  {
    what: "the rules of the published port are gone",
    break: "nft flush ruleset",
    ask: PORT,
    code: "no-mapping",
    mend: "printed",
  },
];

const keptApart = (what: string, ask: string[], script = "true"): SetUp => ({
  what,
  break: script,
  ask,
  code: "kept-apart",
  mend: "none",
});

const engines: Record<string, Engine> = {
  "podman with CNI": {
    async start(room) {
      return await startInPodman(await Podman.open(room));
    },
    usual: ["tcp/443", "tcp/8080"],
    passes: [[OUT, "leaves"], [BESIDE, "arrives"], [PORT, "arrives"], [BY_ID, "arrives"]],
    setUps: [...setUpsOn("cni0"), ...setUpsOfPorts],
  },
  "podman with netavark": {
    async start(room) {
      const podman = await openPodman(room);
      const networks = { in: ["--internal"], apart: ["-o", "isolate=true"], alone: ["-o", "isolate=true"] };
      for (const [index, [name, options]] of Object.entries(networks).entries()) {
        await podman.call("network", "create", "--subnet", `10.${index + 6}.0.0/24`, ...options, name);
      }
      await podman.call("network", "create", "--subnet", "10.9.0.0/24", "--subnet", "fd09::/64", "--ipv6", "both");
      const ids = await startInPodman(podman, { in1: "in", in2: "in", ap: "apart", al: "alone" });
      const six = ["run", "-d", "--name", "six", "--network", "both", "-p", "9006:80", IMAGE];
      return { ...ids, six: await podman.call(...six, "/bin/busybox", "httpd", "-f", "-p", "[::]:80", "-h", "/www") };
    },
    usual: ["tcp/443", "udp/53", "tcp/8080"],
    passes: [
      ...[[OUT, "leaves"], [BESIDE, "arrives"], [PORT, "arrives"], [BY_ID, "arrives"]] satisfies Engine["passes"],
      [NAMES, "arrives"],
      [["in1", "in2", "tcp/80"], "arrives"],
      [["ap", "web", "tcp/80"], "arrives"],
      [["six", "fd99::2", "tcp/7000"], "leaves"],
      [["outside", "fd99::1", "tcp/9006"], "arrives"],
    ],
    setUps: [
      ...setUpsOn("podman1"),
      ...setUpsOfPorts,
      out("iptables' FORWARD has the policy DROP", "iptables -P FORWARD DROP", "forward-drop"),
      {
        what: "names are not asked: INPUT drops port 53",
        break: "iptables -A INPUT -p udp --dport 53 -j DROP",
        ask: NAMES,
        code: "input-drop",
        mend: "printed",
      },
      { ...keptApart("an internal network has no way out", ["in1", "web", "tcp/80"]), code: "no-route" },
      {
        ...keptApart(
          "an internal network, in which somebody makes a way out",
          ["in1", "web", "tcp/80"],
          "nsenter --net=$in1 ip route add default via 10.6.0.1",
        ),
        code: "link-forwarding-off",
        undo: "nsenter --net=$in1 ip route delete default",
      },
      {
        ...keptApart(
          "an internal network, whose bridge somebody has forward, too",
          ["in1", "web", "tcp/80"],
          "nsenter --net=$in1 ip route add default via 10.6.0.1; sysctl -qw net.ipv4.conf.podman2.forwarding=1",
        ),
        undo: "nsenter --net=$in1 ip route delete default",
      },
      keptApart("an internal network, from another one", ["web", "in1", "tcp/80"]),
      keptApart("an internal network, from outside", ["outside", "in1", "tcp/80"]),
      {
        what: "a published port at ::1",
        break: "true",
        ask: ["host", "::1", "tcp/9006"],
        code: "martian",
        mend: "none",
      },
      { ...keptApart("two isolated networks", ["ap", "al", "tcp/80"]), owner: "netavark" },
    ],
  },
  "containerd by ctr": {
    async start(room) {
      const containerd = await Containerd.open(room), ids: Ids = {};
      for (const name of ["web", "jug"]) {
        containerd.serve(name);
        await containerd.addressOf(name);
        ids[name] = `default-${name}`;
      }
      return ids;
    },
    typed: (name) => `default-${name}`,
    usual: ["tcp/443"],
    passes: [[OUT, "leaves"], [BESIDE, "arrives"]],
    setUps: setUpsOn("cni0"),
  },
  "containerd for kubelets": {
    async start(room) {
      const kubelet = await Kubelet.open(room);
      const web = await kubelet.run("web", [{ hostPort: 8080, containerPort: 80 }]), jug = await kubelet.run("jug");
      return { web: web.id, jug: jug.id };
    },
    typed: (name) => `default/${name}`,
    usual: ["tcp/443", "tcp/8080"],
    passes: [[OUT, "leaves"], [BESIDE, "arrives"], [PORT, "arrives"], [BY_ID, "arrives"]],
    setUps: [...setUpsOn("cni0"), ...setUpsOfPorts],
  },
};

async function startInPodman(podman: Podman, others: Record<string, string> = {}): Promise<Ids> {
  await podman.serve("web", 8080);
  const networks = { jug: "net", ...others },
    ids: Ids = { web: await podman.call("inspect", "-f", "{{.Id}}", "web") };
  for (const [name, network] of Object.entries(networks)) {
    ids[name] = await podman.call("run", "-d", "--name", name, "--network", network, IMAGE, ...SERVER);
  }
  return ids;
}

interface Stage extends Judged, AsyncDisposable {
  /** What is said of web, named alone. */
  usual(): Promise<ExplanationDocument[]>;
  undo(script?: string): Promise<void>;
}

async function openStage({ start, typed = (name) => name }: Engine): Promise<Stage> {
  const room = await EngineMachine.open(), { machine } = room, outside = await machine.container("outside");
  await machine.sh(`${UPLINK}; for net in 6 7 8; do ip -n outside route add 10.$net.0.0/24 via 198.18.0.1; done`);
  const ids = await start(room), server = await serve(machine, outside, "tcp", 7000);
  const places: Record<string, Container> = { outside }, addresses: Record<string, string> = { host: "198.18.0.1" };
  const found = JSON.parse((await machine.run([PATCHBAY, "inspect", "--json"])).stdout) as InspectedAttachment[];
  for (const [name, id] of Object.entries(ids)) {
    const { netnsPath, addresses: [address] } = found.find((one) => one.containerId === id && one.ifName === "eth0")!;
    places[name] = { name, netnsPath };
    addresses[name] = address!.split("/")[0]!;
  }
  places["ID"] = places["web"]!;
  const words = (name: string) => name === "ID" ? ids["web"]!.slice(0, 12) : name in ids ? typed(name) : name;
  const withPlaces = Object.keys(ids).map((name) => `${name}=${places[name]!.netnsPath}; `).join("");
  const sh: Judged["machine"]["sh"] = (script, options) => machine.sh(withPlaces + script, options);
  return {
    machine: { ...machine, sh },
    explain: (ask) =>
      explaining((args) => machine.run([PATCHBAY, ...args]))([...ask.slice(0, 2).map(words), ...ask.slice(2)]),
    async isAnswered([from, to, protocol]) {
      const [, name = to!, published] = /^([^:]+):([0-9]+)$/.exec(to!) ?? [], address = addresses[name] ?? name;
      const place = places[from!], [kind, port = published] = protocol!.split("/");
      if (port === "7000") return await server.ask(place, address) !== undefined;
      const ask = kind === "udp"
        ? ["busybox", "nslookup", "jug.dns.podman", address]
        : ["busybox", "wget", "-qO-", `http://${address.includes(":") ? `[${address}]` : address}:${port}/`];
      const seconds = String(Math.ceil(patienceMs() / 1000));
      return (await machine.run(["timeout", seconds, ...ask], { in: place })).code === 0;
    },
    async usual() {
      return JSON.parse((await machine.run([PATCHBAY, "explain", words("web"), "--json"])).stdout);
    },
    async undo(script = "true") {
      await sh(`${script}; nft flush ruleset; sysctl -qw net.ipv4.ip_forward=1`);
      await machine.run([PATCHBAY, "repair"]);
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await room[Symbol.asyncDispose]();
    },
  };
}

const cases = Object.entries(engines).flatMap(([engine, { passes, setUps }]) => [
  ...passes.map(([ask, verdict]) => ({ engine, what: `${ask.join(" ")}: ${verdict}`, ask, verdict })),
  ...setUps.map((setUp) => ({ engine, what: `${setUp.what}: ${setUp.code}`, setUp })),
]);

describe.each(Object.entries(Object.groupBy(ownShare(cases), ({ engine }) => engine)))("%s", (engine, own) => {
  let stage: Stage;
  beforeAll(async () => {
    if (!cannotRun) stage = await openStage(engines[engine]!);
  });
  afterAll(() => stage?.[Symbol.asyncDispose]());

  test.skipIf(cannotRun)("web, named alone", async () => {
    const all = await stage.usual();
    expect(all.map(({ protocol }) => protocol)).toEqual(engines[engine]!.usual);
    for (const { verdict } of all) expect(verdict).toMatch(/arrives|leaves/);
  });

  test.skipIf(cannotRun).each(own!)("$what", async (one) => {
    if (!("setUp" in one)) {
      const { from } = await expectPasses(stage, one.ask, one.verdict), { typed } = engines[engine]!;
      if (["web", "ID"].includes(one.ask[0]!)) expect(from).toBe(typed?.("web") ?? "web");
      return;
    }
    try {
      await expectStopped(stage, one.setUp);
    } finally {
      await stage.undo(one.setUp.undo);
    }
  });
});

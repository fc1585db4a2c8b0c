/** Rulesets as other programs write them, and ours: whose each rule is, and what is said of packets that are forwarded. */
import { describe, expect, test } from "bun:test";
import { resolve } from "node:path";
import { type Machine, openMachine } from "../../support/machine.ts";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { commandsOn } from "../../support/commands.ts";
import type { Judgement, Question, Said } from "./judge.ts";
import { out, rulesets } from "./rulesets-of-others.ts";

const JUDGE = resolve(import.meta.dir, "judge.ts"), RULESETS = resolve(import.meta.dir, "rulesets");

async function judgement(machine: Machine, questions: Question[] = []): Promise<Judgement> {
  const { code, stdout, stderr } = await machine.run([process.execPath, JUDGE, JSON.stringify(questions)]);
  expect([code, stderr]).toEqual([0, ""]);
  return JSON.parse(stdout);
}

async function load(machine: Machine, file: string): Promise<void> {
  const restore = file.endsWith(".nft")
    ? "nft -f"
    : `${file.endsWith(".iptables") ? "iptables" : "ip6tables"}-nft-restore`;
  // A rule of libvirt's names the link by its index.
  await machine.sh(
    `ip link show virbr0 2>/dev/null || ip link add virbr0 type bridge; ${restore} ${RULESETS}/${file}`,
  );
}

const makerText = ({ maker: { name, network, containerId, remark } }: Said) =>
  `${name}${containerId === undefined ? "" : ` of ${containerId}`}${network === undefined ? "" : ` in ${network}`}` +
  (remark === undefined ? "" : ` (${remark})`);

function makersIn({ said }: Judgement, chain: string): string {
  const ofPolicy = chain.endsWith(":"), name = ofPolicy ? chain.slice(0, -1) : chain;
  const found = said.filter((each) => each.chain === name && (each.handle === "") === ofPolicy);
  return [...new Set(found.map(makerText))].join(", ");
}

const cause = (said: Said) =>
  `${said.line === "" ? said.place : said.line.replace(/\boif \d+/, "oif N")}: ${makerText(said)}`;

describe.each(rulesets)("$file", ({ file, makers, asked }) => {
  test("whose the rules are, and what they do", async () => {
    await using machine = await openMachine();
    await load(machine, file);
    const found = await judgement(machine, asked.map(({ question }) => question));
    const names = Object.keys(makers).map((chain) => [chain, makersIn(found, chain)]);
    expect(Object.fromEntries(names)).toEqual(makers);
    const judged = found.judged.map(({ fate, by, doubts }) => ({ fate, by: by.map(cause).toSorted(), doubts }));
    expect(judged).toEqual(asked.map(({ fate, by = [], doubts = [] }) => ({ fate, by: by.toSorted(), doubts })));
  });
});

const OF_WEB = "patchbay of web in shop";

test("what Patchbay writes with the backend iptables is its own, of a container in a network", async () => {
  await using machine = await openMachine();
  const directory = mkdtempSync(`${tmpdir()}/owner-`), { must } = commandsOn(() => machine, () => directory);
  try {
    const ipam = { type: "host-local", subnet: "10.40.0.0/24" };
    const plugins = [
      { type: "bridge", bridge: "shop0", isGateway: true, ipMasq: true, ipMasqBackend: "iptables", ipam },
      { type: "firewall", backend: "iptables" },
      { type: "portmap", backend: "iptables", capabilities: { portMappings: true } },
    ];
    writeFileSync(`${directory}/shop.conflist`, JSON.stringify({ cniVersion: "1.1.0", name: "shop", plugins }));
    await machine.container("web");
    await must("add", "shop", "web");
    const found = await judgement(machine),
      makers = (chain: string) => makersIn(found, chain).replaceAll(/cnitool-\w+/g, "web");
    expect(makers("ip filter CNI-FORWARD")).toBe(
      `CNI plugins (patchbay, too, writes such rules), ${OF_WEB}`,
    );
    // These have no room for more than the reference plugin's comment.
    expect(makers("ip nat POSTROUTING")).toContain(
      "CNI plugins of web in shop (patchbay, too, writes such rules)",
    );
  } finally {
    rmSync(directory, { recursive: true });
  }
});

/** As the plugin ovs writes it; without Open vSwitch, by hand. */
const OWN = (comment: string) =>
  `table inet patchbay_ovs {
  counter dropped { }
  map links { type ifname : counter; elements = { "shop0" comment "${comment}" : "dropped", "veth2" : "dropped" }; }
  chain prerouting { type filter hook prerouting priority -450; policy accept; counter name iifname map @links drop; }
}`;

test.each([
  ["id: web, if: eth0, net: shop", "patchbay of web in shop"],
  ["0123456789abcdef, id: web, if: eth0, net: sho", "patchbay of web"],
  ["0123456789abcdef, id: we", "patchbay"],
  ["somebody else's", "patchbay"],
])("an element with the comment %j is of its owner: %s", async (comment, maker) => {
  await using machine = await openMachine();
  await machine.sh("nft -f -", { stdin: OWN(comment) });
  const { judged: [judged] } = await judgement(machine, [{ ...out, hook: "prerouting" }]);
  expect(judged).toMatchObject({ fate: "is dropped", doubts: [] });
  expect(judged!.by.map(cause)).toEqual([`iifname @links drop: ${maker}`]);
});

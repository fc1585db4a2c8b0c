/**
 * The networks and commands of docs/start.md, docs/monitoring.md and docs/recipes/ do what the pages say that they print, each page in its
 * order on a machine of its own. The machine has what the page takes for granted, and nothing is attached in the end.
 */
import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { serverBehindBridge } from "../support/dhcp/link.ts";
import { root } from "../support/documents.ts";
import { startBus, startRealFirewalld } from "../support/firewalld.ts";
import { type Feature, lacks } from "../support/kernel-features.ts";
import { isListening } from "../support/listening.ts";
import { type Machine, openMachine } from "../support/machine.ts";
import { PATCHBAY } from "../support/plugins.ts";
import { missingLines, runPage, type Step, stepsOf } from "../support/runnable-page.ts";

const recipes = readdirSync(join(root, "docs/recipes")).filter((name) => name !== "README.md");
const pages = ["docs/start.md", "docs/monitoring.md", ...recipes.map((name) => `docs/recipes/${name}`)];

const needs: Record<string, Feature> = { "docs/recipes/vrf.md": "VRF links" };

/** What the page takes for granted, beside `patchbay` in PATH. */
const stages: Record<string, (machine: Machine, started: AsyncDisposableStack) => Promise<void>> = {
  async "docs/recipes/firewalld.md"(machine, started) {
    started.use(await startBus(machine));
    started.use(await startRealFirewalld(machine));
  },
  async "docs/recipes/docker.md"(machine) {
    await machine.sh(`
      iptables -P FORWARD DROP; iptables -N DOCKER-USER; iptables -A FORWARD -j DOCKER-USER
      ip netns add outside; ip link add uplink type veth peer name eth0 netns outside
      ip address add 198.51.100.1/24 dev uplink; ip link set uplink up
      ip -n outside address add 198.51.100.2/24 dev eth0; ip -n outside link set eth0 up`);
  },
  async "docs/recipes/without-a-network.md"(machine) {
    await machine.sh(`rm /usr/local/bin/patchbay; mkdir -p /run/dist; cp ${PATCHBAY} /run/dist/patchbay`);
  },
};

/** Private copies of the directories that commands write to. */
const privately = `
  mkdir -p /run/etc /run/bin /run/opt && cp -a /etc/. /run/etc && rm -rf /run/etc/cni
  mount --bind /run/etc /etc; mount --bind /run/bin /usr/local/bin; mount --bind /run/opt /opt
  ln -s ${PATCHBAY} /usr/local/bin/patchbay`;

async function runOn(machine: Machine, page: string, steps: readonly Step[]): Promise<void> {
  const { code, blocks } = await runPage(machine, steps);
  for (const { text, prints, printed } of blocks) {
    // The kernel says up to a second late that a link is up.
    const settled = printed?.replaceAll(" UNKNOWN ", " UP ") ?? "";
    expect({ page, text, printed, missing: missingLines(prints, settled) }).toMatchObject({ missing: [] });
  }
  expect({ page, code, printed: blocks.at(-1)?.printed }).toMatchObject({ code: 0 });
  expect(blocks.flatMap(({ prints }) => prints).length).toBeGreaterThan(0);
  expect(await machine.sh(`${PATCHBAY} inspect`)).toBe("nothing is attached\n");
}

describe.each(pages.filter((page) => !page.endsWith("/dhcp.md")).map((page) => ({ page })))("$page", ({ page }) => {
  const steps = stepsOf(page);

  test.skipIf(lacks(needs[page]))("does what it says", async () => {
    await using machine = await openMachine();
    await machine.sh(privately);
    await using started = new AsyncDisposableStack();
    await stages[page]?.(machine, started);
    await runOn(machine, page, steps);
  });
});

test("docs/recipes/dhcp.md does what it says, with a server on the LAN and the service running", async () => {
  await using segment = await serverBehindBridge();
  const { machine, folder, site } = segment;
  await machine.sh(privately);
  const options = ["-i", "s0", "--bind-interfaces", "--no-ping", "--user=root"];
  const files = [`--dhcp-leasefile=${folder}/leases`, `--pid-file=${folder}/pid`];
  const range = "--dhcp-range=192.168.77.100,192.168.77.120,1h";
  const command = ["dnsmasq", "-k", "-C", "/dev/null", "-p0", ...options, ...files, range];
  const server = segment.start(site.namespace, command, { log: `${folder}/server.log` });
  await server.until(() => server.hasBound(67));
  const service = segment.start(undefined, [PATCHBAY, "dhcp"], { log: `${folder}/service.log` });
  await service.until(() => isListening(machine, "/run/cni/dhcp.sock"));
  await runOn(machine, "docs/recipes/dhcp.md", stepsOf("docs/recipes/dhcp.md"));
});

test("docs/monitoring.md: what mends is silent while all is well; metrics have zeros, and what cannot be read", async () => {
  await using machine = await openMachine();
  await machine.sh(privately);
  const steps = stepsOf("docs/monitoring.md"), [network] = steps;
  const holding = (text: string) => steps.filter((step) => step.text.includes(text));
  const metrics = holding("/run/patchbay-metrics"), mending = holding("patchbay repair --brief");
  const printedBy = async (more: Step[]) => (await runPage(machine, more)).blocks.at(-1)?.printed?.trim().split("\n");
  const attachments = (ok: number) => [
    `patchbay_attachments{state="ok"} ${ok}`,
    ...["differs", "gone", "elsewhere"].map((state) => `patchbay_attachments{state="${state}"} 0`),
  ];
  const inFile = (name: string, file: string) => `{network="${name}",file="/etc/cni/net.d/${file}.conflist"`;
  const free = `patchbay_addresses_free${inFile("home", "20-home")},ranges="10.101.0.1-10.101.0.254"}`;
  expect(await printedBy([network!, ...metrics])).toEqual([
    ...attachments(0),
    "patchbay_ledgers_unreadable 0",
    `patchbay_network_problems${inFile("home", "20-home")}} 0`,
    `${free} 253`,
  ]);
  await machine.sh("ip netns add web; patchbay add home web >/run/result");
  expect(await printedBy(mending)).toEqual([""]);
  await machine.sh(`
    for ledger in /run/patchbay/home/*; do echo >$ledger; done
    echo no network >/etc/cni/net.d/10-broken.conflist`);
  expect(await printedBy(metrics)).toEqual([
    ...attachments(1),
    "patchbay_ledgers_unreadable 1",
    `patchbay_network_problems${inFile("?", "10-broken")}} 1`,
    `patchbay_network_problems${inFile("home", "20-home")}} 1`,
    `${free} 252`,
  ]);
});

test("a line that is not printed, or not in its place, is missing; a block that nobody runs is an error", () => {
  expect(missingLines(["a …  c", "…", "d"], "x\n  a b   c\nd\n")).toEqual([]);
  expect(missingLines(["d", "a b"], "a b\nd\n")).toEqual(["a b"]);
  expect(() => stepsOf("page.md", "# Page\n\n```\nls\n```\n")).toThrow("nobody runs");
  expect(() => stepsOf("page.md", "# Page\n\n```text\nls\n```\n")).toThrow("nobody runs");
});

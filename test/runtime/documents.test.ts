/**
 * A plugin of ours that runs in process sees the document that it would read from stdin as a program. The same
 * commands run in two identical machines: with the plugins in process, and with each behind a script that records its
 * stdin.
 */
import { afterAll, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pluginNames } from "../../src/plugins/table.ts";
import { type Feature, lacks } from "../support/kernel-features.ts";
import { type Machine, openMachine } from "../support/machine.ts";
import { startOpenVswitch } from "../support/open-vswitch.ts";
import { patchbayPlugins } from "../support/plugins.ts";
import { serve } from "../support/served-pool.ts";

const fixed = (addresses: object[], more = {}) => ({ type: "static", addresses, ...more });
const leased = (net: number) => ({ type: "host-local", subnet: `10.${net}.0.0/24`, routes: [{ dst: "0.0.0.0/0" }] });
const address = [{ address: "10.1.0.2/24" }];

/** Each plugin occurs, with a lease and without a gateway. */
const networks: Record<string, { needs?: Feature; plugins: Record<string, unknown>[] }> = {
  chain: {
    plugins: [
      { type: "bridge", bridge: "br-chain", isGateway: true, ipMasq: true, ipam: leased(20) },
      { type: "portmap", backend: "nftables", capabilities: { portMappings: true } },
      { type: "firewall", backend: "nftables" },
      { type: "bandwidth", ingressRate: 8000, ingressBurst: 80000 },
      { type: "tuning", sysctl: { "net.ipv4.conf.IFNAME.arp_filter": "1" } },
      { type: "sbr" },
    ],
  },
  static: { plugins: [{ type: "bridge", bridge: "br-static", ipam: fixed(address, { dns: { domain: "x" } }) }] },
  layer2: { plugins: [{ type: "bridge", bridge: "br-layer2" }] },
  ptp: { plugins: [{ type: "ptp", ipam: leased(21) }] },
  pool: { plugins: [{ type: "ptp", ipam: { type: "patchbay-cluster", pool: "lan" } }] },
  macvlan: { needs: "macvlan links", plugins: [{ type: "macvlan", master: "m0", ipam: fixed(address) }] },
  ipvlan: { needs: "ipvlan links", plugins: [{ type: "ipvlan", master: "m1", ipam: fixed(address) }] },
  vlan: { needs: "VLAN links", plugins: [{ type: "vlan", master: "m0", vlanId: 5, ipam: fixed(address) }] },
  dummy: { needs: "dummy links", plugins: [{ type: "dummy", ipam: fixed(address) }] },
  vrf: { needs: "VRF links", plugins: [{ type: "ptp", ipam: leased(22) }, { type: "vrf", vrfname: "blue" }] },
  tap: { plugins: [{ type: "tap", ipam: fixed(address) }] },
  device: { plugins: [{ type: "host-device", device: "m2", ipam: fixed(address) }] },
  loopback: { plugins: [{ type: "loopback" }] },
  ovs: { plugins: [{ type: "ovs", bridge: "ovs0", ipam: fixed(address) }] },
  flannel: { plugins: [{ type: "flannel", subnetFile: "/run/subnet.env", delegate: { bridge: "br-flannel" } }] },
};
const known = Object.keys(networks).filter((name) => !lacks(networks[name]!.needs));

const phases = ["status", "add", "check", "inspect", "repair", "gc", "del"];

const directory = mkdtempSync(`${tmpdir()}/documents-`);
afterAll(() => rmSync(directory, { recursive: true }));

/** Each of our plugins behind a script. */
function noting(notes: string): string {
  const bin = `${directory}/bin`;
  mkdirSync(bin);
  mkdirSync(notes);
  for (const name of pluginNames) {
    writeFileSync(
      join(bin, name),
      `#!/bin/sh\nnote=$(mktemp ${notes}/${name}.XXXXXX)\ncat > $note\nexec ${
        join(patchbayPlugins(), name)
      } < $note\n`,
    );
    chmodSync(join(bin, name), 0o755);
  }
  return bin;
}

async function prepared(): Promise<Machine> {
  const machine = await openMachine();
  await machine.sh(`
    for link in m0 m1 m2; do ip link add $link type veth peer name p$link; ip link set p$link up; done
    ip link set m0 up; ip link set m1 up
    printf 'FLANNEL_NETWORK=10.9.0.0/16\\nFLANNEL_SUBNET=10.9.1.1/24\\nFLANNEL_MTU=1450\\nFLANNEL_IPMASQ=true\\n' > /run/subnet.env
  `);
  await serve(machine);
  await (await startOpenVswitch(machine)).addBridge("ovs0");
  for (const name of known) await machine.container(name);
  return machine;
}

/** What is drawn by lot. */
function settled(document: string): string {
  return document.replace(/([0-9a-f]{2}:){5}[0-9a-f]{2}/g, "a MAC").replace(/"(veth|tmp)[0-9a-f]+"/g, '"a link"');
}

/** Runs every phase for every network. Answers for each phase what `notes` takes in. */
async function documents(pluginPath: string, file: string, notes: () => string[]): Promise<Map<string, string[]>> {
  await using machine = await prepared();
  const found = new Map<string, string[]>();
  const env = {
    NETCONFPATH: directory,
    CNI_PATH: pluginPath,
    NOTES: file,
    CAP_ARGS: JSON.stringify({ portMappings: [{ hostPort: 8080, containerPort: 80, protocol: "tcp" }] }),
  };
  const driver = [process.execPath, resolve(import.meta.dir, "../support/document-driver.ts")];
  for (const phase of phases) {
    const commands = phase === "inspect" || phase === "repair" ? [[phase]] : known.map((name) => {
      if (phase === "status") return [phase, name];
      if (phase === "gc") return [phase, name, "--valid", `ctr-${name}/eth0`];
      return [phase, name, `/run/netns/${name}`, "--container-id", `ctr-${name}`];
    });
    const { code, stdout, stderr } = await machine.run([...driver, JSON.stringify(commands)], { env });
    expect([phase, code, code === 0 ? "" : stdout + stderr]).toEqual([phase, 0, ""]);
    found.set(phase, notes().map(settled).sort());
  }
  return found;
}

function filesIn(notes: string): string[] {
  return readdirSync(notes).map((file) => {
    const text = readFileSync(join(notes, file), "utf8");
    rmSync(join(notes, file));
    return `${file.slice(0, file.indexOf("."))} ${JSON.stringify(JSON.parse(text))}`;
  });
}

function linesIn(file: string): string[] {
  const lines = readFileSync(file, "utf8").split("\n").filter((line) => line !== "");
  writeFileSync(file, "");
  return lines;
}

test("every verb of every plugin: the document in process is the one on stdin", async () => {
  for (const name of known) {
    const list = { cniVersion: "1.1.0", name, plugins: networks[name]!.plugins };
    writeFileSync(`${directory}/${name}.conflist`, JSON.stringify(list));
  }
  const file = `${directory}/lines`, notes = `${directory}/notes`;
  writeFileSync(file, "");
  const inProcess = await documents("", file, () => linesIn(file));
  const executed = await documents(noting(notes), file, () => filesIn(notes));
  for (const phase of phases) {
    const seen = inProcess.get(phase)!, read = executed.get(phase)!;
    // Not the other way round: some plugins are done with DEL before they look at the document.
    expect([phase, seen.filter((document) => !read.includes(document))]).toEqual([phase, []]);
  }
  // CHECK of IPAM, which inspect and repair ask for, is among them.
  for (const phase of ["check", "inspect", "repair"]) {
    for (const type of ["static", "host-local", "patchbay-cluster"]) {
      expect(inProcess.get(phase)!.some((document) => document.startsWith(`${type} `))).toBe(true);
    }
  }
  const used = new Set(inProcess.get("add")!.map((document) => document.split(" ")[0]!));
  // It needs a server; delegation to it is delegation to any IPAM plugin.
  const lacking = ["dhcp", ...Object.keys(networks).filter((name) => !known.includes(name))];
  expect([...used, ...lacking].sort()).toEqual(expect.arrayContaining([...pluginNames].sort()));
}, 300_000);

/**
 * STATUS on a kernel that lacks a module: the test unloads modules and forbids loading others, which only the virtual
 * machine's kernel is there for.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { $ } from "bun";
import { expect, test } from "bun:test";
import { type Machine, openMachine } from "../../support/machine.ts";
import { network } from "../../support/network.ts";

/** The program that the kernel has modules loaded by. */
const LOADER = "/proc/sys/kernel/modprobe";

/**
 * What uses it goes with the network namespaces of the test before, and modules that others have loaded upon it go with it.
 * The loader's exit status is about what it depends on, too.
 */
async function unload(module: string, loader: string): Promise<void> {
  const sys = `/sys/module/${module}`;
  for (let attempt = 1; existsSync(sys); attempt++) {
    for (const holder of readdirSync(`${sys}/holders`)) await unload(holder, loader);
    const { stderr } = await $`${loader} -r ${module}`.nothrow().quiet();
    if (attempt === 100) throw new Error(`${module} stays: ${stderr}`);
    await Bun.sleep(100);
  }
}

async function status(machine: Machine, conf: Record<string, unknown> & { type: string }): Promise<string> {
  const { code, json } = await network(machine, conf).call("STATUS", undefined);
  return code === 0 ? "" : `${json.code} ${json.msg}`;
}

const limits = { ingressRate: 8_000_000, ingressBurst: 800_000, unshapedSubnets: ["10.0.0.0/8"] };
const cases: [conf: Record<string, unknown> & { type: string }, module: string, says: RegExp][] = [
  [
    { type: "portmap", backend: "iptables" },
    "xt_addrtype",
    /^50 portmap by iptables: this kernel lacks the match addrtype/,
  ],
  [
    { type: "portmap", backend: "iptables" },
    "nft_compat",
    /^50 portmap by iptables: this kernel (lacks nft_compat|does not have nf_tables)$/,
  ],
  [
    { type: "portmap", backend: "nftables" },
    "nft_fib_inet",
    /^50 portmap by nftables: .* add rule inet patchbay_portmap/,
  ],
  [{ type: "firewall", backend: "iptables" }, "xt_conntrack", /^50 firewall by iptables: .* the match conntrack/],
  [
    { type: "firewall", backend: "nftables" },
    "nft_ct",
    /^50 firewall by nftables: .* add rule inet patchbay_firewall/,
  ],
  [{ type: "bandwidth", ...limits }, "act_mirred", /^50 this kernel lacks the action mirred$/],
  [{ type: "bandwidth", ...limits }, "sch_ingress", /^50 this kernel lacks the queueing discipline ingress$/],
];

for (const [conf, module, says] of cases) {
  const name = `${conf.type} says that ${module} is missing, and then no more`;
  test.skipIf(!process.env.PATCHBAY_TEST_VM)(name, async () => {
    const loader = readFileSync(LOADER, "utf8").trim();
    await using machine = await openMachine();
    expect(await status(machine, conf)).toBe("");
    await unload(module, loader);
    writeFileSync(LOADER, "/bin/false");
    try {
      expect(await status(machine, conf)).toMatch(says);
    } finally {
      writeFileSync(LOADER, loader);
    }
    // Not earlier: with the module may go what nft itself needs.
    expect(await machine.sh("nft list ruleset; tc qdisc show")).not.toMatch(/patchbay|ingress/);
    expect(await status(machine, conf)).toBe("");
  });
}

test.skipIf(!process.env.PATCHBAY_TEST_VM)(
  "bridge with VLANs is ready on a host that has made no bridge yet",
  async () => {
    await using machine = await openMachine();
    await unload("bridge", readFileSync(LOADER, "utf8").trim());
    expect(await status(machine, { type: "bridge", vlan: 100 })).toBe("");
  },
);

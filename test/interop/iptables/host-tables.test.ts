/** The tables of iptables in both forms: what is read of a rule, what a plan changes, and that it runs again if need be. */
import { expect, test } from "bun:test";
import { resolve } from "node:path";
import { legacyPath } from "../../support/legacy-iptables.ts";
import { type Machine, openMachine } from "../../support/machine.ts";

const program = resolve(import.meta.dir, "host-tables-program.ts");
const forms = [["nf_tables", undefined], ["the older tables", { PATH: legacyPath() }]] as const;

/** What the story of that name tells, and what iptables-save lists after it, without counts. */
async function told(machine: Machine, story: string, env?: Record<string, string>, rights: string[] = []) {
  const { stdout, stderr } = await machine.run([...rights, process.execPath, program, story], { env });
  expect(stderr).toBe("");
  const saved = await machine.sh(
    `iptables${env === undefined ? "" : "-legacy"}-save -t nat | sed '/^[#*]/d; s/ \\[.*//; /^COMMIT/d'`,
  );
  return { ...JSON.parse(stdout), saved: saved.split("\n").slice(0, -1) };
}

const BUILT_IN = [":PREROUTING ACCEPT", ":INPUT ACCEPT", ":OUTPUT ACCEPT", ":POSTROUTING ACCEPT"];

/** iptables-nft lists the kernel's chains that are there, the older form all; other chains in any order. */
function withoutBuiltIn(saved: string[]): string[] {
  return saved.filter((line) => !BUILT_IN.includes(line));
}

for (const [form, env] of forms) {
  test(`${form}: each rule is read as it was written`, async () => {
    await using machine = await openMachine();
    const { rules, of6, jumps, free, has, existing } = await told(machine, "read", env);
    const nothing = { source: null, destination: null, ports: null, comment: null, leadsTo: null };
    const isNft = env === undefined;
    expect(rules).toEqual([
      { ...nothing, source: "0a0102", comment: "two words", leadsTo: "THERE", is: [0], has: ["comment"] },
      { ...nothing, destination: "c0000201", is: [1], has: ["tcp", "port"] },
      { ...nothing, ports: [80, 443], leadsTo: "THERE", is: [2], has: ["tcp"] },
      { ...nothing, is: [3], has: ["udp", "udp port"] },
    ]);
    expect(of6).toEqual([true, "fd00".padEnd(22, "0") + "12", "fd00".padEnd(31, "0") + "1"]);
    expect({ jumps, free, has, existing }).toEqual({
      jumps: [0, 2],
      // The older tables have no room for owners.
      free: isNft ? [0, 1, 3] : [0, 1, 2, 3],
      has: [true, false, true],
      existing: ["OURS", "OURS", "OURS", "OURS", "THERE"],
    });
  });

  test(`${form}: a plan changes what it says, and a chain goes unless a rule leads to it`, async () => {
    await using machine = await openMachine();
    const { saved, before } = await told(machine, "change", env);
    expect(before).toEqual([]);
    expect(withoutBuiltIn(saved).sort()).toEqual([
      "-A INPUT -s 192.0.2.6/32 -j ACCEPT",
      "-A OUTPUT -s 192.0.2.5/32 -j TWICE",
      "-A POSTROUTING -s 192.0.2.1/32 -j RETURN",
      "-A POSTROUTING -s 192.0.2.2/32 -j STAYS",
      "-A POSTROUTING -s 192.0.2.3/32 -j ACCEPT",
      ":STAYS -",
      ":TWICE -",
    ]);
  });

  test(`${form}: where others have changed what was read, the plan runs again`, async () => {
    await using machine = await openMachine();
    const { runs, saved } = await told(machine, "again", env);
    expect(runs).toBe(2);
    expect(withoutBuiltIn(saved)).toEqual([":OURS -", "-A OURS -s 192.0.2.9/32 -j RETURN"]);
  });

  test(`${form}: a plan that has nothing to change makes nothing, and one that fails leaves nothing`, async () => {
    await using machine = await openMachine();
    const { nothing, alone, gone, failed, runs } = await told(machine, "nothing", env);
    expect([nothing, alone, gone, runs]).toEqual([true, true, true, 1]);
    expect(failed).toMatch(env === undefined ? /no such file or directory/ : /restore/);
    const lists = await machine.sh("nft list ruleset; iptables-legacy-save -t nat");
    expect(lists).not.toMatch(/table ip6? nat|OURS/);
  });
}

test("who may not read which older tables there are has none", async () => {
  await using machine = await openMachine();
  await machine.sh("iptables-legacy -t nat -S");
  const asNobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"];
  const legacy = async (rights: string[]) => (await told(machine, "legacy", undefined, rights)).legacy;
  expect([await legacy([]), await legacy(asNobody)]).toEqual([true, false]);
});

test("a thread sees the older tables of the namespace that it is in, whatever the process's first thread is in", async () => {
  await using machine = await openMachine();
  await machine.container("c1");
  await machine.sh("iptables-legacy -t nat -S");
  expect((await told(machine, "thread")).seen).toEqual({ host: true, container: false });
});

test("removals look into both forms: the older one always if thorough, else where nothing was in nf_tables", async () => {
  await using machine = await openMachine();
  expect(await told(machine, "both")).toMatchObject({
    nftAlone: ["nf_tables"],
    thorough: ["nf_tables", "older"],
    olderAlone: ["older"],
    withoutNetfilter: ["older"],
  });
});

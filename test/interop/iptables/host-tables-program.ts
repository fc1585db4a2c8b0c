/** The program behind host-tables.test.ts, run inside a machine: prints what a story tells, as JSON. */
import { NETLINK_NETFILTER, openNetlink } from "../../../src/ffi/netlink/socket.ts";
import {
  changeEveryTable,
  changeTable,
  existingTable,
  readTable,
} from "../../../src/interop/iptables/host-tables.ts";
import { hasLegacyTable } from "../../../src/interop/iptables/which-iptables.ts";
import type { IptablesRule } from "../../../src/interop/iptables/rule.ts";
import type { PresentRule, TableChange } from "../../../src/interop/iptables/table.ts";
import { parsePrefix } from "../../../src/net/address.ts";

const host = { netfilter: openNetlink(NETLINK_NETFILTER) };
const from = (prefix: string, target: IptablesRule["target"]): IptablesRule => ({
  source: { prefix: parsePrefix(prefix)! },
  target,
});
const sh = (script: string) => Bun.spawnSync(["sh", "-ec", script]).stdout.toString();
const hex = (bytes: Uint8Array | undefined) => bytes?.toHex() ?? null;

const rules: IptablesRule[] = [
  { ...from("10.1.2.0/24", { jump: "THERE" }), comment: "two words" },
  { destination: { prefix: parsePrefix("192.0.2.1/32")! }, protocol: "tcp", destinationPort: 80, target: "ACCEPT" },
  { protocol: "tcp", destinationPorts: [80, 443], target: { jump: "THERE" } },
  { protocol: "udp", destinationPort: 53, target: "RETURN" },
];
const conditions: Record<string, Omit<IptablesRule, "target">> = {
  tcp: { protocol: "tcp" },
  port: { protocol: "tcp", destinationPort: 80 },
  udp: { protocol: "udp" },
  "udp port": { protocol: "udp", destinationPort: 53 },
  comment: { comment: "two words" },
};

/** The older form reads no names of chains in targets such as ACCEPT, and nf_tables has none. */
const chainOf = ({ leadsTo }: PresentRule) => leadsTo === "THERE" ? leadsTo : null;
const numberOf = (found: PresentRule) => rules.findIndex((rule) => found.is(rule));

const stories: Record<string, () => unknown> = {
  legacy: () => ({ legacy: hasLegacyTable(4, "nat") }),
  async thread() {
    const thread = new Worker(new URL("./thread-in-netns.ts", import.meta.url));
    thread.postMessage("/run/netns/c1");
    const seen = await new Promise((resolve) => thread.onmessage = ({ data }) => resolve(data));
    thread.terminate();
    return { seen };
  },
  read() {
    changeTable(host, "nat", [4], (table) => {
      table.createChain("THERE");
      table.createChain("OURS");
      rules.forEach((rule, index) => table.append("OURS", rule, ["", "us", "others", "us"][index] || undefined));
      table.append("THERE", { target: "RETURN" });
    });
    const long = { ...from("fd00::12:0:0/96", "RETURN"), destination: { prefix: parsePrefix("fd00::1/128")! } };
    changeTable(host, "nat", [6], (table) => {
      table.createChain("OURS");
      table.append("OURS", long);
    });
    const table = readTable(host, "nat", 4), [of6] = readTable(host, "nat", 6).rules("OURS");
    return {
      of6: [of6!.is(long), hex(of6!.source), hex(of6!.destination)],
      rules: table.rules("OURS").map((found) => ({
        source: hex(found.source),
        destination: hex(found.destination),
        ports: found.destinationPorts ?? null,
        comment: found.comment ?? null,
        leadsTo: chainOf(found),
        is: rules.flatMap((rule, index) => found.is(rule) ? [index] : []),
        has: Object.keys(conditions).filter((name) => found.matches(conditions[name]!)),
      })),
      jumps: table.jumps("OURS", "THERE").map(numberOf),
      free: table.freeRules("OURS", "us").map(numberOf),
      has: ["OURS", "OUR", "THERE"].map((chain) => table.hasChain(chain)),
      existing: existingTable(host.netfilter, "nat", 4)!.allRules().map(({ chain }) => chain).sort(),
    };
  },
  change() {
    const before = existingTable(host.netfilter, "nat", 4)?.allRules() ?? [];
    changeTable(host, "nat", [4], (table) => {
      for (const chain of ["GOES", "ROUND", "STAYS", "FLUSHED"]) table.createChain(chain);
      table.append("GOES", { target: { jump: "ROUND" } });
      table.append("ROUND", { target: "RETURN" });
      table.append("STAYS", { target: "RETURN" });
      table.append("FLUSHED", { target: { jump: "STAYS" } });
      table.append("POSTROUTING", from("192.0.2.2/32", { jump: "STAYS" }));
      table.append("POSTROUTING", from("192.0.2.4/32", { jump: "GOES" }));
      table.createChain("TWICE");
      for (const _ of [1, 2]) table.append("OUTPUT", from("192.0.2.5/32", { jump: "TWICE" }));
      table.insert("INPUT", from("192.0.2.6/32", "ACCEPT"));
    });
    changeTable(host, "nat", [4], (table) => {
      const [, toGoes] = table.rules("POSTROUTING");
      table.delete(toGoes!);
      table.flush("FLUSHED");
      table.delete(table.rules("OUTPUT")[0]!);
      for (const chain of ["ROUND", "GOES", "STAYS", "FLUSHED", "TWICE"]) table.deleteChain(chain);
      table.insert("POSTROUTING", from("192.0.2.1/32", "RETURN"));
      table.append("POSTROUTING", from("192.0.2.3/32", "ACCEPT"));
    });
    return { before };
  },
  again() {
    let runs = 0;
    changeTable(host, "nat", [4], (table) => {
      const isThere = table.hasChain("OURS");
      if (++runs === 1) sh("iptables -t nat -N OURS");
      if (isThere) table.append("OURS", from("192.0.2.9/32", "RETURN"));
      else table.createChain("OURS");
    });
    return { runs };
  },
  nothing() {
    const nothing = changeTable(host, "nat", [4, 6], () => {});
    changeTable(host, "filter", [4], (table) => table.createChain("ALONE"));
    const alone = readTable(host, "filter", 4).hasChain("ALONE");
    changeTable(host, "filter", [4], (table) => table.deleteChain("ALONE"));
    const gone = !readTable(host, "filter", 4).hasChain("ALONE");
    let failed = "", runs = 0;
    try {
      changeTable(host, "nat", [4], (table) => {
        runs++;
        table.createChain("OURS");
        table.append("OURS", { target: { jump: "NONESUCH" } });
      });
    } catch (error) {
      failed = (error as Error).message;
    }
    return { nothing, alone, gone, failed, runs };
  },
  both() {
    const remove = (thorough: boolean, nft: boolean, older: boolean, socket: typeof host.netfilter | undefined) => {
      sh(`iptables -t nat -F; iptables-legacy -t nat -F
        ${nft ? "iptables -t nat -A OUTPUT -s 192.0.2.1 -j RETURN" : ""}
        ${older ? "iptables-legacy -t nat -A OUTPUT -s 192.0.2.1 -j RETURN" : ""}`);
      const removeAll = (table: TableChange) => {
        for (const rule of table.rules("OUTPUT")) table.delete(rule);
      };
      changeEveryTable(socket, "nat", [4], thorough, removeAll);
      const left = (tool: string) => sh(`${tool} -t nat -S OUTPUT`).includes("192.0.2.1");
      return [
        ...nft && !left("iptables") ? ["nf_tables"] : [],
        ...older && !left("iptables-legacy") ? ["older"] : [],
      ];
    };
    return {
      nftAlone: remove(false, true, true, host.netfilter),
      thorough: remove(true, true, true, host.netfilter),
      olderAlone: remove(false, false, true, host.netfilter),
      withoutNetfilter: remove(false, true, true, undefined),
    };
  },
};

console.log(JSON.stringify(await stories[process.argv[2]!]!()));

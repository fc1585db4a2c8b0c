/** One container on a bridge with an address from host-local, called like an engine does; and loopback. */
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { getLink } from "../../src/ffi/netlink/route/link.ts";
import { NETLINK_ROUTE, openNetlink } from "../../src/ffi/netlink/socket.ts";
import type { Bench, Benchmark } from "../bench.ts";
import { passResult, pluginCall } from "../call.ts";
import { command, type Container, hasAddress, linkNames, type Side } from "../machine.ts";
import { type Cycle, cycleRows, measureCycles } from "../pairs.ts";
import { prepare } from "../process.ts";

export function bridgeConf(leases: string, ipMasq: boolean): Record<string, unknown> {
  return {
    name: ipMasq ? "bench-masq" : "bench",
    type: "bridge",
    bridge: ipMasq ? "bench1" : "bench0",
    isGateway: true,
    ipMasq,
    ipam: {
      type: "host-local",
      dataDir: leases,
      ranges: [[{ subnet: ipMasq ? "10.89.0.0/16" : "10.88.0.0/16" }]],
      routes: [{ dst: "0.0.0.0/0" }],
    },
  };
}

/** The first address of ADD's result, without its prefix length. */
export function firstAddress(result: string): string {
  return JSON.parse(result).ips[0].address.split("/")[0];
}

/** Throws unless the container has a link with the address, and the host the other end. */
export function requireAttached(side: Side, container: Container, address: string): void {
  const inside = side.inContainer(container, () => linkNames().includes("eth0") && hasAddress(address));
  if (!inside) throw new Error(`${side.name}: ADD answered, but ${container.id} has no eth0 with ${address}`);
  if (!linkNames().some((name) => name.startsWith("veth"))) throw new Error(`${side.name}: no veth on the host`);
}

export function requireDetached(side: Side, container: Container): void {
  const leftovers = [
    ...side.inContainer(container, linkNames),
    ...linkNames().filter((name) => name.startsWith("veth")),
  ];
  if (leftovers.length > 0) throw new Error(`${side.name}: DEL leftovers ${leftovers.join(", ")}`);
}

/** The number of lines with the address in the host's rules. */
function rulesFor(address: string): number {
  const rules = command(["nft", "list", "ruleset"]);
  return rules.split("\n").filter((line) => line.includes(address)).length;
}

export function bridgeCycle(
  { machine }: Bench,
  side: Side,
  ipMasq: boolean,
  container = side.makeContainer(ipMasq ? "masq" : "plain"),
): Cycle {
  const leases = join(machine.scratch, `${side.name}-bridge-leases`);
  mkdirSync(leases, { recursive: true });
  const conf = bridgeConf(leases, ipMasq);
  const call = (verb: string) => prepare(pluginCall(side, "bridge", verb, conf, container), machine.scratch);
  const del = call("DEL");
  let address = "";
  return {
    add: call("ADD"),
    del,
    made(result) {
      passResult(result, conf, del);
      address = firstAddress(result);
      requireAttached(side, container, address);
      if (ipMasq && rulesFor(address) === 0) throw new Error(`${side.name}: nothing masquerades ${address}`);
    },
    gone() {
      requireDetached(side, container);
      if (existsSync(join(leases, String(conf.name), address))) {
        throw new Error(`${side.name}: ${address} is still leased`);
      }
      if (ipMasq && rulesFor(address) > 0) throw new Error(`${side.name}: rules for ${address} are leftovers`);
    },
  };
}

function loopbackCycle({ machine }: Bench, side: Side): Cycle {
  const container = side.makeContainer("lo");
  const conf = { name: "lo", type: "loopback" };
  const call = (verb: string) => prepare(pluginCall(side, "loopback", verb, conf, container), machine.scratch);
  const socket = side.inContainer(container, () => openNetlink(NETLINK_ROUTE));
  const up = () => getLink(socket, "lo")!.up;
  return {
    add: call("ADD"),
    del: call("DEL"),
    made() {
      if (!up()) throw new Error(`${side.name}: lo is not up`);
    },
    gone() {
      if (up()) throw new Error(`${side.name}: lo is still up`);
    },
  };
}

export const attach: Benchmark = {
  name: "bridge",
  run(bench) {
    const plain = measureCycles(bench, bench.runs(200), (side) => bridgeCycle(bench, side, false));
    return cycleRows("bridge + host-local", plain, { add: 0.28, del: 0.13 });
  },
};

export const masquerade: Benchmark = {
  name: "ipmasq",
  run(bench) {
    const masq = measureCycles(bench, bench.runs(100), (side) => bridgeCycle(bench, side, true));
    return cycleRows("bridge + host-local, ipMasq", masq, { add: 0.17, del: 0.06 });
  },
};

export const loopback: Benchmark = {
  name: "loopback",
  run: (bench) => cycleRows("loopback", measureCycles(bench, bench.runs(200), (side) => loopbackCycle(bench, side))),
};

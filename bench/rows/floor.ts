/**
 * The cost of an attach inside the process, against the kernel alone: four requests, encoded beforehand and sent over
 * open sockets (veth pair in place, address, up, default route). Both run warm, in a loop in this process; the rows of
 * whole processes show the cost of a cold one.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { openSession } from "../../src/engine/run.ts";
import { addAddress } from "../../src/ffi/netlink/route/address.ts";
import { addLink, delLink, linkIndex, setLink } from "../../src/ffi/netlink/route/link.ts";
import { vethKind } from "../../src/ffi/netlink/route/link-kinds.ts";
import { addRoute } from "../../src/ffi/netlink/route/route.ts";
import { NETLINK_ROUTE, type NetlinkRequest, type NetlinkSocket, openNetlink } from "../../src/ffi/netlink/socket.ts";
import { HEADER_BYTES, NLM_F_ACK, NLM_F_REQUEST, Writer } from "../../src/ffi/netlink/wire.ts";
import { keepFromNowOn } from "../../src/process/kept-open.ts";
import { libc } from "../../src/ffi/libc.ts";
import { parseAddress, parsePrefix } from "../../src/net/address.ts";
import { loadPlugin } from "../../src/plugins/table.ts";
import type { Bench, Benchmark } from "../bench.ts";
import { CNI_VERSION } from "../call.ts";
import { type Container, hasAddress, linkNames, type Side } from "../machine.ts";
import { shuffled, summarise } from "../statistics.ts";
import { bridgeConf, firstAddress, requireAttached, requireDetached } from "./attach.ts";

/** The container's end gets a fixed index, so that the later requests can be encoded beforehand. */
const PEER_INDEX = 4242;
const ADDRESS = "10.88.255.7";

export const floor: Benchmark = {
  name: "floor",
  run(bench) {
    const { alone: ours } = bench.machine;
    // As in a worker of a resident.
    keepFromNowOn();
    return ours.onHost(() => {
      const engine = engineAttach(bench, ours);
      const kernel = kernelAttach(ours);
      const samples = { engine: [] as number[], kernel: [] as number[] };
      const runs = bench.runs(300);
      // The first rounds do not count, because the JIT compiles code in them.
      for (let run = bench.quick ? 0 : -400; run < runs; run++) {
        for (const which of shuffled(["engine", "kernel"] as const)) {
          bench.machine.settle();
          const ms = which === "engine" ? engine() : kernel();
          if (run >= 0) samples[which].push(ms);
        }
      }
      return [{
        name: "one attach inside the process, warm",
        unit: "ms",
        ours: summarise(samples.engine),
        against: summarise(samples.kernel),
        againstWhat: "the kernel alone",
        target: 1.5,
      }];
    });
  },
};

/** Attaches through the engine, verifies, and detaches. Returns the time of the attach in ms. */
function engineAttach({ machine }: Bench, side: Side): () => number {
  const container = side.makeContainer("engine");
  const leases = join(machine.scratch, "engine-leases");
  mkdirSync(leases);
  const invocation = {
    containerId: container.id,
    netnsPath: container.netnsPath,
    ifName: "eth0",
    cniArgs: "",
    path: "",
    stdin: JSON.stringify({ cniVersion: CNI_VERSION, ...bridgeConf(leases, false) }),
  };
  const bridge = loadPlugin("bridge")!;
  return () => {
    const started = Bun.nanoseconds();
    const result = openSession().runVerb(bridge, { ...invocation, command: "ADD" });
    const ms = (Bun.nanoseconds() - started) / 1e6;
    requireAttached(side, container, firstAddress(JSON.stringify(result)));
    openSession().runVerb(bridge, { ...invocation, command: "DEL" });
    requireDetached(side, container);
    return ms;
  };
}

function kernelAttach(side: Side): () => number {
  const container = side.makeContainer("floor");
  const onHost = openNetlink(NETLINK_ROUTE);
  const inside = side.inContainer(container, () => openNetlink(NETLINK_ROUTE));
  addLinkIfAbsent(onHost);
  const requests = encodeAttach(onHost, container);
  const reply = new Uint8Array(4096);
  const send = (socket: NetlinkSocket, message: Uint8Array) => {
    libc.sendto(socket.fd, message, message.length, 0, null, 0);
    const length = Number(libc.recvfrom(socket.fd, reply, reply.length, 0, null, null));
    const error = new DataView(reply.buffer).getInt32(16, true);
    if (length < 20 || error !== 0) throw new Error(`the kernel refused a request of the floor: errno ${-error}`);
  };
  return () => {
    const started = Bun.nanoseconds();
    send(onHost, requests.link);
    send(inside, requests.address);
    send(inside, requests.up);
    send(inside, requests.route);
    const ms = (Bun.nanoseconds() - started) / 1e6;
    if (!side.inContainer(container, () => hasAddress(ADDRESS))) throw new Error("the floor's attach did nothing");
    delLink(onHost, "vethfloor");
    if (side.inContainer(container, linkNames).length > 0) throw new Error("the floor's link is still there");
    return ms;
  };
}

function addLinkIfAbsent(onHost: NetlinkSocket): void {
  if (linkIndex(onHost, "bench0") === undefined) {
    addLink(onHost, { ifName: "bench0", kind: { name: "bridge" }, up: true });
  }
}

function encodeAttach(onHost: NetlinkSocket, { netnsFd }: Container) {
  const link = encoded((socket) =>
    addLink(socket, {
      ifName: "vethfloor",
      master: linkIndex(onHost, "bench0"),
      up: true,
      kind: vethKind({ peer: { ifName: "eth0", netnsFd } }),
    })
  );
  // struct ifinfomsg has the index at 4. The link's struct follows the message header, the peer's precedes its first
  // attribute, the name. The kernel reads the peer's index only when the link's is set.
  new DataView(link.buffer, HEADER_BYTES).setInt32(4, PEER_INDEX, true);
  new DataView(link.buffer, Buffer.from(link.buffer).indexOf("eth0") - 4 - 16).setInt32(4, PEER_INDEX, true);
  const prefix = parsePrefix(`${ADDRESS}/16`)!;
  const everything = parsePrefix("0.0.0.0/0")!;
  const gateway = parseAddress("10.88.0.1")!;
  return {
    link,
    address: encoded((socket) => void addAddress(socket, PEER_INDEX, prefix)),
    up: encoded((socket) => setLink(socket, { index: PEER_INDEX, name: "eth0" }, { up: true })),
    route: encoded((socket) => addRoute(socket, { dst: everything, oif: PEER_INDEX, gateway })),
  };
}

/** The bytes of the request that `ask` makes. */
function encoded(ask: (socket: NetlinkSocket) => void): Uint8Array {
  const writer = new Writer();
  const recorder = {
    request({ type, flags = 0, body }: NetlinkRequest) {
      writer.reset().start(type, NLM_F_REQUEST | NLM_F_ACK | flags, 1);
      body(writer);
      writer.finish();
    },
  };
  ask(recorder as NetlinkSocket);
  return writer.bytes.slice(0, writer.length);
}

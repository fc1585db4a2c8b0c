/** Which flows are forgotten: by port, by the host's address, and on removal those that the container answers. */
import { expect, test } from "bun:test";
import { resolve } from "node:path";
import type { PortMapping } from "../../../../src/resources/packets/port-mappings/spec.ts";
import { openMachine } from "../../../support/machine.ts";

const port = (hostPort: number, hostIp?: string, protocol: PortMapping["protocol"] = "udp") => //
({ protocol, hostPort, containerPort: 1, hostIp });
/** More than the kernel is asked for one by one. */
const many = [60, 61, 62, 63].map((hostPort) => port(hostPort));

/** Other hosts have ports of these numbers, too. */
const ELSEWHERE = ["198.51.100.7 53", "198.51.100.7 54", "2001:db8::7 53", "2001:db8::7 54"];
const ALL = ["127.0.0.1 53", "127.0.0.1 54", "127.0.0.2 53", "127.0.0.2 54", "::1 53", "::1 54", ...ELSEWHERE];
const without = (...gone: string[]) => ALL.filter((flow) => !gone.includes(flow));
/** A mapping of all addresses takes one address of 127.0.0.0/8. */
const OF_53 = ["127.0.0.1 53", "::1 53"];

const cases: [mappings: PortMapping[], of: "everybody" | "container", left: string[]][] = [
  [[port(53)], "everybody", without(...OF_53)],
  [[port(53)], "container", without("127.0.0.1 53", "::1 53")],
  [[port(53, "127.0.0.2")], "everybody", without("127.0.0.2 53")],
  [[port(53, "127.0.0.2")], "container", ALL],
  [[port(53, "0.0.0.0")], "everybody", without("127.0.0.1 53")],
  [[port(53, "::")], "everybody", without("::1 53")],
  [[port(53, "127.0.0.2"), port(53, "127.0.0.3")], "everybody", without("127.0.0.2 53")],
  [[port(53, "::1")], "everybody", without("::1 53")],
  [[port(53, "::2")], "everybody", ALL],
  [[port(53, undefined, "tcp"), port(53, undefined, "sctp")], "everybody", ALL],
  [[port(53), ...many], "everybody", without(...OF_53)],
  [[port(53), ...many], "container", without("127.0.0.1 53", "::1 53")],
  [[port(53, "127.0.0.2"), ...many], "everybody", without("127.0.0.2 53")],
  [[port(53), port(54), ...many], "everybody", ["127.0.0.2 53", "127.0.0.2 54", ...ELSEWHERE]],
  [many, "everybody", ALL],
];

test("flows of the ports, and no others", async () => {
  await using machine = await openMachine();
  // Somebody has to ask for tracking.
  await machine.sh("nft 'table inet t { chain c { type filter hook output priority 0; ct state new accept; }; }'");
  await machine.sh(`
    ip link set lo up; ip link add out type veth peer name far; ip link set out up; ip link set far up
    ip address add 192.0.2.1/32 dev out; ip route add 198.51.100.0/24 dev out
    ip -6 route add 2001:db8::/64 dev out`);
  const command = [process.execPath, resolve(import.meta.dir, "flows-program.ts")];
  const stdin = JSON.stringify(cases.map(([mappings, of]) => ({ mappings, of })));
  const { stdout, stderr } = await machine.run(command, { stdin });
  expect(stderr).toBe("");
  const left = JSON.parse(stdout) as string[][];
  const told = cases.map(([mappings, of], index) => ({ mappings, of, left: [...new Set(left[index])] }));
  expect(told).toEqual(cases.map(([mappings, of, stays]) => ({ mappings, of, left: [...stays].sort() })));
});

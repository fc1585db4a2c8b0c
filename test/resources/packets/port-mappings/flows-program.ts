/** The program behind flows.test.ts, run inside a machine whose loopback is tracked: prints which flows are left, as JSON. */
import type { Host } from "../../../../src/contract/host.ts";
import { deleteOneByOne } from "../../../../src/ffi/netlink/conntrack/connection.ts";
import { NETLINK_NETFILTER, NETLINK_ROUTE, openNetlink } from "../../../../src/ffi/netlink/socket.ts";
import { formatAddress } from "../../../../src/net/address.ts";
import { forgetFlows } from "../../../../src/resources/packets/port-mappings/flows.ts";
import type { PortMapping, PortMappingsSpec } from "../../../../src/resources/packets/port-mappings/spec.ts";

interface Case {
  mappings: PortMapping[];
  of: "everybody" | "container";
}

const netfilter = openNetlink(NETLINK_NETFILTER),
  host = { netfilter, route: openNetlink(NETLINK_ROUTE) } as unknown as Host;

/** Nobody answers, so the one who would is the one to whom it was sent. */
async function send(address: string, port: number): Promise<void> {
  const sender = await Bun.udpSocket({ hostname: address.includes(":") ? "::" : "0.0.0.0" });
  sender.send("x", port, address);
  sender.close();
}

function list(): string[] {
  const found: string[] = [];
  for (const family of [4, 6] as const) {
    deleteOneByOne(netfilter, family, ({ original }) => {
      const { number, destinationPort } = original.protocol!;
      if (number === 17) found.push(`${formatAddress(original.ip![`destination${family}`]!)} ${destinationPort}`);
      return false;
    });
  }
  return found.sort();
}

const left: string[][] = [];
for (const { mappings, of } of await Bun.stdin.json() as Case[]) {
  for (const address of ["127.0.0.1", "127.0.0.2", "::1", "198.51.100.7", "2001:db8::7"]) {
    for (const port of [53, 54]) {
      await send(address, port);
    }
  }
  const owner = { network: "net", containerId: "c1", ifName: "eth0" };
  const addresses = ["127.0.0.1/8", "::1/128"];
  const spec: PortMappingsSpec = { ...owner, backend: "nftables", addresses, mappings, markBit: 13 };
  forgetFlows(host, spec, of);
  left.push(list());
}
console.log(JSON.stringify(left));

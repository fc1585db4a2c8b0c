/**
 * Run in a network namespace of its own, whose loopback is tracked: flows are made, some are deleted by filter and some one
 * by one, and the ports of those that are left are printed as one JSON document. With "refusing", every filter is refused as
 * by a kernel that knows none.
 */
import { deleteConnections, deleteOneByOne, fits } from "../../../../src/ffi/netlink/conntrack/connection.ts";
import { EINVAL } from "../../../../src/ffi/errno.ts";
import { NETLINK_NETFILTER, NetlinkError, openNetlink } from "../../../../src/ffi/netlink/socket.ts";

const socket = openNetlink(NETLINK_NETFILTER);
const TCP = 6, UDP = 17;
const send = async (address: string, port: number) => {
  const any = address.includes(":") ? "::" : "0.0.0.0";
  const sender = await Bun.udpSocket({ hostname: any });
  sender.send("x", port, address);
  sender.close();
};
const flows = () => {
  const found: string[] = [];
  for (const family of [4, 6] as const) {
    deleteOneByOne(socket, family, ({ original, reply }) => {
      const { number, destinationPort } = original.protocol!;
      if (number === UDP) {
        found.push(`${original.ip?.[`destination${family}`]} ${destinationPort} by ${reply.ip?.[`source${family}`]}`);
      }
      return false;
    });
  }
  return found.sort();
};

for (const address of ["127.0.0.1", "127.0.0.2", "::1"]) for (const port of [53, 54]) await send(address, port);
const report: Record<string, unknown> = { all: flows() };
const filter = { protocol: UDP, destinationPort: 53 };

let dumps = 0;
const { dump, request } = socket;
if (process.argv[2] === "refusing") {
  socket.request = (asked, onReply) => {
    if (asked.table?.rows.filter !== undefined) throw new NetlinkError(asked.what, EINVAL);
    request(asked, onReply);
  };
}
socket.dump = (...parameters) => (dumps++, dump(...parameters));
deleteConnections(socket, { ...filter, family: 4, destination: new Uint8Array([127, 0, 0, 2]) });
report.oneAddress = flows();
deleteConnections(socket, { ...filter, family: 4, answeredBy: new Uint8Array([127, 0, 0, 9]) });
report.answeredByNobody = flows();
deleteConnections(socket, { ...filter, family: 4 });
deleteConnections(socket, { ...filter, family: 4 });
report.onePort = flows();
const listings = 3 * 2;
report.dumps = dumps - listings;
const rest = { ...filter, destinationPort: 54 };
for (const family of [4, 6] as const) {
  deleteOneByOne(socket, family, (connection) => fits(connection, { ...rest, family }));
}
report.oneByOne = flows();

const listening = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
await Bun.connect({ hostname: "127.0.0.1", port: listening.port, socket: { data() {} } });
const established = { protocol: TCP, destinationPort: listening.port, family: 4 as const };
const isThere = () => {
  let found = false;
  deleteOneByOne(socket, 4, (connection) => (found ||= fits(connection, established), false));
  return found;
};
deleteConnections(socket, { ...established, isUnassured: true });
deleteOneByOne(socket, 4, (connection) => fits(connection, { ...established, isUnassured: true }));
report.establishedStays = isThere();
deleteConnections(socket, established);
report.establishedGoes = !isThere();
console.log(JSON.stringify(report));
process.exit(0);

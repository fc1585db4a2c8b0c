/**
 * The program behind startHungBus() in firewalld.ts, run inside a machine: a message bus that never answers. With "full",
 * its queue of connections is full, too. Prints "ready" when it listens.
 */
import { bind, check, libc, utf8 } from "../../src/ffi/libc.ts";

const AF_UNIX = 1, SOCK_STREAM = 1, NO_ROOM = 0, SOME_ROOM = 16;
const address = new Uint8Array([AF_UNIX, 0, ...utf8("/run/dbus/system_bus_socket"), 0]);
const { listen, connect } = bind({
  listen: { args: ["i32", "i32"], returns: "i32" },
  connect: { args: ["i32", "ptr", "u32"], returns: "i32" },
});
const full = process.argv[2] === "full";
const open = () => check("socket", libc.socket(AF_UNIX, SOCK_STREAM, 0));
const server = open();
check("bind", libc.bind(server, address, address.length));
check("listen", listen(server, full ? NO_ROOM : SOME_ROOM));
// The kernel always accepts one connection more than the queue's length.
if (full) check("connect", connect(open(), address, address.length));
console.log("ready");
for await (const _ of Bun.stdin.stream()) { /* until it ends */ }

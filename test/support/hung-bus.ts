/**
 * The program behind startHungBus() in firewalld.ts, run inside a machine: a message bus that never answers. With "full",
 * its queue of connections is full, too; with "talking", it sends what nobody asked for, all the time. Prints "ready"
 * when it listens.
 */
import { bind, check, libc, utf8 } from "../../src/ffi/libc.ts";

const AF_UNIX = 1, SOCK_STREAM = 1, NO_ROOM = 0, SOME_ROOM = 16;
const address = new Uint8Array([AF_UNIX, 0, ...utf8("/run/dbus/system_bus_socket"), 0]);
const { listen, connect } = bind({
  listen: { args: ["i32", "i32"], returns: "i32" },
  connect: { args: ["i32", "ptr", "u32"], returns: "i32" },
});
const open = () => check("socket", libc.socket(AF_UNIX, SOCK_STREAM, 0));

function serveNobody(full: boolean): void {
  const server = open();
  check("bind", libc.bind(server, address, address.length));
  check("listen", listen(server, full ? NO_ROOM : SOME_ROOM));
  // The kernel always accepts one connection more than the queue's length.
  if (full) check("connect", connect(open(), address, address.length));
}

/** After the answer to AUTH, signals without fields: D-Bus specification, "Message Format". */
function talk(): void {
  const signal = [0x6c, 4, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
  const signals = new Uint8Array(Array.from({ length: 4096 }, () => signal).flat());
  const more = (socket: Bun.Socket<{ sent: number }>) => {
    for (let count = -1; count !== 0; socket.data.sent = (socket.data.sent + count) % signals.length) {
      count = socket.write(signals.subarray(socket.data.sent));
    }
  };
  Bun.listen<{ sent: number }>({
    unix: "/run/dbus/system_bus_socket",
    socket: {
      data() {},
      drain: more,
      open(socket) {
        socket.data = { sent: 0 };
        socket.write("OK 0123456789abcdef0123456789abcdef\r\n");
        more(socket);
      },
    },
  });
}

if (process.argv[2] === "talking") talk();
else serveNobody(process.argv[2] === "full");
console.log("ready");
for await (const _ of Bun.stdin.stream()) { /* until it ends */ }
process.exit();

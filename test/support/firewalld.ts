/** A message bus for a machine (dbus-daemon(1)), and a service on it that answers like firewalld. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Machine } from "./machine.ts";
import { untilTrue } from "./until-true.ts";

const CONFIG = `<busconfig>
  <type>system</type>
  <listen>unix:path=/run/dbus/system_bus_socket</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
  </policy>
</busconfig>`;

export async function startBus(machine: Machine): Promise<AsyncDisposable> {
  await machine.sh(`mkdir -p /run/dbus; cat > /run/dbus/bus.conf`, { stdin: CONFIG });
  const daemon = machine.start(["dbus-daemon", "--config-file=/run/dbus/bus.conf", "--nofork", "--print-address"]);
  await daemon.stdout.getReader().read();
  return {
    async [Symbol.asyncDispose]() {
      daemon.kill();
      await daemon.exited;
    },
  };
}

/** After the answer to AUTH, signals without fields: D-Bus specification, "Message Format". */
const hungBus = `
import contextlib, socket, sys, threading
path, state = "/run/dbus/system_bus_socket", sys.argv[1]
server = socket.socket(socket.AF_UNIX)
server.bind(path)
server.listen(0 if state == "full" else 16)
if state == "full":
    # The kernel always accepts one connection more than the queue's length.
    other = socket.socket(socket.AF_UNIX)
    other.connect(path)

def talk(caller):
    with contextlib.suppress(OSError):
        caller.sendall(b"OK 0123456789abcdef0123456789abcdef\\r\\n")
        while True: caller.sendall(bytes([0x6c, 4, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0] * 4096))

def answer():
    while True: threading.Thread(target=talk, args=[server.accept()[0]], daemon=True).start()

if state == "talking": threading.Thread(target=answer, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()`;

/**
 * A bus that does not answer. When it is silent, or talks of something else, callers wait for the answer; when it is full,
 * for the connection.
 */
export async function startHungBus(machine: Machine, state: "silent" | "talking" | "full"): Promise<AsyncDisposable> {
  await machine.sh("mkdir -p /run/dbus; rm -f /run/dbus/system_bus_socket");
  return await startProgram(machine, ["python3", "-c", hungBus, state]);
}

/** Returns when it has said that it is ready. It ends with its stdin. */
async function startProgram(machine: Machine, command: string[]): Promise<AsyncDisposable> {
  const program = machine.start(command);
  const { value } = await program.stdout.getReader().read();
  if (value === undefined) throw new Error(await program.stderr.text());
  return {
    async [Symbol.asyncDispose]() {
      await program.stdin.end();
      await program.exited;
    },
  };
}

/** firewalld itself, in the machine's namespaces and with its configuration in /run. */
export interface RealFirewalld extends AsyncDisposable {
  /** What firewall-cmd(1) prints. */
  command(...words: string[]): Promise<string>;
  /** Without a chance to tidy up. */
  kill(): Promise<void>;
  start(): Promise<void>;
}

export async function startRealFirewalld(machine: Machine): Promise<RealFirewalld> {
  const program = ["firewalld", "--nofork", "--nopid", "--log-target=console", "--system-config=/run/firewalld"];
  let service: ReturnType<Machine["start"]> | undefined;
  const firewalld: RealFirewalld = {
    async command(...words) {
      return (await machine.sh(`firewall-cmd ${words.join(" ")}`)).trim();
    },
    async kill() {
      service?.kill("SIGKILL");
      await service?.exited;
    },
    async start() {
      service = machine.start(["sh", "-c", `exec ${program.join(" ")} </dev/null >/run/firewalld.log 2>&1`]);
      await untilTrue(async () => (await machine.run(["firewall-cmd", "--state"])).code, (code) => code === 0);
    },
    [Symbol.asyncDispose]: () => firewalld.kill(),
  };
  await machine.sh("mkdir -p /run/firewalld");
  await firewalld.start();
  return firewalld;
}

export interface Firewalld extends AsyncDisposable {
  /** All sources as `[source, zone]`, after the last change. */
  sources(): [string, string][];
}

/**
 * Stores the sources of zones, and has one property. Its arguments are a file that has all sources, before the caller that
 * changed them has the answer, and the property's value.
 */
const likeFirewalld = `
import json, sys, dbus, dbus.lowlevel, dbus.mainloop.glib
from gi.repository import GLib

NAME = "org.fedoraproject.FirewallD1"
_, file, property = sys.argv
sources = {}

def answer(connection, call):
    if not isinstance(call, dbus.lowlevel.MethodCallMessage): return dbus.lowlevel.HANDLER_RESULT_NOT_YET_HANDLED
    words = [str(each) for each in call.get_args_list() if isinstance(each, str)]
    zone, source = (words + ["", ""])[:2]
    member, refusal, value = call.get_member(), None, zone
    if zone == "nonesuch": refusal = f"INVALID_ZONE: {zone}"
    elif member == "Get": value = dbus.String(property, variant_level=1)
    elif member == "querySource": value = sources.get(source) == zone
    elif member == "addSource" and sources.get(source) == zone:
        refusal = f"ZONE_ALREADY_SET: '{source}' already bound to '{zone}'"
    elif member == "addSource": sources[source] = zone
    elif member == "removeSource" and sources.pop(source, None) is None:
        refusal = f"UNKNOWN_SOURCE: '{source}' is not in any zone"
    with open(file, "w") as written: json.dump(list(sources.items()), written)
    if refusal is None:
        reply = dbus.lowlevel.MethodReturnMessage(call)
        reply.append(value)
    else: reply = dbus.lowlevel.ErrorMessage(call, f"{NAME}.Exception", refusal)
    connection.send_message(reply)
    return dbus.lowlevel.HANDLER_RESULT_HANDLED

dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
bus, loop = dbus.SystemBus(), GLib.MainLoop()
bus.add_message_filter(answer)
bus.request_name(NAME)
GLib.io_add_watch(0, GLib.IO_IN | GLib.IO_HUP, lambda *_: loop.quit())
print("ready", flush=True)
loop.run()`;

/** `strictForwardPorts`: a property that firewalld has since 2.3. */
export async function startFirewalld(machine: Machine, strictForwardPorts = "no"): Promise<Firewalld> {
  const folder = mkdtempSync(join(tmpdir(), "firewalld-")), sources = join(folder, "sources");
  writeFileSync(sources, "[]");
  // As firewalld is started: Debian's, which has the modules for D-Bus.
  const service = await startProgram(machine, ["/usr/bin/python3", "-c", likeFirewalld, sources, strictForwardPorts]);
  return {
    sources: () => JSON.parse(readFileSync(sources, "utf8")),
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true });
    },
  };
}

/**
 * Descriptors that nobody has asked for, sent to everything of ours that listens, before it asks who sends them: none
 * stays open.
 */
import { readdirSync } from "node:fs";
import { expect, test } from "bun:test";
import { serverBehindBridge } from "../../support/dhcp/link.ts";
import { say } from "../../support/dhcp/raw-client.ts";
import { startService } from "../../support/dhcp/service.ts";
import type { Machine } from "../../support/machine.ts";
import { PATCHBAY } from "../../support/plugins.ts";
import { SOCKET, startResident } from "../../support/resident.ts";
import { untilServed } from "../../support/resident-status.ts";
import { untilTrue } from "../../support/until-true.ts";
import { SEQPACKET, STREAM } from "../../support/stranger.ts";

// Each machine has a resident of its own.
delete process.env.PATCHBAY_TEST_RESIDENT;

const sources = `${import.meta.dir}/../../../src`;

/** Sends each message with twelve descriptors, on many connections, and closes them when its stdin ends. */
const sender = `
  import { bind, libc } from "${sources}/ffi/libc.ts";
  import { sendMessage } from "${sources}/ffi/socket/message.ts";
  import { unixAddress } from "${sources}/ffi/socket/unix.ts";
  const { connect } = bind({ connect: { args: ["i32", "ptr", "u32"], returns: "i32" } });
  const { path, type, texts } = JSON.parse(process.argv[1]), address = unixAddress(path);
  for (const text of texts) {
    for (let count = 0; count < 20; count++) {
      const fd = libc.socket(1, type, 0);
      if (connect(fd, address, address.length) !== 0) throw new Error("connect");
      for (let turn = 0; turn < 3; turn++) sendMessage(fd, new TextEncoder().encode(text), Array(12).fill(0));
    }
  }
  console.log("sent");
  for await (const _ of console);
`;

interface Receiver {
  machine: Machine;
  pid: number;
  path: string;
  type: number;
  texts: string[];
  /** How many descriptors a connection may have open: its own, and one that it needs. */
  ofConnection: number;
  /** Returns when it has seen everything that was sent before. */
  settle(): Promise<unknown>;
  end(): PromiseLike<void>;
}

async function worker(): Promise<Receiver> {
  const segment = await serverBehindBridge(), { machine } = segment, resident = await startResident(machine, 1);
  const { workers } = await untilServed(machine);
  const settle = () => machine.sh(`${PATCHBAY} version`);
  const end = async () => {
    resident.kill("SIGKILL");
    await resident.exited;
    await segment[Symbol.asyncDispose]();
  };
  return {
    machine,
    pid: workers[0]!.pid,
    path: SOCKET,
    type: SEQPACKET,
    texts: ["", "x"],
    ofConnection: 0,
    settle,
    end,
  };
}

async function service(): Promise<Receiver> {
  const segment = await serverBehindBridge(), service = await startService(segment);
  const end = async () => {
    await service.stop();
    await segment[Symbol.asyncDispose]();
  };
  const { machine } = segment, { pid, socket: path } = service;
  const settle = () => say(machine, path, { text: '{"version":1,"do":"report","network":"net"}\n' });
  return { machine, pid, path, type: STREAM, texts: ["{"], ofConnection: 2, settle, end };
}

const receivers: [name: string, start: () => Promise<Receiver>][] = [
  ["a worker of the resident", worker],
  ["the DHCP service", service],
];

test.each(receivers)("%s closes all descriptors that it does not want", async (_, start) => {
  const { machine, pid, path, type, texts, ofConnection, settle, end } = await start();
  await settle();
  const open = () => readdirSync(`/proc/${pid}/fd`).length, before = open();
  for (const as of [[], ["setpriv", "--bounding-set=-net_admin"]]) {
    const command = [...as, process.execPath, "-e", sender, JSON.stringify({ path, type, texts })];
    const sending = machine.start(command), most = before + 20 * texts.length * ofConnection;
    await sending.stdout.getReader().read();
    await settle();
    // Three times twelve descriptors came on each connection. The last call's are closed after its answer.
    await untilTrue(open, (count) => count <= most);
    sending.stdin.end();
    expect([await sending.exited, await sending.stderr.text()]).toEqual([0, ""]);
    await untilTrue(open, (count) => count <= before);
  }
  await end();
});

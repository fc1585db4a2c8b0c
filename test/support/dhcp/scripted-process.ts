/**
 * The program behind scripted-server.ts, run inside a server's namespace: `SCRIPT RECEIVED ADDRESS`. It reads the script
 * again for each message, so a script that the test has written counts for all messages from then on.
 */
import { createSocket } from "node:dgram";
import { appendFileSync, readFileSync } from "node:fs";
import { type Message } from "../../../src/services/dhcp/v4/message/message.ts";
import { decodeRequest } from "./other-side.ts";
import { formatAddress } from "../../../src/net/address.ts";
import { formatMac } from "../../../src/net/mac.ts";
import { kindOf } from "./message-name.ts";
import { askedBy, Clerk, type Reply } from "./script.ts";
import type { Received } from "./scripted-server.ts";

const [scriptFile, receivedFile, siteAddress] = process.argv.slice(2) as [string, string, string];
const socket = createSocket("udp4");
let told = "", clerk: Clerk | undefined;

function currentClerk(): Clerk {
  const text = readFileSync(scriptFile, "utf8");
  if (clerk === undefined || text !== told) clerk = new Clerk(JSON.parse(text).script, siteAddress);
  told = text;
  return clerk;
}

function describe(message: Message, source: string, sourcePort: number): Received {
  return {
    time: Date.now(),
    kind: kindOf(message)!,
    asked: askedBy(message),
    source,
    sourcePort,
    ciaddr: formatAddress(message.clientAddress!),
    giaddr: formatAddress(message.relayAddress!),
    mac: formatMac(message.mac),
    xid: message.xid,
    secs: message.secs,
    broadcast: message.broadcast,
    options: Object.fromEntries([...message.options].map(([code, bytes]) => [code, bytes.toHex()])),
  };
}

function send({ bytes, copies, to }: Reply): void {
  if (to.mac !== undefined) {
    // A client that has no address yet does not say which MAC it has.
    const entry = [to.address, "lladdr", formatMac(to.mac), "nud", "reachable", "dev", "s0"];
    Bun.spawnSync(["ip", "neigh", "replace", ...entry], { stdout: "inherit", stderr: "inherit" });
  }
  for (let count = 0; count < copies; count++) sendOnce(bytes, to);
}

/** On a busy machine the kernel drops packets that it has no room for. What a test wants to lose, its script says. */
function sendOnce(bytes: Uint8Array, to: Reply["to"], triesLeft = 100): void {
  socket.send(bytes, to.port, to.address, (error) => {
    if (!error) return;
    if (String(error).includes("ENOBUFS") && triesLeft > 0) setTimeout(sendOnce, 5, bytes, to, triesLeft - 1);
    else console.error(`to ${to.address}: ${error}`);
  });
}

socket.on("message", (bytes, { address, port }) => {
  const message = decodeRequest(bytes);
  if (message === undefined || kindOf(message) === undefined) {
    console.error(`no message: ${bytes.toString("hex")}`);
    return;
  }
  const replies = currentClerk().answers(message);
  appendFileSync(receivedFile, JSON.stringify(describe(message, address, port)) + "\n");
  for (const reply of replies) {
    if (reply.delayMs === 0) send(reply);
    else setTimeout(send, reply.delayMs, reply);
  }
});
socket.bind(67, "0.0.0.0", () => {
  socket.setBroadcast(true);
  console.log("serves");
});

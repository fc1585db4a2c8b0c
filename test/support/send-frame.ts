/** Sends Ethernet frames, each in hex, which may claim any source: `send-frame LINK FRAME…`. */
import { readFileSync } from "node:fs";
import { sendFrames } from "./packet-socket.ts";

const [link, ...frames] = process.argv.slice(2) as [string, ...string[]];
sendFrames(Number(readFileSync(`/sys/class/net/${link}/ifindex`, "utf8")), frames);

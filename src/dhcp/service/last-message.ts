/** A packet in the name of a container whose link is gone already, out of the link of the host that it was on. */
import { errorText } from "../../cni/error.ts";
import { parseMac } from "../../net/mac.ts";
import { sendThroughHost } from "../link/through-host.ts";
import { say } from "./log.ts";

export interface Sender {
  name: string;
  mac: string;
  hostLink: string | undefined;
}

export function sendLastMessage(
  { name, mac, hostLink }: Sender,
  to: Uint8Array,
  type: number,
  packet: Uint8Array,
): void {
  try {
    if (hostLink === undefined) throw new Error("its link is gone, and the configuration names none of the host");
    sendThroughHost(hostLink, { from: parseMac(mac)!, to, type }, packet);
  } catch (error) {
    say(`${name}: the server is not told that the lease is over: ${errorText(error)}`);
  }
}

/** A DHCPv6 server that forges its answers; what it can do is in forger6.ts. */
import { join, resolve } from "node:path";
import type { Site } from "./link.ts";
import type { Running } from "./running.ts";

/** Every one but `right` and `withdrawn` gives the address fd00:77::bad, or one that no host can have; `right` is fd00:77::100. */
export type Forgery =
  | "right"
  | "wrong xid"
  | "wrong client"
  | "no client"
  | "no server"
  | "other server"
  | "other association"
  | "link-local"
  | "multicast"
  | "loopback"
  | "unspecified"
  | "preferred for longer than valid"
  /** Gives fd00:77::100 for no time any more. */
  | "withdrawn";

/** In this order, for every message. */
export interface Answers {
  /** To a SOLICIT. */
  ADVERTISE: readonly Forgery[];
  /** To all others. */
  REPLY: readonly Forgery[];
}

const PROGRAM = resolve(import.meta.dir, "forger6.ts");

let count = 0;

export async function forge({ segment, namespace }: Site, answers: Answers): Promise<Running> {
  const command = [process.execPath, PROGRAM, JSON.stringify(answers)];
  const running = segment.start(namespace, command, { log: join(segment.folder, `forger-${++count}`) });
  await running.until(() => running.log().includes("answers"));
  return running;
}

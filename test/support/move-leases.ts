/** Moves leases once: FROM TO. It begins at the end of stdin, so that a tracer sees nothing of the runtime's start. */
import { moveLeases } from "../../src/ipam/moved-leases.ts";
import { parseAddress, parsePrefix } from "../../src/net/address.ts";

export const MOVED_SPAN = { subnet: "10.1.0.0/24", first: "10.1.0.0", last: "10.1.0.15" };

export function moveForTest(from: string, to: string) {
  const options = { directory: from, keep: false, quarantineSeconds: 0, report: () => {} };
  const { subnet, first, last } = MOVED_SPAN;
  const span = { subnet: parsePrefix(subnet)!, first: parseAddress(first)!, last: parseAddress(last)! };
  return moveLeases({ network: "net", pool: "p", from: options, to: { ...options, directory: to }, spans: [span] });
}

if (import.meta.main) {
  const [from, to] = process.argv.slice(2) as [string, string];
  console.log("ready");
  await Bun.stdin.text();
  moveForTest(from, to);
}

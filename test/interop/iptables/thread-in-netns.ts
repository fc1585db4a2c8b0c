/** The thread behind host-tables.test.ts: whether it sees an older nat table, where it began and in a container. */
import { inNetns, openNetns, openOwnNetns } from "../../../src/ffi/netns.ts";
import { hasLegacyTable } from "../../../src/interop/iptables/which-iptables.ts";

declare const self: Worker;

self.onmessage = ({ data: netnsPath }: MessageEvent<string>) => {
  const seen = () => hasLegacyTable(4, "nat");
  self.postMessage({ host: seen(), container: inNetns(openNetns(netnsPath), openOwnNetns(), seen) });
};

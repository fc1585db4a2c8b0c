/** Who this host is: a name, and what tells the machine from one with a copy of its disk. */
import { isNodeName } from "../../cluster/decoding.ts";
import type { Self } from "../../cluster/node.ts";
import { bootId } from "../../ffi/boot.ts";
import { exists, namesIn, readTextFile } from "../../ffi/files.ts";

/** `name`: as the configuration says; the host's name otherwise. */
export function thisNode(name: string | undefined): Self {
  const host = textOf("/proc/sys/kernel/hostname").toLowerCase(), node = name ?? host;
  if (!isNodeName(node)) {
    throw new Error(
      `the host's name "${host}" is no node's name: small letters, digits, dots and hyphens; set "node" in the configuration`,
    );
  }
  return { node, machine: fingerprint(), boot: bootId() };
}

const MACHINE_ID = "/etc/machine-id", PRODUCT = "/sys/class/dmi/id/product_uuid", LINKS = "/sys/class/net";

/** From what a machine has that its disk has not, and the disk's own name. It is hashed: the store is read by many. */
function fingerprint(): string {
  const product = textOf(PRODUCT), [card] = namesIn(LINKS).sort().filter((link) => exists(`${LINKS}/${link}/device`));
  // A card may be lent to a container, or another one put in: it counts only where there is nothing better.
  const address = card === undefined || product !== "" ? "" : textOf(`${LINKS}/${card}/address`);
  const hash = new Bun.CryptoHasher("sha256");
  hash.update([textOf(MACHINE_ID), product, address].join("\n"));
  return hash.digest("hex").slice(0, 32);
}

function textOf(path: string): string {
  return (readTextFile(path) ?? "").trim();
}

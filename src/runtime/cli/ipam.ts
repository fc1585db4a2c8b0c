/** `patchbay ipam`: the leases of host-local, for people; and the way in from Go's plugin and back. */
import { identify, isDirectory, namesIn } from "../../ffi/files.ts";
import { releaseAddress } from "../../ipam/claims.ts";
import type { StoreOptions } from "../../ipam/store.ts";
import { exportLeases, importLeases, type LeaseFile, listLeases } from "../../ipam/take-over.ts";
import { parseAddress } from "../../net/address.ts";
import { type Command, type Given, UsageError } from "./command.ts";
import { complain, print, printLine } from "./print.ts";

const DATA_DIR = "/var/lib/cni/networks";

export const ipamCommand: Command = {
  summary: "list and release addresses that host-local leased, import from Go's plugin, export back to it",
  operands: "list|release|import|export [NETWORK] [ADDRESS…]",
  operandCount: [1, Infinity],
  options: {
    "data-dir": { value: "DIR", help: `where networks keep their leases (${DATA_DIR})` },
    container: { value: "ID", help: "release: every address of this container" },
    ifname: { value: "NAME", help: "release: only those of its interface NAME" },
    json: { help: "list: as JSON" },
  },
  notes: [
    "list [NETWORK]              who has which address",
    "release NETWORK ADDRESS…    give up these, as DEL would",
    "import NETWORK              take the directory over now; otherwise the first ADD does it",
    "export NETWORK              leave nothing in it that Go's host-local does not know",
    "",
  ].map((line) => (line === "" ? "" : `  ${line}\n`)).join(""),
  run(given) {
    const [action, network, ...addresses] = given.operands;
    switch (action) {
      case "list":
        return list(given, network);
      case "release":
        return releaseThese(given, named(given, network), addresses);
      case "import":
        return takeOver(importLeases, "indexed", named(given, network));
      case "export":
        return takeOver(exportLeases, "left to Go's host-local", named(given, network));
    }
    throw new UsageError(`ipam knows list, release, import and export, not ${action}`);
  },
};

function dataDir(given: Given): string {
  return given.value("data-dir") ?? DATA_DIR;
}

function named(given: Given, network: string | undefined): StoreOptions {
  if (network === undefined) throw new UsageError(`ipam ${given.operands[0]} needs the NETWORK's name`);
  const directory = `${dataDir(given)}/${network}`;
  identify(directory);
  // Leases of an earlier boot are kept or freed as the index says, which knows what the network's configuration said.
  return { directory, keep: false, quarantineSeconds: 0, report: complain };
}

function list(given: Given, network: string | undefined): number {
  const isNetwork = (name: string) => isDirectory(identify(`${dataDir(given)}/${name}`));
  const networks = network === undefined ? namesIn(dataDir(given)).filter(isNetwork).sort() : [network];
  // 10.0.0.9 before 10.0.0.10.
  const { compare } = new Intl.Collator("en", { numeric: true });
  const leases = networks.flatMap((name) => {
    const inOrder = listLeases(`${dataDir(given)}/${name}`).sort((a, b) => compare(a.address, b.address));
    return inOrder.map(({ address, owner }) => ({ network: name, address, ...owner }));
  });
  if (given.has("json")) {
    printLine(JSON.stringify(leases));
    return 0;
  }
  const rows = leases.map(({ network, address, containerId, ifName }) =>
    [network, address, containerId ?? "(not an attachment)", ifName ?? ""] as const
  );
  const widths = [0, 1, 2].map((column) => Math.max(0, ...rows.map((row) => row[column]!.length)));
  print(rows.map((row) => row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join("  ").trimEnd() + "\n").join(""));
  return 0;
}

function releaseThese(given: Given, options: StoreOptions, addresses: string[]): number {
  const containerId = given.value("container");
  if ((containerId === undefined) === (addresses.length === 0)) {
    throw new UsageError("ipam release needs either addresses or --container");
  }
  const ifName = given.value("ifname");
  const ofContainer = ({ owner }: LeaseFile) =>
    owner?.containerId === containerId && (ifName === undefined || owner?.ifName === ifName);
  const texts = containerId === undefined
    ? addresses
    : listLeases(options.directory).filter(ofContainer).map(({ address }) => address);
  const wrong = texts.find((text) => parseAddress(text) === undefined);
  if (wrong !== undefined) throw new UsageError(`${wrong} is not an address`);
  if (texts.length === 0) complain(`container ${containerId} has no address in ${options.directory}`);
  let status = texts.length === 0 ? 1 : 0;
  for (const text of texts) {
    const holder = releaseAddress(options, parseAddress(text)!);
    if (holder === undefined) status = 1;
    printLine(`${text}: ${holder === undefined ? "not leased" : `released, was ${holder.replace("\r\n", "/")}`}`);
  }
  return status;
}

function takeOver(work: (options: StoreOptions) => void, done: string, options: StoreOptions): number {
  work(options);
  const leases = listLeases(options.directory);
  printLine(`${options.directory}: ${leases.length} leases ${done}`);
  for (const { address, owner } of leases) {
    if (owner === undefined) {
      complain(`${options.directory}/${address} does not name an attachment; it stays reserved`);
    }
  }
  return 0;
}

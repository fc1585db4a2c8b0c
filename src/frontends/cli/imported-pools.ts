/** `patchbay ipam import whereabouts` and `patchbay node import nv-ipam`: another program's pools, out of what kubectl prints. */
import { asSubnets, whereaboutsUse } from "../../cluster/from-whereabouts.ts";
import { nvIpamPool } from "../../cluster/from-nv-ipam.ts";
import { poolFrom } from "../../cluster/pool-decoding.ts";
import { CniError, errorText, INVALID_CONFIG } from "../../cni/error.ts";
import { DOCUMENT_LIMIT_BYTES, parseDocument } from "../../cni/json.ts";
import { counted } from "../../contract/counted.ts";
import { readAll, readConfiguredFile } from "../../ffi/files.ts";
import { POLLIN } from "../../ffi/poll.ts";
import { awaitReady } from "../../process/interruption.ts";
import { print, printToStderr } from "../../process/output.ts";
import { type ExitStatus, type GivenArguments, type OptionTable, UsageError } from "./command.ts";

export const fileOption: OptionTable = {
  file: {
    value: "FILE",
    isNeverEmpty: true,
    help: "import: what kubectl prints of that program's kinds; - is stdin",
  },
};

export const whereaboutsOptions: OptionTable = {
  ...fileOption,
  pool: {
    value: "POOL",
    isNeverEmpty: true,
    help: "import whereabouts: exclude in this pool of the store what is in use",
  },
  subnet: { value: "SUBNET", isNeverEmpty: true, help: "import whereabouts: which of its ranges" },
  gateway: { value: "ADDRESS", isNeverEmpty: true, help: "import whereabouts: the pool's gateway" },
  from: { value: "ADDRESS", isNeverEmpty: true, help: "import whereabouts: the pool's first address" },
  to: { value: "ADDRESS", isNeverEmpty: true, help: "import whereabouts: the pool's last address" },
  "block-size": { value: "COUNT", isNeverEmpty: true, help: "import whereabouts: so many addresses a block (16)" },
  exclude: {
    value: "ADDRESS",
    isNeverEmpty: true,
    help: "import whereabouts: an address or a subnet that is excluded whoever uses it; may be repeated",
  },
};

/** With `--pool`, the store's pool is changed; otherwise the pool is printed, for `patchbay pool add NAME -`. */
export function importWhereabouts(given: GivenArguments): ExitStatus {
  const file = needed(given, "file"), pool = given.value("pool");
  const { subnet, used } = reading(file, (document) => whereaboutsUse(document, given.value("subnet")));
  const exclude = [...asSubnets(used), ...given.values("exclude")];
  if (pool !== undefined) {
    refuseBesidePool(given);
    const { excludeInPool } = require(
      "../../services/node/moving/exclusion.ts",
    ) as typeof import("../../services/node/moving/exclusion.ts");
    return excludeInPool(given.value("config"), { pool, subnet, used, exclude }).then(({ before, hasChanged }) => {
      print(
        used.length === 0
          ? `pool ${pool}: nothing of Whereabouts' is in use any more: it can be removed\n`
          : `pool ${pool} excludes ${
            counted(exclude.length, "subnet")
          } (${before} before), with all ${used.length} ` +
            `that Whereabouts has given out${hasChanged ? "" : ": as before"}\n`,
      );
      return 0;
    });
  }
  const size = given.value("block-size") ?? "16";
  if (!/^\d{1,6}$/.test(size)) throw new UsageError(`--block-size ${size} is no number`);
  const options = ["gateway", "from", "to"].flatMap((key) => given.has(key) ? [[key, given.value(key)]] : []);
  const range = { cidr: subnet, ...Object.fromEntries(options), blockSize: Number(size) };
  const document = { layout: "flat", ranges: [{ ...range, ...exclude.length > 0 && { exclude } }] };
  poolFrom("pool", document);
  print(`${JSON.stringify(document, undefined, 2)}\n`);
  printToStderr(`${used.length} of its addresses are in use, and excluded`);
  return 0;
}

/** What the pool has stays its own. */
function refuseBesidePool(given: GivenArguments): void {
  const other = ["gateway", "from", "to", "block-size"].find((option) => given.has(option));
  if (other !== undefined) throw new UsageError(`--${other} is for a new pool, and --pool for one that is there`);
}

export function importNvIpam(given: GivenArguments): ExitStatus {
  const file = needed(given, "file");
  const { document, blocks, notes, name } = reading(file, (found) => nvIpamPool(found, given.value("pool")));
  print(`${JSON.stringify(document, undefined, 2)}\n`);
  for (const note of notes) printToStderr(`${name}: ${note}`);
  for (const [node, index] of blocks) printToStderr(`${name}: block ${index} is ${node}'s`);
  return 0;
}

function needed(given: GivenArguments, option: string): string {
  const value = given.value(option);
  if (value === undefined) throw new UsageError(`import needs --${option}`);
  return value;
}

/** Each refusal names the file. */
function reading<T>(file: string, work: (document: unknown) => T): T {
  const shown = file === "-" ? "stdin" : file;
  const source = file === "-"
    ? readAll(0, DOCUMENT_LIMIT_BYTES, shown, Infinity, () => awaitReady(0, POLLIN))
    : readConfiguredFile(file, DOCUMENT_LIMIT_BYTES);
  if (source === undefined) throw new Error(`${file}: no such file`);
  try {
    return work(parseDocument(source, "it is no JSON"));
  } catch (error) {
    throw new CniError(INVALID_CONFIG, `${shown}: ${errorText(error)}`, "", { cause: error });
  }
}

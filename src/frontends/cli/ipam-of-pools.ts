/** `patchbay ipam show` and `ipam check`: blocks of pools, and whether store, grants, leases and containers agree. */
import { print, printJson } from "../../process/output.ts";
import { knownAttachments } from "../../runtime/records.ts";
import { containersOfPool } from "./attached-of-pool.ts";
import { type ExitStatus, type GivenArguments, UsageError } from "./command.ts";
import { runtimeOf } from "./network-arguments.ts";
import { areWrong, asLine, findingsText, ownText, runsText } from "./shown-pools.ts";

export function showBlocks(given: GivenArguments): ExitStatus {
  const [, pool, other] = given.operands;
  if (other !== undefined) throw new UsageError(`"${other}" is one too many`);
  if (given.has("all")) {
    return operating().showAll(given.value("config"), pool).then((found) => {
      if (given.has("json")) printJson(found);
      else print(asLine(found.store) + runsText(found.pools, true));
      return 0;
    });
  }
  return operating().showOwn(onHost(given), pool).then((found) => {
    if (given.has("json")) printJson(found);
    else print(ownText(found));
    return 0;
  });
}

export function checkBlocks(given: GivenArguments): ExitStatus {
  if (given.operands.length > 1) throw new UsageError(`"${given.operands[1]}" is one too many`);
  const containers = () => {
    const known = new Set(knownAttachments(runtimeOf(given)).map(({ containerId }) => containerId));
    return { attached: containersOfPool, isKnown: (id: string) => known.has(id) };
  };
  return operating().checkAddresses(onHost(given), containers).then((found) => {
    if (given.has("json")) printJson(found);
    else if (found.findings.length > 0) print(findingsText(found.findings));
    else print(asLine(`node ${found.node}, ${found.store}: all agree`));
    return areWrong(found.findings) ? 1 : 0;
  });
}

function operating() {
  return require(
    "../../services/node/operator/addresses.ts",
  ) as typeof import("../../services/node/operator/addresses.ts");
}

function onHost(given: GivenArguments) {
  return { config: given.value("config"), dataDirectory: given.value("data-dir") };
}

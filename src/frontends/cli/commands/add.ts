/** `patchbay add NETWORK NETNS`. */
import { printResult } from "../../../cni/result-versions.ts";
import { warnOfUntaken } from "../../../runtime/capabilities.ts";
import { warnOfTaken } from "../../../runtime/caveats.ts";
import { addAnswered, type NetnsHolder } from "../../answers/answered-add.ts";
import type { Command } from "../command.ts";
import {
  attachmentArguments,
  capabilityOptions,
  givenNetwork,
  INTERRUPTION_STATUS,
  pidIn,
  requestTo,
  runtimeOf,
} from "../network-arguments.ts";
import { printDocument } from "../../../process/output.ts";
import { interruptible } from "../interruptible.ts";
import { warnOfMisspellings } from "../misspelling-warnings.ts";

export const addCommand: Command = {
  summary: "attach a network namespace to a network, and print the result",
  ...attachmentArguments,
  options: { ...capabilityOptions, ...attachmentArguments.options },
  exitStatus: INTERRUPTION_STATUS,
  examples: [
    { args: "first web", what: "attach the namespace web of 'ip netns' to the network first" },
    { args: "first pid:4711 --ifname net1", what: "a second interface for the container of process 4711" },
    { args: "first web --ports 8080:80 --ip 10.70.0.9", what: "with a port of the host, and this address" },
  ],
  takesBack: true,
  run: (given, program) =>
    interruptible(`${program} add`, () => {
      // Opened before anything is asked of its number.
      const holder = holderOf(given.operands[1]!);
      try {
        const runtime = runtimeOf(given), network = givenNetwork(given), request = requestTo(network, given);
        if (program === "patchbay") {
          warnOfMisspellings(network, runtime.pluginPath);
          warnOfUntaken([network], request.capabilityArgs);
          warnOfTaken(runtime, network, request);
        }
        return addAnswered(runtime, network, request, (result) => {
          if (result !== undefined) printDocument(printResult(result));
        }, holder);
      } finally {
        holder?.close();
      }
    }),
};

function holderOf(netns: string): (NetnsHolder & { close(): void }) | undefined {
  const pid = pidIn(netns);
  if (pid === undefined) return undefined;
  const { OtherProcess } = require("../../../ffi/other-process.ts") as typeof import("../../../ffi/other-process.ts");
  const holder = OtherProcess.open(pid);
  if (holder === undefined) throw new Error(`there is no process ${pid}`);
  return holder;
}

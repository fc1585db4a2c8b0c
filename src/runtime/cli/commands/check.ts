/** `patchbay check NETWORK CONTAINER`. */
import { errorText } from "../../../cni/error.ts";
import { counted } from "../../../contract/counted.ts";
import { collectFailures } from "../../../contract/failures.ts";
import { checkNetwork, differencesIn, type PluginDifferences } from "../../chain.ts";
import { idlePortsOf } from "../../../engine/operator/idle.ts";
import { type Command, UsageError } from "../command.ts";
import { attachedArguments, attachedRequest } from "../attached-request.ts";
import {
  attachmentArguments,
  networkOf,
  networkOrRecorded,
  requestOf,
  runtimeOf,
  TO_LOOK,
} from "../network-arguments.ts";
import { recordedDifferences } from "../../recorded-differences.ts";
import { unconfiguredNetwork } from "../../gc.ts";
import { nextSteps } from "../next-steps.ts";
import { printJson, printLine, printToStderr } from "../output.ts";
import { folded, operandsOf } from "../shown-attachments.ts";

const summary = "say whether an attachment is still as it was made";

export const checkCommand: Command = {
  summary,
  ...attachedArguments(TO_LOOK),
  exitStatus:
    "1 when something differs, with a line on stderr for each difference, or when the attachment is not known.",
  examples: [{ args: "first web", what: "whether the namespace web is still attached as it was" }],
  options: {
    brief: { help: "print one line, with the plugins whose work differs" },
    json: { help: "print JSON" },
    ...attachmentArguments.options,
  },
  run(given) {
    if (given.has("brief") && given.has("json")) throw new UsageError("--brief and --json exclude each other");
    const runtime = runtimeOf(given), name = given.operands[0]!;
    const recorded = () => unconfiguredNetwork(runtime, name);
    const { network, isConfigured } = networkOrRecorded(given, name, recorded);
    const { request, unknown } = attachedRequest(given);
    let found: PluginDifferences[] = [];
    const [failure] = collectFailures([request], () => {
      if (unknown !== undefined) throw new Error(unknown.text);
      if (request.netnsPath === "") {
        throw new Error(
          `no record says which namespace container ${request.containerId} is in; name it: pid:N, or a path`,
        );
      }
      found = isConfigured
        ? [
          ...differencesIn(runtime, network, request),
          ...idlePortsOf({ network: name, ...request }, runtime.pluginPath),
        ].filter(({ lines }) => lines.length > 0)
        : recordedDifferences(runtime, { network: name, ...request });
    });
    if (given.has("json")) {
      const { containerId, ifName, netnsPath } = request;
      const problems = failure === undefined ? found.flatMap(({ lines }) => lines) : [errorText(failure)];
      printJson({ network: network.name, containerId, ifName, netnsPath, problems });
    }
    if (failure !== undefined) throw failure;
    if (found.length === 0) return 0;
    const count = found.reduce((sum, { lines }) => sum + lines.length, 0);
    const attachment = operandsOf({ network: network.name, ...request });
    const head = `${attachment} is not as it was made: ${counted(count, "difference")}`;
    if (given.has("brief")) printLine(`${head}: ${found.map(({ type }) => type).join(", ")}`);
    else {
      const below = found.flatMap(({ type, lines }) =>
        folded(lines).flatMap((line) => [`${type}: ${line}`, ...nextSteps(line, network.name, "check")])
      );
      printToStderr(
        [`patchbay check: ${head}`, ...below, `'patchbay repair ${attachment}' mends what it can`].join("\n  "),
      );
    }
    return 1;
  },
};

export const cnitoolCheckCommand: Command = {
  summary,
  ...attachmentArguments,
  run(given) {
    checkNetwork(runtimeOf(given), networkOf(given), requestOf(given));
    return 0;
  },
};

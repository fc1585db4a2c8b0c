/** `patchbay check NETWORK [CONTAINER]`. */
import { errorText } from "../../../cni/error.ts";
import { counted } from "../../../contract/counted.ts";
import { collectFailures } from "../../../contract/failures.ts";
import { checkNetwork, differencesIn, type PluginDifferences } from "../../../runtime/chain.ts";
import { idlePortsOf } from "../../../engine/operator/idle.ts";
import { type Command, type GivenArguments, UsageError } from "../command.ts";
import { attachedArguments, attachedRequest } from "../attached-request.ts";
import {
  attachmentArguments,
  DIGITS_TO_SHOW,
  givenNetwork,
  networkOrRecorded,
  requestOf,
  runtimeOf,
} from "../network-arguments.ts";
import { nothingAttached } from "../named-attachments.ts";
import type { AttachmentRequest } from "../../../runtime/plugin-call.ts";
import { attachmentsToNetwork } from "../../../runtime/records.ts";
import { recordedDifferences } from "../../../runtime/recorded-differences.ts";
import { unconfiguredNetwork } from "../../../runtime/gc.ts";
import { nextSteps } from "../../answers/next-steps.ts";
import { printJson, printLine, printToStderr } from "../../../process/output.ts";
import { folded, operandsOf } from "../shown-attachments.ts";

interface Checked {
  request: AttachmentRequest;
  found: PluginDifferences[];
  /** Why nobody could look. */
  failure?: unknown;
}

export const checkCommand: Command = {
  summary: "say whether the attachments of a network, or one, are still as they were made",
  ...attachedArguments(DIGITS_TO_SHOW),
  operands: "NETWORK [CONTAINER]",
  operandCount: [1, 2],
  notes: `${attachedArguments(DIGITS_TO_SHOW).notes}NETWORK alone means all attachments to it.\n`,
  exitStatus:
    "1 when something differs, with a line on stderr for each difference, or when the attachment is not known.",
  examples: [
    { args: "first web", what: "whether the namespace web is still attached as it was" },
    { args: "first --brief", what: "the attachments to first that are not as they were made" },
  ],
  options: {
    brief: { help: "print one line for an attachment that differs, with the plugins whose work it is" },
    json: { help: "print JSON" },
    ...attachmentArguments.options,
  },
  run(given) {
    if (given.has("brief") && given.has("json")) throw new UsageError("--brief and --json exclude each other");
    const [name, container] = given.operands;
    if (container === undefined) return checkAll(given, name!);
    const check = checkerOf(given, name!), { request, unknown } = attachedRequest(given);
    const checked = check(request, unknown?.text);
    if (given.has("json")) printJson(inJson(name!, checked));
    if (checked.failure !== undefined) throw checked.failure;
    return report(given, name!, checked);
  },
};

function checkAll(given: GivenArguments, network: string): number {
  const ofOne = ["ifname", "container-id"].find((option) => given.has(option));
  if (ofOne !== undefined) throw new UsageError(`--${ofOne} is for one CONTAINER, and none is named`);
  const listed = () => attachmentsToNetwork(runtimeOf(given), network);
  const check = checkerOf(given, network), all = listed();
  if (all.length === 0) throw new Error(nothingAttached(network, [], [network]));
  const checked = all.map((one) => check(one)), still = checked.every(isRight) ? all : listed();
  const isAttached = ({ request: { containerId, ifName } }: Checked) =>
    still.some((one) => one.containerId === containerId && one.ifName === ifName);
  // An attachment that somebody has deleted meanwhile is left out.
  const told = checked.filter((one) => isRight(one) || isAttached(one));
  if (given.has("json")) printJson(told.map((one) => inJson(network, one)));
  return Math.max(0, ...told.map((one) => report(given, network, one)));
}

function checkerOf(given: GivenArguments, name: string): (request: AttachmentRequest, unknown?: string) => Checked {
  const runtime = runtimeOf(given), recorded = () => unconfiguredNetwork(runtime, name);
  const { network, isConfigured } = networkOrRecorded(given, name, recorded);
  return (request, unknown) => {
    let found: PluginDifferences[] = [];
    const [failure] = collectFailures([request], () => {
      if (unknown !== undefined) throw new Error(unknown);
      if (request.netnsPath === "") {
        throw new Error(
          `no record says which namespace container ${request.containerId} is in; name it: pid:N, or a path`,
        );
      }
      const owner = { network: name, containerId: request.containerId, ifName: request.ifName };
      found = isConfigured
        ? [...differencesIn(runtime, network, request), ...idlePortsOf(owner, runtime.pluginPath)]
          .filter(({ lines }) => lines.length > 0)
        : recordedDifferences(runtime, owner);
    });
    return { request, found, failure };
  };
}

function inJson(network: string, { request: { containerId, ifName, netnsPath }, found, failure }: Checked) {
  const problems = failure === undefined ? found.flatMap(({ lines }) => lines) : [errorText(failure)];
  return { network, containerId, ifName, netnsPath, problems };
}

function isRight({ found, failure }: Checked): boolean {
  return failure === undefined && found.length === 0;
}

function report(given: GivenArguments, network: string, checked: Checked): number {
  if (isRight(checked)) return 0;
  const { request: { containerId, ifName }, found, failure } = checked;
  const attachment = operandsOf({ network, containerId, ifName });
  const count = found.reduce((sum, { lines }) => sum + lines.length, 0);
  const head = failure === undefined
    ? `${attachment} is not as it was made: ${counted(count, "difference")}`
    : `${attachment} cannot be checked: ${errorText(failure)}`;
  if (given.has("brief")) printLine([head, found.map(({ type }) => type).join(", ")].filter(Boolean).join(": "));
  else {
    const below = found.flatMap(({ type, lines, failure: line }) =>
      folded(lines).flatMap((text) => [`${type}: ${text}`, ...nextSteps(line ?? text, network, "check")])
    );
    const next = failure === undefined
      ? [`'patchbay repair ${attachment}' mends what it can`]
      : nextSteps(failure, network, "check");
    printToStderr([`patchbay check: ${head}`, ...below, ...next].join("\n  "));
  }
  return 1;
}

export const cnitoolCheckCommand: Command = {
  summary: "say whether an attachment is still as it was made",
  ...attachmentArguments,
  run(given) {
    checkNetwork(runtimeOf(given), givenNetwork(given), requestOf(given));
    return 0;
  },
};

/** `patchbay hook add|del`: a hook of OCI runtimes (docs/engines/runc-crun.md). */
import { CniError, DECODING_FAILURE, INVALID_CONFIG } from "../../../cni/error.ts";
import { decodeText } from "../../../cni/json.ts";
import { resultDocument } from "../../../cni/result-versions.ts";
import { requireCaller } from "../../../process/calls.ts";
import { EFBIG, isErrno } from "../../../ffi/errno.ts";
import { readAll } from "../../../ffi/files.ts";
import { awaitReady } from "../../../process/interruption.ts";
import { POLLIN } from "../../../ffi/poll.ts";
import { attachAll, type Attached } from "../../hook/attach.ts";
import { containerNetns } from "../../hook/container-netns.ts";
import { detachAll } from "../../hook/detach.ts";
import { parseEndedState, parseState, STATE_LIMIT_BYTES } from "../../hook/state.ts";
import { type HookSettings, hookSettingsOf, settingNames } from "../../hook/settings.ts";
import { hookRequestOf, parseNetworks, type RequestedNetwork } from "../../hook/request.ts";
import { type Command, type GivenArguments, UsageError } from "../command.ts";
import { capabilityOptions, INTERRUPTION_STATUS, runtimeOf, runtimeOptions } from "../network-arguments.ts";
import { interruptible } from "../interruptible.ts";
import { printJson } from "../../../process/output.ts";

export const hookCommand: Command = {
  readsStdin: true,
  summary: "attach and detach containers of runc, crun and youki, as a hook that they call",
  operands: "add|del [NETWORK…]",
  operandCount: [1, Infinity],
  needsRoot: true,
  takesBack: ({ operands: [verb] }) => verb === "add",
  options: {
    ports: capabilityOptions["ports"]!,
    name: { value: "NAME", help: "the container's name, for plugins that read K8S_POD_NAME" },
    capabilities: { value: "JSON", help: "capability arguments for every network" },
    permit: { value: "LIST", help: "capabilities that annotations may carry besides the usual ones" },
    "ports-in-use": { help: "annotations may ask for ports at which a program of the host listens" },
    json: { help: "let 'add' print the results" },
    ...runtimeOptions,
  },
  notes:
    "The command reads the container's state from stdin. Call 'hook add' in createRuntime, 'hook del' in poststop.\n" +
    "NETWORK has the form NETWORK[@IFNAME][ ip=ADDRESS][ mac=MAC][ ingress=RATE][ egress=RATE]. Without NETWORK, 'add'\n" +
    "takes the annotation dev.patchbay.networks, and 'del' everything that is recorded of the container.\n",
  exitStatus: INTERRUPTION_STATUS,
  examples: [
    { args: "add front 'back@net1 ip=10.2.0.9' --ports 8080:80", what: "in createRuntime: attach to two networks" },
    { args: "del", what: "in poststop: detach from all networks" },
  ],
  run(given) {
    const [verb, ...networks] = given.operands;
    if (verb === "add") return interruptible("patchbay hook", () => add(given, networks));
    if (verb === "del") return del(given, networks);
    throw new UsageError(`"${verb}" is neither add nor del`);
  },
};

function add(given: GivenArguments, operands: readonly string[]): number {
  const state = parseState(readState()),
    permitted = given.value("permit")?.split(",") ?? [],
    asked = hookRequestOf(hookSettingsOf(state.annotations, argumentsOf(given, operands)), permitted),
    request = given.has("ports-in-use") ? { ...asked, annotatedPorts: undefined } : asked;
  if (request.networks.length === 0) {
    const next = "name some in annotation dev.patchbay.networks, or as arguments of the hook";
    throw new CniError(INVALID_CONFIG, `container ${state.id} wants no network`, next);
  }
  const container = { id: state.id, netnsPath: containerNetns(state) };
  attachAll(runtimeOf(given), container, request, (attached) => {
    // A caller that does not know that its container is attached will not call 'hook del'.
    requireCaller();
    if (given.has("json")) printJson(attached.map(inJson));
  });
  return 0;
}

function inJson({ network, request, result }: Attached) {
  return { network: network.name, ifName: request.ifName, result: result && resultDocument(result) };
}

function del(given: GivenArguments, operands: readonly string[]): number {
  const { id, annotations } = parseEndedState(readState());
  const { networks } = argumentsOf(given, operands);
  const only = networks === undefined ? undefined : parseNetworks(networks);
  detachAll(runtimeOf(given), id, { only, annotated: annotatedNetworks(annotations) });
  return 0;
}

/** What 'hook add' refused was never attached. */
function annotatedNetworks(annotations: Readonly<Record<string, string>>): readonly RequestedNetwork[] {
  try {
    const { networks } = hookSettingsOf(annotations, {});
    return networks === undefined ? [] : parseNetworks(networks);
  } catch {
    return [];
  }
}

function argumentsOf(given: GivenArguments, operands: readonly string[]): HookSettings {
  const named = settingNames.filter((name) => given.has(name))
    .map((name) => [name, { text: given.value(name)!, source: `--${name}` }] as const);
  const networks = operands.length > 0 && { networks: { text: operands.join(","), source: "NETWORK" } };
  return { ...Object.fromEntries(named), ...networks };
}

function readState(): string {
  try {
    return decodeText(readAll(0, STATE_LIMIT_BYTES, "stdin", Infinity, () => awaitReady(0, POLLIN)));
  } catch (error) {
    if (!isErrno(error, EFBIG)) throw error;
    const reason = `the container's state on stdin is larger than ${STATE_LIMIT_BYTES} bytes`;
    throw new CniError(DECODING_FAILURE, reason, "annotations are the usual cause");
  }
}

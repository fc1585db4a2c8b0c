/**
 * This program as a driver of podman's networks, by netavark's plugin API 1.0.0: podman calls `create`, netavark
 * `setup` and `teardown` for each container. docs/engines/podman.md is for people who use it.
 */
import { parseDocument } from "../../cni/json.ts";
import { inCommand } from "../../contract/trace.ts";
import { readAll } from "../../ffi/files.ts";
import { leaveWhatMayWait } from "../../process/calls.ts";
import { addAnswered } from "../answers/answered-add.ts";
import { printLine } from "../../process/output.ts";
import { VERSION } from "../../process/version.ts";
import { printAnswer } from "../answers/answer.ts";
import type { PluginCall } from "../../interop/podman-documents/netavark.schema.ts";
import { decodeNetwork, decodePluginCall } from "../../interop/podman-documents/netavark.validate.gen.ts";
import { attachmentRequest, macOf } from "./attachment-request.ts";
import type { DriverCall, DriverVerb } from "./call-of-driver.ts";
import { chosenNetwork, runtimeFor } from "./chosen-network.ts";
import { createNetwork } from "./create.ts";
import { statusBlock } from "./status-block.ts";
import { ownerOfCall, takeBackFormer, tearDown } from "./teardown.ts";

const API_VERSION = "1.0.0";

const verbs: Readonly<Record<DriverVerb, (netnsPath: string | undefined) => object | number | void>> = {
  info: () => ({ version: VERSION, api_version: API_VERSION }),
  create: () => createNetwork(decodeNetwork(readDocument())),
  setup: (netnsPath) => setUp(required(netnsPath), decodePluginCall(readDocument())),
  teardown: (netnsPath) => tearDown(required(netnsPath), decodePluginCall(readDocument())),
};

/** Returns the exit status. */
export function runDriver({ verb, netnsPath }: DriverCall): number {
  return printAnswer(() => inCommand(verb, () => verbs[verb](netnsPath)));
}

function required(netnsPath: string | undefined): string {
  if (netnsPath) return netnsPath;
  throw new Error("netns path argument is missing");
}

function readDocument(): unknown {
  return parseDocument(readAll(0, undefined, "stdin"), "stdin");
}

/** Prints the answer itself, or takes the attachment back. Returns the exit status. */
function setUp(netnsPath: string, call: PluginCall): number {
  const { static_ips: addresses = [], static_mac } = call.network_options;
  const requested = { addresses, mac: static_mac === undefined ? undefined : macOf(static_mac) };
  const key = ownerOfCall(call), runtime = runtimeFor(call.network), chosen = chosenNetwork(call.network, runtime);
  const request = attachmentRequest(netnsPath, call, chosen);
  leaveWhatMayWait(chosen.network.plugins, runtime.pluginPath);
  takeBackFormer(runtime, key, netnsPath, call);
  return addAnswered(
    runtime,
    chosen.network,
    request,
    (result) => printLine(JSON.stringify(statusBlock(result, request, requested))),
  );
}

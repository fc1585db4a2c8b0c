/**
 * This program as a driver of podman's networks, by netavark's plugin API 1.0.0: podman calls `create`, netavark
 * `setup` and `teardown` for each container. docs/engines/podman.md is for people who use it.
 */
import { parseDocument } from "../../cni/json.ts";
import { readAll } from "../../ffi/files.ts";
import { addAnswered } from "../../runtime/cli/answered-add.ts";
import { printLine } from "../../runtime/cli/output.ts";
import { VERSION } from "../../version.ts";
import { answering } from "../wire/answer.ts";
import type { PluginCall } from "../wire/netavark.schema.ts";
import { decodeNetwork, decodePluginCall } from "../wire/netavark.validate.gen.ts";
import { attachmentRequest, macOf } from "./attachment-request.ts";
import { chosenNetwork, runtimeFor } from "./chosen-network.ts";
import { createNetwork } from "./create.ts";
import { statusBlock } from "./status-block.ts";
import { keyOf, takeBackFormer, tearDown } from "./teardown.ts";

const API_VERSION = "1.0.0";

const verbs: Readonly<Record<string, (netnsPath: string | undefined) => object | number | void>> = {
  info: () => ({ version: VERSION, api_version: API_VERSION }),
  create: () => createNetwork(decodeNetwork(readDocument())),
  setup: (netnsPath) => setUp(required(netnsPath), decodePluginCall(readDocument())),
  teardown: (netnsPath) => tearDown(required(netnsPath), decodePluginCall(readDocument())),
};

/** Returns the exit status. main.ts has chosen by the verb, and the command line answers for all others. */
export function runPodmanPlugin([verb, netnsPath]: readonly string[]): number {
  return answering(() => verbs[verb!]!(netnsPath));
}

function required(netnsPath: string | undefined): string {
  if (netnsPath) return netnsPath;
  throw new Error("netns path argument is missing");
}

function readDocument(): unknown {
  return parseDocument(readAll(0, undefined, "stdin"), "stdin");
}

/** Returns the exit status: it has printed the answer by itself, or taken the attachment back. */
function setUp(netnsPath: string, call: PluginCall): number {
  const { static_ips: addresses = [], static_mac } = call.network_options;
  const wanted = { addresses, mac: static_mac === undefined ? undefined : macOf(static_mac) };
  const key = keyOf(call), chosen = chosenNetwork(call.network), runtime = runtimeFor(call.network);
  const request = attachmentRequest(netnsPath, call, chosen);
  takeBackFormer(runtime, key, netnsPath, call);
  return addAnswered(
    runtime,
    chosen.network,
    request,
    (result) => printLine(JSON.stringify(statusBlock(result, request, wanted))),
  );
}

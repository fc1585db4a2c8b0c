/** Parsing and validating a configuration. */
import { parseDocument } from "../../src/cni/json.ts";
import { validateBridgeConf } from "../../src/plugins/main/bridge/bridge.validate.gen.ts";

const text = JSON.stringify({
  cniVersion: "1.0.0",
  name: "net",
  type: "bridge",
  bridge: "cni0",
  isGateway: true,
  ipMasq: true,
  ipam: { type: "host-local", ranges: [[{ subnet: "10.88.0.0/16" }]], routes: [{ dst: "0.0.0.0/0" }] },
});

export const tasks = {
  "parse and validate a bridge configuration": () =>
    validateBridgeConf(parseDocument(text, "") as Record<string, unknown>),
};

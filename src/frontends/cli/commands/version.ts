/** `patchbay version`. */
import { KNOWN_VERSIONS } from "../../../cni/versions.ts";
import { VERSION } from "../../../process/version.ts";
import type { Command } from "../command.ts";
import { printJson, printLine } from "../../../process/output.ts";

export const versionCommand: Command = {
  summary: "print the versions of this program and of Bun, and the CNI versions it supports",
  operands: "",
  operandCount: [0, 0],
  options: { json: { help: "print JSON" } },
  run(given) {
    const bun = Bun.version;
    if (given.has("json")) printJson({ patchbay: VERSION, cni: KNOWN_VERSIONS, bun });
    else printLine(`patchbay ${VERSION}\nCNI ${KNOWN_VERSIONS.join(", ")}\nBun ${bun}`);
    return 0;
  },
};

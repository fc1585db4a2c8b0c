/** `patchbay version`. */
import { KNOWN_VERSIONS } from "../../cni/versions.ts";
import { VERSION } from "../../version.ts";
import type { Command } from "./command.ts";
import { printLine } from "./print.ts";

export const versionCommand: Command = {
  summary: "print the version of this program and those of CNI that it speaks",
  operands: "",
  operandCount: [0, 0],
  options: {},
  run() {
    printLine(`patchbay ${VERSION}\nCNI ${KNOWN_VERSIONS.join(", ")}\nBun ${Bun.version}`);
    return 0;
  },
};

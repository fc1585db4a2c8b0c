/** Recognises the program that was built from the same sources. */
import { recognizeOwn } from "../../engine/delegation/find-plugin.ts";
import { buildOf } from "../../engine/build.ts";

/** The identifier of its build in hexadecimal (compile/package.ts); undefined when the sources run unbundled. */
declare const PROGRAM_BUILD: string | undefined;

function programBuild(): Uint8Array | undefined {
  return typeof PROGRAM_BUILD === "undefined" ? undefined : Uint8Array.fromHex(PROGRAM_BUILD);
}

/** A plugin that is this program runs in process, as it does where the program finds itself. */
export function recognizeProgram(): void {
  recognizeOwn((path) => {
    const ours = programBuild();
    try {
      return ours !== undefined && Buffer.compare(buildOf(path), ours) === 0;
    } catch {
      // The file is not a program, or too short to be ours.
      return false;
    }
  });
}

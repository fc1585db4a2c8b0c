/** Prints what netavark and its plugins return: one line of JSON on stdout. */
import { errorText } from "../../cni/error.ts";
import { LeftToCaller } from "../../ffi/calls.ts";
import { printLine, printToStderr } from "../../runtime/cli/output.ts";

/** What `setup` tells podman of one network; `podman inspect` shows it. */
export interface StatusBlock {
  dns_search_domains: readonly string[] | null;
  dns_server_ips: readonly string[] | null;
  interfaces: Readonly<Record<string, NetInterface>>;
}

export interface NetInterface {
  mac_address: string;
  subnets: readonly { gateway: string | null; ipnet: string }[] | null;
}

/** Prints the document that `work` returns; a number is the exit status. Returns the exit status. */
export function printAnswer(work: () => object | number | void): number {
  try {
    const answer = work();
    if (typeof answer === "number") return answer;
    if (answer !== undefined) printLine(JSON.stringify(answer));
    return 0;
  } catch (error) {
    if (error instanceof LeftToCaller) throw error;
    report(errorText(error));
    return 1;
  }
}

function report(error: string): void {
  try {
    // podman refuses an error with any other key.
    printLine(JSON.stringify({ error }));
  } catch {
    printToStderr(`patchbay: ${error}`);
  }
}

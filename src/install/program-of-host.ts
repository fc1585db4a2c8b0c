/** From a container: the program that is installed on the host, in the host's namespaces, in this one's place. */
import { errorText } from "../cni/error.ts";
import { linkTarget } from "../ffi/directory-entries.ts";
import { environmentEntries } from "../ffi/environment.ts";
import { SyscallError } from "../ffi/errno.ts";
import { enterMountsAndNetworkOf } from "../ffi/namespaces.ts";
import { execute } from "../ffi/spawn.ts";
import { NOT_EVERYBODYS, withJudged } from "../process/trusted-executable.ts";
import { absolutePath } from "../ffi/absolute-path.ts";

/** The host's process 1, which has its namespaces. */
const INIT = 1;

/** `directory` is the host's. */
export function becomeProgramOfHost(directory: string, words: readonly string[]): never {
  if (process.pid === INIT || sharesMounts(INIT)) {
    throw new Error(
      "process 1 is of this container, so the host's namespaces are out of sight: the container needs the host's " +
        "process namespace (hostPID: true, --pid=host)",
    );
  }
  const program = `${absolutePath(directory)}/patchbay`;
  explained("the container has to be privileged", () => enterMountsAndNetworkOf(INIT));
  return explained(
    `on the host, \`patchbay install ${directory}\` puts it there`,
    () =>
      withJudged(program, NOT_EVERYBODYS, ({ directory }) =>
        execute({
          path: `/proc/self/fd/${directory}/patchbay`,
          argv: ["patchbay", ...words],
          environment: environmentEntries(),
        })),
  );
}

/** Whether the process has this one's mounts. Process 1 has them on a host, too: there, plain `serve` is enough. */
function sharesMounts(pid: number): boolean {
  const mounts = linkTarget(`/proc/${pid}/ns/mnt`);
  return mounts !== undefined && mounts === linkTarget("/proc/self/ns/mnt");
}

function explained<T>(nextStep: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof SyscallError ? new Error(`${errorText(error)}; ${nextStep}`) : error;
  }
}

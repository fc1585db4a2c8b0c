/**
 * A container engine: runs a program from a folder, in namespaces of its own, attached to a network.
 *
 *     PUBLISH=8080:80 bun launcher.ts NETWORK FOLDER PROGRAM [ARGUMENT…]
 */
import { CniError, open } from "patchbay";

const [name, folder, ...command] = process.argv.slice(2);
if (name === undefined || folder === undefined || command.length === 0) {
  console.error("Usage: bun launcher.ts NETWORK FOLDER PROGRAM [ARGUMENT…]");
  process.exit(2);
}
process.on("uncaughtException", (error) => {
  const more = error instanceof CniError ? ` (CNI error ${error.code}) ${error.details}` : "";
  console.error(`launcher: ${error.message}${more}`);
  process.exit(1);
});
const patchbay = open(), network = patchbay.network(name);
const portMappings = (process.env.PUBLISH ?? "").split(",").filter((ports) => ports !== "").map((ports) => {
  const [hostPort, containerPort] = ports.split(":").map(Number);
  return { hostPort: hostPort!, containerPort: containerPort!, protocol: "tcp" as const };
});

// The container's first process says that its namespaces are there, and waits until they have a network.
const first = ["/bin/sh", "-c", 'echo; read -r _; exec "$@"', "first", ...command];
const namespaces = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", `--root=${folder}`];
const container = Bun.spawn([...namespaces, "--mount-proc", ...first], { stdin: "pipe", stdout: "pipe" });
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => container.kill("SIGKILL"));

const { pid } = container, netns = `/proc/${pid}/ns/net`;
const attachment = { containerId: `launched-${pid}`, netns, capabilities: { portMappings } };
const output = container.stdout.getReader();
try {
  patchbay.gc(network, { live: true }); // what a launcher that was killed has left
  if ((await output.read()).done) throw new Error("the container's namespaces could not be made");
  const { ips } = patchbay.add(network, attachment);
  console.error(`${attachment.containerId}: ${ips?.map(({ address }) => address).join(", ")}`);
  container.stdin.write("go\n");
  container.stdin.end();
  for (let part = await output.read(); !part.done; part = await output.read()) process.stdout.write(part.value);
} catch (error) {
  container.kill("SIGKILL");
  throw error;
} finally {
  await container.exited;
  patchbay.del(network, attachment);
}
process.exitCode = container.exitCode ?? 1;

/**
 * A network with a scripted server, the service, and how a container's link looks.
 *
 *     await using scene = await openScene({ address: "192.168.77.50", leaseSeconds: 8 });
 *     const { machine, server, service } = scene;
 */
import type { Container, Machine } from "../machine.ts";
import { kindOf, type MessageName } from "./message-name.ts";
import type { Frame } from "./capture.ts";
import { type BridgeSegment, serverBehindBridge } from "./link.ts";
import { untilTrue } from "../until-true.ts";
import type { Script } from "./script.ts";
import { type ScriptedServer, serveScript } from "./scripted-server.ts";
import { type Service, type ServiceOptions, startService, untilAddresses } from "./service.ts";

export interface Scene extends AsyncDisposable {
  readonly segment: BridgeSegment;
  readonly machine: Machine;
  readonly server: ScriptedServer;
  readonly service: Service;
}

/** Everything in it ends with it. */
export async function openScene(script: Script, options: ServiceOptions = {}): Promise<Scene> {
  const segment = await serverBehindBridge();
  const dispose = () => segment[Symbol.asyncDispose]();
  try {
    const server = await serveScript(segment.site, script), service = await startService(segment, options);
    return { segment, machine: segment.machine, server, service, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    await dispose();
    throw error;
  }
}

/** The container's IPv4 routes through eth0 that somebody has set, as in `default via 192.168.77.1 metric 5`. */
export async function routesIn({ machine }: Pick<Scene, "machine">, container: Container): Promise<string[]> {
  const routes = JSON.parse(await machine.sh("ip -j -4 route show dev eth0", { in: container }));
  type Shown = { dst: string; gateway?: string; metric?: number; protocol: string };
  return (routes as Shown[]).filter(({ protocol }) => protocol !== "kernel").map(({ dst, gateway, metric }) =>
    dst + (gateway === undefined ? "" : ` via ${gateway}`) + (metric === undefined ? "" : ` metric ${metric}`)
  ).sort();
}

/** Waits until the container has this address alone, and until the service has given it the lease's lifetime. */
export async function untilLeased({ segment }: Pick<Scene, "segment">, container: Container, address: string) {
  const isLeased = (found: { address: string; valid: number }[]) =>
    found.length === 1 && found[0]!.address === address && found[0]!.valid < Infinity;
  return (await untilAddresses(segment, container, isLeased))[0]!;
}

export async function untilRoutes(
  scene: Scene,
  container: Container,
  isRight: (routes: string[]) => boolean,
): Promise<string[]> {
  return await untilTrue(() => routesIn(scene, container), isRight);
}

/** The DHCPv4 messages of a kind in a capture. */
export function framesOf(frames: readonly Frame[], kind: MessageName): Frame[] {
  return frames.filter(({ dhcp }) => kindOf(dhcp) === kind);
}

/**
 * Why the last ADD of each network got no lease, for STATUS. An engine that goes by STATUS starts no container while it
 * fails. So nothing would show that the server is back: after a while it is forgotten, and the next ADD tries.
 */
export class FailedAdds {
  private readonly networks = new Map<string, { obstacle: string; end: number }>();

  constructor(private readonly rememberedS: number) {}

  add(network: string, obstacle: string, now: number): void {
    this.networks.set(network, { obstacle, end: now + this.rememberedS });
  }

  /** Somebody of the network has a lease. */
  forget(network: string): void {
    this.networks.delete(network);
  }

  of(network: string, now: number): { obstacle?: string; forgottenInS?: number } {
    const { obstacle, end = 0 } = this.networks.get(network) ?? {};
    return now < end ? { obstacle, forgottenInS: Math.ceil(end - now) } : {};
  }
}

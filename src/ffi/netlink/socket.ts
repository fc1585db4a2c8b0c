export interface NetlinkSocket {
  readonly fd: number;
}

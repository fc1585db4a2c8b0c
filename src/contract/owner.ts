/** One attachment of one container to one network: the key of all that the engine writes down. */
export interface Owner {
  network: string;
  containerId: string;
  ifName: string;
}

/** "1 lease", "2 leases": the noun forms its plural with s. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

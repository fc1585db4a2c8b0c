/** Has the runtime compile what runs often. The build's policy is for a process that ends soon. */
export function expectLongLife(): void {
  Bun.unsafe.setJITPolicy(1);
}

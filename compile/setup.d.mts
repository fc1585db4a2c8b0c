export function setUp(upTo?: "all" | "packages" | "tools" | "build", architecture?: string): Promise<void>;
export function orSay(work: () => number | void | Promise<number | void>): Promise<number>;

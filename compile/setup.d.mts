export function setUp(upTo?: "all" | "packages" | "tools" | "build", architecture?: string): Promise<void>;
export function orSay(work: () => number | void | Promise<number | void>): Promise<number>;
/** The npm packages of a folder with a lockfile of its own. */
export function installLocked(folder: string, ...flags: string[]): Promise<void>;
export function say(text: string): void;
export const DEFAULT_ARCHITECTURE: "x64";

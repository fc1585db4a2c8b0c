import type { Architecture } from "./architectures.ts";

export function bunExecutable(architecture: Architecture): string;
export function fetchBun(architecture: Architecture): void;

import type { Architecture } from "./native.ts";

export function bunExecutable(architecture: Architecture): string;
export function fetchBun(architecture: Architecture): void;

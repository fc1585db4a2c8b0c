import type { Place } from "./traversal.ts";
export function makerOf(_place: Place): { name: string; remark?: string } {
  return { name: "another program" };
}

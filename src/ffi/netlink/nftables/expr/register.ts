/** Registers: four of 16 bytes, also addressable as sixteen of 4 bytes (enum nft_registers). */
import { NFT_REG32_00, NFT_REG_1 } from "../../uapi/nf-tables.ts";

const WORDS_EACH = 4;

/** The register at a 4-byte offset; 16-byte registers under the number that the kernel lists. */
export function registerAt(words: number): number {
  return words % WORDS_EACH === 0 ? NFT_REG_1 + words / WORDS_EACH : NFT_REG32_00 + words;
}

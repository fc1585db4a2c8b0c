/** Every demand, in the order in which they are asked. */
import type { SpecDemand } from "../demand.ts";
import { about } from "./about.ts";
import { adding } from "./adding.ts";
import { checking } from "./checking.ts";
import { collecting } from "./collecting.ts";
import { conventions } from "./conventions.ts";
import { deleting } from "./deleting.ts";
import { errors } from "./errors.ts";

export const demands: readonly SpecDemand[] = [
  ...about,
  ...errors,
  ...adding,
  ...checking,
  ...deleting,
  ...collecting,
  ...conventions,
];
